// Approvals: a checkpoint is read and decided, with an admin key or an approval key.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Text } from '../contract/schemas.ts'
import * as checkpoints from './service.ts'
import { Approval, approvalOf, Checkpoint, checkpointOf, id, readWhenSettled, tag, Wait } from './shapes.ts'

const example = 'chk_01m7yjrz37hxnv52px0106nehd'
const reason_characters_max = limit(
  'checkpoints.reason',
  4_096,
  'characters',
  'The reason of a decision. Past it 400.',
)

const DecisionBody = Type.Object({
  reason: Type.Optional(Text(reason_characters_max, 'Sent to the agent.')),
})

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
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const look = () => checkpoints.readFor(context.db, context.caller, params.checkpoint_id)
    return approvalOf(await readWhenSettled(context, params.checkpoint_id, query.wait, look))
  },
})

export const approveCheckpoint = decision('approve', 'Approve', 'approved')
export const rejectCheckpoint = decision('reject', 'Reject', 'rejected')

function decision(verb: 'approve' | 'reject', title: string, status: 'approved' | 'rejected') {
  return route({
    group: v1,
    method: 'POST',
    path: `/v1/checkpoints/:id/${verb}`,
    tag,
    summary: `${title}; the agent is called back`,
    description: 'With the admin key or an approval key.',
    sdk: {
      name: `checkpoints.${verb}`,
      retry: {
        safe: true,
        why: `a checkpoint that is ${status} stays so`,
        done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status, read: 'getCheckpoint' },
      },
    },
    cli: {
      usage: `${verb} <id>`,
      about: `${title} a checkpoint, with an admin or approval key`,
      examples: [`waystation ${verb} ${example} --reason "seen by Kim"`],
    },
    auth: ['admin', 'approval'],
    params: { id },
    body: DecisionBody,
    replies: { 200: { body: Checkpoint } },
    emits: [`checkpoint.${status}`, 'approval_key.used', ...(status === 'rejected' ? ['dlq.created'] : [])],
    errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
    async handle({ db, caller, dependencies }, { params, body }) {
      const { id } = params
      const { reason = null } = body
      const decided = await checkpoints.decide(db, caller, dependencies, id, status, reason)
      return checkpointOf(decided, dependencies)
    },
  })
}
