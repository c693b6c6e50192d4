// The votes on a checkpoint.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Nullable, Page, PageQuery, rawOrNull, Shape, Time } from '../contract/schemas.ts'
import * as checkpoints from './service.ts'
import { id, tag } from './shapes.ts'
import * as store from './vote-store.ts'

const Vote = Shape('Vote', 'The vote of one approver.', {
  voter: Type.String({ description: 'The id of an approval key, or admin.' }),
  voter_label: Nullable(Type.String({ description: 'The label of the key: who has it.' })),
  decision: Type.Enum(['approved', 'rejected']),
  counts: Type.Boolean({
    description: 'False once the payload was changed after it; its voter may vote again.',
  }),
  edited: Type.Boolean({ description: 'True when it changed the payload.' }),
  payload_hash: Nullable(
    Type.String({ description: 'SHA-256 of the payload that it is for, hexadecimal; null without one.' }),
  ),
  reason: Nullable(Type.String()),
  answer: Nullable(Type.Unsafe<object>({ type: 'object', description: 'The answer that it carries.' })),
  permit_expires_at: Nullable(
    Time('The expiry that it sets for the approval; of several, the earliest counts.'),
  ),
  uses: Type.Integer({ description: 'The uses that it allows; of several, the lowest counts.' }),
  at: Time('When it was cast.'),
})

export const listVotes = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id/votes',
  tag,
  summary: 'List the votes on a checkpoint, by voter',
  description:
    'A checkpoint has votes when it has an answer_schema, approvers or an effect, or needs several votes. An approval key sees the votes on what it may decide.',
  sdk: { name: 'checkpoints.votes' },
  cli: {
    usage: 'checkpoint votes <id>',
    columns: ['voter', 'voter_label', 'decision', 'counts', 'edited', 'reason', 'at'],
  },
  auth: ['agent', 'admin', 'approval'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(Vote) } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { db, caller } = context
    await checkpoints.readAs(db, caller, params.id)
    const request = pageRequest(context, query)
    const after_voter = String(request.after?.[0] ?? '')
    const rows = await store.list(db, caller.tenant_id, params.id, { ...request, after_voter })
    return pageOf(context, request, { rows, itemOf: voteOf, positionOf: ({ voter }) => [voter] })
  },
})

function voteOf(row: store.Vote) {
  return {
    voter: row.voter,
    voter_label: row.voter_label,
    decision: row.decision,
    counts: row.counts === 1,
    edited: row.edited === 1,
    payload_hash: row.effective_hash,
    reason: row.reason,
    answer: rawOrNull(row.answer),
    permit_expires_at: isoOrNull(row.permit_expires_at),
    uses: row.uses,
    at: iso(row.at),
  }
}
