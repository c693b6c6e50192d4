// Lists of subscriptions, and of the attempts of one.

import { Type } from 'typebox'
import { iso } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Nullable, Page, PageQuery, Shape, Time } from '../contract/schemas.ts'
import * as journal from '../journal/service.ts'
import { kept, type LoggedAttempt } from './attempt-store.ts'
import { deliveryId } from './request-service.ts'
import * as subscriptions from './service.ts'
import { id, Subscription, subscriptionOf, tag } from './shapes.ts'
import * as store from './store.ts'

export const listSubscriptions = route({
  group: v1,
  method: 'GET',
  path: '/v1/subscriptions',
  tag,
  summary: 'List subscriptions, newest first',
  description: 'URLs and addresses are masked.',
  sdk: { name: 'subscriptions.list' },
  cli: {
    usage: 'subscription list',
    columns: ['id', 'status', 'name', 'format', 'url', 'to', 'types', 'behind', 'last_error'],
  },
  auth: ['admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(Subscription) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const head = await journal.lastSeq(db, caller.tenant_id)
    const rows = await store.list(db, caller.tenant_id, pageOfIds(request))
    return pageOf(context, request, {
      rows,
      itemOf: (row) => subscriptionOf(row, head),
      positionOf: (row) => [row.id],
    })
  },
})

const SubscriptionAttempt = Shape(
  'SubscriptionAttempt',
  { of: 'Attempt', about: 'One attempt to deliver an event.' },
  {
    number: Type.Integer({
      description: 'The number of this attempt among all of the subscription, from 0.',
    }),
    event_id: Type.String(),
    event_seq: Type.Integer(),
    event_type: Type.String(),
    attempt: Type.Integer({ description: 'The number of this attempt to deliver the event, from 1.' }),
    webhook_id: Type.String({ description: 'The webhook-id header, the same on every retry.' }),
    started_at: Time('When it began.'),
    duration_ms: Type.Integer(),
    status_code: Nullable(Type.Integer({ description: 'What the receiver answered; null when it did not.' })),
    error: Nullable(
      Type.String({ description: 'null, or dns, refused, timeout, tls, blocked, too_large, status.' }),
    ),
  },
)

export const listSubscriptionAttempts = route({
  group: v1,
  method: 'GET',
  path: '/v1/subscriptions/:id/attempts',
  tag,
  summary: 'List the last attempts to deliver, newest first',
  description: 'At most the last 100.',
  sdk: { name: 'subscriptions.attempts' },
  cli: {
    usage: 'subscription attempts <id>',
    columns: [
      'number',
      'event_type',
      'event_seq',
      'attempt',
      'started_at',
      'duration_ms',
      'status_code',
      'error',
    ],
  },
  auth: ['admin'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(SubscriptionAttempt) } },
  errors: ['SUBSCRIPTION_NOT_FOUND'],
  async handle(context, { params, query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const subscription = await subscriptions.read(db, caller.tenant_id, params.id)
    const before = request.after ? Number(request.after[0]) : Number.MAX_SAFE_INTEGER
    const all = await kept(db, caller.tenant_id, subscription.id)
    const rows = all.filter(({ number }) => number < before).slice(0, request.rows_max)
    return pageOf(context, request, {
      rows,
      itemOf: (row) => attemptOf(subscription.id, row),
      positionOf: ({ number }) => [number],
    })
  },
})

function attemptOf(id: string, { started_at, ...row }: LoggedAttempt) {
  return { ...row, webhook_id: deliveryId(row.event_id, id), started_at: iso(started_at) }
}
