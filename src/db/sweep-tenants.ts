// A step of a sweep over the rows of several tenants, which may lie on several servers.

import { type Awaitable, type Db, type Tx, upkeep } from './db.ts'

/** Each has its turn, also after one that failed; the first failure is thrown at the end. */
export async function eachInTurn<Row>(
  rows: readonly Row[],
  work: (row: Row) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = []
  for (const row of rows) await work(row).catch((error) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}

type Sweep = (tx: Tx, tenant_id: string, rows_max: number) => Awaitable<number>

/**
 * Removes rows tenant by tenant, at most `rows_max` of all; returns how many. In one transaction, unless that fails: then each
 * tenant has one of its own, and its turn.
 */
export async function sweepTenants(
  db: Db,
  tenants: readonly { tenant_id: string }[],
  rows_max: number,
  sweep: Sweep,
): Promise<number> {
  if (tenants.length === 0) return 0
  try {
    return await db.write(upkeep, async (tx) => {
      let removed = 0
      for (const { tenant_id } of tenants) {
        if (removed >= rows_max) break
        removed += await sweep(tx, tenant_id, rows_max - removed)
      }
      return removed
    })
  } catch {
    let removed = 0
    await eachInTurn(tenants, async ({ tenant_id }) => {
      if (removed >= rows_max) return
      removed += await db.write(upkeep, (tx) => sweep(tx, tenant_id, rows_max - removed))
    })
    return removed
  }
}
