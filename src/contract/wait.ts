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

/** The notifier's key for requests that wait for this object. */
export function waitKey(tenant_id: string, id: string): string {
  return `${tenant_id}/${id}`
}

interface KeyContext extends Pick<Context<TenantFacts>, 'caller' | 'dependencies'> {
  requireStillAllowed(): Promise<unknown>
}
type WaitContext = KeyContext & Pick<Context<TenantFacts>, 'extendTimeout' | 'signal' | 'pause'>

/**
 * The result of `look` once `isDone` accepts it, or as it is when the time is over, the client is gone, the node
 * drains, or too many wait already. A change must notify `key` of `dependencies.shared.notifier` after its commit.
 * Throws what a new request would be answered when the key of this one ends while it waits.
 */
export async function waitFor<T>(context: WaitContext, wait: Wait<T>): Promise<T> {
  const { caller, dependencies } = context
  const { notifier } = dependencies.shared
  if (wait.wait_ms <= 0 || !notifier.enter(caller.tenant_id)) return wait.look()
  context.extendTimeout(wait.wait_ms)
  try {
    return await lookUntilDone(context, wait)
  } finally {
    notifier.leave(caller.tenant_id)
  }
}

async function lookUntilDone<T>(context: WaitContext, { key, wait_ms, look, isDone }: Wait<T>): Promise<T> {
  const { clock, shared } = context.dependencies
  const { notifier } = shared
  const until = clock.monotonic() + wait_ms
  const signal = context.signal()
  let has_key_ended = false
  let stop = () => {}
  const end = () => stop()
  signal.addEventListener('abort', end)
  const unheed = onKeyEnd(context, () => {
    has_key_ended = true
    stop()
  })
  try {
    for (let has_waited = false; ; has_waited = true) {
      has_key_ended = false
      if (has_waited) await context.requireStillAllowed()
      const left_ms = until - clock.monotonic()
      if (left_ms <= 0 || signal.aborted || notifier.draining) return await look()
      // Waiting begins before looking, so that a change in between is not missed.
      const waiting = notifier.wait(key, Math.min(left_ms, notifier.look_again_ms))
      stop = waiting.stop
      try {
        const seen = await look()
        if (isDone(seen)) return seen
        if (!has_key_ended) await context.pause(waiting.notified)
      } finally {
        waiting.stop()
      }
    }
  } finally {
    signal.removeEventListener('abort', end)
    unheed()
  }
}

/**
 * Calls back when the key of a request that waits has ended on this node, also since the request was let in, until the
 * function that it returns is called. Another node's signal may be lost, and a grace period ends without one: the key is
 * checked again before the answer.
 */
export function onKeyEnd(
  { caller, dependencies, requireStillAllowed }: KeyContext,
  end: () => void,
): () => void {
  const check = () => {
    requireStillAllowed().catch(end)
  }
  const unheed = dependencies.keys.cache.onForgotten(caller.tenant_id, check)
  check()
  return unheed
}
