// The email that asks an address to confirm: one of the subscriptions that wait for the confirmation sends it.

import { day_ms } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as jobs from '../jobs/service.ts'
import * as quotas from '../quotas/service.ts'
import * as addresses from './address-store.ts'
import { subscription_job } from './jobs.ts'
import * as mail_store from './mail-store.ts'
import * as store from './store.ts'
import type { SubscriptionStatus } from './subscription.ts'
import { newLinkToken } from './targets.ts'

const confirmation_ms_max = limit(
  'subscriptions.confirmation',
  7 * day_ms,
  'milliseconds',
  'How long an address may be confirmed by the email that asks. Past it the link answers 404.',
)

/** The first status of a subscription, which asks its address when that is new, or its time to confirm is over. */
export async function firstStatus(
  tx: Tx,
  caller: AdminCaller,
  { keys: { secrets }, plans }: Dependencies,
  { id, address_hash, paused }: { id: string; address_hash: string | null; paused: boolean },
): Promise<SubscriptionStatus> {
  const granted = paused ? 'paused' : 'active'
  if (address_hash === null) return granted
  const { tenant_id } = caller
  const expires_at = tx.now + confirmation_ms_max
  const link = newLinkToken(await secrets.sealerIn(tx), tenant_id, address_hash)
  const fresh = { address_hash, ...link, asked_by: id, expires_at }
  if (await addresses.insert(tx, tenant_id, fresh)) {
    quotas.reserveBytes(tx, caller, plans, rowBytes(fresh.token))
    return 'unconfirmed'
  }
  const known = (await addresses.lock(tx, tenant_id, address_hash))!
  if (known.state === 'confirmed') return granted
  if (known.state === 'unsubscribed') {
    throw invalid({
      path: '/to',
      message: 'has unsubscribed; its holder may confirm again by a link in an email',
    })
  }
  if (known.expires_at <= tx.now) await addresses.askAgain(tx, tenant_id, fresh)
  else if (known.sent_at === null) {
    const asker = await store.find(tx, tenant_id, known.asked_by)
    if (asker?.status !== 'unconfirmed') await addresses.askFor(tx, tenant_id, fresh)
  }
  return 'unconfirmed'
}

/** Lets another subscription send the email that asks, unless it was sent: the one that should send it is gone. The address is locked. */
export async function askByAnother(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  { address_hash, state, sent_at, expires_at }: addresses.AddressRow,
): Promise<void> {
  if (state !== 'unconfirmed' || sent_at !== null || expires_at <= tx.now) return
  const next = await mail_store.firstWaiting(tx, tenant_id, address_hash)
  if (!next) return
  const again = { address_hash, asked_by: next.id, expires_at: tx.now + confirmation_ms_max }
  await addresses.askFor(tx, tenant_id, again)
  // Under another lease: the current one may be about to make the job idle.
  const key = jobs.keyOf({ tenant_id }, subscription_job, next.id)
  const job = { ...key, event_id: next.id, destination: null, next_at: tx.now }
  await jobs.reschedule(tx, dependencies.jobs, job)
}
