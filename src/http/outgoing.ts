// The body of every answer. A small one is handed to Bun at once. A large one is sent in pieces (deliveries.ts).

import { limit } from '../base/limit.ts'
import { InParts } from '../contract/route.ts'

export const piece_bytes_max = limit(
  'http.piece_bytes',
  65_536,
  'bytes',
  'The part of an answer that Bun holds for a connection; a larger answer is sent in pieces, in chunked coding.',
)

export type Body = string | Uint8Array<ArrayBuffer>

export type Part = Body | InParts

/** An answer that is larger than a piece, or may be: `Deliveries` sends it. */
export class LargeAnswer {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    /** Shared between answers; never copied as a whole. */
    readonly body: Part | AsyncIterator<Part>,
    /** Sent piece by piece as they come, for as long as the client reads: `body` is an iterator. */
    readonly is_live = false,
  ) {}
}

export type Outgoing = Response | LargeAnswer

export function outgoing(status: number, headers: Record<string, string>, body: Body): Outgoing {
  return isLarge(body)
    ? new LargeAnswer(status, new Headers(headers), body)
    : new Response(body, { status, headers })
}

/** True when the text may be larger than a piece: UTF-8 takes three bytes a character at most. */
export function isLarge(body: Body): boolean {
  if (typeof body !== 'string') return body.length > piece_bytes_max
  return body.length * 3 > piece_bytes_max && Buffer.byteLength(body) > piece_bytes_max
}

/** The same answer for a caller inside the process, without a connection that could be slow. */
export function undivided({ status, headers, body }: LargeAnswer): Response {
  if (typeof body === 'string' || body instanceof Uint8Array) return new Response(body, { status, headers })
  const rest = pieces(body, async () => {})
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await rest.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: () => close(body),
  })
  return new Response(stream, { status, headers })
}

/** `onPart` is called with each part as it is made, `onTaken` when all before the next one were taken. */
export async function* pieces(
  body: LargeAnswer['body'],
  onPart: (part: Part) => Promise<void>,
  onTaken: () => void = () => {},
): AsyncGenerator<Uint8Array, void> {
  if (isWhole(body)) return yield* piecesOf(body)
  for (;;) {
    onTaken()
    const { done, value } = await body.next()
    if (done) return
    await onPart(value)
    yield* piecesOf(value)
  }
}

/** The memory that a part takes until it is sent. */
export function partBytes(part: Part): number {
  return part instanceof InParts ? part.held_bytes : Buffer.byteLength(part)
}

/** Drops what the remaining parts would be made from. */
export function close(body: LargeAnswer['body']): void {
  if (!isWhole(body)) body.return?.().catch(() => {})
}

/** False when the rest of it is still to be made. */
export function isWhole(body: LargeAnswer['body']): body is Part {
  return typeof body === 'string' || body instanceof Uint8Array || body instanceof InParts
}

function piecesOf(body: Part): Generator<Uint8Array, void> {
  if (body instanceof InParts) return piecesOfTexts(body.texts)
  return typeof body === 'string' ? piecesOfText(body) : piecesOfBytes(body)
}

/** Short texts are sent together. */
function* piecesOfTexts(texts: Iterable<string>): Generator<Uint8Array, void> {
  let gathered = ''
  for (const text of texts) {
    gathered += text
    if (gathered.length < piece_bytes_max) continue
    yield* piecesOfText(gathered)
    gathered = ''
  }
  yield* piecesOfText(gathered)
}

function* piecesOfBytes(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += piece_bytes_max) yield bytes.subarray(at, at + piece_bytes_max)
}

/** Encoded a piece at a time, never within a character. */
function* piecesOfText(text: string): Generator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + piece_bytes_max, text.length)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1
    const bytes = new Uint8Array(Math.min(piece_bytes_max, (end - at) * 3))
    const { read, written } = encoder.encodeInto(text.slice(at, end), bytes)
    yield bytes.subarray(0, written)
    at += read
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff
}
