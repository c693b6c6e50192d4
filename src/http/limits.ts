// The service's own limits per client address: a fixed window in memory, one per node.

import type { Clock } from '../base/clock.ts'

/** Past this many addresses the windows that have ended are dropped, then the oldest. */
const addresses_max = 10_000

interface Window {
  used: number
  ends: number
}

export class AddressLimit {
  readonly #windows = new Map<string, Window>()

  constructor(
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly window_ms: number,
  ) {}

  /** Counts one; false when the address has used up its number. */
  take(address: string): boolean {
    const window = this.#windowOf(address)
    if (window.used >= this.limit) return false
    window.used += 1
    return true
  }

  /** Takes one back that did not count in the end. */
  giveBack(address: string): void {
    const window = this.#windows.get(address)
    if (window && window.used > 0) window.used -= 1
  }

  /** Whole seconds until the window of this address ends, at least 1. */
  retryAfter(address: string): number {
    const window = this.#windows.get(address)
    return Math.max(1, Math.ceil(((window?.ends ?? 0) - this.clock.monotonic()) / 1_000))
  }

  #windowOf(address: string): Window {
    const now = this.clock.monotonic()
    const known = this.#windows.get(address)
    if (known && known.ends > now) return known
    if (this.#windows.size >= addresses_max) this.#makeRoom(now)
    const window = { used: 0, ends: now + this.window_ms }
    this.#windows.delete(address)
    this.#windows.set(address, window)
    return window
  }

  #makeRoom(now: number): void {
    for (const [address, { ends }] of this.#windows) if (ends <= now) this.#windows.delete(address)
    const oldest = this.#windows.keys().next().value
    if (this.#windows.size >= addresses_max && oldest !== undefined) this.#windows.delete(oldest)
  }
}
