// The test clock: a time of the service's own, which stands in the database, so that restarts and nodes agree.

import './errors.ts'
import { type Millis, MovedClock } from '../base/clock.ts'
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
  'How long `POST /v1/clock/advance` may take. Past it the answer says `done: false`, and the next call continues.',
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
  if (found && db.clock instanceof MovedClock) db.clock.set(found.offset_ms, standsAt(db.clock, found))
}

/** Null while the time runs. */
function standsAt(
  clock: MovedClock,
  { stands_at, moved_by, moved_until }: store.TestClockRow,
): Millis | null {
  return moved_by !== null && moved_until > clock.base.now() ? stands_at : null
}

/** The test clock as a node knows it. */
export class TestTime {
  readonly #clock: MovedClock
  /** As the database has it. */
  #offset_ms = 0
  /** The advance of this node. */
  #mover: string | null = null
  /** An advance of this node that the database may still take for under way. */
  #owed: string | null = null
  #moves_elsewhere = false
  /** Reads so far. */
  #reads = 0
  /** Reads that began before this one say nothing new. */
  #shown = 0

  constructor(private readonly db: Db) {
    this.#clock = db.clock as MovedClock
  }

  /** Reads the time that the database has. A SQLite database has one process, which takes what it has left behind back. */
  async start(): Promise<void> {
    const found = await store.find(this.db)
    if (found) this.#clock.set(found.offset_ms, standsAt(this.#clock, found)) // nobody has seen another time
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
    if (this.#mover !== null) return
    await this.#catchUp().catch(() => {})
  }

  async #catchUp(): Promise<void> {
    if (this.#owed !== null) await this.#endOwed()
    else if (this.db.engine === 'postgres') await this.#read()
  }

  /** A read that comes back after a later one, or after an advance of this node, would set the time back. */
  async #read(): Promise<void> {
    const read = ++this.#reads
    const found = await store.find(this.db)
    if (!found || this.#mover !== null || read < this.#shown) return
    const stands_at = standsAt(this.#clock, found)
    this.#moves_elsewhere = stands_at !== null
    this.#show(found.offset_ms, stands_at, read)
  }

  #show(offset_ms: Millis, stands_at: Millis | null, read = ++this.#reads): void {
    this.#shown = read
    this.#offset_ms = offset_ms
    this.#clock.follow(offset_ms, stands_at)
  }

  /** The time stands still until `end`. Returns it. Throws CLOCK_ADVANCING. */
  async begin(): Promise<Millis> {
    await this.refresh()
    if (this.#mover !== null) throw new ApiError('CLOCK_ADVANCING')
    const [at, real_now] = [this.now, this.#clock.base.now()]
    const moved = { ...this.#moved(at, this.#offset_ms), mover: newId('nod', real_now) }
    this.#mover = moved.mover
    this.#show(this.#offset_ms, at) // before the answer: what comes meanwhile must not see a later time
    const owed = this.#owed
    this.#owed = moved.mover // it may have begun although the answer is an error
    let begun = false
    try {
      begun = await this.db.write((tx) => store.begin(tx, moved, real_now))
      this.#owed = begun ? null : owed
    } finally {
      if (!begun) this.#mover = null
      this.#show(this.#offset_ms, begun ? at : null)
    }
    if (!begun) throw new ApiError('CLOCK_ADVANCING')
    this.#moves_elsewhere = false
    return at
  }

  /** It is this time now. Throws CLOCK_ADVANCING when another node has begun, because this one took too long. */
  async moveTo(at: Millis): Promise<void> {
    const offset_ms = at - this.#clock.base.now()
    const moved = { ...this.#moved(at, offset_ms), mover: this.#mover! }
    if (!(await this.db.write((tx) => store.move(tx, moved)))) throw new ApiError('CLOCK_ADVANCING')
    this.#show(offset_ms, at)
  }

  /** The time runs again, from where it stands. When that fails it stands, and the next look at it tries again. */
  async end(): Promise<void> {
    this.#owed = this.#mover
    this.#mover = null
    await this.#endOwed()
  }

  /** Any number of times: it ends its own advance alone. */
  async #endOwed(): Promise<void> {
    const mover = this.#owed!
    const at = this.now
    const ended = { mover, at, offset_ms: at - this.#clock.base.now() }
    const offset_ms = await this.db.write((tx) => store.end(tx, ended))
    if (this.#owed !== mover) return
    if (offset_ms !== null) this.#show(offset_ms, null)
    else await this.#read() // another node has begun, or the answer to an end was lost
    if (this.#owed === mover) this.#owed = null
  }

  #moved(at: Millis, offset_ms: Millis): Omit<store.Moved, 'mover'> {
    return { at, offset_ms, until: this.#clock.base.now() + moved_ms_max }
  }
}
