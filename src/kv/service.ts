// Key-value store: one function per verb.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller, AgentCaller, TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { looked_max } from '../contract/page.ts'
import { type Db, type Reader, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
import * as quotas from '../quotas/service.ts'
import {
  type EntryRow,
  expiryOf,
  ifMatchHolds,
  ifNoneMatchNames,
  isForbiddenNamespace,
  isReservedKey,
  isSystemNamespace,
  type KeyRef,
  type Place,
  prefixEnd,
  tombstone_ms,
} from './entry.ts'
import * as store from './store.ts'

export const countExpired = store.countExpired
export const purge = store.purge
export { prefixEnd, tombstone_ms }

/** Rows that one step of a sweep touches. */
const sweep_rows_max = limit(
  'kv.sweep_rows',
  500,
  'rows',
  'Keys that one step of a sweep touches, so that requests wait for no more than one step.',
)
/** And how much of what was stored. */
const sweep_bytes_max = limit(
  'kv.sweep_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of values that one step of a sweep touches.',
)

/** Throws KEY_NOT_FOUND, VERSION_MISMATCH (412). */
export async function read(
  db: Db,
  caller: AgentCaller | AdminCaller,
  ref: KeyRef,
  if_match: string | null,
  now: Millis,
): Promise<EntryRow> {
  requireAllowed(caller, ref)
  const entry = await store.find(db, caller.tenant_id, ref, now)
  if (!entry) throw new ApiError('KEY_NOT_FOUND')
  if (if_match !== null && !ifMatchHolds(if_match, entry.version)) throw preconditionFailed(entry)
  return entry
}

export interface PutInput {
  /** JSON text. */
  value: string
  ttl_seconds: number | undefined
  cas_version: number | undefined
  if_match: string | null
  if_none_match: string | null
}

export interface Put {
  version: number
  expires_at: Millis | null
}

/** Throws NAMESPACE_FORBIDDEN, VERSION_MISMATCH (409 for cas_version, 412 for If-Match), QUOTA_EXCEEDED. */
export function put(db: Db, caller: AgentCaller, plans: Plans, ref: KeyRef, input: PutInput): Promise<Put> {
  requireAllowed(caller, ref)
  return db.write(caller.tenant_id, async (tx) => {
    const expires_at = expiryOf(tx.now, input.ttl_seconds)
    const write = store.writeOf(ref, input.value, expires_at)
    const { cas_version, if_match, if_none_match } = input
    const unconditional = cas_version === undefined && if_match === null && if_none_match === null
    if (tx.disk_full || quotas.overBy(tx, caller, plans, write.bytes)) {
      // What does not grow is never refused; what does hears of its precondition first.
      const bytes = await store.growth(tx, caller.tenant_id, write)
      if (bytes > 0 && !unconditional) mustHold(await store.find(tx, caller.tenant_id, write, tx.now), input)
      quotas.requireRoom(tx, caller, plans, bytes)
    }
    const written = unconditional
      ? (await store.put(tx, caller.tenant_id, write))!
      : await putIf(tx, caller.tenant_id, write, input)
    tx.stores(caller.tenant_id, written.grew)
    const version =
      written.version === written.created_version
        ? await count(tx, caller, plans, ref, written)
        : written.version
    return { version, expires_at }
  })
}

type Write = Parameters<typeof store.put>[2]

/** Looks, judges, and writes only over what it looked at; looks again when another writer came between. */
async function putIf(tx: Tx, tenant_id: string, write: Write, input: PutInput): Promise<store.Written> {
  for (;;) {
    const current = await store.find(tx, tenant_id, write, tx.now)
    const expected = mustHold(current, input)
    const written = current
      ? await store.putIfVersion(tx, tenant_id, write, expected)
      : await store.putIfAbsent(tx, tenant_id, write)
    if (written) return written
  }
}

/** Answers the version to write over, 0 for none. Throws VERSION_MISMATCH. */
function mustHold(current: EntryRow | null, { cas_version, if_match, if_none_match }: PutInput): number {
  if (if_match !== null && !(current && ifMatchHolds(if_match, current.version)))
    throw preconditionFailed(current)
  if (if_none_match !== null && current && ifNoneMatchNames(if_none_match, current.version))
    throw preconditionFailed(current)
  const expected = cas_version ?? current?.version ?? 0
  if (expected !== (current?.version ?? 0)) throw casFailed(current)
  return expected
}

/**
 * The write made the key: it counts against kv_keys now, and its version must lie above every one that was swept
 * away in this tenant.
 */
async function count(
  tx: Tx,
  caller: TenantFacts,
  plans: Plans,
  ref: KeyRef,
  made: store.Written,
): Promise<number> {
  const { version_floor } = await reserve(tx, caller, plans, made.version > 1)
  if (made.version > 1 || version_floor === 0) return made.version
  await store.raiseVersion(tx, caller.tenant_id, ref, version_floor + 1)
  return version_floor + 1
}

/** So many tombstones every tenant may have; and as many as keys, where the plan allows more of these. */
const tombstones_max = limit(
  'kv.tombstones',
  10_000,
  'rows',
  'The database, and lists that pass them: beyond it, or the plan’s kv_keys where these are more, the oldest are deleted before their 24 hours are over.',
)
const forgotten_early_rows_max = limit(
  'kv.forgotten_early_rows',
  100,
  'rows',
  'Tombstones past the plan’s number that are deleted at once, so that they need not be with every key.',
)

/**
 * Counts one key more, whatever it is a key of; `revived`: it was a tombstone. Only a new key can become one more
 * tombstone, so this is where their number is kept down. Throws QUOTA_EXCEEDED.
 */
export async function reserve(tx: Tx, tenant: TenantFacts, plans: Plans, revived: boolean) {
  const { tenant_id } = tenant
  const sweepExpired = () => tombstone(tx, tenant_id)
  const taken = await quotas.reserve(tx, tenant, plans, 'kv_keys', sweepExpired, revived ? 1 : 0)
  const keys_max = quotas.limitOf(plans, tenant.plan, 'kv_keys')
  if (keys_max !== null && taken.tombstones > Math.max(keys_max, tombstones_max))
    await deleteTombstones(tx, tenant_id, tx.now, forgotten_early_rows_max)
  return taken
}

/** Throws KEY_NOT_FOUND, VERSION_MISMATCH (412). */
export function remove(db: Db, caller: AgentCaller, ref: KeyRef, if_match: string | null): Promise<void> {
  requireAllowed(caller, ref)
  return db.write(caller.tenant_id, async (tx) => {
    const removed =
      if_match === null
        ? await store.remove(tx, caller.tenant_id, ref)
        : await removeIf(tx, caller.tenant_id, ref, if_match)
    if (!removed) throw new ApiError('KEY_NOT_FOUND')
    tx.stores(caller.tenant_id, removed.bytes)
    await quotas.release(tx, caller.tenant_id, 'kv_keys', 1, 1)
  })
}

async function removeIf(tx: Tx, tenant_id: string, ref: KeyRef, if_match: string) {
  for (;;) {
    const current = await store.find(tx, tenant_id, ref, tx.now)
    if (!current) return null
    if (!ifMatchHolds(if_match, current.version)) throw preconditionFailed(current)
    const removed = await store.removeIfVersion(tx, tenant_id, ref, current.version)
    if (removed) return removed
  }
}

/**
 * One bounded step: expired keys become tombstones and stop counting, tombstones of more than 24 h go. Answers
 * whether there may be more, and how many keys expired.
 */
export async function sweep(db: Db, now: Millis): Promise<{ expired: number; more: boolean }> {
  let expired = 0
  let left = 0
  for (const { tenant_id, keys } of await store.tenantsWithExpired(db, now, sweep_rows_max)) {
    const tombstoned = await db.write(upkeep, (tx) => tombstone(tx, tenant_id))
    expired += tombstoned
    left += Math.max(0, keys - tombstoned)
  }
  let deleted = 0
  for (const { tenant_id } of await store.tenantsWithTombstones(db, now - tombstone_ms, sweep_rows_max)) {
    deleted += await db.write(upkeep, (tx) =>
      deleteTombstones(tx, tenant_id, tx.now - tombstone_ms, sweep_rows_max),
    )
  }
  return { expired, more: left > 0 || expired >= sweep_rows_max || deleted >= sweep_rows_max }
}

async function tombstone(tx: Tx, tenant_id: string): Promise<number> {
  await quotas.lock(tx, tenant_id, 'kv_keys')
  const tombstoned = await store.tombstoneExpired(tx, tenant_id, sweep_rows_max, sweep_bytes_max)
  if (tombstoned.length > 0)
    await quotas.release(tx, tenant_id, 'kv_keys', tombstoned.length, tombstoned.length)
  tx.stores(tenant_id, bytesOf(tombstoned))
  return tombstoned.length
}

/** The oldest tombstones that died before this go; the versions of keys that are made anew start above theirs. */
async function deleteTombstones(
  tx: Tx,
  tenant_id: string,
  dead_before: Millis,
  rows_max: number,
): Promise<number> {
  const gone = await store.deleteTombstones(tx, tenant_id, dead_before, rows_max)
  const highest = Math.max(0, ...gone.map(({ version }) => version))
  await quotas.raiseFloor(tx, tenant_id, 'kv_keys', highest, gone.length)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

/** Rows that are read at once where keys have gone. */
const scanned_rows_max = limit('kv.namespaces_passed', 500, 'rows', 'Rows that one page of namespaces reads.')

export interface ListRange {
  prefix: string
  /** The key after which it begins; null: with the first. */
  after: string | null
}

/**
 * Live keys of the range in bytewise order. `reached` is the key up to which was looked when too many had gone to fill
 * the page; null at the end of the range, or when there are `rows_max` of them.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  namespace: string,
  { prefix, after }: ListRange,
  now: Millis,
  rows_max: number,
): Promise<{ rows: store.WalkedRow[]; reached: string | null }> {
  const rows: store.WalkedRow[] = []
  let place: string = after ?? prefix
  let begins: 'from' | 'after' = after === null ? 'from' : 'after'
  let looked = 0
  for (let step = rows_max; looked < looked_max; step = scanned_rows_max) {
    const scanned = await store.scan(q, tenant_id, begins, { namespace, key: place }, now, step)
    for (const row of scanned) {
      if (row.namespace !== namespace || !row.key.startsWith(prefix)) return { rows, reached: null }
      if (row.live === 1 && !isReservedKey(row.key)) rows.push(row)
      if (rows.length === rows_max) return { rows, reached: null }
    }
    if (scanned.length < step) return { rows, reached: null }
    looked += scanned.length
    place = scanned.at(-1)!.key
    begins = 'after'
  }
  return { rows, reached: place }
}

/**
 * Namespaces with a live key, in bytewise order: a look-up each, whatever they hold. `next` is where the next page
 * begins, null at the end; a page is shorter than asked for when many keys have just gone.
 */
export async function namespaces(
  q: Reader,
  tenant_id: string,
  after: Place,
  now: Millis,
  names_max: number,
): Promise<{ names: string[]; next: Place | null }> {
  const names: string[] = []
  let place = after
  let dead = 0
  let rows_max = 1
  while (dead < looked_max) {
    const rows = await store.scan(q, tenant_id, 'after', place, now, rows_max)
    const found = rows.findIndex(({ namespace, live }) => live === 1 || isSystemNamespace(namespace))
    if (found === -1) {
      if (rows.length < rows_max) return { names, next: null }
      dead += rows.length
      place = rows.at(-1)!
      rows_max = scanned_rows_max
      continue
    }
    const { namespace } = rows[found]!
    if (!isSystemNamespace(namespace)) {
      // One more than fits: the page before it is full, and there is a next one.
      if (names.length === names_max) return { names, next: { namespace: names.at(-1)!, key: null } }
      names.push(namespace)
    }
    dead += found
    place = { namespace, key: null }
    rows_max = 1
  }
  return { names, next: place }
}

/** Asked before anything is looked up, so that a reserved name tells nothing. */
export function requireAllowed(caller: AgentCaller | AdminCaller, { namespace, key }: KeyRef): void {
  if (isForbiddenNamespace(namespace, caller) || isReservedKey(key)) throw new ApiError('NAMESPACE_FORBIDDEN')
}

function casFailed(current: EntryRow | null): ApiError {
  return new ApiError('VERSION_MISMATCH', { details: { current_version: current?.version ?? null } })
}

function preconditionFailed(current: EntryRow | null): ApiError {
  return new ApiError('VERSION_MISMATCH', {
    precondition: true,
    details: { current_version: current?.version ?? null },
  })
}
