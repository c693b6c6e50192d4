// Statements on inboxes. Those on messages are in message-store.ts, those of the sweep in sweep-store.ts.
//
// An inbox lives until it expires, is readable for a day after that, loses its messages then (clear_at), and its row
// a week after it expired (delete_at). A deleted one is gone at once, and the sweep removes its rows.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { type InboxRow, readable_ms } from './inbox.ts'

const here = 'tenant_id = :tenant_id and id = :id'
const INSERT = sql(
  'inbox.insert',
  `insert into inboxes
     (tenant_id, id, token_hash, token, label, forward_url, workflow_id, last_seq, counted, deleted, expires_at, clear_at, delete_at,
      created_at)
   values
     (:tenant_id, :id, :token_hash, :token, :label, :forward_url, :workflow_id, 0, 1, 0, :expires_at, :clear_at,
      :delete_at, :now)`,
)

export const columns = `id, token, label, forward_url, workflow_id, last_seq, expires_at, created_at,
       (select min(seq) from inbox_messages m where m.tenant_id = :tenant_id and m.inbox_id = shown.id) as first_seq`

const FIND = sql<InboxRow>(
  'inbox.find',
  `select ${columns} from inboxes as shown where ${here} and deleted = 0 and expires_at > :expired_after`,
)

// The order of locks is that of an arriving message, which may drop one: the inbox, then its messages.
const LOCK = sql<Pick<InboxRow, 'forward_url' | 'workflow_id' | 'last_seq'>>(
  'inbox.lock',
  `select forward_url, workflow_id, last_seq from inboxes where ${here} and deleted = 0 and expires_at > :expired_after {locked}`,
)

const UNCOUNT = sql(
  'inbox.uncount',
  `update inboxes set counted = 0
    where ${here} and counted = 1 and deleted = 0 and expires_at > :expired_after`,
)

const DELETE = sql<Pick<InboxRow, 'workflow_id' | 'expires_at'>>(
  'inbox.delete',
  `update inboxes set deleted = 1, clear_at = :now, delete_at = :now
    where ${here} and deleted = 0 and expires_at > :expired_after
   returning workflow_id, expires_at`,
)

// The row's lock makes the order of the numbers that of the commits: a reader that has seen one has seen all below it.
const RECEIVE = sql<Received>(
  'inbox.receive',
  `update inboxes set last_seq = last_seq + 1
    where ${here} and deleted = 0 and expires_at > :now
      and exists (select 1 from tenants where tenants.tenant_id = :tenant_id and tenants.status = 'active')
   returning tenant_id, id, last_seq as seq, forward_url, workflow_id,
     (select plan from tenants where tenants.tenant_id = :tenant_id) as plan,
     (select storage_bytes_max from tenants where tenants.tenant_id = :tenant_id) as storage_bytes_max,
     (select used from quota_usage
       where quota_usage.tenant_id = :tenant_id and quota_usage.quota = 'storage_bytes') as stored_bytes,
     (select coalesce(min(seq), 0) from inbox_messages m
       where m.tenant_id = :tenant_id and m.inbox_id = inboxes.id) as first_seq`,
)

const BY_TOKEN = sql<{ tenant_id: string; id: string; expires_at: Millis }>(
  'inbox.by_token',
  `select tenant_id, id, expires_at from inboxes
    where tenant_id = :tenant_id and token_hash = :token_hash and deleted = 0 and delete_at > :now
      and exists (select 1 from tenants where tenants.tenant_id = :tenant_id and tenants.status = 'active')`,
)

export interface Received {
  tenant_id: string
  id: string
  seq: number
  /** The oldest message that is kept, 0 when none is. */
  first_seq: number
  forward_url: string | null
  workflow_id: string | null
  plan: string
  stored_bytes: number | null
  storage_bytes_max: number | null
}

interface NewInbox extends Omit<InboxRow, 'last_seq' | 'first_seq' | 'created_at'> {
  token_hash: string
  clear_at: Millis
  delete_at: Millis
}

export function insert(tx: Tx, tenant_id: string, inbox: NewInbox) {
  return tx.run(INSERT, { tenant_id, ...inbox, now: tx.now })
}

/** Null once it was deleted, or expired more than a day ago. */
export function find(q: Reader, tenant_id: string, id: string, now: Millis) {
  return q.one(FIND, { tenant_id, id, expired_after: now - readable_ms })
}

/** The same for a change, and locks the row. */
export function lock(tx: Tx, tenant_id: string, id: string) {
  return tx.one(LOCK, { tenant_id, id, expired_after: tx.now - readable_ms })
}

/** False when it was not in the tenant's quota any more, or is gone. */
export async function uncount(tx: Tx, tenant_id: string, id: string): Promise<boolean> {
  return (await tx.run(UNCOUNT, { tenant_id, id, expired_after: tx.now - readable_ms })) === 1
}

/** Null when it is gone. */
export function remove(tx: Tx, tenant_id: string, id: string) {
  return tx.one(DELETE, { tenant_id, id, now: tx.now, expired_after: tx.now - readable_ms })
}

/** Assigns the next number. Null when the inbox takes no messages. */
export function receive(tx: Tx, tenant_id: string, id: string) {
  return tx.one(RECEIVE, { tenant_id, id, now: tx.now })
}

/** Null when there is none, and when its expiry is no longer shown. */
export function byToken(q: Reader, tenant_id: string, token_hash: string, now: Millis) {
  return q.one(BY_TOKEN, { tenant_id, token_hash, now })
}
