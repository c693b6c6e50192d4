// A request that waits until something has happened, as features offer it with `?wait=`.

import type { TenantFacts } from './caller.ts'
import type { Context } from './route.ts'

/** A wait for something. */
export interface Wait<T> {
  /** The name that a change notifies; it holds the tenant, so that no change of another wakes it. */
  key: string
  wait_ms: number
  look: () => Promise<T>
  isDone: (seen: T) => boolean
}

/**
 * The result of `look` once `isDone` accepts it, or as it is when the time is over, the client is gone, the node
 * drains, or too many wait already. A change must notify `key` of `dependencies.shared.notifier` after its commit.
 */
export async function waitFor<T>(
  context: Pick<Context<TenantFacts>, 'caller' | 'dependencies' | 'extendTimeout' | 'signal' | 'pause'>,
  { key, wait_ms, look, isDone }: Wait<T>,
): Promise<T> {
  const { caller, dependencies } = context
  const {
    clock,
    shared: { notifier },
  } = dependencies
  if (wait_ms <= 0 || !notifier.enter(caller.tenant_id)) return look()
  context.extendTimeout(wait_ms)
  const signal = context.signal()
  const until = clock.monotonic() + wait_ms
  try {
    for (;;) {
      const left_ms = until - clock.monotonic()
      if (left_ms <= 0 || signal.aborted || notifier.draining) return await look()
      // Waiting begins before looking, so that a change in between is not missed.
      const waiting = notifier.wait(key, Math.min(left_ms, notifier.look_again_ms))
      signal.addEventListener('abort', waiting.stop)
      try {
        const seen = await look()
        if (isDone(seen)) return seen
        await context.pause(waiting.notified)
      } finally {
        signal.removeEventListener('abort', waiting.stop)
        waiting.stop()
      }
    }
  } finally {
    notifier.leave(caller.tenant_id)
  }
}
