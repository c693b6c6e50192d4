// Statements that move timeouts by the time that a tenant was frozen.

import { last_instant_ms } from '../base/clock.ts'
import type { Move } from '../contract/deadlines.ts'
import { bytesOf, inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'

const texts = ['prompt', 'callback_payload', 'payload', 'edited_payload', 'answer_schema', 'effect']

const chunk = {
  ...{ table: 'checkpoints', key: 'tenant_id, id', index: 'checkpoints_status' },
  ...{ order: 'tenant_id, status, id', texts },
  where: `${of_shard} (tenant_id, status, id) > (:tenant_id, 'pending', :after_id)
        and (tenant_id, status, id) < (:tenant_id, 'pending', 'z') and expires_at > :frozen_at`,
}

const LOCK = sql<{ id: string }>('checkpoints.lock_movable', lockFirst(chunk))

const MOVE = sql<{ id: string; bytes: number }>(
  'checkpoints.move',
  `update checkpoints
      set expires_at = case when expires_at > :latest_at then :last_instant else expires_at + :frozen_ms end,
          held_ms = held_ms + :frozen_ms
    where ${inChunk(chunk)}
   returning id, ${bytesOf(texts)} as bytes`,
)

/** In no order, with the bytes of their large texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const { tenant_id, frozen_at } = move
  await tx.all(LOCK, { tenant_id, frozen_at, after_id, rows_max })
  const times = { last_instant: last_instant_ms, latest_at: last_instant_ms - move.frozen_ms }
  return tx.all(MOVE, { ...move, ...times, after_id, rows_max, bytes_max })
}
