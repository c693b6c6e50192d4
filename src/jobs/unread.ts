// Jobs whose message could not be read from the database, and for how long this node has released each.

import { type Clock, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'

/** Longer than an outage of the database. A read that is refused for one job alone, because it takes too long, ends here. */
const unread_ms_max = limit(
  'jobs.unread',
  10 * minute_ms,
  'milliseconds',
  'How long a job is released without an attempt because what it sends cannot be read from the database. Past it such a lease counts as an attempt.',
)
const remembered_max = limit(
  'jobs.unread_remembered',
  10_000,
  'entries',
  'Jobs for which a node remembers since when it cannot read what they send. Past it those released longest ago are forgotten.',
)
/** A failure that is longer ago belongs to another outage. */
const apart_ms = 2 * minute_ms

interface Since {
  first_at: number
  last_at: number
}

export class UnreadJobs {
  readonly #since = new Remembered<Since>(remembered_max)
  /** The oldest of the failures that were forgotten for others, and when the last of them was. */
  #forgotten: Since | null = null

  constructor(private readonly clock: Clock) {}

  /** Notes one more failure. False when the job has been released for too long. */
  mayRelease(id: string): boolean {
    const now = this.clock.monotonic()
    const known = this.#since.get(id)
    // Where more fail than are remembered, a job may be one of those forgotten: each would begin again for ever otherwise.
    const last = [known ?? this.#forgotten].find((since) => since && now - since.last_at <= apart_ms)
    const first_at = last ? last.first_at : now
    const evicted = this.#since.put(id, { first_at, last_at: now })
    if (evicted) this.#noteForgotten(evicted.first_at, now)
    return now - first_at <= unread_ms_max
  }

  /** True when there is nothing to forget. */
  get isEmpty(): boolean {
    return this.#since.size === 0
  }

  /** It was read: a failure that follows is the first. */
  forget(id: string): void {
    this.#since.forget(id)
  }

  #noteForgotten(first_at: number, now: number): void {
    const before = this.#forgotten
    const goes_on = before !== null && now - before.last_at <= apart_ms
    this.#forgotten = { first_at: goes_on ? Math.min(before.first_at, first_at) : first_at, last_at: now }
  }
}
