// The lock of a dead letter while somebody works on it.

import type { Dlq } from './dlq.ts'
import { WaystationError, WaystationTimeoutError } from './errors.ts'
import { isLasting } from './outcome.ts'
import type { Platform } from './platform.ts'
import type { ClaimedDeadLetter } from './types.ts'

/** An extension is a small thing: who takes longer than this, or than a quarter of the lock, is asked again. */
const extend_ms_max = 10_000

export interface KeptLock {
  /** Extends it no more. Answers whether it was lost. */
  leave(): Promise<boolean>
}

/**
 * Extends a lock that was just taken at every half of its time, and ten times as often while nobody answers. `onLost`
 * is called when it is refused for good, and when its time is over here without an extension: whatever the service
 * says later, somebody else may have the item from then on.
 */
export function keepLock(
  dlq: Dlq,
  { now, sleep, timer }: Platform,
  { id, lock_token, lock_seconds }: Pick<ClaimedDeadLetter, 'id' | 'lock_token' | 'lock_seconds'>,
  on: { error(error: unknown): void; lost(reason: unknown): void },
): KeptLock {
  const lock_ms = lock_seconds * 1_000
  const timeout_ms = Math.min(extend_ms_max, lock_ms / 4)
  const over = new AbortController()
  let lost = false
  let stopTimer = timer(lock_ms, lapse)
  const keeping = keep()
  return {
    async leave() {
      stopTimer()
      over.abort()
      await keeping
      return lost
    },
  }

  async function keep(): Promise<void> {
    let wait_ms = lock_ms / 2
    for (;;) {
      await caught(() => sleep(wait_ms, over.signal))
      if (over.signal.aborted) return
      const asked_at = now()
      const ask = { lock_token, lock_seconds, timeout_ms, retries: 0, signal: over.signal }
      const failed = await caught(() => dlq.extend(id, ask))
      if (over.signal.aborted) return
      if (failed && isLasting(failed.error)) return lose(failed.error)
      if (failed) {
        on.error(failed.error)
        wait_ms = Math.max(lock_ms / 10, retryAfterMs(failed.error))
        continue
      }
      stopTimer()
      stopTimer = timer(Math.max(0, asked_at + lock_ms - now()), lapse)
      wait_ms = lock_ms / 2
    }
  }

  function lapse(): void {
    lose(new WaystationTimeoutError(lock_ms, 'The lock ran out: nobody answered in time to extend it.'))
  }

  function lose(reason: unknown): void {
    lost = true
    stopTimer()
    over.abort()
    on.error(reason)
    on.lost(reason)
  }
}

/** What the service asked to wait for; 0 when it asked for nothing. */
export function retryAfterMs(error: unknown): number {
  return error instanceof WaystationError ? (error.retry_after_seconds ?? 0) * 1_000 : 0
}

interface Thrown {
  error: unknown
}

/** What was thrown; null when nothing was. */
export async function caught(act: () => unknown): Promise<Thrown | null> {
  try {
    await act()
    return null
  } catch (error) {
    return { error }
  }
}
