// Statements on operations and their items.

import type { Millis } from '../base/clock.ts'
import { newestFirst } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
import type { DlqStatus, ItemRow } from './item.ts'
import type { OperationRow } from './operation.ts'
import { claimable, expired_lock } from './store.ts'

const columns = `id, verb, status, matched, done, failed, skipped, more, looked_until, waiting_for, created_at,
     updated_at, finished_at, settings`
const here = 'tenant_id = :tenant_id and id = :id'
const of_operation = 'tenant_id = :tenant_id and operation_id = :id'

/** Operations of a tenant that run at once: each has a slot. */
export const slots_max = limit(
  'dlq.operations_running',
  5,
  'entries',
  'Operations on many dead letters that run at once for a tenant. Past it 409.',
)

const INSERT = sql(
  'dlq.insert_operation',
  `insert into dlq_operations
     (tenant_id, id, verb, status, slot, matched, done, failed, skipped, more, looked_until, created_at, updated_at,
      finished_at, settings)
   values
     (:tenant_id, :id, :verb, :status, :slot, :matched, 0, 0, 0, :more, :looked_until, :now, :now, :finished_at,
      :settings)
   on conflict do nothing`,
)

const INSERT_PART = sql(
  'dlq.insert_part',
  `insert into dlq_operation_parts (tenant_id, operation_id, part, items)
   values (:tenant_id, :id, :part, :items)`,
)

const FIND = sql<OperationRow>('dlq.find_operation', `select ${columns} from dlq_operations where ${here}`)

const PART = sql<{ items: string }>(
  'dlq.find_part',
  `select items from dlq_operation_parts where ${of_operation} and part = :part`,
)

const SET_PART = sql(
  'dlq.set_part',
  `update dlq_operation_parts set items = :items where ${of_operation} and part = :part`,
)

const ADVANCE = sql<OperationRow>(
  'dlq.advance_operation',
  `update dlq_operations
      set done = done + :done, failed = failed + :failed, skipped = skipped + :skipped, waiting_for = :waiting_for,
          status = case when :ended = 1 then 'succeeded' else status end,
          slot = case when :ended = 1 then null else slot end,
          finished_at = case when :ended = 1 then :now else finished_at end, updated_at = :now
    where ${here} and status = 'running'
   returning ${columns}`,
)

const CANCEL = sql<OperationRow>(
  'dlq.cancel_operation',
  `update dlq_operations
      set status = 'cancelled', slot = null, waiting_for = null, finished_at = :now, updated_at = :now
    where ${here} and status = 'running'
   returning ${columns}`,
)

const texts = ['settings']
const LIST = sql<OperationRow & { bytes: number }>(
  'dlq.list_operations',
  `select ${columns}, ${bytesOf(texts)} as bytes from dlq_operations where ${inChunk({
    ...{
      table: 'dlq_operations',
      key: 'tenant_id, id',
      index: null,
      order: 'id desc',
      only_read: true,
      texts,
    },
    where: 'tenant_id = :tenant_id and id < :before_id',
  })}`,
)

// An update of the item alone: its payload is not read.
const DISCARD = sql<{ id: string; workflow_id: string | null; lock_expired_at: Millis | null }>(
  'dlq.discard',
  `update dlq_items
      set ${expired_lock}, status = 'archived', locked_by = null, locked_until = null, lock_token_hash = null,
          updated_at = :now
    where ${here} and ${claimable}
   returning id, workflow_id, lock_expired_at`,
)

const LOCK = sql<Pick<ItemRow, 'source'>>('dlq.lock', `select source from dlq_items where ${here} {locked}`)

const STATUS = sql<{ status: DlqStatus }>('dlq.status', `select status from dlq_items where ${here}`)

export interface NewOperation
  extends Pick<OperationRow, 'id' | 'verb' | 'status' | 'matched' | 'more' | 'looked_until' | 'settings'> {
  finished_at: Millis | null
}

/** False when the slot is taken. Null: one that has nothing to do needs none. */
export async function insert(tx: Tx, tenant_id: string, operation: NewOperation, slot: number | null) {
  return (await tx.run(INSERT, { tenant_id, ...operation, slot, now: tx.now })) === 1
}

export function insertPart(tx: Tx, tenant_id: string, id: string, part: number, items: string) {
  return tx.run(INSERT_PART, { tenant_id, id, part, items })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

/** The text of a part. */
export async function part(q: Reader, tenant_id: string, id: string, part: number): Promise<string | null> {
  return (await q.one(PART, { tenant_id, id, part }))?.items ?? null
}

export function setPart(tx: Tx, tenant_id: string, id: string, part: number, items: string) {
  return tx.run(SET_PART, { tenant_id, id, part, items })
}

export interface Progress {
  done: number
  failed: number
  skipped: number
  waiting_for: string | null
  ended: 0 | 1
}

/** Adds to the counts. Null when it runs no more. */
export function advance(tx: Tx, tenant_id: string, id: string, progress: Progress) {
  return tx.one(ADVANCE, { tenant_id, id, ...progress, now: tx.now })
}

/** Null when it runs no more. */
export function cancel(tx: Tx, tenant_id: string, id: string) {
  return tx.one(CANCEL, { tenant_id, id, now: tx.now })
}

/** Newest first, `rows_max` at most, and none after the first that takes them to `bytes_max`. */
export async function list(q: Reader, tenant_id: string, page: PageOfIds) {
  return (await q.all(LIST, { tenant_id, ...page })).sort(newestFirst)
}

/** Archives an item that could be claimed. Null when it could not. */
export function discard(tx: Tx, tenant_id: string, id: string) {
  return tx.one(DISCARD, { tenant_id, id, now: tx.now })
}

/** Holds the item until the transaction ends. */
export function lockItem(tx: Tx, tenant_id: string, id: string) {
  return tx.one(LOCK, { tenant_id, id })
}

/** The status of an item as it is stored; null when it is gone. */
export async function statusOf(q: Reader, tenant_id: string, id: string): Promise<DlqStatus | null> {
  return (await q.one(STATUS, { tenant_id, id }))?.status ?? null
}

const ENDED = acrossTenants<Due & { id: string }>(
  'dlq.ended_operations',
  `select tenant_id, id, 1 as due, finished_at as until from dlq_operations {by dlq_operations_ended}
    where finished_at <= :ended_before and finished_at >= :due_from order by finished_at limit :rows_max`,
)

const DELETE = sql<{ bytes: number }>(
  'dlq.delete_operation',
  `delete from dlq_operations where ${here} returning octet_length(settings) as bytes`,
)

const DELETE_PARTS = sql<{ bytes: number }>(
  'dlq.delete_parts',
  `delete from dlq_operation_parts where ${of_operation} returning octet_length(items) as bytes`,
)

/** Those that ended first since `due_from`. */
export function ended(q: Reader, ended_before: Millis, due_from: Millis, rows_max: number) {
  return q.all(ENDED, { ended_before, due_from, rows_max })
}

/** Removes an operation with its parts; returns the bytes of the texts of each row. */
export async function remove(tx: Tx, tenant_id: string, id: string) {
  return [...(await tx.all(DELETE, { tenant_id, id })), ...(await tx.all(DELETE_PARTS, { tenant_id, id }))]
}

export const purge = purging('dlq.purge_operations', { table: 'dlq_operations', key: 'tenant_id, id', texts })

export const purgeParts = purging('dlq.purge_parts', {
  ...{ table: 'dlq_operation_parts', key: 'tenant_id, operation_id, part', texts: ['items'] },
})
