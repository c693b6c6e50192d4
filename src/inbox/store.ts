// Every statement on inboxes and inbox_messages.
//
// An inbox lives until it expires, is readable for a day after that, loses its messages then (clear_at), and its row
// a week after it expired (delete_at). A deleted one is gone at once, and the sweep removes what is left of it.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { expired_counted_max } from '../quotas/service.ts'
import type { Forwardable } from './forward.ts'
import { type InboxRow, readable_ms } from './inbox.ts'
import type { Incoming, MessageRow } from './message.ts'

const here = 'tenant_id = :tenant_id and id = :id'
const in_inbox = 'tenant_id = :tenant_id and inbox_id = :inbox_id'
const table = { table: 'inboxes', key: 'tenant_id, id' }

const INSERT = sql(
  'inbox.insert',
  `insert into inboxes
     (tenant_id, id, token_hash, token, label, forward_url, last_seq, counted, deleted, expires_at, clear_at, delete_at,
      created_at)
   values
     (:tenant_id, :id, :token_hash, :token, :label, :forward_url, 0, 1, 0, :expires_at, :clear_at, :delete_at, :now)`,
)

const columns = `id, token, label, forward_url, last_seq, expires_at, created_at,
       (select min(seq) from inbox_messages m where m.tenant_id = shown.tenant_id and m.inbox_id = shown.id) as first_seq`

const FIND = sql<InboxRow>(
  'inbox.find',
  `select ${columns} from inboxes as shown where ${here} and deleted = 0 and expires_at > :expired_after`,
)

const LIST = sql<InboxRow>(
  'inbox.list',
  `select ${columns}
     from (select tenant_id, id, token, label, forward_url, last_seq, expires_at, created_at,
                  row_number() over (order by id desc) as place
             from (select * from inboxes {by inboxes_live}
                    where tenant_id = :tenant_id and counted = 1 and deleted = 0 and expires_at > :now
                    order by id desc limit :last_place) as live_inboxes) as shown
    where place > :skipped`,
)

const UNCOUNT = sql(
  'inbox.uncount',
  `update inboxes set counted = 0
    where ${here} and counted = 1 and deleted = 0 and expires_at > :expired_after`,
)

const DELETE = sql(
  'inbox.delete',
  `update inboxes set deleted = 1, clear_at = :now, delete_at = :now
    where ${here} and deleted = 0 and expires_at > :expired_after`,
)

// The row's lock makes the order of the numbers that of the commits: a reader that has seen one has seen all below it.
const RECEIVE = sql<Received>(
  'inbox.receive',
  `update inboxes set last_seq = last_seq + 1
    where token_hash = :token_hash and deleted = 0 and expires_at > :now
      and exists (select 1 from tenants where tenants.tenant_id = inboxes.tenant_id and tenants.status = 'active')
   returning tenant_id, id, last_seq as seq, forward_url,
     (select plan from tenants where tenants.tenant_id = inboxes.tenant_id) as plan,
     (select storage_bytes_max from tenants where tenants.tenant_id = inboxes.tenant_id) as storage_bytes_max,
     (select used from quota_usage
       where quota_usage.tenant_id = inboxes.tenant_id and quota_usage.quota = 'storage_bytes') as stored_bytes,
     (select coalesce(min(seq), 0) from inbox_messages m
       where m.tenant_id = inboxes.tenant_id and m.inbox_id = inboxes.id) as first_seq`,
)

const BY_TOKEN = sql<{ tenant_id: string; expires_at: Millis }>(
  'inbox.by_token',
  `select tenant_id, expires_at from inboxes
    where token_hash = :token_hash and deleted = 0 and delete_at > :now
      and exists (select 1 from tenants where tenants.tenant_id = inboxes.tenant_id and tenants.status = 'active')`,
)

const ADD = sql(
  'inbox.add',
  `insert into inbox_messages
     (tenant_id, inbox_id, seq, size, id, method, kind, encoding, forward_status, forward_error, source_ip,
      content_type, created_at, path, query, headers, body)
   values
     (:tenant_id, :inbox_id, :seq, :size, :id, :method, :kind, :encoding, :forward_status, :forward_error, :source_ip,
      :content_type, :now, :path, :query, :headers, :body)`,
)

const DROP = sql<Sized>(
  'inbox.drop',
  `delete from inbox_messages where ${in_inbox} and seq = :seq returning size as bytes`,
)

const DROP_UP_TO = sql<Sized>(
  'inbox.drop_up_to',
  `delete from inbox_messages
    where ${inChunk({
      ...{ table: 'inbox_messages', key: 'tenant_id, inbox_id, seq', index: null, order: 'seq' },
      where: `${in_inbox} and seq <= :dropped_up_to`,
    })}
   returning size as bytes`,
)

const OLDEST_SIZES = sql<{ seq: number; size: number }>(
  'inbox.oldest_sizes',
  `select seq, size from inbox_messages where ${in_inbox} and seq < :before_seq order by seq limit :rows_max`,
)

const message = `id, seq, method, kind, encoding, forward_status, forward_status_code, forward_error,
       forward_duration_ms, forward_attempted_at, source_ip, content_type, created_at, path, query, headers, body`

const LATEST = sql<MessageRow>(
  'inbox.latest',
  `select ${message} from inbox_messages
    where ${in_inbox} and seq > :after_seq order by seq desc limit :rows_max`,
)

const LATEST_SIZES = sql<{ seq: number; size: number }>(
  'inbox.latest_sizes',
  `select seq, size from inbox_messages
    where ${in_inbox} and seq > :after_seq order by seq desc limit :rows_max`,
)

const BETWEEN = sql<MessageRow>(
  'inbox.between',
  `select ${message} from inbox_messages
    where ${in_inbox} and seq >= :first_seq and seq <= :last_seq order by seq desc`,
)

/** The last of the messages after this one that together keep within rows and bytes; the first in any case. */
const last_within = `(select coalesce(max(case when total <= :bytes_max then seq end), min(seq))
         from (select seq, sum(size) over (order by seq) as total
                 from (select seq, size from inbox_messages
                        where ${in_inbox} and seq > :after_seq order by seq limit :rows_max) as next_rows) as ahead)`

const PAGE = sql<MessageRow>(
  'inbox.page',
  `select ${message} from inbox_messages
    where ${in_inbox} and seq > :after_seq and seq <= ${last_within}
    order by seq`,
)

const ID_AT = sql<{ id: string }>(
  'inbox.id_at',
  `select id from inbox_messages where ${in_inbox} and seq = :seq`,
)

const FORWARDABLE = sql<Forwardable>(
  'inbox.forwardable',
  `select m.id, m.seq, m.method, m.kind, m.encoding, m.forward_status, m.forward_status_code, m.forward_error,
          m.forward_duration_ms, m.forward_attempted_at, m.source_ip, m.content_type, m.created_at, m.path, m.query,
          m.headers, m.body, i.forward_url
     from inboxes i join inbox_messages m on m.tenant_id = i.tenant_id and m.inbox_id = i.id
    where i.tenant_id = :tenant_id and i.id = :inbox_id and i.deleted = 0 and i.forward_url is not null and m.seq = :seq`,
)

const FORWARDED = sql(
  'inbox.forwarded',
  `update inbox_messages
      set forward_status = :status, forward_status_code = :status_code, forward_error = :error,
          forward_duration_ms = :duration_ms, forward_attempted_at = :attempted_at
    where ${in_inbox} and seq = :seq`,
)

const COUNT_EXPIRED = sql<{ expired: number }>(
  'inbox.count_expired',
  `select count(*) as expired
     from (select id from inboxes {by inboxes_tenant_expiring}
            where counted = 1 and tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, :now)
            limit :rows_max) as expired_inboxes`,
)

const EXPIRE = sql(
  'inbox.expire',
  `update inboxes set counted = 0
    where ${inChunk({
      ...{ ...table, index: 'inboxes_tenant_expiring', order: 'tenant_id, expires_at', skip_locked: true },
      where: `counted = 1 and tenant_id >= :tenant_id and (tenant_id, expires_at) <= (:tenant_id, :now)`,
    })}`,
)

const TENANTS_EXPIRED = sql<{ tenant_id: string }>(
  'inbox.tenants_expired',
  `select distinct tenant_id from
     (select tenant_id from inboxes {by inboxes_expiring}
       where counted = 1 and expires_at <= :now order by expires_at limit :rows_max) as due`,
)

const CLEARABLE = sql<InboxKey>(
  'inbox.clearable',
  `select tenant_id, id as inbox_id from inboxes {by inboxes_clearing}
    where clear_at is not null and clear_at <= :now order by clear_at limit :rows_max`,
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

const DELETABLE = sql<InboxKey>(
  'inbox.deletable',
  `select tenant_id, id as inbox_id from inboxes {by inboxes_deleting}
    where clear_at is null and delete_at <= :now order by delete_at limit :rows_max`,
)

const DELETE_ROW = sql<Sized>(
  'inbox.delete_row',
  `delete from inboxes where tenant_id = :tenant_id and id = :inbox_id
   returning octet_length(label) + coalesce(octet_length(forward_url), 0) as bytes`,
)

const ANY_MESSAGE = sql<{ inbox_id: string }>(
  'inbox.any_message',
  'select inbox_id from inbox_messages where tenant_id = :tenant_id order by inbox_id, seq limit 1',
)

const PURGE = sql(
  'inbox.purge',
  `delete from inboxes where ${inChunk({ ...table, index: null, order: table.key, where: 'tenant_id = :tenant_id' })}`,
)

/** The bytes that a removed row's texts had. */
interface Sized {
  bytes: number
}

export interface InboxKey {
  tenant_id: string
  inbox_id: string
}

export interface Received {
  tenant_id: string
  id: string
  seq: number
  /** The oldest message that is kept, 0 when none is. */
  first_seq: number
  forward_url: string | null
  plan: string
  stored_bytes: number | null
  storage_bytes_max: number | null
}

export interface NewInbox {
  id: string
  token_hash: string
  /** Sealed. */
  token: string
  label: string
  forward_url: string | null
  expires_at: Millis
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

/** Newest first, expired ones left out. */
export async function list(q: Reader, tenant_id: string, now: Millis, skipped: number, rows_max: number) {
  const rows = await q.all(LIST, { tenant_id, now, skipped, last_place: skipped + rows_max })
  return rows.sort((one, other) => (one.id < other.id ? 1 : -1))
}

/** False when it was not in the tenant's quota any more, or is gone. */
export async function uncount(tx: Tx, tenant_id: string, id: string): Promise<boolean> {
  return (await tx.run(UNCOUNT, { tenant_id, id, expired_after: tx.now - readable_ms })) === 1
}

/** False when it is gone. */
export async function remove(tx: Tx, tenant_id: string, id: string): Promise<boolean> {
  return (await tx.run(DELETE, { tenant_id, id, now: tx.now, expired_after: tx.now - readable_ms })) === 1
}

/** Gives out the next number. Null when nothing may be received here. */
export function receive(tx: Tx, token_hash: string) {
  return tx.one(RECEIVE, { token_hash, now: tx.now })
}

/** Null when nobody is to know of it. */
export function byToken(q: Reader, token_hash: string, now: Millis) {
  return q.one(BY_TOKEN, { token_hash, now })
}

interface NewMessage {
  id: string
  incoming: Incoming
  forward_status: MessageRow['forward_status']
  forward_error: string | null
}

export function add(tx: Tx, { tenant_id, id: inbox_id, seq }: Received, message: NewMessage) {
  const { id, incoming, forward_status, forward_error } = message
  const { size, method, kind, encoding, source_ip, content_type, path, query, headers, body } = incoming
  // biome-ignore format: as the columns of the statement
  return tx.run(ADD, {
    tenant_id, inbox_id, seq, size, id, method, kind, encoding, forward_status, forward_error, source_ip,
    content_type, now: tx.now, path, query, headers, body,
  })
}

/** Removes this message. Without a subquery, which would cost ten times as much: it runs with almost every message. */
export function drop(tx: Tx, { tenant_id, id: inbox_id }: Received, seq: number) {
  return tx.all(DROP, { tenant_id, inbox_id, seq })
}

/** Removes messages up to this number, the oldest first. */
export function dropUpTo(
  tx: Tx,
  { tenant_id, id: inbox_id }: Received,
  dropped_up_to: number,
  rows_max: number,
) {
  return tx.all(DROP_UP_TO, { tenant_id, inbox_id, dropped_up_to, rows_max })
}

/** The oldest messages before this one, and how many bytes each has. */
export function oldestSizes(
  q: Reader,
  { tenant_id, id: inbox_id }: Received,
  before_seq: number,
  rows_max: number,
) {
  return q.all(OLDEST_SIZES, { tenant_id, inbox_id, before_seq, rows_max })
}

/** Newest first. */
export function latest(q: Reader, { tenant_id, inbox_id }: InboxKey, after_seq: number, rows_max: number) {
  return q.all(LATEST, { tenant_id, inbox_id, after_seq, rows_max })
}

/** Newest first: how many bytes each has. */
export function latestSizes(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  after_seq: number,
  rows_max: number,
) {
  return q.all(LATEST_SIZES, { tenant_id, inbox_id, after_seq, rows_max })
}

/** Newest first. */
export function between(q: Reader, { tenant_id, inbox_id }: InboxKey, first_seq: number, last_seq: number) {
  return q.all(BETWEEN, { tenant_id, inbox_id, first_seq, last_seq })
}

/** Oldest first. */
export function page(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  after_seq: number,
  rows_max: number,
  bytes_max: number,
) {
  return q.all(PAGE, { tenant_id, inbox_id, after_seq, rows_max, bytes_max })
}

export async function idAt(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  seq: number,
): Promise<string | null> {
  return (await q.one(ID_AT, { tenant_id, inbox_id, seq }))?.id ?? null
}

/** Null when the message, or its inbox, is gone. */
export function forwardable(q: Reader, { tenant_id, inbox_id }: InboxKey, seq: number) {
  return q.one(FORWARDABLE, { tenant_id, inbox_id, seq })
}

interface Forwarded {
  status: 'delivered' | 'failed'
  status_code: number | null
  error: string | null
  duration_ms: number
  attempted_at: Millis
}

export function forwarded(tx: Tx, { tenant_id, inbox_id }: InboxKey, seq: number, result: Forwarded) {
  return tx.run(FORWARDED, { tenant_id, inbox_id, seq, ...result })
}

/** Inboxes that are counted in the quota but have expired; so many are counted at most. */
export async function countExpired(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return (await q.one(COUNT_EXPIRED, { tenant_id, now, rows_max: expired_counted_max }))!.expired
}

/** Expired inboxes are counted no more; answers how many. */
export function expire(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.run(EXPIRE, { tenant_id, now: tx.now, rows_max })
}

/** Tenants among the `rows_max` inboxes that expired first. */
export function tenantsWithExpired(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_EXPIRED, { now, rows_max })
}

/** Inboxes whose messages are to go. */
export function clearable(q: Reader, now: Millis, rows_max: number) {
  return q.all(CLEARABLE, { now, rows_max })
}

/** Removes some messages, the oldest first; answers the bytes of each. */
export function clear(tx: Tx, { tenant_id, inbox_id }: InboxKey, rows_max: number, bytes_max: number) {
  return tx.all(CLEAR, { tenant_id, inbox_id, after_seq: 0, rows_max, bytes_max })
}

/** False while there are messages left. */
export async function cleared(tx: Tx, { tenant_id, inbox_id }: InboxKey): Promise<boolean> {
  return (await tx.run(CLEARED, { tenant_id, inbox_id })) === 1
}

/** Inboxes without messages whose time to be told of is over. */
export function deletable(q: Reader, now: Millis, rows_max: number) {
  return q.all(DELETABLE, { now, rows_max })
}

export function deleteRow(tx: Tx, { tenant_id, inbox_id }: InboxKey) {
  return tx.one(DELETE_ROW, { tenant_id, inbox_id })
}

/** An inbox of this tenant that has messages; null when none has. */
export async function anyWithMessages(q: Reader, tenant_id: string): Promise<string | null> {
  return (await q.one(ANY_MESSAGE, { tenant_id }))?.inbox_id ?? null
}

/** Removes rows of a tenant that is being purged; answers how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max })
}
