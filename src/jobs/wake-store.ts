// Statements that wake idle jobs, and lock the row of a job.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { sql, type Tx } from '../db/db.ts'
import { idNames, idParams, listOf } from './id-list.ts'
import type { JobKey } from './job.ts'
import type { JobKind } from './kind.ts'

export const wake_rows_max = limit(
  'jobs.wake_rows',
  64,
  'rows',
  'Idle jobs of a tenant that one statement wakes.',
)
const woken_names = idNames(wake_rows_max)

// The update sees a row that it waited for as the other transaction left it, which an update by row positions would not. PostgreSQL
// before 17 may read all rows of the range, and search the list for each: successive ranges read each row once.
const WAKE_IDLE = sql(
  'jobs.wake_idle',
  `update jobs set next_at = case when next_at >= :idle_at then :now else next_at end
    where tenant_id = :tenant_id and kind = :kind and source_id in (${listOf(woken_names)})
      and source_id >= :first_id and source_id <= :last_id`,
)

const LOCK = sql<{ source_id: string }>(
  'jobs.lock',
  `select source_id from jobs where tenant_id = :tenant_id and kind = :kind and source_id = :source_id {locked}`,
)

/** Makes jobs that are due at `idle_at` or later due now; the rows of all others are only locked. */
export async function wakeIdle(
  tx: Tx,
  tenant_id: string,
  { kind, source_ids, idle_at }: { kind: JobKind; source_ids: readonly string[]; idle_at: Millis },
): Promise<void> {
  const sorted = source_ids.toSorted()
  for (let at = 0; at < sorted.length; at += wake_rows_max) {
    const part = sorted.slice(at, at + wake_rows_max)
    const range = { first_id: part[0]!, last_id: part.at(-1)! }
    await tx.run(WAKE_IDLE, {
      ...{ tenant_id, kind: kind.name, idle_at, now: tx.now },
      ...{ ...range, ...idParams(woken_names, part) },
    })
  }
}

/** Takes the lock of its row. False when the job is gone. */
export async function lock(tx: Tx, { tenant_id, kind, source_id }: JobKey): Promise<boolean> {
  return (await tx.one(LOCK, { tenant_id, kind, source_id })) !== null
}
