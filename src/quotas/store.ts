// Every statement on quota_usage and api_calls. A counter that is absent counts as 0.

import { inChunk } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, type StoredCounter, sql, type Tx } from '../db/db.ts'
import { purgingAll } from '../db/purge.ts'

// The driver counts stored bytes with every commit, for tenants that have this counter.
const CREATE = sql(
  'quotas.create',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'storage_bytes', 0, 0)`,
)

// One of several callers makes it; the others find it with their update.
const START = sql<Reserved>(
  'quotas.start',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, :quota, 1, 0)
   on conflict do nothing
   returning version_floor, tombstones`,
)

const ADD = sql(
  'quotas.add',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, :quota, :count, 0)
   on conflict (tenant_id, quota) do update set used = quota_usage.used + excluded.used`,
)

// Without `returning`, for which SQLite makes a table each time: that costs twice as much as the update.
const RESERVE = sql(
  'quotas.reserve',
  'update quota_usage set used = used + 1 where tenant_id = :tenant_id and quota = :quota and used < :ceiling',
)

const RESERVE_KEY = sql<Reserved>(
  'quotas.reserve_key',
  `update quota_usage set used = used + 1, tombstones = tombstones - :revived
    where tenant_id = :tenant_id and quota = :quota and used < :ceiling
   returning version_floor, tombstones`,
)

// Rows from before their quota was there were never counted, and are still removed.
const RELEASE = sql(
  'quotas.release',
  `update quota_usage set used = case when used < :count then 0 else used - :count end,
          tombstones = tombstones + :tombstoned
    where tenant_id = :tenant_id and quota = :quota`,
)

const LOCK = sql(
  'quotas.lock',
  'update quota_usage set used = used where tenant_id = :tenant_id and quota = :quota',
)

const RAISE_FLOOR = sql(
  'quotas.raise_floor',
  `update quota_usage
      set version_floor = case when version_floor < :version_floor then :version_floor else version_floor end,
          tombstones = tombstones - :deleted
    where tenant_id = :tenant_id and quota = :quota`,
)

const USED = sql<{ quota: string; used: number; writes: number }>(
  'quotas.used',
  'select quota, used, writes from quota_usage where tenant_id = :tenant_id',
)

const USED_ONE = sql<StoredCounter & { version_floor: number }>(
  'quotas.used_one',
  'select used, writes, version_floor from quota_usage where tenant_id = :tenant_id and quota = :quota',
)

export function create(tx: Tx, tenant_id: string) {
  return tx.run(CREATE, { tenant_id })
}

/** Counts what the service itself writes, past the limit as well. */
export function add(tx: Tx, tenant_id: string, quota: string, count: number) {
  return tx.run(ADD, { tenant_id, quota, count })
}

/** Used by kv_keys alone. */
export interface Reserved {
  version_floor: number
  tombstones: number
}

/** 0 when `limit` is reached, and when there is no counter yet. */
export function reserve(tx: Tx, tenant_id: string, quota: string, limit: number) {
  return tx.run(RESERVE, { tenant_id, quota, ceiling: limit })
}

/** Null when `limit` is reached, and when there is no counter yet. `revived`: tombstones that are keys again, 1 or 0. */
export function reserveKey(tx: Tx, tenant_id: string, quota: string, limit: number, revived: number) {
  return tx.one(RESERVE_KEY, { tenant_id, quota, ceiling: limit, revived })
}

/** Makes the counter, with one used; null when it is there. */
export function start(tx: Tx, tenant_id: string, quota: string) {
  return tx.one(START, { tenant_id, quota })
}

/** Holds the counter until the transaction ends. */
export function lock(tx: Tx, tenant_id: string, quota: string) {
  return tx.run(LOCK, { tenant_id, quota })
}

/** Never below 0. `tombstoned`: how many of them are tombstones from now on. */
export function release(tx: Tx, tenant_id: string, quota: string, count: number, tombstoned = 0) {
  return tx.run(RELEASE, { tenant_id, quota, count, tombstoned })
}

/** `deleted` tombstones are gone, none of a higher version than this. */
export function raiseFloor(tx: Tx, tenant_id: string, quota: string, version_floor: number, deleted: number) {
  return tx.run(RAISE_FLOOR, { tenant_id, quota, version_floor, deleted })
}

export function used(q: Reader, tenant_id: string) {
  return q.all(USED, { tenant_id })
}

export function usedOne(q: Reader, tenant_id: string, quota: string) {
  return q.one(USED_ONE, { tenant_id, quota })
}

const CALLS = sql<{ calls: number }>(
  'quotas.calls',
  'select calls from api_calls where tenant_id = :tenant_id and month = :month',
)

const ADD_CALLS = sql<{ calls: number }>(
  'quotas.add_calls',
  `insert into api_calls (tenant_id, month, calls) values (:tenant_id, :month, :count)
   on conflict (tenant_id, month) do update set calls = api_calls.calls + excluded.calls
   returning calls`,
)

const TENANTS_OLD_CALLS = acrossTenants<{ tenant_id: string; due: number; until: string }>(
  'quotas.tenants_old_calls',
  `select tenant_id, count(*) as due, max(month) as until from
     (select tenant_id, month from api_calls {by api_calls_month}
       where month < :month and month >= :from_month order by month limit :rows_max) as due
    group by tenant_id`,
)

// The tenant is named as a range, and the order begins with it: so the primary key is walked, and not all months.
const SWEEP_CALLS = sql(
  'quotas.sweep_calls',
  `delete from api_calls
    where ${inChunk({
      ...{ table: 'api_calls', key: 'tenant_id, month', index: null, order: 'tenant_id, month' },
      where: `${of_shard} tenant_id >= :tenant_id and (tenant_id, month) < (:tenant_id, :month)`,
      skip_locked: true,
    })}`,
)

/** Calls of /api in this month, as far as they were written. */
export async function calls(q: Reader, tenant_id: string, month: string): Promise<number> {
  return (await q.one(CALLS, { tenant_id, month }))?.calls ?? 0
}

/** Returns the new number. */
export async function addCalls(tx: Tx, tenant_id: string, month: string, count: number): Promise<number> {
  return (await tx.one(ADD_CALLS, { tenant_id, month, count }))!.calls
}

/** Tenants among the `rows_max` oldest months before this one, and since `from_month`; `until` is the last of them. */
export function tenantsWithOldCalls(q: Reader, from_month: string, month: string, rows_max: number) {
  return q.all(TENANTS_OLD_CALLS, { from_month, month, rows_max })
}

/** Removes months of a tenant before this one, at most `rows_max`; returns how many. */
export function sweepCalls(tx: Tx, tenant_id: string, month: string, rows_max: number) {
  return tx.run(SWEEP_CALLS, { tenant_id, month, rows_max })
}

export const purge = [
  purgingAll('quotas.purge', 'quota_usage'),
  purgingAll('quotas.purge_calls', 'api_calls'),
]
