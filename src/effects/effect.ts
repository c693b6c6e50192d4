// An effect: its statuses and moves. No imports from db or http.

import { type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export const statuses = [
  'awaiting_approval',
  'approved',
  'ready',
  'running',
  'unknown',
  'succeeded',
  'failed',
  'rejected',
] as const
export type EffectStatus = (typeof statuses)[number]

/** When a lease ends unsettled: the effect waits for an admin, a person is asked, or it is free again. */
export const unknown_actions = ['hold', 'ask', 'retry'] as const
export type OnUnknown = (typeof unknown_actions)[number]

export const outcomes = ['succeeded', 'failed', 'retry'] as const
export type Outcome = (typeof outcomes)[number]

/** The outcomes of an approval that end its effect. */
export const refusals = ['rejected', 'expired', 'cancelled'] as const

/**
 * The machine. A POST that makes an effect leaves it `running`, or `awaiting_approval`. Where a move leads back to a start, an
 * effect with a permit is `approved` and another is `ready`.
 */
export const moves = {
  approve: { from: ['awaiting_approval'], to: 'approved' },
  /** Its approval was rejected, has expired or was cancelled. */
  refuse: { from: ['awaiting_approval'], to: 'rejected' },
  /** A permit past its `expires_at`, found by a start. */
  expire_permit: { from: ['approved'], to: 'rejected' },
  /** The same while the last lease, which ran out, was not reported: it may have happened, and must not be done again. */
  expire_permit_unreported: { from: ['approved'], to: 'unknown' },
  /** A repeat with an approval, or under a policy that requires one. */
  propose: { from: ['ready'], to: 'awaiting_approval' },
  start: { from: ['approved', 'ready'], to: 'running' },
  extend: { from: ['running'], to: 'running' },
  /** With the last lease's token, also after that lease has run out; so are both failures. */
  succeed: { from: ['running', 'unknown', 'ready', 'approved'], to: 'succeeded' },
  fail: { from: ['running', 'unknown', 'ready', 'approved'], to: 'failed' },
  fail_retry: { from: ['running', 'unknown', 'ready'], to: 'ready' },
  fail_retry_with_permit: { from: ['running', 'unknown', 'approved'], to: 'approved' },
  run_out: { from: ['running'], to: 'unknown' },
  run_out_retry: { from: ['running'], to: 'ready' },
  run_out_retry_with_permit: { from: ['running'], to: 'approved' },
  resolve_succeeded: { from: ['unknown', 'ready', 'approved'], to: 'succeeded' },
  resolve_failed: { from: ['unknown', 'ready', 'approved'], to: 'failed' },
  resolve_retry: { from: ['unknown'], to: 'ready' },
  resolve_retry_with_permit: { from: ['unknown'], to: 'approved' },
} as const satisfies Record<string, { from: readonly EffectStatus[]; to: EffectStatus }>

export const lease_seconds_default = 60
export const lease_seconds_max = limit(
  'effects.lease',
  3_600,
  'seconds',
  'The longest lease of an effect; longer work extends it. Past it 400.',
)
export const key_characters_max = limit(
  'effects.key',
  256,
  'characters',
  'The `key` of an effect. Past it 400.',
)
export const note_characters_max = limit(
  'effects.note',
  4_096,
  'characters',
  'The `note` of an effect, and the `error` of one that failed. Past it 400.',
)
export const wait_seconds_max = limit(
  'effects.wait',
  55,
  'seconds',
  'How long a request may wait for an effect. A larger `wait` is 400.',
)

export const type_form = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

export interface EffectRow {
  id: string
  status: EffectStatus
  type: string
  key: string
  agent_id: string
  workflow_id: string | null
  on_unknown: OnUnknown
  lease_ms: Millis
  /** The longest lease that a policy allowed when it was claimed; null: any. */
  lease_ms_max: Millis | null
  /** SHA-256 of the payload's bytes, in hex. It stays when the payload is removed. */
  payload_hash: string
  /** Of the bytes that an approver has put in their place; null: none. */
  effective_hash: string | null
  /** The approval; null: it needs none. */
  checkpoint_id: string | null
  permit_expires_at: Millis | null
  /** 1: its approval was revoked, and is over, whatever time it is by another node or a clock that was set back. */
  revoked: number
  /** The outcome of the approval that ended it. */
  refused_as: (typeof refusals)[number] | null
  /** The checkpoint that asks what became of it; null: none is open. */
  question_id: string | null
  /** Grows with every lease. */
  fence: number
  lease_token_hash: string | null
  /** In the past for a lease that ran out; null: there is none, or it was settled. */
  lease_until: Millis | null
  /** The agent that has, or had, the last lease. */
  held_by: string | null
  resolved_by: string | null
  finished_at: Millis | null
  created_at: Millis
  updated_at: Millis
  note: string | null
  error: string | null
}

/** With the JSON texts that retention removes. */
export interface WholeEffect extends EffectRow {
  payload: string | null
  effective_payload: string | null
  result: string | null
}

/** The hash of the bytes that a start is for. */
export function boundHash({
  effective_hash,
  payload_hash,
}: Pick<EffectRow, 'effective_hash' | 'payload_hash'>) {
  return effective_hash ?? payload_hash
}

/** True for the bytes that were proposed, and for those that an approver has put in their place. */
export function isSamePayload(
  row: Pick<EffectRow, 'effective_hash' | 'payload_hash'>,
  hash: string,
): boolean {
  return hash === row.payload_hash || hash === row.effective_hash
}

/** Whole seconds until the lease ends, one at least. */
export function secondsLeft({ lease_until }: Pick<EffectRow, 'lease_until'>, now: Millis): number {
  return Math.max(1, Math.ceil(((lease_until ?? now) - now) / second_ms))
}

/** 0 when none was given. */
export function leaseMs(lease_seconds: number | undefined): Millis {
  return (lease_seconds ?? 0) * second_ms
}
