// A checkpoint: its statuses and moves. No imports from db or http.

import { hour_ms, last_instant_ms, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller, ApprovalCaller } from '../contract/caller.ts'

export const statuses = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const
export type CheckpointStatus = (typeof statuses)[number]

export const timeout_actions = ['auto_reject', 'dlq'] as const
export type TimeoutAction = (typeof timeout_actions)[number]

export const callback_statuses = ['none', 'pending', 'delivered', 'failed'] as const

/** The callback_url of a checkpoint whose decision is sent nowhere. */
export const no_callback = ''

export const moves = {
  approve: { from: ['pending'], to: 'approved' },
  reject: { from: ['pending'], to: 'rejected' },
  cancel: { from: ['pending'], to: 'cancelled' },
  time_out_auto_reject: { from: ['pending'], to: 'rejected' },
  time_out_dlq: { from: ['pending'], to: 'expired' },
} as const satisfies Record<string, { from: readonly CheckpointStatus[]; to: CheckpointStatus }>

export const timeout_seconds_min = limit(
  'checkpoints.timeout_least',
  60,
  'seconds',
  'The shortest timeout of a checkpoint, so that a human has time. Below it 400.',
)
export const timeout_seconds_max = limit(
  'checkpoints.timeout',
  315_360_000,
  'seconds',
  'The longest timeout of a checkpoint. Past it 400.',
)
const timeout_ms_default = 24 * hour_ms
export const wait_seconds_max = limit(
  'checkpoints.wait',
  55,
  'seconds',
  'How long a request may wait for a decision. A larger `wait` is 400.',
)

export interface CheckpointRow {
  id: string
  status: CheckpointStatus
  title: string
  prompt: string | null
  /** `no_callback` for none. */
  callback_url: string
  /** JSON text. */
  callback_payload: string | null
  timeout_action: TimeoutAction
  expires_at: Millis
  agent_id: string
  workflow_id: string | null
  reason: string | null
  resolved_by: string | null
  resolved_at: Millis | null
  callback_status: (typeof callback_statuses)[number]
  callback_attempts: number
  callback_last_error: string | null
  /** The fencing token under which it failed: when it is sent again, its job's tokens are above. */
  callback_fence: number
  /** The dead letter that its last failure left, which may be gone. */
  callback_dead_letter_id: string | null
  /** The dead letter for which it was sent again. */
  callback_redrive_of: string | null
  created_at: Millis
  updated_at: Millis
  /** 1 when votes are counted; 0 for one plain decision, and all fields below are then as they began. */
  steered: number
  /** 1 when an approver may change the payload. */
  editable: number
  required_approvals: number
  required_rejections: number
  /** Votes that count. */
  approvals: number
  rejections: number
  /** Steps of `escalate` that were made. */
  escalated: number
  /** How long its tenant was frozen since it was created: its steps are due later by so much. */
  held_ms: Millis
  comments: number
  /** Effects that may start under the approval, and how many of them have not. */
  uses: number
  uses_left: number
  permit_expires_at: Millis | null
  effect_id: string | null
  /** JSON: its type, key and note, for the person who decides; null without one. */
  effect: string | null
  /** JSON: ids of approval keys, or `admin`; null for everybody. */
  approvers: string | null
  /** JSON. */
  escalate: string | null
  /** JSON. */
  answer_schema: string | null
  /** JSON; null until it is approved. */
  answer: string | null
  /** The exact text of an effect. */
  payload: string | null
  /** The payload that the votes are for, when an approver changed it. */
  edited_payload: string | null
  /** The change that was approved. */
  effective_payload: string | null
}

/** As the API shows it. */
export function callbackUrlOf({ callback_url }: Pick<CheckpointRow, 'callback_url'>): string | null {
  return callback_url === no_callback ? null : callback_url
}

/** The earlier of both when both are given, 24 hours when none is. */
export function expiryOf(
  now: Millis,
  timeout_seconds: number | undefined,
  expires_at: Millis | undefined,
): Millis {
  const by_seconds =
    timeout_seconds === undefined ? null : Math.min(now + timeout_seconds * second_ms, last_instant_ms)
  if (by_seconds !== null && expires_at !== undefined) return Math.min(by_seconds, expires_at)
  return by_seconds ?? expires_at ?? now + timeout_ms_default
}

/** The page on which a person decides it. It asks for an approval key: this address has none, so that an agent may pass it on. */
export function approvalUrl(public_url: string, id: string): string {
  return `${public_url}/approve/${id}`
}

export function resolverOf(caller: AdminCaller | ApprovalCaller): string {
  return caller.kind === 'admin' ? 'admin' : `approval_key:${caller.approval_key_id}`
}

/** True once nothing may start under the approval of an effect, whatever uses it has: its time is over, or it was revoked. */
export function isPermitOver(
  { uses_left, permit_expires_at }: Pick<CheckpointRow, 'uses_left' | 'permit_expires_at'>,
  now: Millis,
): boolean {
  return uses_left === 0 || (permit_expires_at !== null && permit_expires_at <= now)
}
