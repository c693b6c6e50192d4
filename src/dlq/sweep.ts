// Locks that have expired are released, and the sweep removes items that ended long ago.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
import { eachInTurn } from '../db/sweep-tenants.ts'
import * as tenants from '../tenants/service.ts'
import { locks } from './deadline-service.ts'
import * as deadlines from './deadline-store.ts'
import { lockExpired } from './event-service.ts'
import { ended_kept_ms } from './item.ts'
import { operation_kept_ms } from './operation.ts'
import * as operations from './operation-store.ts'
import * as store from './sweep-store.ts'

const sweep_rows_max = limit(
  'dlq.sweep_rows',
  500,
  'rows',
  'Dead letters that one step of a sweep touches, so that requests wait for no more than one step.',
)

/** 500 rows of the largest payload would block everything else for a second. */
const sweep_bytes_max = limit(
  'dlq.sweep_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of dead letters that one step of a sweep touches.',
)

const swept_operations_max = limit(
  'dlq.swept_operations',
  10,
  'rows',
  'Operations on dead letters that one step of a sweep removes, each with its 50 rows of items at most.',
)

/** One bounded step: expired locks are released for good. */
export async function expire(db: Db, now: Millis): Promise<{ locks_released: number; more: boolean }> {
  const expired = await store.tenantsWithExpired(db, now, sweep_rows_max)
  let locks_released = 0
  let locks_held = 0
  await eachInTurn(expired, async ({ tenant_id }) => {
    const { released, held } = await db.write(upkeep, (tx) => expireOf(tx, tenant_id))
    locks_released += released
    locks_held += held
  })
  return { locks_released, more: isMore(expired, locks_released + locks_held) }
}

/** Of a frozen tenant only the locks are released that had expired before. The others hold until the resume has moved them. */
async function expireOf(tx: Tx, tenant_id: string): Promise<{ released: number; held: number }> {
  const { released, held } = await releaseOrHold(tx, tenant_id)
  for (const item of released.toSorted((a, b) => a.lock_expired_at - b.lock_expired_at))
    await lockExpired(tx, tenant_id, item, item.lock_expired_at)
  return { released: released.length, held }
}

async function releaseOrHold(
  tx: Tx,
  tenant_id: string,
): Promise<{ released: store.Released[]; held: number }> {
  const frozen = await tenants.lockFreeze(tx, tenant_id)
  if (frozen) {
    const judged = tenants.frozenDeadlines(tx.now, frozen, locks.name)
    return deadlines.releaseOrHold(tx, tenant_id, judged, sweep_rows_max, sweep_bytes_max)
  }
  const released = await store.releaseExpired(tx, tenant_id, sweep_rows_max, sweep_bytes_max)
  return { released, held: 0 }
}

/** One bounded step: items that ended 90 days ago and operations that ended 7 days ago are removed. */
export async function sweep(db: Db, now: Millis): Promise<{ more: boolean }> {
  let any_more = false
  await eachInTurn([sweepItems, sweepOperations], async (step) => {
    if (await step(db, now)) any_more = true
  })
  return { more: any_more }
}

async function sweepItems(db: Db, now: Millis): Promise<boolean> {
  const ended = await store.tenantsWithEnded(db, now - ended_kept_ms, sweep_rows_max)
  let gone = 0
  await eachInTurn(ended, async ({ tenant_id }) => {
    gone += await db.write(upkeep, (tx) => sweepEnded(tx, tenant_id))
  })
  return isMore(ended, gone)
}

async function sweepOperations(db: Db, now: Millis): Promise<boolean> {
  const ended = await operations.ended(db, now - operation_kept_ms, swept_operations_max)
  await eachInTurn(ended, ({ tenant_id, id }) =>
    db.write(upkeep, async (tx) => {
      const gone = await operations.remove(tx, tenant_id, id)
      tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
    }),
  )
  return ended.length > 0
}

async function sweepEnded(tx: Tx, tenant_id: string): Promise<number> {
  const ended_before = tx.now - ended_kept_ms
  const gone = await store.sweepEnded(tx, tenant_id, ended_before, sweep_rows_max, sweep_bytes_max)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

/** True when there may be more than the statement found, or than the step touched. */
function isMore(found: { items: number }[], touched: number): boolean {
  const items = found.reduce((sum, tenant) => sum + tenant.items, 0)
  return items >= sweep_rows_max || touched < items
}
