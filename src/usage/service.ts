// Usage over time.

import type { Millis } from '../base/clock.ts'
import type { UsageCounts } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { isOutcomeUnknown } from '../db/errors.ts'
import { type DueLists, sweepTenants, type Touched } from '../db/sweep-tenants.ts'
import { type Range, startOf } from './steps.ts'
import * as store from './store.ts'
import { type Count, kept_ms, Usage } from './usage.ts'

/** Calls by the hour, on this node. */
export function usageCounts(db: Db): Usage {
  return new Usage(async (counts) => {
    try {
      await db.write(async (tx) => {
        for (const count of counts) await store.add(tx, count)
      })
    } catch (error) {
      // It is unknown if they were added: better a second's calls too few than too many.
      if (!isOutcomeUnknown(error)) throw error
    }
  })
}

/** Returns the counts, of this node to the call and of others to the second. */
export async function read(
  db: Db,
  usage: UsageCounts,
  tenant_id: string,
  { from, to }: Range,
): Promise<Omit<Count, 'tenant_id'>[]> {
  // When nothing can be written, the counts so far can still be read.
  await usage.flush().catch(() => {})
  return store.list(db, tenant_id, from, to)
}

/**
 * Removes days that are no longer kept at `now`, at most `rows_max` hours. Only whole ones: a report of days begins with all of
 * the day that its first instant is in.
 */
export function sweep(
  db: Db,
  now: Millis,
  lists: DueLists,
  { rows_max }: { rows_max: number },
): Promise<Touched> {
  const before = startOf('day', now - kept_ms)
  return sweepTenants(
    db,
    lists.of('usage.old'),
    rows_max,
    (from) => store.tenantsWithOld(db, before, from, rows_max),
    (tx, tenant_id, most) => store.sweep(tx, tenant_id, before, most),
  )
}
