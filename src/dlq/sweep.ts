// Locks that have expired are released, and the sweep removes items that ended long ago.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Swept } from '../contract/feature.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import * as tenants from '../tenants/service.ts'
import { locks } from './deadline-service.ts'
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
export async function expire(db: Db, now: Millis, lists = new DueLists(db.clock)): Promise<Swept> {
  let locks_released = 0
  const { more } = await lists.of('dlq.expired').each(
    (from) => store.tenantsWithExpired(db, now, from, sweep_rows_max),
    sweep_rows_max,
    async ({ tenant_id }) => {
      const { released, held } = await db.write(upkeep, (tx) => expireOf(tx, tenant_id))
      locks_released += released
      return released + held
    },
  )
  return { counts: { 'dlq.locks_released': locks_released }, more }
}

/** Of a frozen tenant only the locks are released that had expired before. The others hold until the resume has moved them. */
async function expireOf(tx: Tx, tenant_id: string): Promise<{ released: number; held: number }> {
  const judged = tenants.frozenDeadlines(tx.now, await tenants.lockFreeze(tx, tenant_id), locks.name)
  const bounds = [sweep_rows_max, sweep_bytes_max] as const
  const { released, held } = await store.releaseExpired(tx, tenant_id, judged, ...bounds)
  for (const item of released.toSorted((a, b) => a.lock_expired_at - b.lock_expired_at))
    await lockExpired(tx, tenant_id, item, item.lock_expired_at)
  return { released: released.length, held }
}

/** One bounded step: items that ended 90 days ago and operations that ended 7 days ago are removed. */
export async function sweep(db: Db, now: Millis, lists = new DueLists(db.clock)): Promise<{ more: boolean }> {
  const items = await lists.of('dlq.ended').each(
    (from) => store.tenantsWithEnded(db, now - ended_kept_ms, from, sweep_rows_max),
    sweep_rows_max,
    ({ tenant_id }) => db.write(upkeep, (tx) => sweepEnded(tx, tenant_id)),
  )
  const ended = await lists.of('dlq.operations').each(
    (from) => operations.ended(db, now - operation_kept_ms, from, swept_operations_max),
    swept_operations_max,
    ({ tenant_id, id }) => db.write(upkeep, (tx) => removeOperation(tx, tenant_id, id)),
  )
  return { more: items.more || ended.more }
}

async function removeOperation(tx: Tx, tenant_id: string, id: string): Promise<number> {
  const gone = await operations.remove(tx, tenant_id, id)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return 1
}

async function sweepEnded(tx: Tx, tenant_id: string): Promise<number> {
  const ended_before = tx.now - ended_kept_ms
  const gone = await store.sweepEnded(tx, tenant_id, ended_before, sweep_rows_max, sweep_bytes_max)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}
