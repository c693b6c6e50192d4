// /v1/subscriptions

import { Type } from 'typebox'
import { invalid } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { sharing, Text, Url } from '../contract/schemas.ts'
import * as journal from '../journal/service.ts'
import * as subscriptions from './service.ts'
import {
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
import { email_characters_max, isAddress } from './subscription.ts'
import { requireCallable } from './targets-allowed.ts'

export const createSubscription = route({
  group: v1,
  method: 'POST',
  path: '/v1/subscriptions',
  tag,
  summary: 'Deliver events to a URL or an address, from now on',
  description:
    'Events are delivered in order, at least once, signed as callbacks are, with retries over about three days. An address is first asked by one email to confirm. The URL or address is shown masked from now on.',
  sdk: { name: 'subscriptions.create' },
  cli: {
    usage: 'subscription create',
    about: 'Deliver events to a URL, to Slack, or by mail',
    group: 'Events delivered to a URL, to Slack, or by mail',
    examples: [
      'waystation subscription create --endpoint https://example.com/events --types "schedule.failed,dlq.*"',
      'waystation subscription create --endpoint https://hooks.slack.com/services/T0/B0/x --format slack --types checkpoint.created',
    ],
    options: {
      url: ['--endpoint <url>', 'where events are sent'],
      to: ['--mail <address>', 'or: the address that gets an email for each event'],
      types: ['--types <list>', 'event types, comma-separated: schedule.failed,checkpoint.*'],
      format: ['--format <name>', 'standard, or slack for Slack and what reads its format'],
      name: ['--name <text>', 'the name that lists show'],
      paused: ['--paused', 'deliver nothing until it is resumed'],
    },
  },
  auth: ['admin'],
  body: Type.Object(
    {
      url: Type.Optional(Url('An http or https URL. Either url or to is required.')),
      to: Type.Optional(
        Text(email_characters_max, 'An email address, where the service has an SMTP server.', {
          format: 'email',
        }),
      ),
      types: Types,
      workflow_id: Type.Optional(WorkflowId),
      format: Type.Optional(
        Type.Enum(['standard', 'slack'], {
          description:
            'standard, the default: the event as GET /v1/events shows it. slack: a message for people.',
        }),
      ),
      name: Type.Optional(Name),
      paused: Type.Optional(Paused),
    },
    { 'x-one-of': ['url', 'to'], ...sharing('SubscriptionRequest', 'The settings of a subscription.') },
  ),
  replies: { 201: { body: Subscription } },
  emits: ['subscription.created'],
  errors: ['QUOTA_EXCEEDED'],
  async prepare({ caller, dependencies }, { body }) {
    const { url, to, types, format } = body
    if ((url === undefined) === (to === undefined))
      throw invalid({
        path: '/url',
        message: url === undefined ? 'or /to is required' : 'cannot be given with /to',
      })
    requireKnown(types, dependencies.event_types)
    // Events that were committed before get their numbers now, and are not delivered.
    await dependencies.journal.number(caller.tenant_id)
    if (url !== undefined) return requireCallable(dependencies, caller.tenant_id, url, types)
    if (format !== undefined) throw invalid({ path: '/format', message: 'cannot be given with /to' })
    requireMail(dependencies, to!)
  },
  async create(tx, { caller, dependencies }, { body }) {
    const { url, to, types, workflow_id = null, format = 'standard', name = '', paused = false } = body
    const target = url === undefined ? ({ target: to!, format: 'mail' } as const) : { target: url, format }
    const given = { ...target, types, workflow_id, name, paused }
    const row = await subscriptions.create(tx, caller, dependencies, given)
    return subscriptionOf(row, row.position)
  },
})

/** Throws VALIDATION_FAILED. */
function requireMail({ service }: Dependencies, to: string): void {
  if (!service.sends_mail)
    throw invalid({ path: '/to', message: 'needs SMTP_URL, which this service does not have' })
  if (!isAddress(to)) throw invalid({ path: '/to', message: 'is not an address such as on-call@example.com' })
}

export const getSubscription = route({
  group: v1,
  method: 'GET',
  path: '/v1/subscriptions/:id',
  tag,
  summary: 'Read a subscription: its progress, and the outcome of its last attempt',
  description:
    '`behind` is the number of events that have happened since the last one that was delivered or skipped.',
  sdk: { name: 'subscriptions.get' },
  cli: { usage: 'subscription get <id>' },
  auth: ['admin'],
  params: { id },
  replies: { 200: { body: Subscription } },
  errors: ['SUBSCRIPTION_NOT_FOUND'],
  async handle({ db, caller: { tenant_id } }, { params }) {
    const head = await journal.lastSeq(db, tenant_id)
    return subscriptionOf(await subscriptions.read(db, tenant_id, params.id), head)
  },
})

export const deleteSubscription = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/subscriptions/:id',
  tag,
  summary: 'Delete a subscription',
  description: 'Nothing more is delivered.',
  sdk: {
    name: 'subscriptions.delete',
    retry: {
      safe: true,
      why: 'an id is used once; a deleted subscription stays deleted',
      done: { code: 'SUBSCRIPTION_NOT_FOUND' },
    },
  },
  cli: { usage: 'subscription delete <id>' },
  auth: ['admin'],
  destructive: true,
  params: { id },
  replies: { 204: { body: null } },
  emits: ['subscription.deleted'],
  errors: ['SUBSCRIPTION_NOT_FOUND'],
  handle: ({ db, caller, dependencies }, { params }) =>
    subscriptions.remove(db, caller, dependencies, params.id),
})
