// Idempotency-Key: the first 2xx answer is kept for 24 hours, sealed under the key itself, in the transaction of
// the effect. A row of this table alone opens nothing.

import { createHash } from 'node:crypto'
import { day_ms, type Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { deriveKey, open, seal } from '../base/seal.ts'
import type { Caller } from '../contract/caller.ts'
import { inChunk } from '../db/chunk.ts'
import { type Db, DbError, type Reader, sql, type Tx } from '../db/db.ts'
import { isRetryable } from '../db/dialect.ts'
import { row_bytes, textBytes } from '../db/stored.ts'

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

// The insert is the claim. It also takes over a row whose 24 hours are past. On PostgreSQL it waits for another
// transaction that is inserting the same row.
const CLAIM = sql<{ grew: number }>(
  'idempotency.claim',
  `insert into idempotency_keys (tenant_id, key_hash, fingerprint, status, grew, answer, expires_at)
   values (:tenant_id, :key_hash, :fingerprint, null, :bytes, null, :expires_at)
   on conflict (tenant_id, key_hash) do update
      set fingerprint = excluded.fingerprint, status = null, answer = null, expires_at = excluded.expires_at,
          grew = 0 - coalesce(octet_length(idempotency_keys.answer), 0)
    where idempotency_keys.expires_at <= :now
   returning grew`,
)

const KEEP = sql(
  'idempotency.keep',
  'update idempotency_keys set status = :status, answer = :answer where tenant_id = :tenant_id and key_hash = :key_hash',
)

const FIND = sql<{ fingerprint: string; status: number; answer: string }>(
  'idempotency.find',
  'select fingerprint, status, answer from idempotency_keys where tenant_id = :tenant_id and key_hash = :key_hash',
)

const FIND_LIVE = sql<{ status: number }>(
  'idempotency.find_live',
  `select status from idempotency_keys
    where tenant_id = :tenant_id and key_hash = :key_hash and expires_at > :now`,
)

const table = { table: 'idempotency_keys', key: 'tenant_id, key_hash', texts: ['answer'] }

const SWEEP = sql<{ tenant_id: string; bytes: number }>(
  'idempotency.sweep',
  `delete from idempotency_keys where ${inChunk({
    ...{ ...table, index: 'idempotency_keys_expiring', order: 'expires_at', skip_locked: true },
    where: 'expires_at <= :now',
  })}
   returning tenant_id, coalesce(octet_length(answer), 0) as bytes`,
)

const ANY_EXPIRED = sql<{ status: number }>(
  'idempotency.any_expired',
  `select status from idempotency_keys {by idempotency_keys_expiring}
    where expires_at <= :now order by expires_at limit 1`,
)

const PURGE = sql(
  'idempotency.purge',
  `delete from idempotency_keys
    where ${inChunk({ ...table, index: null, order: table.key, where: 'tenant_id = :tenant_id' })}`,
)

export interface Claim {
  /** '' for the public route. */
  tenant_id: string
  key_hash: string
  fingerprint: string
  sealing_key: Buffer
}

export interface Answer {
  status: number
  /** JSON text. */
  text: string
  replayed: boolean
}

const key_form = /^[\x21-\x7e]{1,255}$/

/**
 * What this request claims. Scope: principal, method and path; on the public route the client address.
 * Throws VALIDATION_FAILED for a key that is not 1 to 255 visible ASCII characters.
 */
export function claimOf(
  key: string,
  caller: Caller | null,
  address: string,
  route: string,
  body: Uint8Array,
): Claim {
  if (!key_form.test(key)) {
    throw invalid({ path: 'header.Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' })
  }
  const fingerprint = createHash('sha256').update(body).digest('hex')
  const with_body = caller === null && key.length < public_key_characters_min ? fingerprint : ''
  const scope = [caller ? principalOf(caller) : address, route, with_body].join('\n')
  return {
    tenant_id: caller?.tenant_id ?? '',
    key_hash: createHash('sha256').update(`${scope}\n${key}`).digest('hex'),
    fingerprint,
    sealing_key: deriveKey(key, 'idempotency', scope),
  }
}

/** Not the key but who holds it: a repeat after a rotation is still a repeat. */
function principalOf(caller: Caller): string {
  if (caller.kind === 'agent') return `agent ${caller.agent_id}`
  return caller.kind === 'admin' ? 'admin' : `approval ${caller.approval_key_id}`
}

/**
 * Runs the effect once for this claim, or answers what it answered then. Throws IDEMPOTENCY_KEY_REUSED,
 * IDEMPOTENCY_IN_PROGRESS.
 */
export async function once(
  tx: Tx,
  claim: Claim,
  effect: () => Promise<{ status: number; text: string }>,
): Promise<Answer> {
  const { tenant_id, key_hash, fingerprint } = claim
  for (;;) {
    if (await claimed(tx, claim)) break
    const known = await tx.one(FIND, { tenant_id, key_hash })
    if (known) return replay(claim, known)
  }
  const { status, text } = await effect()
  const answer = seal(claim.sealing_key, fingerprint, text)
  await tx.run(KEEP, { tenant_id, key_hash, status, answer })
  tx.stores(tenant_id, textBytes(answer))
  return { status, text, replayed: false }
}

async function claimed(tx: Tx, { tenant_id, key_hash, fingerprint }: Claim): Promise<boolean> {
  try {
    const expires_at = tx.now + kept_ms
    const params = { tenant_id, key_hash, fingerprint, bytes: row_bytes, now: tx.now, expires_at }
    const row = await tx.one(CLAIM, params)
    if (row) tx.stores(tenant_id, row.grew)
    return row !== null
  } catch (error) {
    if (!(error instanceof DbError && error.kind === 'busy') || isRetryable(error)) throw error
    throw new ApiError('IDEMPOTENCY_IN_PROGRESS', { retry_after_seconds: 1 })
  }
}

/** Whether this claim was answered within its 24 hours, so that nothing needs to be found out for it again. */
export async function isAnswered(db: Db, { tenant_id, key_hash }: Claim, now: Millis): Promise<boolean> {
  return (await db.one(FIND_LIVE, { tenant_id, key_hash, now })) !== null
}

function replay(claim: Claim, known: { fingerprint: string; status: number; answer: string }): Answer {
  if (known.fingerprint !== claim.fingerprint) throw new ApiError('IDEMPOTENCY_KEY_REUSED')
  return {
    status: known.status,
    text: open(claim.sealing_key, known.fingerprint, known.answer),
    replayed: true,
  }
}

/** Removes rows whose 24 hours are past, at most this many and this much. */
export async function sweep(tx: Tx, rows_max: number, bytes_max: number): Promise<number> {
  const gone = await tx.all(SWEEP, { now: tx.now, rows_max, bytes_max })
  for (const { tenant_id, bytes } of gone) tx.stores(tenant_id, -bytes - row_bytes)
  return gone.length
}

/** Whether there is more to sweep. */
export async function anyExpired(q: Reader, now: Millis): Promise<boolean> {
  return (await q.one(ANY_EXPIRED, { now })) !== null
}

/** Removes rows of a tenant that is being purged; answers how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max, bytes_max })
}
