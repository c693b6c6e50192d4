// A large body, or one of unknown length, as it arrives: read into one buffer within the limits of size, time and
// memory.

import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { outOfMemory } from '../base/memory.ts'
import type { Hold } from '../base/memory-hold.ts'
import { nextTurn } from '../base/next-turn.ts'

export const body_bytes_max = limit('http.body_bytes', 1_048_576, 'bytes', 'A request body. Past it 413.')
export const receive_ms_max = limit(
  'http.receive',
  30_000,
  'milliseconds',
  'How long a client may take to send a body. Past it 408 and the connection ends.',
)

const progress_bytes_min = limit(
  'http.progress_bytes',
  1_024,
  'bytes',
  'Bytes of a large body that must arrive to count as progress: a client that sends a byte a second is cut off like one that sends nothing.',
)

const buffer_bytes_min = limit(
  'http.buffer_bytes',
  4_096,
  'bytes',
  'The first buffer for a body; it doubles as the body arrives.',
)

export const chunks_a_turn_max = limit(
  'http.body_chunks_a_turn',
  64,
  'entries',
  'Bounds how long others wait: parts of a body that are read in one turn of the event loop. A client chooses their size, and whatever arrives meanwhile is read as one.',
)
export const no_bytes = new Uint8Array(0)

/** The chunks of a body as they arrive, within the limit of time. Other requests have their turns in between. */
export class Chunks {
  #reader: { cancel(): Promise<void> } | null = null
  #failure: ApiError | null = null

  constructor(private readonly stream: ReadableStream<Uint8Array>) {}

  /** Ends the reading: `each` rejects with the first of these errors. */
  stop(error: ApiError): void {
    this.#failure ??= error
    this.#reader?.cancel().catch(nothing)
  }

  /** Resolves at the end of the body. Rejects with what `take` throws, and REQUEST_TIMEOUT; nothing more is then received. */
  async each(take: (chunk: Uint8Array) => void): Promise<void> {
    const reader = this.stream.getReader()
    this.#reader = reader
    const timer = setTimeout(
      () => this.stop(new ApiError('REQUEST_TIMEOUT', { close: true })),
      receive_ms_max,
    )
    try {
      for (let chunks = 1; ; chunks++) {
        if (chunks % chunks_a_turn_max === 0) await nextTurn()
        const { done, value } = await reader.read()
        if (this.#failure) throw this.#failure
        if (done) return
        take(value)
      }
    } catch (error) {
      reader.cancel().catch(nothing)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * Reads into one buffer that grows: to keep each chunk would cost a hundred times what it holds. `bytes_max`: the length that the
 * request states, or the limit of any body.
 */
export async function readWhole(chunks: Chunks, bytes_max: number, hold: Hold): Promise<Uint8Array> {
  let buffer = no_bytes
  let bytes = 0
  let progressed = 0
  await chunks.each((chunk) => {
    const end = bytes + chunk.length
    if (end > body_bytes_max) throw new ApiError('PAYLOAD_TOO_LARGE', { close: true })
    if (end > buffer.length) buffer = grown(buffer, bytes, sizeFor(end, buffer, bytes_max), hold)
    buffer.set(chunk, bytes)
    bytes = end
    if (bytes - progressed < progress_bytes_min) return
    progressed = bytes
    hold.progress()
  })
  return buffer.subarray(0, bytes)
}

/** The next size of a buffer for so many bytes: twice what it is. */
function sizeFor(bytes: number, buffer: Uint8Array, bytes_max: number): number {
  return Math.max(bytes, Math.min(Math.max(buffer.length * 2, buffer_bytes_min), bytes_max))
}

/** A larger buffer with the same bytes; its growth is counted. Throws UNAVAILABLE. */
function grown(
  buffer: Uint8Array<ArrayBuffer>,
  bytes: number,
  size: number,
  hold: Hold,
): Uint8Array<ArrayBuffer> {
  if (!hold.grow(size - buffer.length)) throw outOfMemory()
  const larger = new Uint8Array(size)
  larger.set(buffer.subarray(0, bytes))
  return larger
}

function nothing(): void {}
