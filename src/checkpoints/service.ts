// Checkpoints: one function per verb. Votes are in vote-service.ts, the jobs in jobs.ts.

import './errors.ts'
import { iso } from '../base/clock.ts'
import { ApiError, type Issue, invalid } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AdminCaller, AgentCaller, ApprovalCaller, Caller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, causeOf, service_cause } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { aboutOf } from './about.ts'
import {
  approvalUrl,
  type CheckpointRow,
  expiryOf,
  isPermitOver,
  no_callback,
  resolverOf,
  timeout_actions,
  timeout_seconds_max,
  timeout_seconds_min,
} from './checkpoint.ts'
import { timeouts } from './deadline-service.ts'
import { enqueueEscalation } from './escalation-service.ts'
import { events, shownTitle } from './events.ts'
import { ended, resolve, timeout_job } from './jobs.ts'
import { takeUse } from './settlement-store.ts'
import { namedApprovers, type Steering, steeringOf } from './steering.ts'
import { answer_schema_bytes_max, steering_fields } from './steering-fields.ts'
import * as store from './store.ts'
import { type Decision, isPlain, vote } from './vote-service.ts'
import { counted as countedVotes } from './vote-store.ts'

export {
  answer_schema_bytes_max,
  approvalUrl,
  countedVotes,
  expiryOf,
  isPermitOver,
  no_callback,
  steering_fields,
  steeringOf,
  takeUse,
  timeout_actions,
  timeout_seconds_max,
  timeout_seconds_min,
  timeouts,
}
export const { find, forget } = store

type NewCheckpoint = Omit<store.NewCheckpoint, 'id' | 'agent_id'> & { id?: string }

/** The place of its approvers in the body; null when they have been looked up. */
interface ApproversAt {
  approvers_at?: string | null
}

/** Throws QUOTA_EXCEEDED, VALIDATION_FAILED for approvers. */
export async function create(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Pick<Dependencies, 'jobs' | 'plans'>,
  { approvers_at = '', ...input }: NewCheckpoint & ApproversAt,
): Promise<CheckpointRow> {
  const { tenant_id, agent_id } = caller
  if (approvers_at !== null) await requireApprovers(tx, tenant_id, input, approvers_at)
  const wanted = { id: newId('chk', tx.now), ...input, agent_id }
  quotas.requireRoom(tx, caller, dependencies.plans, bytesOf(wanted))
  return open(tx, tenant_id, dependencies, wanted, causeOf(caller))
}

function bytesOf(wanted: store.NewCheckpoint): number {
  const { title, prompt, callback_url, callback_payload, workflow_id } = wanted
  const { answer_schema, payload, effect, approvers, escalate } = wanted
  const steering = [answer_schema, payload, effect, approvers, escalate]
  return rowBytes(title, prompt, callback_url, callback_payload, workflow_id, ...steering)
}

/** Asked by the service itself, which is not refused for lack of room. */
export function ask(
  tx: Tx,
  tenant_id: string,
  dependencies: { jobs: Pick<Dependencies['jobs'], 'wake'> },
  wanted: NewCheckpoint & { agent_id: string },
): Promise<CheckpointRow> {
  return open(tx, tenant_id, dependencies, { id: newId('chk', tx.now), ...wanted }, service_cause)
}

async function open(
  tx: Tx,
  tenant_id: string,
  dependencies: { jobs: Pick<Dependencies['jobs'], 'wake'> },
  wanted: store.NewCheckpoint,
  cause: Cause,
): Promise<CheckpointRow> {
  tx.stores(tenant_id, bytesOf(wanted))
  const checkpoint = await store.insert(tx, tenant_id, wanted)
  const next_at = Math.max(checkpoint.expires_at, tx.now)
  await jobs.enqueue(tx, dependencies.jobs, {
    tenant_id,
    kind: timeout_job,
    source_id: checkpoint.id,
    next_at,
  })
  await enqueueEscalation(tx, dependencies, tenant_id, checkpoint)
  await journal.emit(tx, events['checkpoint.created'], {
    ...aboutOf(tenant_id, checkpoint, cause),
    data: { title: shownTitle(wanted.title), expires_at: iso(checkpoint.expires_at) },
  })
  return checkpoint
}

/** One who cannot vote would leave a checkpoint that waits for them. Throws VALIDATION_FAILED. */
async function requireApprovers(
  tx: Tx,
  tenant_id: string,
  { approvers, escalate }: Steering,
  at: string,
): Promise<void> {
  const issues: Issue[] = []
  const found = new Map<string, string | null>([['admin', null]])
  for (const { path, approver } of namedApprovers({ approvers, escalate }, at)) {
    if (!found.has(approver)) found.set(approver, await credentials.voterIssue(tx, tenant_id, approver))
    const message = found.get(approver)
    if (message) issues.push({ path, message })
  }
  if (issues.length > 0) throw invalid(...issues)
}

/** Throws CHECKPOINT_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<CheckpointRow> {
  const checkpoint = await store.find(q, tenant_id, id)
  if (!checkpoint) throw new ApiError('CHECKPOINT_NOT_FOUND')
  return checkpoint
}

/** Throws CHECKPOINT_NOT_FOUND, FORBIDDEN for a key bound to another one of the tenant. */
export async function readFor(q: Reader, caller: ApprovalCaller, id: string): Promise<CheckpointRow> {
  const checkpoint = await read(q, caller.tenant_id, id)
  if (caller.checkpoint_id !== null && caller.checkpoint_id !== id) throw new ApiError('FORBIDDEN')
  return checkpoint
}

/** As any key may read it: an approval key only what it is bound to. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN. */
export function readAs(q: Reader, caller: Caller, id: string): Promise<CheckpointRow> {
  return caller.kind === 'approval' ? readFor(q, caller, id) : read(q, caller.tenant_id, id)
}

/**
 * One vote, which settles it when no more are needed. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN for a key bound to another one,
 * CHECKPOINT_ALREADY_RESOLVED, and what a vote is refused for.
 */
export function decide(
  db: Db,
  caller: AdminCaller | ApprovalCaller,
  dependencies: Dependencies,
  id: string,
  decision: Decision,
): Promise<CheckpointRow> {
  return db.write(caller.tenant_id, async (tx) => {
    const bound_to = caller.kind === 'approval' ? caller.checkpoint_id : null
    if (bound_to !== null && bound_to !== id) await readFor(tx, caller as ApprovalCaller, id)
    const decided =
      (isPlain(decision) && (await decidePlainly(tx, caller, dependencies, id, decision))) ||
      (await vote(tx, caller, dependencies, id, decision))
    if (!decided) throw alreadyResolved(await read(tx, caller.tenant_id, id))
    if (caller.kind === 'approval') await keyWasUsed(tx, caller, decided, decision.status)
    return decided
  })
}

/** Null unless it was pending and takes no more than this. */
function decidePlainly(
  tx: Tx,
  caller: AdminCaller | ApprovalCaller,
  dependencies: Dependencies,
  id: string,
  { status, reason }: Decision,
): Promise<CheckpointRow | null> {
  return resolve(tx, caller.tenant_id, dependencies, id, {
    ...{ status, reason, resolved_by: resolverOf(caller), callback_status: 'pending', steered_max: 0 },
    approvals: status === 'approved' ? 1 : 0,
    rejections: status === 'rejected' ? 1 : 0,
    cause: causeOf(caller),
  })
}

function keyWasUsed(
  tx: Tx,
  caller: ApprovalCaller,
  { id: checkpoint_id, workflow_id }: CheckpointRow,
  decision: 'approved' | 'rejected',
) {
  const { tenant_id, approval_key_id } = caller
  const about = { tenant_id, cause: causeOf(caller), subject_id: approval_key_id, workflow_id }
  return journal.emit(tx, events['approval_key.used'], { ...about, data: { checkpoint_id, decision } })
}

/** By the agent that created it; no callback. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN, CHECKPOINT_ALREADY_RESOLVED. */
export function cancel(db: Db, caller: AgentCaller, dependencies: Dependencies, id: string): Promise<void> {
  const { tenant_id, agent_id } = caller
  return db.write(tenant_id, async (tx) => {
    const cancelled = await store.cancel(tx, tenant_id, id, { resolved_by: `agent:${agent_id}`, agent_id })
    if (!cancelled) {
      const checkpoint = await read(tx, tenant_id, id)
      throw checkpoint.agent_id === agent_id ? alreadyResolved(checkpoint) : new ApiError('FORBIDDEN')
    }
    await ended(tx, tenant_id, dependencies, cancelled, causeOf(caller))
  })
}

/** Cancels one whose question was answered by the call of an agent or of the admin. */
export async function withdraw(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  id: string,
  cause: Cause,
): Promise<void> {
  const { actor, agent_id } = cause
  const resolved_by = agent_id === null ? actor : `agent:${agent_id}`
  const withdrawn = await store.cancel(tx, tenant_id, id, { resolved_by, agent_id: null })
  if (withdrawn) await ended(tx, tenant_id, dependencies, withdrawn, cause)
}

function alreadyResolved({ status }: CheckpointRow): ApiError {
  return new ApiError('CHECKPOINT_ALREADY_RESOLVED', { details: { status } })
}
