// The list of checkpoints that the service has kept.

import { Type } from 'typebox'
import { iso } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery, Shape, Time } from '../contract/schemas.ts'
import { checkpoint_fields, tag } from './shapes.ts'
import * as store from './store.ts'

const { size, root, note } = checkpoint_fields

const KeptCheckpoint = Shape(
  'SealKeptCheckpoint',
  { of: 'SealStatement', about: 'A checkpoint that the service keeps.' },
  {
    ...{ size, root, note },
    created_at: Time('When it was signed.'),
  },
)

export const listSealCheckpoints = route({
  group: v1,
  method: 'GET',
  path: '/v1/seal/checkpoints',
  tag,
  summary: 'List the checkpoints of each hour, newest first',
  description:
    'They remain when retention removes events. Compare them with those that you have kept: one that the service keeps itself proves nothing against the service.',
  sdk: { name: 'seal.checkpoints' },
  cli: { usage: 'seal checkpoints', columns: ['size', 'created_at', 'root'] },
  auth: ['admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(KeptCheckpoint) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const before_size = request.after ? Number(request.after[0]) : Number.MAX_SAFE_INTEGER
    const rows = await store.checkpoints(db, caller.tenant_id, before_size, request.rows_max)
    return pageOf(context, request, {
      rows,
      itemOf: ({ created_at, ...row }) => ({ ...row, created_at: iso(created_at) }),
      positionOf: (row) => [row.size],
    })
  },
})
