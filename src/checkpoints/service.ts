// Checkpoints: one function per verb. Their jobs are in jobs.ts.

import './errors.ts'
import { iso } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AdminCaller, AgentCaller, ApprovalCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import {
  approvalUrl,
  type CheckpointRow,
  expiryOf,
  no_callback,
  resolverOf,
  timeout_actions,
  timeout_seconds_max,
  timeout_seconds_min,
  waitKey,
} from './checkpoint.ts'
import { events, shownTitle } from './events.ts'
import { aboutOf, decided, resolve, timeout_job } from './jobs.ts'
import * as store from './store.ts'

export const purge = store.purge
export { approvalUrl, expiryOf, no_callback, timeout_actions, timeout_seconds_max, timeout_seconds_min }
export const find = store.find
export const forget = store.forget

/** Throws QUOTA_EXCEEDED. */
export function create(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  input: Omit<store.NewCheckpoint, 'id' | 'agent_id'> & { id?: string },
): Promise<CheckpointRow> {
  quotas.requireRoom(tx, caller, dependencies.plans, bytesOf(input))
  const { tenant_id, agent_id } = caller
  return open(tx, tenant_id, dependencies, { ...input, agent_id, cause: causeOf(caller) })
}

function bytesOf(input: Omit<store.NewCheckpoint, 'id' | 'agent_id'>): number {
  const { title, prompt, callback_url, callback_payload, workflow_id, payload } = input
  return rowBytes(title, prompt, callback_url, callback_payload, workflow_id, payload)
}

interface Opened extends Omit<store.NewCheckpoint, 'id'> {
  /** Absent: it gets one. */
  id?: string
  cause: Cause
}

/** Also for one that the service itself asks for, which is not refused for want of room. */
export async function open(
  tx: Tx,
  tenant_id: string,
  dependencies: { jobs: Pick<Dependencies['jobs'], 'wake'> },
  { cause, ...input }: Opened,
): Promise<CheckpointRow> {
  tx.stores(tenant_id, bytesOf(input))
  const checkpoint = await store.insert(tx, tenant_id, { id: newId('chk', tx.now), ...input })
  await jobs.enqueue(tx, dependencies.jobs, {
    tenant_id,
    kind: timeout_job,
    source_id: checkpoint.id,
    event_id: newId('evt', tx.now),
    destination: '',
    next_at: Math.max(checkpoint.expires_at, tx.now),
  })
  await journal.emit(tx, events['checkpoint.created'], {
    ...aboutOf(tenant_id, checkpoint, cause),
    data: { title: shownTitle(input.title), expires_at: iso(checkpoint.expires_at) },
  })
  return checkpoint
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

/** Throws CHECKPOINT_NOT_FOUND, FORBIDDEN for a key bound to another one, CHECKPOINT_ALREADY_RESOLVED. */
export function decide(
  db: Db,
  caller: AdminCaller | ApprovalCaller,
  dependencies: Dependencies,
  id: string,
  status: 'approved' | 'rejected',
  reason: string | null,
): Promise<CheckpointRow> {
  return db.write(caller.tenant_id, async (tx) => {
    const bound_to = caller.kind === 'approval' ? caller.checkpoint_id : null
    if (bound_to !== null && bound_to !== id) await readFor(tx, caller as ApprovalCaller, id)
    const cause = causeOf(caller)
    const resolution = {
      status,
      reason,
      resolved_by: resolverOf(caller),
      callback_status: 'pending' as const,
      cause,
    }
    const resolved = await resolve(tx, caller.tenant_id, dependencies, id, resolution)
    if (!resolved) throw alreadyResolved(await read(tx, caller.tenant_id, id))
    if (caller.kind === 'approval') await keyWasUsed(tx, caller, resolved, status)
    return resolved
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
    const cancelled = await store.cancel(tx, tenant_id, id, agent_id)
    if (!cancelled) {
      const checkpoint = await read(tx, tenant_id, id)
      throw checkpoint.agent_id === agent_id ? alreadyResolved(checkpoint) : new ApiError('FORBIDDEN')
    }
    await wasCancelled(tx, tenant_id, dependencies, cancelled, causeOf(caller))
  })
}

async function wasCancelled(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  cancelled: CheckpointRow,
  cause: Cause,
): Promise<void> {
  const { id, resolved_by } = cancelled
  await jobs.cancel(tx, jobs.keyOf({ tenant_id }, timeout_job, id))
  await journal.emit(tx, events['checkpoint.cancelled'], {
    ...aboutOf(tenant_id, cancelled, cause),
    data: { resolved_by: resolved_by! },
  })
  await decided(tx, tenant_id, dependencies, cancelled, cause)
  tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(tenant_id, id)))
}

/** Cancels one whose question has answered itself. False when it was settled before. */
export async function withdraw(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  id: string,
  cause: Cause,
): Promise<boolean> {
  const withdrawn = await store.withdraw(tx, tenant_id, id, cause.agent_id)
  if (withdrawn) await wasCancelled(tx, tenant_id, dependencies, withdrawn, cause)
  return withdrawn !== null
}

function alreadyResolved({ status }: CheckpointRow): ApiError {
  return new ApiError('CHECKPOINT_ALREADY_RESOLVED', { details: { status } })
}
