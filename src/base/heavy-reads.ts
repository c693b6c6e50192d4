// Permits for heavy reads: pages of large rows. A tenant has a few at once, its other requests wait in order, and
// each permit begins in a turn of the event loop of its own.

import { ApiError } from './errors.ts'
import { Turns } from './event-loop.ts'
import { Permit } from './heavy-read.ts'
import { limit } from './limit.ts'

export const running_of_tenant_max = limit(
  'heavy_reads.running_of_tenant',
  2,
  'requests',
  'Heavy reads of one tenant at once on a node; more wait in order, so that they take no time from other tenants.',
)

export const running_max = limit(
  'heavy_reads.running',
  8,
  'requests',
  'Heavy reads at once on a node, which bounds the memory of the rows they read; more wait, tenant by tenant.',
)

export const waiting_of_tenant_max = limit(
  'heavy_reads.waiting_of_tenant',
  2_000,
  'requests',
  'Heavy reads of one tenant that wait for a permit; past it 503 UNAVAILABLE, so that a client learns that it is too fast.',
)

export const waiting_max = limit(
  'heavy_reads.waiting',
  10_000,
  'requests',
  'Heavy reads of all tenants that wait for a permit; past it 503 UNAVAILABLE, which bounds the memory of the requests.',
)

export const wait_ms_max = limit(
  'heavy_reads.wait_ms',
  3_000,
  'milliseconds',
  'How long a heavy read waits for a permit; past it 503 UNAVAILABLE.',
)

/** The permits of one tenant. */
interface Line {
  running: number
  /** Each starts a request that waits, in the order in which they came. */
  waiting: Set<() => void>
}

export class HeavyReads {
  /** Tenants that have a permit or wait for one; the one that had the last turn stands last. */
  readonly #lines = new Map<string, Line>()
  readonly #turns = new Turns(1)
  #running = 0
  #waiting = 0

  /**
   * A permit, once there is one and a turn of the event loop has shown that the client is still there. Throws
   * UNAVAILABLE when too many wait or there is none in time, and REQUEST_TIMEOUT when the client is gone.
   */
  async enter(tenant_id: string, signal: AbortSignal): Promise<Permit> {
    const waiting_of_tenant = this.#lines.get(tenant_id)?.waiting.size ?? 0
    if (waiting_of_tenant >= waiting_of_tenant_max || this.#waiting >= waiting_max) throw noPermit()
    const permit = new Permit(this, tenant_id, signal)
    await permit.acquire(wait_ms_max)
    return permit
  }

  /** Rejects when the client is gone or the time is over; then nothing was acquired. */
  async acquire(tenant_id: string, signal: AbortSignal, ms_max: number | null): Promise<void> {
    if (signal.aborted) throw clientIsGone()
    const line: Line = this.#lines.get(tenant_id) ?? { running: 0, waiting: new Set() }
    this.#lines.set(tenant_id, line)
    if (line.waiting.size === 0 && this.#hasPermit(line)) this.#start(line)
    else await this.#wait(tenant_id, line, signal, ms_max)
    await this.#turns.next()
    if (!signal.aborted) return
    this.release(tenant_id)
    throw clientIsGone()
  }

  release(tenant_id: string): void {
    this.#running -= 1
    this.releaseOfTenant(tenant_id)
  }

  /** The rows were read: another tenant may read, while this one still has what it read in memory. */
  releaseOfNode(): void {
    this.#running -= 1
    this.#startAll()
  }

  /** Releases the tenant's part after `releaseOfNode`. */
  releaseOfTenant(tenant_id: string): void {
    this.#lines.get(tenant_id)!.running -= 1
    this.#removeIdle(tenant_id)
    this.#startAll()
  }

  /** Requests with a permit, and requests that wait for one. For tests. */
  get size(): { running: number; waiting: number; tenants: number } {
    return { running: this.#running, waiting: this.#waiting, tenants: this.#lines.size }
  }

  #hasPermit(line: Line): boolean {
    return line.running < running_of_tenant_max && this.#running < running_max
  }

  #start(line: Line): void {
    line.running += 1
    this.#running += 1
  }

  #wait(tenant_id: string, line: Line, signal: AbortSignal, ms_max: number | null): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting -= 1
        signal.removeEventListener('abort', onAbort)
        clearTimeout(timer)
      }
      const fail = (error: ApiError) => {
        end()
        line.waiting.delete(start)
        this.#removeIdle(tenant_id)
        reject(error)
      }
      const onAbort = () => fail(clientIsGone())
      const start = () => {
        end()
        resolve()
      }
      const timer = ms_max === null ? undefined : setTimeout(() => fail(noPermit()), ms_max)
      this.#waiting += 1
      line.waiting.add(start)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #startAll(): void {
    while (this.#running < running_max && this.#startNext()) {}
  }

  /** Starts the oldest request of the tenant whose turn it is. False when none can start. */
  #startNext(): boolean {
    for (const [tenant_id, line] of this.#lines) {
      if (line.waiting.size === 0 || !this.#hasPermit(line)) continue
      const start = line.waiting.values().next().value!
      line.waiting.delete(start)
      this.#start(line)
      this.#lines.delete(tenant_id)
      this.#lines.set(tenant_id, line)
      start()
      return true
    }
    return false
  }

  #removeIdle(tenant_id: string): void {
    const line = this.#lines.get(tenant_id)!
    if (line.running === 0 && line.waiting.size === 0) this.#lines.delete(tenant_id)
  }
}

function noPermit(): ApiError {
  return new ApiError('UNAVAILABLE', { retry_after_seconds: 1, shed: 'heavy_reads' })
}

/** Not an error of the service: there is no client to read the answer. */
function clientIsGone(): ApiError {
  return new ApiError('REQUEST_TIMEOUT')
}
