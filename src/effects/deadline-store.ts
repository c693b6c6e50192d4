// Statements that move the leases of a tenant that is resumed.

import type { Move } from '../contract/deadlines.ts'
import { bytesOf, inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'
import { in_status_index } from './list-store.ts'

const texts = ['payload', 'effective_payload', 'error', 'note']
const table = { table: 'effects', key: 'tenant_id, id', texts }

const movable = {
  ...{ ...table, index: 'effects_status', order: 'tenant_id, status, id' },
  where: `${of_shard} ${in_status_index} and (tenant_id, status, id) > (:tenant_id, 'running', :after_id)
        and (tenant_id, status, id) < (:tenant_id, 'running', 'z') and lease_until > :frozen_at`,
}

const LOCK = sql<{ id: string }>('effects.lock_movable', lockFirst(movable))

// An update writes the whole row again, payload included, so bytes are bounded as well.
const MOVE = sql<{ id: string; bytes: number }>(
  'effects.move',
  `update effects set lease_until = lease_until + :frozen_ms, held = 0
    where ${inChunk(movable)}
   returning id, ${bytesOf(texts)} as bytes`,
)

/** In no order, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const { tenant_id, frozen_at } = move
  await tx.all(LOCK, { tenant_id, frozen_at, after_id, rows_max })
  return tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
}
