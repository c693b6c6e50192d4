// The jobs of a checkpoint: its timeout, and the signed callback of a decision.

import { iso } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { encode } from '../contract/encode.ts'
import { type Cause, service_cause } from '../contract/event.ts'
import type { Redrive } from '../contract/redrive.ts'
import { RawJson, rawOrNull } from '../contract/schemas.ts'
import { waitKey } from '../contract/wait.ts'
import type { Reader, Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as dlq from '../dlq/service.ts'
import { attemptedOf } from '../jobs/attempts.ts'
import {
  type AttemptResult,
  attemptNumber,
  attempts_max,
  destinationOf,
  errorText,
  type LeasedJob,
} from '../jobs/job.ts'
import type { LocalKind, SendingKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as tenants from '../tenants/service.ts'
import { aboutOf } from './about.ts'
import { type CheckpointRow, callbackUrlOf } from './checkpoint.ts'
import { escalation_job } from './escalation-service.ts'
import { events } from './events.ts'
import * as store from './store.ts'
import * as votes from './vote-store.ts'

/** Settles a checkpoint whose time is over; a decision that came first wins. */
export const timeout_job: LocalKind = {
  name: 'timeout',
  starts_at_once: false,
  logged_as: null,
  message: null,
  async settle(tx, dependencies, job) {
    const { tenant_id, source_id: id } = job
    const checkpoint = await store.find(tx, tenant_id, id)
    const to_dlq = checkpoint?.timeout_action === 'dlq'
    const resolved = await resolve(tx, tenant_id, dependencies, id, {
      status: to_dlq ? 'expired' : 'rejected',
      reason: null,
      resolved_by: 'timeout',
      callback_status: to_dlq ? 'none' : 'pending',
      ...{ approvals: 0, rejections: 0, steered_max: 1 },
      cause: service_cause,
    })
    if (!resolved) {
      await jobs.complete(tx, job)
      return null
    }
    return to_dlq ? 'checkpoints.expired' : 'checkpoints.rejected'
  },
}

/** A decision is never rolled back: a callback that cannot be delivered becomes a dead letter. */
export const callback_job: SendingKind = {
  name: 'callback',
  attempts_max,
  starts_at_once: true,
  logged_as: 'checkpoint',
  begun: null,
  message: (context, job) =>
    tenants.signedCallback(context, job, async () => {
      const checkpoint = await store.find(context.db, job.tenant_id, job.source_id)
      return checkpoint && decisionCallbackOf(checkpoint, await hashOfForgotten(context.db, job, checkpoint))
    }),
  async settle(tx, dependencies, job, result) {
    const { tenant_id, source_id: id, fence } = job
    const ended = await jobs.endAttempt(tx, dependencies.jobs, callback_job, job, result)
    if (ended === 'lost') return null
    const callback_status = ended === 'retrying' ? 'pending' : result.ok ? 'delivered' : 'failed'
    const tried = { attempts: attemptNumber(job), last_error: errorText(result) }
    const row = await store.recordCallback(tx, tenant_id, id, { callback_status, ...tried, fence })
    if (row && callback_status === 'failed') await callbackFailed(tx, job, result, row, tried)
    else await wasAttempted(tx, job, result, row)
    if (row && callback_status === 'delivered') {
      const data = { attempts: tried.attempts }
      await journal.emit(tx, events['callback.delivered'], { ...aboutOf(tenant_id, row), data })
    }
    return ended === 'retrying' ? null : 'checkpoints.callbacks'
  },
  async uncounted(tx, job, result) {
    await wasAttempted(tx, job, result, await store.find(tx, job.tenant_id, job.source_id))
  },
}

function wasAttempted(tx: Tx, job: LeasedJob, result: AttemptResult, checkpoint: CheckpointRow | null) {
  const data = attemptedOf(job, result)
  if (!data || !checkpoint) return
  return journal.emit(tx, events['callback.attempted'], { ...aboutOf(job.tenant_id, checkpoint), data })
}

async function callbackFailed(
  tx: Tx,
  job: LeasedJob,
  result: AttemptResult,
  failed: CheckpointRow,
  tried: { attempts: number; last_error: string | null },
): Promise<void> {
  const { tenant_id, source_id: id } = job
  const error = `the callback of checkpoint ${id} failed: ${tried.last_error}`
  const dead_letter_id = await deadLetter(tx, tenant_id, failed, { error, cause: service_cause })
  await store.leftDeadLetter(tx, tenant_id, id, dead_letter_id)
  await wasAttempted(tx, job, result, failed)
  const data = { ...tried, dead_letter_id }
  await journal.emit(tx, events['callback.failed'], { ...aboutOf(tenant_id, failed), data })
}

/** The callback of a decision is sent again as itself, under the same webhook-id. */
export const checkpoint_redrive: Redrive = {
  source: 'checkpoint',
  async redrive(tx, { tenant_id }, dependencies, { id: dead_letter_id, source_id: id, cause }) {
    const checkpoint = await store.redrive(tx, tenant_id, id, dead_letter_id)
    if (!checkpoint) return null
    const key = { tenant_id, source: callback_job.logged_as!, source_id: id }
    const [latest] = await jobs.attempts(tx, key, Number.MAX_SAFE_INTEGER, 1)
    await enqueueCallback(tx, tenant_id, dependencies, checkpoint, latest?.event_id)
    const data = { redrive_of: dead_letter_id }
    await journal.emit(tx, events['callback.redriven'], { ...aboutOf(tenant_id, checkpoint, cause), data })
    return id
  },
}

/** Its fencing tokens are above those of earlier jobs, so that no late report of these counts. */
function enqueueCallback(
  tx: Tx,
  tenant_id: string,
  dependencies: Pick<Dependencies, 'jobs'>,
  { id, callback_url, callback_fence }: CheckpointRow,
  event_id = newId('evt', tx.now),
): Promise<void> {
  return jobs.enqueue(tx, dependencies.jobs, {
    tenant_id,
    kind: callback_job,
    source_id: id,
    event_id,
    destination: destinationOf(callback_url),
    next_at: tx.now,
    fence: callback_fence === 0 ? 0 : callback_fence + 1,
  })
}

/**
 * The hash of what was approved after an edit, once its bytes are no longer kept; else null. Without it a late attempt would
 * read as an approval of what was proposed.
 */
async function hashOfForgotten(
  q: Reader,
  { tenant_id }: { tenant_id: string },
  { id, status, editable, payload }: CheckpointRow,
): Promise<string | null> {
  if (status !== 'approved' || editable === 0 || payload !== null) return null
  const edit = (await votes.counted(q, tenant_id, id)).find(({ edited }) => edited === 1)
  return edit?.effective_hash ?? null
}

/** The same bytes on every attempt, while those of an edit are kept. */
function decisionCallbackOf(checkpoint: CheckpointRow, forgotten_hash: string | null) {
  const type = `checkpoint.${checkpoint.status}`
  const resolved_at = iso(checkpoint.resolved_at!)
  const data = {
    checkpoint_id: checkpoint.id,
    status: checkpoint.status,
    reason: checkpoint.reason,
    resolved_by: checkpoint.resolved_by,
    resolved_at,
    callback_payload: rawOrNull(checkpoint.callback_payload),
    ...(checkpoint.answer !== null && { answer: new RawJson(checkpoint.answer) }),
    ...(checkpoint.effective_payload !== null && {
      effective_payload: new RawJson(checkpoint.effective_payload),
    }),
    ...(forgotten_hash !== null && { effective_payload: null, effective_hash: forgotten_hash }),
  }
  const { callback_url: url, workflow_id } = checkpoint
  return { url, event: type, body: encode({ type, timestamp: resolved_at, data }), workflow_id }
}

/** Decision, callback job and dead letter are one transaction. Null unless it was pending, and plain where `steered_max` says so. */
export async function resolve(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  id: string,
  { cause, ...resolution }: store.Resolution & { cause: Cause },
): Promise<CheckpointRow | null> {
  const resolved = await store.resolve(tx, tenant_id, id, resolution)
  if (!resolved) return null
  tx.stores(tenant_id, textBytes(resolution.reason))
  await ended(tx, tenant_id, dependencies, resolved, cause)
  return resolved
}

/** Does all that follows from a settlement, in its transaction. */
export async function ended(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  settled: CheckpointRow,
  cause: Cause,
): Promise<void> {
  const { id, status, resolved_by } = settled
  const waited = await jobs.cancelTraced(tx, jobs.keyOf({ tenant_id }, timeout_job, id))
  // The trace of the agent that asked goes on, not that of the person who decided.
  if (waited?.traceparent) tx.origin = waited
  if (settled.escalate !== null) await jobs.cancel(tx, jobs.keyOf({ tenant_id }, escalation_job, id))
  if (settled.callback_status === 'pending') await enqueueCallback(tx, tenant_id, dependencies, settled)
  await journal.emit(tx, events[`checkpoint.${status as 'approved'}`], {
    ...aboutOf(tenant_id, settled, cause),
    data: { resolved_by: resolved_by! },
  })
  if ((status === 'rejected' || status === 'expired') && settled.timeout_action === 'dlq') {
    await deadLetter(tx, tenant_id, settled, { error: `checkpoint ${id} was ${status}`, cause })
  }
  for (const decides of dependencies.decides) {
    await decides(tx, dependencies, { tenant_id, checkpoint: settled, cause })
  }
  tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(tenant_id, id)))
}

/** Returns its id. */
function deadLetter(
  tx: Tx,
  tenant_id: string,
  checkpoint: CheckpointRow,
  { error, cause }: { error: string; cause: Cause },
): Promise<string> {
  const failure = {
    payload: encode({
      checkpoint_id: checkpoint.id,
      status: checkpoint.status,
      title: checkpoint.title,
      reason: checkpoint.reason,
      resolved_by: checkpoint.resolved_by,
      callback_url: callbackUrlOf(checkpoint),
      callback_payload: rawOrNull(checkpoint.callback_payload),
    }),
    error,
    source: 'checkpoint' as const,
    source_id: checkpoint.id,
    agent_id: checkpoint.agent_id,
    workflow_id: checkpoint.workflow_id,
  }
  return dlq.deadLetter(tx, tenant_id, failure, cause)
}
