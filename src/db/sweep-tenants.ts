// A step of a sweep over the rows of several tenants, which may lie on several servers.

import { type Awaitable, type Db, type Tx, upkeep } from './db.ts'

type Sweep = (tx: Tx, tenant_id: string, rows_max: number) => Awaitable<number>

/** Removes rows tenant by tenant in one transaction, at most `rows_max` of all; returns how many. */
export async function sweepTenants(
  db: Db,
  tenants: readonly { tenant_id: string }[],
  rows_max: number,
  sweep: Sweep,
): Promise<number> {
  if (tenants.length === 0) return 0
  return db.write(upkeep, async (tx) => {
    let removed = 0
    for (const { tenant_id } of tenants) {
      if (removed >= rows_max) break
      removed += await sweep(tx, tenant_id, rows_max - removed)
    }
    return removed
  })
}
