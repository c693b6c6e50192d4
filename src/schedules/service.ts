// Schedules: one function per verb. Their jobs are in jobs.ts.

import './errors.ts'
import { iso, second_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Jobs, Plans } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import { destinationOf } from '../jobs/job.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { aboutOf, isOther, moved, requireRoom } from './change-service.ts'
import { events } from './events.ts'
import { schedule_job } from './jobs.ts'
import {
  type GivenSettings,
  type Repeats,
  type ScheduleRow,
  type Settings,
  texts,
  withInitial,
} from './schedule.ts'
import * as store from './store.ts'

export interface ScheduleDependencies {
  plans: Plans
  jobs: Pick<Jobs, 'wake'>
}

/** Throws QUOTA_EXCEEDED. A fire_at in the past means now. */
export async function create(
  tx: Tx,
  caller: AgentCaller,
  dependencies: ScheduleDependencies,
  given: GivenSettings,
): Promise<ScheduleRow> {
  const settings = withInitial(given)
  quotas.reserveBytes(tx, caller, dependencies.plans, bytesOf(settings))
  const id = newId('sch', tx.now)
  await store.insert(tx, caller.tenant_id, { ...settings, ...first, id, agent_id: caller.agent_id })
  await quotas.reserve(tx, caller, dependencies.plans, 'active_schedules')
  await jobs.enqueue(tx, dependencies.jobs, jobOf(tx, caller.tenant_id, id, settings))
  const [schedule] = await Promise.all([
    store.find(tx, caller.tenant_id, id),
    wasCreated(tx, { ...settings, ...first, id }, caller.tenant_id, causeOf(caller)),
  ])
  return schedule!
}

/** Leaves the event of a new schedule. */
export function wasCreated(
  tx: Tx,
  { id, workflow_id, fire_at, retry_of, redrive_of }: Settings & Repeats & { id: string },
  tenant_id: string,
  cause: Cause,
) {
  return journal.emit(tx, events['schedule.created'], {
    ...{ tenant_id, cause, subject_id: id, workflow_id: workflow_id || null },
    data: { fire_at: iso(fire_at), retry_of, redrive_of },
  })
}

/** Of one that repeats no other. */
const first: Repeats = { retry_of: null, redrive_of: null }

export function bytesOf(settings: Settings): number {
  return rowBytes(...texts.map((name) => settings[name]))
}

export function jobOf(tx: Tx, tenant_id: string, id: string, { callback_url, fire_at }: Settings) {
  return {
    tenant_id,
    kind: schedule_job,
    source_id: id,
    event_id: newId('evt', tx.now),
    destination: destinationOf(callback_url),
    next_at: Math.max(fire_at, tx.now),
  }
}

/** Throws SCHEDULE_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<ScheduleRow> {
  const schedule = await store.find(q, tenant_id, id)
  if (!schedule) throw new ApiError('SCHEDULE_NOT_FOUND')
  return schedule
}

/** After a change during an attempt: a receiver that changes its schedule on every call is not called in a tight loop. */
const changed_again_ms = second_ms

/**
 * Pending ones only. A new fire_at starts the attempts again; after any change an attempt in flight no longer counts.
 * Throws SCHEDULE_NOT_FOUND, INVALID_STATE, and QUOTA_EXCEEDED for one that grows.
 */
export function update(
  db: Db,
  caller: AgentCaller,
  dependencies: ScheduleDependencies,
  id: string,
  change: Partial<Settings>,
): Promise<ScheduleRow> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const { callback_url, fire_at } = change
    await requireRoom(tx, caller, dependencies.plans, id, change)
    const key = jobs.keyOf(caller, schedule_job, id)
    const event_id = newId('evt', tx.now)
    const destination = callback_url === undefined ? null : destinationOf(callback_url)
    const again_at = tx.now + changed_again_ms
    if (fire_at !== undefined) {
      const next_at = Math.max(fire_at, tx.now)
      const job = { ...key, event_id, destination, next_at }
      const rescheduled = await jobs.reschedule(tx, dependencies.jobs, job, again_at)
      if (!rescheduled) throw await notPending(tx, tenant_id, id)
    } else {
      const retargeted = await jobs.retarget(tx, key, destination, again_at)
      if (!retargeted) throw await notPending(tx, tenant_id, id)
      if (await isOther(tx, tenant_id, id, change)) await jobs.changeEvent(tx, key, event_id)
    }
    tx.afterCommit(() => dependencies.jobs.wake(again_at))
    const left = change.workflow_id === undefined ? null : await store.stored(tx, tenant_id, id)
    const changed = await store.update(tx, tenant_id, id, change)
    tx.stores(tenant_id, changed?.grew ?? 0)
    const schedule = await read(tx, tenant_id, id)
    if (left) await moved(tx, caller, schedule, left.workflow_id)
    await journal.emit(tx, events['schedule.updated'], {
      ...aboutOf(caller, schedule),
      data: { changed: Object.keys(change).toSorted().join(','), fire_at: iso(schedule.fire_at) },
    })
    return schedule
  })
}

/** Throws SCHEDULE_NOT_FOUND, INVALID_STATE. */
export function cancel(db: Db, caller: AgentCaller, id: string): Promise<void> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const has_job = await jobs.cancel(tx, jobs.keyOf(caller, schedule_job, id))
    if (!has_job) throw await notPending(tx, tenant_id, id)
    const cancelled = await store.cancel(tx, tenant_id, id)
    await quotas.release(tx, tenant_id, 'active_schedules', 1)
    if (cancelled)
      await journal.emit(tx, events['schedule.cancelled'], { ...aboutOf(caller, cancelled), data: {} })
  })
}

/** A schedule is pending as long as it has a job. */
async function notPending(tx: Tx, tenant_id: string, id: string): Promise<ApiError> {
  const schedule = await store.find(tx, tenant_id, id)
  if (!schedule) return new ApiError('SCHEDULE_NOT_FOUND')
  return new ApiError('INVALID_STATE', { details: { status: schedule.status } })
}
