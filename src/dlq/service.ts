// Dead letters: one function per verb. Those on the lock are in claims.ts, the sweep in sweep.ts.

import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId, timeOf } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { type Cause, causeOf, service_cause } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import { row_bytes, rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { causeOf as causeIn } from './cause.ts'
import * as causeStore from './cause-store.ts'
import { aboutOf, changed, storedLockExpired } from './event-service.ts'
import { events } from './events.ts'
import { type DlqStatus, type ItemRow, isOpen, lock_seconds_default, seenAt } from './item.ts'
import * as redrives from './redrive.ts'
import * as store from './store.ts'

export const { lockLeft, resolveLeft } = redrives

export interface Capture {
  /** JSON text. */
  payload: string
  error: string
  workflow_id: string | null
  lock_seconds: number | null
}

/** Throws QUOTA_EXCEEDED. */
export async function capture(tx: Tx, caller: AgentCaller, plans: Plans, input: Capture): Promise<ItemRow> {
  quotas.reserveBytes(tx, caller, plans, itemBytes(input))
  const item = { ...input, source: 'agent' as const, source_id: null, agent_id: caller.agent_id }
  const id = await insert(tx, caller.tenant_id, item)
  await quotas.reserve(tx, caller, plans, 'dlq_items')
  await wasCreated(tx, caller.tenant_id, causeOf(caller), { ...item, id })
  return (await store.find(tx, caller.tenant_id, id))!
}

/**
 * A failure of the service's own work, or what a rejection leaves: `cause` is then that of the decision. Never refused for
 * quota: nothing is lost. Returns the id.
 */
export async function deadLetter(
  tx: Tx,
  tenant_id: string,
  failure: {
    payload: string
    error: string
    source: 'schedule' | 'checkpoint'
    source_id: string
    agent_id: string
    workflow_id: string | null
  },
  cause: Cause = service_cause,
): Promise<string> {
  const id = await insert(tx, tenant_id, { ...failure, lock_seconds: null })
  tx.stores(tenant_id, itemBytes(failure))
  await quotas.add(tx, tenant_id, 'dlq_items', 1)
  await wasCreated(
    tx,
    tenant_id,
    { ...cause, agent_id: cause.agent_id ?? failure.agent_id },
    { ...failure, id },
  )
  return id
}

type Created = Pick<ItemRow, 'id' | 'workflow_id' | 'error' | 'source' | 'source_id'>

function wasCreated(tx: Tx, tenant_id: string, cause: Cause, item: Created) {
  const { source, source_id, error } = item
  const data = { source, source_id, cause: causeIn(error) }
  return journal.emit(tx, events['dlq.created'], { ...aboutOf(tenant_id, cause, item), data })
}

function itemBytes(item: { payload: string; error: string; workflow_id: string | null }): number {
  return rowBytes(item.payload, item.error, item.workflow_id)
}

type Insert = Omit<store.NewItem, 'id' | 'lock_seconds'> & { lock_seconds: number | null }

async function insert(tx: Tx, tenant_id: string, item: Insert): Promise<string> {
  const id = newId('dlq', tx.now)
  await store.insert(tx, tenant_id, { ...item, id, lock_seconds: item.lock_seconds ?? lock_seconds_default })
  return id
}

/** Throws DLQ_NOT_FOUND. */
export async function read(db: Db, tenant_id: string, id: string, now: Millis): Promise<ItemRow> {
  const item = await store.find(db, tenant_id, id)
  if (!item) throw new ApiError('DLQ_NOT_FOUND')
  return seenAt(item, now)
}

const causes_looked_max = limit(
  'dlq.causes_looked_at_rows',
  5_000,
  'rows',
  'Bounds how long others wait: the newest dead letters that are grouped by cause. Older ones are not counted.',
)
const causes_max = limit('dlq.causes', 100, 'entries', 'Causes in an answer, the most frequent.')

/** The most frequent first. */
export async function causes(db: Db, tenant_id: string, status: DlqStatus, now: Millis) {
  const rows = await causeStore.causes(db, tenant_id, status, now, causes_looked_max)
  const looked = rows.reduce((sum, { letters }) => sum + letters, 0)
  const found = rows
    .filter(({ shown }) => shown === 1)
    .map(({ cause, source, letters: count, oldest_id, latest_id }) => {
      const times = { oldest_at: iso(timeOf(oldest_id)), newest_at: iso(timeOf(latest_id)) }
      return { cause, source, count, ...times, latest_id }
    })
  found.sort((one, other) => other.count - one.count || (one.latest_id < other.latest_id ? 1 : -1))
  const truncated = looked === causes_looked_max || found.length > causes_max
  return { items: found.slice(0, causes_max), truncated }
}

/** Throws DLQ_NOT_FOUND. */
export function remove(db: Db, caller: AgentCaller, id: string): Promise<void> {
  return db.write(caller.tenant_id, async (tx) => {
    const removed = await store.remove(tx, caller.tenant_id, id)
    if (!removed) throw new ApiError('DLQ_NOT_FOUND')
    tx.stores(caller.tenant_id, -removed.bytes - row_bytes)
    if (isOpen(removed.status)) await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
    await storedLockExpired(tx, caller.tenant_id, removed, tx.now)
    const { status } = removed
    await changed(tx, caller, events['dlq.deleted'], { item: removed, data: {}, status })
  })
}
