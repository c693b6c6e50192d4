// A schedule that has ended is sent again, as a new schedule: for its dead letter, or by itself.

import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AdminCaller, AgentCaller, TenantFacts } from '../contract/caller.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Redrive } from '../contract/redrive.ts'
import type { Tx } from '../db/db.ts'
import * as dlq from '../dlq/service.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import { repeatable, type ScheduleRow } from './schedule.ts'
import { bytesOf, jobOf, read, type ScheduleDependencies, wasCreated } from './service.ts'
import * as store from './store.ts'

/** The dead letter is locked, and no other transaction sends a schedule again that has left one. */
export const schedule_redrive: Redrive = {
  source: 'schedule',
  async redrive(tx, tenant, dependencies, letter) {
    const old = await store.find(tx, tenant.tenant_id, letter.source_id)
    if (old?.dead_letter_id !== letter.id || !isRepeatable(old)) return null
    const { id: redrive_of, cause } = letter
    return repeat(tx, tenant, dependencies, { old, redrive_of, cause })
  },
}

/**
 * Sends a schedule again that has fired or failed; a dead letter that it left is resolved. Throws SCHEDULE_NOT_FOUND,
 * INVALID_STATE for one that has not ended or has a successor, ALREADY_CLAIMED, QUOTA_EXCEEDED.
 */
export async function retry(
  tx: Tx,
  caller: AdminCaller | AgentCaller,
  dependencies: ScheduleDependencies,
  id: string,
): Promise<ScheduleRow> {
  const { tenant_id } = caller
  const seen = await read(tx, tenant_id, id)
  // The dead letter before its schedule, as a redrive does: otherwise the two could deadlock.
  const left = await dlq.lockLeft(tx, caller, seen.dead_letter_id)
  const old = seen.dead_letter_id === null ? seen : await read(tx, tenant_id, id)
  if (!isRepeatable(old)) throw notRepeatable(old)
  const of = { old, redrive_of: left?.id ?? null, cause: causeOf(caller) }
  const retried_as = await repeat(tx, caller, dependencies, of)
  if (retried_as === null) throw notRepeatable(await read(tx, tenant_id, id))
  if (left) await dlq.resolveLeft(tx, caller, left, { redriven_as: retried_as, cause: causeOf(caller) })
  return read(tx, tenant_id, retried_as)
}

function isRepeatable({ status, retried_as }: ScheduleRow): boolean {
  return (repeatable as readonly string[]).includes(status) && retried_as === null
}

function notRepeatable({ status, retried_as }: ScheduleRow): ApiError {
  return new ApiError('INVALID_STATE', { details: { status, retried_as } })
}

/**
 * The same, due now. Returns the id of the new one; null when another transaction was first. Throws QUOTA_EXCEEDED.
 * Nothing is written unless it returns an id.
 */
async function repeat(
  tx: Tx,
  tenant: TenantFacts,
  dependencies: ScheduleDependencies,
  { old, redrive_of, cause }: { old: ScheduleRow; redrive_of: string | null; cause: Cause },
): Promise<string | null> {
  const { tenant_id } = tenant
  const { agent_id } = old
  const settings = { ...old, fire_at: tx.now }
  const bytes = bytesOf(settings)
  quotas.requireRoom(tx, tenant, dependencies.plans, bytes)
  await quotas.reserve(tx, tenant, dependencies.plans, 'active_schedules')
  const id = newId('sch', tx.now)
  if (!(await store.repeat(tx, tenant_id, old.id, id))) {
    await quotas.release(tx, tenant_id, 'active_schedules', 1)
    return null
  }
  const repeats = { retry_of: old.id, redrive_of }
  await store.insert(tx, tenant_id, { ...settings, ...repeats, id, agent_id })
  tx.stores(tenant_id, bytes)
  await jobs.enqueue(tx, dependencies.jobs, jobOf(tx, tenant_id, id, settings))
  const workflow_id = old.workflow_id || null
  await journal.emit(tx, events['schedule.retried'], {
    ...{ tenant_id, cause, subject_id: old.id, workflow_id, data: { retried_as: id } },
  })
  await wasCreated(tx, { ...settings, ...repeats, id }, tenant_id, cause)
  return id
}
