// Statements that move the locks of a tenant that is resumed.

import type { Move } from '../contract/deadlines.ts'
import { inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'
import { bytes, table } from './store.ts'

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

/** In no order, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const { tenant_id, frozen_at } = move
  await tx.all(LOCK, { tenant_id, frozen_at, after_id, rows_max })
  return tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
}
