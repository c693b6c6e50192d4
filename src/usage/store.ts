// Every statement on usage_hours.

import type { Millis } from '../base/clock.ts'
import { amongFirst, inChunk, upToLastOf } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import type { Count } from './usage.ts'

// Of active tenants: a count that is on its way while a purge ends would outlive it.
const ADD = sql(
  'usage.add',
  `insert into usage_hours (tenant_id, hour, feature, calls, failures)
   select tenant_id, :hour, :feature, :calls, :failures from tenants
    where tenant_id = :tenant_id and status = 'active'
   on conflict (tenant_id, hour, feature) do update
      set calls = usage_hours.calls + excluded.calls, failures = usage_hours.failures + excluded.failures`,
)

const LIST = sql<Omit<Count, 'tenant_id'>>(
  'usage.list',
  `select hour, feature, calls, failures from usage_hours
    where tenant_id = :tenant_id and hour >= :from_hour and hour < :to_hour
    order by hour, feature`,
)

const table = { table: 'usage_hours', key: 'tenant_id, hour, feature' }

const old = { ...table, index: 'usage_hours_hour', order: 'hour', where: 'hour < :before', skip_locked: true }
const SWEEP = sql(
  'usage.sweep',
  `delete from usage_hours where ${amongFirst(old)}`,
  `delete from usage_hours where ${upToLastOf(old)}`,
)

const PURGE = sql(
  'usage.purge',
  `delete from usage_hours
    where ${inChunk({ ...table, index: null, order: table.key, where: 'tenant_id = :tenant_id' })}`,
)

export function add(tx: Tx, { tenant_id, hour, feature, calls, failures }: Count) {
  return tx.run(ADD, { tenant_id, hour, feature, calls, failures })
}

/** Counts of the hours that begin in this range, oldest first. */
export function list(q: Reader, tenant_id: string, from: Millis, to: Millis) {
  return q.all(LIST, { tenant_id, from_hour: from, to_hour: to })
}

/** Removes hours before this instant, at most `rows_max`; returns how many. */
export function sweep(tx: Tx, before: Millis, rows_max: number) {
  return tx.run(SWEEP, { before, rows_max })
}

/** Removes rows of a tenant that is being purged; returns how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max })
}
