// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull, second_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Urls } from '../contract/dependencies.ts'
import type { Context } from '../contract/route.ts'
import { idParam, Json, Nullable, RawJson, Shape, Time } from '../contract/schemas.ts'
import { waitFor } from '../contract/wait.ts'
import { ShownWorkflowId } from '../contract/workflow.ts'
import {
  approvalUrl,
  type CheckpointRow,
  callback_statuses,
  callbackUrlOf,
  statuses,
  timeout_actions,
  wait_seconds_max,
  waitKey,
} from './checkpoint.ts'

export const tag = 'Checkpoints'
export const id = idParam('The checkpoint, chk_….')
export const Checkpoint = Shape('Checkpoint', {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  title: Type.String(),
  prompt: Nullable(Type.String()),
  approval_url: Type.String({
    description: 'A page for a person to decide it, who needs an approval key: this address has none.',
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
  callback: Shape('CheckpointCallback', {
    status: Type.Enum([...callback_statuses]),
    attempts: Type.Integer(),
    last_error: Nullable(Type.String()),
    redrive_of: Nullable(Type.String({ description: 'The dead letter for which it was sent again.' })),
    dead_letter_id: Nullable(
      Type.String({ description: 'The dead letter that its last failure left; it may have been removed.' }),
    ),
  }),
  effect_id: Nullable(Type.String({ description: 'The [effect](effects.md) that it is about.' })),
  payload: Json('The exact text of the effect that it approves, or null.'),
  payload_hash: Nullable(Type.String({ description: 'The SHA-256 of these bytes, in hex.' })),
  created_at: Time('When it was created.'),
  updated_at: Time('When it last changed.'),
})

export const Approval = Shape('Approval', {
  checkpoint_id: Type.String(),
  title: Type.String(),
  prompt: Nullable(Type.String()),
  payload: Json('The callback_payload, the exact text that was sent, or null.'),
  effect_id: Nullable(Type.String({ description: 'The [effect](effects.md) that it is about.' })),
  effect_payload: Json('The exact text of the effect that it approves, or null.'),
  payload_hash: Nullable(Type.String({ description: 'The SHA-256 of these bytes, in hex.' })),
  agent: Shape({
    agent_id: Type.String({ description: 'The agent that asks.' }),
    name: Type.String(),
  }),
  status: Type.Enum([...statuses]),
  created_at: Time('When it was created.'),
  expires_at: Time('When the timeout is due.'),
  reason: Nullable(Type.String()),
  resolved_by: Nullable(Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })),
  resolved_at: Nullable(Time('When it was settled.')),
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
    callback_payload: row.callback_payload === null ? null : new RawJson(row.callback_payload),
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
    effect_id: row.effect_id,
    payload: rawOrNull(row.payload),
    payload_hash: row.payload === null ? null : hashOf(row.payload),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

function rawOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text)
}

export function approvalOf(row: CheckpointRow) {
  return {
    checkpoint_id: row.id,
    title: row.title,
    prompt: row.prompt,
    payload: row.callback_payload === null ? null : new RawJson(row.callback_payload),
    effect_id: row.effect_id,
    effect_payload: rawOrNull(row.payload),
    payload_hash: row.payload === null ? null : hashOf(row.payload),
    agent: { agent_id: row.agent_id, name: row.agent_id },
    status: row.status,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    reason: row.reason,
    resolved_by: row.resolved_by,
    resolved_at: isoOrNull(row.resolved_at),
  }
}
