// Events that come often, of which one a minute is told, such as by a line of the log.

import { type Clock, minute_ms } from './clock.ts'

export class OnceAMinute {
  readonly #told_at = new Map<string, number>()

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** True when nothing of this kind was told within the last minute; it counts as told now. */
  isDue(kind: string): boolean {
    const now = this.clock.monotonic()
    if (now - (this.#told_at.get(kind) ?? Number.NEGATIVE_INFINITY) < minute_ms) return false
    this.#told_at.set(kind, now)
    return true
  }
}
