// The list of effects.

import { Type } from 'typebox'
import { invalid } from '../base/errors.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery } from '../contract/schemas.ts'
import { WorkflowFilter } from '../contract/workflow.ts'
import { statuses } from './effect.ts'
import { newest } from './list-store.ts'
import { ListedEffect, listedOf, tag } from './shapes.ts'
import { findPair } from './store.ts'

export const listEffects = route({
  group: v1,
  method: 'GET',
  path: '/v1/effects',
  tag,
  summary: 'List effects, newest first',
  description: 'Without payloads and results. With `type` and `key` the one effect of this pair.',
  sdk: { name: 'effects.list' },
  cli: {
    usage: 'effect list',
    examples: [
      'waystation effect list --status unknown',
      'waystation effect list --type refund --key order-7',
    ],
    columns: ['id', 'status', 'type', 'key', 'fence', 'lease_until', 'held_by', 'workflow_id', 'updated_at'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object({
    ...PageQuery,
    status: Type.Optional(Type.Enum([...statuses])),
    type: Type.Optional(Type.String({ description: 'Only of this type.' })),
    key: Type.Optional(Type.String({ description: 'Only of this key; needs type.' })),
    workflow_id: WorkflowFilter,
  }),
  replies: { 200: { body: Page(ListedEffect) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const { type, key, ...filter } = query
    if (key !== undefined) {
      if (type === undefined) throw invalid({ path: 'query.key', message: 'needs query.type' })
      const effect = request.after ? null : await findPair(db, caller.tenant_id, type, key)
      const is_meant =
        effect !== null &&
        effect.status === (filter.status ?? effect.status) &&
        effect.workflow_id === (filter.workflow_id ?? effect.workflow_id)
      return { items: is_meant ? [listedOf(effect)] : [], next_cursor: null }
    }
    const page = pageOfIds(request)
    const { rows, reached } = await newest(
      db,
      caller.tenant_id,
      { ...filter, ...(type !== undefined && { type }) },
      page,
    )
    const positionOf = (row: { id: string }) => [row.id]
    return pageOf(context, request, {
      rows,
      itemOf: listedOf,
      positionOf,
      reached: reached === null ? null : [reached],
    })
  },
})
