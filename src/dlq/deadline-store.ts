// Statements on the locks of a tenant that is frozen, and is resumed.

import type { Millis } from '../base/clock.ts'
import type { Move } from '../contract/deadlines.ts'
import { inChunk } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'
import { bytes, table } from './store.ts'

// An update writes the whole row again, payload included, so bytes are bounded as well.
const MOVE = sql<{ id: string; bytes: number }>(
  'dlq.move',
  `update dlq_items set locked_until = locked_until + :frozen_ms, held = 0
    where ${inChunk({
      ...{ ...table, index: 'dlq_items_status', order: 'tenant_id, status, id' },
      where: `${of_shard} (tenant_id, status, id) > (:tenant_id, 'claimed', :after_id)
        and (tenant_id, status, id) < (:tenant_id, 'claimed', 'z') and locked_until > :frozen_at`,
    })}
   returning id, ${bytes}`,
)

const HOLD = sql(
  'dlq.hold',
  `update dlq_items set held = 1
    where ${inChunk({
      ...{ ...table, index: 'dlq_items_tenant_locked', order: 'tenant_id, locked_until', skip_locked: true },
      where: `${of_shard} status = 'claimed' and held = 0 and tenant_id >= :tenant_id
        and (tenant_id, locked_until) <= (:tenant_id, :now)`,
    })}`,
)

/** In the order of their ids, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const moved = await tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
  return moved.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** Locks that would have run out while the tenant is frozen hold until it is resumed; returns how many. */
export function hold(tx: Tx, tenant_id: string, now: Millis, rows_max: number, bytes_max: number) {
  return tx.run(HOLD, { tenant_id, now, rows_max, bytes_max })
}
