// Routes that change a subscription.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { OrNull, sharing, Url } from '../contract/schemas.ts'
import * as journal from '../journal/service.ts'
import * as changes from './change-service.ts'
import * as subscriptions from './service.ts'
import {
  example,
  id,
  Name,
  Paused,
  requireKnown,
  Subscription,
  subscriptionOf,
  Types,
  tag,
  WorkflowId,
} from './shapes.ts'
import { requireCallable, requireNoLoop } from './targets-allowed.ts'

export const updateSubscription = route({
  group: v1,
  method: 'PATCH',
  path: '/v1/subscriptions/:id',
  tag,
  summary: 'Change, pause or resume a subscription; the event that failed is tried again at once',
  description: 'Only the given fields change.',
  sdk: {
    name: 'subscriptions.update',
    retry: {
      safe: { without: ['paused'] },
      why: 'the same fields are set again; a resume could end a pause that came in between',
    },
  },
  cli: {
    usage: 'subscription update <id>',
    about: 'Change, pause or resume a subscription',
    examples: [`waystation subscription update ${example} --paused`],
    options: {
      url: ['--endpoint <url>', 'where events are sent'],
      types: ['--types <list>', 'event types, comma-separated'],
      workflow_id: ['--workflow <id>', 'only events of this workflow'],
      name: ['--name <text>', 'the name that lists show'],
      paused: ['--paused', 'deliver nothing for now'],
    },
    or: {
      paused: ['--resume', 'deliver again, from where it was paused', false],
      workflow_id: ['--no-workflow', 'events of every workflow, and of none', null],
    },
  },
  auth: ['admin'],
  params: { id },
  body: Type.Object(
    {
      url: Type.Optional(Url('An http or https URL; not for a subscription that sends emails.')),
      types: Type.Optional(Types),
      workflow_id: Type.Optional(OrNull(WorkflowId)),
      name: Type.Optional(Name),
      paused: Type.Optional(Paused),
    },
    sharing('SubscriptionRequest', 'The settings of a subscription.'),
  ),
  replies: { 200: { body: Subscription } },
  emits: ['subscription.updated', 'subscription.paused', 'subscription.resumed'],
  errors: ['SUBSCRIPTION_NOT_FOUND', 'INVALID_STATE', 'QUOTA_EXCEEDED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { tenant_id } = caller
    const { url, types } = body
    if (types) requireKnown(types, dependencies.event_types)
    if (url !== undefined || types) {
      const before = await subscriptions.targetOf(db, dependencies, tenant_id, params.id)
      const all = types ?? (JSON.parse(before.types) as string[])
      if (url !== undefined) await requireCallable(dependencies, tenant_id, url, all)
      else await requireNoLoop(dependencies, tenant_id, before.text, all)
    }
    const row = await changes.update(db, caller, dependencies, params.id, body)
    return subscriptionOf(row, await journal.lastSeq(db, tenant_id))
  },
})

export const replaySubscription = route({
  group: v1,
  method: 'POST',
  path: '/v1/subscriptions/:id/replay',
  tag,
  summary: 'Deliver the events after a number again, or skip those before it',
  description: 'Events keep their webhook-ids, so that a receiver can tell which it already has.',
  sdk: {
    name: 'subscriptions.replay',
    retry: { safe: true, why: 'deliveries begin after the same event again' },
  },
  cli: {
    usage: 'subscription replay <id>',
    examples: [`waystation subscription replay ${example} --after 120`],
    options: { after: ['--after <n>', 'the number of an event; 0 for all that are kept'] },
  },
  auth: ['admin'],
  params: { id },
  body: Type.Object(
    {
      after: Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        examples: [0],
        description:
          'The number of an event: what comes after it is delivered, with the same webhook-ids. 0: all that are kept.',
      }),
    },
    sharing('SubscriptionRequest', 'The settings of a subscription.'),
  ),
  replies: { 200: { body: Subscription } },
  emits: ['subscription.replayed'],
  errors: ['SUBSCRIPTION_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const row = await changes.replay(db, caller, dependencies, params.id, body.after)
    return subscriptionOf(row, await journal.lastSeq(db, caller.tenant_id))
  },
})
