// The log of what keeps the database from taking writes: a line when it begins, and one when it is over.

import type { Clock } from '../base/clock.ts'
import type { Db, Trouble } from '../db/db.ts'
import type { Log } from '../http/answers.ts'

/** A damaged file has a line of its own. */
type Logged = Exclude<Trouble['kind'], 'damaged'>

const begun: Record<Logged, string> = {
  full: 'the disk is nearly full: what needs room is refused until there is some',
  stalled: 'the disk does not answer: writes are refused until it does',
  read_only: 'the database is read-only: writes are refused until one that takes them is reached',
  removed:
    'A FILE OF THE DATABASE WAS REMOVED OR REPLACED: nothing is written any more, reads go on; what was acknowledged is lost when this process ends, unless its open files are copied first, on Linux from /proc/<pid>/fd',
}
const over: Partial<Record<Logged, string>> = {
  full: 'the disk has room again: everything is taken',
  stalled: 'the disk answers again: writes are taken',
  read_only: 'the database takes writes again',
}

export class TroubleLog {
  #known: { kind: Logged; since: number } | null = null

  constructor(
    private readonly db: Pick<Db, 'trouble'>,
    private readonly log: Log,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /** Once a second: one that comes and goes in between is not seen. */
  look(): void {
    const kind = this.db.trouble()?.kind ?? null
    if (kind === 'damaged' || kind === (this.#known?.kind ?? null)) return
    const now = this.clock.monotonic()
    const ended = this.#known && over[this.#known.kind]
    if (ended) this.log.info({ lasted_ms: Math.round(now - this.#known!.since) }, ended)
    this.#known = kind && { kind, since: now }
    if (kind) this.log.error({}, begun[kind])
  }
}
