// A message: the parts of a request that are kept. No imports from db or http.

import type { Millis } from '../base/clock.ts'
import { decodeUtf8, levels_max, quoted, scanObject } from '../base/json.ts'
import { limit } from '../base/limit.ts'
import type { RawRequest } from '../contract/route.ts'

export const forward_statuses = ['pending', 'delivered', 'failed'] as const

/** Raised by one with each forward: a message with this many is not forwarded again. */
export const hops_max = limit(
  'inbox.hops',
  3,
  'entries',
  'How often a message may be forwarded from inbox to inbox. Past it a message is kept and not forwarded, so that forwards cannot go in circles.',
)
export const hops_header = 'x-waystation-hops'

/** As it came, before it has a number. */
export interface Incoming {
  method: string
  path: string
  query: string
  /** JSON text of an object. */
  headers: string
  kind: 'json' | 'text' | 'binary'
  /** How `body` holds the bytes. */
  encoding: 'text' | 'base64'
  body: string
  content_type: string
  source_ip: string
  hops: number
  /** Of the row's long texts. */
  size: number
}

export interface MessageRow extends Omit<Incoming, 'hops' | 'size'> {
  id: string
  seq: number
  forward_status: (typeof forward_statuses)[number] | null
  forward_status_code: number | null
  forward_error: string | null
  forward_duration_ms: number | null
  forward_attempted_at: Millis | null
  created_at: Millis
}

export function incomingOf({ method, headers, bytes, url, address }: RawRequest): Incoming {
  const content_type = headers.get('content-type') ?? ''
  const { path, query } = targetOf(url)
  const header_text = headersText(headers)
  const stored = storedBody(bytes, content_type)
  return {
    method,
    path,
    query,
    headers: header_text,
    ...stored,
    content_type,
    source_ip: address,
    hops: hopsOf(headers.get(hops_header)),
    size: path.length + query.length + header_text.length + storedBytes(stored, bytes),
  }
}

/** The path after the token, and the query, both as Bun gives them: escapes stay, dot segments are resolved. */
function targetOf(url: string): { path: string; query: string } {
  // A bare path is what Bun gives for a request without a usable Host.
  const target = url.startsWith('/') ? url : url.slice(url.indexOf('/', url.indexOf('://') + 3))
  const end = target.indexOf('#')
  const whole = end === -1 ? target : target.slice(0, end)
  const query_at = whole.indexOf('?')
  const path = query_at === -1 ? whole : whole.slice(0, query_at)
  const path_at = path.indexOf('/', '/hook/'.length)
  return {
    path: path_at === -1 ? '' : path.slice(path_at),
    query: query_at === -1 ? '' : whole.slice(query_at + 1),
  }
}

/** A credential of the sender for its proxy, and for nobody behind it (RFC 9110 section 11.7.2). */
const dropped_header = 'proxy-authorization'

function headersText(headers: Headers): string {
  let text = ''
  let cookies = ''
  for (const [name, value] of headers) {
    if (name === dropped_header) continue
    // The only name that comes once for each time it was sent.
    if (name === 'set-cookie') cookies += cookies === '' ? value : `, ${value}`
    else text += `${text === '' ? '{' : ','}${quoted(name)}:${quoted(value)}`
  }
  if (cookies !== '') text += `${text === '' ? '{' : ','}"set-cookie":${quoted(cookies)}`
  return text === '' ? '{}' : `${text}}`
}

type StoredBody = Pick<Incoming, 'kind' | 'encoding' | 'body'>

function storedBytes({ encoding, body }: StoredBody, bytes: Uint8Array): number {
  return encoding === 'text' ? bytes.length : body.length
}

/** PostgreSQL takes no NUL in a text, so a text with one is kept as base64, too. */
function storedBody(bytes: Uint8Array, content_type: string): StoredBody {
  const text = decodeUtf8(bytes)
  if (text === null) return { kind: 'binary', encoding: 'base64', body: bytes.toBase64() }
  if (text.includes('\0')) return { kind: 'text', encoding: 'base64', body: bytes.toBase64() }
  return { kind: isJson(text, content_type) ? 'json' : 'text', encoding: 'text', body: text }
}

const json_type = /^\s*(application\/json|text\/json|[^/\s;]+\/[^/\s;]+\+json)\s*(;|$)/i

/** True when the body is shown as JSON: any value that is declared as JSON, and an object or array in any case. */
function isJson(text: string, content_type: string): boolean {
  const first = /[^ \t\r\n]/.exec(text)?.[0]
  if (first !== '{' && first !== '[' && !json_type.test(content_type)) return false
  const scan = scanObject(text, () => false)
  if (scan.ok) return true
  return scan.why === 'not_an_object' && (first !== '[' || levelsOf(text) <= levels_max)
}

/** Of a text that is known to be JSON. */
function levelsOf(text: string): number {
  let level = 0
  let deepest = 0
  let in_string = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (in_string) {
      if (character === '\\') at++
      else if (character === '"') in_string = false
    } else if (character === '"') in_string = true
    else if (character === '[' || character === '{') deepest = Math.max(deepest, ++level)
    else if (character === ']' || character === '}') level--
  }
  return deepest
}

/** The number of forwards that a message came through. Of several values the largest counts; other text counts as 0. */
export function hopsOf(sent: string | null): number {
  if (sent === null) return 0
  const numbers = sent.split(',').map((part) => part.trim())
  return Math.max(0, ...numbers.map((part) => (/^\d+$/.test(part) ? Number(part) : 0)))
}

/** The body as text; null for bytes that are not UTF-8. */
export function textOf(message: Pick<MessageRow, 'kind' | 'encoding' | 'body'>): string | null {
  if (message.kind === 'binary') return null
  return message.encoding === 'text' ? message.body : bytesOf(message).toString('utf8')
}

const preview_characters_max = limit(
  'inbox.preview',
  200,
  'characters',
  'The `preview` of a message, which lists show. Longer lines are cut.',
)
const first_line = new RegExp(`\\S[^\\r\\n]{0,${preview_characters_max - 1}}`, 'u')
/** Room for the indents of JSON, which is shown on one line. */
const json_previewed = 8 * preview_characters_max

/** The first line that is not blank; of JSON the beginning, without its line breaks and indents. Null when there is none. */
export function previewOf(kind: MessageRow['kind'], text: string | null): string | null {
  if (text === null) return null
  const shown = kind === 'json' ? onOneLine(text.trimStart().slice(0, json_previewed).toWellFormed()) : text
  return first_line.exec(shown)?.[0].trimEnd() ?? null
}

/**
 * Line breaks, and the blanks around them, as one space. Anybody who knows an inbox's address writes its bodies, so
 * each character is looked at a bounded number of times.
 */
export function onOneLine(text: string): string {
  return text.replace(/\s+/g, (blanks) => (/[\r\n]/.test(blanks) ? ' ' : blanks))
}

/**
 * True when the request line, without its token, or the body has this text, in letters of any case. `wanted` is folded. Bytes
 * that are not UTF-8 keep nothing from being found that stands beside them.
 */
export function contains(message: MessageRow, wanted: string): boolean {
  const { method, path, query, encoding, body } = message
  const request = query === '' ? `${method} ${path}` : `${method} ${path}?${query}`
  if (folded(request).includes(wanted)) return true
  return folded(encoding === 'text' ? body : bytesOf(message).toString('utf8')).includes(wanted)
}

/** For a comparison of letters of any case. The lower case of a sigma depends on its place in the word (Unicode, SpecialCasing). */
export function folded(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ')
}

export function bytesOf({ encoding, body }: Pick<MessageRow, 'encoding' | 'body'>): Buffer {
  return Buffer.from(body, encoding === 'text' ? 'utf8' : 'base64')
}
