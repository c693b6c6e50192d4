// Statements of pausing and resuming a tenant's jobs.

import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import type { TenantRow } from './tenant.ts'

const MARK_PAUSE_PENDING = sql(
  'tenants.mark_pause_pending',
  'update tenants set pause_pending = 1 where tenant_id = :tenant_id',
)

const MARK_STRAGGLERS = sql(
  'tenants.mark_stragglers',
  `update tenants set pause_pending = 1
    where tenant_id = :tenant_id and (status = 'pending_deletion' or frozen_at is not null) and pause_pending = 0`,
)

const PAUSE_PENDING = acrossTenants<{ tenant_id: string }>(
  'tenants.pause_pending',
  `select tenant_id from tenants where pause_pending = 1 and tenant_id > :after_tenant_id
    order by tenant_id limit :rows_max`,
)

// Takes the row's lock, so that a step that pauses, a deletion and a restore go one after the other.
const LOCK_PAUSE_PENDING = sql<LockedTenant>(
  'tenants.lock_pause_pending',
  `update tenants set pause_pending = 1 where tenant_id = :tenant_id and pause_pending = 1
   returning status, frozen_at, resumed_at, moved_to, frozen_again_at`,
)

interface LockedTenant extends Pick<TenantRow, 'status' | 'frozen_at' | 'resumed_at' | 'frozen_again_at'> {
  moved_to: string | null
}

const END_PAUSE_PENDING = sql(
  'tenants.end_pause_pending',
  'update tenants set pause_pending = 0 where tenant_id = :tenant_id',
)

/** Not all of its jobs follow its status yet. */
export function markPausePending(tx: Tx, tenant_id: string) {
  return tx.run(MARK_PAUSE_PENDING, { tenant_id })
}

/** The same for jobs enqueued after the tenant's deletion or freeze. False when that is known, or the tenant runs again. */
export async function markStragglers(tx: Tx, tenant_id: string): Promise<boolean> {
  return (await tx.run(MARK_STRAGGLERS, { tenant_id })) === 1
}

/** The next tenants after this one whose jobs do not follow their status yet, in the order of their ids. */
export function pausePending(q: Reader, after_tenant_id: string, rows_max: number) {
  return q.all(PAUSE_PENDING, { after_tenant_id, rows_max })
}

/** First in every step that pauses or resumes. Null when nothing is left to do, or the tenant is gone. */
export function lockPausePending(tx: Tx, tenant_id: string) {
  return tx.one(LOCK_PAUSE_PENDING, { tenant_id })
}

export function endPausePending(tx: Tx, tenant_id: string) {
  return tx.run(END_PAUSE_PENDING, { tenant_id })
}
