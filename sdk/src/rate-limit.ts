// client.rateLimit

import { WaystationTimeoutError } from './errors.ts'
import * as generated from './generated-resources.ts'
import type { CallOptions } from './transport.ts'
import type { RateLimitAllowed, RateLimitBlocked } from './types.ts'

export interface RateLimitRule {
  /** The most hits in a window; at least 1. */
  limit: number
  windowSeconds: number
  /** Default fixed_window, which begins at the first hit. */
  algorithm?: 'fixed_window' | 'sliding_window' | undefined
  /** How many hits this is; default 1. */
  cost?: number | undefined
}

export type RateLimitResult =
  | (RateLimitAllowed & { allowed: true; retryAfter?: never })
  | (RateLimitBlocked & { allowed: false })

export interface RateLimitWaitOptions extends CallOptions {
  /** Throws WaystationTimeoutError instead of waiting for longer than this in all. */
  max_wait_ms?: number | undefined
}

/** Spreads the callers that wait for the same window. */
const spread_ms_max = 1_000

export class RateLimit extends generated.RateLimit {
  /** Counts a hit. A blocked check is a result, not an error. */
  override check(key: string, rule: RateLimitRule, options: CallOptions = {}): Promise<RateLimitResult> {
    return super.check(key, rule, options) as Promise<RateLimitResult>
  }

  /** Checks until it is allowed, and waits for `retryAfter` in between. */
  async wait(
    key: string,
    rule: RateLimitRule,
    { max_wait_ms = Number.POSITIVE_INFINITY, ...options }: RateLimitWaitOptions = {},
  ): Promise<RateLimitResult & { allowed: true }> {
    const { sleep, random } = this.transport.platform
    if (Number.isNaN(max_wait_ms)) throw new TypeError('max_wait_ms must be a number')
    let waited_ms = 0
    for (;;) {
      const result = await this.check(key, rule, options)
      if (result.allowed) return result
      const blocked_ms = result.retryAfter * 1_000
      const left_ms = max_wait_ms - waited_ms
      if (blocked_ms > left_ms) throw stillBlocked(waited_ms, result.retryAfter, left_ms)
      const wait_ms = Math.min(blocked_ms + Math.floor(random() * spread_ms_max), left_ms)
      await sleep(wait_ms, options.signal)
      waited_ms += wait_ms
    }
  }
}

function stillBlocked(waited_ms: number, retry_after: number, left_ms: number): WaystationTimeoutError {
  const left = left_ms > 0 ? `only ${left_ms / 1_000} s are` : 'no time is'
  return new WaystationTimeoutError(
    waited_ms,
    `Still blocked for ${retry_after} s, and ${left} left to wait.`,
  )
}
