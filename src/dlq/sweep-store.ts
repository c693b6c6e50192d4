// Statements of the sweep and of the purge on dlq_items.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
import { bytes, table } from './store.ts'

const expired = "status = 'claimed' and held = 0 and locked_until <= :now"

// An update writes the whole row again, payload included, so bytes are bounded as well. The tenant is named as a range,
// and the order begins with it: with an equal sign PostgreSQL may scan the index of all tenants' rows.
export const expired_locks = {
  ...{ ...table, index: 'dlq_items_tenant_locked', order: 'tenant_id, locked_until', skip_locked: true },
  where: `${of_shard} status = 'claimed' and held = 0 and tenant_id >= :tenant_id
        and (tenant_id, locked_until) <= (:tenant_id, :now)`,
}

const RELEASE_EXPIRED = sql<Released>(
  'dlq.release_expired',
  `update dlq_items set lock_expired_at = locked_until, status = 'failed', locked_by = null, locked_until = null, lock_token_hash = null
    where ${inChunk(expired_locks)}
   returning id, workflow_id, lock_expired_at`,
)

const TENANTS_EXPIRED = acrossTenants<Due>(
  'dlq.tenants_expired',
  `select tenant_id, count(*) as due, max(locked_until) as until from
     (select tenant_id, locked_until from dlq_items {by dlq_items_locked}
       where ${expired} and locked_until >= :due_from order by locked_until limit :rows_max) as due
    group by tenant_id`,
)

const ended = "status in ('resolved', 'archived') and updated_at <= :ended_before"

const TENANTS_ENDED = acrossTenants<Due>(
  'dlq.tenants_ended',
  `select tenant_id, count(*) as due, max(updated_at) as until from
     (select tenant_id, updated_at from dlq_items {by dlq_items_ended}
       where ${ended} and updated_at >= :due_from order by updated_at limit :rows_max) as due
    group by tenant_id`,
)

const SWEEP_ENDED = sql<{ bytes: number }>(
  'dlq.sweep_ended',
  `delete from dlq_items where ${inChunk({
    ...{ ...table, index: 'dlq_items_tenant_ended', order: 'tenant_id, updated_at', skip_locked: true },
    where: `${of_shard} status in ('resolved', 'archived')
        and tenant_id >= :tenant_id and (tenant_id, updated_at) <= (:tenant_id, :ended_before)`,
  })}
   returning ${bytes}`,
)

/** Tenants of the `rows_max` locks that expired first since `due_from`. */
export function tenantsWithExpired(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_EXPIRED, { now, due_from, rows_max })
}

/** An item whose lock ended at `lock_expired_at`. */
export interface Released {
  id: string
  workflow_id: string | null
  lock_expired_at: Millis
}

export function releaseExpired(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.all(RELEASE_EXPIRED, { tenant_id, now: tx.now, rows_max, bytes_max })
}

/** Tenants of the `rows_max` items that ended first since `due_from`. */
export function tenantsWithEnded(q: Reader, ended_before: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_ENDED, { ended_before, due_from, rows_max })
}

/** Returns the bytes of each item's texts. */
export function sweepEnded(
  tx: Tx,
  tenant_id: string,
  ended_before: Millis,
  rows_max: number,
  bytes_max: number,
) {
  return tx.all(SWEEP_ENDED, { tenant_id, ended_before, rows_max, bytes_max })
}

export const purge = purging('dlq.purge', table)

/** When the next one expires after `now`. */
export const NEXT_EXPIRY = acrossTenants<{ at: Millis }>(
  'dlq.next_expiry',
  `select locked_until as at from dlq_items {by dlq_items_locked}
    where status = 'claimed' and held = 0 and locked_until > :now order by locked_until limit 1`,
)
