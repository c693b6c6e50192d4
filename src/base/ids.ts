// Ids: a prefix that names the kind, then 26 characters that sort by time (the layout of ULID: 48 bits of
// milliseconds, 80 random bits, Crockford's base 32 in lower case).

import type { Millis } from './clock.ts'

export type IdPrefix = 'ten' | 'apk' | 'log' | 'req' | 'dlq' | 'lck' | 'sch' | 'chk' | 'evt'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const pairs = Array.from({ length: 1024 }, (_, n) => alphabet[n >> 5]! + alphabet[n & 31]!)

// Random bytes are drawn in one large piece: one call of the system's source serves 400 ids.
const pool = new Uint8Array(4_000)
let pool_used = pool.length

/** A fresh id of this kind, e.g. `log_01k9x3m6v2h8qa4n0r5t7w1z9c`. */
export function newId(prefix: IdPrefix, now: Millis): string {
  if (pool_used + 10 > pool.length) {
    crypto.getRandomValues(pool)
    pool_used = 0
  }
  const at = pool_used
  pool_used += 10
  return `${prefix}_${timePart(now)}${forty(at)}${forty(at + 5)}`
}

/** Sorts before every id made at `at` or later, and after every one made before. */
export function idBound(prefix: IdPrefix, at: Millis): string {
  return `${prefix}_${timePart(Math.max(0, at))}`
}

let last_time = -1
let last_time_part = ''

/** Ten characters, 50 bits, most significant first, so that text order is time order. */
function timePart(now: Millis): string {
  if (now === last_time) return last_time_part
  const high = Math.floor(now / 2 ** 30)
  const low = now % 2 ** 30
  last_time = now
  last_time_part =
    pairs[(high >> 10) & 1023]! +
    pairs[high & 1023]! +
    pairs[(low >> 20) & 1023]! +
    pairs[(low >> 10) & 1023]! +
    pairs[low & 1023]!
  return last_time_part
}

/** Eight characters from five bytes of the pool. */
function forty(at: number): string {
  const a = pool[at]!
  const b = pool[at + 1]!
  const c = pool[at + 2]!
  const d = pool[at + 3]!
  const e = pool[at + 4]!
  return (
    pairs[(a << 2) | (b >> 6)]! +
    pairs[((b & 63) << 4) | (c >> 4)]! +
    pairs[((c & 15) << 6) | (d >> 2)]! +
    pairs[((d & 3) << 8) | e]!
  )
}
