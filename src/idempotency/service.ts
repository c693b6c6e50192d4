// Idempotency-Key: the first 2xx answer is kept for 24 hours, sealed under the key itself, in the transaction of
// the effect. A row of this table alone opens nothing.

import { createHash } from 'node:crypto'
import { day_ms, type Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { deriveKey, open, seal } from '../base/seal.ts'
import type { KeyHolder, TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import { isLockTimeout } from '../db/errors.ts'
import { bytesOf, row_bytes, textBytes } from '../db/stored.ts'
import * as quotas from '../quotas/service.ts'
import * as store from './store.ts'

const kept_ms = limit(
  'idempotency.kept',
  day_ms,
  'milliseconds',
  'How long the answer to an Idempotency-Key is kept. After that the key is new again.',
)
/** Shorter keys could be guessed: on the public route the body is then part of what must be repeated. */
const public_key_characters_min = limit(
  'idempotency.public_key_characters',
  16,
  'characters',
  'An Idempotency-Key on a public route that is shorter counts only together with the same body, because it could be guessed.',
)

export interface Claim extends store.KeyRow {
  sealing_key: Buffer
}

export interface Answer {
  status: number
  /** JSON text. */
  text: string
  replayed: boolean
}

const key_form = /^[\x21-\x7e]{1,255}$/

interface Asked {
  key: string
  /** The address of the client on the public route. */
  caller: KeyHolder | string
  /** Method and path. */
  route: string
  body: Uint8Array
}

/**
 * The claim that this request makes. Scope: principal, method and path; on the public route the client address.
 * Throws VALIDATION_FAILED for a key that is not 1 to 255 visible ASCII characters.
 */
export function claimOf({ key, caller, route, body }: Asked): Claim {
  if (!key_form.test(key)) {
    throw invalid({ path: 'header.Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' })
  }
  const is_public = typeof caller === 'string'
  const fingerprint = createHash('sha256').update(body).digest('hex')
  const with_body = is_public && key.length < public_key_characters_min ? fingerprint : ''
  const scope = [is_public ? caller : principalOf(caller), route, with_body].join('\n')
  return {
    tenant_id: is_public ? '' : caller.tenant_id,
    key_hash: createHash('sha256').update(`${scope}\n${key}`).digest('hex'),
    fingerprint,
    sealing_key: deriveKey(key, 'idempotency', scope),
  }
}

/** The holder of the key, not the key: a repeat after a rotation is still a repeat. */
function principalOf(caller: KeyHolder): string {
  if (caller.kind === 'agent') return `agent ${caller.agent_id}`
  return caller.kind === 'admin' ? 'admin' : `approval ${caller.approval_key_id}`
}

/** How much of it there is for an answer. */
export interface Room {
  /** Among whose rows it is kept; null on the public route, where the disk alone bounds them. */
  tenant: TenantFacts | null
  plans: Plans
  /** False: without room the effect holds, and its answer is not kept. */
  is_needed: boolean
}

/**
 * Runs the effect once for this claim, or returns the first answer. Throws IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_IN_PROGRESS,
 * and QUOTA_EXCEEDED or STORAGE_FULL when there is no room for the answer but it is needed.
 */
export async function once(
  tx: Tx,
  claim: Claim,
  effect: () => Promise<{ status: number; text: string }>,
  room: Room,
): Promise<Answer> {
  let row = await claimed(tx, claim)
  for (; row === null; row = await claimed(tx, claim)) {
    const known = await store.find(tx, claim, tx.now)
    if (known) return replay(claim, known)
  }
  const { status, text } = await effect()
  const answer = seal(claim.sealing_key, claim.fingerprint, text)
  const bytes = row.grew + textBytes(answer)
  if (hasRoom(tx, room, bytes)) {
    await store.keep(tx, claim, status, answer)
    tx.stores(claim.tenant_id, bytes)
  } else {
    await store.unclaim(tx, claim)
    tx.stores(claim.tenant_id, row.grew - row_bytes)
  }
  return { status, text, replayed: false }
}

/** Judged as a creation is, but after the effect: only then it is known how long the answer is. Throws where room is needed. */
function hasRoom(tx: Tx, { tenant, plans, is_needed }: Room, bytes: number): boolean {
  if (!tenant) {
    quotas.requireDisk(tx)
    return true
  }
  if (!is_needed) return quotas.hasRoom(tx, tenant, plans, bytes)
  quotas.requireRoom(tx, tenant, plans, bytes)
  return true
}

/** Null when the key is taken. */
async function claimed(tx: Tx, claim: Claim): Promise<{ grew: number } | null> {
  try {
    return await store.claim(tx, claim, tx.now + kept_ms)
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new ApiError('IDEMPOTENCY_IN_PROGRESS', { retry_after_seconds: 1 })
  }
}

/** True when this claim was answered within its 24 hours, so that nothing needs to be found out for it again. */
export async function isAnswered(db: Db, claim: Claim, now: Millis): Promise<boolean> {
  return (await store.find(db, claim, now)) !== null
}

function replay(claim: Claim, known: { fingerprint: string; status: number; answer: string }): Answer {
  if (known.fingerprint !== claim.fingerprint) throw new ApiError('IDEMPOTENCY_KEY_REUSED')
  return {
    status: known.status,
    text: open(claim.sealing_key, known.fingerprint, known.answer),
    replayed: true,
  }
}

/** Removes rows whose 24 hours are past, at most this many and this much. True in `more` when there may be more. */
export async function sweep(
  tx: Tx,
  rows_max: number,
  bytes_max: number,
): Promise<{ removed: number; more: boolean }> {
  const gone = await store.sweep(tx, rows_max, bytes_max)
  for (const { tenant_id, bytes } of gone) tx.stores(tenant_id, -bytes - row_bytes)
  return { removed: gone.length, more: gone.length >= rows_max || bytesOf(gone) >= bytes_max }
}
