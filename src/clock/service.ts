// The test clock: a time of the service's own, which stands in the database, so that restarts and nodes agree.

import './errors.ts'
import { type Millis, MovedClock, realTime } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import * as store from './store.ts'

/** How long a call may move the time. */
export const advance_ms_max = limit(
  'clock.advance_duration',
  20_000,
  'milliseconds',
  'How long `POST /v1/clock/advance` may take. Past it the answer says `done: false`, and the next call goes on.',
)
const moved_ms_max = limit(
  'clock.moved_by',
  2 * advance_ms_max,
  'milliseconds',
  'How long a node that stops in the middle of an advance of a test clock keeps others from moving it.',
)

export const not_made_message =
  'the database was not made under a test clock, and keeps real time: CLOCK=test needs a new one'
export const made_message =
  'the database was made under a test clock: set CLOCK=test, or use another database'

/**
 * Marks a database that no service has opened before. Throws when the database was made under another clock than the one that is
 * asked for. `is_new`: no service has opened it; false where nothing can be written.
 */
export async function requireClock(db: Db, is_test: boolean, is_new: boolean): Promise<void> {
  if (is_test && is_new) await db.write((tx) => store.mark(tx))
  const is_made = (await store.find(db)) !== null
  if (is_made !== is_test) throw new Error(is_made ? made_message : not_made_message)
}

/** For a command beside the service: its time is that of the service when it begins. */
export async function followTestClock(db: Db): Promise<void> {
  const found = await store.find(db)
  if (found && db.clock instanceof MovedClock) show(db.clock, found)
}

/** Returns true while a node moves the time. */
function show(
  clock: MovedClock,
  { offset_ms, stands_at, moved_by, moved_until }: store.TestClockRow,
): boolean {
  const is_moved = moved_by !== null && moved_until > clock.base.now()
  clock.set(offset_ms, is_moved ? stands_at : null)
  return is_moved
}

/** The test clock as a node knows it. */
export class TestTime {
  readonly #clock: MovedClock
  readonly #node: string
  #offset_ms = 0
  #is_moving = false
  #moves_elsewhere = false

  constructor(private readonly db: Db) {
    this.#clock = db.clock as MovedClock
    this.#node = newId('nod', realTime(this.#clock))
  }

  /** Reads the time that the database has. A SQLite database has one process, which takes what it has left behind back. */
  async start(): Promise<void> {
    if (this.db.engine === 'sqlite')
      await this.db.write(async (tx) => {
        await store.release(tx)
        await store.endLeases(tx)
      })
    await this.#read()
  }

  get now(): Millis {
    return this.#clock.now()
  }

  /** How far it is ahead of real time. */
  get ahead_ms(): Millis {
    return this.now - this.#clock.base.now()
  }

  /** True while another node moves the time, and does all that falls due. */
  get movesElsewhere(): boolean {
    return this.#moves_elsewhere
  }

  /** Looks for what other nodes have moved; a database that does not answer leaves the time as it is. */
  async refresh(): Promise<void> {
    if (this.db.engine === 'sqlite' || this.#is_moving) return
    await this.#read().catch(() => {})
  }

  async #read(): Promise<void> {
    const found = await store.find(this.db)
    if (!found || this.#is_moving) return
    this.#offset_ms = found.offset_ms
    this.#moves_elsewhere = show(this.#clock, found)
  }

  /** The time stands still until `end`. Returns it. Throws CLOCK_ADVANCING. */
  async begin(): Promise<Millis> {
    if (this.#is_moving) throw new ApiError('CLOCK_ADVANCING')
    await this.refresh()
    const at = this.now
    const real_now = this.#clock.base.now()
    this.#is_moving = true
    const begun = await this.db
      .write((tx) => store.begin(tx, this.#moved(at, this.#offset_ms), real_now))
      .catch((error) => {
        this.#is_moving = false
        throw error
      })
    if (!begun) {
      this.#is_moving = false
      throw new ApiError('CLOCK_ADVANCING')
    }
    this.#clock.set(this.#offset_ms, at)
    return at
  }

  /** It is this time now. */
  async moveTo(at: Millis): Promise<void> {
    const offset_ms = at - this.#clock.base.now()
    if (!(await this.db.write((tx) => store.move(tx, this.#moved(at, offset_ms)))))
      throw new ApiError('CLOCK_ADVANCING')
    this.#offset_ms = offset_ms
    this.#clock.set(offset_ms, at)
  }

  /** The time runs again, from where it stands. */
  async end(): Promise<void> {
    const offset_ms = this.now - this.#clock.base.now()
    try {
      await this.db.write((tx) => store.end(tx, { node: this.#node, offset_ms }))
      this.#offset_ms = offset_ms
    } finally {
      this.#clock.set(this.#offset_ms, null)
      this.#is_moving = false
    }
  }

  #moved(at: Millis, offset_ms: Millis): store.Moved {
    const until = this.#clock.base.now() + moved_ms_max
    return { node: this.#node, at, offset_ms, until }
  }
}
