// dlq.work: a loop that claims, hands over, keeps the lock alive, and says what came of it.

import type { Dlq } from './dlq.ts'
import { WaystationError } from './errors.ts'
import type { Platform } from './platform.ts'
import type { ClaimedDeadLetter } from './types.ts'

export interface WorkOptions {
  /** Items at the same time, 1 to 100; default 1. */
  concurrency?: number | undefined
  /** How long each lock holds without being extended; default that of the item. */
  lock_seconds?: number | undefined
  /** Ends the work: nothing more is claimed, and the handlers' signals are aborted. */
  signal?: AbortSignal | undefined
  /** An item that was claimed this often and still fails is given up; default 10. */
  claims_max?: number | undefined
  /** The longest wait while there is nothing to do, or nothing succeeds; default 30,000. */
  idle_ms_max?: number | undefined
  /** Ends the work once nothing is left to claim. */
  stop_when_empty?: boolean | undefined
  /** Told of everything that went wrong; `item` is null when it was the claim. */
  on_error?: ((error: unknown, item: ClaimedDeadLetter | null) => void) | undefined
}

export interface WorkContext {
  /** Aborted when the lock was lost (do not go on then: somebody else may have the item) or the work ends. */
  signal: AbortSignal
}

/** How many items ended in which way. */
export interface WorkSummary {
  resolved: number
  released: number
  /** Given up: archived. */
  failed: number
  /** Nobody could be told, or the lock was somebody else's by then. */
  lost: number
}

/** Thrown by a handler: trying again makes no sense, the item is archived. */
export class GiveUp extends Error {
  override readonly name = 'GiveUp'
}

const concurrency_max = 100
const idle_ms_first = 1_000
const idle_ms_max_default = 30_000
const claims_max_default = 10

type Handler = (item: ClaimedDeadLetter, context: WorkContext) => unknown

export async function workOn(
  dlq: Dlq,
  platform: Platform,
  handler: Handler,
  options: WorkOptions,
): Promise<WorkSummary> {
  const { concurrency = 1 } = options
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > concurrency_max) {
    throw new TypeError(`concurrency must be from 1 to ${concurrency_max}`)
  }
  const summary: WorkSummary = { resolved: 0, released: 0, failed: 0, lost: 0 }
  const ended = new AbortController()
  const onAbort = () => ended.abort(options.signal?.reason)
  if (options.signal?.aborted) onAbort()
  options.signal?.addEventListener('abort', onAbort, { once: true })
  const worker = new Worker(dlq, platform, handler, options, ended, summary)
  const places = await Promise.allSettled(Array.from({ length: concurrency }, () => worker.run()))
  options.signal?.removeEventListener('abort', onAbort)
  for (const place of places) if (place.status === 'rejected') throw place.reason
  return summary
}

class Worker {
  constructor(
    private readonly dlq: Dlq,
    private readonly platform: Platform,
    private readonly handler: Handler,
    private readonly options: WorkOptions,
    private readonly ended: AbortController,
    private readonly summary: WorkSummary,
  ) {}

  /** One place: item after item, with growing pauses while nothing succeeds. */
  async run(): Promise<void> {
    const { stop_when_empty = false } = this.options
    let fruitless = 0
    while (!this.ended.signal.aborted) {
      const item = await this.#claim()
      if (item === null && stop_when_empty) return
      const succeeded = item !== null && item !== 'no_answer' && (await this.#handle(item))
      fruitless = succeeded ? 0 : fruitless + 1
      if (!succeeded) await this.#pause(fruitless)
    }
  }

  /** Null when there is none. A refusal that will not pass ends all the work. */
  async #claim(): Promise<ClaimedDeadLetter | 'no_answer' | null> {
    const { signal } = this.ended
    try {
      return await this.dlq.claimOldest({ lock_seconds: this.options.lock_seconds, signal })
    } catch (error) {
      if (signal.aborted) return 'no_answer'
      if (error instanceof WaystationError && error.status < 500 && error.status !== 429) {
        this.ended.abort(error)
        throw error
      }
      this.#tell(error, null)
      return 'no_answer'
    }
  }

  /** Whether the item was resolved. */
  async #handle(item: ClaimedDeadLetter): Promise<boolean> {
    const lock = new AbortController()
    const done = new AbortController()
    const onEnd = () => lock.abort(this.ended.signal.reason)
    if (this.ended.signal.aborted) onEnd()
    this.ended.signal.addEventListener('abort', onEnd, { once: true })
    const keeping = this.#keep(item, lock, done.signal)
    const thrown = await caught(() => this.handler(item, { signal: lock.signal }))
    done.abort()
    const lost = await keeping
    this.ended.signal.removeEventListener('abort', onEnd)
    if (thrown) this.#tell(thrown.error, item)
    if (lost) {
      this.summary.lost += 1
      return false
    }
    return this.#settle(item, thrown)
  }

  async #settle(item: ClaimedDeadLetter, thrown: Thrown | null): Promise<boolean> {
    const { claims_max = claims_max_default } = this.options
    const gives_up = thrown !== null && (thrown.error instanceof GiveUp || item.claims >= claims_max)
    const verb = thrown === null ? 'resolve' : gives_up ? 'fail' : 'release'
    const told = await caught(() => this.dlq[verb](item.id, { lock_token: item.lock_token }))
    if (told) {
      this.summary.lost += 1
      this.#tell(told.error, item)
      return false
    }
    this.summary[({ resolve: 'resolved', fail: 'failed', release: 'released' } as const)[verb]] += 1
    return verb === 'resolve'
  }

  /** Extends the lock at every half of its time until it is `done`; answers whether the lock was lost. */
  async #keep(item: ClaimedDeadLetter, lock: AbortController, done: AbortSignal): Promise<boolean> {
    const { lock_seconds = item.lock_seconds } = this.options
    const { id, lock_token } = item
    while (!done.aborted) {
      const woken = await caught(() => this.platform.sleep(lock_seconds * 500, done))
      if (woken || done.aborted) return false
      const refused = await caught(() => this.dlq.extend(id, { lock_token, lock_seconds, signal: done }))
      if (!refused || done.aborted) continue
      this.#tell(refused.error, item)
      if (
        refused.error instanceof WaystationError &&
        refused.error.status < 500 &&
        refused.error.status !== 429
      ) {
        lock.abort(refused.error)
        return true
      }
    }
    return false
  }

  async #pause(fruitless: number): Promise<void> {
    const { idle_ms_max = idle_ms_max_default } = this.options
    const ms = Math.min(idle_ms_max, idle_ms_first * 2 ** Math.min(fruitless - 1, 20))
    await caught(() => this.platform.sleep(Math.floor(this.platform.random() * ms), this.ended.signal))
  }

  /** What a listener throws must not end the work. */
  #tell(error: unknown, item: ClaimedDeadLetter | null): void {
    try {
      this.options.on_error?.(error, item)
    } catch {}
  }
}

interface Thrown {
  error: unknown
}

/** What was thrown; null when nothing was. */
async function caught(act: () => unknown): Promise<Thrown | null> {
  try {
    await act()
    return null
  } catch (error) {
    return { error }
  }
}
