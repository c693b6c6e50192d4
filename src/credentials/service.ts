// Keys as rows: only a hash and the last four characters are kept.

import { day_ms, type Millis, minute_ms, second_ms } from '../base/clock.ts'
import { hashKey, lastFour, newKey } from '../base/keys.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import * as lookups from '../lookups/service.ts'
import { requireHeld } from './held-service.ts'
import { endSome, unused } from './list-service.ts'
import * as store from './store.ts'
import { voterIssue } from './voter-service.ts'

export type { KeyRow } from './list-service.ts'
export type { Subject } from './store.ts'
export { endSome, requireHeld, unused, voterIssue }

/** Removes keys whose grace period has ended; returns how many. */
export async function sweep(tx: Tx, rows_max: number): Promise<number> {
  const ended = await store.sweep(tx, rows_max)
  for (const { tenant_id, hash } of ended) await lookups.remove(tx, tenant_id, 'key', hash)
  return ended.length
}

/** A new key for a subject that has none. Its text is returned here alone. */
export async function issue(tx: Tx, subject: store.Subject): Promise<string> {
  const key = newKey(subject.kind)
  const hash = hashKey(key)
  await store.insert(tx, subject, hash, lastFour(key))
  await lookups.claim(tx, subject.tenant_id, 'key', hash)
  return key
}

/** The keys that a transaction ends. */
export interface Ending {
  key_cache: Pick<KeyCache, 'clear'>
  hashes: string[]
}

/**
 * A transaction of the tenant that ends keys. What leads to them is removed once it has committed, in a transaction of
 * its own: on a distributed database that lies elsewhere, and an end of a key must not take two servers. What a crash or
 * a failure leaves leads to no key, and is purged with the tenant.
 */
export async function endKeys<T>(
  db: Db,
  key_cache: Pick<KeyCache, 'clear'>,
  tenant_id: string,
  work: (tx: Tx, ending: Ending) => Promise<T>,
): Promise<T> {
  const { result, hashes } = await db.write(tenant_id, async (tx) => {
    const ending: Ending = { key_cache, hashes: [] }
    return { result: await work(tx, ending), hashes: ending.hashes }
  })
  if (hashes.length > 0) await db.write(tenant_id, (tx) => forget(tx, tenant_id, hashes)).catch(() => {})
  return result
}

async function forget(tx: Tx, tenant_id: string, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) await lookups.remove(tx, tenant_id, 'key', hash)
}

export interface Rotation {
  key: string
  /** The time at which the previous key stops working; null when it already has. */
  previous_key_expires_at: Millis | null
}

/** The old key ends with the commit, or after `grace_seconds`; an earlier grace ends either way. */
export async function rotate(
  tx: Tx,
  ending: Ending,
  subject: store.Subject,
  grace_seconds: number,
): Promise<Rotation> {
  const grace_ends_at = tx.now + grace_seconds * second_ms
  const ended = await (grace_seconds > 0 ? store.endGrace(tx, subject) : store.revoke(tx, subject))
  // None has a grace when the operator has ended all keys.
  const has_grace = grace_seconds > 0 && (await store.beginGrace(tx, subject, grace_ends_at)) > 0
  const key = await issue(tx, subject)
  end(tx, ending, subject, ended)
  return { key, previous_key_expires_at: has_grace ? grace_ends_at : null }
}

/** Every key of this subject ends with the commit. */
export async function revoke(tx: Tx, ending: Ending, subject: store.Subject): Promise<void> {
  end(tx, ending, subject, await store.revoke(tx, subject))
}

function end(tx: Tx, ending: Ending, { tenant_id }: store.Subject, ended: { hash: string }[]): void {
  ending.hashes.push(...ended.map(({ hash }) => hash))
  tx.afterCommit(() => ending.key_cache.clear(tenant_id))
}

/** True when this node has found the tenant of this key before. */
export function isKnown(db: Db, key: string): boolean {
  return lookups.isKnown(db, hashKey(key))
}

/** The caller behind a well-formed key, from the database; remembered for a moment. */
export async function identify(
  db: Db,
  key_cache: KeyCache,
  key: string,
  now: Millis,
): Promise<KeyHolder | null> {
  const asked = key_cache.ask()
  const hash = hashKey(key)
  const tenant_id = await lookups.tenantOf(db, 'key', hash)
  if (tenant_id === null) return null
  const row = await store.find(db, tenant_id, hash, now)
  if (!row) return null
  const caller = callerOf(row, hash)
  const { expires_at, key_expires_at } = row
  key_cache.put(key, asked, caller, expires_at ?? key_expires_at)
  noteUse(db, key_cache, row, hash, now)
  return caller
}

/** Keys whose use is being written, of each node. */
const noting = new WeakMap<KeyCache, Set<string>>()

/**
 * Notes the use of an approval key once each minute at most, and of other keys, which are used far more often, once each day.
 * Nobody waits for it: a use is served also where it cannot be noted, or not at once. A use later than now was noted before the
 * clock was set back.
 */
function noteUse(db: Db, key_cache: KeyCache, row: store.FoundRow, hash: string, now: Millis): void {
  const { tenant_id, subject } = row
  const is_approval = row.kind === 'approval'
  const used_before = now - (is_approval ? minute_ms : day_ms)
  const used_at = is_approval ? row.last_used_at : row.known_used_at
  if (used_at !== null && used_at > used_before && used_at <= now) return
  const hashes = noting.get(key_cache) ?? new Set()
  noting.set(key_cache, hashes)
  if (hashes.has(hash)) return
  hashes.add(hash)
  db.write(tenant_id, async (tx) => {
    if (is_approval) await store.used(tx, { tenant_id, subject }, used_before)
    else await store.usedKey(tx, tenant_id, hash, used_before)
  })
    .catch(() => {})
    .finally(() => hashes.delete(hash))
}

function callerOf(row: store.FoundRow, key_hash: string): KeyHolder {
  const { tenant_id, plan, status, storage_bytes_max, kind, subject, checkpoint_id, label } = row
  const stored = { used: row.stored_bytes ?? 0, writes: row.stored_writes ?? 0 }
  const { frozen_at, frozen_again_at, frozen_reason } = row
  const facts = {
    ...{ tenant_id, plan, status, storage_bytes_max, kv_events: row.kv_events > 0, stored },
    ...{ frozen_at, frozen_again_at, frozen_reason },
  }
  if (kind === 'admin') return { kind, ...facts, key_hash }
  if (kind === 'agent') {
    const { mode, paused_at, paused_reason } = row
    return { kind, ...facts, agent_id: subject, mode: mode ?? 'full', paused_at, paused_reason }
  }
  return { kind, ...facts, approval_key_id: subject, checkpoint_id, label }
}
