// Statements of the sweep and of the purge on inboxes and their messages.

import type { Millis } from '../base/clock.ts'
import { inChunk, lockFirst } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
import { expired_counted_max } from '../quotas/service.ts'
import { type InboxKey, in_inbox, last_within, type Sized } from './message-store.ts'

const table = { table: 'inboxes', key: 'tenant_id, id' }

const COUNT_EXPIRED = sql<{ expired: number }>(
  'inbox.count_expired',
  `select count(*) as expired
     from (select id from inboxes {by inboxes_tenant_expiring}
             where ${of_shard} counted = 1 and tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, :now)
             order by tenant_id, expires_at limit :rows_max) as expired_inboxes`,
)

const expired_first = {
  ...{ ...table, index: 'inboxes_tenant_expiring', order: 'tenant_id, expires_at' },
  where: `${of_shard} counted = 1 and tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, :now)`,
}

const EXPIRE = sql<{ id: string; workflow_id: string | null }>(
  'inbox.expire',
  `update inboxes set counted = 0 where ${inChunk({ ...expired_first, skip_locked: true })}
   returning id, workflow_id`,
)

// A message that came before the end may hold its inbox still.
const LOCK_EXPIRED = sql<{ id: string }>('inbox.lock_expired', lockFirst(expired_first))

const TENANTS_EXPIRED = acrossTenants<Due>(
  'inbox.tenants_expired',
  `select tenant_id, count(*) as due, max(expires_at) as until from
     (select tenant_id, expires_at from inboxes {by inboxes_expiring}
       where counted = 1 and expires_at <= :now and expires_at >= :due_from order by expires_at limit :rows_max) as due
    group by tenant_id`,
)

const CLEARABLE = acrossTenants<InboxKey & Due>(
  'inbox.clearable',
  `select tenant_id, id as inbox_id, 1 as due, clear_at as until from inboxes {by inboxes_clearing}
    where clear_at is not null and clear_at <= :now and clear_at >= :due_from order by clear_at limit :rows_max`,
)

const CLEAR = sql<Sized>(
  'inbox.clear',
  `delete from inbox_messages where ${in_inbox} and seq > :after_seq and seq <= ${last_within} returning size as bytes`,
)

const CLEARED = sql(
  'inbox.cleared',
  `update inboxes set clear_at = null
    where tenant_id = :tenant_id and id = :inbox_id
      and not exists (select 1 from inbox_messages m where m.tenant_id = :tenant_id and m.inbox_id = :inbox_id)`,
)

const DELETABLE = acrossTenants<InboxKey & Due>(
  'inbox.deletable',
  `select tenant_id, id as inbox_id, 1 as due, delete_at as until from inboxes {by inboxes_deleting}
    where clear_at is null and delete_at <= :now and delete_at >= :due_from order by delete_at limit :rows_max`,
)

const DELETE_ROW = sql<Sized & { token_hash: string }>(
  'inbox.delete_row',
  `delete from inboxes where tenant_id = :tenant_id and id = :inbox_id
   returning token_hash, octet_length(label) + coalesce(octet_length(forward_url), 0)
          + coalesce(octet_length(workflow_id), 0) as bytes`,
)

const ANY_MESSAGE = sql<{ inbox_id: string }>(
  'inbox.any_message',
  'select inbox_id from inbox_messages where tenant_id = :tenant_id order by inbox_id, seq limit 1',
)

/** Inboxes that are counted in the quota but have expired; expired_counted_max at most. */
export async function countExpired(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return (await q.one(COUNT_EXPIRED, { tenant_id, now, rows_max: expired_counted_max }))!.expired
}

/** Takes expired inboxes out of the count; returns which. */
export function expire(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.all(EXPIRE, { tenant_id, now: tx.now, rows_max })
}

/** Waits for those that others hold. */
export function lockExpired(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.all(LOCK_EXPIRED, { tenant_id, now: tx.now, rows_max })
}

/** Tenants among the `rows_max` inboxes that expired first since `due_from`. */
export function tenantsWithExpired(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_EXPIRED, { now, due_from, rows_max })
}

/** Inboxes whose messages are to be removed since `due_from`, the first. */
export function clearable(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(CLEARABLE, { now, due_from, rows_max })
}

/** Removes some messages, the oldest first; returns the bytes of each. */
export function clear(tx: Tx, { tenant_id, inbox_id }: InboxKey, rows_max: number, bytes_max: number) {
  return tx.all(CLEAR, { tenant_id, inbox_id, after_seq: 0, rows_max, bytes_max })
}

/** False while there are messages left. */
export async function cleared(tx: Tx, { tenant_id, inbox_id }: InboxKey): Promise<boolean> {
  return (await tx.run(CLEARED, { tenant_id, inbox_id })) === 1
}

/** Inboxes without messages whose expiry is no longer shown since `due_from`, the first. */
export function deletable(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(DELETABLE, { now, due_from, rows_max })
}

export function deleteRow(tx: Tx, { tenant_id, inbox_id }: InboxKey) {
  return tx.one(DELETE_ROW, { tenant_id, inbox_id })
}

/** An inbox of this tenant that has messages; null when none has. */
export async function anyWithMessages(q: Reader, tenant_id: string): Promise<string | null> {
  return (await q.one(ANY_MESSAGE, { tenant_id }))?.inbox_id ?? null
}

export const purge = purging('inbox.purge', table)

/** When the next one expires after `now`. */
export const NEXT_EXPIRY = acrossTenants<{ at: Millis }>(
  'inbox.next_expiry',
  `select expires_at as at from inboxes {by inboxes_expiring}
    where counted = 1 and expires_at > :now order by expires_at limit 1`,
)
