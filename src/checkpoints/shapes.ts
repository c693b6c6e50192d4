// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull, second_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'
import type { ApprovalCaller, TenantFacts } from '../contract/caller.ts'
import type { Urls } from '../contract/dependencies.ts'
import type { Context } from '../contract/route.ts'
import { idParam, Json, Nullable, Part, rawOrNull, Shape, Time } from '../contract/schemas.ts'
import { waitFor, waitKey } from '../contract/wait.ts'
import { ShownWorkflowId } from '../contract/workflow.ts'
import {
  approvalUrl,
  type CheckpointRow,
  callback_statuses,
  callbackUrlOf,
  statuses,
  timeout_actions,
  wait_seconds_max,
} from './checkpoint.ts'
import { approversOf, isApprover, type ShownEffect, stepsOf } from './steering.ts'

export const tag = 'Checkpoints'
export const id = idParam('The checkpoint, chk_….')
const EffectId = Nullable(Type.String({ description: 'The effect that it was asked for.' }))
const AboutEffect = Nullable(
  Shape('AboutEffect', 'The effect that a checkpoint decides.', {
    type: Type.String({ description: 'The type of that effect.' }),
    key: Type.String({ description: 'Its key.' }),
    note: Nullable(Type.String({ description: 'The note of its agent, for people.' })),
  }),
)
/** The payload may be null itself, and a question about an effect has none. */
const PayloadHash = Nullable(
  Type.String({
    description:
      'The SHA-256 of the bytes of this payload as it was proposed, in hex; null without one, and once it was removed.',
  }),
)
const EditedHash = Nullable(
  Type.String({
    description:
      'The SHA-256 of the bytes of `edited_payload`, in hex; null without one. An edit may name it in `expected_hash`.',
  }),
)
const Approvers = Nullable(
  Type.Array(Type.String(), {
    description: 'Ids of approval keys, or admin; null: anybody with a key for it.',
  }),
)
/** Members that steer a decision, and its result. */
const steered = {
  answer_schema: Nullable(
    Type.Unsafe<object>({
      type: 'object',
      description: 'The JSON Schema of the answer; null: none is asked for.',
    }),
  ),
  answer: Nullable(
    Type.Unsafe<object>({ type: 'object', description: 'The answer of the approval; it fits the schema.' }),
  ),
  required_approvals: Type.Integer({ description: 'Approvals that it needs.' }),
  required_rejections: Type.Integer({ description: 'Rejections that it needs.' }),
  approvals: Type.Integer({ description: 'Approvals so far.' }),
  rejections: Type.Integer({ description: 'Rejections so far.' }),
  approvers: Approvers,
  escalate: Nullable(
    Type.Array(
      Shape('Escalation', 'A step of an escalation: who else may decide, and after how many seconds.', {
        after_seconds: Type.Integer(),
        approvers: Approvers,
      }),
      {
        description: 'Who else may decide, and after how many seconds.',
      },
    ),
  ),
  escalated: Type.Integer({ description: 'Steps of `escalate` taken so far.' }),
  comments: Type.Integer({ description: 'How many comments there are.' }),
  editable: Type.Boolean({ description: 'An approver may change the payload of the effect.' }),
  edited_payload: Json('The payload that the votes so far are for, when an approver changed it; else null.'),
  edited_payload_hash: EditedHash,
  effective_payload: Json('The payload as it was approved, when an approver changed it; else null.'),
  permit_expires_at: Nullable(Time('Until when the effect may start under the approval; null: no limit.')),
  uses: Type.Integer({ description: 'How many effects may start under the approval.' }),
  uses_left: Type.Integer({
    description: 'How many of these are left, including the effect that it was asked for.',
  }),
}

export const Checkpoint = Shape(
  'Checkpoint',
  'A question to people: what is asked, who may decide, and the decision.',
  {
    id: Type.String(),
    status: Type.Enum([...statuses]),
    title: Type.String(),
    prompt: Nullable(Type.String()),
    approval_url: Type.String({
      description: 'A page where a person with an approval key decides it; the URL itself holds no key.',
    }),
    callback_url: Nullable(Type.String({ description: 'Null: the decision is sent nowhere.' })),
    callback_payload: Json('The exact text that was sent, or null.'),
    timeout_action: Type.Enum([...timeout_actions]),
    expires_at: Time('When the timeout is due.'),
    agent_id: Type.String(),
    workflow_id: ShownWorkflowId,
    reason: Nullable(Type.String()),
    resolved_by: Nullable(Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })),
    resolved_at: Nullable(Time('When it was settled.')),
    callback: Shape('CheckpointCallback', 'The state of the delivery of the decision.', {
      status: Type.Enum([...callback_statuses]),
      attempts: Type.Integer(),
      last_error: Nullable(Type.String()),
      redrive_of: Nullable(Type.String({ description: 'The dead letter for which it was sent again.' })),
      dead_letter_id: Nullable(
        Type.String({ description: 'The dead letter that its last failure left; it may have been removed.' }),
      ),
    }),
    created_at: Time('When it was created.'),
    updated_at: Time('When it last changed.'),
    ...steered,
    effect_id: EffectId,
    effect: AboutEffect,
    payload: Json('The payload of the effect, the exact text; null without one.'),
    payload_hash: PayloadHash,
  },
)

export const Approval = Shape('Approval', 'A checkpoint as an approval key sees it.', {
  checkpoint_id: Type.String(),
  title: Type.String(),
  prompt: Nullable(Type.String()),
  payload: Json('The callback_payload, the exact text that was sent, or null.'),
  agent: Part('ApprovalAgent', 'The agent that asks.', {
    agent_id: Type.String({ description: 'The agent that asks.' }),
    name: Type.String(),
  }),
  status: Type.Enum([...statuses]),
  created_at: Time('When it was created.'),
  expires_at: Time('When the timeout is due.'),
  reason: Nullable(Type.String()),
  resolved_by: Nullable(Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })),
  resolved_at: Nullable(Time('When it was settled.')),
  ...steered,
  effect_id: EffectId,
  effect: AboutEffect,
  effect_payload: Json('The payload of the effect, the exact text; null without one.'),
  effect_payload_hash: PayloadHash,
  may_decide: Type.Boolean({ description: 'This key is an approver.' }),
  voted: Nullable(
    Type.Enum(['approved', 'rejected'], { description: 'The vote of this key, where votes are counted.' }),
  ),
  frozen_at: Nullable(
    Time('When the tenant was frozen: a resume moves `expires_at` by the frozen time. Null while it is not.'),
  ),
})

export const Wait = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: wait_seconds_max,
    description: 'Seconds to hold the request while the checkpoint is pending.',
  }),
)

export function readWhenSettled(
  context: Context<TenantFacts>,
  id: string,
  wait_seconds: number | undefined,
  look: () => Promise<CheckpointRow>,
): Promise<CheckpointRow> {
  const key = waitKey(context.caller.tenant_id, id)
  const wait_ms = (wait_seconds ?? 0) * second_ms
  return waitFor(context, { key, wait_ms, look, isDone: ({ status }) => status !== 'pending' })
}

export function checkpointOf(row: CheckpointRow, { urls }: { urls: Pick<Urls, 'public_url'> }) {
  return {
    id: row.id,
    status: row.status,
    title: row.title,
    prompt: row.prompt,
    approval_url: approvalUrl(urls.public_url(), row.id),
    callback_url: callbackUrlOf(row),
    callback_payload: rawOrNull(row.callback_payload),
    timeout_action: row.timeout_action,
    expires_at: iso(row.expires_at),
    agent_id: row.agent_id,
    workflow_id: row.workflow_id,
    reason: row.reason,
    resolved_by: row.resolved_by,
    resolved_at: isoOrNull(row.resolved_at),
    callback: {
      status: row.callback_status,
      attempts: row.callback_attempts,
      last_error: row.callback_last_error,
      redrive_of: row.callback_redrive_of,
      dead_letter_id: row.callback_dead_letter_id,
    },
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    ...steeredOf(row),
    effect_id: row.effect_id,
    effect: effectOf(row),
    payload: rawOrNull(row.payload),
    payload_hash: hashOrNull(row.payload),
  }
}

function steeredOf(row: CheckpointRow) {
  return {
    answer_schema: rawOrNull(row.answer_schema),
    answer: rawOrNull(row.answer),
    required_approvals: row.required_approvals,
    required_rejections: row.required_rejections,
    approvals: row.approvals,
    rejections: row.rejections,
    approvers: approversOf(row),
    escalate: row.escalate === null ? null : stepsOf(row).map((step) => ({ approvers: null, ...step })),
    escalated: row.escalated,
    comments: row.comments,
    editable: row.editable === 1,
    edited_payload: rawOrNull(row.edited_payload),
    edited_payload_hash: hashOrNull(row.edited_payload),
    effective_payload: rawOrNull(row.effective_payload),
    permit_expires_at: isoOrNull(row.permit_expires_at),
    uses: row.uses,
    uses_left: row.uses_left,
  }
}

export function approvalOf(
  row: CheckpointRow,
  { approval_key_id: voter, frozen_at = null }: ApprovalCaller,
  voted: 'approved' | 'rejected' | null,
) {
  return {
    checkpoint_id: row.id,
    title: row.title,
    prompt: row.prompt,
    payload: rawOrNull(row.callback_payload),
    agent: { agent_id: row.agent_id, name: row.agent_id },
    status: row.status,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    reason: row.reason,
    resolved_by: row.resolved_by,
    resolved_at: isoOrNull(row.resolved_at),
    ...steeredOf(row),
    effect_id: row.effect_id,
    effect: effectOf(row),
    effect_payload: rawOrNull(row.payload),
    effect_payload_hash: hashOrNull(row.payload),
    may_decide: isApprover(row, voter),
    voted,
    frozen_at: isoOrNull(frozen_at),
  }
}

function hashOrNull(text: string | null): string | null {
  return text === null ? null : hashOf(text)
}

function effectOf({ effect }: CheckpointRow): ShownEffect | null {
  return effect === null ? null : JSON.parse(effect)
}
