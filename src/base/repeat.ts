// Work that is done again and again by this process alone.

import type { Millis } from './clock.ts'

/** Does its work every so often, counted from the end of the last time, from `start` until `stop`. */
export class Repeat {
  #timer: Timer | undefined

  constructor(
    private readonly every_ms: Millis,
    private readonly work: () => Promise<void>,
  ) {}

  /** A failure is reported, and the work goes on. */
  start(onError: (error: unknown) => void): void {
    this.#timer = setTimeout(async () => {
      await this.work().catch(onError)
      if (this.#timer) this.start(onError)
    }, this.every_ms)
  }

  /** Once more, and no longer. Rejects when that fails. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.work()
  }
}
