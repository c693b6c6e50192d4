// Lists of running rate counters.

import type { Millis } from '../base/clock.ts'
import { of_shard, type Reader, sql } from '../db/db.ts'
import { prefixEnd } from '../kv/service.ts'
import type { Known } from './standing.ts'
import { key_prefix, keyOf } from './store.ts'

const in_order = 'expires_at, key'

/** Of the counters that end first, `:scanned_max` at most: those of a prefix. */
const of_prefix = `(select {place} tenant_id, namespace, key, expires_at from kv_entries {by kv_entries_counters}
            where tenant_id = :tenant_id and namespace = '__rl' and counted = 1 and rl_window_ms is not null
              and expires_at > :now
            order by ${in_order} limit :scanned_max) as scanned
     where key >= :from_key and key < :end_key`

// The last rows of the first: those before them are skipped in the index alone.
const LIST = sql<Omit<Known, 'limit'> & { key: string; limit: string }>(
  'ratelimit.list',
  `select key, value, rl_limit as "limit", rl_window_ms as window_ms, rl_hits as hits, rl_previous as previous, expires_at
     from kv_entries where ${of_shard} {rows_in tenant_id, namespace, key}
       select {row tenant_id, namespace, key}
         from (select {place} tenant_id, namespace, key, expires_at
                 from ${of_prefix} order by ${in_order} limit :last_place) as found
        order by expires_at desc, key desc limit :rows_max{end}`,
)

const COUNT = sql<{ total: number }>('ratelimit.count', `select count(*) as total from ${of_prefix}`)

export interface Running extends Known {
  key: string
}

/** Windows that run at `now`, of keys that start with `prefix`, among the `scanned_max` that end first. */
interface Span {
  prefix: string
  now: Millis
  scanned_max: number
}

/** Ordered by end, earliest first: the last `rows_max` of the first `last_place`, which must exist. */
export async function list(
  q: Reader,
  tenant_id: string,
  span: Span,
  last_place: number,
  rows_max: number,
): Promise<Running[]> {
  const rows = await q.all(LIST, { tenant_id, ...boundsOf(span), last_place, rows_max })
  rows.sort(
    (one, other) => one.expires_at - other.expires_at || Buffer.from(one.key).compare(Buffer.from(other.key)),
  )
  return rows.map((row) => ({ ...row, key: row.key.slice(key_prefix.length), limit: Number(row.limit) }))
}

export async function count(q: Reader, tenant_id: string, span: Span): Promise<number> {
  return (await q.one(COUNT, { tenant_id, ...boundsOf(span) }))!.total
}

function boundsOf({ prefix, now, scanned_max }: Span) {
  const from_key = keyOf(prefix)
  return { now, scanned_max, from_key, end_key: prefixEnd(from_key)! }
}
