// Messages as the JSON text of an answer. Anybody who knows the address of an inbox writes them, and a message of 1 MiB of
// control characters is 7.7 MB of JSON: the text of a large one is made in parts, while it is sent.

import { limit } from '../base/limit.ts'
import { nextTurn } from '../base/next-turn.ts'
import { encode } from '../contract/encode.ts'
import { PageItems, page_bytes_max } from '../contract/page.ts'
import { InParts, Streamed } from '../contract/route.ts'
import type { RawJson } from '../contract/schemas.ts'
import { bytesOf, type MessageRow, textOf } from './message.ts'
import type { ReadPart } from './service.ts'
import { headOfMessage, messageOf, restOfMessage } from './shapes.ts'

const query_bytes_a_turn = limit(
  'inbox.query_bytes_a_turn',
  65_536,
  'bytes',
  'Bounds how long others wait: queries of messages that are read in one turn of the event loop. A page has up to 1 MiB of them.',
)

const slice_characters = limit(
  'inbox.slice',
  49_152,
  'characters',
  'Bounds memory: how much of a large body is encoded as JSON at once.',
)

/** Several of them, in turns of the event loop: anybody who knows the address of an inbox writes their queries. */
export async function messagesOf(rows: readonly MessageRow[]): Promise<ReturnType<typeof messageOf>[]> {
  const shown = []
  for await (const message of inTurns(rows)) shown.push(message)
  return shown
}

/** The same for a page: no more of them than fit. */
export async function pageOfMessages(rows: readonly MessageRow[]): Promise<RawJson[]> {
  const page = new PageItems()
  for await (const message of inTurns(rows)) if (!page.add(message)) break
  return page.items
}

async function* inTurns(rows: readonly MessageRow[]): AsyncGenerator<ReturnType<typeof messageOf>> {
  let bytes = 0
  for (const row of rows) {
    bytes += row.query.length
    if (bytes > query_bytes_a_turn) {
      await nextTurn()
      bytes = row.query.length
    }
    yield messageOf(row)
  }
}

/** True when the message alone is certainly more than a page: as JSON a body is there twice, as text and in base64. */
export function fillsPage({ kind, encoding, body }: MessageRow): boolean {
  const bytes_min = encoding === 'text' ? body.length : (body.length * 3) / 4
  const shown_min = kind === 'binary' ? body.length : (bytes_min * 7) / 3
  return shown_min > page_bytes_max
}

/** An answer with the messages of these parts, between two texts. */
export function streamed(before: string, parts: readonly ReadPart[], after: string): Streamed {
  return new Streamed(joined(before, parts, after))
}

async function* joined(before: string, parts: readonly ReadPart[], after: string) {
  yield before
  let comma = ''
  for (const part of parts) {
    const text = await inParts(part, comma)
    if (!text) continue
    yield text
    comma = ','
  }
  yield after
}

/** A function of its own, so that nothing keeps the rows once their text is sent. Null when none of them is left. */
async function inParts(part: ReadPart, comma: string): Promise<InParts | null> {
  const rows = await part()
  return rows.length === 0 ? null : new InParts(heldBytes(rows), listed(rows, comma))
}

/** The page of this message: `next` says where the next one begins. */
export function alone(row: MessageRow, next: Record<string, string | null>): InParts {
  const opening = '{"items":['
  const texts = listed([row], opening, `],${encode(next).slice(1)}`)
  return new InParts(heldBytes([row]), texts)
}

/** The texts, and once more the bytes of a body. */
function heldBytes(rows: readonly MessageRow[]): number {
  return rows.reduce(
    (sum, { body, query, headers }) => sum + 2 * (body.length + query.length + headers.length),
    0,
  )
}

function* listed(rows: readonly MessageRow[], before: string, after = ''): Generator<string> {
  let separator = before
  for (const row of rows) {
    yield separator
    if (row.body.length > slice_characters) yield* textsOf(row)
    else yield encode(messageOf(row))
    separator = ','
  }
  yield after
}

/** The text of `messageOf`. */
function* textsOf(row: MessageRow): Generator<string> {
  const text = textOf(row)
  yield `${encode(headOfMessage(row)).slice(0, -1)},"body":`
  if (row.kind === 'json') yield row.body
  else if (text === null) yield 'null'
  else yield* quotedOf(text)
  yield ',"bodyBase64":"'
  if (row.encoding === 'base64') yield row.body
  else yield* base64Of(bytesOf(row))
  yield `",${encode(restOfMessage(row, text)).slice(1)}`
}

/** Cut between characters: half of one would be escaped. */
function* quotedOf(text: string): Generator<string> {
  yield '"'
  for (let at = 0; at < text.length; ) {
    const end = at + slice_characters
    const next = isLow(text.charCodeAt(end)) ? end - 1 : end
    yield JSON.stringify(text.slice(at, next)).slice(1, -1)
    at = next
  }
  yield '"'
}

function isLow(unit: number): boolean {
  return unit >= 0xdc_00 && unit <= 0xdf_ff
}

/** `slice_characters` are whole groups of three bytes (RFC 4648 section 4). */
function* base64Of(bytes: Buffer): Generator<string> {
  for (let at = 0; at < bytes.length; at += slice_characters)
    yield bytes.subarray(at, at + slice_characters).toString('base64')
}
