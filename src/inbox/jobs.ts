// The job of a forward: the message is sent on once, as it came.

import { service_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { type AttemptResult, destinationOf, type LeasedJob } from '../jobs/job.ts'
import type { SendingKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import { forwardRequest } from './forward.ts'
import * as forwards from './forward-store.ts'
import { hops_max, type Incoming } from './message.ts'
import type { InboxKey } from './message-store.ts'
import type { ReceiveDependencies } from './receive.ts'
import type * as store from './store.ts'

/** A forward has one attempt: its sender was promised nothing more. */
export const forward_job: SendingKind = {
  name: 'forward',
  attempts_max: 1,
  starts_at_once: true,
  logged_as: null,
  begun: null,
  async message({ db }, job) {
    const { key, seq } = messageOf(job)
    const message = await forwards.forwardable(db, key, seq)
    if (message?.frozen_at != null) return 'paused'
    return message && forwardRequest(key.inbox_id, message)
  },
  async settle(tx, _, job, result) {
    if (!(await jobs.complete(tx, job))) return null
    const { key, seq } = messageOf(job)
    const message = await forwards.forwarded(tx, key, seq, {
      status: result.ok ? 'delivered' : 'failed',
      status_code: result.status_code,
      error: result.error,
      duration_ms: result.duration_ms,
      fence: job.fence,
      attempted_at: result.error === 'interrupted' ? job.first_attempt_at : result.started_at,
    })
    if (message) await wasForwarded(tx, key, { ...message, seq }, result)
    return null
  },
}

function wasForwarded(
  tx: Tx,
  { tenant_id, inbox_id }: InboxKey,
  { id: message_id, seq: message_seq, workflow_id }: { id: string; seq: number; workflow_id: string | null },
  { ok, status_code, error }: AttemptResult,
) {
  const about = { tenant_id, cause: service_cause, subject_id: inbox_id, workflow_id }
  const message = { message_id, message_seq, status_code }
  if (ok) return journal.emit(tx, events['message.forwarded'], { ...about, data: message })
  const data = { ...message, error: error! }
  return journal.emit(tx, events['message.forward_failed'], { ...about, data })
}

/** The source of a forward's job. */
function sourceOf(inbox_id: string, seq: number): string {
  return `${inbox_id}/${seq}`
}

function messageOf({ tenant_id, source_id }: LeasedJob): { key: InboxKey; seq: number } {
  const at = source_id.indexOf('/')
  return { key: { tenant_id, inbox_id: source_id.slice(0, at) }, seq: Number(source_id.slice(at + 1)) }
}

/** A forward is cancelled when its message is dropped, so that a dead receiver fills nothing. */
export async function enqueueForward(
  tx: Tx,
  dependencies: ReceiveDependencies,
  inbox: store.Received,
  { hops }: Incoming,
  message_id: string,
  dropped: number,
): Promise<void> {
  if (dropped > 0) await cancelForward(tx, inbox, dropped)
  if (hops >= hops_max) return
  const { tenant_id, seq, forward_url } = inbox
  await enqueue(tx, dependencies, { tenant_id, inbox_id: inbox.id }, { id: message_id, seq }, forward_url!)
}

/** `forward_fence`: the last fencing token of an earlier job for it, whose late reports must not count. */
export function enqueue(
  tx: Tx,
  dependencies: Pick<ReceiveDependencies, 'jobs'>,
  { tenant_id, inbox_id }: InboxKey,
  { id, seq, forward_fence = null }: { id: string; seq: number; forward_fence?: number | null },
  forward_url: string,
): Promise<void> {
  return jobs.enqueue(tx, dependencies.jobs, {
    tenant_id,
    kind: forward_job,
    source_id: sourceOf(inbox_id, seq),
    event_id: id,
    destination: destinationOf(forward_url),
    next_at: tx.now,
    fence: forward_fence === null ? 0 : forward_fence + 1,
  })
}

export function cancelForward(tx: Tx, inbox: Pick<store.Received, 'tenant_id' | 'id'>, seq: number) {
  return jobs.cancel(tx, jobs.keyOf(inbox, forward_job, sourceOf(inbox.id, seq)))
}
