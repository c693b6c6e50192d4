// A message is forwarded once more.

import { ApiError } from '../base/errors.ts'
import { sequenceOf } from '../base/ids.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import * as forwards from './forward-store.ts'
import { droppedUpTo } from './inbox.ts'
import { enqueue } from './jobs.ts'
import type { MessageRow } from './message.ts'
import * as messages from './message-store.ts'
import { keptMax, type ReceiveDependencies } from './receive.ts'
import type { InboxCaller } from './service.ts'
import * as store from './store.ts'

interface ReplayDependencies extends Pick<ReceiveDependencies, 'jobs'> {
  plans: Plans
}

/**
 * Forwards a message again whose forward has ended. Throws INBOX_NOT_FOUND, MESSAGE_NOT_FOUND, and INVALID_STATE while a
 * forward is pending, for an inbox that forwards nothing, and for a message that came through too many forwards.
 */
export async function replay(
  tx: Tx,
  caller: InboxCaller,
  dependencies: ReplayDependencies,
  inbox_id: string,
  message_id: string,
): Promise<MessageRow> {
  const { tenant_id, plan } = caller
  const key = { tenant_id, inbox_id }
  const inbox = await store.lock(tx, tenant_id, inbox_id)
  if (!inbox) throw new ApiError('INBOX_NOT_FOUND')
  const seq = sequenceOf('msg', message_id)
  const dropped = droppedUpTo(inbox.last_seq, keptMax(dependencies.plans, plan))
  if (seq === null || seq <= dropped) throw new ApiError('MESSAGE_NOT_FOUND')
  const message = await pendingAgain(tx, key, seq, message_id)
  await enqueue(tx, dependencies, key, message, inbox.forward_url!)
  await journal.emit(tx, events['message.replayed'], {
    ...{ tenant_id, cause: causeOf(caller), subject_id: inbox_id, workflow_id: inbox.workflow_id },
    data: { message_id, message_seq: seq },
  })
  return message
}

/** A forward may end between the two looks; then the first is repeated. */
async function pendingAgain(tx: Tx, key: messages.InboxKey, seq: number, message_id: string) {
  for (;;) {
    const message = await forwards.replay(tx, key, seq, message_id)
    if (message) return message
    const there = await messages.find(tx, key, seq)
    if (there?.id !== message_id) throw new ApiError('MESSAGE_NOT_FOUND')
    const { forward_status: status, forward_error: error } = there
    const has_ended = status === 'delivered' || status === 'failed'
    if (!has_ended || error === 'loop') throw new ApiError('INVALID_STATE', { details: { status, error } })
  }
}
