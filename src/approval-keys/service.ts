// Approval keys: with one, a human or a proxy for one decides checkpoints.

import './errors.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { KeyCache, Plans } from '../contract/dependencies.ts'
import { causeOf, operator_cause } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Tx } from '../db/db.ts'
import { row_bytes, rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import * as store from './store.ts'

export interface Created {
  row: store.NewApprovalKey
  key: string
}

/** Throws CHECKPOINT_NOT_FOUND for an unknown checkpoint, QUOTA_EXCEEDED, VALIDATION_FAILED for an end in the past. */
export async function create(
  tx: Tx,
  caller: AdminCaller,
  plans: Plans,
  input: Omit<store.NewApprovalKey, 'approval_key_id'>,
): Promise<Created> {
  const { tenant_id } = caller
  if (input.expires_at !== null && input.expires_at <= tx.now)
    throw invalid({ path: '/expires_at', message: 'must be in the future' })
  if (input.checkpoint_id !== null) await checkpoints.read(tx, tenant_id, input.checkpoint_id)
  const row = { approval_key_id: newId('apk', tx.now), ...input }
  quotas.reserveBytes(tx, caller, plans, rowBytes(row.label))
  await store.insert(tx, tenant_id, row)
  const key = await credentials.issue(tx, { tenant_id, kind: 'approval', subject: row.approval_key_id })
  const about = { tenant_id, cause: causeOf(caller), subject_id: row.approval_key_id }
  const data = { checkpoint_id: row.checkpoint_id }
  await journal.emit(tx, events['approval_key.created'], { ...about, data })
  return { row, key }
}

/** For the operator, who ends all keys: a bounded number. Their credentials end apart from them. Returns how many. */
export async function endSome(tx: Tx, tenant_id: string, rows_max: number): Promise<number> {
  const ended = await store.endFirst(tx, tenant_id, rows_max)
  for (const { approval_key_id, bytes } of ended) {
    tx.stores(tenant_id, -bytes - row_bytes)
    const about = { tenant_id, cause: operator_cause, subject_id: approval_key_id }
    await journal.emit(tx, events['approval_key.revoked'], { ...about, data: {} })
  }
  return ended.length
}

/** The key ends with the commit. Throws APPROVAL_KEY_NOT_FOUND. */
export function remove(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  approval_key_id: string,
): Promise<void> {
  const { tenant_id } = caller
  return credentials.endKeys(db, key_cache, tenant_id, async (tx, ending) => {
    const removed = await store.remove(tx, tenant_id, approval_key_id)
    if (!removed) throw new ApiError('APPROVAL_KEY_NOT_FOUND')
    tx.stores(tenant_id, -removed.bytes - row_bytes)
    await credentials.revoke(tx, ending, { tenant_id, kind: 'approval', subject: approval_key_id })
    const about = { tenant_id, cause: causeOf(caller), subject_id: approval_key_id }
    await journal.emit(tx, events['approval_key.revoked'], { ...about, data: {} })
  })
}
