// Comments on a checkpoint, by those who ask and those who decide.

import { Type } from 'typebox'
import { iso } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Nullable, Page, PageQuery, Shape, Text, Time } from '../contract/schemas.ts'
import { comment } from './comment-service.ts'
import * as store from './comment-store.ts'
import * as checkpoints from './service.ts'
import { id, tag } from './shapes.ts'

const text_characters_max = limit(
  'checkpoints.comment',
  4_000,
  'characters',
  'The text of a comment. Past it 400.',
)

const Comment = Shape('Comment', 'A comment on a checkpoint.', {
  id: Type.String({ description: 'cmt_…' }),
  author: Type.String({ description: 'The id of an agent or of an approval key, or admin.' }),
  author_label: Nullable(Type.String({ description: 'The label of the key: who has it.' })),
  text: Type.String(),
  at: Time('When it was made.'),
})

export const createComment = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/comments',
  tag,
  summary: 'Comment on a checkpoint',
  description:
    'Open to the agent that asked, its approvers and the admin, even once it is settled. A comment decides nothing.',
  sdk: { name: 'checkpoints.comment' },
  cli: {
    usage: 'checkpoint comment <id> <text>',
    examples: ['waystation checkpoint comment chk_01m7yjrz37hxnv52px0106nehd "Which account is it?"'],
  },
  auth: ['agent', 'admin', 'approval'],
  params: { id },
  body: Type.Object({ text: Text(text_characters_max, 'Plain text.', { minLength: 1 }) }),
  replies: { 201: { body: Comment } },
  emits: ['checkpoint.commented'],
  errors: ['CHECKPOINT_NOT_FOUND', 'NOT_AN_APPROVER', 'TOO_MANY_COMMENTS', 'QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { params, body }) {
    return commentOf(await comment(tx, caller, dependencies.plans, params.id, body.text))
  },
})

export const listComments = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id/comments',
  tag,
  summary: 'List the comments on a checkpoint, oldest first',
  description:
    'Open to all who may read the checkpoint: every agent of the tenant, the admin, and approval keys that are not bound to another one.',
  sdk: { name: 'checkpoints.comments' },
  cli: { usage: 'checkpoint comments <id>', columns: ['at', 'author', 'author_label', 'text'] },
  auth: ['agent', 'admin', 'approval'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(Comment) } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { db, caller } = context
    await checkpoints.readAs(db, caller, params.id)
    const request = pageRequest(context, query)
    const page = { after_id: String(request.after?.[0] ?? ''), rows_max: request.rows_max }
    const rows = await store.list(db, caller.tenant_id, params.id, page)
    return pageOf(context, request, { rows, itemOf: commentOf, positionOf: (row) => [row.id] })
  },
})

function commentOf(row: store.Comment) {
  return {
    id: row.id,
    author: row.author,
    author_label: row.author_label,
    text: row.text,
    at: iso(row.at),
  }
}
