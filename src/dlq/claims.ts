// The lock on a dead letter: claim and extend. What ends it is in release-service.ts.

import { iso, type Millis, second_ms } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { hashKey } from '../base/keys.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { requireToken } from '../contract/stopped.ts'
import type { Awaitable, Db, Tx } from '../db/db.ts'
import { lockTime } from './deadline-service.ts'
import { changed, lockExpired } from './event-service.ts'
import { events } from './events.ts'
import { claimRefusal, type HeldItem, type ItemRow, moveRefusal, seenAt } from './item.ts'
import * as store from './store.ts'

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
    for (;;) {
      const claimed = await store.claim(tx, caller.tenant_id, id, lock)
      if (claimed) return held(tx, caller, claimed, lock_token)
      const found = await store.find(tx, caller.tenant_id, id)
      const item = found && seenAt(found, tx.now)
      if (item?.status !== 'failed') throw claimRefusal(item) // else it was released since the claim
    }
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
    return claimed && held(tx, caller, claimed, lock_token)
  })
}

async function held(
  tx: Tx,
  caller: AgentCaller,
  { lock_expired_at, ...item }: store.Changed,
  lock_token: string,
): Promise<HeldItem> {
  const { tenant_id } = caller
  await lockExpired(tx, tenant_id, item, lock_expired_at)
  const data = { locked_until: iso(item.locked_until!) }
  await changed(tx, caller, events['dlq.claimed'], { item, data })
  return { ...item, lock_token }
}

function lockOf(tx: Tx, { agent_id }: AgentCaller, lock_token: string, lock_seconds: number | undefined) {
  return { agent_id, lock_token_hash: hashKey(lock_token), locked_until: lockEnd(tx.now, lock_seconds) }
}

/** The lock of this item when this agent holds it `at` that time, and under this token when one is sent; else null. */
function holdOf(item: ItemRow | null, agent_id: string, lock_token: string | undefined, at: Millis) {
  const lock_token_hash = item?.lock_token_hash ?? null
  if (lock_token_hash === null || item?.locked_by !== agent_id) return null
  return isToken(lock_token, lock_token_hash) ? { agent_id, lock_token_hash, at } : null
}

/** True as well when none is sent. */
export function isToken(lock_token: string | undefined, lock_token_hash: string | null): boolean {
  return lock_token === undefined || hashKey(lock_token) === lock_token_hash
}

/** Null: the item's own lock_seconds count. */
function lockEnd(at: Millis, lock_seconds: number | undefined): Millis | null {
  return lock_seconds === undefined ? null : at + lock_seconds * second_ms
}

/** Lets the lock end lock_seconds from now, which may be earlier than it would have. Throws as release does. */
export function extend(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
  lock_seconds: number | undefined,
): Promise<HeldItem> {
  const { tenant_id } = caller
  requireToken(caller, lock_token)
  return db.write(tenant_id, async (tx) => {
    const item = await whileHeld(tx, caller, id, lock_token, 'extend', (hold) =>
      store.extend(tx, tenant_id, id, hold, lockEnd(hold.at, lock_seconds)),
    )
    const data = { locked_until: iso(item.locked_until!) }
    await changed(tx, caller, events['dlq.extended'], { item, data })
    return { ...item, lock_token: lock_token ?? null }
  })
}

/** The item after a move by the holder of its lock. Throws DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD. */
export async function whileHeld(
  tx: Tx,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
  verb: 'extend' | 'release' | 'fail',
  move: (hold: store.Hold) => Awaitable<ItemRow | null>,
): Promise<ItemRow> {
  const at = await lockTime(tx, caller, id)
  for (;;) {
    const found = await store.find(tx, caller.tenant_id, id)
    const item = found && seenAt(found, at)
    const hold = holdOf(item, caller.agent_id, lock_token, at)
    if (!hold) throw moveRefusal(item, verb)
    const moved = await move(hold)
    if (moved) return moved // else it changed since it was read
  }
}
