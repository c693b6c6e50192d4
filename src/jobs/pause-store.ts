// Statements that pause the jobs of a tenant that waits for deletion or is frozen, and resume them.

import type { Millis } from '../base/clock.ts'
import { of_shard, type Statement, sql, type Tx } from '../db/db.ts'

interface Position {
  next_at: Millis
  kind: string
  source_id: string
}

/** Which jobs of a tenant are to be paused: `frozen` leaves out those that run while it is frozen. */
export type Paused = 'none' | 'frozen' | 'all'

interface Change {
  /** The first jobs that are to be changed, in the order of an index on the tenant's jobs that are paused, or are not. */
  first: Statement<Position>
  /**
   * Changes them up to a position in that order, and not a list of rows, which PostgreSQL may look up again for each row of
   * the tenant while it has no statistics.
   */
  change: Statement
}

const PAUSE = changeOf('active', 'pause', { index: 'jobs_tenants', from: 0 })
const PAUSE_WAITING = changeOf('active_waiting', 'pause_waiting', {
  index: 'jobs_tenants',
  from: 0,
  goes_on: 0,
})
const RESUME = changeOf('paused', 'resume', { index: 'jobs_paused', from: 1 })
const RESUME_GOING_ON = changeOf('paused_going_on', 'resume_going_on', {
  ...{ index: 'jobs_paused_going_on', from: 1, goes_on: 1 },
})

const changes: Record<Paused, Change[]> = {
  none: [RESUME],
  frozen: [PAUSE_WAITING, RESUME_GOING_ON],
  all: [PAUSE],
}

// `change` names the tenant by an equal sign: between bounds SQLite would walk all its jobs, and compare each position.
function changeOf(
  first: string,
  change: string,
  { index, from, goes_on }: { index: string; from: 0 | 1; goes_on?: 0 | 1 },
): Change {
  const some = goes_on === undefined ? '' : `and goes_on = ${goes_on}`
  return {
    first: sql<Position>(
      `jobs.${first}`,
      `select next_at, kind, source_id from jobs
        where ${of_shard} paused = ${from} ${some} and tenant_id >= :tenant_id and tenant_id <= :tenant_id
        order by tenant_id, next_at, kind, source_id limit :rows_max`,
    ),
    change: sql(
      `jobs.${change}`,
      `update jobs {by ${index}} set paused = ${1 - from}
        where paused = ${from} ${some} and tenant_id = :tenant_id
          and (next_at, kind, source_id) <= (:next_at, :kind, :source_id)`,
    ),
  }
}

/**
 * Pauses a part of a tenant's jobs, or resumes it, the earliest first. True when none is left. The transaction must
 * hold the tenant's row, so that no other node does the opposite.
 */
export async function setPaused(
  tx: Tx,
  tenant_id: string,
  paused: Paused,
  rows_max: number,
): Promise<boolean> {
  for (const { first, change } of changes[paused]) {
    const positions = await tx.all(first, { tenant_id, rows_max })
    const last = positions.at(-1)
    if (!last) continue
    await tx.run(change, { tenant_id, ...last })
    if (positions.length === rows_max) return false
    // Another node may have given some of them a later time meanwhile.
    if ((await tx.one(first, { tenant_id, rows_max: 1 })) !== null) return false
  }
  return true
}
