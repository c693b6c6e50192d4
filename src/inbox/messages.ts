// The messages of an inbox, page by page.

import type { Millis } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { sequenceOf } from '../base/ids.ts'
import type { Plans } from '../contract/dependencies.ts'
import { looked_max, page_bytes_max } from '../contract/page.ts'
import type { Db, Reader } from '../db/db.ts'
import { droppedUpTo, type InboxRow } from './inbox.ts'
import { contains, type MessageRow } from './message.ts'
import * as store from './message-store.ts'
import { keptMax } from './receive.ts'
import { found, type InboxCaller } from './service.ts'

/**
 * Messages after this one, oldest first; `live` while more may arrive. Throws INBOX_NOT_FOUND, and VALIDATION_FAILED for an
 * id that is not of this inbox.
 */
export function page(
  db: Db,
  caller: InboxCaller,
  plans: Plans,
  now: Millis,
  id: string,
  after: string | undefined,
  rows_max: number,
): Promise<{ messages: MessageRow[]; live: boolean }> {
  const key = { tenant_id: caller.tenant_id, inbox_id: id }
  return db.read(caller.tenant_id, async (q) => {
    const inbox = await found(q, caller, id, now)
    const after_seq = after === undefined ? 0 : await positionOf(q, key, inbox, after, 'after')
    const dropped = droppedUpTo(inbox.last_seq, keptMax(plans, caller.plan))
    const messages = await store.page(q, key, Math.max(after_seq, dropped), rows_max, page_bytes_max)
    return { messages, live: inbox.expires_at > now }
  })
}

export interface Searched {
  /** The text, folded. */
  text: string
  /** The id of a message: only those before it. */
  before: string | undefined
  items_max: number
}

/**
 * Messages with this text, newest first. It looks at `looked_max` messages at most, and at no more bytes than a page has:
 * `reached` is the last that it looked at when there are others. Throws INBOX_NOT_FOUND, and VALIDATION_FAILED for an id
 * that is not of this inbox.
 */
export function search(
  db: Db,
  caller: InboxCaller,
  plans: Plans,
  now: Millis,
  id: string,
  { text, before, items_max }: Searched,
): Promise<{ messages: MessageRow[]; reached: string | null }> {
  const key = { tenant_id: caller.tenant_id, inbox_id: id }
  return db.read(caller.tenant_id, async (q) => {
    const inbox = await found(q, caller, id, now)
    const before_seq =
      before === undefined ? inbox.last_seq + 1 : await positionOf(q, key, inbox, before, 'before')
    const after_seq = Math.max(
      droppedUpTo(inbox.last_seq, keptMax(plans, caller.plan)),
      (inbox.first_seq ?? 1) - 1,
    )
    const rows = await store.before(q, key, { after_seq, before_seq }, looked_max, page_bytes_max)
    const messages: MessageRow[] = []
    for (const row of rows) {
      if (contains(row, text)) messages.push(row)
      if (messages.length === items_max) return { messages, reached: isLast(row) ? null : row.id }
    }
    const last = rows.at(-1)
    return { messages, reached: !last || isLast(last) ? null : last.id }

    function isLast({ seq }: MessageRow): boolean {
      return seq <= after_seq + 1
    }
  })
}

/** The number in the id, which stays valid when its message is gone. */
async function positionOf(
  q: Reader,
  key: store.InboxKey,
  { last_seq }: InboxRow,
  given: string,
  name: 'after' | 'before',
): Promise<number> {
  const seq = sequenceOf('msg', given)
  const known = seq !== null && seq > 0 && seq <= last_seq
  const there = known ? await store.find(q, key, seq) : null
  if (!known || (there && there.id !== given)) {
    throw invalid({ path: `query.${name}`, message: 'is not the id of a message of this inbox' })
  }
  return seq
}
