// Where a counter stands, without counting.

import type { Millis } from '../base/clock.ts'
import {
  type Algorithm,
  bucketEnd,
  bucketsAt,
  type Check,
  ceilingOf,
  decideFixed,
  expiryOf,
  fadingOf,
} from './window.ts'

/** A stored counter, or its tombstone. */
export interface Known {
  /** A tombstone has none. */
  value: string | null
  limit: number
  window_ms: number
  hits: number
  /** Null: of a fixed window. */
  previous: number | null
  expires_at: Millis
}

export interface Standing {
  count: number
  remaining: number
  reset_at: Millis
  window_expired: boolean
  limit: number
  /** Null when nothing is known. */
  window_ms: number | null
}

/** Where a counter stands. Null: nothing is known of it. */
export function standingOf(known: Known | null, now: Millis): Standing {
  if (!known) {
    return { count: 0, remaining: 0, reset_at: now, window_expired: true, limit: 0, window_ms: null }
  }
  const { limit, window_ms } = known
  const ceiling = ceilingOf(limit)
  // The clock was set back: the window has begun now.
  const latest = expiryOf(windowOf(known), window_ms, now)
  if (known.value !== null && known.expires_at > latest)
    return standingOf({ ...known, expires_at: latest }, now)
  if (known.value === null || known.expires_at <= now) {
    const reset_at = known.expires_at
    return { count: 0, remaining: ceiling, reset_at, window_expired: true, limit, window_ms }
  }
  if (known.previous === null) {
    const { allowed: _, ...standing } = decideFixed({ limit } as Check, known)
    return { ...standing, window_expired: false, limit, window_ms }
  }
  const buckets = bucketsAt({ ...known, previous: known.previous }, window_ms, now)!
  const count = buckets.hits + Math.floor(fadingOf(buckets, window_ms, now))
  return {
    count,
    remaining: Math.max(0, ceiling - count),
    reset_at: bucketEnd(buckets, window_ms),
    window_expired: false,
    limit,
    window_ms,
  }
}

/** The kind of window. */
export function windowOf({ previous }: Pick<Known, 'previous'>): Algorithm {
  return previous === null ? 'fixed_window' : 'sliding_window'
}
