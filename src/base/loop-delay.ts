// The delay of the event loop: how much later than asked a timer fires, because other work ran.

import { type Clock, hour_ms } from './clock.ts'

const every_ms = 50

/**
 * The delays of all looks that were due while the loop stood still: a long one lets a single timer fire, and counted once it would
 * be rare among those that were in time, however much of the time it took.
 */
export function* delaysWithin(delay_ms: number): Generator<number> {
  yield delay_ms
  const least_ms = Math.max(0, delay_ms - hour_ms) // a machine that slept for days must not count for seconds
  for (let left_ms = delay_ms - every_ms; left_ms > least_ms; left_ms -= every_ms) yield left_ms
}

export class LoopDelay {
  #timer: Timer | undefined
  #due_at = 0

  constructor(
    private readonly clock: Clock,
    private readonly observe: (delay_ms: number) => void,
  ) {}

  start(): void {
    this.#due_at = this.clock.monotonic() + every_ms
    this.#timer = setInterval(() => this.#fired(), every_ms)
    this.#timer.unref()
  }

  #fired(): void {
    const now = this.clock.monotonic()
    this.observe(Math.max(0, now - this.#due_at))
    this.#due_at = now + every_ms
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
