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
 * The attempt does not count, and the job is due again. Changes nothing where the lease was not committed: another may then
 * have its fencing token, but ends at another time.
 */
export async function undoLease(
  tx: Tx,
  { tenant_id, kind, source_id, fence }: LeasedJob,
  lease_until: Millis,
): Promise<void> {
  // The transaction of the lease may be under way still: an update alone would see the row as it was before, and not wait.
  if (!(await lock(tx, { tenant_id, kind, source_id }))) return
  await tx.run(UNDO_LEASE, { tenant_id, kind, source_id, fence, lease_until })
}
