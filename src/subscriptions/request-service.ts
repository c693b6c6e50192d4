// The requests and emails of a delivery.

import { hour_ms, type Millis, realTime } from '../base/clock.ts'
import type { OutgoingMail, Sendable } from '../callbacks/attempt.ts'
import { signedRequest, subscription_header } from '../callbacks/message.ts'
import * as checkpoints from '../checkpoints/service.ts'
import { encode } from '../contract/encode.ts'
import { type EventRow, eventOf } from '../contract/event.ts'
import { deadlineTime } from '../contract/stopped.ts'
import { dueWork, type Reader, type Tx } from '../db/db.ts'
import * as inboxes from '../inbox/service.ts'
import { type LeasedJob, lease_ms, type Sequence } from '../jobs/job.ts'
import type { Later, MessageContext } from '../jobs/kind.ts'
import * as tenants from '../tenants/service.ts'
import * as addresses from './address-store.ts'
import * as deliveries from './delivery-store.ts'
import { confirmationMail, eventMail, type MailTo } from './mail-text.ts'
import { slackBody } from './slack.ts'
import { openTarget, openToken } from './targets.ts'
import type { Told } from './words.ts'

/** The events of one lease, sent one after the other. */
export interface Delivery extends Sequence {
  subscription: deliveries.Deliverable
  /** Null for the email that asks for a confirmation. */
  events: EventRow[] | null
  /** There may be others after them. */
  more: boolean
  /** Up to this number there are no others; null for the email that asks for a confirmation. */
  reached: number | null
  /** The number of this attempt to deliver the first of them, or the email that asks. */
  attempt: number
}

/** The webhook-id: the same on every attempt to deliver this event to this subscription. */
export function deliveryId(event_id: string, subscription_id: string): string {
  return `${event_id}-${subscription_id}`
}

/** The request of the next event; null once the lease is lost, as by a change of the subscription. */
export async function nextRequest(
  { db, dependencies }: MessageContext,
  job: LeasedJob,
  { subscription, events, attempt, results }: Omit<Delivery, 'next'>,
  secrets: readonly string[],
): Promise<Sendable | null> {
  const at = results.length
  const event = events![at]
  if (!event || (at > 0 && !(await deliveries.isHeld(db, job)))) return null
  const { tenant_id } = job
  const now = dependencies.clock.now()
  const body =
    subscription.format === 'slack'
      ? slackBody(await told(db, dependencies, tenant_id, event, now))
      : encode(eventOf(event))
  const request = signedRequest({
    ...{
      url: openTarget(dependencies.keys.secrets, tenant_id, subscription),
      event: event.type,
      workflow_id: event.workflow_id,
      body,
      secrets,
    },
    ...{ id: deliveryId(event.id, subscription.id), attempt: at === 0 ? attempt : 1 },
    sent_at: realTime(dependencies.clock),
  })
  const added = { [subscription_header]: subscription.id, ...(await hopsOfEvent(db, tenant_id, event)) }
  return { ...request, headers: { ...request.headers, ...added } }
}

/** For an event about a message: an inbox that it reaches under a name that is not known as ours ends the loop. */
async function hopsOfEvent(q: Reader, tenant_id: string, { type, subject_id, data }: EventRow) {
  if (!type.startsWith('message.')) return {}
  return inboxes.hopsHeader(q, tenant_id, subject_id, JSON.parse(data).message_seq)
}

async function told(
  q: Reader,
  { urls, event_types }: MessageContext['dependencies'],
  tenant_id: string,
  event: EventRow,
  now: Millis,
): Promise<Told> {
  const asks = event.type === 'checkpoint.created'
  const tenant = asks ? await tenants.find(q, tenant_id) : null
  return {
    event: { ...event, data: JSON.parse(event.data) },
    about: event_types.get(event.type)?.about ?? event.type,
    checkpoint: asks ? await checkpoints.find(q, tenant_id, event.subject_id) : null,
    now: tenant ? deadlineTime(tenant, now) : now,
    public_url: urls.public_url(),
  }
}

/** The one email that an address gets before it has confirmed. Null when another subscription sends it, or it was sent. */
export function askForConfirmation(
  context: MessageContext,
  job: LeasedJob,
  subscription: deliveries.Deliverable,
): Promise<Delivery | Later | null> {
  const delivery = {
    subscription,
    events: null,
    more: false,
    reached: null,
    attempt: job.attempts,
    results: [],
  }
  return oneMail(context, job, delivery, async (to) => confirmationMail(to))
}

export function mailAbout(
  context: MessageContext,
  job: LeasedJob,
  delivery: Omit<Delivery, 'next'> & { events: EventRow[] },
): Promise<Delivery | Later | null> {
  const { db, dependencies, started_at } = context
  const [event] = delivery.events
  return oneMail(context, job, delivery, async (to) =>
    eventMail(to, await told(db, dependencies, job.tenant_id, event!, started_at)),
  )
}

/** Counted before it is sent, whatever the outcome: what a tenant sends is limited. Null when nothing is to be sent. */
async function oneMail(
  { db, dependencies, started_at }: MessageContext,
  job: LeasedJob,
  delivery: Omit<Delivery, 'next'>,
  make: (to: MailTo) => Promise<OutgoingMail>,
): Promise<Delivery | Later | null> {
  const { tenant_id } = job
  const { subscription, events, results } = delivery
  const address = await addresses.find(db, tenant_id, subscription.address_hash!)
  const tenant = await tenants.find(db, tenant_id)
  if (!address || !tenant || address.state === 'unsubscribed') return null
  const may = await db.write(dueWork(tenant_id), async (tx) =>
    events ? addresses.countMail(tx, tenant_id) : claimRequest(tx, job, subscription),
  )
  if (may === null || typeof may === 'object') return may
  if (!may) return { not_before: (Math.floor(started_at / hour_ms) + 1) * hour_ms }
  const { secrets } = dependencies.keys
  const mail = await make({
    address: openTarget(secrets, tenant_id, subscription),
    token: openToken(secrets, tenant_id, address),
    public_url: dependencies.urls.public_url(),
    tenant_name: tenant.name,
    message_id: deliveryId(events?.[0]?.id ?? 'confirm', subscription.id),
  })
  return { ...delivery, results, next: async () => (results.length === 0 ? mail : null) }
}

/**
 * Counts the email that asks an address, and notes in the same transaction that it is being sent: another waits until its outcome
 * is known, or until the lease is over. False when the limit is reached, null when it was sent, or another asks.
 */
async function claimRequest(
  tx: Tx,
  { tenant_id }: LeasedJob,
  { id, address_hash }: deliveries.Deliverable,
): Promise<boolean | Later | null> {
  const address = await addresses.lock(tx, tenant_id, address_hash!)
  const asks = address?.state === 'unconfirmed' && address.asked_by === id && address.expires_at > tx.now
  if (!asks || address.sent_at !== null) return null
  const known_at = (address.asked_at ?? 0) + lease_ms
  if (known_at > tx.now) return { not_before: known_at }
  if (!(await addresses.countMail(tx, tenant_id))) return false
  await addresses.beginAsking(tx, tenant_id, address_hash!)
  return true
}
