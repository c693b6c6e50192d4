// Statements of rate counters: rows of kv_entries in the namespace __rl. Lists are in list-store.ts.
//
// A hit touches no column of an index, which keeps it cheap on both engines. Only a new window, or a new bucket,
// moves expires_at.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx, writesRow } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import type { Known } from './standing.ts'
import { type Check, type Counted, type CountedSliding, ceilingOf } from './window.ts'

const here = `tenant_id = :tenant_id and namespace = '__rl' and key = :key`
const row = `kv_entries where ${here}`
const sliding_columns = 'rl_hits as hits, rl_previous as previous, rl_taken as taken, expires_at'

// 2^53, one past the largest limit: a count that reached it is above every limit, and stays there.
const HIT_FIXED = writesRow<Counted>(
  'ratelimit.hit_fixed',
  `update kv_entries
      set rl_hits = case when rl_hits + :cost > 9007199254740992 then 9007199254740992 else rl_hits + :cost end,
          rl_limit = :limit
    where ${here} and value = :value and expires_at > :now`,
  'rl_hits as hits, expires_at',
  row,
)

// The hits left of the bucket before, rounded down, fit into this one: fits() of window.ts, in SQL.
const fits_in_bucket = `cast(rl_previous as double precision) * (expires_at - :ahead) / rl_window_ms
  < :ceiling - rl_hits - :cost + 1`

/** `ahead` is a window from now: a bucket that expires later has not ended. */
const HIT_SLIDING = writesRow<CountedSliding>(
  'ratelimit.hit_sliding',
  `update kv_entries
      set rl_hits = rl_hits + case when ${fits_in_bucket} then :cost else 0 end,
          rl_taken = case when ${fits_in_bucket} then :cost else 0 end,
          rl_limit = :limit
    where ${here} and value = :value and expires_at > :ahead`,
  sliding_columns,
  row,
)

const fits_in_next = `cast(rl_hits as double precision) * (expires_at - :now) / rl_window_ms < :room + 1`

const NEXT_BUCKET = sql<CountedSliding>(
  'ratelimit.next_bucket',
  `update kv_entries
      set rl_previous = rl_hits, expires_at = expires_at + rl_window_ms,
          rl_hits = case when ${fits_in_next} then :cost else 0 end,
          rl_taken = case when ${fits_in_next} then :cost else 0 end,
          rl_limit = :limit
    where ${here} and value = :value and expires_at > :now and expires_at <= :ahead
   returning ${sliding_columns}`,
)

// After the clock was set back: a window that begins later than now begins now.
const BEGIN_NOW = sql(
  'ratelimit.begin_now',
  `update kv_entries set expires_at = :latest where ${here} and value = :value and expires_at > :latest`,
)

const START = sql<{ version: number; created_version: number; grew: number }>(
  'ratelimit.start',
  `insert into kv_entries
     (tenant_id, namespace, key, value, version, created_version, counted, grew, expires_at, updated_at,
      rl_window_ms, rl_limit, rl_hits, rl_previous, rl_taken)
   values (:tenant_id, '__rl', :key, :value, 1, 1, 1, :bytes, :expires_at, :now,
      :window_ms, :limit, :cost, :previous, :cost)
   on conflict (tenant_id, namespace, key) do update
      set value = excluded.value, version = kv_entries.version + 1,
          created_version = case when kv_entries.counted = 1 then kv_entries.created_version else kv_entries.version + 1 end,
          counted = 1, grew = octet_length(excluded.value) - coalesce(octet_length(kv_entries.value), 0),
          expires_at = excluded.expires_at, updated_at = excluded.updated_at,
          rl_window_ms = excluded.rl_window_ms, rl_limit = excluded.rl_limit, rl_hits = excluded.rl_hits,
          rl_previous = excluded.rl_previous, rl_taken = excluded.rl_taken
    where kv_entries.value is null or kv_entries.value <> excluded.value
       or kv_entries.expires_at <= excluded.updated_at
   returning version, created_version, grew`,
)

const FIND = sql<Omit<Known, 'limit'> & { limit: string }>(
  'ratelimit.find',
  `select value, rl_limit as "limit", rl_window_ms as window_ms, rl_hits as hits, rl_previous as previous, expires_at
     from kv_entries where ${here}`,
)

const RESET = sql<{ limit: string; window_ms: number; bytes: number }>(
  'ratelimit.reset',
  `update kv_entries set value = null, counted = 0, grew = 0 - octet_length(value), expires_at = :now, updated_at = :now
    where ${here} and value is not null and expires_at > :now
   returning rl_limit as "limit", rl_window_ms as window_ms, grew as bytes`,
)

/** A check in the words of its rows. */
interface CheckRow {
  key: string
  value: string
  limit: string
  cost: number
}

export function rowOf({ key, algorithm, window_ms, limit, cost }: Check): CheckRow {
  const value = `{"algorithm":"${algorithm}","window_ms":${window_ms}}`
  return { key: keyOf(key), value, limit: String(limit), cost }
}

export const key_prefix = '__rl:'

export function keyOf(key: string): string {
  return `${key_prefix}${key}`
}

/** Null when no window of this length is running. */
export function hitFixed(tx: Tx, tenant_id: string, { key, value, limit, cost }: CheckRow) {
  return tx.one(HIT_FIXED, { tenant_id, key, value, limit, cost, now: tx.now })
}

/** Null when no bucket of this length is running at `at`. */
export function hitSliding(tx: Tx, tenant_id: string, row: CheckRow, check: Check, at = tx.now) {
  return tx.one(HIT_SLIDING, {
    tenant_id,
    ...row,
    ceiling: ceilingOf(check.limit),
    ahead: at + check.window_ms,
  })
}

/** Lets the window end at `latest` instead of later. */
export function beginNow(tx: Tx, tenant_id: string, { key, value }: CheckRow, latest: Millis) {
  return tx.run(BEGIN_NOW, { tenant_id, key, value, latest })
}

/** Null when no bucket has ended less than a window ago. */
export function nextBucket(tx: Tx, tenant_id: string, row: CheckRow, check: Check) {
  return tx.one(NEXT_BUCKET, {
    tenant_id,
    ...row,
    room: ceilingOf(check.limit) - check.cost,
    now: tx.now,
    ahead: tx.now + check.window_ms,
  })
}

/**
 * Begins a window with this check. Null when another check has begun it meanwhile. Where version and created_version are
 * equal, the key began to be counted.
 */
export function start(tx: Tx, tenant_id: string, row: CheckRow, check: Check, expires_at: Millis) {
  return tx.one(START, {
    tenant_id,
    ...row,
    bytes: counterBytes(row),
    previous: check.algorithm === 'sliding_window' ? 0 : null,
    window_ms: check.window_ms,
    expires_at,
    now: tx.now,
  })
}

/** The bytes that the row of a new counter counts. */
export function counterBytes({ key, value }: CheckRow): number {
  return rowBytes('__rl', key, value)
}

/** The counter, or its tombstone. */
export async function find(q: Reader, tenant_id: string, key: string): Promise<Known | null> {
  const row = await q.one(FIND, { tenant_id, key: keyOf(key) })
  return row && { ...row, limit: Number(row.limit) }
}

/** Ends the window; null when none was running. */
export async function reset(tx: Tx, tenant_id: string, key: string) {
  const row = await tx.one(RESET, { tenant_id, key: keyOf(key), now: tx.now })
  return row && { ...row, limit: Number(row.limit) }
}
