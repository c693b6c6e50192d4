// The number of keys and tombstones: a new key is reserved, and the sweep turns expired keys into tombstones and removes
// old tombstones.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import * as quotas from '../quotas/service.ts'
import { tombstone_ms } from './entry.ts'
import { emitExpired } from './event-service.ts'
import { namespaces_max } from './namespace-service.ts'
import * as namespaces from './namespace-store.ts'
import * as store from './sweep-store.ts'

const sweep_rows_max = limit(
  'kv.sweep_rows',
  500,
  'rows',
  'Keys that one step of a sweep touches, so that requests wait for no more than one step.',
)
const sweep_bytes_max = limit(
  'kv.sweep_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of values that one step of a sweep touches.',
)

/**
 * One bounded step: expired keys become tombstones and stop counting, tombstones older than 24 h are removed. Returns
 * how many keys expired, and true in `more` when there may be more.
 */
export async function sweep(
  db: Db,
  now: Millis,
  lists = new DueLists(db.clock),
): Promise<{ expired: number; more: boolean }> {
  const expired = await lists.of('kv.expired').each(
    (from) => store.tenantsWithExpired(db, now, from, sweep_rows_max),
    sweep_rows_max,
    ({ tenant_id }) => db.write(upkeep, (tx) => tombstone(tx, tenant_id)),
  )
  const deleted = await lists.of('kv.tombstones').each(
    (from) => store.tenantsWithTombstones(db, now - tombstone_ms, from, sweep_rows_max),
    sweep_rows_max,
    ({ tenant_id }) =>
      db.write(upkeep, (tx) => deleteTombstones(tx, tenant_id, tx.now - tombstone_ms, sweep_rows_max)),
  )
  return { expired: expired.touched, more: expired.more || deleted.more }
}

const asking_rows_max = limit(
  'kv.asking_tenants',
  500,
  'rows',
  'Of the tenants with namespaces that leave events, those in which one statement looks for expired keys behind a backlog of the sweep.',
)
const expired_events_max = limit(
  'kv.expired_events',
  100,
  'rows',
  'Events of expired keys that one transaction leaves, so that puts wait for no more.',
)
const expire_ms_max = limit(
  'kv.expire_duration',
  250,
  'milliseconds',
  'How long one search for expired keys, in namespaces that leave events, goes from step to step without a pause.',
)

/** A tenant with expired keys: `keys` at most. */
interface Asking {
  tenant_id: string
  keys: number
}

/**
 * Bounded steps for each tenant with namespaces that leave events and keys that have expired: these become tombstones. Each
 * tenant has one step, also after one that failed, and those with more to do have others in turns, for a bounded time.
 * Returns how many keys did, and true in `more` when there may be more.
 */
export async function expire(
  db: Db,
  now: Millis,
  lists = new DueLists(db.clock),
): Promise<{ expired: number; more: boolean }> {
  const { backoff } = lists.of('kv.asking')
  let until: number | null = null // from the first step: most looks have none
  let expired = 0
  let turn: AsyncIterable<Asking> | Asking[] = askingTenants(db, now)
  for (;;) {
    const unfinished: Asking[] = []
    for await (const { tenant_id, keys } of turn) {
      until ??= db.clock.monotonic() + expire_ms_max
      const step = () => db.write(upkeep, (tx) => tombstone(tx, tenant_id))
      const tombstoned = (await backoff.take(tenant_id, step)) ?? 0
      expired += tombstoned
      if (tombstoned > 0 && tombstoned < keys) unfinished.push({ tenant_id, keys: keys - tombstoned })
    }
    const more = unfinished.length > 0
    if (until === null || !more || db.clock.monotonic() >= until) return { expired, more }
    turn = unfinished
  }
}

/** Tenants with namespaces that leave events and with keys that have expired. */
async function* askingTenants(db: Db, now: Millis): AsyncGenerator<Asking> {
  const due = await store.tenantsDue(db, now, sweep_rows_max)
  const seen = due.reduce((count, { keys }) => count + keys, 0)
  if (seen < sweep_rows_max) {
    for (const { kv_events, ...tenant } of due) if (kv_events > 0) yield tenant
    return
  }
  // Behind a backlog of the sweep, of tenants that need not be these, each that asks is looked at. How many keys it has is
  // not known: its steps end with one that finds none.
  for (let after_tenant_id = ''; ; ) {
    const asking = await store.asking(db, after_tenant_id, now, asking_rows_max)
    for (const { tenant_id, due } of asking) if (due !== null) yield { tenant_id, keys: Infinity }
    if (asking.length < asking_rows_max) return
    after_tenant_id = asking.at(-1)!.tenant_id
  }
}

export async function tombstone(tx: Tx, tenant_id: string): Promise<number> {
  await quotas.lock(tx, tenant_id, 'kv_keys')
  const leave_events = await namespaces.names(tx, tenant_id, namespaces_max)
  const tombstoned = await (leave_events.length === 0
    ? store.tombstoneExpired(tx, tenant_id, sweep_rows_max, sweep_bytes_max)
    : tombstoneWithEvents(tx, tenant_id, leave_events))
  if (tombstoned.length > 0)
    await quotas.release(tx, tenant_id, 'kv_keys', tombstoned.length, tombstoned.length)
  tx.stores(tenant_id, bytesOf(tombstoned))
  return tombstoned.length
}

/** Takes keys until half of the events are left or more: a key that leaves none must not delay those behind it. */
async function tombstoneWithEvents(tx: Tx, tenant_id: string, leave_events: readonly string[]) {
  const tombstoned: store.Tombstoned[] = []
  for (let events = 0; events <= expired_events_max / 2; ) {
    const rows_max = Math.min(expired_events_max - events, sweep_rows_max - tombstoned.length)
    const bytes_max = sweep_bytes_max + bytesOf(tombstoned)
    if (rows_max === 0 || bytes_max <= 0) break
    const named = await store.tombstoneNamed(tx, tenant_id, rows_max, bytes_max)
    tombstoned.push(...named)
    const due = named.filter(({ namespace }) => leave_events.includes(namespace))
    for (const entry of due.toSorted((a, b) => a.expires_at - b.expires_at))
      await emitExpired(tx, tenant_id, entry)
    events += due.length
    if (named.length < rows_max) break
  }
  return tombstoned
}

/** Removes the oldest tombstones from before this instant; versions of keys that are created again start above theirs. */
async function deleteTombstones(
  tx: Tx,
  tenant_id: string,
  expired_before: Millis,
  rows_max: number,
): Promise<number> {
  const gone = await store.deleteTombstones(tx, tenant_id, expired_before, rows_max)
  const highest = Math.max(0, ...gone.map(({ version }) => version))
  await quotas.raiseFloor(tx, tenant_id, 'kv_keys', highest, gone.length)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

/** Tombstones that every tenant may have; as many as keys, where the plan allows more of these. */
const tombstones_max = limit(
  'kv.tombstones',
  10_000,
  'rows',
  'Bounds the database, and the work of lists that pass them: past it, or past the plan’s kv_keys where that is more, the oldest are deleted before their 24 hours are over.',
)
const tombstones_early_rows_max = limit(
  'kv.tombstones_early_rows',
  100,
  'rows',
  'Tombstones past the plan’s number that are deleted in one step, so that this is not needed with every key.',
)

/**
 * Counts one key more, of the store or of the rate limiter; `revived`: it was a tombstone. Only a new key can become
 * one more tombstone, so their number is limited here. Throws QUOTA_EXCEEDED.
 */
export async function reserve(tx: Tx, tenant: TenantFacts, plans: Plans, revived: boolean) {
  const { tenant_id } = tenant
  const sweepExpired = () => tombstone(tx, tenant_id)
  const reserved = await quotas.reserveKey(tx, tenant, plans, 'kv_keys', sweepExpired, revived ? 1 : 0)
  const keys_max = quotas.limitOf(plans, tenant.plan, 'kv_keys')
  if (keys_max !== null && reserved.tombstones > Math.max(keys_max, tombstones_max))
    await deleteTombstones(tx, tenant_id, tx.now, tombstones_early_rows_max)
  return reserved
}
