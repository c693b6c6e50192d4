// /api/webhook/{id} and its messages.

import { Type } from 'typebox'
import { iso, second_ms } from '../base/clock.ts'
import { encode } from '../contract/encode.ts'
import { api } from '../contract/group.ts'
import { route, Streamed } from '../contract/route.ts'
import { Nullable, Shape, Time } from '../contract/schemas.ts'
import { waitFor } from '../contract/wait.ts'
import { wait_seconds_max, waitKey } from './inbox.ts'
import type { MessageRow } from './message.ts'
import { page } from './messages.ts'
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
  messageOf,
  tag,
} from './shapes.ts'

const example = 'inb_01m7yjrz37hxnv52px0106nehd'

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
  free_in_console: true,
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
        page(db, caller, dependencies.plans, db.clock.now(), params.id, query.after, limitOf(query)),
      isDone: (page) => page.messages.length > 0 || !page.live,
    })
    return { items: messages.map(messageOf), nextAfter: messages.at(-1)?.id ?? query.after ?? null }
  },
})
