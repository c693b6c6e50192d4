// The statement that moves jobs to a later time.

import { last_instant_ms, type Millis } from '../base/clock.ts'
import { sql, type Tx } from '../db/db.ts'
import type { JobKind } from './kind.ts'

// In a range of the primary key.
const MOVE_DUE = sql(
  'jobs.move_due',
  `update jobs set next_at = case when next_at > :latest_at then :last_instant else next_at + :by_ms end
    where tenant_id = :tenant_id and kind = :kind and source_id > :after_id and source_id <= :last_id
      and +next_at > :due_after`,
)

export interface DueMove {
  tenant_id: string
  kind: JobKind
  /** Of sources after this id. */
  after_id: string
  /** Up to this one. */
  last_id: string
  due_after: Millis
  by_ms: number
}

/** Delays the jobs of a kind that are due after `due_after` by `by_ms`. */
export function moveDue(tx: Tx, { kind, ...move }: DueMove) {
  const { by_ms } = move
  return tx.run(MOVE_DUE, {
    ...{ ...move, kind: kind.name },
    ...{ last_instant: last_instant_ms, latest_at: last_instant_ms - by_ms },
  })
}
