// Statements on the locks of a tenant that is frozen, and is resumed.

import type { Move } from '../contract/deadlines.ts'
import { inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'
import type { FrozenDeadlines } from '../tenants/service.ts'
import { bytes, table } from './store.ts'
import { expired_locks, type Released } from './sweep-store.ts'

const movable = {
  ...{ ...table, index: 'dlq_items_status', order: 'tenant_id, status, id' },
  where: `${of_shard} (tenant_id, status, id) > (:tenant_id, 'claimed', :after_id)
        and (tenant_id, status, id) < (:tenant_id, 'claimed', 'z') and locked_until > :frozen_at`,
}

const LOCK = sql<{ id: string }>('dlq.lock_movable', lockFirst(movable))

// An update writes the whole row again, payload included, so bytes are bounded as well.
const MOVE = sql<{ id: string; bytes: number }>(
  'dlq.move',
  `update dlq_items set locked_until = locked_until + :frozen_ms, held = 0
    where ${inChunk(movable)}
   returning id, ${bytes}`,
)

// A lock that had expired before the freeze is released, as one that expired after it had been moved. The others hold until
// they are moved. One statement, so that no lock is left over between the two.
const has_expired = '(locked_until <= :frozen_at or (id <= :last_moved_id and locked_until <= :moved_now))'
const RELEASE_OR_HOLD = sql<Released & { held: number }>(
  'dlq.release_or_hold',
  `update dlq_items
      set held = case when ${has_expired} then 0 else 1 end,
          lock_expired_at = case when ${has_expired} then locked_until else lock_expired_at end,
          status = case when ${has_expired} then 'failed' else status end,
          locked_by = case when ${has_expired} then null else locked_by end,
          locked_until = case when ${has_expired} then null else locked_until end,
          lock_token_hash = case when ${has_expired} then null else lock_token_hash end
    where ${inChunk(expired_locks)}
   returning id, workflow_id, lock_expired_at, held`,
)

/** In no order, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const { tenant_id, frozen_at } = move
  await tx.all(LOCK, { tenant_id, frozen_at, after_id, rows_max })
  return tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
}

/**
 * Of a frozen tenant. `held`: locks that would have expired while it is frozen; they are marked, so that no sweep reads them
 * again before they are moved.
 */
export async function releaseOrHold(
  tx: Tx,
  tenant_id: string,
  deadlines: FrozenDeadlines,
  rows_max: number,
  bytes_max: number,
): Promise<{ released: Released[]; held: number }> {
  const rows = await tx.all(RELEASE_OR_HOLD, { tenant_id, ...deadlines, now: tx.now, rows_max, bytes_max })
  const released = rows.filter(({ held }) => held === 0)
  return { released, held: rows.length - released.length }
}
