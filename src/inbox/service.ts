// Webhook inboxes: one function per verb. Arriving messages are in receive.ts, the job of a forward in jobs.ts.

import './errors.ts'
import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashKey, newToken } from '../base/keys.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { Plans, Secrets, Shared } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import { waitKey } from '../contract/wait.ts'
import type { Awaitable, Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as lookups from '../lookups/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import {
  droppedUpTo,
  expired_shown_ms,
  expiryOf,
  type InboxRow,
  messageCount,
  messages_shown_max,
  part_bytes_max,
  readable_ms,
} from './inbox.ts'
import * as lists from './list-store.ts'
import { hops_header, hops_max, hopsOf, type MessageRow } from './message.ts'
import * as message_store from './message-store.ts'
import { keptMax, type ReceiveDependencies } from './receive.ts'
import * as store from './store.ts'
import { expire, lockExpired } from './sweep.ts'
import { countExpired } from './sweep-store.ts'

export type InboxCaller = AdminCaller | AgentCaller

interface InboxDependencies {
  plans: Plans
  keys: { secrets: Secrets }
  shared: Pick<Shared, 'tokens'>
}

/** An inbox with its token in clear. */
export interface Inbox extends InboxRow {
  message_count: number
}

/** Throws QUOTA_EXCEEDED, and VALIDATION_FAILED for a ttl over the plan's. */
export async function create(
  tx: Tx,
  caller: InboxCaller,
  { plans, keys, shared }: InboxDependencies,
  input: { label: string; forward_url: string | null; workflow_id: string | null; ttl_seconds: number },
): Promise<Inbox> {
  const { tenant_id } = caller
  const { label, forward_url, workflow_id, ttl_seconds } = input
  const expires_at = expiryOf(tx.now, ttl_seconds, quotas.limitOf(plans, caller.plan, 'inbox_ttl_seconds'))
  quotas.reserveBytes(tx, caller, plans, rowBytes(label, forward_url, workflow_id))
  const id = newId('inb', tx.now)
  const token = newToken()
  const sealed = (await keys.secrets.sealerIn(tx)).seal(tokenContext(tenant_id, id), token)
  const ends = { expires_at, clear_at: expires_at + readable_ms, delete_at: expires_at + expired_shown_ms }
  const token_hash = hashKey(token)
  const row = { id, token_hash, token: sealed, label, forward_url, workflow_id, ...ends }
  await store.insert(tx, tenant_id, row)
  await lookups.claim(tx, tenant_id, 'inbox', row.token_hash)
  await lockExpired(tx, tenant_id)
  await quotas.reserve(tx, caller, plans, 'inboxes', () => expire(tx, tenant_id))
  tx.afterCommit(() => shared.tokens.put(token_hash, { tenant_id, id }))
  await journal.emit(tx, events['inbox.created'], {
    ...{ tenant_id, cause: causeOf(caller), subject_id: id, workflow_id },
    data: { expires_at: iso(expires_at) },
  })
  const empty = { last_seq: 0, first_seq: null, message_count: 0 }
  return { id, token, label, forward_url, workflow_id, ...empty, expires_at, created_at: tx.now }
}

/** Newest first, those that have not expired, and how many there are in all. */
export function list(
  db: Db,
  caller: InboxCaller,
  dependencies: InboxDependencies,
  now: Millis,
  listed: lists.Listed,
): Promise<{ items: Inbox[]; total: number }> {
  const { tenant_id } = caller
  return db.read(tenant_id, async (q) => {
    const rows = await lists.list(q, tenant_id, now, listed)
    const items = rows.map((row) => inboxOf(caller, dependencies, row))
    return { items, total: await total(q, tenant_id, now, listed.workflow_id) }
  })
}

async function total(q: Reader, tenant_id: string, now: Millis, workflow_id?: string): Promise<number> {
  if (workflow_id !== undefined) return lists.countWorkflow(q, tenant_id, now, workflow_id)
  return (await quotas.usedOf(q, tenant_id, 'inboxes')) - (await countExpired(q, tenant_id, now))
}

/** Messages of a larger detail; they are in memory for as long as the caller keeps them. */
export type ReadPart = () => Awaitable<MessageRow[]>

/** An inbox with its newest messages, newest first; in parts when they are large. Throws INBOX_NOT_FOUND. */
export function read(
  db: Db,
  caller: InboxCaller,
  dependencies: InboxDependencies,
  now: Millis,
  id: string,
): Promise<{ inbox: Inbox; messages: MessageRow[] } | { inbox: Inbox; parts: ReadPart[] }> {
  const key = { tenant_id: caller.tenant_id, inbox_id: id }
  return db.read(caller.tenant_id, async (q) => {
    const row = await found(q, caller, id, now)
    const inbox = inboxOf(caller, dependencies, row)
    const dropped = droppedUpTo(row.last_seq, keptMax(dependencies.plans, caller.plan))
    const sizes = await message_store.latestSizes(q, key, dropped, messages_shown_max)
    const bytes = sizes.reduce((sum, { size }) => sum + size, 0)
    if (bytes > part_bytes_max) return { inbox, parts: partsOf(db, key, sizes) }
    const [newest, oldest] = [sizes[0]?.seq ?? 0, sizes.at(-1)?.seq ?? 0]
    return { inbox, messages: await message_store.between(q, key, oldest, newest) }
  })
}

/** Fifty large messages would be a hundred megabytes at once. Messages that are dropped meanwhile are left out. */
function partsOf(
  db: Db,
  key: message_store.InboxKey,
  newest_first: { seq: number; size: number }[],
): ReadPart[] {
  const parts: ReadPart[] = []
  for (let next = 0; next < newest_first.length; ) {
    const last_seq = newest_first[next]!.seq
    let first_seq = last_seq
    for (let bytes = 0; next < newest_first.length; next++) {
      const { seq, size } = newest_first[next]!
      bytes += size
      if (bytes > part_bytes_max && seq < last_seq) break
      first_seq = seq
    }
    parts.push(() => message_store.between(db, key, first_seq, last_seq))
  }
  return parts
}

/** The inbox is gone at once; the sweep removes its messages in chunks. Throws INBOX_NOT_FOUND. */
export function remove(
  db: Db,
  caller: InboxCaller,
  dependencies: Pick<ReceiveDependencies, 'shared'>,
  id: string,
): Promise<void> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const counted = await store.uncount(tx, tenant_id, id)
    const removed = await store.remove(tx, tenant_id, id)
    if (!removed) throw new ApiError('INBOX_NOT_FOUND')
    if (counted) {
      await quotas.release(tx, tenant_id, 'inboxes', 1)
      await wasDeleted(tx, caller, id, removed)
    } // else its event was left when its time was over
    tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(tenant_id, id)))
  })
}

function wasDeleted(
  tx: Tx,
  caller: InboxCaller,
  subject_id: string,
  { workflow_id, expires_at }: Pick<InboxRow, 'workflow_id' | 'expires_at'>,
) {
  return journal.emit(tx, events['inbox.deleted'], {
    ...{ tenant_id: caller.tenant_id, cause: causeOf(caller), subject_id, workflow_id },
    data: { expired: expires_at <= tx.now },
  })
}

export async function found(
  q: Reader,
  { tenant_id }: InboxCaller,
  id: string,
  now: Millis,
): Promise<InboxRow> {
  const inbox = await store.find(q, tenant_id, id, now)
  if (!inbox) throw new ApiError('INBOX_NOT_FOUND')
  return inbox
}

function inboxOf({ tenant_id, plan }: InboxCaller, { plans, keys }: InboxDependencies, row: InboxRow): Inbox {
  const token = keys.secrets.open(tokenContext(tenant_id, row.id), row.token)
  return { ...row, token, message_count: messageCount(row, keptMax(plans, plan)) }
}

/** The context that a sealed token is bound to. */
export function tokenContext(tenant_id: string, id: string): string {
  return `inbox_token ${tenant_id} ${id}`
}

/** For a delivery about a message: one more than it came with, and past the limit when it is gone. */
export async function hopsHeader(
  q: Reader,
  tenant_id: string,
  inbox_id: string,
  message_seq: number,
): Promise<Record<string, string>> {
  const message = await message_store.find(q, { tenant_id, inbox_id }, message_seq)
  const hops = message ? hopsOf(JSON.parse(message.headers)[hops_header] ?? null) : hops_max
  return { [hops_header]: String(hops + 1) }
}
