// The log of a clock that was set: leases, timeouts and expiries go by it, so it explains what comes too early or too late.

import { type Clock, second_ms } from '../base/clock.ts'
import type { Log } from '../http/answers.ts'

/** Less is what NTP corrects, and what answers of the database about its time differ by. */
const jump_ms = second_ms

export class ClockLog {
  #ahead_ms: number

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#ahead_ms = this.#aheadMs()
  }

  /** Once a second. */
  look(): void {
    const ahead_ms = this.#aheadMs()
    const by_ms = ahead_ms - this.#ahead_ms
    this.#ahead_ms = ahead_ms
    if (Math.abs(by_ms) < jump_ms) return
    const seconds = Math.round(Math.abs(by_ms) / second_ms)
    this.log.warn({ seconds }, by_ms > 0 ? ahead_message : back_message)
  }

  /** How far the clock is ahead of the time that passes. */
  #aheadMs(): number {
    return this.clock.now() - this.clock.monotonic()
  }
}

const ahead_message =
  'the clock jumped ahead: what falls due or expires in between does so now; the clock was set, or the machine was suspended'
const back_message =
  'the clock was set back: what is due comes later by that much, and what expires lasts longer; audit entries repeat the last time until it is reached'
