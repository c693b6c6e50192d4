// The lock of a dead letter, or the lease of an effect, while its work is done.

import { WaystationError, WaystationTimeoutError } from './errors.ts'
import { isPermanent } from './outcome.ts'
import type { Platform } from './platform.ts'
import type { CallOptions } from './transport.ts'

/** An extension without an answer for this long, or for a quarter of the lock, is tried again. */
const extend_ms_max = 10_000

export function extendTimeoutMs(lock_ms: number): number {
  return Math.min(extend_ms_max, lock_ms / 4)
}

export interface Lock {
  lock_ms: number
  /** When it was asked for, by the clock here. */
  asked_at: number
  /** The part of its time after which it is extended. */
  share: number
  /** Lets it end `lock_ms` from now. */
  extend(options: CallOptions): Promise<unknown>
}

/**
 * Extends a new lock at every `share` of its time, and at every tenth while the service does not answer. `on.lost` is called
 * when an extension is refused for good, and when the time is over here without one: whatever the service answers
 * later, another agent may have the item from then on. The function that it returns stops the extensions: true when the lock was
 * lost.
 */
export function keepLock(
  { now, sleep, timer }: Platform,
  { lock_ms, asked_at, share, extend }: Lock,
  on: { error(error: unknown): void; lost(reason: unknown): void },
): () => Promise<boolean> {
  const timeout_ms = extendTimeoutMs(lock_ms)
  const over = new AbortController()
  let lost = false
  let stopTimer = timer(Math.max(0, asked_at + lock_ms - now()), expire)
  const keeping = keep()
  return async () => {
    stopTimer()
    over.abort()
    await keeping
    return lost
  }

  async function keep(): Promise<void> {
    // Some of its time may have gone before its answer came.
    let wait_ms = Math.max(0, lock_ms * share - Math.max(0, now() - asked_at))
    for (;;) {
      await caught(() => sleep(wait_ms, over.signal))
      if (over.signal.aborted) return
      const asked_at = now()
      const failed = await caught(() => extend({ timeout_ms, retries: 0, signal: over.signal }))
      if (over.signal.aborted) return
      if (failed && isPermanent(failed.error)) return lose(failed.error)
      if (failed) {
        on.error(failed.error)
        wait_ms = Math.max(lock_ms / 10, retryAfterMs(failed.error))
        continue
      }
      stopTimer()
      stopTimer = timer(Math.max(0, asked_at + lock_ms - now()), expire)
      wait_ms = lock_ms * share
    }
  }

  function expire(): void {
    lose(new WaystationTimeoutError(lock_ms, 'The lock expired: there was no answer in time to extend it.'))
  }

  function lose(reason: unknown): void {
    lost = true
    stopTimer()
    over.abort()
    on.error(reason)
    on.lost(reason)
  }
}

/** The wait that the service asked for, 0 without one. */
export function retryAfterMs(error: unknown): number {
  return error instanceof WaystationError ? (error.retry_after_seconds ?? 0) * 1_000 : 0
}

interface Thrown {
  error: unknown
}

/** Returns the error that was thrown, null without one. */
export async function caught(act: () => unknown): Promise<Thrown | null> {
  try {
    await act()
    return null
  } catch (error) {
    return { error }
  }
}
