// GET /v1/events: pages, and the stream.

import { Type } from 'typebox'
import { second_ms } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { eventOf, JournalEvent } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { EventStream, route } from '../contract/route.ts'
import { PageQuery, Part, page_limit_default, page_limit_max } from '../contract/schemas.ts'
import type { Wanted } from '../contract/wanted.ts'
import { type EventsContext, followerOf, read } from './service.ts'
import { After, tag, type WantedFields, wait_seconds_max } from './shapes.ts'
import { EventTexts } from './stream.ts'

export function listEventsOf({ type, subject, workflow_id }: WantedFields) {
  return route({
    group: v1,
    method: 'GET',
    path: '/v1/events',
    tag,
    summary: 'List what happened, oldest first, wait for it, or follow it',
    description:
      'A page may be short, or empty, before the end: continue with `next_after`. With `Accept: text/event-stream` the answer is a stream of Server-Sent Events that begins now, or after the event that `Last-Event-ID` or `after` names.',
    sdk: { name: 'events.list' },
    cli: {
      usage: 'events list',
      about: 'List what happened, oldest first',
      group: 'What happened: every change, in order',
      examples: [
        'waystation events list --workflow night-17',
        'waystation events list --type schedule.failed --all --json | jq -r .subject.id',
      ],
      options: {
        after: ['--after <seq>', 'only what came after this number'],
        type: ['--type <type>', 'only this type, or all of a noun: schedule.*'],
        subject: ['--subject <id>', 'only about this thing'],
        workflow_id: ['--workflow <id>', 'only of this workflow'],
      },
      columns: ['seq', 'at', 'type', 'subject', 'workflow_id', 'actor', 'data'],
    },
    auth: ['agent', 'admin'],
    query: Type.Object({
      after: Type.Optional({
        ...After,
        description: 'The number of the last event seen; default 0, the oldest.',
      }),
      workflow_id: Type.Optional(workflow_id),
      subject: Type.Optional(subject),
      type: Type.Optional(type),
      limit: PageQuery.limit,
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: wait_seconds_max,
          description: 'Seconds to hold the request while there is no event.',
        }),
      ),
    }),
    headers: { 'Last-Event-ID': 'The id of the last event that a stream sent; wins over `after`.' },
    replies: {
      200: {
        body: Part('JournalEventPage', 'A page of events, and where the next one begins.', {
          items: Type.Array(JournalEvent),
          next_after: Type.Integer({ description: 'Pass it as after to continue.' }),
        }),
        event_stream: 'Each event with its `seq` as id, its type as event, and the event itself as data.',
      },
    },
    errors: [],
    async handle(context, { query, header }) {
      const { after, limit, wait = 0, ...any } = query as ListQuery
      if (asksForStream(header('accept'))) return stream(context, any, lastEventId(header) ?? after ?? null)
      const rows_max = Math.min(limit ?? page_limit_default, page_limit_max)
      const asked = { any: [any], after: after ?? 0, rows_max, wait_ms: wait * second_ms }
      const { events, next_after } = await read(context, asked)
      return { items: events.map(eventOf), next_after }
    },
  })
}

interface ListQuery extends Wanted {
  after?: number
  limit?: number
  wait?: number
}

/** A program that takes both gets the page: it did not say that it follows. */
function asksForStream(accept: string | null): boolean {
  const types = (accept ?? '').split(',').map((type) => type.split(';', 1)[0]!.trim().toLowerCase())
  return types.includes('text/event-stream') && !types.includes('application/json')
}

function lastEventId(header: (name: string) => string | null): number | null {
  const text = header('last-event-id')
  if (text === null || text === '') return null
  const seq = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(seq)) return seq
  throw invalid({ path: 'header.Last-Event-ID', message: 'must be the id of an event of this stream' })
}

async function stream(context: EventsContext, any: Wanted, after: number | null): Promise<EventStream> {
  const { caller, dependencies, requireStillAllowed } = context
  const { tenant_id } = caller
  const { notifier } = dependencies.shared
  if (!notifier.enter(tenant_id)) throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1 })
  try {
    const follower = await followerOf(context, [any], after)
    return new EventStream(
      new EventTexts({
        follower,
        clock: dependencies.clock,
        look_again_ms: () => notifier.look_again_ms,
        requireStillAllowed,
        onKeysChanged: (listener) => dependencies.keys.cache.onForgotten(tenant_id, listener),
        onEnd: () => notifier.leave(tenant_id),
      }),
    )
  } catch (error) {
    notifier.leave(tenant_id)
    throw error
  }
}
