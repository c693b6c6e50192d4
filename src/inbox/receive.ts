// The arrival of a message: it is counted and kept, and its forward is enqueued.

import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newSequencedId } from '../base/ids.ts'
import type { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { hashKey, looksLikeToken } from '../base/keys.ts'
import { subscription_header } from '../callbacks/message.ts'
import type { Jobs, Plans, Shared } from '../contract/dependencies.ts'
import { anonymousCause } from '../contract/event.ts'
import type { RawRequest } from '../contract/route.ts'
import { waitKey } from '../contract/wait.ts'
import type { Db, Tx } from '../db/db.ts'
import { row_bytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as lookups from '../lookups/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import { droppedUpTo } from './inbox.ts'
import { enqueueForward } from './jobs.ts'
import { hops_header, hops_max, hopsOf, type Incoming, incomingOf } from './message.ts'
import * as messages from './message-store.ts'
import { drop, makeRoom } from './room.ts'
import * as store from './store.ts'

export interface ReceiveDependencies {
  plans: Plans
  jobs: Pick<Jobs, 'wake'>
  shared: {
    notifier: { notify(key: string): void }
    semaphore: KeyedSemaphore
    tokens: Shared['tokens']
  }
}

/** Resolves once the message is durable. Throws INBOX_NOT_FOUND, INBOX_EXPIRED, and INVALID_STATE for what goes in circles. */
export async function receive(
  db: Db,
  dependencies: ReceiveDependencies,
  token: string,
  request: RawRequest,
): Promise<void> {
  const token_hash = tokenHash(token)
  if (isCircle(request)) {
    await openInbox(db, token_hash)
    throw new ApiError('INVALID_STATE', { details: { error: 'loop' } })
  }
  const incoming = { ...incomingOf(request), request_id: request.request_id }
  const key = await keyOf(db, dependencies, token_hash)
  const write = () => keep(db, dependencies, key, token_hash, incoming)
  // On PostgreSQL the messages of an inbox share transactions instead.
  const received =
    db.engine === 'postgres'
      ? await write()
      : await dependencies.shared.semaphore.run(`hook ${key.id}`, write)
  if (!received) throw await refusal(db, token_hash)
}

/** True for a delivery of a subscription that would cause the next, were it kept. A forward past the limit is never sent. */
function isCircle({ headers }: RawRequest): boolean {
  return headers.has(subscription_header) && hopsOf(headers.get(hops_header)) > hops_max
}

interface Key {
  tenant_id: string
  id: string
}

/** The inbox of a token. Throws as `receive` does. */
async function keyOf(db: Db, { shared }: ReceiveDependencies, token_hash: string): Promise<Key> {
  const known = shared.tokens.get(token_hash)
  if (known) return known
  const { tenant_id, id } = await openInbox(db, token_hash)
  const key = { tenant_id, id }
  shared.tokens.put(token_hash, key)
  return key
}

/** False when nothing may be received here. */
function keep(
  db: Db,
  dependencies: ReceiveDependencies,
  { tenant_id, id: inbox_id }: Key,
  token_hash: string,
  incoming: Incoming & { request_id: string },
): Promise<boolean> {
  // In one transaction none removes another: its forward might be cancelled before it is enqueued.
  const row_max = keptLeast(dependencies.plans)
  const batch = { line: tenant_id, bytes: incoming.size, row_max }
  return db.write({ key: `hook ${inbox_id}`, row: inbox_id, group: 'hook', batch }, async (tx) => {
    if (tx.disk_full && (await isOpen(tx, tenant_id, token_hash))) quotas.requireDisk(tx)
    const inbox = await store.receive(tx, tenant_id, inbox_id)
    if (!inbox) return false
    const id = newSequencedId('msg', tx.now, inbox.seq)
    const { forward_status, forward_error } = firstForward(inbox, incoming)
    // Side by side: each would be a round trip more on PostgreSQL.
    await Promise.all([
      messages.add(tx, inbox, { id, incoming, forward_status, forward_error }),
      journal.emit(tx, events['message.received'], {
        ...{ tenant_id, cause: anonymousCause(incoming.request_id), subject_id: inbox_id },
        workflow_id: inbox.workflow_id,
        data: { message_id: id, message_seq: inbox.seq, method: incoming.method, forward: forward_status },
      }),
    ])
    const dropped = droppedUpTo(inbox.seq, keptMax(dependencies.plans, inbox.plan))
    // Locks the job before the messages, as its settlement does: otherwise the two could deadlock.
    if (inbox.forward_url !== null) await enqueueForward(tx, dependencies, inbox, incoming, id, dropped)
    if (dropped > 0) await drop(tx, inbox, dropped)
    await makeRoom(tx, dependencies.plans, inbox, row_bytes + incoming.size)
    tx.afterCommit(() => dependencies.shared.notifier.notify(waitKey(inbox.tenant_id, inbox.id)))
    return true
  })
}

/** True when the inbox takes messages: an unknown or expired one is answered as such, not with a full disk. */
async function isOpen(tx: Tx, tenant_id: string, token_hash: string): Promise<boolean> {
  const inbox = await store.byToken(tx, tenant_id, token_hash, tx.now)
  return inbox !== null && inbox.expires_at > tx.now
}

/** Returns the tenant of the inbox. Throws as `receive` does, and stores nothing. */
export async function requireOpen(db: Db, token: string): Promise<string> {
  return (await openInbox(db, tokenHash(token))).tenant_id
}

async function openInbox(db: Db, token_hash: string) {
  const now = db.clock.now()
  const inbox = await find(db, token_hash, now)
  if (!inbox || inbox.expires_at <= now) throw refusalOf(inbox, now)
  return inbox
}

function tokenHash(token: string): string {
  if (!looksLikeToken(token)) throw new ApiError('INBOX_NOT_FOUND')
  return hashKey(token)
}

async function refusal(db: Db, token_hash: string): Promise<ApiError> {
  const now = db.clock.now()
  return refusalOf(await find(db, token_hash, now), now)
}

async function find(db: Db, token_hash: string, now: Millis) {
  const tenant_id = await lookups.tenantOf(db, 'inbox', token_hash)
  return tenant_id === null ? null : store.byToken(db, tenant_id, token_hash, now)
}

function refusalOf(inbox: { expires_at: Millis } | null, now: Millis): ApiError {
  return new ApiError(inbox && inbox.expires_at <= now ? 'INBOX_EXPIRED' : 'INBOX_NOT_FOUND')
}

function firstForward({ forward_url }: store.Received, { hops }: Incoming) {
  if (forward_url === null) return { forward_status: null, forward_error: null }
  const loops = hops >= hops_max
  return { forward_status: loops ? 'failed' : 'pending', forward_error: loops ? 'loop' : null } as const
}

export function keptMax(plans: Plans, plan: string): number | null {
  return quotas.limitOf(plans, plan, 'inbox_messages')
}

/** The messages that an inbox of any plan keeps, one at least. */
function keptLeast(plans: Plans): number {
  let least = Number.POSITIVE_INFINITY
  for (const plan in plans) least = Math.min(least, keptMax(plans, plan) ?? least)
  return Math.max(1, least)
}
