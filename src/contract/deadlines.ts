// Deadlines: locks, leases and timeouts, which run out at a time. The resume of a tenant moves them by the time it was frozen.

import type { Millis } from '../base/clock.ts'
import type { Tx } from '../db/db.ts'

/** The move of one tenant. */
export interface Move {
  tenant_id: string
  /** Only what runs out after this is moved: the rest had run out before. */
  frozen_at: Millis
  /** By so much. */
  frozen_ms: number
}

export interface Moved {
  /** Of the last row that was moved; null when none was. */
  last_id: string | null
  /** There are rows after it. */
  more: boolean
}

/** Rows of a feature that run out. */
export interface Deadlines {
  /** The table. Not changed once released. */
  name: string
  /**
   * Moves the next rows after this id, in the order of their ids: `rows_max` at most, and few enough that requests need not
   * wait. Jobs that run out with them are moved, too.
   */
  move(tx: Tx, move: Move, after_id: string, rows_max: number): Promise<Moved>
}

/** Of rows that were moved together, in whatever order, with the bytes that were bounded. */
export function movedOf(
  rows: readonly { id: string; bytes: number }[],
  rows_max: number,
  bytes_max: number,
): Moved {
  let last_id: string | null = null
  let bytes = 0
  for (const row of rows) {
    bytes += row.bytes
    if (last_id === null || row.id > last_id) last_id = row.id
  }
  return { last_id, more: rows.length === rows_max || bytes >= bytes_max }
}
