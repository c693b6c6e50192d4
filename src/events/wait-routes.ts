// POST /v1/wait

import { Type } from 'typebox'
import { second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { eventOf, JournalEvent } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Nullable, OrNull, partNamed, Shape } from '../contract/schemas.ts'
import type { Wanted } from '../contract/wanted.ts'
import { read } from './service.ts'
import { After, tag, type WantedFields, wait_seconds_max } from './shapes.ts'

export const any_max = limit(
  'events.any',
  16,
  'entries',
  'Alternatives that one `POST /v1/wait` waits for. Past it 400.',
)

export function waitForEventOf({ type, subject, workflow_id }: WantedFields) {
  return route({
    group: v1,
    method: 'POST',
    path: '/v1/wait',
    frozen: 'allowed', // it changes nothing
    tag,
    summary: 'Wait for whichever of several events comes first',
    description:
      'Returns the first event after `after` that matches one of `any`, or none, with the `after` to continue from. Without `after` it begins now.',
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
          {
            ...partNamed('EventFilter', 'Events that match all of these.'),
            additionalProperties: false,
            examples: [{ workflow_id: 'night-17' }],
          },
        ),
        {
          minItems: 1,
          maxItems: any_max,
          description: 'Alternatives: waits for an event that matches all members of one of them.',
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
        body: Shape('Awaited', 'The event that was waited for, or none.', {
          event: Nullable(JournalEvent),
          after: Type.Integer({ description: 'Pass it as after to continue.' }),
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
