// The caller of a request. The key alone says who it is.

import type { Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { hashKey, keyKind, looksLikeKey, prefixes } from '../base/keys.ts'
import { equalBytes } from '../base/seal.ts'
import type { CallerKind, KeyHolder } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import type { Group } from '../contract/group.ts'
import type { Route } from '../contract/route.ts'
import { goesOnWhileStopped, stopOf } from '../contract/stopped.ts'
import * as credentials from '../credentials/service.ts'
import type { Awaitable } from '../db/db.ts'
import type { ServerOptions } from './exchange.ts'

interface Presented {
  key: string
  /** The kinds that this header takes; null for Authorization, which takes every kind. */
  takes: readonly CallerKind[] | null
}

/** A missing key and a bad one differ only in the count of failed keys; the answer is the same. */
export type Refusal = 'no_key' | 'bad_key'

/** Finds the caller behind a well-formed key. */
export type Find = typeof credentials.identify

/**
 * The caller, or the reason that there is none; at once for a key that was valid a moment ago. Throws VALIDATION_FAILED
 * when two different keys of ours are sent at once.
 */
export function authenticate(
  { db, dependencies }: Pick<ServerOptions, 'db' | 'dependencies'>,
  group: Group,
  headers: Headers,
  now: Millis,
  find: Find = credentials.identify,
): Awaitable<KeyHolder | Refusal> {
  const presented = presentedKey(headers, group)
  if (typeof presented === 'string') return presented
  const { key, takes } = presented
  if (takes !== null && !takes.some((kind) => key.startsWith(prefixes[kind]))) return 'bad_key'
  const id_needed = takes !== null && group.requires_agent_id
  const caller = cached(dependencies.keys.cache, key, now)
  if (caller) return agreed(caller, headers, id_needed)
  if (!keyKind(key)) return 'bad_key'
  return find(db, dependencies.keys.cache, key, now).then((found) => agreed(found, headers, id_needed))
}

function agreed(caller: KeyHolder | null, headers: Headers, id_needed: boolean): KeyHolder | 'bad_key' {
  if (!caller) return 'bad_key'
  return caller.kind !== 'agent' || agentIdAgrees(headers, caller.agent_id, id_needed) ? caller : 'bad_key'
}

function presentedKey(headers: Headers, { key_headers }: Group): Presented | Refusal {
  let found: Presented | null = null
  let others = false
  const authorization = headers.get('authorization')
  if (authorization !== null) consider(/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '', null)
  for (const { name, takes } of key_headers) consider(headers.get(name), takes)
  return found ?? (others ? 'bad_key' : 'no_key')

  function consider(key: string | null, takes: readonly CallerKind[] | null): void {
    if (key === null) return
    if (!looksLikeKey(key)) others = true
    else if (!found) found = { key, takes }
    else if (found.key !== key)
      throw invalid({ path: 'header', message: 'two different keys were sent; send one' })
    else if (found.takes === null) found = { key, takes }
  }
}

function cached(key_cache: KeyCache, key: string, now: Millis): KeyHolder | null {
  const entry = key_cache.get(key)
  return entry && (entry.expires_at === null || entry.expires_at > now) ? entry.caller : null
}

/** With Bearer, and in a group that does not require it, x-agent-id may be left out; when sent it must be the key's agent. */
function agentIdAgrees(headers: Headers, agent_id: string, id_needed: boolean): boolean {
  const sent = headers.get('x-agent-id')
  return sent === null ? !id_needed : sent === agent_id
}

/**
 * Requires the cron secret as Bearer; other headers do not count. Throws UNAUTHORIZED. A header has a character for each byte,
 * and most clients, curl among them, send the bytes of UTF-8.
 */
export function requireCron(headers: Headers, cron_secret: string): void {
  const sent = /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? ''
  const secret = digestOf(cron_secret)
  const forms = [sent, Buffer.from(sent, 'latin1').toString()]
  const equal = forms.filter((form) => equalBytes(digestOf(form), secret))
  if (sent === '' || equal.length === 0) throw new ApiError('UNAUTHORIZED')
}

/** Compares hashes, which have equal lengths, so that the time shows nothing of the secret's length. */
function digestOf(text: string): Uint8Array {
  return Buffer.from(hashKey(text))
}

/**
 * Throws FORBIDDEN for a key of another kind, TENANT_PENDING_DELETION for nearly everything of such a tenant, and TENANT_FROZEN,
 * AGENT_PAUSED or AGENT_READ_ONLY for an agent's changes.
 */
export function requireAllowed(
  caller: KeyHolder,
  route: Pick<Route, 'method' | 'auth' | 'while_pending_deletion' | 'frozen'>,
): void {
  const right_kind = route.auth.includes(caller.kind)
  if (caller.status === 'pending_deletion' && !(right_kind && route.while_pending_deletion)) {
    throw new ApiError('TENANT_PENDING_DELETION')
  }
  if (!right_kind) {
    throw new ApiError('FORBIDDEN', {
      details: { key_kind: caller.kind, accepted_key_kinds: [...route.auth] },
    })
  }
  const stop = caller.kind === 'agent' && !goesOnWhileStopped(route) ? stopOf(caller) : null
  if (stop) throw stop
}
