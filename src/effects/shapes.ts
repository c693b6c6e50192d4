// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull, second_ms } from '../base/clock.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { Urls } from '../contract/dependencies.ts'
import {
  AnyJson,
  idParam,
  Json,
  Nullable,
  rawOrNull,
  Shape,
  sharing,
  Time,
  value_bytes_max,
} from '../contract/schemas.ts'
import { ShownWorkflowId } from '../contract/workflow.ts'
import {
  type EffectRow,
  lease_seconds_max,
  refusals,
  statuses,
  type_form,
  unknown_actions,
  type WholeEffect,
} from './effect.ts'
import type { Claimed } from './new-service.ts'

export const tag = 'Effects'
/** Bodies of calls about a lease, and of its result. */
export const effect_report = sharing('EffectReport', 'A report of what became of an effect.')
export const id = idParam('The effect, eff_….')

export const LeaseSeconds = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: lease_seconds_max,
    description: 'How long the lease holds; default that of the previous one, or 60.',
  }),
)
export const LeaseToken = Type.String({
  minLength: 16,
  maxLength: 64,
  pattern: '^[A-Za-z0-9_-]{16,64}$',
  description: 'The token of the lease.',
})
export const OwnLeaseToken = Type.Optional(
  Type.String({
    pattern: '^[A-Za-z0-9_-]{16,64}$',
    description: 'Random text of your own, so that a repeat after a lost answer gets the same lease.',
  }),
)
export const Result = Type.Optional(
  AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB; returned to every repeat.'),
)

const listed_fields = {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  type: Type.String(),
  key: Type.String(),
  note: Nullable(Type.String()),
  on_unknown: Type.Enum([...unknown_actions]),
  payload_hash: Type.String({ description: 'The SHA-256 of the payload that was proposed, in hex.' }),
  effective_hash: Nullable(
    Type.String({ description: 'The same for the payload that an approver put in its place.' }),
  ),
  checkpoint_id: Nullable(Type.String({ description: 'Its approval; null when it needs none.' })),
  permit_expires_at: Nullable(Time('Until when the approval lets it start.')),
  refused_as: Nullable(
    Type.Enum([...refusals], { description: 'How the approval of a rejected effect ended.' }),
  ),
  question_id: Nullable(
    Type.String({
      description: 'The checkpoint that asks a person what became of it; null when none is open.',
    }),
  ),
  agent_id: Type.String({ description: 'The agent that claimed it.' }),
  held_by: Nullable(Type.String({ description: 'The agent that has, or had, the last lease.' })),
  fence: Type.Integer({ description: 'The number of leases so far: the target may refuse a lower one.' }),
  lease_seconds: Type.Integer({
    description: 'How long the last lease was granted for; the default for the next one.',
  }),
  lease_until: Nullable(Time('When the last lease ends, or ran out; null once it was settled.')),
  error: Nullable(Type.String({ description: 'The error of the last report that it did not happen.' })),
  resolved_by: Nullable(
    Type.String({ description: 'The person who decided what became of it: admin or approval_key:<id>.' }),
  ),
  workflow_id: ShownWorkflowId,
  finished_at: Nullable(Time('When it ended.')),
  created_at: Time('When it was claimed.'),
  updated_at: Time('When it last changed.'),
}
const whole_fields = {
  ...listed_fields,
  payload: Json('The exact text that was sent; null once it was removed.'),
  effective_payload: Json('The exact text that an approver put in its place, or null.'),
  result: Json('The exact text that the holder of the lease reported, or null.'),
}

export const ListedEffect = Shape(
  'ListedEffect',
  { of: 'Effect', about: 'An effect as lists show it: without payload and result.' },
  listed_fields,
)
export const Effect = Shape(
  'Effect',
  'Something that is done at most once: its payload, its approval, its lease and its result.',
  whole_fields,
)

const EffectApproval = Shape('EffectApproval', 'The checkpoint that an effect waits for.', {
  id: Type.String({ description: 'The checkpoint.' }),
  status: Type.String(),
  title: Type.String(),
  approval_url: Type.String({ description: 'A page where a person with an approval key decides it.' }),
  expires_at: Time('When its timeout is due.'),
})
export const ClaimedEffect = Shape(
  'ClaimedEffect',
  {
    of: 'Effect',
    about:
      'An effect as its claim or start answers it, with the token of the lease and the checkpoint that it waits for.',
  },
  {
    ...whole_fields,
    lease_token: Nullable(
      Type.String({ description: 'Shown once, with a lease: send it with extend, succeed and fail.' }),
    ),
    checkpoint: Nullable(
      Type.Unsafe<object>({ ...EffectApproval, description: 'The approval that it waits for, or null.' }),
    ),
  },
)

export function listedOf(row: EffectRow) {
  return {
    id: row.id,
    status: row.status,
    type: row.type,
    key: row.key,
    note: row.note,
    on_unknown: row.on_unknown,
    payload_hash: row.payload_hash,
    effective_hash: row.effective_hash,
    checkpoint_id: row.checkpoint_id,
    permit_expires_at: isoOrNull(row.permit_expires_at),
    refused_as: row.refused_as,
    question_id: row.question_id,
    agent_id: row.agent_id,
    held_by: row.held_by,
    fence: row.fence,
    lease_seconds: row.lease_ms / second_ms,
    lease_until: isoOrNull(row.lease_until),
    error: row.error,
    resolved_by: row.resolved_by,
    workflow_id: row.workflow_id,
    finished_at: isoOrNull(row.finished_at),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

export function effectOf(row: WholeEffect) {
  return {
    ...listedOf(row),
    payload: rawOrNull(row.payload),
    effective_payload: rawOrNull(row.effective_payload),
    result: rawOrNull(row.result),
  }
}

export function claimedOf({ effect, lease_token, checkpoint }: Claimed, urls: Pick<Urls, 'public_url'>) {
  return {
    ...effectOf(effect),
    lease_token,
    checkpoint: checkpoint && {
      id: checkpoint.id,
      status: checkpoint.status,
      title: checkpoint.title,
      approval_url: checkpoints.approvalUrl(urls.public_url(), checkpoint.id),
      expires_at: iso(checkpoint.expires_at),
    },
  }
}

export const EffectType = Type.String({
  pattern: type_form.source,
  description: 'The kind of the effect, such as refund.',
})
