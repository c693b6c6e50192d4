// /v1/events and /v1/wait

import { Type } from 'typebox'
import { second_ms } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { eventOf } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { EventStream, route } from '../contract/route.ts'
import {
  label_characters_max,
  Nullable,
  OrNull,
  PageQuery,
  page_limit_default,
  page_limit_max,
  Shape,
  Text,
  Time,
} from '../contract/schemas.ts'
import type { Wanted } from '../contract/wanted.ts'
import { type EventsContext, followerOf, placeOf, read } from './service.ts'
import { EventTexts } from './stream.ts'

const tag = 'Events'

/** Under the 60 s after which clients and proxies commonly give up. */
export const wait_seconds_max = limit(
  'events.wait',
  55,
  'seconds',
  'How long a request may wait for an event. Past it 400.',
)
export const any_max = limit(
  'events.any',
  16,
  'entries',
  'Alternatives that one `POST /v1/wait` waits for. Past it 400.',
)
const subject_characters_max = limit(
  'events.subject',
  1_024,
  'characters',
  'A `subject` that events are asked for by. Past it 400.',
)

const Event = Shape('JournalEvent', {
  id: Type.String({ description: 'evt_…' }),
  seq: Type.Integer({ description: 'Its number: starts at 1, rises by 1, without gaps, per tenant.' }),
  type: Type.String({ description: 'What happened: schedule.fired.' }),
  subject: Shape({ kind: Type.String(), id: Type.String() }),
  workflow_id: Nullable(Type.String()),
  workflow_seq: Nullable(Type.Integer({ description: 'Its number in the workflow; null outside of one.' })),
  agent_id: Nullable(Type.String({ description: 'The agent whose call caused it.' })),
  actor: Type.String({
    description: 'admin, the id of an agent, approval_key:…, anonymous, operator, or service for the clock.',
  }),
  request_id: Nullable(Type.String()),
  at: Time('When it happened.'),
  data: Type.Unsafe<object>({ type: 'object', description: 'What the type says about it; never a payload.' }),
})

const After = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** `types`: of the events that features declare. */
export function eventRoutes(types: readonly string[]) {
  const wanted = wantedFields(types)
  return { listEvents: listEventsOf(wanted), waitForEvent: waitForEventOf(wanted) }
}

type WantedFields = ReturnType<typeof wantedFields>

function wantedFields(types: readonly string[]) {
  const nouns = new Set(types.map((type) => `${type.split('.')[0]}.*`))
  return {
    type: Type.Enum([...types, ...nouns], { description: 'This type, or all types of a noun: schedule.*.' }),
    subject: Text(subject_characters_max, 'Events of this thing: its id, or kind:id.', { minLength: 1 }),
    workflow_id: Text(label_characters_max, 'Events of this workflow.', { minLength: 1 }),
  }
}

function listEventsOf({ type, subject, workflow_id }: WantedFields) {
  return route({
    group: v1,
    method: 'GET',
    path: '/v1/events',
    tag,
    summary: 'List what happened, oldest first, wait for it, or follow it',
    description:
      'A page may be short, or empty, before the end: go on with `next_after`. With `Accept: text/event-stream` the answer is a stream of Server-Sent Events that begins now, or behind `Last-Event-ID` or `after`.',
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
        body: Shape({
          items: Type.Array(Event),
          next_after: Type.Integer({ description: 'Give it as after to go on.' }),
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

function waitForEventOf({ type, subject, workflow_id }: WantedFields) {
  return route({
    group: v1,
    method: 'POST',
    path: '/v1/wait',
    tag,
    summary: 'Wait for whichever of several events comes first',
    description:
      'Answers the first event behind `after` that one of `any` names, or none with the `after` to go on with. Without `after` it begins now.',
    sdk: { name: 'wait', retry: { safe: true, why: 'it changes nothing' } },
    cli: {
      usage: 'wait',
      about: 'Wait for whichever of several events comes first',
      examples: [
        'waystation wait --type checkpoint.approved --type checkpoint.rejected',
        'waystation wait --subject sch_01m7yjrz37hxnv52px0106nehd --for 10m',
      ],
      options: { any: false, after: false, wait_seconds: false },
    },
    auth: ['agent', 'admin'],
    body: Type.Object({
      any: Type.Array(
        // A member that there is not is an issue: a misspelt one would let every event through.
        Type.Object(
          {
            type: Type.Optional(OrNull(type)),
            subject: Type.Optional(OrNull(subject)),
            workflow_id: Type.Optional(OrNull(workflow_id)),
          },
          { additionalProperties: false, examples: [{ workflow_id: 'night-17' }] },
        ),
        {
          minItems: 1,
          maxItems: any_max,
          description: 'Alternatives: an event that has all members of one of them is waited for.',
        },
      ),
      after: Type.Optional({
        ...After,
        description: 'The number of the last event seen; default: begins now.',
      }),
      wait_seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: wait_seconds_max,
          description: 'Seconds to hold the request while no event has come; default 0.',
        }),
      ),
    }),
    replies: {
      200: {
        body: Shape('Awaited', {
          event: Nullable(Event),
          after: Type.Integer({ description: 'Give it as after to go on.' }),
        }),
      },
    },
    emits: [], // it changes nothing
    errors: [],
    async handle(context, { body }) {
      const { any, after = null, wait_seconds = 0 } = body as WaitBody
      const asked = { any: any.map(withoutNulls), after, rows_max: 1, wait_ms: wait_seconds * second_ms }
      const { events, next_after } = await read(context, asked)
      return { event: events[0] ? eventOf(events[0]) : null, after: next_after }
    },
  })
}

interface WaitBody {
  any: { [Name in keyof Wanted]: Wanted[Name] | null }[]
  after?: number
  wait_seconds?: number
}

/** Null counts as absent. */
function withoutNulls(members: WaitBody['any'][number]): Wanted {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
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
  const { caller, dependencies, isStillAllowed } = context
  const { tenant_id } = caller
  const release = placeOf(dependencies.shared.notifier, tenant_id)
  if (!release) throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1 })
  try {
    const follower = await followerOf(context, [any], after)
    return new EventStream(
      new EventTexts({
        follower,
        clock: dependencies.clock,
        isStillAllowed,
        onKeysChanged: (listener) => dependencies.keys.cache.onForgotten(tenant_id, listener),
        onEnd: release,
      }),
    )
  } catch (error) {
    release()
    throw error
  }
}
