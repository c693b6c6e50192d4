// GET /v1/dlq and /v1/dlq/causes

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { looked_max, pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery, Time } from '../contract/schemas.ts'
import { deadlineTime } from '../contract/stopped.ts'
import { instantsOf } from './filter.ts'
import { seenAt, sources, statuses } from './item.ts'
import { list } from './list-store.ts'
import * as dlq from './service.ts'
import { Causes, ListedItem, listedOf, tag } from './shapes.ts'

export const listItems = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq',
  tag,
  summary: 'List dead letters, newest first, without payloads',
  description:
    'All given filters must match. A page may be short, or even empty, before the end: continue while there is a `next_cursor`.',
  sdk: { name: 'dlq.list' },
  cli: {
    usage: 'dlq list',
    examples: ['waystation dlq list --status failed', 'waystation dlq list --cause "card declined"'],
    options: {
      source: ['--source <source>', 'left by an agent, a schedule or a checkpoint'],
      source_id: ['--source-id <id>', 'left by this schedule or checkpoint'],
    },
    columns: ['id', 'status', 'error', 'source', 'workflow_id', 'claims', 'locked_by', 'created_at'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    ...PageQuery,
    status: Type.Optional(Type.Enum([...statuses])),
    source: Type.Optional(Type.Enum([...sources])),
    source_id: Type.Optional(Type.String({ description: 'The schedule or checkpoint that it came from.' })),
    cause: Type.Optional(Type.String({ description: 'The exact cause.' })),
    workflow_id: Type.Optional(Type.String()),
    from: Type.Optional(Time('Captured from this instant on.')),
    to: Type.Optional(Time('Captured before this instant.')),
  }),
  replies: { 200: { body: Page(ListedItem) } },
  errors: [],
  async handle(context, { query: { from, to, ...query } }) {
    const { db, caller } = context
    const now = deadlineTime(caller, context.now)
    const request = pageRequest(context, query)
    const { limit: _, cursor, ...filter } = query
    const found = await list(db, caller.tenant_id, { ...filter, ...instantsOf({ from, to }) }, now, {
      ...pageOfIds(request),
      looked_max,
    })
    return pageOf(context, request, {
      rows: found.rows,
      itemOf: (row) => listedOf(seenAt(row, now)),
      positionOf: (row) => [row.id],
      reached: found.reached === null ? null : [found.reached],
    })
  },
})

export const listCauses = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/causes',
  tag,
  summary: 'Group dead letters by cause, most frequent first',
  description: 'Ids and numbers are masked in a cause, so that failures of one kind are counted together.',
  sdk: { name: 'dlq.causes' },
  cli: {
    usage: 'dlq causes',
    examples: ['waystation dlq causes', 'waystation dlq causes --status archived'],
    columns: ['count', 'cause', 'source', 'oldest_at', 'newest_at', 'latest_id'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    status: Type.Optional(Type.Enum([...statuses], { description: 'Default failed.' })),
  }),
  replies: { 200: { body: Causes } },
  errors: [],
  handle: ({ db, caller, now }, { query }) =>
    dlq.causes(db, caller.tenant_id, query.status ?? 'failed', deadlineTime(caller, now)),
})
