// One look for all who ask at a time: however many ask, there is one under way.

import type { Clock, Millis } from './clock.ts'

export class SharedLook<T> {
  #under_way: Promise<T> | null = null
  #found: { value: T; until: Millis } | null = null

  /** The result of a look holds for `fresh_ms` from its beginning. A failure is for those who waited for it. */
  constructor(
    private readonly clock: Clock,
    private readonly fresh_ms: number,
    private readonly look: () => Promise<T>,
  ) {}

  async get(): Promise<T> {
    const now = this.clock.monotonic()
    if (this.#found && now < this.#found.until) return this.#found.value
    this.#found = null
    this.#under_way ??= this.#begin(now).finally(() => {
      this.#under_way = null
    })
    return this.#under_way
  }

  async #begin(now: Millis): Promise<T> {
    const value = await this.look()
    this.#found = { value, until: now + this.fresh_ms }
    return value
  }
}
