// Schedules: one function per verb, and what comes of an attempt.

import { second_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Jobs, Plans } from '../contract/dependencies.ts'
import { encode } from '../contract/encode.ts'
import { RawJson } from '../contract/schemas.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import * as dlq from '../dlq/service.ts'
import {
  attemptNumber,
  attemptOf,
  destinationOf,
  errorText,
  type Leased,
  nextAttemptAt,
  type Result,
} from '../jobs/job.ts'
import * as outbox from '../jobs/service.ts'
import * as quotas from '../quotas/service.ts'
import type { ScheduleRow } from './schedule.ts'
import * as store from './store.ts'

export const purge = store.purge

interface Needs {
  plans: Plans
  jobs: Pick<Jobs, 'wake'>
}

/** Throws QUOTA_EXCEEDED. A fire_at in the past means now. */
export async function create(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Needs,
  settings: store.Settings,
): Promise<ScheduleRow> {
  quotas.takeBytes(tx, caller, dependencies.plans, rowBytes(settings.callback_url, settings.callback_payload))
  const id = newId('sch', tx.now)
  await store.insert(tx, caller.tenant_id, { ...settings, id, agent_id: caller.agent_id })
  await quotas.take(tx, caller, dependencies.plans, 'active_schedules')
  await outbox.plan(tx, dependencies.jobs, workOf(tx, caller.tenant_id, id, settings))
  return (await store.find(tx, caller.tenant_id, id))!
}

function workOf(tx: Tx, tenant_id: string, id: string, { callback_url, fire_at }: store.Settings) {
  return {
    tenant_id,
    kind: 'schedule' as const,
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

/** After a change during an attempt: a receiver that changes its schedule on every call is not called in a tight circle. */
const changed_again_ms = second_ms

/**
 * Pending ones only. A new fire_at starts the attempts anew; any change makes an attempt under way count no more.
 * Throws SCHEDULE_NOT_FOUND, INVALID_STATE, and QUOTA_EXCEEDED for one that grows.
 */
export function update(
  db: Db,
  caller: AgentCaller,
  dependencies: Needs,
  id: string,
  change: Partial<store.Settings>,
): Promise<ScheduleRow> {
  return db.write(caller.tenant_id, async (tx) => {
    const { callback_url, fire_at } = change
    await mustFit(tx, caller, dependencies.plans, id, change)
    const key = outbox.keyOf(caller, 'schedule', id)
    const event_id = newId('evt', tx.now)
    const destination = callback_url === undefined ? null : destinationOf(callback_url)
    const again_at = tx.now + changed_again_ms
    if (fire_at !== undefined) {
      const next_at = Math.max(fire_at, tx.now)
      const moved = await outbox.move(
        tx,
        dependencies.jobs,
        { ...key, event_id, destination, next_at },
        again_at,
      )
      if (!moved) throw await notPending(tx, caller.tenant_id, id)
    } else {
      const redirected = await outbox.redirect(tx, key, destination, again_at)
      if (!redirected) throw await notPending(tx, caller.tenant_id, id)
      if (await isOther(tx, caller.tenant_id, id, change)) await outbox.rename(tx, key, event_id)
    }
    tx.afterCommit(() => dependencies.jobs.wake(again_at))
    const changed = await store.update(tx, caller.tenant_id, id, change)
    tx.stores(caller.tenant_id, changed?.grew ?? 0)
    return read(tx, caller.tenant_id, id)
  })
}

/** Before anything is written, so that a refusal undoes nothing. What is not pending is refused for that. */
async function mustFit(
  tx: Tx,
  caller: AgentCaller,
  plans: Plans,
  id: string,
  { callback_url, callback_payload }: Partial<store.Settings>,
): Promise<void> {
  const bytes = textBytes(callback_url ?? null) + textBytes(callback_payload ?? null)
  if (bytes === 0 || !(tx.disk_full || quotas.overBy(tx, caller, plans, bytes))) return
  const before = await store.find(tx, caller.tenant_id, id)
  if (before?.status !== 'pending') return
  const replaced =
    (callback_url === undefined ? 0 : textBytes(before.callback_url)) +
    (callback_payload === undefined ? 0 : textBytes(before.callback_payload))
  quotas.mustFit(tx, caller, plans, bytes - replaced)
}

/** Whether what is sent, or where to, becomes another. Nobody else changes it meanwhile: the row in the outbox is ours. */
async function isOther(tx: Tx, tenant_id: string, id: string, change: Partial<store.Settings>) {
  if (change.callback_url === undefined && change.callback_payload === undefined) return false
  const stored = (await store.stored(tx, tenant_id, id))!
  const { callback_url = stored.callback_url, callback_payload = stored.callback_payload } = change
  return callback_url !== stored.callback_url || callback_payload !== stored.callback_payload
}

/** Throws SCHEDULE_NOT_FOUND, INVALID_STATE. */
export function cancel(db: Db, caller: AgentCaller, id: string): Promise<void> {
  return db.write(caller.tenant_id, async (tx) => {
    const cancelled = await outbox.cancel(tx, outbox.keyOf(caller, 'schedule', id))
    if (!cancelled) throw await notPending(tx, caller.tenant_id, id)
    await store.cancel(tx, caller.tenant_id, id)
    await quotas.giveBack(tx, caller.tenant_id, 'active_schedules', 1)
  })
}

/** A schedule is pending as long as it is in the outbox. */
async function notPending(tx: Tx, tenant_id: string, id: string): Promise<ApiError> {
  const schedule = await store.find(tx, tenant_id, id)
  if (!schedule) return new ApiError('SCHEDULE_NOT_FOUND')
  return new ApiError('INVALID_STATE', { details: { status: schedule.status } })
}

/** What to send for leased work: the payload byte for byte. Null when the lease was lost, or the schedule is gone. */
export async function message(q: Reader, leased: Leased) {
  const found = await store.deliverable(q, leased)
  return found && { url: found.callback_url, event: 'schedule.fired', body: found.callback_payload }
}

export type Settled = 'fired' | 'retrying' | 'failed' | 'stale'

/** Keeps what came of an attempt; the status, the dead letter and the quota change together. */
export async function settle(tx: Tx, dependencies: Needs, leased: Leased, result: Result): Promise<Settled> {
  const { tenant_id, source_id: id } = leased
  const attempts = attemptNumber(leased)
  const tried = { attempts, last_error: errorText(result), last_status_code: result.status_code }
  const next_at = result.ok ? null : nextAttemptAt(leased, result)
  // The row in the outbox comes first, as in a lease, which logs as well: the other order is a deadlock.
  const held = await (next_at === null ? outbox.complete(tx, leased) : outbox.retry(tx, leased, next_at))
  await outbox.log(tx, leased, 'schedule', result)
  if (!held) return 'stale'
  if (next_at !== null) {
    await store.retrying(tx, tenant_id, id, tried)
    tx.afterCommit(() => dependencies.jobs.wake(next_at))
    return 'retrying'
  }
  if (result.ok) await store.fired(tx, tenant_id, id, tried)
  else await giveUp(tx, tenant_id, id, tried)
  await quotas.giveBack(tx, tenant_id, 'active_schedules', 1)
  return result.ok ? 'fired' : 'failed'
}

/** Attempts named in a dead letter. */
const attempts_told_max = limit(
  'schedules.attempts_in_dead_letter',
  10,
  'attempts',
  'Attempts that are named in the dead letter of a schedule. Earlier ones are left out, so that its payload stays small.',
)

async function giveUp(tx: Tx, tenant_id: string, id: string, tried: Parameters<typeof store.failed>[3]) {
  const failed = await store.failed(tx, tenant_id, id, tried)
  if (failed?.dlq_on_failure !== 1) return
  const attempts = await outbox.attempts(
    tx,
    tenant_id,
    'schedule',
    id,
    Number.MAX_SAFE_INTEGER,
    attempts_told_max,
  )
  await dlq.cascade(tx, tenant_id, {
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
  })
}
