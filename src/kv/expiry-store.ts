// Statements of puts where namespaces leave events: a key that has expired becomes a tombstone first, which is an event of
// its own. And when the next such key expires.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { acrossTenants, sql, type Tx } from '../db/db.ts'
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

const next_keys_max = limit(
  'kv.next_keys',
  100,
  'rows',
  'Keys that expire next among which an advance of a test clock looks for one that leaves an event. It stops after so many.',
)

/**
 * When the next one expires after `now` that leaves an event, and of many keys the last one that was looked at. Null when no
 * such key is left: nobody sees at which moment the others expire.
 */
export const NEXT_EXPIRY = acrossTenants<{ at: Millis | null }>(
  'kv.next_expiry',
  `select coalesce(min(seen_at), case when count(*) = ${next_keys_max} then max(expires_at) end) as at
     from (select expires_at, case when (select 1 from kv_namespaces
                                          where kv_namespaces.tenant_id = next.tenant_id
                                            and kv_namespaces.namespace = next.namespace) = 1 then expires_at end as seen_at
             from (select tenant_id, namespace, expires_at from kv_entries {by kv_entries_expiring}
                    where counted = 1 and expires_at is not null and expires_at > :now
                    order by expires_at limit ${next_keys_max}) as next) as looked_at`,
  // Citus joins what lies together.
  `select min(k.expires_at) as at
     from kv_entries k join kv_namespaces n on n.tenant_id = k.tenant_id and n.namespace = k.namespace
    where k.counted = 1 and k.expires_at is not null and k.expires_at > :now`,
)
