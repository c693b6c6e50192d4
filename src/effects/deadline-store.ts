// Statements on the leases of a tenant that is frozen, and is resumed.

import type { Move } from '../contract/deadlines.ts'
import { bytesOf, inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql, type Tx } from '../db/db.ts'
import type { Due } from '../db/sweep-tenants.ts'
import type { FrozenDeadlines } from '../tenants/service.ts'
import type { WholeEffect } from './effect.ts'
import { in_status_index } from './list-store.ts'
import { after_run_out, run_out_columns, run_out_leases } from './sweep-store.ts'

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

// A lease that had run out before the freeze ends, as one that ran out after it had been moved. The others hold until they are
// moved. One statement, so that no lease is left over between the two.
const has_run_out = '(lease_until <= :frozen_at or (id <= :last_moved_id and lease_until <= :moved_now))'
const RUN_OUT_OR_HOLD = sql<WholeEffect>(
  'effects.run_out_or_hold',
  `update effects
      set held = case when ${has_run_out} then 0 else 1 end,
          status = case when ${has_run_out} then ${after_run_out} else status end,
          updated_at = case when ${has_run_out} then :now else updated_at end
    where ${inChunk(run_out_leases)}
   returning ${run_out_columns}`,
)

/** In no order, with the bytes of their texts. */
export async function move(tx: Tx, move: Move, after_id: string, rows_max: number, bytes_max: number) {
  const { tenant_id, frozen_at } = move
  await tx.all(LOCK, { tenant_id, frozen_at, after_id, rows_max })
  return tx.all(MOVE, { ...move, after_id, rows_max, bytes_max })
}

/**
 * Of a frozen tenant; returns the effects without their payloads. `held`: leases that would have run out while it is frozen;
 * they are marked, so that no sweep reads them again before they are moved.
 */
export async function runOutOrHold(
  tx: Tx,
  { tenant_id, until }: Due,
  deadlines: FrozenDeadlines,
  rows_max: number,
  bytes_max: number,
): Promise<{ effects: WholeEffect[]; held: number }> {
  const rows = await tx.all(RUN_OUT_OR_HOLD, {
    tenant_id,
    due_until: until,
    ...deadlines,
    now: tx.now,
    rows_max,
    bytes_max,
  })
  const effects = rows.filter(({ status }) => status !== 'running')
  return { effects, held: rows.length - effects.length }
}
