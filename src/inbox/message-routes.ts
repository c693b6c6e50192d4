// /api/webhook/{id} and its messages.

import { Type } from 'typebox'
import { iso, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { encode } from '../contract/encode.ts'
import { api } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Nullable, Part, Shape, Text, Time } from '../contract/schemas.ts'
import { waitFor, waitKey } from '../contract/wait.ts'
import { wait_seconds_max } from './inbox.ts'
import { folded } from './message.ts'
import { page, search } from './messages.ts'
import { replay } from './replay.ts'
import * as inboxes from './service.ts'
import {
  created,
  expiresAt,
  forwardUrl,
  headOf,
  id,
  Limit,
  limitOf,
  Message,
  messageCount,
  messageId,
  messageOf,
  tag,
  workflowId,
} from './shapes.ts'
import { alone, fillsPage, messagesOf, pageOfMessages, streamed } from './texts.ts'

const example = 'inb_01m7yjrz37hxnv52px0106nehd'

export const getInbox = route({
  group: api,
  method: 'GET',
  path: '/api/webhook/:id',
  tag,
  summary: 'Read an inbox and its latest 50 messages, newest first',
  description: 'Messages are shown with their exact bytes.',
  sdk: { name: 'inboxes.get' },
  cli: {
    usage: 'inbox get <id>',
    about: 'Show an inbox; with --json also its latest 50 messages',
    shows: 'inbox',
  },
  auth: ['agent', 'admin'],
  free_in_console: true,
  heavy: true,
  params: { id },
  replies: {
    200: {
      body: Shape('InboxDetail', 'An inbox with its latest messages.', {
        inbox: Shape('Inbox', 'A public URL that keeps whatever is sent to it.', {
          ...created,
          forwardUrl,
          workflowId,
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
    const read = await inboxes.read(db, caller, dependencies, now, params.id)
    const { inbox } = read
    const shown = {
      inbox: {
        ...headOf(inbox, dependencies),
        forwardUrl: inbox.forward_url,
        workflowId: inbox.workflow_id,
        messageCount: inbox.message_count,
        createdAt: iso(inbox.created_at),
        expiresAt: iso(inbox.expires_at),
      },
    }
    return 'messages' in read
      ? { ...shown, messages: await messagesOf(read.messages) }
      : streamed(`${encode(shown).slice(0, -1)},"messages":[`, read.parts, ']}')
  },
})

export const listMessages = route({
  group: api,
  method: 'GET',
  path: '/api/webhook/:id/messages',
  tag,
  summary: 'List messages, oldest first, or wait for one',
  description:
    'With `wait`, the answer comes as soon as there is a message newer than `after`, or after that many seconds. Pass `nextAfter` as `after` to continue.',
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
  free_in_console: true,
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
      body: Part(
        'MessagePage',
        { of: 'Listing', about: 'Messages, oldest first.' },
        {
          items: Type.Array(Message),
          nextAfter: Nullable(
            Type.String({ description: 'Pass it as after next time; null until a message has been seen.' }),
          ),
        },
      ),
    },
  },
  errors: ['INBOX_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { db, caller, dependencies } = context
    const { messages } = await waitFor(context, {
      key: waitKey(caller.tenant_id, params.id),
      wait_ms: (query.wait ?? 0) * second_ms,
      look: () =>
        page(db, caller, dependencies.plans, db.clock.now(), params.id, query.after, limitOf(query)),
      isDone: (page) => page.messages.length > 0 || !page.live,
    })
    const nextAfter = (shown: number) => messages[shown - 1]?.id ?? query.after ?? null
    if (messages[0] && fillsPage(messages[0])) return alone(messages[0], { nextAfter: nextAfter(1) })
    const items = await pageOfMessages(messages)
    return { items, nextAfter: nextAfter(items.length) }
  },
})

export const replayMessage = route({
  group: api,
  method: 'POST',
  path: '/api/webhook/:id/messages/:message_id/replay',
  tag,
  summary: 'Forward a message once more',
  description:
    'It is sent to the `forwardUrl` of its inbox, as it came. The answer is the message with its forward pending.',
  sdk: { name: 'inboxes.replay' },
  cli: {
    usage: 'inbox replay <id> <message_id>',
    about: 'Forward a message once more, to the forward URL of its inbox',
  },
  auth: ['agent', 'admin'],
  params: { id, message_id: messageId },
  replies: { 200: { body: Message } },
  emits: ['message.replayed'],
  errors: ['INBOX_NOT_FOUND', 'MESSAGE_NOT_FOUND', 'INVALID_STATE'],
  async create(tx, { caller, dependencies }, { params }) {
    return messageOf(await replay(tx, caller, dependencies, params.id, params.message_id))
  },
})

const text_characters_max = limit(
  'inbox.search_text',
  256,
  'characters',
  'The text that messages are searched for. Past it 400.',
)

export const searchMessages = route({
  group: api,
  method: 'GET',
  path: '/api/webhook/:id/search',
  tag,
  summary: 'Search the messages of an inbox, newest first',
  description:
    'Searches method, path, query and body as they came, ignoring case. A page looks at 500 messages or 1 MiB at most, so it may be short, or empty, before the end: continue with `nextBefore` until that is null.',
  sdk: { name: 'inboxes.search' },
  cli: {
    usage: 'inbox search <id>',
    about: 'Search its messages, newest first',
    examples: [`waystation inbox search ${example} --text cus_8003`],
    options: {
      q: ['--text <text>', 'in method, path, query or body'],
      before: ['--before <message_id>', 'continue before this message'],
    },
    columns: ['createdAt', 'id', 'method', 'path', 'contentType', 'preview'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  params: { id },
  query: Type.Object({
    q: Text(text_characters_max, 'The text.', { minLength: 1 }),
    before: Type.Optional(
      Type.String({ maxLength: 64, description: 'nextBefore of the previous page: only older messages.' }),
    ),
    limit: Limit,
  }),
  replies: {
    200: {
      body: Part(
        'MessageSearchPage',
        { of: 'Listing', about: 'Messages that were found, newest first.' },
        {
          items: Type.Array(Message),
          nextBefore: Nullable(
            Type.String({ description: 'Pass it as before to continue; null at the end.' }),
          ),
        },
      ),
    },
  },
  errors: ['INBOX_NOT_FOUND'],
  async handle({ db, caller, dependencies: { plans }, now }, { params, query }) {
    const wanted = { text: folded(query.q), before: query.before, items_max: limitOf(query) }
    const { messages, reached } = await search(db, caller, plans, now, params.id, wanted)
    const nextBefore = (shown: number) => (shown < messages.length ? messages[shown - 1]!.id : reached)
    if (messages[0] && fillsPage(messages[0])) return alone(messages[0], { nextBefore: nextBefore(1) })
    const items = await pageOfMessages(messages)
    return { items, nextBefore: nextBefore(items.length) }
  },
})
