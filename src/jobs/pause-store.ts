// Statements that pause the jobs of a tenant that waits for deletion, and resume them.

import type { Millis } from '../base/clock.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'

interface Position {
  next_at: Millis
  kind: string
  source_id: string
}

// In the order of an index on the tenant's jobs that are paused, or are not.
const FIRST = { active: firstStatement('active', 0), paused: firstStatement('paused', 1) }

function firstStatement(name: string, paused: 0 | 1) {
  return sql<Position>(
    `jobs.${name}`,
    `select next_at, kind, source_id from jobs
      where ${of_shard} paused = ${paused} and tenant_id >= :tenant_id and tenant_id <= :tenant_id
      order by tenant_id, next_at, kind, source_id limit :rows_max`,
  )
}

// Up to a position in that order, and not a list of rows, which PostgreSQL may look up again for each row of the
// tenant while it has no statistics.
const CHANGE = {
  pause: changeStatement('pause', 'jobs_tenants', 0, 1),
  resume: changeStatement('resume', 'jobs_paused', 1, 0),
}

// The tenant by an equal sign: between two bounds SQLite walks all jobs of the tenant, and compares the place of each.
function changeStatement(name: string, index: string, from: 0 | 1, to: 0 | 1) {
  return sql(
    `jobs.${name}`,
    `update jobs {by ${index}} set paused = ${to}
      where paused = ${from} and tenant_id = :tenant_id
        and (next_at, kind, source_id) <= (:next_at, :kind, :source_id)`,
  )
}

/**
 * Pauses a part of a tenant's jobs, or resumes it, the earliest first. True when none is left. The transaction must
 * hold the tenant's row, so that no other node does the opposite.
 */
export async function setPaused(
  tx: Tx,
  tenant_id: string,
  paused: boolean,
  rows_max: number,
): Promise<boolean> {
  const [look, change] = paused ? [FIRST.active, CHANGE.pause] : [FIRST.paused, CHANGE.resume]
  const positions = await tx.all(look, { tenant_id, rows_max })
  const last = positions.at(-1)
  if (!last) return true
  await tx.run(change, { tenant_id, ...last })
  if (positions.length === rows_max) return false
  // Another node may have given some of them a later time meanwhile.
  return (await tx.one(look, { tenant_id, rows_max: 1 })) === null
}
