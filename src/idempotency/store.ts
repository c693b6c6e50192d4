// Statements on idempotency_keys.

import type { Millis } from '../base/clock.ts'
import { amongFirst, upToLastOf } from '../db/chunk.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import { row_bytes } from '../db/stored.ts'

// The insert is the claim. It also claims a row whose 24 hours are past. On PostgreSQL it waits for another
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

const UNCLAIM = sql(
  'idempotency.unclaim',
  'delete from idempotency_keys where tenant_id = :tenant_id and key_hash = :key_hash',
)

const FIND = sql<{ fingerprint: string; status: number; answer: string }>(
  'idempotency.find',
  `select fingerprint, status, answer from idempotency_keys
    where tenant_id = :tenant_id and key_hash = :key_hash and expires_at > :now`,
)

const table = { table: 'idempotency_keys', key: 'tenant_id, key_hash', texts: ['answer'] }

const expired = {
  ...{ ...table, index: 'idempotency_keys_expiring', order: 'expires_at', skip_locked: true },
  where: 'expires_at <= :now',
}
const returned = 'returning tenant_id, coalesce(octet_length(answer), 0) as bytes'
const SWEEP = acrossTenants<{ tenant_id: string; bytes: number }>(
  'idempotency.sweep',
  `delete from idempotency_keys where ${amongFirst(expired)} ${returned}`,
  `delete from idempotency_keys where ${upToLastOf(expired)} ${returned}`,
)

/** A key of a principal, and what it was sent with. */
export interface KeyRow {
  /** '' for the public route. */
  tenant_id: string
  key_hash: string
  fingerprint: string
}

/** The bytes by which the tenant's storage grew, or null when the key is taken. */
export function claim(tx: Tx, { tenant_id, key_hash, fingerprint }: KeyRow, expires_at: Millis) {
  const params = { tenant_id, key_hash, fingerprint, bytes: row_bytes, now: tx.now, expires_at }
  return tx.one(CLAIM, params)
}

export function keep(tx: Tx, { tenant_id, key_hash }: KeyRow, status: number, answer: string) {
  return tx.run(KEEP, { tenant_id, key_hash, status, answer })
}

export function unclaim(tx: Tx, { tenant_id, key_hash }: KeyRow) {
  return tx.run(UNCLAIM, { tenant_id, key_hash })
}

/** Null when its 24 hours are past, too. */
export function find(q: Reader, { tenant_id, key_hash }: KeyRow, now: Millis) {
  return q.one(FIND, { tenant_id, key_hash, now })
}

export function sweep(tx: Tx, rows_max: number, bytes_max: number) {
  return tx.all(SWEEP, { now: tx.now, rows_max, bytes_max })
}

export const purge = purging('idempotency.purge', table)
