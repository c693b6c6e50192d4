// The outbox as other features use it.

import type { Millis } from '../base/clock.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Tx } from '../db/db.ts'
import type { WorkKey } from './job.ts'
import * as store from './store.ts'

export type { Due, DueOfAny } from './store.ts'
export const anyDue = store.anyDue
export const attempts = store.attempts
export const cancel = store.cancel
export const complete = store.complete
export const due = store.due
export const dueFirstCallbacks = store.dueFirstCallbacks
export const dueInLane = store.dueInLane
export const dueOfTenant = store.dueOfTenant
export const lanes = store.lanes
export const lease = store.lease
export const lease_rows_max = store.lease_rows_max
export const log = store.log
export const nextAt = store.nextAt
export const purge = store.purge
export const redirect = store.redirect
export const rename = store.rename
export const rest = store.rest
export const retry = store.retry
export const tenants = store.tenants
export const unlease = store.unlease

interface Wakeable {
  wake(due_at: Millis): void
}

/** Puts work into the box and, once that is durable, tells the ticker. */
export async function plan(tx: Tx, services: Wakeable, work: store.NewWork): Promise<void> {
  await store.plan(tx, work)
  tx.afterCommit(() => services.wake(work.next_at))
}

/** Moves work to another time. False when it is gone. */
export async function move(
  tx: Tx,
  services: Wakeable,
  work: store.Move,
  again_at: Millis = work.next_at,
): Promise<boolean> {
  const moved = await store.move(tx, work, again_at)
  if (moved) tx.afterCommit(() => services.wake(work.next_at))
  return moved
}

export function keyOf(
  { tenant_id }: Pick<TenantFacts, 'tenant_id'>,
  kind: WorkKey['kind'],
  source_id: string,
): WorkKey {
  return { tenant_id, kind, source_id }
}
