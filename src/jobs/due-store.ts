// Due jobs as a whole: a tick asks for any that are left, metrics for their number.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { acrossTenants, type Db, type Reader } from '../db/db.ts'
import { searchOfAll, tenant_status } from './search-store.ts'

const counted_max = limit(
  'jobs.counted_due',
  10_000,
  'rows',
  'Due jobs that the metrics count; more are shown as this many. The one that has been due for longest is among them.',
)

export interface DueOfKind {
  kind: string
  due: number
  /** When the oldest of them fell due. */
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

const OLDEST_DUE = searchOfAll<{ tenant_status: string | null; kind: string }>(
  'jobs.oldest_due',
  `select ${tenant_status}, kind from jobs where paused = 0 and next_at <= :due_at order by next_at limit :rows_max`,
)

const stragglers_passed_max = limit(
  'jobs.stragglers_passed',
  1_000,
  'rows',
  'Jobs of deleted and frozen tenants that one search for due jobs passes.',
)

/** True when a job that was due then is still to run, leased or not, or when too many stragglers come before it. */
export async function anyDue(
  q: Reader,
  due_at: Millis,
  kinds: { has(kind: string): boolean },
): Promise<boolean> {
  for (const rows_max of [1, stragglers_passed_max]) {
    const rows = await q.all(OLDEST_DUE, { due_at, rows_max })
    if (rows.some((row) => row.tenant_status === 'active' && kinds.has(row.kind))) return true
    if (rows.length < rows_max) return false
  }
  return true
}
