// Lists of checkpoints, and of the attempts to deliver a decision.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery } from '../contract/schemas.ts'
import { WorkflowFilter } from '../contract/workflow.ts'
import { AttemptPage, attempt_columns, attemptPage } from '../jobs/attempts.ts'
import { type CheckpointRow, statuses } from './checkpoint.ts'
import * as checkpoints from './service.ts'
import { Checkpoint, checkpointOf, id, tag } from './shapes.ts'
import * as store from './store.ts'

export const listCheckpoints = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints',
  tag,
  summary: 'List checkpoints, newest first',
  description: 'Can be filtered by status and workflow.',
  sdk: { name: 'checkpoints.list' },
  cli: {
    usage: 'checkpoint list',
    examples: [
      'waystation checkpoint list --status pending',
      'waystation checkpoint list --workflow night-17',
    ],
    columns: [
      'id',
      'status',
      'title',
      'workflow_id',
      'agent_id',
      'expires_at',
      'resolved_by',
      'callback.status',
    ],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    ...PageQuery,
    status: Type.Optional(Type.Enum([...statuses])),
    workflow_id: WorkflowFilter,
  }),
  replies: { 200: { body: Page(Checkpoint) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const rows = await store.list(db, caller.tenant_id, query, pageOfIds(request))
    const itemOf = (row: CheckpointRow) => checkpointOf(row, context.dependencies)
    return pageOf(context, request, { rows, itemOf, positionOf: (row) => [row.id] })
  },
})

export const listCheckpointAttempts = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id/attempts',
  tag,
  summary: 'List the attempts to send the decision, newest first',
  description: 'Each has its status code, or the reason why there is none.',
  sdk: { name: 'checkpoints.attempts' },
  cli: { usage: 'checkpoint attempts <id>', columns: attempt_columns },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: AttemptPage } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  handle: (context, { params, query }) =>
    attemptPage(context, query, 'checkpoint', () =>
      checkpoints.read(context.db, context.caller.tenant_id, params.id),
    ),
})
