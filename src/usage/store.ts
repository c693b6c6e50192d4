// Every statement on usage_hours.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
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

const TENANTS_OLD = acrossTenants<Due>(
  'usage.tenants_old',
  `select tenant_id, count(*) as due, max(hour) as until from
     (select tenant_id, hour from usage_hours {by usage_hours_hour}
       where hour < :before and hour >= :due_from order by hour limit :rows_max) as due
    group by tenant_id`,
)

// The tenant is named as a range, and the order begins with it: so the primary key is walked, and not all hours.
const SWEEP = sql(
  'usage.sweep',
  `delete from usage_hours
    where ${inChunk({
      ...{ ...table, index: null, order: table.key, skip_locked: true },
      where: `${of_shard} tenant_id >= :tenant_id and (tenant_id, hour) < (:tenant_id, :before)`,
    })}`,
)

export function add(tx: Tx, { tenant_id, hour, feature, calls, failures }: Count) {
  return tx.run(ADD, { tenant_id, hour, feature, calls, failures })
}

/** Counts of the hours that begin in this range, oldest first. */
export function list(q: Reader, tenant_id: string, from: Millis, to: Millis) {
  return q.all(LIST, { tenant_id, from_hour: from, to_hour: to })
}

/** Tenants among the `rows_max` oldest hours before this instant, and since `due_from`. */
export function tenantsWithOld(q: Reader, before: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_OLD, { before, due_from, rows_max })
}

/** Removes hours of a tenant before this instant, at most `rows_max`; returns how many. */
export function sweep(tx: Tx, tenant_id: string, before: Millis, rows_max: number) {
  return tx.run(SWEEP, { tenant_id, before, rows_max })
}

export const purge = purging('usage.purge', table)
