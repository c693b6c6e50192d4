// The job of a schedule: the signed callback, and its outcome.

import { limit } from '../base/limit.ts'
import { encode } from '../contract/encode.ts'
import { service_cause } from '../contract/event.ts'
import { RawJson } from '../contract/schemas.ts'
import type { Tx } from '../db/db.ts'
import * as dlq from '../dlq/service.ts'
import { attemptedOf } from '../jobs/attempts.ts'
import {
  type AttemptResult,
  attemptNumber,
  attemptOf,
  attempts_max,
  errorText,
  type LeasedJob,
} from '../jobs/job.ts'
import type { SendingKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import * as tenants from '../tenants/service.ts'
import { events } from './events.ts'
import * as store from './outcome-store.ts'

/** The status, the dead letter and the quota change together with the job. */
export const schedule_job: SendingKind = {
  name: 'schedule',
  attempts_max,
  starts_at_once: false,
  logged_as: 'schedule',
  begun: 'schedules.due',
  message: (context, job) =>
    tenants.signedCallback(context, job, async () => {
      const found = await store.deliverable(context.db, job)
      if (!found) return null
      const { callback_url: url, callback_payload: body, workflow_id } = found
      return { url, event: 'schedule.fired', body, workflow_id: workflow_id || null }
    }),
  async settle(tx, dependencies, job, result) {
    const { tenant_id, source_id: id } = job
    const tried = {
      attempts: attemptNumber(job),
      last_error: errorText(result),
      last_status_code: result.status_code,
    }
    const ended = await jobs.endAttempt(tx, dependencies.jobs, schedule_job, job, result)
    if (ended === 'lost') return null
    if (ended === 'retrying') {
      await wasAttempted(tx, job, result, await store.retrying(tx, tenant_id, id, tried))
      return 'schedules.retrying'
    }
    if (result.ok) {
      const fired = await store.fired(tx, tenant_id, id, tried)
      await quotas.release(tx, tenant_id, 'active_schedules', 1)
      await wasAttempted(tx, job, result, fired)
      const { attempts } = tried
      if (fired)
        await journal.emit(tx, events['schedule.fired'], { ...aboutOf(job, fired), data: { attempts } })
      return 'schedules.fired'
    }
    const failed = await store.failed(tx, tenant_id, id, tried)
    // Before the counter of dead letters, as in a redrive: otherwise the two could deadlock.
    await quotas.release(tx, tenant_id, 'active_schedules', 1)
    const leaves = failed?.dlq_on_failure === 1
    const dead_letter_id = leaves ? await leaveDeadLetter(tx, tenant_id, failed, tried) : null
    await wasAttempted(tx, job, result, failed)
    const { attempts, last_error } = tried
    const data = { attempts, last_error, dead_letter_id }
    if (failed) await journal.emit(tx, events['schedule.failed'], { ...aboutOf(job, failed), data })
    return 'schedules.failed'
  },
  async uncounted(tx, job, result) {
    await wasAttempted(tx, job, result, await store.attempted(tx, job.tenant_id, job.source_id))
  },
}

function aboutOf({ tenant_id, source_id }: LeasedJob, attempted: store.Attempted | null) {
  return {
    tenant_id,
    cause: service_cause,
    subject_id: source_id,
    workflow_id: attempted?.workflow_id || null,
  }
}

function wasAttempted(tx: Tx, job: LeasedJob, result: AttemptResult, attempted: store.Attempted | null) {
  const data = attemptedOf(job, result)
  return data && journal.emit(tx, events['schedule.attempted'], { ...aboutOf(job, attempted), data })
}

/** Attempts named in a dead letter. */
const attempts_named_max = limit(
  'schedules.attempts_in_dead_letter',
  10,
  'attempts',
  'Attempts that are named in the dead letter of a schedule. Earlier ones are left out, so that its payload stays small.',
)

/** Returns its id. */
async function leaveDeadLetter(
  tx: Tx,
  tenant_id: string,
  failed: store.Failed,
  tried: store.Tried,
): Promise<string> {
  const { id } = failed
  const key = { tenant_id, source: 'schedule', source_id: id }
  const attempts = await jobs.attempts(tx, key, Number.MAX_SAFE_INTEGER, attempts_named_max)
  const dead_letter_id = await dlq.deadLetter(tx, tenant_id, {
    payload: encode({
      schedule_id: id,
      callback_url: failed.callback_url,
      callback_payload: new RawJson(failed.callback_payload),
      attempts: attempts.reverse().map(attemptOf),
    }),
    error: `the callback of schedule ${id} failed: ${tried.last_error}`,
    source: 'schedule',
    source_id: id,
    agent_id: failed.agent_id,
    workflow_id: failed.workflow_id || null,
  })
  await store.leftDeadLetter(tx, tenant_id, id, dead_letter_id)
  return dead_letter_id
}
