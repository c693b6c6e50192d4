// Sets when the worker runs: at the time when the next job falls due, and once a second for what other nodes enqueued.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import * as search from './search-store.ts'
import type { JobWorker } from './worker.ts'

/** How often jobs of other nodes, and leases that ended, are looked for. */
export const poll_ms = 1_000
/** The same while due jobs wait for room, or were left out by a lease. */
export const backlog_poll_ms = 100
/** Jobs that are enqueued meanwhile are looked at this much later. */
const backlog_wake_ms = 20

/** Two dispatches are this far apart at least, so that jobs that fall due one after the other share a commit. */
export const apart_ms_min = limit(
  'jobs.dispatches_apart',
  10,
  'milliseconds',
  'The shortest time between two searches for due jobs: jobs that fall due in between are leased together. With TICK=external, and while jobs wait for permits, searches follow each other at once.',
)

export interface TimerOptions {
  db: Db
  clock: Clock
  worker: JobWorker
  /** TICK=internal: runs on its own. Otherwise only kinds that start at once do, and all others at ticks. */
  internal: boolean
  /** Pauses or resumes a bounded part of what is left, for the tenants after this one; skips those that fail while `goesOn`.
   * Returns where to continue, or null when none is left anywhere. */
  pauseOrResumeStep(after_tenant_id: string, goesOn: () => boolean): Promise<string | null>
  onError: (error: unknown) => void
}

export class JobTimer {
  #stopped = false
  #timer: Timer | undefined
  /** With TICK=external: for what was enqueued while jobs waited for room. */
  #dispatch_timer: Timer | undefined
  /** The time that the timer is set for. */
  #wakes_at = Number.POSITIVE_INFINITY
  /** When it ran last, on the monotonic clock. */
  #ran_at = Number.NEGATIVE_INFINITY
  #running: Promise<void> = Promise.resolve()
  #pause_wanted = false
  #pausing: Promise<void> | null = null

  constructor(private readonly options: TimerOptions) {}

  /** Due jobs run now; with TICK=external those that wait for no tick. */
  start(): void {
    this.#setTimer(this.options.clock.now())
  }

  /** A job falls due at `due_at`. `at_once`: it waits for no tick. */
  wake(due_at: Millis, at_once = false): void {
    if (this.#stopped) return
    const now = this.options.clock.now()
    // Where jobs wait for room, each message for a dead receiver would otherwise cost a look at all of them.
    const soonest = this.options.worker.hasBacklog ? now + backlog_wake_ms : now
    if (this.options.internal || (at_once && due_at > now)) this.#setTimer(Math.max(due_at, soonest))
    else if (due_at <= now) this.#dispatchAt(soonest)
  }

  #setTimer(at: Millis): void {
    if (this.#stopped || at >= this.#wakes_at) return
    clearTimeout(this.#timer)
    this.#wakes_at = at
    const { clock, worker } = this.options
    const now = clock.now()
    // A timer takes 24.8 days at most; looking once a second is enough for what is further away.
    const due_in_ms = Math.min(Math.max(0, at - now), poll_ms)
    const delay_ms = Math.max(due_in_ms, this.#ran_at + apart_ms_min - clock.monotonic())
    worker.expectDispatch(now + delay_ms)
    this.#timer = setTimeout(() => this.#run(), delay_ms)
  }

  #run(): void {
    this.#wakes_at = Number.POSITIVE_INFINITY
    this.options.worker.expectDispatch(this.#wakes_at)
    this.#ran_at = this.options.clock.monotonic()
    const looked_at = this.options.clock.now()
    this.#running = this.#dispatch().then(() => this.#setNext(looked_at))
  }

  async #dispatch(): Promise<void> {
    try {
      await this.options.worker.dispatchNew()
    } catch (error) {
      this.options.onError(error)
    }
  }

  /** `looked_at`: a job that fell due after it may not have been seen, nor one that is due later again because the clock
   * has gone back since. With TICK=external only jobs that wait for no tick set the timer. */
  async #setNext(looked_at: Millis): Promise<void> {
    const { db, clock, worker, internal, onError } = this.options
    const now = clock.now()
    const poll_at = now + (worker.hasBacklog ? backlog_poll_ms : poll_ms)
    const nextAt = internal ? search.nextAt : search.nextAtOnce
    try {
      const next_at = (await nextAt(db, Math.min(looked_at, now))) ?? Number.POSITIVE_INFINITY
      this.#setTimer(internal ? Math.min(next_at, poll_at) : next_at)
    } catch (error) {
      onError(error)
      this.#setTimer(poll_at)
    }
  }

  #dispatchAt(at: Millis): void {
    const delay_ms = at - this.options.clock.now()
    if (delay_ms <= 0) void this.#dispatch()
    else
      this.#dispatch_timer ??= setTimeout(() => {
        this.#dispatch_timer = undefined
        void this.#dispatch()
      }, delay_ms)
  }

  /** The jobs of some tenant are to be paused, or resumed. */
  pauseOrResume(): void {
    if (this.#stopped) return
    this.#pause_wanted = true
    this.#pausing ??= this.#pauseWanted()
  }

  async #pauseWanted(): Promise<void> {
    await null // so that #pausing is set before it is cleared
    try {
      while (this.#pause_wanted) {
        this.#pause_wanted = false
        await this.#pauseAll(Number.POSITIVE_INFINITY)
      }
    } catch (error) {
      this.options.onError(error)
    } finally {
      this.#pausing = null
    }
  }

  /** Begins no further step after `until`, a monotonic time. False when that left something to do. */
  async #pauseAll(until: number): Promise<boolean> {
    const { clock, pauseOrResumeStep } = this.options
    const goesOn = () => !this.#stopped && clock.monotonic() < until
    let after_tenant_id: string | null = ''
    while (after_tenant_id !== null && goesOn()) {
      after_tenant_id = await pauseOrResumeStep(after_tenant_id, goesOn)
      if (after_tenant_id !== null) this.wake(clock.now()) // for jobs that were resumed and are due
    }
    return after_tenant_id === null
  }

  /** The same within a tick, up to a monotonic deadline; the rest continues in the background. */
  async pauseOrResumeUntil(until: number): Promise<void> {
    const all = await this.#pauseAll(until).catch(this.options.onError)
    if (all === false) this.pauseOrResume()
  }

  /** Nothing more is started; resolves when no step is in flight. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#dispatch_timer)
    await this.#running
    await this.#pausing
  }
}
