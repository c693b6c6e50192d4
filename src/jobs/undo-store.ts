// The statement that undoes a lease when nobody knows whether it was committed.

import type { Millis } from '../base/clock.ts'
import { sql, type Tx } from '../db/db.ts'
import type { LeasedJob } from './job.ts'
import { lock } from './wake-store.ts'

const UNDO_LEASE = sql(
  'jobs.undo_lease',
  `update jobs
      set lease_until = 0, attempts = attempts - 1,
          first_attempt_at = case when attempts = 1 then null else first_attempt_at end
    where tenant_id = :tenant_id and kind = :kind and source_id = :source_id and fence = :fence
      and lease_until = :lease_until`,
)

/**
 * The attempts do not count, and the jobs are due again. Where the lease was not committed another node may have leased a job
 * since: it is left alone, because nodes raise fencing tokens by steps of their own, and its lease ends at another time. Only where
 * two nodes have the same step, once in 65,536, and lease in the same millisecond may the job be sent twice.
 */
export async function undoLease(tx: Tx, jobs: readonly LeasedJob[], lease_until: Millis): Promise<void> {
  // In the order of their keys, as others lock several of them.
  for (const job of jobs.toSorted((one, other) => (one.source_id < other.source_id ? -1 : 1))) {
    const { tenant_id, kind, source_id, fence } = job
    // The transaction of the lease may be under way still: an update alone would see the row as it was before, and not wait.
    if (await lock(tx, job)) await tx.run(UNDO_LEASE, { tenant_id, kind, source_id, fence, lease_until })
  }
}
