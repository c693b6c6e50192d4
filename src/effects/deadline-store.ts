// Statements on the leases of a tenant that is frozen, and is resumed.

import type { Millis } from '../base/clock.ts'
import type { Move } from '../contract/deadlines.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'

const texts = ['payload', 'effective_payload', 'error', 'note']
const table = { table: 'effects', key: 'tenant_id, id', texts }

// An update writes the whole row again, payload included, so bytes are bounded as well.
const MOVE = sql<{ id: string; bytes: number }>(
  'effects.move',
  `update effects set lease_until = lease_until + :frozen_ms, held = 0
    where ${inChunk({
      ...{ ...table, index: 'effects_status', order: 'tenant_id, status, id' },
      where: `${of_shard} (tenant_id, status, id) > (:tenant_id, 'running', :after_id)
        and (tenant_id, status, id) < (:tenant_id, 'running', 'z') and lease_until > :frozen_at`,
    })}
   returning id, ${bytesOf(texts)} as bytes`,
)

const HOLD = sql(
  'effects.hold',
  `update effects set held = 1
    where ${inChunk({
      ...{ ...table, index: 'effects_tenant_leased', order: 'tenant_id, lease_until', skip_locked: true },
      where: `${of_shard} status = 'running' and held = 0 and (tenant_id, lease_until) > (:tenant_id, :frozen_at)
        and (tenant_id, lease_until) <= (:tenant_id, :now)`,
    })}`,
)

/** In the order of their ids, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const moved = await tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
  return moved.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** Leases that ran out since the tenant was frozen hold until it is resumed; returns how many. Those before it end. */
export function hold(tx: Tx, tenant_id: string, frozen_at: Millis, rows_max: number, bytes_max: number) {
  return tx.run(HOLD, { tenant_id, frozen_at, now: tx.now, rows_max, bytes_max })
}
