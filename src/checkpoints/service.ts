// Checkpoints: one function per verb, and what comes of a timeout and of a callback.

import { iso } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AdminCaller, AgentCaller, ApprovalCaller } from '../contract/caller.ts'
import type { Jobs, Plans } from '../contract/dependencies.ts'
import { encode } from '../contract/encode.ts'
import { RawJson } from '../contract/schemas.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import * as dlq from '../dlq/service.ts'
import {
  attemptNumber,
  destinationOf,
  errorText,
  type Leased,
  nextAttemptAt,
  type Result,
} from '../jobs/job.ts'
import * as outbox from '../jobs/service.ts'
import * as quotas from '../quotas/service.ts'
import { type CheckpointRow, resolverOf } from './checkpoint.ts'
import * as store from './store.ts'

export const purge = store.purge

interface Creating extends Needs {
  plans: Plans
}

interface Needs {
  jobs: Pick<Jobs, 'wake'>
  shared: { waiters: { tell(key: string): void } }
}

/** Throws QUOTA_EXCEEDED. */
export async function create(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Creating,
  input: Omit<store.NewCheckpoint, 'id' | 'agent_id'>,
): Promise<CheckpointRow> {
  const { tenant_id, agent_id } = caller
  const { title, prompt, callback_url, callback_payload } = input
  quotas.takeBytes(tx, caller, dependencies.plans, rowBytes(title, prompt, callback_url, callback_payload))
  const checkpoint = await store.insert(tx, tenant_id, { ...input, id: newId('chk', tx.now), agent_id })
  await outbox.plan(tx, dependencies.jobs, {
    ...outbox.keyOf(caller, 'timeout', checkpoint.id),
    event_id: newId('evt', tx.now),
    destination: '',
    next_at: Math.max(checkpoint.expires_at, tx.now),
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
  dependencies: Needs,
  id: string,
  status: 'approved' | 'rejected',
  reason: string | null,
): Promise<CheckpointRow> {
  return db.write(caller.tenant_id, async (tx) => {
    const bound_to = caller.kind === 'approval' ? caller.checkpoint_id : null
    if (bound_to !== null && bound_to !== id) await readFor(tx, caller as ApprovalCaller, id)
    const resolution = {
      status,
      reason,
      resolved_by: resolverOf(caller),
      callback_status: 'pending' as const,
    }
    const resolved = await resolve(tx, caller.tenant_id, dependencies, id, resolution)
    if (!resolved) throw alreadyResolved(await read(tx, caller.tenant_id, id))
    return resolved
  })
}

/** Decision, callback to send and dead letter are one transaction. Null unless it was pending. */
async function resolve(
  tx: Tx,
  tenant_id: string,
  dependencies: Needs,
  id: string,
  resolution: store.Resolution,
): Promise<CheckpointRow | null> {
  const resolved = await store.resolve(tx, tenant_id, id, resolution)
  if (!resolved) return null
  tx.stores(tenant_id, textBytes(resolution.reason))
  await outbox.cancel(tx, outbox.keyOf({ tenant_id }, 'timeout', id))
  if (resolution.callback_status === 'pending') {
    await outbox.plan(tx, dependencies.jobs, {
      ...outbox.keyOf({ tenant_id }, 'callback', id),
      event_id: newId('evt', tx.now),
      destination: destinationOf(resolved.callback_url),
      next_at: tx.now,
    })
  }
  const parked = resolved.status !== 'approved' && resolved.timeout_action === 'dlq'
  if (parked) await park(tx, tenant_id, resolved, `checkpoint ${id} was ${resolved.status}`)
  tx.afterCommit(() => dependencies.shared.waiters.tell(waitKey(tenant_id, id)))
  return resolved
}

/** By the agent that created it; no callback. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN, CHECKPOINT_ALREADY_RESOLVED. */
export function cancel(db: Db, caller: AgentCaller, dependencies: Needs, id: string): Promise<void> {
  const { tenant_id, agent_id } = caller
  return db.write(tenant_id, async (tx) => {
    const cancelled = await store.cancel(tx, tenant_id, id, agent_id)
    if (!cancelled) {
      const checkpoint = await read(tx, tenant_id, id)
      throw checkpoint.agent_id === agent_id ? alreadyResolved(checkpoint) : new ApiError('FORBIDDEN')
    }
    await outbox.cancel(tx, outbox.keyOf(caller, 'timeout', id))
    tx.afterCommit(() => dependencies.shared.waiters.tell(waitKey(tenant_id, id)))
  })
}

function alreadyResolved({ status }: CheckpointRow): ApiError {
  return new ApiError('CHECKPOINT_ALREADY_RESOLVED', { details: { status } })
}

/** What a request that waits for this checkpoint is told by. */
export function waitKey(tenant_id: string, id: string): string {
  return `${tenant_id}/${id}`
}

/** Its time is over. Null when a decision came first. */
export async function settleTimeout(
  tx: Tx,
  dependencies: Needs,
  leased: Leased,
): Promise<'rejected' | 'expired' | 'stale'> {
  const { tenant_id, source_id: id } = leased
  const checkpoint = await store.find(tx, tenant_id, id)
  const to_dlq = checkpoint?.timeout_action === 'dlq'
  const resolved = await resolve(tx, tenant_id, dependencies, id, {
    status: to_dlq ? 'expired' : 'rejected',
    reason: null,
    resolved_by: 'timeout',
    callback_status: to_dlq ? 'none' : 'pending',
  })
  if (!resolved) {
    await outbox.complete(tx, leased)
    return 'stale'
  }
  return to_dlq ? 'expired' : 'rejected'
}

/** What to send for leased work; the same bytes on every attempt. Null when the checkpoint is gone. */
export async function message(q: Reader, leased: Leased) {
  const checkpoint = await store.find(q, leased.tenant_id, leased.source_id)
  if (!checkpoint) return null
  const type = `checkpoint.${checkpoint.status}`
  const resolved_at = iso(checkpoint.resolved_at!)
  const data = {
    checkpoint_id: checkpoint.id,
    status: checkpoint.status,
    reason: checkpoint.reason,
    resolved_by: checkpoint.resolved_by,
    resolved_at,
    callback_payload: rawOrNull(checkpoint.callback_payload),
  }
  return { url: checkpoint.callback_url, event: type, body: encode({ type, timestamp: resolved_at, data }) }
}

export type Settled = 'delivered' | 'retrying' | 'failed' | 'stale'

/** Keeps what came of a callback's attempt. A decision is never rolled back: what cannot be told becomes a dead letter. */
export async function settleCallback(
  tx: Tx,
  dependencies: Needs,
  leased: Leased,
  result: Result,
): Promise<Settled> {
  const { tenant_id, source_id: id } = leased
  const told = { attempts: attemptNumber(leased), last_error: errorText(result) }
  const next_at = result.ok ? null : nextAttemptAt(leased, result)
  // The row in the outbox comes first, as in a lease, which logs as well: the other order is a deadlock.
  const held = await (next_at === null ? outbox.complete(tx, leased) : outbox.retry(tx, leased, next_at))
  await outbox.log(tx, leased, 'checkpoint', result)
  if (!held) return 'stale'
  if (next_at !== null) {
    await store.called(tx, tenant_id, id, { callback_status: 'pending', ...told })
    tx.afterCommit(() => dependencies.jobs.wake(next_at))
    return 'retrying'
  }
  const called = await store.called(tx, tenant_id, id, {
    callback_status: result.ok ? 'delivered' : 'failed',
    ...told,
  })
  if (result.ok) return 'delivered'
  if (called) await park(tx, tenant_id, called, `the callback of checkpoint ${id} failed: ${told.last_error}`)
  return 'failed'
}

function park(tx: Tx, tenant_id: string, checkpoint: CheckpointRow, error: string): Promise<void> {
  return dlq.cascade(tx, tenant_id, {
    payload: encode({
      checkpoint_id: checkpoint.id,
      status: checkpoint.status,
      title: checkpoint.title,
      reason: checkpoint.reason,
      resolved_by: checkpoint.resolved_by,
      callback_url: checkpoint.callback_url,
      callback_payload: rawOrNull(checkpoint.callback_payload),
    }),
    error,
    source: 'checkpoint',
    source_id: checkpoint.id,
    agent_id: checkpoint.agent_id,
  })
}

function rawOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text)
}
