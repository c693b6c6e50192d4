// The state of a process that cannot keep up: its event loop has been late for seconds. New work is refused until it is
// in time again; what stops agents, revokes keys and decides goes on.

import type { Millis } from './clock.ts'
import { ApiError, type ShedReason } from './errors.ts'
import { limit } from './limit.ts'

const delay_ms_max = limit(
  'http.loop_delay_ms',
  250,
  'milliseconds',
  'The delay of the event loop that counts as overload once it has lasted.',
)

const delayed_ms_max = limit(
  'http.loop_delayed_ms',
  2_000,
  'milliseconds',
  'How long the event loop may be delayed by more than http.loop_delay_ms; past it new work gets 503 UNAVAILABLE until the delay has ended.',
)

export class Overload {
  #refuses = false
  /** When the first of the delays in a row was seen that are too long. */
  #since: Millis | null = null

  /** Called when refusals begin and when they end. */
  constructor(private readonly onChange: (refuses: boolean) => void = () => {}) {}

  /** True while new work is refused. */
  get refuses(): boolean {
    return this.#refuses
  }

  /** Takes a delay of the event loop, as seen at `now` on a clock that never runs backwards. */
  delayed(delay_ms: number, now: Millis): void {
    if (delay_ms <= delay_ms_max) this.#since = null
    else this.#since ??= now
    this.#set(this.#since !== null && now - this.#since >= delayed_ms_max)
  }

  #set(refuses: boolean): void {
    if (refuses === this.#refuses) return
    this.#refuses = refuses
    this.onChange(refuses)
  }
}

/**
 * Refusals of requests that have had no effect: 503 UNAVAILABLE, made once for each Retry-After, because an error costs
 * more to make than to throw. The seconds come in turn: clients that were refused together do not return together.
 */
export class Refusals {
  readonly #errors: ApiError[]
  #next = 0

  /** `reason`: for the caller, in `details`. */
  constructor(shed: ShedReason, reason?: string) {
    const details = reason === undefined ? {} : { details: { reason } }
    this.#errors = [1, 2, 3].map(
      (retry_after_seconds) => new ApiError('UNAVAILABLE', { ...details, retry_after_seconds, shed }),
    )
  }

  next(): ApiError {
    this.#next = (this.#next + 1) % this.#errors.length
    return this.#errors[this.#next]!
  }
}

/** Of new work while the event loop is delayed. */
export const overloaded = new Refusals('event_loop', 'the service is overloaded')
