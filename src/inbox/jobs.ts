// The job of a forward: the message is sent on once, as it came.

import type { LeasedJob } from '../jobs/job.ts'
import type { SendingKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import { forwardRequest } from './forward.ts'
import * as store from './store.ts'

/** It has one attempt: its sender was promised nothing more. */
export const forward_job: SendingKind = {
  name: 'forward',
  attempts_max: 1,
  starts_at_once: true,
  logged_as: null,
  begun: null,
  async message({ db }, job) {
    const { key, seq } = messageOf(job)
    const message = await store.forwardable(db, key, seq)
    return message && forwardRequest(key.inbox_id, message)
  },
  async settle(tx, _, job, result) {
    if (!(await jobs.complete(tx, job))) return null
    const { key, seq } = messageOf(job)
    await store.forwarded(tx, key, seq, {
      status: result.ok ? 'delivered' : 'failed',
      status_code: result.status_code,
      error: result.error,
      duration_ms: result.duration_ms,
      attempted_at: result.error === 'interrupted' ? job.first_attempt_at : result.started_at,
    })
    return null
  },
}

/** The source of a forward's job. */
export function sourceOf(inbox_id: string, seq: number): string {
  return `${inbox_id}/${seq}`
}

function messageOf({ tenant_id, source_id }: LeasedJob): { key: store.InboxKey; seq: number } {
  const at = source_id.indexOf('/')
  return { key: { tenant_id, inbox_id: source_id.slice(0, at) }, seq: Number(source_id.slice(at + 1)) }
}
