// Approvals: a checkpoint is read and decided, with an admin key or an approval key.

import { type Static, Type } from 'typebox'
import type { ErrorCode } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { AnyJson, AnyJsonObject, sharing, Text, Time, value_bytes_max } from '../contract/schemas.ts'
import * as tenants from '../tenants/service.ts'
import * as checkpoints from './service.ts'
import { Approval, approvalOf, Checkpoint, checkpointOf, id, readWhenSettled, tag, Wait } from './shapes.ts'
import { answer_bytes_max, uses_max } from './steering-fields.ts'
import * as votes from './vote-store.ts'

const example = 'chk_01m7yjrz37hxnv52px0106nehd'
const reason_characters_max = limit(
  'checkpoints.reason',
  4_096,
  'characters',
  'The reason of a decision. Past it 400.',
)

const reason = Type.Optional(Text(reason_characters_max, 'Sent to the agent.'))
const RejectBody = Type.Object({ reason }, sharing('DecisionRequest', 'A decision, with what it allows.'))
const ApproveBody = Type.Object(
  {
    reason,
    answer: Type.Optional(AnyJsonObject(answer_bytes_max, 'Fits the `answer_schema` of the checkpoint.')),
    effective_payload: Type.Optional(
      AnyJson(
        value_bytes_max,
        'The payload of the effect as it is approved, where it is `editable`. Default: as it is now. Not null, unless null was proposed.',
      ),
    ),
    expected_hash: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description:
          'For an effect: the hash of the payload that the approver saw, `edited_payload_hash`, or `payload_hash` where nobody had changed it. 409 when the payload is now a different one.',
      }),
    ),
    expires_at: Type.Optional(
      Time('For an effect: until when it may start under the approval. Default: no limit.'),
    ),
    uses: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: uses_max,
        description: 'For an effect: how many with the same bytes may start under the approval; default 1.',
      }),
    ),
  },
  sharing('DecisionRequest', 'A decision, with what it allows.'),
)

export const getApproval = route({
  group: v1,
  method: 'GET',
  path: '/v1/approvals/:checkpoint_id',
  tag,
  summary: 'Read a checkpoint with an approval key, or wait until it is settled',
  description: 'With `wait`, the answer comes when the checkpoint is settled, or after that many seconds.',
  sdk: { name: 'approvals.get' },
  cli: { usage: 'approval <checkpoint_id>', about: 'Show what is to be decided, with an approval key' },
  auth: ['approval'],
  params: { checkpoint_id: id },
  query: Type.Object({ wait: Wait }),
  replies: { 200: { body: Approval } },
  shed: 'last',
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const look = () => checkpoints.readFor(context.db, context.caller, params.checkpoint_id)
    const row = await readWhenSettled(context, params.checkpoint_id, query.wait, look)
    const { tenant_id, approval_key_id } = context.caller
    const vote = row.steered === 1 ? await votes.find(context.db, tenant_id, row.id, approval_key_id) : null
    // The tenant may have been frozen or resumed while this waited.
    const facts = query.wait ? await context.requireStillAllowed() : context.caller
    const { frozen_at = null, frozen_again_at = null } = facts
    const reader = { ...context.caller, frozen_at: tenants.frozenSince({ frozen_at, frozen_again_at }) }
    return approvalOf(row, reader, vote?.counts === 1 ? vote.decision : null)
  },
})

const approve_options = {
  effective_payload: ['--payload <json>', 'the payload as it is approved, instead of as proposed', 'json'],
  expected_hash: ['--expected-hash <hex>', 'refuse if somebody has changed the payload since'],
  expires_at: ['--until <time>', 'until when the effect may start, RFC 3339'],
  uses: ['--uses <n>', 'effects that may start under it; default 1'],
} as const

export const approveCheckpoint = decision({
  ...{ verb: 'approve', title: 'Approve', status: 'approved', body: ApproveBody },
  description:
    'Needs the admin key or an approval key. Where more approvals are required, the checkpoint stays `pending`.',
  errors: ['VOTE_DIFFERS', 'ANSWER_INVALID', 'NOT_EDITABLE'],
})
export const rejectCheckpoint = decision({
  ...{ verb: 'reject', title: 'Reject', status: 'rejected', body: RejectBody },
  description:
    'Needs the admin key or an approval key. Where more rejections are required, the checkpoint stays `pending`.',
  errors: [],
})

interface Deciding {
  verb: 'approve' | 'reject'
  title: string
  status: 'approved' | 'rejected'
  description: string
  body: typeof ApproveBody | typeof RejectBody
  errors: readonly ErrorCode[]
}

function decision({ verb, title, status, description, body, errors }: Deciding) {
  const once = `a checkpoint that is ${status} stays so, and a key has one vote`
  return route({
    group: v1,
    method: 'POST',
    path: `/v1/checkpoints/:id/${verb}`,
    tag,
    summary: `${title}; the agent is called back`,
    description,
    sdk: {
      name: `checkpoints.${verb}`,
      retry: {
        ...(verb === 'approve'
          ? {
              safe: { without: ['effective_payload'] },
              why: `${once}; an edit would void the votes after it`,
            }
          : { safe: true, why: once }),
        done: [
          { code: 'CHECKPOINT_ALREADY_RESOLVED', status, read: 'getCheckpoint' },
          { code: 'ALREADY_VOTED', decision: status, read: 'getCheckpoint' },
        ],
      },
    },
    cli: {
      usage: verb === 'approve' ? 'approve <id> [answer]' : 'reject <id>',
      ...(verb === 'approve' && { options: approve_options }),
      about: `${title} a checkpoint, with an admin or approval key`,
      examples: [`waystation ${verb} ${example} --reason "seen by Kim"`],
    },
    auth: ['admin', 'approval'],
    params: { id },
    body,
    replies: { 200: { body: Checkpoint } },
    shed: 'last',
    emits: [
      ...[`checkpoint.${status}`, 'checkpoint.voted', 'approval_key.used'],
      ...(status === 'rejected' ? ['dlq.created'] : []),
    ],
    errors: [
      ...([
        'CHECKPOINT_NOT_FOUND',
        'CHECKPOINT_ALREADY_RESOLVED',
        'ALREADY_VOTED',
        'NOT_AN_APPROVER',
      ] as const),
      ...errors,
    ],
    async handle({ db, caller, dependencies }, input) {
      const decided = { reason: null, ...(input.body as Static<typeof ApproveBody>), status }
      return checkpointOf(
        await checkpoints.decide(db, caller, dependencies, input.params.id, decided),
        dependencies,
      )
    },
  })
}
