// Jobs whose message the database could not return, and how long each has been released for that.

import { type Clock, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'

/** Longer than an outage of the database. A read that is refused for one job alone, because it takes too long, ends here. */
const unread_ms_max = limit(
  'jobs.unread',
  10 * minute_ms,
  'milliseconds',
  'How long a job is released without an attempt because the database does not give what it sends. Past it such a lease counts as an attempt.',
)
const remembered_max = limit(
  'jobs.unread_remembered',
  10_000,
  'entries',
  'Jobs of which a node remembers since when it cannot read what they send. Past it those are forgotten that were released longest ago.',
)
/** A failure that is longer ago belongs to another outage. */
const apart_ms = 2 * minute_ms

interface Since {
  first_at: number
  last_at: number
}

export class UnreadJobs {
  readonly #since = new Remembered<Since>(remembered_max)

  constructor(private readonly clock: Clock) {}

  /** Notes one more failure. False when the job has been released for too long. */
  mayRelease(id: string): boolean {
    const now = this.clock.monotonic()
    const known = this.#since.get(id)
    const first_at = known && now - known.last_at <= apart_ms ? known.first_at : now
    this.#since.put(id, { first_at, last_at: now })
    return now - first_at <= unread_ms_max
  }
}
