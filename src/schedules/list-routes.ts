// Lists of schedules, and of the attempts of one.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery } from '../contract/schemas.ts'
import { WorkflowFilter } from '../contract/workflow.ts'
import { AttemptPage, attempt_columns, attemptPage } from '../jobs/attempts.ts'
import { statuses } from './schedule.ts'
import * as schedules from './service.ts'
import { id, Schedule, scheduleOf, tag } from './shapes.ts'
import * as store from './store.ts'

export const listSchedules = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules',
  tag,
  summary: 'List schedules, newest first',
  description: 'Can be filtered by status and workflow.',
  sdk: { name: 'schedules.list' },
  cli: {
    usage: 'schedule list',
    examples: ['waystation schedule list --status pending', 'waystation schedule list --workflow night-17'],
    columns: [
      'id',
      'status',
      'name',
      'workflow_id',
      'fire_at',
      'attempts',
      'callback_url',
      'last_error',
      'agent_id',
    ],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    ...PageQuery,
    status: Type.Optional(Type.Enum([...statuses])),
    workflow_id: WorkflowFilter,
  }),
  replies: { 200: { body: Page(Schedule) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const rows = await store.list(db, caller.tenant_id, query, pageOfIds(request))
    return pageOf(context, request, { rows, itemOf: scheduleOf, positionOf: (row) => [row.id] })
  },
})

export const listScheduleAttempts = route({
  group: v1,
  method: 'GET',
  path: '/v1/schedules/:id/attempts',
  tag,
  summary: 'List the callback attempts of a schedule, newest first',
  description: 'Each has its status code, or the reason why there is none.',
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
