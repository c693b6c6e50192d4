// /v1/schedules

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { parseTime } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { sharing } from '../contract/schemas.ts'
import { callerFor, workflowOf } from '../contract/workflow.ts'
import * as schedules from './service.ts'
import {
  CallbackPayload,
  CallbackUrl,
  FireAt,
  id,
  optional,
  optionalOf,
  Schedule,
  scheduleOf,
  tag,
} from './shapes.ts'

export const createSchedule = route({
  group: v1,
  method: 'POST',
  path: '/v1/schedules',
  tag,
  summary: 'Schedule one signed callback',
  description:
    'At `fire_at` the payload is sent byte for byte, signed according to Standard Webhooks, at least once and up to three times until the receiver answers 2xx.',
  sdk: { name: 'schedules.create' },
  cli: {
    usage: 'schedule create <callback_url> [callback_payload]',
    about: 'Schedule a callback with a JSON payload; default null',
    group: 'One-time signed callbacks',
    examples: [
      `waystation schedule create https://example.com/wake '{"job": 7}' --in 10m`,
      'waystation schedule create /wake --file job.json --at 2027-01-01T00:00:00Z --dlq',
    ],
    options: {
      fire_at: ['--at <time>', 'when, RFC 3339; a time in the past means now'],
      dlq_on_failure: ['--dlq', 'keep a dead letter after the last failure'],
      name: ['--name <text>', 'the name that lists show'],
      workflow_id: ['--workflow <id>', 'ties it to what belongs to the same work'],
    },
    or: { fire_at: ['--in <duration>', 'or: how long from now, by the clock of this machine'] },
    defaults: { callback_payload: null },
  },
  auth: ['agent'],
  body: Type.Object(
    {
      callback_url: CallbackUrl,
      callback_payload: CallbackPayload,
      fire_at: FireAt,
      ...optional,
    },
    sharing('ScheduleRequest', 'The settings of a schedule.'),
  ),
  replies: { 201: { body: Schedule } },
  emits: ['schedule.created'],
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ db, dependencies, caller }, { body }) =>
    agents.callbackUrl(db, dependencies, caller, body.callback_url),
  async create(tx, { caller, dependencies }, { body }, callback_url) {
    const { callback_payload, fire_at, ...others } = body
    const needed = { callback_url, callback_payload: callback_payload.text, fire_at: parseTime(fire_at)! }
    const workflow_id = workflowOf(body.workflow_id, caller) ?? ''
    const settings = { ...optionalOf(others), ...needed, workflow_id }
    return scheduleOf(await schedules.create(tx, callerFor(caller, body.workflow_id), dependencies, settings))
  },
})

export const getSchedule = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Read a schedule',
  description: 'Includes its status and its last outcome.',
  sdk: { name: 'schedules.get' },
  cli: { usage: 'schedule get <id>' },
  auth: ['agent', 'admin'],
  params: { id },
  replies: { 200: { body: Schedule } },
  errors: ['SCHEDULE_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return scheduleOf(await schedules.read(db, caller.tenant_id, params.id))
  },
})
