// Statements of puts where namespaces leave events: a key that has expired becomes a tombstone first, which is an event of
// its own.

import type { Millis } from '../base/clock.ts'
import { sql, type Tx } from '../db/db.ts'
import type { KeyRef } from './entry.ts'
import { here, tombstone, upsert, type Write, type Written } from './store.ts'

const PUT_LIVE = sql<Written>(
  'kv.put_live',
  `${upsert}
    where kv_entries.value is null or kv_entries.expires_at is null or kv_entries.expires_at > :now
   returning version, created_version, grew`,
)

const PUT_IF_TOMBSTONE = sql<Written>(
  'kv.put_if_tombstone',
  `${upsert} where kv_entries.value is null returning version, created_version, grew`,
)

const EXPIRE = sql<{ version: number; expires_at: Millis; bytes: number }>(
  'kv.expire',
  `update kv_entries set ${tombstone} where ${here} and counted = 1 and expires_at <= :now
   returning version, expires_at, grew as bytes`,
)

/** As put, but null when the key has expired and has not become a tombstone yet. */
export function putLive(tx: Tx, tenant_id: string, write: Write) {
  return tx.one(PUT_LIVE, { tenant_id, ...write, now: tx.now })
}

/** As putIfAbsent, but null as well when the key has expired and has not become a tombstone yet. */
export function putIfTombstone(tx: Tx, tenant_id: string, write: Write) {
  return tx.one(PUT_IF_TOMBSTONE, { tenant_id, ...write, now: tx.now })
}

/** Makes a key that has expired a tombstone; null when it has not, or is one. `bytes`: as of `remove`. */
export function expire(tx: Tx, tenant_id: string, { namespace, key }: KeyRef) {
  return tx.one(EXPIRE, { tenant_id, namespace, key, now: tx.now })
}
