// A test clock is advanced: from one due time to the next, and all that is due is finished before the time goes on.

import { iso, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { advance_ms_max, type TestTime } from '../clock/service.ts'
import type { Advanced } from '../contract/dependencies.ts'
import { type EventRow, eventOf, eventsKey } from '../contract/event.ts'
import type { Feature } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import { StaleLeases } from '../jobs/stale-leases.ts'
import type { JobWorker } from '../jobs/worker.ts'
import * as journal from '../journal/service.ts'
import type { Maintenance } from './tick.ts'

const shown_max = limit(
  'clock.events',
  1_000,
  'rows',
  'Events that the answer of `POST /v1/clock/advance` shows. `GET /v1/events` has the others.',
)
const read_max = limit(
  'clock.events_read',
  500,
  'rows',
  'Events that an advance of a test clock reads at once.',
)

export interface AdvanceOptions {
  db: Db
  time: TestTime
  worker: JobWorker
  maintenance: Maintenance
  features: readonly Feature[]
  journal: {
    changed(key: string): void
    number(tenant_id: string): Promise<void>
    settle(until: number): Promise<void>
    tick(until: number): Promise<void>
  }
}

/** How long an advance waits for jobs before it looks for leases that nobody works on. */
const look_ms = 1_000

export class ClockAdvance {
  readonly #leases: StaleLeases

  constructor(private readonly options: AdvanceOptions) {
    this.#leases = new StaleLeases(options.db)
  }

  /** Moves the time for all; returns the events of this tenant. Throws CLOCK_ADVANCING. */
  async advance(tenant_id: string, ms: Millis): Promise<Advanced> {
    const { db, time, journal: keeper, maintenance } = this.options
    const from = await time.begin()
    try {
      const until = db.clock.monotonic() + advance_ms_max
      await keeper.number(tenant_id)
      keeper.changed(eventsKey(tenant_id)) // events of an earlier process, which have numbers now, are sealed at this time
      const happened = new Happened(db, tenant_id, await journal.lastSeq(db, tenant_id))
      let done = await this.#moveTo(from + ms, until, happened)
      if (done) {
        // Nothing depends on when these run. They may remove events, which were read before.
        await maintenance.sweepUntil(until)
        await keeper.tick(until)
        done = await this.#finish(until, happened) // what these have left
      }
      const { counts, events } = happened
      const advanced_seconds = (time.now - from) / second_ms
      return { now: iso(time.now), advanced_seconds, done, counts, events: events.map(eventOf) }
    } finally {
      await time.end()
    }
  }

  /** False when the time of the call is over before. */
  async #moveTo(target: Millis, until: number, happened: Happened): Promise<boolean> {
    const { db, time } = this.options
    for (;;) {
      if (!(await this.#finish(until, happened))) return false
      if (time.now >= target) return true
      if (db.clock.monotonic() >= until) return false
      await time.moveTo(Math.min(target, (await this.#nextAt()) ?? target))
    }
  }

  /** Settles and reads what that has left. */
  async #finish(until: number, happened: Happened): Promise<boolean> {
    const is_settled = await this.#settle(until)
    await this.options.journal.number(happened.tenant_id) // what requests leave meanwhile too
    await happened.read()
    return is_settled
  }

  /**
   * Finishes all that is due. False when it is not, and the time of the call is over. No job is left when the look of the
   * keeper begins, so it finds all events that jobs have left on any node; those may wake jobs, which are looked for last.
   */
  async #settle(until: number): Promise<boolean> {
    const { db, time, worker, maintenance, journal: keeper } = this.options
    for (;;) {
      await worker.tick(Math.min(look_ms, Math.max(0, until - db.clock.monotonic())))
      await maintenance.expireUntil(until)
      await keeper.settle(until) // wakes subscriptions
      if (!(await worker.anyDue(time.now))) return true
      await this.#leases.look()
      if (db.clock.monotonic() >= until) return false
    }
  }

  async #nextAt(): Promise<Millis | null> {
    const { db, time, worker, features } = this.options
    const looks = features.flatMap(({ expiries }) => expiries?.nextAt ?? [])
    const expiring = await Promise.all(looks.map((look) => db.one(look, { now: time.now })))
    const due_at = await worker.nextAt(time.now)
    const times = [due_at, ...expiring.map((row) => row?.at ?? null)].filter((at) => at !== null)
    return times.length === 0 ? null : Math.min(...times)
  }
}

/** The events of a tenant that an advance has left, in their order. */
class Happened {
  readonly counts: Record<string, number> = {}
  readonly events: EventRow[] = []

  constructor(
    private readonly db: Db,
    readonly tenant_id: string,
    private after: number,
  ) {}

  async read(): Promise<void> {
    for (;;) {
      const look = { after: this.after, rows_max: read_max }
      const page = await journal.page(this.db, this.tenant_id, {}, look)
      for (const event of page) {
        this.counts[event.type] = (this.counts[event.type] ?? 0) + 1
        if (this.events.length < shown_max) this.events.push(event)
      }
      this.after = page.at(-1)?.seq ?? this.after
      if (page.length < read_max) return
    }
  }
}
