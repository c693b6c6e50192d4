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
