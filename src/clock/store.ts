// Every statement on test_clock.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx, unnamedAcrossTenants } from '../db/db.ts'

export interface TestClockRow {
  offset_ms: Millis
  /** Null while the time runs. */
  stands_at: Millis | null
  /** The node that moves the time. */
  moved_by: string | null
  /** Until then, in real time, no other node moves it. */
  moved_until: Millis
}

const FIND = sql<TestClockRow>(
  'clock.find',
  "select offset_ms, stands_at, moved_by, moved_until from test_clock where name = 'test'",
)

const MARK = sql(
  'clock.mark',
  "insert into test_clock (name, offset_ms, moved_until) values ('test', 0, 0) on conflict do nothing",
)

const BEGIN = sql(
  'clock.begin',
  `update test_clock set moved_by = :node, moved_until = :until, stands_at = :at
    where name = 'test' and offset_ms = :offset_ms and (moved_by is null or moved_until <= :real_now)`,
)

const MOVE = sql(
  'clock.move',
  `update test_clock set stands_at = :at, offset_ms = :offset_ms, moved_until = :until
    where name = 'test' and moved_by = :node`,
)

const END = sql(
  'clock.end',
  `update test_clock set offset_ms = :offset_ms, stands_at = null, moved_by = null
    where name = 'test' and moved_by = :node`,
)

const RELEASE = sql(
  'clock.release',
  "update test_clock set stands_at = null, moved_by = null where name = 'test'",
)

/** Null when the database was not made under a test clock. */
export function find(q: Reader) {
  return q.one(FIND, {})
}

/** From now on the database keeps a test clock. */
export function mark(tx: Tx) {
  return tx.run(MARK, {})
}

export interface Moved {
  node: string
  at: Millis
  offset_ms: Millis
  until: Millis
}

/** The time stands still. False when another node moves it, or has moved it meanwhile. */
export async function begin(tx: Tx, moved: Moved, real_now: Millis): Promise<boolean> {
  return (await tx.run(BEGIN, { ...moved, real_now })) === 1
}

/** False when this node took too long, and another has begun. */
export async function move(tx: Tx, moved: Moved): Promise<boolean> {
  return (await tx.run(MOVE, { ...moved })) === 1
}

/** The time runs again. */
export function end(tx: Tx, { node, offset_ms }: Pick<Moved, 'node' | 'offset_ms'>) {
  return tx.run(END, { node, offset_ms })
}

/** Ends what a process that is gone has begun. */
export function release(tx: Tx) {
  return tx.run(RELEASE, {})
}

// Above 0, by which the next lease sees that this one was not settled.
const END_LEASES = unnamedAcrossTenants(
  'clock.end_leases',
  'update jobs set lease_until = 1 where lease_until > 1',
)

/** Of all jobs, where no process is left that works on one: their leases end by a time that may stand still. */
export function endLeases(tx: Tx) {
  return tx.run(END_LEASES, {})
}
