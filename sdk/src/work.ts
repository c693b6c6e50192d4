// dlq.work: a loop that claims items, calls the handler, extends the lock and settles the item.

import { onAbort } from './abort.ts'
import { KnownError } from './copies.ts'
import type { Dlq } from './dlq.ts'
import { WaystationTimeoutError } from './errors.ts'
import { checkRuns } from './functions.ts'
import { caught, extendTimeoutMs, keepLock, retryAfterMs } from './lock.ts'
import { isFailedTry, isPermanent } from './outcome.ts'
import type { Platform } from './platform.ts'
import { type CallOptions, limited } from './transport.ts'
import type { ClaimedDeadLetter } from './types.ts'

export interface WorkOptions {
  /** Items at the same time, 1 to 100; default 1. */
  concurrency?: number | undefined
  /** How long each lock holds without being extended; default that of the item. */
  lock_seconds?: number | undefined
  /** Ends the work: nothing more is claimed, and the handlers' signals are aborted. */
  signal?: AbortSignal | undefined
  /** An item that was claimed this often and still fails is archived; default 10. */
  claims_max?: number | undefined
  /** The longest wait while there is nothing to do, or nothing succeeds; default 30,000. */
  idle_ms_max?: number | undefined
  /** Ends the work once nothing is left to claim. */
  stop_when_empty?: boolean | undefined
  /** Called with every error; `item` is null when the claim failed. */
  on_error?: ((error: unknown, item: ClaimedDeadLetter | null) => unknown) | undefined
}

export interface WorkContext {
  /** Aborted when the lock was lost (stop then: another agent may have the item) or when the work ends. */
  signal: AbortSignal
}

/** How many items ended in which way. */
export interface WorkSummary {
  resolved: number
  released: number
  /** Archived. */
  failed: number
  /** The service could not be reached, or another agent had the lock by then. */
  lost: number
}

/** Thrown by a handler to archive the item: another try makes no sense. */
export class GiveUp extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'GiveUp'
  override readonly name = 'GiveUp'
}

const concurrency_max = 100
const idle_ms_first = 1_000
const idle_ms_max_default = 30_000
const claims_max_default = 10
/** A claim in progress at the end may take this much longer: cut off, it could leave an item locked. */
const claim_grace_ms = 5_000
/** The part of its time after which a lock is extended. */
const share = 1 / 2

interface Claimed {
  /** Null when there is none, undefined when the outcome is unknown. */
  item?: ClaimedDeadLetter | null
  /** The time before the request. */
  asked_at: number
  retry_after_ms: number
}

type Handler = (item: ClaimedDeadLetter, context: WorkContext) => unknown

export async function workOn(
  dlq: Dlq,
  platform: Platform,
  handler: Handler,
  options: WorkOptions,
): Promise<WorkSummary> {
  checkRuns('handler', handler)
  const { concurrency = 1, claims_max = 1, idle_ms_max = 0 } = options
  limited('concurrency', concurrency, 1, concurrency_max)
  if (!Number.isInteger(concurrency)) throw new TypeError('concurrency must be a whole number')
  limited('claims_max', claims_max, 1, Number.POSITIVE_INFINITY)
  limited('idle_ms_max', idle_ms_max, 0, Number.POSITIVE_INFINITY)
  const summary: WorkSummary = { resolved: 0, released: 0, failed: 0, lost: 0 }
  const ended = new AbortController()
  const onEnd = () => ended.abort(options.signal?.reason)
  if (options.signal?.aborted) onEnd()
  const stopListening = onAbort(options.signal, onEnd)
  const late = new AbortController()
  let stopTimer = () => {}
  onAbort(ended.signal, () => {
    stopTimer = platform.timer(claim_grace_ms, () => late.abort())
  })
  const worker = new Worker(dlq, platform, handler, options, ended, late.signal, summary)
  const workers = await Promise.allSettled(Array.from({ length: concurrency }, () => worker.run()))
  stopListening()
  stopTimer()
  for (const ended of workers) if (ended.status === 'rejected') throw ended.reason
  return summary
}

class Worker {
  constructor(
    private readonly dlq: Dlq,
    private readonly platform: Platform,
    private readonly handler: Handler,
    private readonly options: WorkOptions,
    private readonly ended: AbortController,
    /** Aborted some time after `ended`. */
    private readonly late: AbortSignal,
    private readonly summary: WorkSummary,
  ) {}

  /** One worker: item after item, with growing pauses while nothing succeeds. */
  async run(): Promise<void> {
    const { stop_when_empty = false } = this.options
    let failures = 0
    while (!this.ended.signal.aborted) {
      const { item, asked_at, retry_after_ms } = await this.#claim()
      if (item === null && stop_when_empty) return
      const succeeded = item ? await this.#handle(item, asked_at) : false
      failures = succeeded ? 0 : failures + 1
      if (!succeeded) await this.#pause(failures, retry_after_ms)
    }
  }

  /**
   * A permanent error ends the work, and so does one of this program, such as a `parse_json` that throws: each try would leave
   * another item locked.
   */
  async #claim(): Promise<Claimed> {
    const { lock_seconds } = this.options
    const asked_at = this.platform.now()
    try {
      // No retries: this loop has its own, which end with the work.
      const item = await this.dlq.claimOldest({ lock_seconds, retries: 0, signal: this.late })
      return { item, asked_at, retry_after_ms: 0 }
    } catch (error) {
      if (!this.ended.signal.aborted) {
        if (isPermanent(error) || !isFailedTry(error)) {
          this.ended.abort(error)
          throw error
        }
        this.#report(error, null)
      }
      return { asked_at, retry_after_ms: retryAfterMs(error) }
    }
  }

  /**
   * When the lock of the item was asked for, by a claim or an extension that was answered in time, or when the work has ended.
   * Null when it is lost: the handler must not begin.
   */
  async #confirmed(item: ClaimedDeadLetter, claimed_at: number): Promise<number | null> {
    const { signal } = this.ended
    const lock_ms = this.#lockSeconds(item) * 1_000
    const timeout_ms = extendTimeoutMs(lock_ms)
    let asked_at = claimed_at
    while (!signal.aborted) {
      const now = this.platform.now()
      if (now - asked_at < lock_ms * share) break
      // After its whole time another agent may have it, whatever an extension has answered.
      const failed =
        now - asked_at < lock_ms
          ? await caught(() => this.#extend(item, { timeout_ms, signal }))
          : { error: new WaystationTimeoutError(lock_ms, 'The lock expired before its claim was answered.') }
      if (!failed) asked_at = now
      else if (!signal.aborted) {
        this.summary.lost += 1
        this.#report(failed.error, item)
        return null
      }
    }
    return asked_at
  }

  #lockSeconds(item: ClaimedDeadLetter): number {
    return this.options.lock_seconds ?? item.lock_seconds
  }

  #extend(item: ClaimedDeadLetter, options: CallOptions): Promise<unknown> {
    const { id, lock_token } = item
    return this.dlq.extend(id, { lock_token, lock_seconds: this.#lockSeconds(item), ...options })
  }

  /** True when the item was resolved. */
  async #handle(item: ClaimedDeadLetter, claimed_at: number): Promise<boolean> {
    const asked_at = await this.#confirmed(item, claimed_at)
    if (asked_at === null) return false
    const { signal: ended } = this.ended
    if (ended.aborted) return this.#settle(item, 'release')
    const stop = new AbortController()
    const stopListening = onAbort(ended, () => stop.abort(ended.reason))
    const stopKeeping = keepLock(
      this.platform,
      {
        ...{ lock_ms: this.#lockSeconds(item) * 1_000, asked_at, share },
        extend: (options) => this.#extend(item, options),
      },
      {
        error: (error) => this.#report(error, item),
        lost: (reason) => stop.abort(reason),
      },
    )
    const thrown = await caught(() => this.handler(item, { signal: stop.signal }))
    const lost = await stopKeeping()
    stopListening()
    if (thrown) this.#report(thrown.error, item)
    if (lost) {
      this.summary.lost += 1
      return false
    }
    if (!thrown) return this.#settle(item, 'resolve')
    const { claims_max = claims_max_default } = this.options
    const is_final = thrown.error instanceof GiveUp || item.claims >= claims_max
    return this.#settle(item, is_final ? 'fail' : 'release')
  }

  async #settle(item: ClaimedDeadLetter, action: 'resolve' | 'fail' | 'release'): Promise<boolean> {
    const failed = await caught(() => this.dlq[action](item.id, { lock_token: item.lock_token }))
    if (failed) {
      this.summary.lost += 1
      this.#report(failed.error, item)
      return false
    }
    this.summary[({ resolve: 'resolved', fail: 'failed', release: 'released' } as const)[action]] += 1
    return action === 'resolve'
  }

  async #pause(failures: number, least_ms: number): Promise<void> {
    const { idle_ms_max = idle_ms_max_default } = this.options
    const most_ms = Math.min(idle_ms_max, idle_ms_first * 2 ** Math.min(failures - 1, 20))
    const ms = least_ms + Math.floor(this.platform.random() * most_ms)
    await caught(() => this.platform.sleep(ms, this.ended.signal))
  }

  /** A listener that throws, at once or later, must not end the work. */
  #report(error: unknown, item: ClaimedDeadLetter | null): void {
    void caught(() => this.options.on_error?.(error, item))
  }
}
