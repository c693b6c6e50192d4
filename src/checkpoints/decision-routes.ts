// Approvals: a checkpoint is read and decided, with an admin key or an approval key.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Text } from '../contract/schemas.ts'
import * as checkpoints from './service.ts'
import { Approval, approvalOf, Checkpoint, checkpointOf, id, settled, tag, Wait } from './shapes.ts'

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
  summary: 'Read what an approval key is to decide, or wait until it is settled',
  description: 'With `wait`, in seconds, the answer comes once it is settled, and by then in any case.',
  sdk: { name: 'approvals.get' },
  cli: { usage: 'approval <checkpoint_id>', about: 'Show what is to be decided, with an approval key' },
  auth: ['approval'],
  params: { checkpoint_id: id },
  query: Type.Object({ wait: Wait }),
  replies: { 200: { body: Approval } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const look = () => checkpoints.readFor(context.db, context.caller, params.checkpoint_id)
    return approvalOf(await settled(context, params.checkpoint_id, query.wait, look))
  },
})

export const approveCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/approve',
  tag,
  summary: 'Approve; the agent is called back',
  description: 'With the admin key or an approval key.',
  sdk: {
    name: 'checkpoints.approve',
    retry: {
      safe: true,
      why: 'approving it again changes nothing',
      done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'approved', read: 'getCheckpoint' },
    },
  },
  cli: {
    usage: 'approve <id>',
    about: 'Approve a checkpoint, with an admin or approval key',
    examples: [`waystation approve ${example} --reason "seen by Kim"`],
  },
  auth: ['admin', 'approval'],
  params: { id },
  body: DecisionBody,
  replies: { 200: { body: Checkpoint } },
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    return checkpointOf(
      await checkpoints.decide(db, caller, dependencies, params.id, 'approved', body.reason ?? null),
    )
  },
})

export const rejectCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/reject',
  tag,
  summary: 'Reject; the agent is called back',
  description: 'With the admin key or an approval key.',
  sdk: {
    name: 'checkpoints.reject',
    retry: {
      safe: true,
      why: 'rejecting it again changes nothing',
      done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'rejected', read: 'getCheckpoint' },
    },
  },
  cli: {
    usage: 'reject <id>',
    about: 'Reject a checkpoint, with an admin or approval key',
    examples: [`waystation reject ${example} --reason "seen by Kim"`],
  },
  auth: ['admin', 'approval'],
  params: { id },
  body: DecisionBody,
  replies: { 200: { body: Checkpoint } },
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    return checkpointOf(
      await checkpoints.decide(db, caller, dependencies, params.id, 'rejected', body.reason ?? null),
    )
  },
})
