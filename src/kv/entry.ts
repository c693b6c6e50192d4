// Keys: their form, reserved names and precondition headers. No imports from db or http.

import { last_instant_ms, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { beginOf } from '../base/text-range.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'

export const key_bytes_max = limit('kv.key_bytes', 512, 'bytes', 'A key in UTF-8. Past it 400.')
export const namespace_form = /^[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}$/

/** Keys of the rate limiter's counters: hidden from these routes. */
const reserved_key_prefix = '__rl:'

/** A tombstone, or an expired key, remembers its version this long, unless the tenant has too many of them. */
export const tombstone_ms = limit(
  'kv.tombstone',
  24 * 60 * 60 * second_ms,
  'milliseconds',
  'How long a deleted key keeps its version, and a rate counter that ended its limit; past kv.tombstones the oldest are removed earlier. No version repeats after either.',
)

export interface KeyRef {
  namespace: string
  key: string
}

export interface EntryRow {
  value: string
  version: number
  expires_at: Millis | null
  updated_at: Millis
}

/** 1..512 bytes of UTF-8, no control characters, and not a dot segment, which URL parsers resolve away. */
export function isKey(key: string): boolean {
  if (key === '' || key === '.' || key === '..') return false
  if (key.length * 3 > key_bytes_max && Buffer.byteLength(key) > key_bytes_max) return false
  return !controls.test(key)
}

const controls = /[\u0000-\u001f\u007f-\u009f]/

const reserved_prefix = '__'
const private_prefix = '__agent.'

type NamespaceReader = Pick<AgentCaller, 'kind' | 'agent_id'> | Pick<AdminCaller, 'kind'>

/** `__…` is reserved, save the agent's own `__agent.<agent_id>`; the admin key may read those of all agents. */
export function isForbiddenNamespace(namespace: string, caller: NamespaceReader): boolean {
  if (!namespace.startsWith(reserved_prefix)) return false
  return caller.kind === 'admin'
    ? !namespace.startsWith(private_prefix)
    : namespace !== `${private_prefix}${caller.agent_id}`
}

/**
 * The position behind a namespace that this caller may not read. An agent's own one comes next, or none that begins with
 * `__`: however many agents there are, their private ones are passed in a step.
 */
export function behindForbidden(namespace: string, caller: NamespaceReader): Place {
  if (caller.kind === 'admin') return { namespace, key: null }
  const own = `${private_prefix}${caller.agent_id}`
  return { namespace: namespace < own ? own : prefixEnd(reserved_prefix)!, key: '' }
}

/** The agent whose private namespace this is; null for one that all agents share. */
export function ownerOf(namespace: string): string | null {
  return namespace.startsWith(private_prefix) ? namespace.slice(private_prefix.length) : null
}

/** The position at which a scan continues: after this key, or after all keys of the namespace. */
export interface Place {
  namespace: string
  /** Null: after all of them. */
  key: string | null
}

/** The first that it may go on with. A space sorts before every character that a name may have. */
export function boundOf({ namespace, key: after }: Place): KeyRef {
  if (after === null) return { namespace: `${namespace} `, key: '' }
  return { namespace, key: beginOf({ prefix: '', after }) }
}

export function isReservedKey(key: string): boolean {
  return key.startsWith(reserved_key_prefix)
}

/** The end of a key's life, no later than a time can be written. */
export function expiryOf(now: Millis, ttl_seconds: number | undefined): Millis | null {
  return ttl_seconds === undefined ? null : Math.min(now + ttl_seconds * second_ms, last_instant_ms)
}

/** RFC 9110 section 8.8.3. */
export function etag(version: number): string {
  return `"${version}"`
}

/**
 * True when an If-Match header names this version: `3`, `"3"`, a list of these, or `*`. Comparison is strong
 * (RFC 9110 section 13.1.1), so a weak tag never matches.
 */
export function ifMatchHolds(header: string, version: number): boolean {
  return namesVersion(header, version, false)
}

/** The same for If-None-Match, which compares weakly (RFC 9110 section 13.1.2). */
export function ifNoneMatchNames(header: string, version: number): boolean {
  return namesVersion(header, version, true)
}

function namesVersion(header: string, version: number, weak: boolean): boolean {
  if (header.trim() === '*') return true
  const bare = String(version)
  return header.split(',').some((item) => {
    const tag = item.trim()
    return tag === bare || tag === `"${bare}"` || (weak && tag === `W/"${bare}"`)
  })
}

/** The first key after all that start with this prefix, in bytewise order; null when there is none. */
export function prefixEnd(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!)
  while (points.length > 0) {
    const last = points.pop()!
    if (last === 0x10ffff) continue
    const next = last === 0xd7ff ? 0xe000 : last + 1
    return String.fromCodePoint(...points, next)
  }
  return null
}
