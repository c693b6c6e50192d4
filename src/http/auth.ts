// Headers -> Caller. The key says who is asking; nothing else does.

import type { Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { hashKey, keyKind, looksLikeKey, prefixes } from '../base/keys.ts'
import { equalBytes } from '../base/seal.ts'
import type { Caller, CallerKind } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import * as credentials from '../credentials/service.ts'
import type { Db } from '../db/db.ts'

interface Presented {
  key: string
  /** The prefixes that this header takes; null for Authorization, which takes every kind. */
  takes: readonly string[] | null
}

/** No key at all is told from a bad one only for the count of failed keys; the answer is the same. */
export type Refusal = 'no_key' | 'bad_key'

/**
 * The caller, or why there is none. Throws VALIDATION_FAILED when two different keys of ours are sent at once.
 */
export async function authenticate(
  db: Db,
  key_cache: KeyCache,
  headers: Headers,
  now: Millis,
  surface: 'v1' | 'api' = 'v1',
): Promise<Caller | Refusal> {
  const presented = presentedKey(headers, surface)
  if (typeof presented === 'string') return presented
  const { key, takes } = presented
  if (takes !== null && !takes.some((prefix) => key.startsWith(prefix))) return 'bad_key'
  const caller = cached(key_cache, key, now) ?? (await lookUp(db, key_cache, key, now))
  if (!caller) return 'bad_key'
  const id_needed = takes !== null && surface === 'v1'
  return caller.kind !== 'agent' || agentIdAgrees(headers, caller.agent_id, id_needed) ? caller : 'bad_key'
}

const taken = {
  v1: {
    'x-api-key': [prefixes.agent],
    'x-admin-key': [prefixes.admin],
    'x-approval-key': [prefixes.approval],
  },
  api: {
    'x-api-key': [prefixes.agent, prefixes.admin],
    'x-admin-key': [prefixes.admin],
    'x-approval-key': [prefixes.approval],
  },
} as const

function presentedKey(headers: Headers, surface: 'v1' | 'api'): Presented | Refusal {
  let found: Presented | null = null
  let others = false
  const authorization = headers.get('authorization')
  if (authorization !== null) consider(/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '', null)
  const takes = taken[surface]
  consider(headers.get('x-api-key'), takes['x-api-key'])
  consider(headers.get('x-admin-key'), takes['x-admin-key'])
  consider(headers.get('x-approval-key'), takes['x-approval-key'])
  return found ?? (others ? 'bad_key' : 'no_key')

  function consider(key: string | null, takes: readonly string[] | null): void {
    if (key === null) return
    if (!looksLikeKey(key)) others = true
    else if (!found) found = { key, takes }
    else if (found.key !== key)
      throw invalid({ path: 'header', message: 'two different keys were sent; send one' })
    else if (found.takes === null) found = { key, takes }
  }
}

function cached(key_cache: KeyCache, key: string, now: Millis): Caller | null {
  const entry = key_cache.get(key)
  return entry && (entry.expires_at === null || entry.expires_at > now) ? entry.caller : null
}

async function lookUp(db: Db, key_cache: KeyCache, key: string, now: Millis): Promise<Caller | null> {
  return keyKind(key) ? credentials.identify(db, key_cache, key, now) : null
}

/**
 * The x-api-key form needs x-agent-id under /v1; with Bearer and under /api it may be left out; when sent it must be
 * the key's agent.
 */
function agentIdAgrees(headers: Headers, agent_id: string, id_needed: boolean): boolean {
  const sent = headers.get('x-agent-id')
  return sent === null ? !id_needed : sent === agent_id
}

/** POST /v1/tick: the cron secret as Bearer; whatever else is sent is not looked at. Throws UNAUTHORIZED. */
export function mustBeCron(headers: Headers, cron_secret: string): void {
  const sent = /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? ''
  if (sent === '' || !equalBytes(digestOf(sent), digestOf(cron_secret))) throw new ApiError('UNAUTHORIZED')
}

/** Equal lengths, so that the comparison tells nothing of the secret's. */
function digestOf(text: string): Uint8Array {
  return Buffer.from(hashKey(text))
}

/** Throws FORBIDDEN for a key of another kind, TENANT_PENDING_DELETION for nearly everything of such a tenant. */
export function mustBeAllowed(
  caller: Caller,
  route: { auth: readonly CallerKind[]; while_pending_deletion?: boolean },
): void {
  const right_kind = route.auth.includes(caller.kind)
  if (caller.status === 'pending_deletion' && !(right_kind && route.while_pending_deletion)) {
    throw new ApiError('TENANT_PENDING_DELETION')
  }
  if (!right_kind) throw new ApiError('FORBIDDEN')
}
