// The holder of an address confirms emails, or ends them, by the links in emails.

import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { anonymousCause } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as addresses from './address-store.ts'
import { events } from './events.ts'
import { subscription_job } from './jobs.ts'
import * as store from './mail-store.ts'
import { readToken } from './targets.ts'

const changed_at_once_max = limit(
  'subscriptions.of_address_at_once',
  200,
  'rows',
  'Subscriptions to one address that one statement reads, when its holder confirms or unsubscribes.',
)

interface Said {
  token: string
  request_id: string
}

/** Emails of the tenant may be sent to the address, from now on. Throws LINK_NOT_FOUND. */
export function confirm(db: Db, dependencies: Dependencies, said: Said): Promise<void> {
  return change(db, dependencies, said, 'confirmed', async (tx, tenant_id, id) => {
    const job = await lockJob(tx, tenant_id, id)
    const position = await journal.lastSeq(tx, tenant_id)
    if (!(await store.confirm(tx, tenant_id, id, position))) return
    await jobs.reschedule(tx, dependencies.jobs, { ...job, next_at: tx.now })
    await journal.emit(tx, events['subscription.confirmed'], {
      ...{ tenant_id, cause: anonymousCause(said.request_id), subject_id: id, data: {} },
    })
  })
}

/** No email of the tenant is sent to the address any more. Throws LINK_NOT_FOUND. */
export function unsubscribe(db: Db, dependencies: Dependencies, said: Said): Promise<void> {
  return change(db, dependencies, said, 'unsubscribed', async (tx, tenant_id, id) => {
    const job = await lockJob(tx, tenant_id, id)
    if (!(await store.unsubscribe(tx, tenant_id, id))) return
    await jobs.reschedule(tx, dependencies.jobs, { ...job, next_at: jobs.idle_at })
    await journal.emit(tx, events['subscription.paused'], {
      ...{ tenant_id, cause: anonymousCause(said.request_id), subject_id: id },
      data: { reason: 'unsubscribed', last_error: null },
    })
  })
}

/** Its row comes before that of the subscription, as in a settlement. It stays as it is where nothing is changed: an email may be under way. */
async function lockJob(tx: Tx, tenant_id: string, id: string) {
  const key = jobs.keyOf({ tenant_id }, subscription_job, id)
  await jobs.lock(tx, key)
  return { ...key, event_id: id, destination: null }
}

/** Changes the address, and each subscription to it. A repeat changes nothing. */
async function change(
  db: Db,
  dependencies: Dependencies,
  { token }: Said,
  state: 'confirmed' | 'unsubscribed',
  each: (tx: Tx, tenant_id: string, id: string) => Promise<void>,
): Promise<void> {
  const read = readToken(token)
  if (!read) throw new ApiError('LINK_NOT_FOUND')
  const { tenant_id, token_hash } = read
  if (state === 'confirmed' && (await addresses.byToken(db, tenant_id, token_hash)))
    await dependencies.journal.number(tenant_id)
  await db.write(tenant_id, async (tx) => {
    const address = await addresses.byToken(tx, tenant_id, token_hash)
    const is_over = state === 'confirmed' && address?.state === 'unconfirmed' && address.expires_at <= tx.now
    if (!address || is_over) throw new ApiError('LINK_NOT_FOUND')
    // Before all other locks: events are numbered before this and skipped, or after it and wake the jobs.
    if (state === 'confirmed') await journal.lockHead(tx, tenant_id)
    // Then its row: a subscription to it that is created meanwhile is among those below, or finds the new state. And what its
    // holder says elsewhere at the same time holds for all of them, or none.
    await addresses.change(tx, tenant_id, address.address_hash, state)
    for (const id of await idsOf(tx, tenant_id, address.address_hash)) await each(tx, tenant_id, id)
  })
}

async function idsOf(tx: Tx, tenant_id: string, address_hash: string): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const rows = await store.ofAddress(tx, tenant_id, address_hash, ids.at(-1) ?? '', changed_at_once_max)
    ids.push(...rows.map(({ id }) => id))
    if (rows.length < changed_at_once_max) return ids
  }
}
