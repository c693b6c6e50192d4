// The time of PostgreSQL, so that nodes whose clocks disagree agree.

import type { SQL } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

const sync_ms = 30_000
/** A slower answer says less of the time than the one before it. */
const round_trip_ms_max = limit(
  'postgres.clock_round_trip',
  250,
  'milliseconds',
  'A slower answer about the time of PostgreSQL is not believed.',
)

/** In microseconds. The text of a fraction depends on extra_float_digits, which may be set for the database or the role. */
const NOW = 'select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now'

/** Runs a question once a connection is free for it. */
type Connected = (question: (pool: SQL) => Promise<void>) => Promise<void>

/** The server's clock, carried on between two questions by a clock that never jumps. */
export class DatabaseClock implements Clock {
  readonly #connected: Connected
  readonly #local: Clock
  #server_ms = 0
  #asked_at = 0
  #timer: Timer | undefined

  constructor(connected: Connected, local: Clock) {
    this.#connected = connected
    this.#local = local
  }

  now(): Millis {
    return Math.floor(this.#server_ms + this.#local.monotonic() - this.#asked_at)
  }

  monotonic(): number {
    return this.#local.monotonic()
  }

  async begin(): Promise<void> {
    await this.#ask(Number.POSITIVE_INFINITY)
    this.#timer = setInterval(() => this.#ask(round_trip_ms_max).catch(() => {}), sync_ms) // away: the last answer serves
  }

  /** Keeps an answer that came within this time: the server's clock was read somewhere in between. */
  #ask(within_ms: number): Promise<void> {
    return this.#connected(async (pool) => {
      const before = this.#local.monotonic()
      const [row] = (await pool.unsafe(NOW)) as { now: number | bigint }[]
      const after = this.#local.monotonic()
      if (after - before > within_ms) return
      this.#server_ms = Number(row!.now) / 1_000
      this.#asked_at = (before + after) / 2
    })
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
