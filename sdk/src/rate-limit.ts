// client.rateLimit

import { WaystationTimeoutError } from './errors.ts'
import { split } from './options.ts'
import { Pages } from './pages.ts'
import type { CallOptions, Transport } from './transport.ts'
import type {
  Operations,
  RateLimitAllowed,
  RateLimitBlocked,
  RateLimitCounter,
  RateLimitReset,
  RateLimitStatus,
} from './types.ts'

export interface RateLimitRule {
  /** Most hits in a window; at least 1. */
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
  /** Rather than waiting for longer than this in all, it throws WaystationTimeoutError. */
  max_wait_ms?: number | undefined
}

/** Those who wait for the same window do not all come back in the same moment. */
const spread_ms_max = 1_000

export class RateLimit {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Counts a hit. That it is blocked is a result, not an error. */
  async check(key: string, rule: RateLimitRule, options: CallOptions = {}): Promise<RateLimitResult> {
    return (await this.#transport.call(
      'checkRateLimit',
      { body: { key, ...rule } },
      options,
    )) as RateLimitResult
  }

  /** Checks until it is allowed, and waits as long as it is told to in between. */
  async wait(
    key: string,
    rule: RateLimitRule,
    { max_wait_ms = Number.POSITIVE_INFINITY, ...options }: RateLimitWaitOptions = {},
  ): Promise<RateLimitResult & { allowed: true }> {
    const { sleep, random } = this.#transport.platform
    let waited_ms = 0
    for (;;) {
      const result = await this.check(key, rule, options)
      if (result.allowed) return result
      const wait_ms = result.retryAfter * 1_000 + Math.floor(random() * spread_ms_max)
      if (waited_ms + wait_ms > max_wait_ms) {
        throw new WaystationTimeoutError(waited_ms, `Still blocked after ${waited_ms} ms.`)
      }
      await sleep(wait_ms, options.signal)
      waited_ms += wait_ms
    }
  }

  /** Where the counter stands, without counting. One that is named `check` cannot be asked for. */
  status(key: string, options: CallOptions = {}): Promise<RateLimitStatus> {
    return this.#transport.call('getRateLimit', { params: { key } }, options)
  }

  /** Counters whose window is running, the one that ends first first; the service shows about 10,000 at most. */
  list(given: Operations['listRateLimits']['query'] & CallOptions = {}): Pages<RateLimitCounter> {
    const [{ limit, offset, prefix }, options] = split(given)
    return new Pages<RateLimitCounter>(offset === undefined ? undefined : String(offset), async (cursor) => {
      const from = Number(cursor ?? 0)
      const query = { limit, offset: from, prefix }
      const { items, total } = await this.#transport.call('listRateLimits', { query }, options)
      const next = from + items.length
      return { items, next_cursor: items.length > 0 && next < total ? String(next) : null }
    })
  }

  /** Ends the window of the counter. */
  reset(key: string, options: CallOptions = {}): Promise<RateLimitReset> {
    return this.#transport.call('resetRateLimit', { body: { key } }, options)
  }
}
