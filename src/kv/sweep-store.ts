// Statements of the sweep and of the purge on kv_entries.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
import { expired_counted_max } from '../quotas/service.ts'
import type { KeyRef } from './entry.ts'
import { table, tombstone } from './store.ts'

/**
 * The tenant is named as a range, and the order begins with it: with an equal sign PostgreSQL may scan the index of all
 * tenants' rows, and skip those of the others.
 */
function ofTenantUntil(time: string): string {
  return `${of_shard} tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, ${time})`
}

const COUNT_EXPIRED = sql<{ expired: number }>(
  'kv.count_expired',
  `select count(*) as expired
     from (select key from kv_entries {by kv_entries_tenant_expiring}
            where counted = 1 and expires_at is not null and ${ofTenantUntil(':now')}
            order by tenant_id, expires_at limit :rows_max) as expired_keys`,
)

const to_tombstones = `update kv_entries set ${tombstone}
    where ${inChunk({
      ...{ ...table, index: 'kv_entries_tenant_expiring', order: 'tenant_id, expires_at', texts: ['value'] },
      where: `counted = 1 and expires_at is not null and ${ofTenantUntil(':now')}`,
      skip_locked: true,
    })}`

const TOMBSTONE_EXPIRED = sql<{ bytes: number }>(
  'kv.tombstone_expired',
  `${to_tombstones} returning grew as bytes`,
)

const TOMBSTONE_NAMED = sql<Tombstoned>(
  'kv.tombstone_expired_named',
  `${to_tombstones} returning namespace, key, version, expires_at, grew as bytes`,
)

const TENANTS_EXPIRED = acrossTenants<Due>(
  'kv.tenants_expired',
  `select tenant_id, count(*) as due, max(expires_at) as until from
     (select tenant_id, expires_at from kv_entries {by kv_entries_expiring}
       where counted = 1 and expires_at is not null and expires_at <= :now and expires_at >= :due_from
       order by expires_at limit :rows_max) as due
    group by tenant_id`,
)

const TENANTS_DUE = acrossTenants<{ tenant_id: string; keys: number; kv_events: number }>(
  'kv.tenants_due',
  `select tenant_id, keys, (select kv_events from tenants where tenants.tenant_id = due.tenant_id) as kv_events
     from (select tenant_id, count(*) as keys from
             (select tenant_id from kv_entries {by kv_entries_expiring}
               where counted = 1 and expires_at is not null and expires_at <= :now order by expires_at limit :rows_max) as first_due
            group by tenant_id) as due`,
  // Citus joins what lies together; others than those that ask need no look.
  `select k.tenant_id, count(*) as keys, 1 as kv_events
     from kv_entries k join tenants t on t.tenant_id = k.tenant_id
    where t.kv_events > 0 and k.counted = 1 and k.expires_at is not null and k.expires_at <= :now
    group by k.tenant_id limit :rows_max`,
)

/** The index is walked to the first key alone, which PostgreSQL would not do for a condition that it may turn into a join. */
const first_expired = `select 1 from kv_entries {by kv_entries_tenant_expiring}
          where counted = 1 and expires_at is not null and tenant_id >= asking.tenant_id
            and (tenant_id, expires_at) <= (asking.tenant_id, :now)
          order by tenant_id, expires_at limit 1`

const ASKING = acrossTenants<{ tenant_id: string; due: number | null }>(
  'kv.tenants_asking',
  `select tenant_id, (${first_expired}) as due
     from (select tenant_id from tenants {by tenants_kv_events} where kv_events > 0 and tenant_id > :after_tenant_id
            order by tenant_id limit :rows_max) as asking
    order by tenant_id`,
  // Citus joins what lies together, and asks no server for what another has found.
  `select t.tenant_id, 1 as due from tenants t
    where t.kv_events > 0 and t.tenant_id > :after_tenant_id
      and exists (select 1 from kv_entries k
                   where k.tenant_id = t.tenant_id and k.counted = 1 and k.expires_at is not null and k.expires_at <= :now)
    order by t.tenant_id limit :rows_max`,
)

const TENANTS_WITH_TOMBSTONES = acrossTenants<Due>(
  'kv.tenants_with_tombstones',
  `select tenant_id, count(*) as due, max(expires_at) as until from
     (select tenant_id, expires_at from kv_entries {by kv_entries_tombstones}
       where counted = 0 and expires_at <= :expired_before and expires_at >= :due_from order by expires_at limit :rows_max) as due
    group by tenant_id`,
)

const DELETE_TOMBSTONES = sql<{ version: number; bytes: number }>(
  'kv.delete_tombstones',
  `delete from kv_entries
    where ${inChunk({
      ...{ ...table, index: 'kv_entries_tenant_tombstones', order: 'tenant_id, expires_at' },
      where: `counted = 0 and ${ofTenantUntil(':expired_before')}`,
      skip_locked: true,
    })}
   returning case when namespace = '__rl' then 0 else version end as version,
             octet_length(namespace) + octet_length(key) as bytes`,
)

/** A key that has become a tombstone because its time was over. */
export interface Expired extends KeyRef {
  version: number
  expires_at: Millis
}

/** With the bytes that its row grew, which are negative. */
export interface Tombstoned extends Expired {
  bytes: number
}

/** Keys that are counted in the quota but have expired; expired_counted_max at most. */
export async function countExpired(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return (await q.one(COUNT_EXPIRED, { tenant_id, now, rows_max: expired_counted_max }))!.expired
}

/** Turns expired keys into tombstones; returns a row for each, with the bytes that it grew, which are negative. */
export function tombstoneExpired(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.all(TOMBSTONE_EXPIRED, { tenant_id, now: tx.now, rows_max, bytes_max })
}

/** The same, and says which they were. */
export function tombstoneNamed(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.all(TOMBSTONE_NAMED, { tenant_id, now: tx.now, rows_max, bytes_max })
}

/** The next tenants after this one with namespaces that leave events. `due`: a key of the tenant has expired; else null. */
export function asking(q: Reader, after_tenant_id: string, now: Millis, rows_max: number) {
  return q.all(ASKING, { after_tenant_id, now, rows_max })
}

/**
 * Tenants among the `rows_max` keys that expired first, and how many of these each has. `kv_events`: above 0
 * where some of its namespaces leave events.
 */
export function tenantsDue(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_DUE, { now, rows_max })
}

/** Tenants among the `rows_max` keys that expired first since `due_from`. */
export function tenantsWithExpired(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_EXPIRED, { now, due_from, rows_max })
}

/** Tenants among the `rows_max` oldest tombstones from before this instant, and since `due_from`. */
export function tenantsWithTombstones(q: Reader, expired_before: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_WITH_TOMBSTONES, { expired_before, due_from, rows_max })
}

/** Removes tombstones; returns their bytes and versions, 0 for those of rate counters, whose versions are never shown. */
export function deleteTombstones(tx: Tx, tenant_id: string, expired_before: Millis, rows_max: number) {
  return tx.all(DELETE_TOMBSTONES, { tenant_id, expired_before, rows_max })
}

export const purge = purging('kv.purge', { ...table, texts: ['value'] })
