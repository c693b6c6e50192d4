// Locks of a tenant that is frozen, and is resumed.

import { limit } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { type Deadlines, movedOf } from '../contract/deadlines.ts'
import type { Tx } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import * as store from './deadline-store.ts'

const bytes_max = limit(
  'dlq.move_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of dead letters whose locks one step of a resume moves.',
)

const table = 'dlq_items'

export const locks: Deadlines = {
  name: table,
  async move(tx, move, after_id, rows_max) {
    return movedOf(await store.move(tx, move, after_id, rows_max, bytes_max), rows_max, bytes_max)
  },
}

/** The time by which the lock of this item is judged and set. */
export function lockTime(tx: Tx, caller: AgentCaller, id: string) {
  return tenants.deadlineNow(tx, caller, table, id)
}
