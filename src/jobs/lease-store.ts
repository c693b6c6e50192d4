// Statements on leases whose node may be gone, for a test clock: its time stands still, so that no lease expires on its own.

import type { Millis } from '../base/clock.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import type { JobKey } from './job.ts'

const LEASED_DUE = acrossTenants<LeasedRow>(
  'jobs.leased_due',
  `select tenant_id, kind, source_id, fence
     from (select tenant_id, kind, source_id, fence, lease_until from jobs
            where paused = 0 and next_at <= :now order by next_at limit :rows_max) as due
    where lease_until > :now`,
)

// The end stays above 0, which shows the next lease that this one was not settled.
const END_LEASE = sql(
  'jobs.end_lease',
  `update jobs set lease_until = :now
    where tenant_id = :tenant_id and kind = :kind and source_id = :source_id and fence = :fence and lease_until > :now`,
)

export interface LeasedRow extends JobKey {
  fence: number
}

/** Of the `rows_max` jobs that have been due for longest, those that are leased. */
export function leasedDue(q: Reader, now: Millis, rows_max: number) {
  return q.all(LEASED_DUE, { now, rows_max })
}

/** The job may be leased again, unless it was meanwhile. */
export function endLease(tx: Tx, { tenant_id, kind, source_id, fence }: LeasedRow) {
  return tx.run(END_LEASE, { tenant_id, kind, source_id, fence, now: tx.now })
}
