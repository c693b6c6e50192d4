// /v1/schedules

import { type Static, type TObject, Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { iso, isoOrNull, parseTime } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import {
  AnyJson,
  idParam,
  Json,
  Nullable,
  Page,
  PageQuery,
  RawJson,
  Shape,
  Time,
  Url,
  value_bytes_max,
} from '../contract/schemas.ts'
import { AttemptPage, attempt_columns, attemptPage } from '../jobs/attempts.ts'
import { type ScheduleRow, type Settings, statuses } from './schedule.ts'
import * as schedules from './service.ts'
import * as store from './store.ts'

const tag = 'Schedules'
const id = idParam('The schedule, sch_….')
const example = 'sch_01m7yjrz37hxnv52px0106nehd'

const CallbackUrl = Url(
  "An http or https URL, or a path that is resolved against the agent's callback_base_url.",
)
const CallbackPayload = AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB; sent byte for byte.')
const FireAt = Time('When it is called; in the past means now.')
const DlqOnFailure = Type.Boolean({
  description: 'Default false. True: after the last failure a dead letter is kept.',
})

/** Settings that may be left out when a schedule is created. */
const optional = { dlq_on_failure: Type.Optional(DlqOnFailure) }

const Schedule = Shape('Schedule', {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  callback_url: Type.String(),
  callback_payload: Json('The exact text that was sent.'),
  fire_at: FireAt,
  dlq_on_failure: Type.Boolean(),
  agent_id: Type.String(),
  attempts: Type.Integer({ description: 'How often it was called since fire_at was set.' }),
  next_attempt_at: Nullable(Time('When it is called next; null once nothing is to come.')),
  last_error: Nullable(Type.String()),
  last_status_code: Nullable(Type.Integer()),
  fired_at: Nullable(Time('When a receiver took it.')),
  created_at: Time('When it was created.'),
  updated_at: Time('When it last changed.'),
})

export const createSchedule = route({
  group: v1,
  method: 'POST',
  path: '/v1/schedules',
  tag,
  summary: 'Schedule one signed callback',
  sdk: { name: 'schedules.create' },
  cli: {
    usage: 'schedule create <callback_url> [callback_payload]',
    about: 'Schedule a callback with a payload as JSON; default null',
    group: 'One signed callback at one time',
    examples: [
      `waystation schedule create https://example.com/wake '{"job": 7}' --in 10m`,
      'waystation schedule create /wake --file job.json --at 2027-01-01T00:00:00Z --dlq',
    ],
    options: {
      fire_at: ['--at <time>', 'when, RFC 3339; in the past means now'],
      dlq_on_failure: ['--dlq', 'keep a dead letter after the last failure'],
    },
    or: { fire_at: ['--in <duration>', 'or: how long from now, by the clock of this machine'] },
    defaults: { callback_payload: null },
  },
  auth: ['agent'],
  body: Type.Object({
    callback_url: CallbackUrl,
    callback_payload: CallbackPayload,
    fire_at: FireAt,
    ...optional,
  }),
  replies: { 201: { body: Schedule } },
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ db, dependencies, caller }, { body }) =>
    agents.callbackUrl(db, dependencies, caller, body.callback_url),
  async create(tx, { caller, dependencies }, { body }, callback_url) {
    const { callback_payload, fire_at, ...others } = body
    const needed = { callback_url, callback_payload: callback_payload.text, fire_at: parseTime(fire_at)! }
    const settings = { ...optionalOf(others), ...needed }
    return scheduleOf(await schedules.create(tx, caller, dependencies, settings))
  },
})

export const listSchedules = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules',
  tag,
  summary: 'List schedules, newest first',
  sdk: { name: 'schedules.list' },
  cli: {
    usage: 'schedule list',
    examples: ['waystation schedule list --status pending'],
    columns: ['id', 'status', 'fire_at', 'attempts', 'callback_url', 'last_error', 'agent_id'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({ ...PageQuery, status: Type.Optional(Type.Enum([...statuses])) }),
  replies: { 200: { body: Page(Schedule) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const rows = await store.list(db, caller.tenant_id, query.status, pageOfIds(request))
    return pageOf(context, request, { rows, itemOf: scheduleOf, positionOf: (row) => [row.id] })
  },
})

export const getSchedule = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Read a schedule',
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

export const updateSchedule = route({
  group: v1,
  method: 'PATCH',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Change a pending schedule; a new fire_at starts the attempts anew',
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
      callback_url: ['--callback <url>', 'where it calls'],
      fire_at: ['--at <time>', 'when, RFC 3339'],
      dlq_on_failure: ['--dlq', 'keep a dead letter after the last failure'],
    },
    or: {
      fire_at: ['--in <duration>', 'or: how long from now'],
      dlq_on_failure: ['--no-dlq', 'keep none', false],
    },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object({
    callback_url: Type.Optional(CallbackUrl),
    callback_payload: Type.Optional(CallbackPayload),
    fire_at: Type.Optional(FireAt),
    ...optional,
  }),
  replies: { 200: { body: Schedule } },
  errors: ['SCHEDULE_NOT_FOUND', 'INVALID_STATE', 'QUOTA_EXCEEDED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { callback_url, callback_payload, fire_at, ...others } = body
    const change: Partial<Settings> = optionalOf(others)
    if (callback_url !== undefined)
      change.callback_url = await agents.callbackUrl(db, dependencies, caller, callback_url)
    if (callback_payload !== undefined) change.callback_payload = callback_payload.text
    if (fire_at !== undefined) change.fire_at = parseTime(fire_at)!
    return scheduleOf(await schedules.update(db, caller, dependencies, params.id, change))
  },
})

export const cancelSchedule = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/schedules/:id',
  tag,
  summary: 'Cancel a pending schedule',
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
  errors: ['SCHEDULE_NOT_FOUND', 'INVALID_STATE'],
  handle: ({ db, caller }, { params }) => schedules.cancel(db, caller, params.id),
})

export const listScheduleAttempts = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules/:id/attempts',
  tag,
  summary: 'List the attempts to call it, newest first',
  sdk: { name: 'schedules.attempts' },
  cli: { usage: 'schedule attempts <id>', columns: attempt_columns },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: AttemptPage } },
  errors: ['SCHEDULE_NOT_FOUND'],
  handle: (context, { params, query }) =>
    attemptPage(context, query, 'schedule', () =>
      schedules.read(context.db, context.caller.tenant_id, params.id),
    ),
})

/** Those that were given, as they are stored. */
function optionalOf({ dlq_on_failure, ...texts }: Static<TObject<typeof optional>>) {
  return { ...texts, ...(dlq_on_failure === undefined ? {} : { dlq_on_failure: dlq_on_failure ? 1 : 0 }) }
}

function scheduleOf(row: ScheduleRow) {
  return {
    id: row.id,
    status: row.status,
    callback_url: row.callback_url,
    callback_payload: new RawJson(row.callback_payload),
    fire_at: iso(row.fire_at),
    dlq_on_failure: row.dlq_on_failure === 1,
    agent_id: row.agent_id,
    attempts: row.attempts,
    next_attempt_at: isoOrNull(row.next_at),
    last_error: row.last_error,
    last_status_code: row.last_status_code,
    fired_at: isoOrNull(row.fired_at),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}
