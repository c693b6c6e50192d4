// Webhook inboxes: one function per verb, and what is received. The job of a forward is in jobs.ts.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { newId, newSequencedId, sequenceOf } from '../base/ids.ts'
import type { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { hashKey, looksLikeToken, newToken } from '../base/keys.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { Jobs, Plans, Secrets } from '../contract/dependencies.ts'
import { page_bytes_max } from '../contract/page.ts'
import type { RawRequest } from '../contract/route.ts'
import { type Db, type Reader, type Turn, type Tx, upkeep } from '../db/db.ts'
import { bytesOf, row_bytes, rowBytes } from '../db/stored.ts'
import { destinationOf } from '../jobs/job.ts'
import * as jobs from '../jobs/service.ts'
import * as quotas from '../quotas/service.ts'
import {
  droppedUpTo,
  expiryOf,
  type InboxRow,
  messageCount,
  messages_shown_max,
  part_bytes_max,
  readable_ms,
  told_expired_ms,
  waitKey,
} from './inbox.ts'
import { forward_job, sourceOf } from './jobs.ts'
import { hops_max, type Incoming, incomingOf, type MessageRow } from './message.ts'
import * as store from './store.ts'

export const countExpired = store.countExpired

type InboxCaller = AdminCaller | AgentCaller

interface Needs {
  plans: Plans
  keys: { secrets: Secrets }
}

/** An inbox with its token in clear. */
export interface Inbox extends InboxRow {
  message_count: number
}

/** Throws QUOTA_EXCEEDED, and VALIDATION_FAILED for a ttl over the plan's. */
export async function create(
  tx: Tx,
  caller: InboxCaller,
  { plans, keys }: Needs,
  input: { label: string; forward_url: string | null; ttl_seconds: number },
): Promise<Inbox> {
  const { tenant_id } = caller
  const { label, forward_url, ttl_seconds } = input
  const expires_at = expiryOf(tx.now, ttl_seconds, quotas.limitOf(plans, caller.plan, 'inbox_ttl_seconds'))
  quotas.reserveBytes(tx, caller, plans, rowBytes(label, forward_url))
  const id = newId('inb', tx.now)
  const token = newToken()
  const sealed = keys.secrets.seal(tokenContext(tenant_id, id), token)
  const ends = { expires_at, clear_at: expires_at + readable_ms, delete_at: expires_at + told_expired_ms }
  await store.insert(tx, tenant_id, {
    id,
    token_hash: hashKey(token),
    token: sealed,
    label,
    forward_url,
    ...ends,
  })
  await quotas.reserve(tx, caller, plans, 'inboxes', () => expire(tx, tenant_id))
  const row = { id, token, label, forward_url, last_seq: 0, first_seq: null, expires_at, created_at: tx.now }
  return { ...row, message_count: 0 }
}

/** Newest first, those that have not expired, and how many there are in all. */
export function list(
  db: Db,
  caller: InboxCaller,
  dependencies: Needs,
  now: Millis,
  skipped: number,
  rows_max: number,
): Promise<{ items: Inbox[]; total: number }> {
  return db.read(caller.tenant_id, async (q) => {
    const rows = await store.list(q, caller.tenant_id, now, skipped, rows_max)
    const items = rows.map((row) => inboxOf(caller, dependencies, row))
    const counted = await quotas.usedOf(q, caller.tenant_id, 'inboxes')
    return { items, total: counted - (await store.countExpired(q, caller.tenant_id, now)) }
  })
}

/** With its newest messages, newest first; in parts when they are large. Throws INBOX_NOT_FOUND. */
export function read(
  db: Db,
  caller: InboxCaller,
  dependencies: Needs,
  now: Millis,
  id: string,
): Promise<{ inbox: Inbox; messages: MessageRow[] | AsyncGenerator<MessageRow> }> {
  const key = { tenant_id: caller.tenant_id, inbox_id: id }
  return db.read(caller.tenant_id, async (q) => {
    const row = await found(q, caller, id, now)
    const inbox = inboxOf(caller, dependencies, row)
    const dropped = droppedUpTo(row.last_seq, keptMax(dependencies.plans, caller.plan))
    const sizes = await store.latestSizes(q, key, dropped, messages_shown_max)
    const bytes = sizes.reduce((sum, { size }) => sum + size, 0)
    if (bytes > page_bytes_max) return { inbox, messages: inParts(db, key, sizes) }
    return { inbox, messages: await store.latest(q, key, dropped, messages_shown_max) }
  })
}

/** Fifty large messages would be a hundred megabytes at once. What is dropped meanwhile is left out. */
async function* inParts(
  db: Db,
  key: store.InboxKey,
  newest_first: { seq: number; size: number }[],
): AsyncGenerator<MessageRow> {
  for (let next = 0; next < newest_first.length; ) {
    const last_seq = newest_first[next]!.seq
    let first_seq = last_seq
    for (let bytes = 0; next < newest_first.length; next++) {
      const { seq, size } = newest_first[next]!
      bytes += size
      if (bytes > part_bytes_max && seq < last_seq) break
      first_seq = seq
    }
    yield* await store.between(db, key, first_seq, last_seq)
  }
}

export interface MessagePage {
  messages: MessageRow[]
  /** Whether more may come. */
  live: boolean
}

/** Messages after this one, oldest first. Throws INBOX_NOT_FOUND, and VALIDATION_FAILED for what is no id of here. */
export function page(
  db: Db,
  caller: InboxCaller,
  plans: Plans,
  now: Millis,
  id: string,
  after: string | undefined,
  rows_max: number,
): Promise<MessagePage> {
  const key = { tenant_id: caller.tenant_id, inbox_id: id }
  return db.read(caller.tenant_id, async (q) => {
    const inbox = await found(q, caller, id, now)
    const after_seq = after === undefined ? 0 : await placeOf(q, key, inbox, after)
    const dropped = droppedUpTo(inbox.last_seq, keptMax(plans, caller.plan))
    const messages = await store.page(q, key, Math.max(after_seq, dropped), rows_max, page_bytes_max)
    return { messages, live: inbox.expires_at > now }
  })
}

/** The number in the id, which holds after its message is gone as well. */
async function placeOf(
  q: Reader,
  key: store.InboxKey,
  { last_seq }: InboxRow,
  after: string,
): Promise<number> {
  const seq = sequenceOf('msg', after)
  const known = seq !== null && seq > 0 && seq <= last_seq
  const there = known ? await store.idAt(q, key, seq) : null
  if (!known || (there !== null && there !== after)) {
    throw invalid({ path: 'query.after', message: 'is not the id of a message of this inbox' })
  }
  return seq
}

/** Gone for everybody at once; its messages go in chunks later. Throws INBOX_NOT_FOUND. */
export function remove(
  db: Db,
  { tenant_id }: InboxCaller,
  dependencies: Pick<Receiving, 'shared'>,
  id: string,
): Promise<void> {
  return db.write(tenant_id, async (tx) => {
    const counted = await store.uncount(tx, tenant_id, id)
    if (!(await store.remove(tx, tenant_id, id))) throw new ApiError('INBOX_NOT_FOUND')
    if (counted) await quotas.release(tx, tenant_id, 'inboxes', 1)
    tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(tenant_id, id)))
  })
}

async function found(q: Reader, { tenant_id }: InboxCaller, id: string, now: Millis): Promise<InboxRow> {
  const inbox = await store.find(q, tenant_id, id, now)
  if (!inbox) throw new ApiError('INBOX_NOT_FOUND')
  return inbox
}

function inboxOf({ tenant_id, plan }: InboxCaller, { plans, keys }: Needs, row: InboxRow): Inbox {
  const token = keys.secrets.open(tokenContext(tenant_id, row.id), row.token)
  return { ...row, token, message_count: messageCount(row, keptMax(plans, plan)) }
}

function keptMax(plans: Plans, plan: string): number | null {
  return quotas.limitOf(plans, plan, 'inbox_messages')
}

/** What a sealed token is bound to. */
function tokenContext(tenant_id: string, id: string): string {
  return `inbox_token ${tenant_id} ${id}`
}

interface Receiving {
  plans: Plans
  jobs: Pick<Jobs, 'wake'>
  shared: { notifier: { notify(key: string): void }; semaphore: KeyedSemaphore }
}

/** How many of the messages that a smaller plan no longer keeps go with each that comes. */
const dropped_rows_max = limit(
  'inbox.dropped_rows',
  500,
  'rows',
  'Messages that one arriving message drops when its plan keeps fewer than there are.',
)

/** Resolves once the message is durable. Throws INBOX_NOT_FOUND, INBOX_EXPIRED. */
export async function receive(
  db: Db,
  dependencies: Receiving,
  token: string,
  request: RawRequest,
): Promise<void> {
  const token_hash = tokenHash(token)
  const incoming = incomingOf(request)
  const turn = { key: `hook ${token_hash}`, row: token_hash, group: 'hook' }
  const received = await dependencies.shared.semaphore.run(turn.key, () =>
    keep(db, dependencies, turn, incoming),
  )
  if (!received) throw await refusal(db, token_hash)
}

/** False when nothing may be received here. */
function keep(
  db: Db,
  dependencies: Receiving,
  turn: Turn & { row: string },
  incoming: Incoming,
): Promise<boolean> {
  const token_hash = turn.row
  return db.write(turn, async (tx) => {
    if (tx.disk_full && (await isOpen(tx, token_hash))) quotas.requireDisk(tx)
    const inbox = await store.receive(tx, token_hash)
    if (!inbox) return false
    const id = newSequencedId('msg', tx.now, inbox.seq)
    const { forward_status, forward_error } = firstForward(inbox, incoming)
    await store.add(tx, inbox, { id, incoming, forward_status, forward_error })
    const dropped = droppedUpTo(inbox.seq, keptMax(dependencies.plans, inbox.plan))
    // The job before the messages, as its settlement does: otherwise the two would wait for each other.
    if (inbox.forward_url !== null) await enqueueForward(tx, dependencies, inbox, incoming, id, dropped)
    if (dropped > 0) await drop(tx, inbox, dropped)
    await makeRoom(tx, dependencies.plans, inbox, row_bytes + incoming.size)
    tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(inbox.tenant_id, inbox.id)))
    return true
  })
}

/** Whether anything may be received here: one that is unknown or has expired says so, and not that the disk is full. */
async function isOpen(tx: Tx, token_hash: string): Promise<boolean> {
  const inbox = await store.byToken(tx, token_hash, tx.now)
  return inbox !== null && inbox.expires_at > tx.now
}

const room_rows_max = limit(
  'inbox.room_rows',
  100,
  'rows',
  'Messages that go for one that arrives when the tenant has used up its storage_bytes.',
)
const room_bytes_max = limit(
  'inbox.room_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of messages that go for one that arrives when the tenant has used up its storage_bytes.',
)

/**
 * Counts a message. Past what the tenant may store, the oldest messages of its inbox go for it, as many bytes as it
 * brings at least; when there are no more of them it is kept all the same. So an inbox of such a tenant holds one
 * message in the end, and a sender never hears of it.
 */
async function makeRoom(tx: Tx, plans: Plans, inbox: store.Received, bytes: number): Promise<void> {
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
  const going: number[] = []
  for (const { seq, size } of await store.oldestSizes(tx, inbox, inbox.seq, room_rows_max)) {
    if (missing <= 0) break
    missing -= row_bytes + size
    going.push(seq)
  }
  if (going.length === 0) return
  if (inbox.forward_url !== null) for (const seq of going) await cancelForward(tx, inbox, seq)
  deductMessages(tx, tenant_id, await store.dropUpTo(tx, inbox, going.at(-1)!, room_rows_max))
}

function deductMessages(tx: Tx, tenant_id: string, gone: { bytes: number }[]): number {
  tx.stores(tenant_id, -bytesOf(gone) - gone.length * row_bytes)
  return gone.length
}

/** The tenant of the inbox. Throws what `receive` would, and stores nothing. */
export async function mustReceive(db: Db, token: string): Promise<string> {
  const token_hash = tokenHash(token)
  const inbox = await store.byToken(db, token_hash, db.clock.now())
  if (!inbox || inbox.expires_at <= db.clock.now()) throw await refusal(db, token_hash)
  return inbox.tenant_id
}

function tokenHash(token: string): string {
  if (!looksLikeToken(token)) throw new ApiError('INBOX_NOT_FOUND')
  return hashKey(token)
}

async function refusal(db: Db, token_hash: string): Promise<ApiError> {
  const now = db.clock.now()
  const inbox = await store.byToken(db, token_hash, now)
  return new ApiError(inbox && inbox.expires_at <= now ? 'INBOX_EXPIRED' : 'INBOX_NOT_FOUND')
}

function firstForward({ forward_url }: store.Received, { hops }: Incoming) {
  if (forward_url === null) return { forward_status: null, forward_error: null }
  const loops = hops >= hops_max
  return { forward_status: loops ? 'failed' : 'pending', forward_error: loops ? 'loop' : null } as const
}

/** One goes for each that comes, and more only after a change of the plan: nobody sees them until they are gone. */
async function drop(tx: Tx, inbox: store.Received, dropped: number): Promise<void> {
  const gone =
    inbox.first_seq < dropped
      ? await store.dropUpTo(tx, inbox, dropped, dropped_rows_max)
      : await store.drop(tx, inbox, dropped)
  deductMessages(tx, inbox.tenant_id, gone)
}

/** A forward waits no longer than its message is kept, so that a dead receiver fills nothing. */
async function enqueueForward(
  tx: Tx,
  dependencies: Receiving,
  { tenant_id, id: inbox_id, seq, forward_url }: store.Received,
  { hops }: Incoming,
  message_id: string,
  dropped: number,
): Promise<void> {
  if (dropped > 0) await cancelForward(tx, { tenant_id, id: inbox_id }, dropped)
  if (hops >= hops_max) return
  await jobs.enqueue(tx, dependencies.jobs, {
    tenant_id,
    kind: forward_job,
    source_id: sourceOf(inbox_id, seq),
    event_id: message_id,
    destination: destinationOf(forward_url!),
    next_at: tx.now,
  })
}

function cancelForward(tx: Tx, inbox: Pick<store.Received, 'tenant_id' | 'id'>, seq: number) {
  return jobs.cancel(tx, jobs.keyOf(inbox, forward_job, sourceOf(inbox.id, seq)))
}

/** Rows and bytes that one step of the sweep, or of a purge, removes from one inbox. */
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

/**
 * One bounded step: expired inboxes leave the quota, messages of those that expired a day ago or were deleted go, and
 * then the inboxes themselves. Answers how many left a quota, and whether there may be more to do.
 */
export async function sweep(db: Db, now: Millis): Promise<{ expired: number; more: boolean }> {
  let expired = 0
  for (const { tenant_id } of await store.tenantsWithExpired(db, now, expired_rows_max)) {
    expired += await db.write(upkeep, (tx) => expire(tx, tenant_id))
  }
  const clearable = await store.clearable(db, now, inboxes_a_step_max)
  let cleared = 0
  for (const key of clearable) cleared += (await db.write(upkeep, (tx) => clear(tx, key))) ? 1 : 0
  const deletable = await store.deletable(db, now, inboxes_a_step_max)
  for (const key of deletable) await db.write(upkeep, (tx) => deleteRow(tx, key))
  const more =
    expired >= expired_rows_max ||
    cleared < clearable.length ||
    [clearable, deletable].some(({ length }) => length === inboxes_a_step_max)
  return { expired, more }
}

async function expire(tx: Tx, tenant_id: string): Promise<number> {
  await quotas.lock(tx, tenant_id, 'inboxes')
  const expired = await store.expire(tx, tenant_id, expired_rows_max)
  if (expired > 0) await quotas.release(tx, tenant_id, 'inboxes', expired)
  return expired
}

async function deleteRow(tx: Tx, key: store.InboxKey): Promise<void> {
  const gone = await store.deleteRow(tx, key)
  if (gone) tx.stores(key.tenant_id, -gone.bytes - row_bytes)
}

/** True when nothing is left to clear. */
async function clear(tx: Tx, key: store.InboxKey): Promise<boolean> {
  deductMessages(tx, key.tenant_id, await store.clear(tx, key, cleared_rows_max, cleared_bytes_max))
  return store.cleared(tx, key)
}

/** Removes rows of a tenant that is being purged; answers how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number): Promise<number> {
  const bytes_max = cleared_bytes_max / inboxes_a_step_max
  let removed = 0
  for (let inboxes = 0; inboxes < inboxes_a_step_max && removed < rows_max; inboxes++) {
    const inbox_id = await store.anyWithMessages(tx, tenant_id)
    if (inbox_id === null) return removed + (await store.purge(tx, tenant_id, rows_max))
    removed += (await store.clear(tx, { tenant_id, inbox_id }, rows_max - removed, bytes_max)).length
  }
  return removed
}
