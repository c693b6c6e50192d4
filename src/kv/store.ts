// Statements on kv_entries: reads, writes and scans. Those of the sweep are in sweep-store.ts, and rate counters are
// rows of it, too (ratelimit/store.ts).
//
// A row is live when it has a value and has not expired. A deleted key stays as a tombstone without a value, an
// expired one as it is until the sweep; both remember the version for 24 h.

import type { Millis } from '../base/clock.ts'
import { of_shard, type Reader, sql, type Tx, writesRow } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import type { EntryRow, KeyRef } from './entry.ts'

export const here = 'tenant_id = :tenant_id and namespace = :namespace and key = :key'
export const table = { table: 'kv_entries', key: 'tenant_id, namespace, key' }
export const tombstone = 'value = null, counted = 0, grew = 0 - octet_length(value)'
const live = 'value is not null and (expires_at is null or expires_at > :now)'

const FIND = sql<EntryRow>(
  'kv.find',
  `select value, version, expires_at, updated_at from kv_entries where ${here} and ${live}`,
)

export const upsert = `insert into kv_entries
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

const written = 'version, created_version, grew'
const row = `kv_entries where ${here}`

const PUT = writesRow<Written>('kv.put', upsert, written, row)

const absent = 'kv_entries.value is null or kv_entries.expires_at <= :now'
const PUT_IF_ABSENT = writesRow<Written>('kv.put_if_absent', `${upsert} where ${absent}`, written, row)

const PUT_IF_VERSION = writesRow<Written>(
  'kv.put_if_version',
  `update kv_entries
      set value = :value, version = version + 1, grew = :value_bytes - octet_length(value), expires_at = :expires_at, updated_at = :now
    where ${here} and version = :version and ${live}`,
  written,
  row,
)

const RAISE_VERSION = sql(
  'kv.raise_version',
  `update kv_entries set version = :version, created_version = :version where ${here} and version = 1`,
)

/** The version that a delete removed, and by how many bytes the row grew, which is negative. */
export interface Removed {
  version: number
  bytes: number
}

const DELETE = sql<Removed>(
  'kv.delete',
  `update kv_entries set ${tombstone}, expires_at = :now, updated_at = :now where ${here} and ${live}
   returning version, grew as bytes`,
)

const DELETE_IF_VERSION = sql<Removed>(
  'kv.delete_if_version',
  `update kv_entries set ${tombstone}, expires_at = :now, updated_at = :now
    where ${here} and version = :version and ${live}
   returning version, grew as bytes`,
)

const VALUE_BYTES = sql<{ bytes: number }>(
  'kv.value_bytes',
  `select coalesce(octet_length(value), 0) as bytes from kv_entries where ${here}`,
)

export interface Write extends KeyRef {
  value: string
  expires_at: Millis | null
  bytes: number
}

export function find(q: Reader, tenant_id: string, ref: KeyRef, now: Millis) {
  return q.one(FIND, { tenant_id, namespace: ref.namespace, key: ref.key, now })
}

/** With the bytes that the row counts when this write creates it. */
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
  const { bytes: _, ...row } = write
  const value_bytes = textBytes(write.value)
  return tx.one(PUT_IF_VERSION, { tenant_id, ...row, value_bytes, version, now: tx.now })
}

/** Raises the first version of a key; 0 when it was written over meanwhile. */
export function raiseVersion(tx: Tx, tenant_id: string, { namespace, key }: KeyRef, version: number) {
  return tx.run(RAISE_VERSION, { tenant_id, namespace, key, version })
}

/** By how many bytes the row of this key would grow; all of it when there is none. */
export async function growth(tx: Tx, tenant_id: string, write: Write): Promise<number> {
  const row = await tx.one(VALUE_BYTES, { tenant_id, namespace: write.namespace, key: write.key })
  return row ? textBytes(write.value) - row.bytes : write.bytes
}

/** Null when the key is absent. */
export function remove(tx: Tx, tenant_id: string, ref: KeyRef) {
  return tx.one(DELETE, { tenant_id, ...ref, now: tx.now })
}

/** As remove. Null when the key is absent or has another version. */
export function removeIfVersion(tx: Tx, tenant_id: string, ref: KeyRef, version: number) {
  return tx.one(DELETE_IF_VERSION, { tenant_id, ...ref, version, now: tx.now })
}

export interface ListedRow {
  key: string
  version: number
  expires_at: Millis | null
  updated_at: Millis
}

export interface ScannedRow extends ListedRow {
  namespace: string
  /** 1 or 0. */
  live: number
}

// The range has no end, and the value is not read: with an end, SQLite reads each row whole, value
// included, to compare its key.
const SCAN = sql<ScannedRow>(
  'kv.scan',
  `select namespace, key, version, expires_at, updated_at,
          case when counted = 1 and (expires_at is null or expires_at > :now) then 1 else 0 end as live
     from (select tenant_id, namespace, key, version, expires_at, updated_at, counted from kv_entries
            where ${of_shard} (tenant_id, namespace, key) >= (:tenant_id, :namespace, :key)
            order by tenant_id, namespace, key limit :rows_max) as next_rows
    where tenant_id = :tenant_id
    order by tenant_id, namespace, key`,
)

/** The next keys from this one on in bytewise order, over all namespaces, tombstones and expired keys as well. */
export function scan(
  q: Reader,
  tenant_id: string,
  { namespace, key }: KeyRef,
  now: Millis,
  rows_max: number,
) {
  return q.all(SCAN, { tenant_id, namespace, key, now, rows_max })
}
