// The time of PostgreSQL, so that nodes whose clocks disagree agree.

import type { SQL } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'

/** The clock of a machine stands while the machine does, and that of the server may be set: leases are wrong for so long. */
const sync_ms = 1_000

/** In microseconds. The text of a fraction depends on extra_float_digits, which may be set for the database or the role. */
const NOW = 'select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now'

/** Runs a question once a connection is free for it. */
type Connected = (question: (pool: SQL) => Promise<void>) => Promise<void>

/** The server's clock, carried on between two questions by a clock that never jumps. */
export class DatabaseClock implements Clock {
  /** How far the server's time is ahead of the local one; null before the first answer. */
  #ahead_ms: number | null = null
  #followed = 0
  #is_asking = false
  #timer: Timer | undefined

  constructor(
    private readonly connected: Connected,
    private readonly local: Clock,
  ) {}

  now(): Millis {
    return Math.floor((this.#ahead_ms ?? 0) + this.local.monotonic())
  }

  monotonic(): number {
    return this.local.monotonic()
  }

  get followed(): number {
    return this.#followed
  }

  async begin(): Promise<void> {
    await this.#ask()
    this.#timer = setInterval(() => void this.#askAgain(), sync_ms)
  }

  async #askAgain(): Promise<void> {
    if (this.#is_asking) return
    this.#is_asking = true
    await this.#ask().catch(() => {}) // away: the last answer serves
    this.#is_asking = false
  }

  /**
   * The server's clock was read somewhere between question and answer. The time moves no further than that demands: answers of
   * different speed would move it to and fro.
   */
  #ask(): Promise<void> {
    return this.connected(async (pool) => {
      const before = this.local.monotonic()
      const [row] = (await pool.unsafe(NOW)) as { now: number | bigint }[]
      const after = this.local.monotonic()
      const server_ms = Number(row!.now) / 1_000
      const ahead_ms = this.#ahead_ms ?? server_ms - (before + after) / 2
      this.#ahead_ms = Math.min(Math.max(ahead_ms, server_ms - after), server_ms - before)
      this.#followed += 1
    })
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
