// How many jobs are due and not leased, for metrics.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { acrossTenants, type Db } from '../db/db.ts'

const counted_max = limit(
  'jobs.counted_due',
  10_000,
  'rows',
  'Due jobs that the metrics count; more are shown as this many. The one that has been due for longest is among them.',
)

export interface DueOfKind {
  kind: string
  due: number
  /** When the longest due of them was due. */
  oldest_at: Millis
}

const COUNT_DUE = acrossTenants<DueOfKind>(
  'jobs.count_due',
  `select kind, count(*) as due, min(next_at) as oldest_at
     from (select kind, next_at from jobs
            where paused = 0 and next_at <= :now and lease_until <= :now
            order by next_at limit :rows_max) as oldest
    group by kind`,
)

/** `ms_max`: on PostgreSQL it fails after this time. */
export function countDue(db: Db, now: Millis, ms_max: number): Promise<DueOfKind[]> {
  return db.read({ key: 'metrics', ms_max }, (q) => q.all(COUNT_DUE, { now, rows_max: counted_max }))
}
