// Every statement on test_clock.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx, unnamedAcrossTenants } from '../db/db.ts'

export interface TestClockRow {
  offset_ms: Millis
  /** Null while the time runs. */
  stands_at: Millis | null
  /** The advance that moves the time: each has an id of its own. */
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
  `update test_clock set moved_by = :mover, moved_until = :until, stands_at = :at
    where name = 'test' and offset_ms = :offset_ms and (moved_by is null or moved_until <= :real_now)`,
)

const MOVE = sql(
  'clock.move',
  `update test_clock set stands_at = :at, offset_ms = :offset_ms, moved_until = :until
    where name = 'test' and moved_by = :mover`,
)

// A move whose answer was lost may have been committed: then the time runs from there.
const END = sql<{ offset_ms: Millis }>(
  'clock.end',
  `update test_clock
      set offset_ms = case when stands_at > :at then offset_ms else :offset_ms end, stands_at = null, moved_by = null
    where name = 'test' and moved_by = :mover
   returning offset_ms`,
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
  mover: string
  at: Millis
  offset_ms: Millis
  until: Millis
}

/** The time stands still. False when another node moves it, or has moved it meanwhile. */
export async function begin(tx: Tx, moved: Moved, real_now: Millis): Promise<boolean> {
  return (await tx.run(BEGIN, { ...moved, real_now })) === 1
}

/** False when this advance took too long, and another has begun. */
export async function move(tx: Tx, moved: Moved): Promise<boolean> {
  return (await tx.run(MOVE, { ...moved })) === 1
}

/** The time runs again. Returns how far it is ahead, and null when this advance does not move it any more. */
export async function end(tx: Tx, { mover, at, offset_ms }: Omit<Moved, 'until'>): Promise<Millis | null> {
  return (await tx.one(END, { mover, at, offset_ms }))?.offset_ms ?? null
}

/** Ends what a process that is gone has begun. */
export function release(tx: Tx) {
  return tx.run(RELEASE, {})
}

// Above 0, by which the next lease sees that this one was not settled.
const END_LEASES = unnamedAcrossTenants(
  'clock.end_leases',
  'update jobs set lease_until = :now where lease_until > :now',
)

/** Of all jobs, where no process is left that works on one: their leases end by a time that may stand still. */
export function endLeases(tx: Tx) {
  return tx.run(END_LEASES, { now: tx.now })
}
