import type { Clock } from '../../src/base/clock.ts'

/** A clock that moves only when it is told to. Starts at 2026-01-01T00:00:00.000Z. */
export class TestClock implements Clock {
  #now = Date.UTC(2026, 0, 1)
  #monotonic = 1_000
  #runs_since: number | null = null

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#monotonic + (this.#runs_since === null ? 0 : performance.now() - this.#runs_since)
  }

  /**
   * The monotonic time goes on as that of the machine; the wall clock stays where it is. A request that waits is then
   * answered in time; otherwise its connection ends, of which the browser complains on a page that is open for long.
   */
  letWaitsEnd(): void {
    this.#runs_since ??= performance.now()
  }

  advance(ms: number): void {
    this.#now += ms
    this.#monotonic += ms
  }

  /** Sets the wall clock alone, as an operator or NTP does. */
  jump(ms: number): void {
    this.#now += ms
  }
}

/** Runs as the clock of the machine does, and can be moved ahead of it. */
export class RunningClock extends TestClock {
  #ahead_ms = 0

  override now(): number {
    return Date.now() + this.#ahead_ms
  }

  override monotonic(): number {
    return performance.now() + this.#ahead_ms
  }

  override advance(ms: number): void {
    this.#ahead_ms += ms
  }
}
