// The sweep of expired and deleted inboxes, and the purge.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { service_cause } from '../contract/event.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes } from '../db/stored.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import * as journal from '../journal/service.ts'
import * as lookups from '../lookups/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import type { InboxKey } from './message-store.ts'
import * as store from './sweep-store.ts'

export function deductMessages(tx: Tx, tenant_id: string, gone: { bytes: number }[]): number {
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

const cleared_rows_max = limit(
  'inbox.cleared_rows',
  500,
  'rows',
  'Messages that one step of the sweep removes from one inbox.',
)

const cleared_bytes_max = limit(
  'inbox.cleared_bytes',
  16 * 1_048_576,
  'bytes',
  'Bytes that one step of the sweep removes from one inbox.',
)
const expired_rows_max = limit('inbox.expired_rows', 500, 'rows', 'Inboxes that one step of the sweep ends.')
const inboxes_a_step_max = limit(
  'inbox.cleared_inboxes',
  16,
  'rows',
  'Inboxes that one step of the sweep clears.',
)

/** One bounded step: expired inboxes leave the quota. Returns how many did, and true in `more` when there may be more. */
export async function expireDue(
  db: Db,
  now: Millis,
  lists = new DueLists(db.clock),
): Promise<{ expired: number; more: boolean }> {
  const { touched: expired, more } = await lists.of('inbox.expired').each(
    (from) => store.tenantsWithExpired(db, now, from, expired_rows_max),
    expired_rows_max,
    ({ tenant_id }) => db.write(upkeep, (tx) => expire(tx, tenant_id)),
  )
  return { expired, more }
}

/**
 * One bounded step: messages of inboxes that expired a day ago or were deleted are removed, and then the inboxes
 * themselves. True in `more` when there may be more.
 */
export async function sweep(db: Db, now: Millis, lists = new DueLists(db.clock)): Promise<{ more: boolean }> {
  const cleared = await lists.of('inbox.clearable').each(
    (from) => store.clearable(db, now, from, inboxes_a_step_max),
    inboxes_a_step_max,
    (key) => db.write(upkeep, (tx) => clear(tx, key)),
  )
  const deleted = await lists.of('inbox.deletable').each(
    (from) => store.deletable(db, now, from, inboxes_a_step_max),
    inboxes_a_step_max,
    (key) => db.write(upkeep, (tx) => deleteRow(tx, key)),
  )
  return { more: cleared.more || deleted.more }
}

/**
 * For one more inbox: what has expired never fills the quota, also while a message that came before holds it. Before the counter
 * is taken, which is held from then on also at the limit: a deletion takes it behind its inbox.
 */
export function lockExpired(tx: Tx, tenant_id: string) {
  return store.lockExpired(tx, tenant_id, expired_rows_max)
}

export async function expire(tx: Tx, tenant_id: string): Promise<number> {
  await quotas.lock(tx, tenant_id, 'inboxes')
  const expired = await store.expire(tx, tenant_id, expired_rows_max)
  if (expired.length > 0) await quotas.release(tx, tenant_id, 'inboxes', expired.length)
  for (const { id, workflow_id } of expired) {
    await journal.emit(tx, events['inbox.deleted'], {
      ...{ tenant_id, cause: service_cause, subject_id: id, workflow_id },
      data: { expired: true },
    })
  }
  return expired.length
}

async function deleteRow(tx: Tx, key: InboxKey): Promise<1> {
  const gone = await store.deleteRow(tx, key)
  if (!gone) return 1
  tx.stores(key.tenant_id, -gone.bytes - row_bytes)
  await lookups.remove(tx, key.tenant_id, 'inbox', gone.token_hash)
  return 1
}

/** 0 while there is more to clear. */
async function clear(tx: Tx, key: InboxKey): Promise<0 | 1> {
  deductMessages(tx, key.tenant_id, await store.clear(tx, key, cleared_rows_max, cleared_bytes_max))
  return (await store.cleared(tx, key)) ? 1 : 0
}

/** Removes rows of a tenant that is being purged; returns how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number): Promise<number> {
  const bytes_max = cleared_bytes_max / inboxes_a_step_max
  let removed = 0
  for (let inboxes = 0; inboxes < inboxes_a_step_max && removed < rows_max; inboxes++) {
    const inbox_id = await store.anyWithMessages(tx, tenant_id)
    if (inbox_id === null) return removed + (await store.purge(tx, tenant_id, rows_max, bytes_max))
    removed += (await store.clear(tx, { tenant_id, inbox_id }, rows_max - removed, bytes_max)).length
  }
  return removed
}
