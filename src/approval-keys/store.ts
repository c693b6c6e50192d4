// Every statement on approval_keys.

import type { Millis } from '../base/clock.ts'
import type { PageOfIds } from '../contract/page.ts'
import { inChunk, lockFirst } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export interface ApprovalKeyRow {
  approval_key_id: string
  checkpoint_id: string | null
  label: string | null
  last_four: string
  created_at: Millis
  /** Null: it does not expire. */
  expires_at: Millis | null
  /** To the minute; null when it was never used. */
  last_used_at: Millis | null
}

const INSERT = sql(
  'approval_keys.insert',
  `insert into approval_keys (tenant_id, approval_key_id, checkpoint_id, label, created_at, expires_at)
   values (:tenant_id, :approval_key_id, :checkpoint_id, :label, :now, :expires_at)`,
)

// The credential is asked for each key: in a join PostgreSQL may read all of the tenant first.
const LIST = sql<ApprovalKeyRow>(
  'approval_keys.list',
  `select k.approval_key_id, k.checkpoint_id, k.label, k.created_at, k.expires_at, k.last_used_at,
          (select c.last_four from credentials c
            where c.tenant_id = :tenant_id and c.kind = 'approval' and c.subject = k.approval_key_id limit 1) as last_four
     from approval_keys k
    where k.tenant_id = :tenant_id and k.approval_key_id < :before_id order by k.approval_key_id desc limit :rows_max`,
)

const DELETE = sql<{ bytes: number }>(
  'approval_keys.delete',
  `delete from approval_keys where tenant_id = :tenant_id and approval_key_id = :approval_key_id
   returning coalesce(octet_length(label), 0) as bytes`,
)

const chunk = {
  ...{ table: 'approval_keys', key: 'tenant_id, approval_key_id', index: null },
  ...{ order: 'tenant_id, approval_key_id', where: 'tenant_id = :tenant_id' },
}

// A key that is being used is waited for, and ends as well.
const LOCK_FIRST = sql<{ approval_key_id: string }>('approval_keys.lock_first', lockFirst(chunk))

const END_FIRST = sql<{ approval_key_id: string; bytes: number }>(
  'approval_keys.end_first',
  `delete from approval_keys where ${inChunk(chunk)}
   returning approval_key_id, coalesce(octet_length(label), 0) as bytes`,
)

/** Removes the first. Returns those that were removed; none when there are no more. */
export async function endFirst(tx: Tx, tenant_id: string, rows_max: number) {
  await tx.all(LOCK_FIRST, { tenant_id, rows_max })
  return tx.all(END_FIRST, { tenant_id, rows_max })
}

export type NewApprovalKey = Omit<ApprovalKeyRow, 'last_four' | 'created_at' | 'last_used_at'>

export function insert(tx: Tx, tenant_id: string, row: NewApprovalKey) {
  return tx.run(INSERT, { tenant_id, ...row, now: tx.now })
}

/** Newest first (ids sort by time). */
export function list(q: Reader, tenant_id: string, { rows_max, before_id }: PageOfIds) {
  return q.all(LIST, { tenant_id, rows_max, before_id })
}

/** The bytes of its texts; null when there is none. */
export function remove(tx: Tx, tenant_id: string, approval_key_id: string) {
  return tx.one(DELETE, { tenant_id, approval_key_id })
}

export const purge = purging('approval_keys.purge', chunk)
