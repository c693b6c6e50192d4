// /v1/clock, with CLOCK=test alone.

import { Type } from 'typebox'
import { day_ms, iso, second_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { JournalEvent } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Shape, Time } from '../contract/schemas.ts'
import { requireReleased } from '../quarantine/service.ts'
import { advance_ms_max } from './service.ts'

const tag = 'Test clock'

export const advance_seconds_max = limit(
  'clock.advance',
  (366 * day_ms) / second_ms,
  'seconds',
  'How far one call advances a test clock. Past it 400.',
)

const Now = Time('The time of the service.')

export const getClock = route({
  group: v1,
  method: 'GET',
  path: '/v1/clock',
  tag,
  summary: 'Read the time of a service with a test clock',
  description: 'Only with CLOCK=test; other services answer 404 ROUTE_NOT_FOUND.',
  sdk: { name: 'clock.get' },
  cli: {
    usage: 'clock show',
    about: 'Show the time of a service with a test clock',
    group: 'Move the time of a service that runs with CLOCK=test',
  },
  auth: ['admin', 'agent'],
  with_test_clock: true,
  replies: {
    200: {
      body: Shape('TestClock', 'The time of a service with a test clock.', {
        now: Now,
        offset_seconds: Type.Number({ description: 'How far it is ahead of real time.' }),
      }),
    },
  },
  errors: ['ROUTE_NOT_FOUND'],
  handle({ dependencies: { test_clock } }) {
    if (!test_clock) throw new ApiError('ROUTE_NOT_FOUND')
    return { now: iso(test_clock.time.now), offset_seconds: test_clock.time.ahead_ms / second_ms }
  },
})

export const advanceClock = route({
  group: v1,
  method: 'POST',
  path: '/v1/clock/advance',
  tag,
  summary: 'Move the time of a service with a test clock, and do all that falls due on the way',
  description:
    'Only with CLOCK=test; other services answer 404 ROUTE_NOT_FOUND. Time moves from one due time to the next, and everything due is finished, for every tenant, before it moves on. The answer lists what happened to the tenant of the key.',
  sdk: {
    name: 'clock.advance',
    arguments: ['seconds'],
    retry: { safe: false, why: 'a second call would move the time a second time' },
  },
  cli: {
    usage: 'clock advance <seconds>',
    about: 'Move the time of a service with a test clock, and do all that falls due on the way',
    examples: ['waystation clock advance 259200'],
  },
  auth: ['admin'],
  with_test_clock: true,
  body: Type.Object({
    seconds: Type.Number({
      minimum: 0,
      maximum: advance_seconds_max,
      description:
        'How far to move it, to the millisecond. 259200 is three days; 0 only finishes what is due now.',
    }),
  }),
  replies: {
    200: {
      body: Shape('Advanced', 'How far a test clock was moved, and what happened on the way.', {
        now: Now,
        advanced_seconds: Type.Number({ description: 'How far the time was moved.' }),
        done: Type.Boolean({
          description:
            'False when 20 s were not enough: advanced_seconds says how far it got. To continue, advance by the rest, which may be 0.',
        }),
        counts: Type.Record(Type.String(), Type.Integer(), {
          description: 'How many events of each type happened, for the tenant of the key.',
        }),
        events: Type.Array(JournalEvent, {
          description: 'These events in their order, the first 1000. GET /v1/events has the rest.',
        }),
      }),
    },
  },
  emits: [], // those of what fell due, which the clock causes
  errors: ['ROUTE_NOT_FOUND', 'CLOCK_ADVANCING', 'QUARANTINED'],
  async handle({ caller, dependencies: { test_clock, service }, extendTimeout }, { body }) {
    if (!test_clock) throw new ApiError('ROUTE_NOT_FOUND')
    requireReleased(service.quarantine)
    extendTimeout(advance_ms_max)
    return test_clock.advance(caller.tenant_id, Math.round(body.seconds * second_ms))
  },
})
