// The messages of an inbox, page by page.

import type { Millis } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { sequenceOf } from '../base/ids.ts'
import type { Plans } from '../contract/dependencies.ts'
import { page_bytes_max } from '../contract/page.ts'
import type { Db, Reader } from '../db/db.ts'
import { droppedUpTo, type InboxRow } from './inbox.ts'
import type { MessageRow } from './message.ts'
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
    const after_seq = after === undefined ? 0 : await positionOf(q, key, inbox, after)
    const dropped = droppedUpTo(inbox.last_seq, keptMax(plans, caller.plan))
    const messages = await store.page(q, key, Math.max(after_seq, dropped), rows_max, page_bytes_max)
    return { messages, live: inbox.expires_at > now }
  })
}

/** The number in the id, which stays valid when its message is gone. */
async function positionOf(
  q: Reader,
  key: store.InboxKey,
  { last_seq }: InboxRow,
  after: string,
): Promise<number> {
  const seq = sequenceOf('msg', after)
  const known = seq !== null && seq > 0 && seq <= last_seq
  const there = known ? await store.idAt(q, key, seq) : null
  if (!known || (there !== null && there !== after)) {
    throw invalid({ path: 'query.after', message: 'is not the id of a message of this inbox' })
  }
  return seq
}
