// Work that this process alone repeats.

import type { Millis } from './clock.ts'

/** Runs its work at an interval, counted from the end of the last run, from `start` until `stop`. */
export class Repeat {
  #timer: Timer | undefined
  #running: Promise<void> = Promise.resolve()

  constructor(
    private readonly every_ms: Millis,
    private readonly work: () => Promise<void>,
  ) {}

  /** A failure is reported, and the work continues. */
  start(onError: (error: unknown) => void): void {
    this.#timer = setTimeout(async () => {
      this.#running = this.work().catch(onError)
      await this.#running
      if (this.#timer) this.start(onError)
    }, this.every_ms)
  }

  /** Runs it a last time, after the run that is under way. Rejects when that fails. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#running
    await this.work()
  }
}
