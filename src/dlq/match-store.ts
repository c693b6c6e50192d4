// The items that an operation takes, oldest first.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Reader, sql } from '../db/db.ts'
import { boundsOf, type Filter } from './filter.ts'
import {
  byIndex,
  conditions,
  eachScan,
  lookStatement,
  matchParams,
  orderOf,
  scanOf,
  scanParams,
  scans,
} from './filter-store.ts'

const AHEAD = eachScan((name) => lookStatement(`reach_${name}_ahead`, scans[name], ''))

const MATCHING = eachScan((name) =>
  sql<{ id: string }>(
    `dlq.match_${name}`,
    `select id from dlq_items ${byIndex(scans[name])} where ${scans[name].where} and ${scans[name].shown} and ${conditions}
      order by ${orderOf(scans[name], '')} limit :rows_max`,
  ),
)

/** Sorts after this id and before every other that follows it. */
const past = (id: string) => `${id}!`

/**
 * The next of those that match, `rows_max` at most, among the next `looked_max` from `from_id` on. `next`: where to go on;
 * null at the end.
 */
export async function matching(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  now: Millis,
  { from_id, rows_max, looked_max }: { from_id: string; rows_max: number; looked_max: number },
): Promise<{ ids: string[]; looked: number; next: string | null }> {
  const name = scanOf(filter)
  const bounds = boundsOf(filter)
  const range = {
    ...scanParams(tenant_id, filter),
    ...bounds,
    from_id: from_id > bounds.from_id ? from_id : bounds.from_id,
  }
  const { id, looked } = (await q.one(AHEAD[name], { ...range, looked_max }))!
  if (id === null) return { ids: [], looked, next: null }
  const before_id = past(id)
  const rows = await q.all(MATCHING[name], { ...range, before_id, rows_max, ...matchParams(filter, now) })
  return { ids: rows.map((row) => row.id), looked, next: looked === looked_max ? before_id : null }
}

/** The list of ids has this many places. */
export const named_rows_max = limit(
  'dlq.named_at_once_rows',
  100,
  'rows',
  'Dead letters, named by their ids, that one statement looks up.',
)
const letters = 'abcdefghij'
const id_names = Array.from(
  { length: named_rows_max },
  (_, i) => `id_${letters[Math.floor(i / 10)]}${letters[i % 10]}`,
)

// Each is looked up by its key, and judged by what it then is: with another condition beside the key PostgreSQL may walk
// all items of the tenant for which that one holds.
const NAMED = sql<{ id: string }>(
  'dlq.match_named',
  `select id
     from (with named (id) as (values ${id_names.map((name) => `(:${name})`).join(', ')}) select id from named) as named
    where (select case when id >= :from_id and id < :before_id and (:any_source_id = 1 or source_id = :source_id)
                         and ${scans.source_id.shown} and ${conditions} then 1 else 0 end
             from dlq_items where tenant_id = :tenant_id and dlq_items.id = named.id) = 1`,
)

/** Those of at most `named_rows_max` ids that are there and match, in no order. */
export async function named(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  now: Millis,
  ids: readonly string[],
): Promise<string[]> {
  const places = Object.fromEntries(id_names.map((name, i) => [name, ids[Math.min(i, ids.length - 1)]!]))
  const rows = await q.all(NAMED, {
    ...{ tenant_id, ...places, ...boundsOf(filter), ...matchParams(filter, now) },
    status: filter.status ?? 'any',
    any_source_id: filter.source_id === undefined ? 1 : 0,
    source_id: filter.source_id ?? '',
  })
  return [...new Set(rows.map((row) => row.id))]
}
