// /api/webhook

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { iso } from '../base/clock.ts'
import { api } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { label_characters_max, Part, Shape, Text, Url } from '../contract/schemas.ts'
import { callerFor, WorkflowFilter, WorkflowId, workflowOf } from '../contract/workflow.ts'
import { ttl_seconds_default, ttl_seconds_min } from './inbox.ts'
import * as inboxes from './service.ts'
import { created, expiresAt, headOf, id, Limit, limitOf, messageCount, tag, workflowId } from './shapes.ts'

export const createInbox = route({
  group: api,
  method: 'POST',
  path: '/api/webhook',
  tag,
  summary: 'Create an inbox',
  description: 'Its URL accepts any request without a key, until `ttl` seconds have passed.',
  sdk: { name: 'inboxes.create' },
  cli: {
    usage: 'inbox create',
    about: 'Create an inbox; anybody may send to its URL',
    group: 'Public URLs that keep whatever is sent to them',
    examples: ['waystation inbox create --label github', 'waystation inbox create --ttl 7d'],
    options: {
      forwardUrl: ['--forward <url>', 'where each message is forwarded to, once'],
      ttl: ['--ttl <duration>', 'how long it lives; default 24h'],
      workflowId: ['--workflow <id>', 'ties it to what belongs to the same work'],
    },
  },
  auth: ['agent', 'admin'],
  body: Type.Object({
    label: Type.Optional(Text(label_characters_max, 'For humans.')),
    forwardUrl: Type.Optional(Url('An http or https URL that each message is sent on to, once.')),
    ttl: Type.Optional(
      Type.Number({
        minimum: ttl_seconds_min,
        description: 'Seconds; default 86400, at most what the plan allows.',
      }),
    ),
    workflowId: Type.Optional(WorkflowId),
  }),
  emits: ['inbox.created', 'inbox.deleted'], // one that has expired may leave the quota
  replies: {
    201: {
      body: Shape(
        'CreatedInbox',
        { of: 'Inbox', about: 'An inbox as its creation answers it.' },
        { ...created, workflowId, expiresAt },
      ),
    },
  },
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ caller, dependencies }, { body }) =>
    agents.requireCallable(dependencies, caller.tenant_id, '/forwardUrl', body.forwardUrl),
  async create(tx, { caller, dependencies }, { body }) {
    const inbox = await inboxes.create(tx, callerFor(caller, body.workflowId), dependencies, {
      label: body.label ?? '',
      forward_url: body.forwardUrl ?? null,
      workflow_id: workflowOf(body.workflowId, caller),
      ttl_seconds: body.ttl ?? ttl_seconds_default,
    })
    return {
      ...headOf(inbox, dependencies),
      workflowId: inbox.workflow_id,
      expiresAt: iso(inbox.expires_at),
    }
  },
})

export const listInboxes = route({
  group: api,
  method: 'GET',
  path: '/api/webhook',
  tag,
  summary: 'List inboxes that have not expired, newest first',
  description: 'Only those that have not expired.',
  sdk: { name: 'inboxes.list' },
  cli: {
    usage: 'inbox list',
    options: { workflowId: ['--workflow <id>', 'only of this workflow'] },
    columns: ['id', 'label', 'workflowId', 'messageCount', 'expiresAt', 'url'],
  },
  auth: ['agent', 'admin'],
  free_in_console: true,
  query: Type.Object({
    limit: Limit,
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Items to skip.' }),
    ),
    workflowId: WorkflowFilter,
  }),
  replies: {
    200: {
      body: Part(
        'InboxPage',
        {
          of: 'Listing',
          about: 'Inboxes, and how many there are.',
          shared: 'Items of a list that continues without a cursor.',
        },
        {
          items: Type.Array(
            Shape(
              'ListedInbox',
              { of: 'Inbox', about: 'An inbox as lists show it.' },
              { ...created, workflowId, messageCount, expiresAt },
            ),
          ),
          total: Type.Integer({
            description: 'The number of all of them; for a workflow, at most 10,000 are counted.',
          }),
        },
      ),
    },
  },
  errors: [],
  async handle({ db, caller, dependencies, now }, { query }) {
    const { offset: skipped = 0, workflowId: workflow_id } = query
    const listed = { skipped, rows_max: limitOf(query), workflow_id }
    const { items, total } = await inboxes.list(db, caller, dependencies, now, listed)
    return {
      items: items.map((inbox) => ({
        ...headOf(inbox, dependencies),
        workflowId: inbox.workflow_id,
        messageCount: inbox.message_count,
        expiresAt: iso(inbox.expires_at),
      })),
      total,
    }
  },
})

export const deleteInbox = route({
  group: api,
  method: 'DELETE',
  path: '/api/webhook/:id',
  tag,
  summary: 'Delete an inbox and its messages',
  description: 'Its URL answers 404 from then on.',
  sdk: {
    name: 'inboxes.delete',
    retry: {
      safe: true,
      why: 'an id is used once; a deleted inbox stays deleted',
      done: { code: 'INBOX_NOT_FOUND', answer: { deleted: true } },
    },
  },
  cli: { usage: 'inbox delete <id>' },
  auth: ['agent', 'admin'],
  destructive: true,
  params: { id },
  replies: {
    200: {
      body: Part(
        'Deletion',
        { of: 'Acknowledgement', about: 'The inbox was deleted.', shared: 'The call had its effect.' },
        { deleted: Type.Boolean() },
      ),
    },
  },
  emits: ['inbox.deleted'],
  errors: ['INBOX_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params }) {
    await inboxes.remove(db, caller, dependencies, params.id)
    return { deleted: true }
  },
})
