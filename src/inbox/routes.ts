// /api/webhook

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import type { Urls } from '../contract/dependencies.ts'
import { encode } from '../contract/encode.ts'
import { api } from '../contract/group.ts'
import { route, Streamed } from '../contract/route.ts'
import { idParam, Json, label_characters_max, Nullable, Shape, Text, Time, Url } from '../contract/schemas.ts'
import { waitFor } from '../contract/wait.ts'
import {
  list_limit_default,
  list_limit_max,
  ttl_seconds_default,
  ttl_seconds_min,
  wait_seconds_max,
  waitKey,
} from './inbox.ts'
import { forward_statuses, type MessageRow, messageOf } from './message.ts'
import * as inboxes from './service.ts'

const tag = 'Webhook inbox'
const id = idParam('The inbox, inb_….')
const example = 'inb_01m7yjrz37hxnv52px0106nehd'

const created = {
  id: Type.String(),
  token: Type.String({ description: 'The secret part of the URL.' }),
  url: Type.String({ description: 'Where anybody may send to, without a key.' }),
  label: Type.String({ description: 'Empty when none was given.' }),
}
const expiresAt = Time('From then on it takes no messages.')
const forwardUrl = Nullable(Type.String())
const messageCount = Type.Integer({ description: 'Messages that are kept.' })

const Message = Shape('Message', {
  id: Type.String(),
  method: Type.String(),
  path: Type.String({ description: 'What follows the token in the URL, empty when nothing does.' }),
  headers: Json('Names in lower case; repeats are joined by a comma.'),
  query: Json('Name to value, or to an array of them when the name came more than once.'),
  body: Json('JSON as it came, else a string, else (when the bytes are no UTF-8) null.'),
  bodyBase64: Type.String({ description: 'The exact bytes.' }),
  contentType: Type.String({ description: 'Empty when none was sent.' }),
  sourceIp: Type.String(),
  createdAt: Time('When it came.'),
  forward: Nullable(
    Shape('Forward', {
      status: Type.Enum([...forward_statuses]),
      statusCode: Nullable(Type.Integer()),
      error: Nullable(
        Type.String({
          description: 'dns, refused, timeout, tls, blocked, too_large, status, interrupted or loop.',
        }),
      ),
      durationMs: Nullable(Type.Integer()),
      attemptedAt: Nullable(Time('When it was tried.')),
    }),
  ),
})

export const createInbox = route({
  group: api,
  method: 'POST',
  path: '/api/webhook',
  tag,
  summary: 'Create an inbox',
  sdk: { name: 'inboxes.create' },
  cli: {
    usage: 'inbox create',
    about: 'Create an inbox; anybody may send to its URL',
    group: 'Public URLs that keep whatever is sent to them',
    examples: ['waystation inbox create --label github', 'waystation inbox create --ttl 7d'],
    options: {
      forwardUrl: ['--forward <url>', 'where each message is sent on to, once'],
      ttl: ['--ttl <duration>', 'how long it lives; default 24h'],
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
  }),
  replies: { 201: { body: Shape('CreatedInbox', { ...created, expiresAt }) } },
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ caller, dependencies }, { body }) =>
    agents.requireCallable(dependencies, caller.tenant_id, '/forwardUrl', body.forwardUrl),
  async create(tx, { caller, dependencies }, { body }) {
    const inbox = await inboxes.create(tx, caller, dependencies, {
      label: body.label ?? '',
      forward_url: body.forwardUrl ?? null,
      ttl_seconds: body.ttl ?? ttl_seconds_default,
    })
    return { ...headOf(inbox, dependencies), expiresAt: iso(inbox.expires_at) }
  },
})

const Limit = Type.Optional(
  Type.Integer({ minimum: 1, description: 'Items, default 50; above 100 counts as 100.' }),
)

export const listInboxes = route({
  group: api,
  method: 'GET',
  path: '/api/webhook',
  tag,
  summary: 'List inboxes that have not expired, newest first',
  description: 'Only those that have not expired.',
  sdk: { name: 'inboxes.list' },
  cli: { usage: 'inbox list', columns: ['id', 'label', 'messageCount', 'expiresAt', 'url'] },
  auth: ['agent', 'admin'],
  query: Type.Object({
    limit: Limit,
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Items to skip.' }),
    ),
  }),
  replies: {
    200: {
      body: Shape({
        items: Type.Array(Shape('ListedInbox', { ...created, messageCount, expiresAt })),
        total: Type.Integer({ description: 'How many there are in all.' }),
      }),
    },
  },
  errors: [],
  async handle({ db, caller, dependencies, now }, { query }) {
    const { items, total } = await inboxes.list(
      db,
      caller,
      dependencies,
      now,
      query.offset ?? 0,
      limitOf(query),
    )
    return {
      items: items.map((inbox) => ({
        ...headOf(inbox, dependencies),
        messageCount: inbox.message_count,
        expiresAt: iso(inbox.expires_at),
      })),
      total,
    }
  },
})

export const getInbox = route({
  group: api,
  method: 'GET',
  path: '/api/webhook/:id',
  tag,
  summary: 'Read an inbox and its latest 50 messages, newest first',
  sdk: { name: 'inboxes.get' },
  cli: {
    usage: 'inbox get <id>',
    about: 'Show an inbox; with --json its latest 50 messages, too',
    shows: 'inbox',
  },
  auth: ['agent', 'admin'],
  heavy: true,
  params: { id },
  replies: {
    200: {
      body: Shape('InboxDetail', {
        inbox: Shape('Inbox', {
          ...created,
          forwardUrl,
          messageCount,
          createdAt: Time('When it was created.'),
          expiresAt,
        }),
        messages: Type.Array(Message),
      }),
    },
  },
  errors: ['INBOX_NOT_FOUND'],
  async handle({ db, caller, dependencies, now }, { params }) {
    const { inbox, messages } = await inboxes.read(db, caller, dependencies, now, params.id)
    const shown = {
      inbox: {
        ...headOf(inbox, dependencies),
        forwardUrl: inbox.forward_url,
        messageCount: inbox.message_count,
        createdAt: iso(inbox.created_at),
        expiresAt: iso(inbox.expires_at),
      },
    }
    if (Array.isArray(messages)) return { ...shown, messages: messages.map(messageOf) }
    return new Streamed(joined(shown, messages))
  },
})

/** The same JSON text, a message at a time. */
async function* joined(shown: object, messages: AsyncIterable<MessageRow>): AsyncGenerator<string> {
  yield `${encode(shown).slice(0, -1)},"messages":[`
  let comma = ''
  for await (const message of messages) {
    yield comma + encode(messageOf(message))
    comma = ','
  }
  yield ']}'
}

export const deleteInbox = route({
  group: api,
  method: 'DELETE',
  path: '/api/webhook/:id',
  tag,
  summary: 'Delete an inbox and its messages',
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
  replies: { 200: { body: Shape({ deleted: Type.Boolean() }) } },
  errors: ['INBOX_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params }) {
    await inboxes.remove(db, caller, dependencies, params.id)
    return { deleted: true }
  },
})

export const listMessages = route({
  group: api,
  method: 'GET',
  path: '/api/webhook/:id/messages',
  tag,
  summary: 'List messages, oldest first, or wait for one',
  sdk: { name: 'inboxes.messages' },
  cli: {
    usage: 'inbox messages <id>',
    about: 'List its messages, oldest first',
    examples: [
      `waystation inbox messages ${example} --all`,
      `waystation inbox messages ${example} --all --json | jq -r .bodyBase64`,
    ],
    options: { after: ['--after <message_id>', 'start after this message'] },
    columns: ['createdAt', 'id', 'method', 'path', 'contentType', 'body'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  params: { id },
  query: Type.Object({
    after: Type.Optional(
      Type.String({ maxLength: 64, description: 'Id of the last message seen, which may be gone by now.' }),
    ),
    limit: Limit,
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: wait_seconds_max,
        description: 'Seconds to hold the request while there is no message.',
      }),
    ),
  }),
  replies: {
    200: {
      body: Shape({
        items: Type.Array(Message),
        nextAfter: Nullable(
          Type.String({ description: 'Give it as after next time; null while no message was ever seen.' }),
        ),
      }),
    },
  },
  errors: ['INBOX_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { db, caller, dependencies } = context
    const { messages } = await waitFor(context, {
      key: waitKey(caller.tenant_id, params.id),
      wait_ms: (query.wait ?? 0) * second_ms,
      look: () =>
        inboxes.page(db, caller, dependencies.plans, db.clock.now(), params.id, query.after, limitOf(query)),
      isDone: (page) => page.messages.length > 0 || !page.live,
    })
    return { items: messages.map(messageOf), nextAfter: messages.at(-1)?.id ?? query.after ?? null }
  },
})

function limitOf({ limit = list_limit_default }: { limit?: number }): number {
  return Math.min(limit, list_limit_max)
}

function headOf({ id, token, label }: inboxes.Inbox, { urls }: { urls: Pick<Urls, 'public_url'> }) {
  return { id, token, url: `${urls.public_url()}/hook/${token}`, label }
}
