// Dead letters: one function per verb.

import { type Millis, second_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashKey } from '../base/keys.ts'
import { limit } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes, rowBytes } from '../db/stored.ts'
import * as quotas from '../quotas/service.ts'
import {
  claimRefusal,
  ended_kept_ms,
  type HeldItem,
  type ItemRow,
  isOpen,
  lock_seconds_default,
  moveRefusal,
  seenAt,
} from './item.ts'
import * as store from './store.ts'

export const purge = store.purge

/** Rows of a tenant that one transaction of a sweep touches, */
const sweep_rows_max = limit(
  'dlq.sweep_rows',
  500,
  'rows',
  'Dead letters that one step of a sweep touches, so that requests wait for no more than one step.',
)
/** and about how much they hold: 500 of the largest payload would stop everything else for a second. */
const sweep_bytes_max = limit(
  'dlq.sweep_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of dead letters that one step of a sweep touches.',
)

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
  return (await store.find(tx, caller.tenant_id, id))!
}

/** What the service itself gives up on. Never refused for quota: nothing is lost. */
export async function cascade(
  tx: Tx,
  tenant_id: string,
  failure: {
    payload: string
    error: string
    source: 'schedule' | 'checkpoint'
    source_id: string
    agent_id: string
  },
): Promise<void> {
  await insert(tx, tenant_id, { ...failure, workflow_id: null, lock_seconds: null })
  tx.stores(tenant_id, itemBytes({ ...failure, workflow_id: null }))
  await quotas.add(tx, tenant_id, 'dlq_items', 1)
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

/** Throws DLQ_NOT_FOUND, ALREADY_CLAIMED, INVALID_STATE. */
export function claim(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_seconds: number | undefined,
): Promise<HeldItem> {
  return db.write(caller.tenant_id, async (tx) => {
    const lock_token = newId('lck', tx.now)
    const lock = lockOf(tx, caller, lock_token, lock_seconds)
    const claimed = await store.claim(tx, caller.tenant_id, id, lock)
    if (claimed) return { ...claimed, lock_token }
    const item = await store.find(tx, caller.tenant_id, id)
    throw claimRefusal(item && seenAt(item, tx.now))
  })
}

/** The oldest item that can be claimed; null when there is none. */
export function claimOldest(
  db: Db,
  caller: AgentCaller,
  lock_seconds: number | undefined,
): Promise<HeldItem | null> {
  return db.write(caller.tenant_id, async (tx) => {
    const lock_token = newId('lck', tx.now)
    const claimed = await store.claimOldest(
      tx,
      caller.tenant_id,
      lockOf(tx, caller, lock_token, lock_seconds),
    )
    return claimed && { ...claimed, lock_token }
  })
}

function lockOf(tx: Tx, { agent_id }: AgentCaller, lock_token: string, lock_seconds: number | undefined) {
  return { agent_id, lock_token_hash: hashKey(lock_token), locked_until: lockEnd(tx, lock_seconds) }
}

/** The lock of this item when this agent holds it, and under this token if one is sent; else null. */
function holdOf(item: ItemRow | null, agent_id: string, lock_token: string | undefined) {
  const lock_token_hash = item?.lock_token_hash ?? null
  if (lock_token_hash === null || item?.locked_by !== agent_id) return null
  return isToken(lock_token, lock_token_hash) ? { agent_id, lock_token_hash } : null
}

function isToken(lock_token: string | undefined, lock_token_hash: string | null): boolean {
  return lock_token === undefined || hashKey(lock_token) === lock_token_hash
}

/** Null: the item's own lock_seconds count. */
function lockEnd(tx: Tx, lock_seconds: number | undefined): Millis | null {
  return lock_seconds === undefined ? null : tx.now + lock_seconds * second_ms
}

/** Lets the lock end lock_seconds from now, which may be earlier than it would have. Throws as release does. */
export function extend(
  db: Db,
  { tenant_id, agent_id }: AgentCaller,
  id: string,
  lock_token: string | undefined,
  lock_seconds: number | undefined,
): Promise<HeldItem> {
  return db.write(tenant_id, async (tx) => {
    for (;;) {
      const found = await store.find(tx, tenant_id, id)
      const item = found && seenAt(found, tx.now)
      const hold = holdOf(item, agent_id, lock_token)
      if (!hold) throw moveRefusal(item, 'extend')
      const extended = await store.extend(tx, tenant_id, id, hold, lockEnd(tx, lock_seconds))
      if (extended) return { ...extended, lock_token: lock_token ?? null } // else it changed since it was read
    }
  })
}

/** Throws DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD. */
export function release(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  return db.write(caller.tenant_id, (tx) => leave(tx, caller, id, lock_token, 'release'))
}

/** Gives the item up for good. Throws as release does. */
export function fail(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  return db.write(caller.tenant_id, async (tx) => {
    const item = await leave(tx, caller, id, lock_token, 'fail')
    await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
    return item
  })
}

async function leave(
  tx: Tx,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
  verb: 'release' | 'fail',
): Promise<ItemRow> {
  const { tenant_id, agent_id } = caller
  const move = verb === 'release' ? store.release : store.archive
  for (;;) {
    const found = await store.find(tx, tenant_id, id)
    const item = found && seenAt(found, tx.now)
    const hold = holdOf(item, agent_id, lock_token)
    if (!hold) throw moveRefusal(item, verb)
    const moved = await move(tx, tenant_id, id, hold)
    if (moved) return moved // else it changed since it was read
  }
}

/** From any status; a repeat changes nothing. A lock_token, when sent, must be the current one. */
export function resolve(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  return db.write(caller.tenant_id, async (tx) => {
    for (;;) {
      const found = await store.find(tx, caller.tenant_id, id)
      const item = found && seenAt(found, tx.now)
      if (!found || !item) throw moveRefusal(null, 'resolve')
      if (item.status === 'resolved') return item
      if (!isToken(lock_token, item.lock_token_hash)) throw moveRefusal(item, 'resolve')
      const resolved = await store.resolve(tx, caller.tenant_id, found)
      if (!resolved) continue
      if (isOpen(item.status)) await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
      return resolved
    }
  })
}

/** Throws DLQ_NOT_FOUND. */
export function remove(db: Db, caller: AgentCaller, id: string): Promise<void> {
  return db.write(caller.tenant_id, async (tx) => {
    const removed = await store.remove(tx, caller.tenant_id, id)
    if (!removed) throw new ApiError('DLQ_NOT_FOUND')
    tx.stores(caller.tenant_id, -removed.bytes - row_bytes)
    if (isOpen(removed.status)) await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
  })
}

/** One bounded step: locks that have run out are released for good, items that ended 90 days ago go. */
export async function sweep(db: Db, now: Millis): Promise<{ locks_released: number; more: boolean }> {
  const lapsed = await store.tenantsWithLapsed(db, now, sweep_rows_max)
  let locks_released = 0
  for (const { tenant_id } of lapsed) {
    locks_released += await db.write(upkeep, (tx) =>
      store.releaseLapsed(tx, tenant_id, sweep_rows_max, sweep_bytes_max),
    )
  }
  const ended = await store.tenantsWithEnded(db, now - ended_kept_ms, sweep_rows_max)
  let gone = 0
  for (const { tenant_id } of ended) {
    gone += await db.write(upkeep, (tx) => sweepEnded(tx, tenant_id))
  }
  return { locks_released, more: isMore(lapsed, locks_released) || isMore(ended, gone) }
}

async function sweepEnded(tx: Tx, tenant_id: string): Promise<number> {
  const ended_before = tx.now - ended_kept_ms
  const gone = await store.sweepEnded(tx, tenant_id, ended_before, sweep_rows_max, sweep_bytes_max)
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

/** Whether there was more than one look finds, or more than one step was allowed to touch. */
function isMore(found: { items: number }[], touched: number): boolean {
  const items = found.reduce((sum, tenant) => sum + tenant.items, 0)
  return items >= sweep_rows_max || touched < items
}
