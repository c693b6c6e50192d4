// The redrive of a dead letter: what failed is sent again, or an agent's item can be claimed again.

import type { TenantFacts } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Cause } from '../contract/event.ts'
import { deadlineTime } from '../contract/stopped.ts'
import type { Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { aboutOf, failingOf, storedLockExpired } from './event-service.ts'
import { events } from './events.ts'
import { type DlqStatus, type ItemRow, isOpen, redriveRefusal, seenAt } from './item.ts'
import * as store from './store.ts'

/**
 * Sends the source of the item again and resolves the item; an agent's item is failed again. Throws DLQ_NOT_FOUND,
 * ALREADY_CLAIMED, INVALID_STATE, QUOTA_EXCEEDED and STORAGE_FULL, and has then written nothing. `status`: only an item that
 * has this status is sent again.
 */
export async function redrive(
  tx: Tx,
  tenant: TenantFacts,
  dependencies: Dependencies,
  { id, cause, status }: { id: string; cause: Cause; status?: DlqStatus | undefined },
): Promise<ItemRow> {
  const { tenant_id } = tenant
  const found = await store.findLocked(tx, tenant_id, id)
  const at = deadlineTime(tenant, tx.now)
  const item = found && seenAt(found, at)
  if (!item || item.status === 'claimed' || item.status === 'resolved') throw redriveRefusal(item)
  if (status !== undefined && item.status !== status) throw redriveRefusal(item)
  if (item.source === 'agent') return reopened(tx, tenant, dependencies, { item, cause })
  const source = dependencies.redrives.get(item.source)
  const letter = { id, source_id: item.source_id!, cause }
  const redriven_as = (await source?.redrive(tx, tenant, dependencies, letter)) ?? null
  if (redriven_as === null) throw redriveRefusal(item)
  await storedLockExpired(tx, tenant_id, found!, at)
  return resolved(tx, tenant_id, item, { redriven_as, cause })
}

async function reopened(
  tx: Tx,
  tenant: TenantFacts,
  { plans }: Dependencies,
  { item, cause }: { item: ItemRow; cause: Cause },
): Promise<ItemRow> {
  const { tenant_id } = tenant
  if (item.status === 'failed') return item
  await quotas.reserve(tx, tenant, plans, 'dlq_items')
  const again = await store.reopen(tx, tenant_id, item.id)
  await journal.emit(tx, events['dlq.reopened'], { ...aboutOf(tenant_id, cause, item), data: {} })
  return again
}

interface Redriven {
  redriven_as: string
  cause: Cause
}

async function resolved(
  tx: Tx,
  tenant_id: string,
  item: ItemRow,
  { redriven_as, cause }: Redriven,
): Promise<ItemRow> {
  const redriven = await store.redrive(tx, tenant_id, item.id, redriven_as)
  if (isOpen(item.status)) await quotas.release(tx, tenant_id, 'dlq_items', 1)
  await journal.emit(tx, events['dlq.resolved'], {
    ...aboutOf(tenant_id, cause, item),
    failing: failingOf(item.status),
    data: { redriven_as },
  })
  return redriven
}

/**
 * Locks the item that a source left before the source is sent again by itself, and returns it as it is stored. Null when
 * nothing is left to resolve.
 * Throws ALREADY_CLAIMED.
 */
export async function lockLeft(tx: Tx, tenant: TenantFacts, id: string | null): Promise<ItemRow | null> {
  const found = id === null ? null : await store.findLocked(tx, tenant.tenant_id, id)
  const item = found && seenAt(found, deadlineTime(tenant, tx.now))
  if (item?.status === 'claimed') throw redriveRefusal(item)
  return item?.status === 'resolved' ? null : found
}

/** Resolves an item that `lockLeft` returned. */
export async function resolveLeft(
  tx: Tx,
  tenant: TenantFacts,
  item: ItemRow,
  redriven: Redriven,
): Promise<void> {
  await storedLockExpired(tx, tenant.tenant_id, item, deadlineTime(tenant, tx.now))
  await resolved(tx, tenant.tenant_id, item, redriven)
}
