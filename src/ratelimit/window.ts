// A check and its decision: every rule of windows, without a database.

import { type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export type Algorithm = 'fixed_window' | 'sliding_window'

export const key_bytes_max = limit(
  'rate_limit.key_bytes',
  256,
  'bytes',
  'The name of a rate counter. Past it 400.',
)
export const window_seconds_max = limit(
  'rate_limit.window',
  31_536_000,
  'seconds',
  'The length of a window. Past it 400.',
)
/** The largest count. A limit above it counts as this. */
const count_max = Number.MAX_SAFE_INTEGER

export interface Check {
  key: string
  /** As it was sent: any number of 1 or more. */
  limit: number
  window_ms: number
  algorithm: Algorithm
  cost: number
}

/** A counter as a check has left it. */
export interface Counted {
  /** Of the fixed window, or of the current bucket. */
  hits: number
  expires_at: Millis
}

export interface CountedSliding extends Counted {
  /** Hits of the bucket before. */
  previous: number
  /** Hits that this check took of the limit: its cost, or 0 when it is blocked. */
  taken: number
}

/** The answer to a check. */
export interface Decision {
  allowed: boolean
  /** After this check; above the limit exactly when it is blocked. */
  count: number
  remaining: number
  reset_at: Millis
}

/** A check compares whole numbers, so 2.5 allows 2. */
export function ceilingOf(limit: number): number {
  return Math.min(Math.floor(limit), count_max)
}

/** Hits count whether they are allowed or not, so the count alone decides. */
export function decideFixed({ limit }: Check, { hits, expires_at }: Counted): Decision {
  const ceiling = ceilingOf(limit)
  return {
    allowed: hits <= ceiling,
    count: hits,
    remaining: Math.max(0, ceiling - hits),
    reset_at: expires_at,
  }
}

/**
 * The statement has decided, with the arithmetic of `fits`, and stored nothing of a blocked check: so the count of
 * an allowed check is at most the limit, and of any other above it.
 */
export function decideSliding(check: Check, counted: CountedSliding, now: Millis): Decision {
  const ceiling = ceilingOf(check.limit)
  const before = { ...counted, hits: counted.hits - counted.taken }
  const counted_in_all = before.hits + check.cost + Math.floor(fadingOf(before, check.window_ms, now))
  const count = Math.min(counted_in_all, count_max + 1)
  if (counted.taken > 0) {
    return { allowed: true, count, remaining: ceiling - count, reset_at: bucketEnd(counted, check.window_ms) }
  }
  return { allowed: false, count, remaining: 0, reset_at: passesAt(check, before, ceiling, now) }
}

type Buckets = Pick<CountedSliding, 'hits' | 'previous' | 'expires_at'>

/**
 * The hits of the bucket before that still count, as if they had been spread evenly over it. Rounded down where it is
 * compared: otherwise a limit of 1 would let a client pass in every second window only.
 */
export function fadingOf({ previous, expires_at }: Buckets, window_ms: number, now: Millis): number {
  return (previous * (expires_at - (now + window_ms))) / window_ms
}

/** True when this cost may be added. Comparing with the next whole number rounds down without a rounding. */
function fits(buckets: Buckets, window_ms: number, now: Millis, cost: number, ceiling: number): boolean {
  return fadingOf(buckets, window_ms, now) < ceiling - buckets.hits - cost + 1
}

/** A bucket expires one window after its end: until then it is the one before. */
export function bucketEnd({ expires_at }: Buckets, window_ms: number): Millis {
  return expires_at - window_ms
}

/** When a counter that begins now expires: a sliding one is kept for one window more, as the bucket before. */
export function expiryOf(algorithm: Algorithm, window_ms: number, now: Millis): Millis {
  return now + (algorithm === 'fixed_window' ? 1 : 2) * window_ms
}

/** The buckets as they are at `now`: past the end of the current one a new one follows. Null: both are over. */
export function bucketsAt(buckets: Buckets, window_ms: number, now: Millis): Buckets | null {
  if (now >= buckets.expires_at) return null
  if (now < bucketEnd(buckets, window_ms)) return buckets
  return { previous: buckets.hits, hits: 0, expires_at: buckets.expires_at + window_ms }
}

/** The first moment at which the same check would pass if none came before it; found by halving. */
function passesAt({ cost, window_ms }: Check, buckets: Buckets, ceiling: number, now: Millis): Millis {
  let blocked_at = now
  let passed_at = buckets.expires_at
  while (passed_at - blocked_at > 1) {
    const at = Math.floor((blocked_at + passed_at) / 2)
    if (passes(buckets, window_ms, at, cost, ceiling)) passed_at = at
    else blocked_at = at
  }
  return passed_at
}

function passes(buckets: Buckets, window_ms: number, at: Millis, cost: number, ceiling: number): boolean {
  const then = bucketsAt(buckets, window_ms, at)
  return then === null || fits(then, window_ms, at, cost, ceiling)
}

/** Whole seconds from now, rounded up, for Retry-After (RFC 9110 section 10.2.3) and `t`. */
export function secondsUntil(at: Millis, now: Millis): number {
  return Math.max(0, Math.ceil((at - now) / second_ms))
}

/** The largest Integer of a structured field (RFC 9651 section 3.3.1). */
const field_integer_max = 999_999_999_999_999

/** draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4. Its windows are whole seconds: others are rounded up. */
export function rateLimitHeaders(
  limit: number,
  window_ms: number | null,
  remaining: number,
  reset_seconds: number,
): Record<string, string> {
  const quota = Math.min(ceilingOf(limit), field_integer_max)
  const window = window_ms === null ? '' : `;w=${Math.ceil(window_ms / second_ms)}`
  return {
    'ratelimit-policy': `"default";q=${quota}${window}`,
    ratelimit: `"default";r=${Math.min(remaining, field_integer_max)};t=${reset_seconds}`,
  }
}
