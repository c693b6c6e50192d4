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

export async function tombstone(tx: Tx, tenant_id: string): Promise<number> {
  await quotas.lock(tx, tenant_id, 'kv_keys')
  const tombstoned = await store.tombstoneExpired(tx, tenant_id, sweep_rows_max, sweep_bytes_max)
  if (tombstoned.length > 0)
    await quotas.release(tx, tenant_id, 'kv_keys', tombstoned.length, tombstoned.length)
  tx.stores(tenant_id, bytesOf(tombstoned))
  return tombstoned.length
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
