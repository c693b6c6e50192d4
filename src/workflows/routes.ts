// /v1/workflows

import { Type } from 'typebox'
import { iso } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { eventOf, JournalEvent } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { type Param, route } from '../contract/route.ts'
import {
  label_characters_max,
  Page,
  PageQuery,
  page_limit_default,
  page_limit_max,
  Shape,
  Time,
} from '../contract/schemas.ts'
import { numberIfPossible } from '../journal/service.ts'
import * as service from './service.ts'
import type { WorkflowRow } from './store.ts'
import { statuses } from './workflow.ts'

const tag = 'Workflows'

const summary = {
  workflow_id: Type.String(),
  events: Type.Integer({ description: 'Its events, including those removed since.' }),
  waiting: Type.Integer({ description: 'How many things it waits for now.' }),
  failing: Type.Integer({ description: 'How many failures nobody has dealt with.' }),
  first_at: Time('The first event.'),
  last_at: Time('The latest event.'),
  last_seq: Type.Integer({ description: 'The number of the latest event.' }),
  last_type: Type.String({ description: 'The type of the latest event.' }),
}

export const listWorkflows = route({
  group: v1,
  method: 'GET',
  path: '/v1/workflows',
  tag,
  summary: 'List workflows, the latest activity first',
  description: 'With `prefix` they come in the order of their ids.',
  sdk: { name: 'workflows.list' },
  cli: {
    usage: 'workflow list',
    group: 'Workflows: everything that carries one workflow_id',
    examples: [
      'waystation workflow list --status waiting',
      'waystation workflow list --prefix invoice- --all',
    ],
    options: {
      prefix: ['--prefix <text>', 'only ids with this prefix'],
      status: ['--status <status>', 'waiting, failed or idle'],
    },
    columns: ['workflow_id', 'waiting', 'failing', 'events', 'last_type', 'last_at'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object({
    ...PageQuery,
    prefix: Type.Optional(
      Type.String({ maxLength: label_characters_max, description: 'Ids that begin with this text.' }),
    ),
    status: Type.Optional(
      Type.Enum([...statuses], {
        description: 'waiting: something in it waits. failed: a failure in it is open. idle: neither.',
      }),
    ),
  }),
  replies: {
    200: { body: Page(Shape('Workflow', 'The events of a workflow, in numbers.', summary)) },
  },
  errors: [],
  async handle(context, { query }) {
    const { caller, dependencies, db } = context
    const { prefix = '', status } = query
    const request = pageRequest(context, query, prefix === '' ? '' : 'prefix')
    const { rows_max } = request
    const [after] = request.after ?? []
    await numberIfPossible(dependencies.journal, caller.tenant_id)
    const { rows, reached } =
      prefix === ''
        ? await service.listLatest(db, caller.tenant_id, status, Number(after ?? past_all), rows_max)
        : await service.listByPrefix(
            db,
            caller.tenant_id,
            { prefix, after: after === undefined ? null : String(after) },
            status,
            rows_max,
          )
    const positionOf = ({ last_seq, workflow_id }: WorkflowRow) => [prefix === '' ? last_seq : workflow_id]
    return pageOf(context, request, {
      ...{ rows, itemOf: summaryOf, positionOf },
      reached: reached && positionOf(reached),
    })
  },
})

const past_all = Number.MAX_SAFE_INTEGER

const workflow_id: Param = {
  schema: Type.String({
    minLength: 1,
    maxLength: label_characters_max,
    description: 'The workflow_id that its events carry, percent-encoded once.',
    examples: ['night-17'],
  }),
  read: (decoded) => (isWorkflowId(decoded) ? decoded : null),
  message: `must be 1 to ${label_characters_max} characters, without NUL`,
}

function isWorkflowId(text: string): boolean {
  return text !== '' && !text.includes('\0') && [...text].length <= label_characters_max
}

export const getWorkflow = route({
  group: v1,
  method: 'GET',
  path: '/v1/workflows/:workflow_id',
  tag,
  summary: 'Read a workflow: what happened, oldest first, and what is open',
  description: 'Continue with `next_after` while `more` is true.',
  sdk: { name: 'workflows.get' },
  cli: {
    usage: 'workflow show <workflow_id>',
    about: 'Print the timeline of a workflow',
    examples: ['waystation workflow show night-17', 'waystation workflow show night-17 --json'],
    options: {
      after: ['--after <seq>', 'only what came after this number'],
      limit: ['--limit <n>', 'events at most'],
    },
  },
  auth: ['agent', 'admin'],
  params: { workflow_id },
  query: Type.Object({
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Events with a higher number; default 0, from the oldest.',
      }),
    ),
    limit: PageQuery.limit,
  }),
  replies: {
    200: {
      body: Shape(
        'WorkflowTimeline',
        { of: 'Workflow', about: 'A workflow with a page of its events.' },
        {
          ...summary,
          items: Type.Array(JournalEvent),
          next_after: Type.Integer({ description: 'Pass it as after to continue.' }),
          more: Type.Boolean({ description: 'True when further events follow.' }),
        },
      ),
    },
  },
  errors: ['WORKFLOW_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params, query }) {
    await numberIfPossible(dependencies.journal, caller.tenant_id)
    const found = await service.read(db, caller, params.workflow_id, {
      after: query.after ?? 0,
      rows_max: Math.min(query.limit ?? page_limit_default, page_limit_max),
    })
    if (!found) throw new ApiError('WORKFLOW_NOT_FOUND')
    const { workflow, events, next_after, more } = found
    return { ...summaryOf(workflow), items: events.map(eventOf), next_after, more }
  },
})

function summaryOf({ first_at, last_at, ...row }: WorkflowRow) {
  return { ...row, first_at: iso(first_at), last_at: iso(last_at) }
}
