// Ids: a prefix that names the kind, then 26 characters that sort by time (the layout of ULID: 48 bits of
// milliseconds, 80 random bits, Crockford's base 32 in lower case).

import type { Millis } from './clock.ts'

/** Three small letters that name the kind: `sch`. */
export type IdPrefix = string

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const pairs = Array.from({ length: 1024 }, (_, n) => alphabet[n >> 5]! + alphabet[n & 31]!)

// Random bytes are drawn in one large piece: one call of the system's source serves 400 ids.
const pool = new Uint8Array(4_000)
let pool_used = pool.length

/** A new id of this kind, e.g. `log_01k9x3m6v2h8qa4n0r5t7w1z9c`. */
export function newId(prefix: IdPrefix, now: Millis): string {
  const at = drawn(10)
  return `${prefix}_${timePart(now)}${forty(at)}${forty(at + 5)}`
}

/** Random bytes that are used once; returns where in the pool they begin. */
function drawn(count: number): number {
  if (pool_used + count > pool.length) {
    crypto.getRandomValues(pool)
    pool_used = 0
  }
  const at = pool_used
  pool_used += count
  return at
}

/** A random number from 1 to 65,536. */
export function randomStep(): number {
  const at = drawn(2)
  return pool[at]! * 256 + pool[at + 1]! + 1
}

const seq_characters = 8
/** Eight characters hold 40 bits. */
const seq_max = 2 ** 40 - 1
const sequenced_form = /^[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}$/

/**
 * An id that carries the number of what it names in its list: 48 bits of time, 40 of the number, 40 at random. So a
 * place in the list is found from the id alone, even when the named thing was deleted.
 */
export function newSequencedId(prefix: IdPrefix, now: Millis, seq: number): string {
  if (!(seq >= 0 && seq <= seq_max)) throw new Error(`no id can hold the number ${seq}`)
  return `${prefix}_${timePart(now)}${seqPart(seq)}${forty(drawn(5))}`
}

/** The number in an id of `newSequencedId`; null for any other text. */
export function sequenceOf(prefix: IdPrefix, id: string): number | null {
  if (!sequenced_form.test(id) || !id.startsWith(prefix)) return null
  const from = prefix.length + 1 + time_characters
  let seq = 0
  for (const digit of id.slice(from, from + seq_characters)) seq = seq * 32 + alphabet.indexOf(digit)
  return seq
}

function seqPart(seq: number): string {
  const high = Math.floor(seq / 2 ** 20)
  const low = seq % 2 ** 20
  return pairs[high >> 10]! + pairs[high & 1023]! + pairs[low >> 10]! + pairs[low & 1023]!
}

/** Sorts before every id made at `at` or later, and after every one made before. */
export function idBound(prefix: IdPrefix, at: Millis): string {
  return `${prefix}_${timePart(Math.max(0, at))}`
}

const time_characters = 10

/** The time in an id of `newId`. */
export function timeOf(id: string): Millis {
  let at = 0
  for (const digit of id.slice(4, 4 + time_characters)) at = at * 32 + alphabet.indexOf(digit)
  return at
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

/** Comes after every id. */
export const past_all_ids = '~'

/** Ids sort by time: the newest come first. */
export function newestFirst(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? 1 : -1
}
