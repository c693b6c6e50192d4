// POST /v1/effects: the claim of an effect.

import { type Static, Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { parseTime } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { v1 } from '../contract/group.ts'
import { Reply, route } from '../contract/route.ts'
import {
  AnyJson,
  kib,
  label_characters_max,
  partNamed,
  Text,
  Time,
  Url,
  value_bytes_max,
} from '../contract/schemas.ts'
import { WorkflowId, workflowOf } from '../contract/workflow.ts'
import type { Db } from '../db/db.ts'
import { requireReleased } from '../quarantine/service.ts'
import type { Approval } from './approval-service.ts'
import * as claims from './claim-service.ts'
import { key_characters_max, leaseMs, note_characters_max, unknown_actions } from './effect.ts'
import { ClaimedEffect, claimedOf, EffectType, LeaseSeconds, OwnLeaseToken, tag } from './shapes.ts'

const prompt_bytes_max = limit(
  'effects.prompt_bytes',
  32 * kib,
  'bytes',
  'The prompt of the approval of an effect. Past it 413.',
)

const { answer_schema: _, ...steering } = checkpoints.steering_fields
const ApprovalBody = Type.Object(
  {
    title: Type.Optional(Text(label_characters_max, 'The question.', { minLength: 1 })),
    checkpoint_id: Type.Optional(
      Type.String({
        description:
          'Instead of a title: the approval of another effect of the same type and bytes, which has a use left.',
      }),
    ),
    prompt: Type.Optional(
      Type.String({ 'x-bytes-max': prompt_bytes_max, description: 'At most 32 KiB of plain text.' }),
    ),
    callback_url: Type.Optional(Url('Where the decision is sent; default nowhere: the agent waits for it.')),
    timeout_action: Type.Optional(
      Type.Enum([...checkpoints.timeout_actions], { description: 'auto_reject, the default, or dlq.' }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({ minimum: checkpoints.timeout_seconds_min, maximum: checkpoints.timeout_seconds_max }),
    ),
    expires_at: Type.Optional(
      Time('With timeout_seconds, the earlier one counts; without either, 24 hours from now.'),
    ),
    editable: Type.Optional(
      Type.Boolean({ description: 'An approver may change the payload; default false.' }),
    ),
    answer_schema: Type.Optional(
      Type.Unsafe<object>({
        ...{ type: 'object', 'x-bytes-max': checkpoints.answer_schema_bytes_max },
        description: 'A flat JSON Schema of the answer that the approval must carry, at most 16 KiB.',
        examples: [{ type: 'object', properties: { reason: { type: 'string' } } }],
      }),
    ),
    ...steering,
  },
  {
    ...partNamed('EffectApprovalRequest', {
      of: 'CheckpointRequest',
      about: 'Asks a person first, who sees exactly these bytes.',
    }),
    examples: [{ title: 'Refund 30 EUR?' }],
  },
)

export const claimEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects',
  tag,
  summary: 'Claim the right to do something once',
  description:
    'The pair of type and key is unique; the payload is bound to it byte for byte. 201: you have the lease. 202: it waits for its approval. 200: it is approved, or it has ended, with its result. A repeat returns its current state.',
  sdk: {
    name: 'effects.claim',
    retry: { safe: { with: 'lease_token' }, why: 'with a token of your own a repeat gets the same lease' },
  },
  cli: {
    usage: 'effect claim <type> <key> [payload]',
    about: 'Claim the right to do something once',
    group: 'Effects: actions that happen at most once',
    examples: [`waystation effect claim refund order-7 '{"amount": 30}' --lease 2m`],
    options: {
      note: ['--note <text>', 'for people; not bound to the effect'],
      lease_seconds: ['--lease <duration>', 'how long the lease holds; default 1m'],
      lease_token: ['--token <text>', 'random text of your own for the lease'],
      on_unknown: ['--on-unknown <action>', 'when the lease runs out: hold, ask or retry'],
      approval: false,
      workflow_id: ['--workflow <id>', 'ties it to what belongs to the same work'],
    },
  },
  auth: ['agent'],
  body: Type.Object({
    type: EffectType,
    key: Text(key_characters_max, 'Makes it unique within its type, such as an order number.', {
      minLength: 1,
    }),
    payload: AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB: exactly what is done.'),
    note: Type.Optional(Text(note_characters_max, 'For people; not bound to the effect.')),
    lease_seconds: LeaseSeconds,
    lease_token: OwnLeaseToken,
    on_unknown: Type.Optional(
      Type.Enum([...unknown_actions], {
        description:
          'When the lease runs out: hold (default) waits for an admin; ask opens a checkpoint; retry frees it, for idempotent work.',
      }),
    ),
    approval: Type.Optional(ApprovalBody),
    workflow_id: Type.Optional(WorkflowId),
  }),
  replies: {
    200: { body: ClaimedEffect, description: 'It is approved, or it has ended.' },
    201: { body: ClaimedEffect, description: 'You have the lease.' },
    202: { body: ClaimedEffect, description: 'It waits for its approval.' },
  },
  status: 201,
  emits: [
    ...(['effect.claimed', 'effect.proposed', 'effect.started', 'effect.rejected'] as const),
    ...(['effect.unknown', 'checkpoint.created'] as const),
  ],
  errors: [
    ...(['EFFECT_IN_FLIGHT', 'EFFECT_UNKNOWN', 'EFFECT_NOT_HELD'] as const),
    ...(['EFFECT_KEY_REUSED', 'EFFECT_REJECTED'] as const),
    ...(['EFFECT_APPROVAL_REQUIRED', 'EFFECT_APPROVERS_GONE'] as const),
    ...(['QUOTA_EXCEEDED', 'INVALID_STATE', 'CHECKPOINT_NOT_FOUND'] as const),
    'QUARANTINED',
  ],
  async handle({ db, caller, dependencies }, { body }) {
    requireReleased(dependencies.service.quarantine)
    const { type, key, payload, note = null, on_unknown = 'hold', lease_token = null } = body
    const claim = {
      ...{ type, key, payload: payload.text, note, on_unknown, lease_token },
      lease_ms: leaseMs(body.lease_seconds),
      workflow_id: workflowOf(body.workflow_id, caller),
      under_checkpoint_id: body.approval?.checkpoint_id ?? null,
    }
    const title = titleOf(body.approval)
    const find = title === null ? null : () => approvalOf(db, dependencies, caller, title, body.approval!)
    const claimed = await claims.claim(db, caller, dependencies, claim, find)
    return new Reply(claimed.status, claimedOf(claimed, dependencies.urls))
  },
})

type GivenApproval = Static<typeof ApprovalBody>

/** Null without an approval, and for one that exists. Throws VALIDATION_FAILED unless it has one of the two. */
function titleOf(given: GivenApproval | undefined): string | null {
  if (given === undefined) return null
  const { title, checkpoint_id } = given
  if ((title === undefined) === (checkpoint_id === undefined))
    throw invalid({
      path: '/approval/title',
      message:
        title === undefined ? 'or /approval/checkpoint_id is required' : 'cannot be given with checkpoint_id',
    })
  return title ?? null
}

async function approvalOf(
  db: Db,
  dependencies: Dependencies,
  caller: AgentCaller,
  title: string,
  given: GivenApproval,
): Promise<Approval> {
  const { title: _, checkpoint_id: __, prompt = null, callback_url, ...rest } = given
  const { timeout_action = 'auto_reject', timeout_seconds, expires_at, editable = false, ...steering } = rest
  return {
    ...{ title, prompt, timeout_action, timeout_seconds, editable, steering },
    expires_at: expires_at === undefined ? undefined : parseTime(expires_at)!,
    callback_url:
      callback_url === undefined
        ? checkpoints.no_callback
        : await agents.callbackUrl(db, dependencies, caller, callback_url, '/approval/callback_url'),
  }
}
