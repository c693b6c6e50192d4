// The list of counters.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import * as list_store from './list-store.ts'

export type RunningCounter = list_store.Running

export const total_max = limit(
  'rate_limit.counted',
  10_000,
  'rows',
  'Running counters that `total` counts, and among which a prefix is looked for: those that end first.',
)

/** Counters whose window is running, `skipped` of them left out, and how many there are, to 10,000. */
export function list(
  db: Db,
  tenant_id: string,
  prefix: string,
  now: Millis,
  skipped: number,
  rows_max: number,
): Promise<{ counters: RunningCounter[]; total: number }> {
  return db.read(tenant_id, async (q) => {
    // Without a prefix every counter that is scanned is found: a page may continue past the last that is counted.
    const span = { prefix, now, scanned_max: prefix === '' ? total_max + rows_max : total_max }
    const found = await list_store.count(q, tenant_id, span)
    const last_place = Math.min(found, skipped + rows_max)
    const counters =
      last_place <= skipped ? [] : await list_store.list(q, tenant_id, span, last_place, last_place - skipped)
    return { counters, total: Math.min(found, total_max) }
  })
}
