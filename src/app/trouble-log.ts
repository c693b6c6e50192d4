// The log of what keeps the database from taking writes: a line when it begins, and one when it is over.

import type { Clock } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import type { Log } from '../http/answers.ts'

/** The worst first, as the database tells one at a time: a better one may stand behind it. A damaged file has a line of its own. */
const worst_first = ['removed', 'stalled', 'full', 'read_only'] as const
type Logged = (typeof worst_first)[number]

const begun: Record<Logged, string> = {
  removed:
    'A FILE OF THE DATABASE WAS REMOVED OR REPLACED: nothing more is written, reads continue; before this process ends, copy its open files, on Linux from /proc/<pid>/fd, or what was acknowledged may be lost; see docs/runbook.md',
  stalled: 'the disk does not answer: writes are refused until it does',
  full: 'the disk is nearly full: what needs room is refused until there is some',
  read_only: 'the database is read-only: writes are refused until one that accepts them is reached',
}
const over: Partial<Record<Logged, string>> = {
  stalled: 'the disk answers again: writes are accepted',
  full: 'the disk has room again: everything is accepted',
  read_only: 'the database accepts writes again',
}

export class TroubleLog {
  readonly #since = new Map<Logged, number>()

  constructor(
    private readonly db: Pick<Db, 'trouble'>,
    private readonly log: Log,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /** Once a second: one that comes and goes in between is not seen. */
  look(): void {
    const { kind = null, reason } = this.db.trouble() ?? {}
    if (kind === 'damaged') return
    const now = this.clock.monotonic()
    const is_over = kind === null ? worst_first : worst_first.slice(0, worst_first.indexOf(kind))
    for (const each of is_over) this.#end(each, now)
    if (kind === null || this.#since.has(kind)) return
    this.#since.set(kind, now)
    this.log.error({ reason }, begun[kind])
  }

  #end(kind: Logged, now: number): void {
    const since = this.#since.get(kind)
    const sentence = over[kind]
    if (since === undefined || !sentence) return
    this.#since.delete(kind)
    this.log.info({ lasted_ms: Math.round(now - since) }, sentence)
  }
}
