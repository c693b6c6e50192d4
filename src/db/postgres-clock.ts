// The time of PostgreSQL, so that nodes whose clocks disagree agree.

import type { SQL } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

/** The clock of a machine stands while the machine does, and that of the server may be set: leases are wrong for so long. */
const sync_ms = 1_000
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
  /** Null before the first answer. */
  #server: { ms: number; at: number } | null = null
  #is_asking = false
  #timer: Timer | undefined

  constructor(connected: Connected, local: Clock) {
    this.#connected = connected
    this.#local = local
  }

  now(): Millis {
    return Math.floor(this.#at(this.#local.monotonic()))
  }

  monotonic(): number {
    return this.#local.monotonic()
  }

  async begin(): Promise<void> {
    await this.#ask(Number.POSITIVE_INFINITY)
    this.#timer = setInterval(() => void this.#askAgain(), sync_ms)
  }

  async #askAgain(): Promise<void> {
    if (this.#is_asking) return
    this.#is_asking = true
    await this.#ask(round_trip_ms_max).catch(() => {}) // away: the last answer serves
    this.#is_asking = false
  }

  /** Keeps an answer that came within this time: the server's clock was read somewhere in between. */
  #ask(within_ms: number): Promise<void> {
    return this.#connected(async (pool) => {
      const before = this.#local.monotonic()
      const [row] = (await pool.unsafe(NOW)) as { now: number | bigint }[]
      const after = this.#local.monotonic()
      if (after - before > within_ms) return
      const server = { ms: Number(row!.now) / 1_000, at: (before + after) / 2 }
      // A time that may still be exact is kept, so that answers of different speed do not move it to and fro.
      const is_kept = this.#server && Math.abs(server.ms - this.#at(server.at)) <= (after - before) / 2
      if (!is_kept) this.#server = server
    })
  }

  #at(monotonic: number): number {
    const { ms, at } = this.#server ?? { ms: 0, at: monotonic }
    return ms + monotonic - at
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
