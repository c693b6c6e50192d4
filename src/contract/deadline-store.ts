// Statements that move rows that run out by the time that their tenant was frozen.

import { last_instant_ms } from '../base/clock.ts'
import { bytesOf, inChunk, lockFirst } from '../db/chunk.ts'
import { of_shard, sql } from '../db/db.ts'
import type { Deadlines, Moved } from './deadlines.ts'

interface Movable {
  /** Its key is the tenant and the id, and its index `<table>_status` has the status between them. */
  table: string
  /** Of rows that run out. */
  status: string
  /** The column that says when. */
  column: string
  /** The columns that may be large: an update writes the whole row again, so that bytes are bounded as well. */
  texts: readonly string[]
  bytes_max: number
  /** Sets it to a time that is later by `:frozen_ms`. */
  set: string
  /** The condition of the index. */
  only?: string
}

type MovedRow = { id: string; bytes: number }

/** Defines how `move` of `Deadlines` moves the rows of a table. */
export function moving(noun: string, movable: Movable): Deadlines['move'] {
  const { table, status, column, texts, bytes_max, set, only } = movable
  const rows = {
    ...{ table, key: 'tenant_id, id', texts, index: `${table}_status`, order: 'tenant_id, status, id' },
    where: `${of_shard} ${only ? `${only} and` : ''} (tenant_id, status, id) > (:tenant_id, '${status}', :after_id)
        and (tenant_id, status, id) < (:tenant_id, '${status}', 'z') and ${column} > :frozen_at`,
  }
  const LOCK = sql<{ id: string }>(`${noun}.lock_movable`, lockFirst(rows))
  const MOVE = sql<MovedRow>(
    `${noun}.move`,
    `update ${table} set ${set} where ${inChunk(rows)} returning id, ${bytesOf(texts)} as bytes`,
  )
  return async (tx, move, after_id, rows_max) => {
    const bounds = { ...move, after_id, rows_max, bytes_max }
    await tx.all(LOCK, bounds)
    const times = { last_instant: last_instant_ms, latest_at: last_instant_ms - move.frozen_ms }
    return movedOf(await tx.all(MOVE, { ...bounds, ...times }), rows_max, bytes_max)
  }
}

/** Of rows in no order. */
function movedOf(rows: readonly MovedRow[], rows_max: number, bytes_max: number): Moved {
  let last_id: string | null = null
  let bytes = 0
  for (const row of rows) {
    bytes += row.bytes
    if (last_id === null || row.id > last_id) last_id = row.id
  }
  return { last_id, more: rows.length === rows_max || bytes >= bytes_max }
}
