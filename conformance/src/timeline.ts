// Time, for checks that need it to pass. With a test clock the checks share one timeline: when all of them wait, the clock
// moves to the earliest of their times. Without one they wait for real.

import { Failure, holds, succeeded } from './assert.ts'
import type { Actor } from './tenant.ts'
import { pause } from './trial.ts'

/** The test clock of the service, if it has one. */
export class Clock {
  readonly #admin: () => Promise<Actor>
  #served: Promise<boolean> | null = null
  #advancing: Promise<void> = Promise.resolve()

  constructor(admin: () => Promise<Actor>) {
    this.#admin = admin
  }

  isServed(): Promise<boolean> {
    this.#served ??= this.#admin().then(async (admin) => (await admin.get('/v1/clock')).status === 200)
    return this.#served
  }

  /** One at a time: another advance meanwhile would be refused. */
  advance(seconds: number): Promise<void> {
    const advanced = this.#advancing.then(() => this.#advanceWhole(seconds))
    this.#advancing = advanced.catch(() => {})
    return advanced
  }

  /** A service may stop on the way, and say how far it came. */
  async #advanceWhole(seconds: number): Promise<void> {
    const admin = await this.#admin()
    for (let left = seconds; left > 0; ) {
      const answer = succeeded(await admin.post('/v1/clock/advance', { seconds: left }), 200)
      if (answer.done !== false) return
      holds(answer.advanced_seconds > 0, 'POST /v1/clock/advance is not done, and moved by nothing')
      left = Math.round((left - answer.advanced_seconds) * 1_000) / 1_000
    }
  }

  /** The service's time in milliseconds: when an entry of its audit log was made. */
  async now(): Promise<number> {
    const admin = await this.#admin()
    const entry = succeeded(await admin.post('/v1/audit', { action: 'conformance.time' }), 201)
    const now_ms = Date.parse(entry.created_at)
    holds(Number.isFinite(now_ms), `created_at of an entry is ${entry.created_at}`)
    return now_ms
  }
}

export interface Timeline {
  /** Lets this many seconds pass for the service. */
  wait(seconds: number): Promise<void>
  /** The service's time in milliseconds. */
  now(): Promise<number>
}

/** Time passes on its own. */
export function realTime(clock: Clock): Timeline {
  return { wait: (seconds) => pause(seconds * 1_000), now: () => clock.now() }
}

/** For checks that let no time pass. */
export function noTime(clock: Clock): Timeline {
  return {
    wait: () => Promise.reject(new Failure('this check lets time pass and does not say so')),
    now: () => clock.now(),
  }
}

/** Moves the test clock once each of the checks that share it waits or has ended. */
export class SharedTime {
  readonly #clock: Clock
  #at_work = 0
  #waiting: { until_ms: number; resume: () => void; fail: (error: unknown) => void }[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A time to wait for is one of the service, whose clock runs on while checks work. */
  readonly timeline: Timeline = {
    now: () => this.#clock.now(),
    wait: async (seconds) => {
      // Whole seconds: checks that wait alike go on together.
      const until_ms = Math.ceil((await this.#clock.now()) / 1_000 + seconds) * 1_000
      await new Promise<void>((resume, fail) => {
        this.#waiting.push({ until_ms, resume, fail })
        this.leave()
      })
    },
  }

  /** A check begins. */
  enter(): void {
    this.#at_work += 1
  }

  /** A check has ended, or waits. */
  leave(): void {
    this.#at_work -= 1
    if (this.#at_work === 0 && this.#waiting.length > 0) void this.#advance()
  }

  async #advance(): Promise<void> {
    const next_ms = Math.min(...this.#waiting.map(({ until_ms }) => until_ms))
    const [error, reached_ms] = await this.#moveTo(next_ms)
    const woken = this.#waiting.filter(({ until_ms }) => until_ms <= reached_ms)
    this.#waiting = this.#waiting.filter(({ until_ms }) => until_ms > reached_ms)
    this.#at_work = woken.length
    for (const { resume, fail } of woken) {
      if (error) fail(error)
      else resume()
    }
  }

  /** Returns the time that is reached, and why the clock did not move there. */
  async #moveTo(time_ms: number): Promise<[error: unknown, reached_ms: number]> {
    try {
      const now_ms = await this.#clock.now()
      if (time_ms > now_ms) await this.#clock.advance((time_ms - now_ms) / 1_000)
      return [null, Math.max(time_ms, now_ms)]
    } catch (error) {
      return [error, time_ms]
    }
  }
}
