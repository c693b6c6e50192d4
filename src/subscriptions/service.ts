// Subscriptions: one function per verb. Their deliveries are in jobs.ts, what the holders of addresses say in mail-service.ts.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf, type EventRow } from '../contract/event.ts'
import type { Awaitable, Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import { destinationOf } from '../jobs/job.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import * as addresses from './address-store.ts'
import { askByAnother, firstStatus } from './asking-service.ts'
import * as attempts from './attempt-store.ts'
import { events } from './events.ts'
import { subscription_job } from './jobs.ts'
import * as store from './store.ts'
import { type Format, isWanted, maskedAddress, maskedUrl, type SubscriptionRow } from './subscription.ts'
import { addressHash, openTarget, sealTarget } from './targets.ts'

/** All emails of a node go to one server. */
const mail_destination = 'mail:'

export interface Given {
  /** A URL, or an address for the format `mail`. */
  target: string
  format: Format
  name: string
  types: readonly string[]
  workflow_id: string | null
  paused: boolean
}

/** Delivers what happens from now on: what has happened before has its number. Throws QUOTA_EXCEEDED. */
export async function create(
  tx: Tx,
  caller: AdminCaller,
  dependencies: Dependencies,
  { target: text, format, name, types: wanted, workflow_id, paused }: Given,
): Promise<SubscriptionRow> {
  const { tenant_id } = caller
  const { secrets } = dependencies.keys
  // First of all: events are numbered before this and lie before its position, or after it and wake its job.
  const position = await journal.lockHead(tx, tenant_id)
  const id = newId('sub', tx.now)
  const types = JSON.stringify(wanted)
  const target = sealTarget(await secrets.sealerIn(tx), tenant_id, id, text)
  const address_hash = format === 'mail' ? addressHash(secrets, tenant_id, text) : null
  quotas.reserveBytes(tx, caller, dependencies.plans, rowBytes(name, types, workflow_id, target))
  const status = await firstStatus(tx, caller, dependencies, { id, address_hash, paused })
  await store.insert(tx, tenant_id, {
    ...{ id, status, format, name, types, workflow_id, target, address_hash },
    paused_reason: paused ? 'requested' : null,
    paused_by_admin: paused,
    shown: format === 'mail' ? maskedAddress(text) : maskedUrl(text),
    position,
  })
  await quotas.reserve(tx, caller, dependencies.plans, 'subscriptions')
  await jobs.enqueue(tx, dependencies.jobs, {
    ...{ tenant_id, kind: subscription_job, source_id: id, event_id: id },
    destination: destinationFor(format, text),
    next_at: status === 'unconfirmed' ? tx.now : jobs.idle_at,
    traceparent: null, // what it delivers belongs to other traces
  })
  await journal.emit(tx, events['subscription.created'], {
    ...{ tenant_id, cause: causeOf(caller), subject_id: id, workflow_id },
    data: { format },
  })
  return (await store.find(tx, tenant_id, id))!
}

function destinationFor(format: Format, text: string): string {
  return format === 'mail' ? mail_destination : destinationOf(text)
}

/** Throws SUBSCRIPTION_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<SubscriptionRow> {
  const subscription = await store.find(q, tenant_id, id)
  if (!subscription) throw new ApiError('SUBSCRIPTION_NOT_FOUND')
  return subscription
}

/** Throws SUBSCRIPTION_NOT_FOUND. */
export function remove(db: Db, caller: AdminCaller, dependencies: Dependencies, id: string): Promise<void> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const address = await addresses.lockOf(tx, tenant_id, id) // before any job, as when its holder confirms
    const cancelled = await jobs.cancel(tx, jobs.keyOf(caller, subscription_job, id))
    if (!cancelled) throw new ApiError('SUBSCRIPTION_NOT_FOUND')
    const removed = (await store.remove(tx, tenant_id, id))!
    tx.stores(tenant_id, -rowBytes() - removed.bytes)
    await attempts.remove(tx, tenant_id, id)
    if (address?.asked_by === id) await askByAnother(tx, dependencies, tenant_id, address)
    await quotas.release(tx, tenant_id, 'subscriptions', 1)
    await journal.emit(tx, events['subscription.deleted'], {
      ...{ tenant_id, cause: causeOf(caller), subject_id: id, data: {} },
    })
  })
}

const woken_at_once_max = limit(
  'subscriptions.read_at_once',
  200,
  'rows',
  'Subscriptions of a tenant that one statement reads, to find those that take an event.',
)

/** In the transaction that gives events their numbers: jobs of subscriptions that take one of them are due. */
export async function wake(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  events: () => Awaitable<readonly EventRow[]>,
): Promise<void> {
  let numbered: readonly EventRow[] | null = null
  const source_ids: string[] = []
  let after_id: string | undefined = ''
  while (after_id !== undefined) {
    const rows = await store.active(tx, tenant_id, after_id, woken_at_once_max)
    if (rows.length > 0) numbered ??= await events()
    for (const { id, types, workflow_id } of rows) {
      const selection = { id, types: JSON.parse(types) as string[], workflow_id }
      if (numbered!.some((event) => isWanted(selection, event))) source_ids.push(id)
    }
    after_id = rows.length < woken_at_once_max ? undefined : rows.at(-1)!.id
  }
  await jobs.wakeIdle(tx, dependencies.jobs, tenant_id, { kind: subscription_job, source_ids })
}

/** The URL in clear, to judge a change of its types. Throws SUBSCRIPTION_NOT_FOUND. */
export async function targetOf(q: Reader, dependencies: Dependencies, tenant_id: string, id: string) {
  const found = await store.target(q, tenant_id, id)
  if (!found) throw new ApiError('SUBSCRIPTION_NOT_FOUND')
  return { ...found, text: openTarget(dependencies.keys.secrets, tenant_id, { id, target: found.target }) }
}
