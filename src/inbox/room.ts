// Room for a message that arrives: older ones that it replaces, and those for whose bytes there is none.

import { limit } from '../base/limit.ts'
import type { Plans } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import { row_bytes } from '../db/stored.ts'
import * as quotas from '../quotas/service.ts'
import { cancelForward } from './jobs.ts'
import * as messages from './message-store.ts'
import type { Received } from './store.ts'
import { deductMessages } from './sweep.ts'

const dropped_rows_max = limit(
  'inbox.dropped_rows',
  500,
  'rows',
  'Messages that one arriving message removes when its plan keeps fewer than there are.',
)

/** Removes one message for each that arrives, more only after a change of the plan: dropped ones are never shown. */
export async function drop(tx: Tx, inbox: Received, dropped: number): Promise<void> {
  // Messages beside this one in its transaction each remove their own.
  const gone =
    inbox.first_seq < dropped - tx.beside
      ? await messages.dropUpTo(tx, inbox, dropped, dropped_rows_max)
      : await messages.drop(tx, inbox, dropped)
  deductMessages(tx, inbox.tenant_id, gone)
}

const room_rows_max = limit(
  'inbox.room_rows',
  100,
  'rows',
  'Messages that are removed for one that arrives when the tenant has used up its storage_bytes.',
)

const room_bytes_max = limit(
  'inbox.room_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of messages that are removed for one that arrives when the tenant has used up its storage_bytes.',
)

/**
 * Counts a message. Past the bytes that the tenant may store, the oldest messages of its inbox are removed for it, at
 * least as many bytes as it brings; when there are no more of them it is still kept. So an inbox of such a tenant
 * keeps at least one message, and a sender is never refused for it.
 */
export async function makeRoom(tx: Tx, plans: Plans, inbox: Received, bytes: number): Promise<void> {
  const { tenant_id, plan, storage_bytes_max } = inbox
  const tenant = { tenant_id, plan, storage_bytes_max }
  // Without its writes, which would cost every message, the counter may hold what is on its way to it as well.
  const at_most = { used: inbox.stored_bytes ?? 0, writes: 0 }
  const may_be_over = quotas.overBy(tx, { ...tenant, stored: at_most }, plans, bytes) !== null
  const over = may_be_over
    ? quotas.overBy(tx, { ...tenant, stored: await quotas.storedCounter(tx, tenant_id) }, plans, bytes)
    : null
  tx.stores(tenant_id, bytes)
  if (!over) return
  let missing = Math.min(over.used + bytes - over.limit, Math.max(bytes, room_bytes_max))
  const removed: number[] = []
  for (const { seq, size } of await messages.oldestSizes(tx, inbox, inbox.seq, room_rows_max)) {
    if (missing <= 0) break
    missing -= row_bytes + size
    removed.push(seq)
  }
  if (removed.length === 0) return
  if (inbox.forward_url !== null) for (const seq of removed) await cancelForward(tx, inbox, seq)
  deductMessages(tx, tenant_id, await messages.dropUpTo(tx, inbox, removed.at(-1)!, room_rows_max))
}
