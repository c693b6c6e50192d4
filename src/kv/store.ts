// Every statement on kv_entries, but those that count: rate counters are rows of it, too (ratelimit/store.ts).
//
// A row is live when it has a value and has not expired. A deleted key stays as a tombstone without a value, an
// expired one as it is until the sweep; both remember the version for 24 h.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql, type Tx } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import { expired_counted_max } from '../quotas/service.ts'
import { boundOf, type EntryRow, type KeyRef, type Place } from './entry.ts'

const here = 'tenant_id = :tenant_id and namespace = :namespace and key = :key'
const table = { table: 'kv_entries', key: 'tenant_id, namespace, key' }
const live = 'value is not null and (expires_at is null or expires_at > :now)'

const FIND = sql<EntryRow>(
  'kv.find',
  `select value, version, expires_at, updated_at from kv_entries where ${here} and ${live}`,
)

const upsert = `insert into kv_entries
     (tenant_id, namespace, key, value, version, created_version, counted, grew, expires_at, updated_at)
   values (:tenant_id, :namespace, :key, :value, 1, 1, 1, :bytes, :expires_at, :now)
   on conflict (tenant_id, namespace, key) do update
      set value = excluded.value, version = kv_entries.version + 1,
          created_version = case when kv_entries.counted = 1 then kv_entries.created_version else kv_entries.version + 1 end,
          counted = 1, grew = octet_length(excluded.value) - coalesce(octet_length(kv_entries.value), 0),
          expires_at = excluded.expires_at, updated_at = excluded.updated_at`

export interface Written {
  version: number
  /** By how many bytes the row grew; negative when it shrank. */
  grew: number
  /** The version at which the key began to count; equal to `version` when this write made it. */
  created_version: number
}

const PUT = sql<Written>('kv.put', `${upsert} returning version, created_version, grew`)

const PUT_IF_ABSENT = sql<Written>(
  'kv.put_if_absent',
  `${upsert}
    where kv_entries.value is null or kv_entries.expires_at <= :now
   returning version, created_version, grew`,
)

const PUT_IF_VERSION = sql<Written>(
  'kv.put_if_version',
  `update kv_entries
      set value = :value, version = version + 1, grew = :value_bytes - octet_length(value), expires_at = :expires_at, updated_at = :now
    where ${here} and version = :version and ${live}
   returning version, created_version, grew`,
)

const RAISE_VERSION = sql(
  'kv.raise_version',
  `update kv_entries set version = :version, created_version = :version where ${here}`,
)

const tombstone = 'value = null, counted = 0, grew = 0 - octet_length(value)'

const DELETE = sql<{ bytes: number }>(
  'kv.delete',
  `update kv_entries set ${tombstone}, expires_at = :now, updated_at = :now where ${here} and ${live}
   returning grew as bytes`,
)

const DELETE_IF_VERSION = sql<{ bytes: number }>(
  'kv.delete_if_version',
  `update kv_entries set ${tombstone}, expires_at = :now, updated_at = :now
    where ${here} and version = :version and ${live}
   returning grew as bytes`,
)

const VALUE_BYTES = sql<{ bytes: number }>(
  'kv.value_bytes',
  `select coalesce(octet_length(value), 0) as bytes from kv_entries where ${here}`,
)

/**
 * The tenant is named as a range, and the order begins with it: with an equal sign PostgreSQL may walk the index of all
 * tenants' rows, and pass those of the others.
 */
function ofTenantUntil(time: string): string {
  return `tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, ${time})`
}

const COUNT_EXPIRED = sql<{ expired: number }>(
  'kv.count_expired',
  `select count(*) as expired
     from (select key from kv_entries {by kv_entries_tenant_expiring}
            where counted = 1 and expires_at is not null and ${ofTenantUntil(':now')} limit :rows_max) as expired_keys`,
)

const BURY_EXPIRED = sql<{ bytes: number }>(
  'kv.tombstone_expired',
  `update kv_entries set ${tombstone}
    where ${inChunk({
      ...{ ...table, index: 'kv_entries_tenant_expiring', order: 'tenant_id, expires_at', texts: ['value'] },
      where: `counted = 1 and expires_at is not null and ${ofTenantUntil(':now')}`,
      skip_locked: true,
    })}
   returning grew as bytes`,
)

const TENANTS_EXPIRED = sql<{ tenant_id: string; keys: number }>(
  'kv.tenants_expired',
  `select tenant_id, count(*) as keys from
     (select tenant_id from kv_entries {by kv_entries_expiring}
       where counted = 1 and expires_at is not null and expires_at <= :now order by expires_at limit :rows_max) as due
    group by tenant_id`,
)

const TENANTS_FORGOTTEN = sql<{ tenant_id: string }>(
  'kv.tenants_forgotten',
  `select distinct tenant_id from
     (select tenant_id from kv_entries {by kv_entries_tombstones}
       where counted = 0 and expires_at <= :dead_before order by expires_at limit :rows_max) as due`,
)

const DELETE_TOMBSTONES = sql<{ version: number; bytes: number }>(
  'kv.delete_tombstones',
  `delete from kv_entries
    where ${inChunk({
      ...{ ...table, index: 'kv_entries_tenant_tombstones', order: 'tenant_id, expires_at' },
      where: `counted = 0 and ${ofTenantUntil(':dead_before')}`,
      skip_locked: true,
    })}
   returning case when namespace = '__rl' then 0 else version end as version,
             octet_length(namespace) + octet_length(key) as bytes`,
)

interface Write extends KeyRef {
  value: string
  expires_at: Millis | null
  bytes: number
}

export function find(q: Reader, tenant_id: string, ref: KeyRef, now: Millis) {
  return q.one(FIND, { tenant_id, namespace: ref.namespace, key: ref.key, now })
}

/** With what the row counts when this makes it. */
export function writeOf({ namespace, key }: KeyRef, value: string, expires_at: Millis | null): Write {
  return { namespace, key, value, expires_at, bytes: rowBytes(namespace, key, value) }
}

export function put(tx: Tx, tenant_id: string, { namespace, key, value, expires_at, bytes }: Write) {
  return tx.one(PUT, { tenant_id, namespace, key, value, expires_at, bytes, now: tx.now })
}

/** Null when the key is there. */
export function putIfAbsent(tx: Tx, tenant_id: string, write: Write) {
  return tx.one(PUT_IF_ABSENT, { tenant_id, ...write, now: tx.now })
}

/** Null when the key is absent or has another version. */
export function putIfVersion(tx: Tx, tenant_id: string, write: Write, version: number) {
  const { bytes: _, ...rest } = write
  const value_bytes = textBytes(write.value)
  return tx.one(PUT_IF_VERSION, { tenant_id, ...rest, value_bytes, version, now: tx.now })
}

export function raiseVersion(tx: Tx, tenant_id: string, { namespace, key }: KeyRef, version: number) {
  return tx.run(RAISE_VERSION, { tenant_id, namespace, key, version })
}

/** By how many bytes the row of this key would grow; all of it when there is none. */
export async function growth(tx: Tx, tenant_id: string, write: Write): Promise<number> {
  const row = await tx.one(VALUE_BYTES, { tenant_id, namespace: write.namespace, key: write.key })
  return row ? textBytes(write.value) - row.bytes : write.bytes
}

/** By how many bytes the row grew, which is negative. Null when the key is absent. */
export function remove(tx: Tx, tenant_id: string, ref: KeyRef) {
  return tx.one(DELETE, { tenant_id, ...ref, now: tx.now })
}

/** The same. Null when the key is absent or has another version. */
export function removeIfVersion(tx: Tx, tenant_id: string, ref: KeyRef, version: number) {
  return tx.one(DELETE_IF_VERSION, { tenant_id, ...ref, version, now: tx.now })
}

/** Keys that are counted in the quota but have expired; so many are counted at most. */
export async function countExpired(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return (await q.one(COUNT_EXPIRED, { tenant_id, now, rows_max: expired_counted_max }))!.expired
}

/** Turns expired keys into tombstones; answers a row for each, with the bytes that it grew, which are negative. */
export function tombstoneExpired(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.all(BURY_EXPIRED, { tenant_id, now: tx.now, rows_max, bytes_max })
}

/** Tenants among the `rows_max` keys that expired first, and how many of these each has. */
export function tenantsWithExpired(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_EXPIRED, { now, rows_max })
}

/** Tenants among the `rows_max` oldest tombstones that died before this instant. */
export function tenantsWithTombstones(q: Reader, dead_before: Millis, rows_max: number) {
  return q.all(TENANTS_FORGOTTEN, { dead_before, rows_max })
}

/** Removes tombstones; answers their bytes and versions, 0 for those of rate counters, whose versions nobody sees. */
export function deleteTombstones(tx: Tx, tenant_id: string, dead_before: Millis, rows_max: number) {
  return tx.all(DELETE_TOMBSTONES, { tenant_id, dead_before, rows_max })
}

export interface ListedRow {
  key: string
  version: number
  expires_at: Millis | null
  updated_at: Millis
}

export interface WalkedRow extends ListedRow {
  namespace: string
  /** 1 or 0. */
  live: number
}

const SCAN = { from: scanStatement('walk_from', '>='), after: scanStatement('walk', '>') }

// The index has no end here, and the value is not looked at: where a range has one, SQLite reads each row whole, value
// included, to compare its key.
function scanStatement(name: string, begins: '>' | '>='): Statement<WalkedRow> {
  return sql<WalkedRow>(
    `kv.${name}`,
    `select namespace, key, version, expires_at, updated_at,
            case when counted = 1 and (expires_at is null or expires_at > :now) then 1 else 0 end as live
       from (select tenant_id, namespace, key, version, expires_at, updated_at, counted from kv_entries
              where (tenant_id, namespace, key) ${begins} (:tenant_id, :namespace, :key)
              order by tenant_id, namespace, key limit :rows_max) as ahead
      where tenant_id = :tenant_id
      order by tenant_id, namespace, key`,
  )
}

/** The next keys in bytewise order, over all namespaces, dead ones as well. */
export function scan(
  q: Reader,
  tenant_id: string,
  begins: 'from' | 'after',
  place: Place,
  now: Millis,
  rows_max: number,
) {
  return q.all(SCAN[begins], { tenant_id, ...boundOf(place), now, rows_max })
}

const PURGE = sql(
  'kv.purge',
  `delete from kv_entries where ${inChunk({
    ...{ ...table, index: null, order: table.key, texts: ['value'], where: 'tenant_id = :tenant_id' },
  })}`,
)

/** Removes rows of a tenant that is being purged; answers how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max, bytes_max })
}
