// The end of a claim: release, fail and resolve.

import type { AgentCaller } from '../contract/caller.ts'
import { requireToken } from '../contract/stopped.ts'
import type { Db } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import { isToken, whileHeld } from './claims.ts'
import { lockTime } from './deadline-service.ts'
import { changed, lockExpired } from './event-service.ts'
import { events } from './events.ts'
import { type ItemRow, isOpen, moveRefusal, seenAt } from './item.ts'
import * as store from './store.ts'

/** Throws DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD. */
export function release(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  return db.write(caller.tenant_id, async (tx) => {
    requireToken(caller, lock_token)
    const item = await whileHeld(tx, caller, id, lock_token, 'release', (hold) =>
      store.release(tx, caller.tenant_id, id, hold),
    )
    await changed(tx, caller, events['dlq.released'], { item, data: {} })
    return item
  })
}

/** Gives the item up for good. Throws as release does. */
export function fail(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  return db.write(caller.tenant_id, async (tx) => {
    requireToken(caller, lock_token)
    const item = await whileHeld(tx, caller, id, lock_token, 'fail', (hold) =>
      store.archive(tx, caller.tenant_id, id, hold),
    )
    await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
    await changed(tx, caller, events['dlq.archived'], { item, data: { operation_id: null } })
    return item
  })
}

/** From any status; a repeat changes nothing. A lock_token, when sent, must be the current one. */
export function resolve(
  db: Db,
  caller: AgentCaller,
  id: string,
  lock_token: string | undefined,
): Promise<ItemRow> {
  requireToken(caller, lock_token)
  return db.write(caller.tenant_id, async (tx) => {
    const at = await lockTime(tx, caller, id)
    for (;;) {
      const found = await store.find(tx, caller.tenant_id, id)
      const item = found && seenAt(found, at)
      if (!found || !item) throw moveRefusal(null, 'resolve')
      if (item.status === 'resolved') return item
      if (!isToken(lock_token, item.lock_token_hash)) throw moveRefusal(item, 'resolve')
      const resolved = await store.resolve(tx, caller.tenant_id, found, at)
      if (!resolved) continue
      if (isOpen(item.status)) await quotas.release(tx, caller.tenant_id, 'dlq_items', 1)
      const { lock_expired_at, ...settled } = resolved
      await lockExpired(tx, caller.tenant_id, settled, lock_expired_at)
      const { status } = item
      await changed(tx, caller, events['dlq.resolved'], { item, data: { redriven_as: null }, status })
      return settled
    }
  })
}
