// Statements that remove events once they are as old as the plan allows, or it allows no more of them.

import type { Millis } from '../base/clock.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'

const TENANTS_DUE = acrossTenants<{ tenant_id: string }>(
  'journal.tenants_due',
  `select tenant_id from event_heads {by event_heads_looking}
    where look_at is not null and look_at <= :now order by look_at limit :rows_max`,
)

/** Tenants whose events are to be looked at now, the longest due first. */
export function tenantsDue(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_DUE, { now, rows_max })
}

// It takes the lock under which numbers are given. From then on the tenant is due after the others.
const LOCK_DUE = sql<{ seq: number; plan: string }>(
  'journal.lock_due',
  `update event_heads set look_at = :now
    where tenant_id = :tenant_id and look_at is not null and look_at <= :now
   returning seq, (select plan from tenants where tenants.tenant_id = :tenant_id) as plan`,
)

/** Null when another node has looked meanwhile. */
export function lockDue(tx: Tx, tenant_id: string) {
  return tx.one(LOCK_DUE, { tenant_id, now: tx.now })
}

const OLDEST = sql<{ seq: number; at: Millis }>(
  'journal.oldest_of_all',
  `select seq, at from events {by events_seq}
    where tenant_id = :tenant_id and seq is not null order by seq limit :rows_max`,
)

export function oldestOf(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.all(OLDEST, { tenant_id, rows_max })
}

const COUNT_GONE = sql(
  'journal.count_gone',
  `update workflows set gone = gone +
          (select count(*) from events {by events_workflow}
            where events.tenant_id = :tenant_id and events.workflow_id = workflows.workflow_id and seq <= :seq
              and private_to is null)
    where tenant_id = :tenant_id and workflow_id in
          (select events.workflow_id from events {by events_seq}
            where events.tenant_id = :tenant_id and seq <= :seq and workflow_id is not null and private_to is null)`,
)

const DELETE = sql(
  'journal.delete',
  'delete from events {by events_seq} where tenant_id = :tenant_id and seq <= :seq',
)

/**
 * Removes the events up to this number; returns how many there were. The row of a workflow stays: its next event goes on from
 * its count.
 */
export async function removeUpTo(tx: Tx, tenant_id: string, seq: number): Promise<number> {
  await tx.run(COUNT_GONE, { tenant_id, seq })
  return tx.run(DELETE, { tenant_id, seq })
}

const LOOK_AGAIN = sql(
  'journal.look_again',
  'update event_heads set look_at = :look_at where tenant_id = :tenant_id',
)

/** Null: when the next event gets its number. */
export function lookAgain(tx: Tx, tenant_id: string, look_at: Millis | null) {
  return tx.run(LOOK_AGAIN, { tenant_id, look_at })
}
