// The log of what keeps the database from taking writes: a line when it begins, and one when it is over.

import type { Clock } from '../base/clock.ts'
import type { Db, Trouble } from '../db/db.ts'
import type { Log } from '../http/answers.ts'

/** A damaged file is not among them: it has a line of its own, and is never over. */
type Passing = Exclude<Trouble['kind'], 'damaged'>

const begun: Record<Passing, string> = {
  full: 'the disk is nearly full: what needs room is refused until there is some',
  stalled: 'the disk does not answer: writes are refused until it does',
}
const over: Record<Passing, string> = {
  full: 'the disk has room again: everything is taken',
  stalled: 'the disk answers again: writes are taken',
}

export class TroubleLog {
  #known: { kind: Passing; since: number } | null = null

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
    if (this.#known) this.log.info({ lasted_ms: Math.round(now - this.#known.since) }, over[this.#known.kind])
    this.#known = kind && { kind, since: now }
    if (kind) this.log.error({}, begun[kind])
  }
}
