// The list of effects.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery } from '../contract/schemas.ts'
import { WorkflowFilter } from '../contract/workflow.ts'
import { statuses } from './effect.ts'
import { newest, ofKey } from './list-store.ts'
import { ListedEffect, listedOf, tag } from './shapes.ts'

export const listEffects = route({
  group: v1,
  method: 'GET',
  path: '/v1/effects',
  tag,
  summary: 'List effects, newest first',
  description: 'Leaves out payloads and results. With `type` and `key`, only the effect of that pair.',
  sdk: { name: 'effects.list' },
  cli: {
    usage: 'effect list',
    examples: [
      'waystation effect list --status unknown',
      'waystation effect list --type refund --named order-7',
    ],
    options: { key: ['--named <key>', 'only with this key'] },
    columns: ['id', 'status', 'type', 'key', 'fence', 'lease_until', 'held_by', 'workflow_id', 'updated_at'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object({
    ...PageQuery,
    status: Type.Optional(Type.Enum([...statuses])),
    type: Type.Optional(Type.String({ description: 'Only effects of this type.' })),
    key: Type.Optional(
      Type.String({
        description: 'Only effects with this key: at most one of each type, in the order of their types.',
      }),
    ),
    workflow_id: WorkflowFilter,
  }),
  replies: { 200: { body: Page(ListedEffect) } },
  errors: [],
  async handle(context, { query }) {
    const { db, caller } = context
    const { cursor: _, limit: __, key, ...filter } = query
    const request = pageRequest(context, query, key === undefined ? '' : 'key')
    const after = request.after ? String(request.after[0]) : ''
    const { rows, reached } =
      key === undefined
        ? await newest(db, caller.tenant_id, filter, pageOfIds(request))
        : await ofKey(db, caller.tenant_id, { ...filter, key }, { ...request, after })
    return pageOf(context, request, {
      rows,
      itemOf: listedOf,
      positionOf: ({ id, type }) => [key === undefined ? id : type],
      reached: reached === null ? null : [reached],
    })
  },
})
