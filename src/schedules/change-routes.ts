// /v1/schedules/{id}: change, retry and cancel

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { parseTime } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { sharing } from '../contract/schemas.ts'
import { callerFor } from '../contract/workflow.ts'
import { retry } from './repeat.ts'
import type { Settings } from './schedule.ts'
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

const example = 'sch_01m7yjrz37hxnv52px0106nehd'

export const updateSchedule = route({
  group: v1,
  method: 'PATCH',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Change a pending schedule; a new fire_at starts the attempts again',
  description: 'Only the given fields change. The schedule must still be pending.',
  sdk: {
    name: 'schedules.update',
    retry: {
      safe: { without: ['fire_at'] },
      why: 'the same fields are set again; a new fire_at would start its attempts again',
    },
  },
  cli: {
    usage: 'schedule update <id> [callback_payload]',
    about: 'Change a pending schedule; a new time starts its attempts again',
    examples: [`waystation schedule update ${example} --in 1h`],
    options: {
      callback_url: ['--callback <url>', 'the URL to call'],
      fire_at: ['--at <time>', 'when, RFC 3339'],
      dlq_on_failure: ['--dlq', 'keep a dead letter after the last failure'],
      name: ['--name <text>', 'the name that lists show'],
      workflow_id: ['--workflow <id>', 'the workflow that it belongs to; empty for none'],
    },
    or: {
      fire_at: ['--in <duration>', 'or: how long from now'],
      dlq_on_failure: ['--no-dlq', 'keep no dead letter', false],
    },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object(
    {
      callback_url: Type.Optional(CallbackUrl),
      callback_payload: Type.Optional(CallbackPayload),
      fire_at: Type.Optional(FireAt),
      ...optional,
    },
    sharing('ScheduleRequest', 'The settings of a schedule.'),
  ),
  replies: { 200: { body: Schedule } },
  emits: ['schedule.updated', 'schedule.workflow_left', 'schedule.workflow_joined'],
  errors: ['SCHEDULE_NOT_FOUND', 'INVALID_STATE', 'QUOTA_EXCEEDED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { callback_url, callback_payload, fire_at, ...others } = body
    const change: Partial<Settings> = optionalOf(others)
    if (callback_url !== undefined)
      change.callback_url = await agents.callbackUrl(db, dependencies, caller, callback_url)
    if (callback_payload !== undefined) change.callback_payload = callback_payload.text
    if (fire_at !== undefined) change.fire_at = parseTime(fire_at)!
    const named = callerFor(caller, body.workflow_id)
    return scheduleOf(await schedules.update(db, named, dependencies, params.id, change))
  },
})

export const retrySchedule = route({
  group: v1,
  method: 'POST',
  path: '/v1/schedules/:id/retry',
  tag,
  summary: 'Send a failed or fired schedule again, now, as a new schedule',
  description:
    'The new one has the same URL, payload and settings. It resolves the dead letter that the failure left, if any.',
  sdk: { name: 'schedules.retry' },
  cli: { usage: 'schedule retry <id>', about: 'Send a failed or fired schedule again, as a new one' },
  auth: ['agent', 'admin'],
  params: { id },
  replies: { 201: { body: Schedule } },
  emits: ['schedule.retried', 'schedule.created', 'dlq.resolved'],
  errors: ['SCHEDULE_NOT_FOUND', 'INVALID_STATE', 'ALREADY_CLAIMED', 'QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { params }) {
    return scheduleOf(await retry(tx, caller, dependencies, params.id))
  },
})

export const cancelSchedule = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Cancel a pending schedule',
  description: 'The callback is no longer sent, and the schedule no longer counts against the quota.',
  sdk: {
    name: 'schedules.cancel',
    retry: {
      safe: true,
      why: 'a cancelled schedule stays cancelled',
      done: { code: 'INVALID_STATE', status: 'cancelled' },
    },
  },
  cli: { usage: 'schedule cancel <id>', done: 'cancelled' },
  auth: ['agent'],
  destructive: true,
  params: { id },
  replies: { 204: { body: null } },
  emits: ['schedule.cancelled'],
  errors: ['SCHEDULE_NOT_FOUND', 'INVALID_STATE'],
  handle: ({ db, caller }, { params }) => schedules.cancel(db, caller, params.id),
})
