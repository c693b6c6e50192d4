// Statements on inbox_messages.

import { inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import type { Incoming, MessageRow } from './message.ts'
import type { Received } from './store.ts'

export const in_inbox = 'tenant_id = :tenant_id and inbox_id = :inbox_id'

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

export const message = `id, seq, method, kind, encoding, forward_status, forward_status_code, forward_error,
       forward_duration_ms, forward_attempted_at, source_ip, content_type, created_at, path, query, headers, body`

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
export const last_within = `(select coalesce(max(case when total <= :bytes_max then seq end), min(seq))
         from (select seq, sum(size) over (order by seq) as total
                 from (select seq, size from inbox_messages
                        where ${in_inbox} and seq > :after_seq order by seq limit :rows_max) as next_rows) as ahead)`

const PAGE = sql<MessageRow>(
  'inbox.page',
  `select ${message} from inbox_messages
    where ${in_inbox} and seq > :after_seq and seq <= ${last_within}
    order by seq`,
)

// The newest before this one that together keep within rows and bytes; the last of them in any case.
const BEFORE = sql<MessageRow>(
  'inbox.before',
  `select ${message} from inbox_messages
    where ${in_inbox} and seq < :before_seq
      and seq >= (select coalesce(min(case when total <= :bytes_max then seq end), max(seq))
         from (select seq, sum(size) over (order by seq desc) as total
                 from (select seq, size from inbox_messages
                        where ${in_inbox} and seq > :after_seq and seq < :before_seq
                        order by seq desc limit :rows_max) as next_rows) as ahead)
    order by seq desc`,
)

const ID_AT = sql<{ id: string }>(
  'inbox.id_at',
  `select id from inbox_messages where ${in_inbox} and seq = :seq`,
)

/** The bytes that a removed row's texts had. */
export interface Sized {
  bytes: number
}

export interface InboxKey {
  tenant_id: string
  inbox_id: string
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

/** Newest first, those between the two numbers. */
export function before(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  { after_seq, before_seq }: { after_seq: number; before_seq: number },
  rows_max: number,
  bytes_max: number,
) {
  return q.all(BEFORE, { tenant_id, inbox_id, after_seq, before_seq, rows_max, bytes_max })
}

export async function idAt(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  seq: number,
): Promise<string | null> {
  return (await q.one(ID_AT, { tenant_id, inbox_id, seq }))?.id ?? null
}
