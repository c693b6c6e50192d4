// The delay of the event loop: how much later than asked a timer fires, because other work ran.

import type { Clock } from './clock.ts'

const every_ms = 50

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
