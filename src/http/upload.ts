// The bytes of a request's body: within the limits of size, time and memory, counted until the request was answered.

import { BytePace } from '../base/byte-pace.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { type MemoryBudget, outOfMemory } from '../base/memory.ts'
import type { Hold } from '../base/memory-hold.ts'
import { clientKey } from './address.ts'
import { body_bytes_max, Chunks, no_bytes, readWhole } from './body-stream.ts'

export const drained_bytes_max = limit(
  'http.drained_bytes',
  16 * body_bytes_max,
  'bytes',
  'A body that is too long, but no longer than this, is read to its end so that the client sees the 413. Past it the connection ends.',
)
export const small_bytes_max = limit(
  'http.small_body_bytes',
  16_384,
  'bytes',
  'A body up to this size is counted without an account of its own; a larger one is held to the shares of MEMORY_BUDGET.',
)

/** Of the whole process: every request is served by its one thread. */
const large_bodies = new BytePace(
  limit(
    'http.turn_bytes',
    body_bytes_max,
    'bytes',
    'Large bodies that are parsed and written in one turn of the event loop: more wait for the next, so that other requests are served in between.',
  ),
)

/** Counted for a body without a length while its sender is not known. */
const chunked_bytes = 65_536

export class Upload {
  /** True when the request says how long its body is. */
  readonly has_length: boolean
  /** Null for a body without a length. */
  readonly #length: number | null
  #small_bytes = 0
  #hold: Hold | null = null
  #chunks: Chunks | null = null

  /**
   * Counts what Bun receives on its own until `read`, which is up to 1 MiB. Throws UNAVAILABLE when there is no room
   * for a large body, and VALIDATION_FAILED when its length is not a number.
   */
  constructor(
    private readonly request: Request,
    private readonly memory: MemoryBudget,
    private readonly sender: { readonly address: string },
  ) {
    const length = request.headers.get('content-length')
    this.has_length = length !== null
    this.#length = length === null ? (request.body === null ? 0 : null) : lengthOf(length)
    if (!this.is_large) return
    const expected = Math.min(this.#length ?? chunked_bytes, body_bytes_max)
    this.#hold = this.#newHold()
    if (!this.#hold.grow(expected)) throw outOfMemory()
  }

  /** More than a small body, or of unknown length: then the sender is identified first. */
  get is_large(): boolean {
    return this.#length === null || this.#length > small_bytes_max
  }

  /**
   * The raw bytes, empty when there is no body. Throws PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, and UNAVAILABLE when there
   * is no room or the body was cut off in favour of others. The caller passes what is thrown to `readError`: one more
   * promise here would cost a small write a fortieth of its CPU.
   */
  read(tenant_id: string | null): Promise<Uint8Array> {
    const length = this.#length
    if (length === 0) return Promise.resolve(no_bytes)
    if (length !== null && length <= small_bytes_max && this.memory.acquireSmall(length)) {
      this.#small_bytes = length
      return this.request.bytes()
    }
    return this.#readCounted(tenant_id)
  }

  async #readCounted(tenant_id: string | null): Promise<Uint8Array> {
    const length = this.#length
    if (length === null) requireNoTrailers(this.request.headers)
    else if (length > body_bytes_max)
      throw new ApiError('PAYLOAD_TOO_LARGE', { close: length > drained_bytes_max })
    this.#hold ??= this.#newHold()
    const hold = this.#hold
    hold.shrink(hold.bytes)
    if (hold.is_cut) throw outOfMemory(true)
    if (tenant_id !== null) hold.assign(tenant_id)
    this.#chunks = new Chunks(this.request.body!)
    const bytes = await readWhole(this.#chunks, length ?? body_bytes_max, hold)
    this.#chunks = null
    hold.pin()
    if (bytes.length > small_bytes_max) await large_bodies.pass(bytes.length)
    return bytes
  }

  /** Counts this many bytes more until `release`, for what is made of a large body. Throws UNAVAILABLE when there is no room. */
  reserve(bytes: number): void {
    if (this.#hold?.grow(bytes) === false) throw outOfMemory()
  }

  /** The request was answered: nothing of its body is needed any more. */
  release(): void {
    if (this.#small_bytes > 0) this.memory.releaseSmall(this.#small_bytes)
    this.#small_bytes = 0
    this.#hold?.release()
  }

  #newHold(): Hold {
    const owner = { address: clientKey(this.sender.address), tenant_id: null }
    return this.memory.hold(owner, () => this.#chunks?.stop(outOfMemory(true)))
  }
}

/** Bun joins repeated headers, also those that say the same. */
function lengthOf(header: string): number {
  if (/^\d+$/.test(header)) return Number(header)
  throw invalid({ path: 'header.Content-Length', message: 'must be sent once, as a whole number' })
}

/** Bun ends the body before it looks at trailers, and refuses them then, so a request that announces trailers is refused before. */
function requireNoTrailers(headers: Headers): void {
  if (!headers.has('trailer')) return
  throw invalid({ path: 'header.Trailer', message: 'announces trailers, which are not accepted' })
}

/** The error of the API for one that `Upload.read` has thrown: a sender that left is an AbortError there. */
export function readError(error: unknown): unknown {
  return error instanceof DOMException ? new ApiError('REQUEST_TIMEOUT') : error
}
