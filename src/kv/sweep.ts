// The number of keys and tombstones: a new key is reserved, and the sweep turns expired keys into tombstones and removes
// old tombstones.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
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

const asking_rows_max = limit(
  'kv.asking_tenants',
  500,
  'rows',
  'Tenants with namespaces that leave events that one statement looks at for keys that have expired, behind a backlog of the sweep.',
)
const expired_events_max = limit(
  'kv.expired_events',
  100,
  'rows',
  'Expired keys that one transaction makes tombstones of where namespaces leave events, so that puts wait for no more.',
)

/**
 * One bounded step for each tenant with namespaces that leave events and keys that have expired: these become tombstones.
 * Returns how many did, and true in `more` when there may be more.
 */
export async function expire(db: Db, now: Millis): Promise<{ expired: number; more: boolean }> {
  let expired = 0
  let more = false
  for await (const tenant_id of askingTenants(db, now)) {
    const tombstoned = await db.write(upkeep, (tx) => tombstone(tx, tenant_id))
    expired += tombstoned
    more ||= tombstoned >= expired_events_max
  }
  return { expired, more }
}

/** Tenants with namespaces that leave events and with keys that have expired. */
async function* askingTenants(db: Db, now: Millis): AsyncGenerator<string> {
  const due = await store.tenantsDue(db, now, sweep_rows_max)
  const seen = due.reduce((count, { keys }) => count + keys, 0)
  if (seen < sweep_rows_max) {
    for (const { tenant_id, kv_events } of due) if (kv_events > 0) yield tenant_id
    return
  }
  // Behind a backlog of the sweep, of tenants that need not be these, each that asks is looked at.
  for (let after_tenant_id = ''; ; ) {
    const asking = await store.asking(db, after_tenant_id, now, asking_rows_max)
    for (const { tenant_id, due } of asking) if (due !== null) yield tenant_id
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

async function tombstoneWithEvents(tx: Tx, tenant_id: string, leave_events: readonly string[]) {
  const named = await store.tombstoneNamed(tx, tenant_id, expired_events_max, sweep_bytes_max)
  const due = named.filter(({ namespace }) => leave_events.includes(namespace))
  for (const entry of due.toSorted((a, b) => a.expires_at - b.expires_at))
    await emitExpired(tx, tenant_id, entry)
  return named
}

/** Removes the oldest tombstones from before this instant; versions of keys that are created again start above theirs. */
export async function deleteTombstones(
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
  'The database, and lists that pass them: beyond it, or the plan’s kv_keys where these are more, the oldest are deleted before their 24 hours are over.',
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
  const reserved = await quotas.reserve(tx, tenant, plans, 'kv_keys', sweepExpired, revived ? 1 : 0)
  const keys_max = quotas.limitOf(plans, tenant.plan, 'kv_keys')
  if (keys_max !== null && reserved.tombstones > Math.max(keys_max, tombstones_max))
    await deleteTombstones(tx, tenant_id, tx.now, tombstones_early_rows_max)
  return reserved
}
