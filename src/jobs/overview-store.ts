// All due jobs by tenant and kind, for the operator: a look at the whole table, which no request waits for.

import type { Millis } from '../base/clock.ts'
import { type Reader, unnamedAcrossTenants } from '../db/db.ts'

export interface DueRow {
  tenant_id: string
  kind: string
  jobs: number
  /** When the oldest fell due. */
  since: Millis
}

const DUE = unnamedAcrossTenants<DueRow>(
  'jobs.due_overview',
  `select tenant_id, kind, count(*) as jobs, min(next_at) as since from jobs
    where paused = 0 and next_at <= :now group by tenant_id, kind order by tenant_id, kind`,
)

export function dueOverview(q: Reader, now: Millis) {
  return q.all(DUE, { now })
}
