// The job of an operation on many dead letters. Each run is one bounded step: what becomes of its items, their outcomes
// and the counts are one transaction, so a node that dies leaves a step that was made, or was not.

import { ApiError } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import type { LocalKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import * as tenants from '../tenants/service.ts'
import { aboutOf, lockExpired, succeeded } from './event-service.ts'
import { events } from './events.ts'
import { type DlqStatus, hasMoved } from './item.ts'
import {
  causeOfSteps,
  countOf,
  handledBy,
  type OperationItem,
  type OperationRow,
  parsed,
  printed,
  quota_again_ms,
  restAfter,
  type Step,
  settingsOf,
  stepOf,
  type Verb,
} from './operation.ts'
import * as store from './operation-store.ts'
import { redrive as redriveOne } from './redrive.ts'

export const operation_job: LocalKind = {
  name: 'dlq_operation',
  starts_at_once: true,
  logged_as: null,
  message: null,
  async settle(tx, dependencies, job) {
    const { tenant_id, source_id: id } = job
    const operation = await store.find(tx, tenant_id, id)
    if (operation?.status !== 'running') {
      await jobs.complete(tx, job)
      return null
    }
    const step = stepOf(operation)
    // The job's row comes before all others, as in a lease and in a cancellation.
    const next_at = tx.now + restAfter(operation, step.count)
    if (!(await jobs.repeat(tx, dependencies.jobs, job, next_at))) return null
    const { ended, waiting_for } = await take(tx, tenant_id, dependencies, operation, step)
    if (ended) await jobs.complete(tx, job)
    else if (waiting_for !== null)
      await jobs.setNext(tx, dependencies.jobs, job, Math.max(next_at, tx.now + quota_again_ms))
    return null
  },
}

/** The outcomes of the items of a step, in their order; fewer when a quota holds the operation up. */
interface Taken {
  items: OperationItem[]
  waiting_for: string | null
}

async function take(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  operation: OperationRow,
  { part, offset, count }: Step,
): Promise<{ ended: boolean; waiting_for: string | null }> {
  const before = (await store.part(tx, tenant_id, operation.id, part))!
  const items = parsed(before)
  const turn = items.slice(offset, offset + count)
  const cause = causeOfSteps(operation)
  const { status } = settingsOf(operation).filter
  const step = { id: operation.id, cause, turn, status }
  const taken = await takes[operation.verb](tx, tenant_id, dependencies, step)
  if (!taken) return { ended: true, waiting_for: null }
  items.splice(offset, taken.items.length, ...taken.items)
  const after = printed(items)
  await store.setPart(tx, tenant_id, operation.id, part, after)
  tx.stores(tenant_id, textBytes(after) - textBytes(before))
  const ended = handledBy(operation) + taken.items.length === operation.matched
  const advanced = await store.advance(tx, tenant_id, operation.id, {
    done: countOf(taken.items, 'done'),
    failed: countOf(taken.items, 'failed'),
    skipped: countOf(taken.items, 'skipped'),
    waiting_for: taken.waiting_for,
    ended: ended ? 1 : 0,
  })
  if (ended && advanced) await succeeded(tx, { tenant_id, cause, subject_id: operation.id }, advanced)
  return { ended, waiting_for: taken.waiting_for }
}

/** The items of one step, with the cause of what becomes of them. */
interface Turn {
  /** Of the operation. */
  id: string
  cause: Cause
  turn: readonly OperationItem[]
  /** Items that have another by then are skipped. Undefined: those that the filter named are taken in any. */
  status: DlqStatus | undefined
}

/** Null when the tenant is gone. */
type Take = (tx: Tx, tenant_id: string, dependencies: Dependencies, step: Turn) => Promise<Taken | null>

const takes: Record<Verb, Take> = { redrive, discard }

/** The items are locked in the order of their ids before the first is sent again: what that locks comes after them. */
async function redrive(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  { cause, turn, status }: Turn,
): Promise<Taken | null> {
  const tenant = await tenants.facts(tx, tenant_id)
  const items: OperationItem[] = []
  if (!tenant) return null
  const sources = new Set<string | undefined>()
  for (const { id } of turn) sources.add((await store.lockItem(tx, tenant_id, id))?.source)
  // An item of another source may change the counter of dead letters, which comes after this one.
  if (sources.size > 1 && sources.has('schedule')) await quotas.lock(tx, tenant_id, 'active_schedules')
  for (const { id } of turn) {
    try {
      const { redriven_as } = await redriveOne(tx, tenant, dependencies, { id, cause, status })
      items.push({ id, outcome: 'done', code: null, redriven_as })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const waiting_for = quotaOf(error)
      if (waiting_for !== null) return { items, waiting_for }
      const outcome = hasMoved(error, status) ? 'skipped' : 'failed'
      items.push({ id, outcome, code: error.code, redriven_as: null })
    }
  }
  return { items, waiting_for: null }
}

/** The quota that refuses it now and may not later. */
function quotaOf({ code, details }: ApiError): string | null {
  if (code === 'STORAGE_FULL') return 'storage_bytes'
  return code === 'QUOTA_EXCEEDED' ? String(details?.quota) : null
}

/** In the order of their ids, as every transaction that changes several; the counter comes last. */
async function discard(
  tx: Tx,
  tenant_id: string,
  _: Dependencies,
  { id: operation_id, cause, turn }: Turn,
): Promise<Taken> {
  const items: OperationItem[] = []
  for (const { id } of turn) {
    const discarded = await store.discard(tx, tenant_id, id)
    items.push(discarded ? { ...skippedAs(id, null), outcome: 'done' } : await skipped(tx, tenant_id, id))
    if (!discarded) continue
    const { lock_expired_at, ...item } = discarded
    await lockExpired(tx, tenant_id, item, lock_expired_at)
    const about = aboutOf(tenant_id, cause, item)
    await journal.emit(tx, events['dlq.archived'], { ...about, data: { operation_id } })
  }
  const done = countOf(items, 'done')
  if (done > 0) await quotas.release(tx, tenant_id, 'dlq_items', done)
  return { items, waiting_for: null }
}

async function skipped(tx: Tx, tenant_id: string, id: string): Promise<OperationItem> {
  const status = await store.statusOf(tx, tenant_id, id)
  if (status === null) return skippedAs(id, 'DLQ_NOT_FOUND')
  return skippedAs(id, status === 'claimed' ? 'ALREADY_CLAIMED' : 'INVALID_STATE')
}

function skippedAs(id: string, code: string | null): OperationItem {
  return { id, outcome: 'skipped', code, redriven_as: null }
}
