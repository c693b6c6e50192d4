// Changes of subscriptions.

import { ApiError, invalid } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import { destinationOf } from '../jobs/job.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import * as addresses from './address-store.ts'
import * as changes from './change-store.ts'
import * as deliveries from './delivery-store.ts'
import { events } from './events.ts'
import { subscription_job } from './jobs.ts'
import * as selections from './selection-service.ts'
import { read } from './service.ts'
import { isIdle } from './shapes.ts'
import * as store from './store.ts'
import { maskedUrl, type SubscriptionRow, type SubscriptionStatus } from './subscription.ts'
import { sealTarget } from './targets.ts'

/** The fields that a caller may change; those that are absent stay. */
export interface GivenChange {
  url?: string
  name?: string
  types?: readonly string[]
  workflow_id?: string | null
  paused?: boolean
}

/**
 * An attempt that is under way no longer counts; the event that was tried is tried again, from its first attempt. Throws
 * SUBSCRIPTION_NOT_FOUND, INVALID_STATE where only the holder of the address can resume the emails, UNAVAILABLE while there
 * is more of the journal to pass over.
 */
export async function update(
  db: Db,
  caller: AdminCaller,
  dependencies: Dependencies,
  id: string,
  { url, paused, types, ...others }: GivenChange,
): Promise<SubscriptionRow> {
  const { tenant_id } = caller
  const selects = types !== undefined || others.workflow_id !== undefined
  if (selects) await selections.pass(db, dependencies, tenant_id, id)
  return db.write(tenant_id, async (tx) => {
    const head = await journal.lockHead(tx, tenant_id)
    const none_waits = selects && isIdle(await read(tx, tenant_id, id))
    await tryAgain(tx, caller, dependencies, id, url === undefined ? null : destinationOf(url))
    const before = await read(tx, tenant_id, id)
    if (none_waits) await deliveries.advance(tx, tenant_id, id, head)
    else if (selects) await selections.passRest(tx, dependencies, tenant_id, before)
    const status = await nextStatus(tx, tenant_id, before, paused)
    if (url !== undefined && before.format === 'mail')
      throw invalid({ path: '/url', message: 'cannot be set on a subscription that sends emails' })
    const change: changes.Change = { ...others }
    if (types) change.types = JSON.stringify(types)
    if (url !== undefined) {
      change.target = sealTarget(await dependencies.keys.secrets.sealerIn(tx), tenant_id, id, url)
      change.shown = maskedUrl(url)
    }
    if (paused !== undefined) change.paused_by_admin = paused
    if (status) Object.assign(change, { status, paused_reason: paused ? 'requested' : null })
    await requireRoom(tx, caller, dependencies, id, change)
    await changes.update(tx, tenant_id, id, change)
    await emitChange(tx, caller, id, { status, last_error: before.last_error, is_changed: isChanged(change) })
    return read(tx, tenant_id, id)
  })
}

/** True when more than the status changes. While the address is unconfirmed, a pause counts as well. */
function isChanged({ status, paused_reason: _, paused_by_admin: __, ...others }: changes.Change): boolean {
  return status === 'unconfirmed' || Object.keys(others).length > 0
}

/** Null when it stays as it is. */
async function nextStatus(
  tx: Tx,
  tenant_id: string,
  { id, status, format }: SubscriptionRow,
  paused: boolean | undefined,
): Promise<SubscriptionStatus | null> {
  if (paused === undefined) return null
  if (status === 'unconfirmed') return status
  const wanted = paused ? 'paused' : 'active'
  if (wanted === status) return null
  if (format === 'mail' && wanted === 'active') {
    const { address_hash } = (await store.target(tx, tenant_id, id))!
    const address = await addresses.find(tx, tenant_id, address_hash!)
    if (address?.state !== 'confirmed') throw new ApiError('INVALID_STATE', { details: { status } })
  }
  return wanted
}

async function requireRoom(
  tx: Tx,
  caller: AdminCaller,
  { plans }: Dependencies,
  id: string,
  change: changes.Change,
): Promise<void> {
  const before = await store.target(tx, caller.tenant_id, id)
  const names = ['name', 'types', 'workflow_id', 'target'] as const
  let grows = 0
  for (const name of names)
    if (change[name] !== undefined) grows += textBytes(change[name]) - textBytes(before![name])
  if (grows > 0) quotas.reserveBytes(tx, caller, plans, grows)
  else tx.stores(caller.tenant_id, grows)
}

async function emitChange(
  tx: Tx,
  caller: AdminCaller,
  subject_id: string,
  {
    status,
    last_error,
    is_changed,
  }: { status: SubscriptionStatus | null; last_error: string | null; is_changed: boolean },
): Promise<void> {
  const about = { tenant_id: caller.tenant_id, cause: causeOf(caller), subject_id }
  if (is_changed) await journal.emit(tx, events['subscription.updated'], { ...about, data: {} })
  if (status === 'active') await journal.emit(tx, events['subscription.resumed'], { ...about, data: {} })
  if (status !== 'paused') return
  await journal.emit(tx, events['subscription.paused'], {
    ...about,
    data: { reason: 'requested', last_error },
  })
}

/**
 * Makes the job of a subscription due now, ends its lease, and locks its row. The caller has locked the head of the journal: an event
 * is numbered before this, and the job finds it, or after it, and wakes the job. The job of an unconfirmed subscription is only
 * locked, because it would ask the address a second time. Throws SUBSCRIPTION_NOT_FOUND.
 */
async function tryAgain(
  tx: Tx,
  caller: AdminCaller,
  dependencies: Dependencies,
  id: string,
  destination: string | null,
): Promise<void> {
  const key = jobs.keyOf(caller, subscription_job, id)
  const found = await store.target(tx, caller.tenant_id, id)
  const job = { ...key, event_id: id, destination, next_at: tx.now }
  const held =
    found?.status === 'unconfirmed'
      ? await jobs.lock(tx, key)
      : await jobs.reschedule(tx, dependencies.jobs, job)
  if (!held) throw new ApiError('SUBSCRIPTION_NOT_FOUND')
}

/** Delivers again what comes after this number, as far as it is kept; one above the last counts as that. Throws SUBSCRIPTION_NOT_FOUND. */
export async function replay(
  db: Db,
  caller: AdminCaller,
  dependencies: Dependencies,
  id: string,
  after: number,
): Promise<SubscriptionRow> {
  const { tenant_id } = caller
  await dependencies.journal.number(tenant_id)
  return db.write(tenant_id, async (tx) => {
    const position = Math.min(after, await journal.lockHead(tx, tenant_id))
    await tryAgain(tx, caller, dependencies, id, null)
    await changes.replay(tx, tenant_id, id, position)
    await journal.emit(tx, events['subscription.replayed'], {
      ...{ tenant_id, cause: causeOf(caller), subject_id: id, data: { after: position } },
    })
    return read(tx, tenant_id, id)
  })
}
