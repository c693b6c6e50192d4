// Outages of PostgreSQL. Once no connection is there and none can be opened, calls fail at once, and one probe at a time
// finds out when the server is back: a pool without connections opens all of them for a single call.

import { type Clock, minute_ms, second_ms } from '../base/clock.ts'
import { randomStep } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { connectionFault, DbError, isLost } from './errors.ts'
import type { Pool } from './postgres-pool.ts'

const pause_ms_min = limit(
  'postgres.probe_least',
  50,
  'milliseconds',
  'The first pause before a connection is tried again when PostgreSQL is away; it doubles. Calls are refused as UNAVAILABLE meanwhile. Each pause is cut by up to half at random, so that nodes do not try together.',
)
const pause_ms_max = limit(
  'postgres.probe',
  500,
  'milliseconds',
  'The longest pause before a connection is tried again when PostgreSQL is away.',
)
/** An outage that begins sooner after the last one goes on with its pauses, and is reported once this time is over. */
const apart_ms = 10 * second_ms
const report_every_ms = minute_ms

export interface Outage {
  /** Host and port. */
  server: string
  /** The time since it began. */
  ms: number
}

export interface OutageListener {
  /** No connection can be opened. Called when that begins, and once a minute while it lasts. */
  onAway(outage: Outage & { reason: string }): void
  /** Called once for an outage that was reported. */
  onBack(outage: Outage): void
}

export class Outages {
  /** No connection can be opened: a call that begins now gets `refusal`. */
  is_on = false
  /** How many have begun. */
  count = 0
  #failure: unknown = null
  #began_at = 0
  #ended_at = Number.NEGATIVE_INFINITY
  #report_at = Number.NEGATIVE_INFINITY
  #is_reported = false
  #pause_ms = pause_ms_min
  #timer: Timer | undefined
  #is_probing = false
  /** Before the database was found usable its failures are those of the start. */
  #is_started = false

  constructor(
    private readonly server: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly pool: Pick<Pool, 'probe' | 'ask'>,
    private readonly listener: OutageListener | undefined,
  ) {}

  start(): void {
    this.#is_started = true
  }

  refusal(): DbError {
    return new DbError('lost', this.#reason, { cause: this.#failure })
  }

  /** `count`: of outages when the call began that fails so. One that began before the last of them says nothing of now. */
  notice(error: unknown, count: number): void {
    if (this.is_on || !this.#is_started) return
    const fault = connectionFault(error)
    if (fault === 'unopened' && count === this.count) this.#begin(error)
    else if (fault !== null) void this.#look()
  }

  async #look(): Promise<void> {
    if (this.#is_probing) return
    this.#is_probing = true
    const failure = await failureOf(this.pool.probe())
    const is_let_in = this.is_on || connectionFault(failure) === null
    // A server that lets no more in may leave those that are there.
    const is_alone = !is_let_in && connectionFault(await failureOf(this.pool.ask())) !== null
    this.#is_probing = false
    if (!this.#is_started) return
    if (this.is_on) this.#judge(failure)
    else if (is_alone) this.#begin(failure)
  }

  #judge(failure: unknown): void {
    // Another error is an answer of the server, on a connection.
    const is_back = connectionFault(failure) === null && !isLost(failure)
    if (is_back) this.#end()
    else this.#goOn(failure)
  }

  #goOn(failure: unknown): void {
    this.#failure = failure
    this.#report()
    this.#lookLater()
  }

  #begin(failure: unknown): void {
    this.is_on = true
    this.count += 1
    this.#began_at = this.clock.monotonic()
    if (this.#began_at - this.#ended_at >= apart_ms) this.#pause_ms = pause_ms_min
    this.#goOn(failure)
  }

  #lookLater(): void {
    clearTimeout(this.#timer)
    const part = randomStep() / 65_536
    this.#timer = setTimeout(() => this.#look(), this.#pause_ms * (0.5 + part / 2))
    this.#timer.unref()
    this.#pause_ms = Math.min(2 * this.#pause_ms, pause_ms_max)
  }

  #report(): void {
    const now = this.clock.monotonic()
    if (now < this.#report_at) return
    this.#report_at = now + report_every_ms
    this.#is_reported = true
    this.listener?.onAway({ server: this.server, ms: now - this.#began_at, reason: this.#reason })
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.is_on = false
    this.#ended_at = this.clock.monotonic()
    if (!this.#is_reported) return
    this.#is_reported = false
    this.#report_at = this.#ended_at + apart_ms
    this.listener?.onBack({ server: this.server, ms: this.#ended_at - this.#began_at })
  }

  stop(): void {
    this.#is_started = false
    clearTimeout(this.#timer)
  }

  get #reason(): string {
    return this.#failure instanceof Error ? this.#failure.message : String(this.#failure)
  }
}

async function failureOf(question: Promise<unknown>): Promise<unknown> {
  return question.then(
    () => null,
    (error: unknown) => error,
  )
}
