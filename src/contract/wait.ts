// A request that waits until something has happened, as features offer it with `?wait=`.

import type { TenantFacts } from './caller.ts'
import type { Context } from './route.ts'

/**
 * What `look` finds once `isDone` says so of it, or as it is when the time is over, the asker is gone, the node drains,
 * or too many wait already. Whoever changes what is looked at tells `dependencies.shared.waiters` of `key` after the commit; the key holds the
 * tenant, so that nobody is woken by another's.
 */
export async function waitFor<T>(
  {
    caller,
    dependencies,
    hold,
    gone,
    pause,
  }: Pick<Context<TenantFacts>, 'caller' | 'dependencies' | 'hold' | 'gone' | 'pause'>,
  key: string,
  wait_ms: number,
  look: () => Promise<T>,
  isDone: (seen: T) => boolean,
): Promise<T> {
  const {
    clock,
    shared: { waiters },
  } = dependencies
  if (wait_ms <= 0 || !waiters.enter(caller.tenant_id)) return look()
  hold(wait_ms)
  const asker = gone()
  const until = clock.monotonic() + wait_ms
  try {
    for (;;) {
      const left_ms = until - clock.monotonic()
      if (left_ms <= 0 || asker.aborted || waiters.draining) return await look()
      // Waiting begins before looking, so that a change in between is not missed.
      const waiting = waiters.wait(key, Math.min(left_ms, waiters.look_again_ms))
      asker.addEventListener('abort', waiting.stop)
      try {
        const seen = await look()
        if (isDone(seen)) return seen
        await pause(waiting.told)
      } finally {
        asker.removeEventListener('abort', waiting.stop)
        waiting.stop()
      }
    }
  } finally {
    waiters.leave(caller.tenant_id)
  }
}
