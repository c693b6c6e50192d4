// Statements of the job that forwards a message.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import type { Forwardable } from './forward.ts'
import type { MessageRow } from './message.ts'
import { type InboxKey, in_inbox, message } from './message-store.ts'

const FORWARDABLE = sql<Forwardable>(
  'inbox.forwardable',
  `select m.method, m.encoding, m.headers, m.body, i.forward_url, i.workflow_id,
          (select frozen_at from tenants where tenants.tenant_id = :tenant_id) as frozen_at
     from inboxes i join inbox_messages m on m.tenant_id = i.tenant_id and m.inbox_id = i.id
    where i.tenant_id = :tenant_id and i.id = :inbox_id and i.deleted = 0 and i.forward_url is not null and m.seq = :seq`,
)

const FORWARDED = sql<Pick<MessageRow, 'id'> & { workflow_id: string | null }>(
  'inbox.forwarded',
  `update inbox_messages
      set forward_status = :status, forward_status_code = :status_code, forward_error = :error,
          forward_duration_ms = :duration_ms, forward_attempted_at = :attempted_at, forward_fence = :fence
    where ${in_inbox} and seq = :seq
   returning id, (select workflow_id from inboxes where inboxes.tenant_id = :tenant_id and inboxes.id = :inbox_id) as workflow_id`,
)

const REPLAY = sql<MessageRow & { forward_fence: number | null }>(
  'inbox.replay',
  `update inbox_messages
      set forward_status = 'pending', forward_status_code = null, forward_error = null, forward_duration_ms = null,
          forward_attempted_at = null
    where ${in_inbox} and seq = :seq and id = :id and forward_status in ('delivered', 'failed')
      and (forward_error is null or forward_error <> 'loop')
   returning ${message}, forward_fence`,
)

const FORWARD_OF = sql<Pick<MessageRow, 'forward_status' | 'forward_error'>>(
  'inbox.forward_of',
  `select forward_status, forward_error from inbox_messages where ${in_inbox} and seq = :seq and id = :id`,
)

const HEADERS_OF = sql<Pick<MessageRow, 'headers'>>(
  'inbox.headers_of',
  `select headers from inbox_messages where ${in_inbox} and seq = :seq`,
)

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
  fence: number
}

/** The message; null when it is gone. */
export function forwarded(tx: Tx, { tenant_id, inbox_id }: InboxKey, seq: number, result: Forwarded) {
  return tx.one(FORWARDED, { tenant_id, inbox_id, seq, ...result })
}

/** The forward is pending again. Null when it is, or cannot be, or the message is not there. */
export function replay(tx: Tx, { tenant_id, inbox_id }: InboxKey, seq: number, id: string) {
  return tx.one(REPLAY, { tenant_id, inbox_id, seq, id })
}

/** Null when the message is not there. */
export function forwardOf(q: Reader, { tenant_id, inbox_id }: InboxKey, seq: number, id: string) {
  return q.one(FORWARD_OF, { tenant_id, inbox_id, seq, id })
}

/** JSON text of an object; null when the message is gone. */
export async function headersOf(
  q: Reader,
  { tenant_id, inbox_id }: InboxKey,
  seq: number,
): Promise<string | null> {
  return (await q.one(HEADERS_OF, { tenant_id, inbox_id, seq }))?.headers ?? null
}
