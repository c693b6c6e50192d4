// Statements of deliveries: what a subscription sends next, and what came of it.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import type { LeasedJob } from '../jobs/job.ts'
import type { Format, PauseReason, SubscriptionStatus } from './subscription.ts'

const here = 'tenant_id = :tenant_id and id = :id'

const DELIVERABLE = sql<Deliverable>(
  'subscriptions.deliverable',
  `select s.id, s.status, s.format, s.types, s.workflow_id, s.position, s.target, s.address_hash
     from jobs j join subscriptions s on s.tenant_id = j.tenant_id and s.id = j.source_id
    where j.tenant_id = :tenant_id and j.kind = 'subscription' and j.source_id = :id and j.fence = :fence`,
)

const IS_HELD = sql<{ id: string }>(
  'subscriptions.is_held',
  `select j.source_id as id
     from jobs j join tenants t on t.tenant_id = j.tenant_id
    where j.tenant_id = :tenant_id and j.kind = 'subscription' and j.source_id = :id and j.fence = :fence
      and j.paused = 0 and t.status = 'active'`,
)

const SELECTION = sql<Selected>(
  'subscriptions.selection',
  `select id, types, workflow_id, position from subscriptions where ${here} and status = 'active'`,
)

const ADVANCE = sql(
  'subscriptions.advance',
  `update subscriptions set position = :position, attempts = 0 where ${here} and position < :position`,
)

const PASS_OVER = sql(
  'subscriptions.pass_over',
  `update subscriptions set position = :position
    where ${here} and position = :passed_from and types = :types and coalesce(workflow_id, '') = :workflow_id`,
)

const LOGGED = sql<{ logged: number }>(
  'subscriptions.logged',
  `update subscriptions set logged = logged + :count, last_attempt_at = :last_attempt_at where ${here} returning logged`,
)

const SETTLE = sql(
  'subscriptions.settle',
  `update subscriptions
      set position = coalesce(:position, position), attempts = :attempts, last_error = :last_error, last_status_code = :last_status_code,
          delivered_at = coalesce(:delivered_at, delivered_at)
    where ${here}`,
)

const PAUSE = sql(
  'subscriptions.pause',
  `update subscriptions set status = 'paused', paused_reason = :paused_reason, updated_at = :now
    where ${here} and status <> 'paused'`,
)

export interface Selected {
  id: string
  types: string
  workflow_id: string | null
  position: number
}

export interface Deliverable extends Selected {
  status: SubscriptionStatus
  format: Format
  /** Sealed. */
  target: string
  address_hash: string | null
}

/** Under this lease; null when it was lost. */
export function deliverable(q: Reader, { tenant_id, source_id: id, fence }: LeasedJob) {
  return q.one(DELIVERABLE, { tenant_id, id, fence })
}

/** False when the lease was lost, for example by a change of the subscription, or the tenant waits for deletion. */
export async function isHeld(q: Reader, { tenant_id, source_id: id, fence }: LeasedJob): Promise<boolean> {
  return (await q.one(IS_HELD, { tenant_id, id, fence })) !== null
}

/** Null unless it is active. */
export function selection(q: Reader, tenant_id: string, id: string) {
  return q.one(SELECTION, { tenant_id, id })
}

/** Moves past events that the subscription does not take. An event that was tried lies before the position, or is no longer kept. */
export function advance(tx: Tx, tenant_id: string, id: string, position: number) {
  return tx.run(ADVANCE, { tenant_id, id, position })
}

/** The same, unless its selection or its position has changed. */
export function passOver(
  tx: Tx,
  tenant_id: string,
  { id, types, workflow_id, position: passed_from }: Selected,
  position: number,
) {
  return tx.run(PASS_OVER, { tenant_id, id, types, workflow_id: workflow_id ?? '', passed_from, position })
}

/** Counts attempts; returns how many there were with them, null when it is gone. */
export async function countLogged(
  tx: Tx,
  tenant_id: string,
  id: string,
  count: number,
  last_attempt_at: Millis,
) {
  return (await tx.one(LOGGED, { tenant_id, id, count, last_attempt_at }))?.logged ?? null
}

export interface Settled {
  /** Null: as it is. */
  position: number | null
  attempts: number
  last_error: string | null
  last_status_code: number | null
  /** Null when nothing was accepted. */
  delivered_at: Millis | null
}

export function settle(tx: Tx, tenant_id: string, id: string, settled: Settled) {
  return tx.run(SETTLE, { tenant_id, id, ...settled })
}

/** False when it was paused before. */
export async function pause(
  tx: Tx,
  tenant_id: string,
  id: string,
  paused_reason: PauseReason,
): Promise<boolean> {
  return (await tx.run(PAUSE, { tenant_id, id, paused_reason, now: tx.now })) === 1
}
