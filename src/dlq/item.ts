// A dead letter: its statuses and moves. No imports from db or http.

import './errors.ts'
import { day_ms, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'

export const statuses = ['failed', 'claimed', 'resolved', 'archived'] as const
export type DlqStatus = (typeof statuses)[number]

export const sources = ['agent', 'schedule', 'checkpoint'] as const

export const moves = {
  claim: { from: ['failed'], to: 'claimed' },
  extend: { from: ['claimed'], to: 'claimed' },
  release: { from: ['claimed'], to: 'failed' },
  fail: { from: ['claimed'], to: 'archived' },
  resolve: { from: ['failed', 'claimed', 'archived', 'resolved'], to: 'resolved' },
  /** By an operation on many. */
  discard: { from: ['failed'], to: 'archived' },
  /** Of an agent's item. One that the service can send again itself is resolved by it. */
  redrive: { from: ['failed', 'archived'], to: 'failed' },
} as const satisfies Record<string, { from: readonly DlqStatus[]; to: DlqStatus }>

export const lock_seconds_default = 300
export const lock_seconds_max = limit(
  'dlq.lock',
  86_400,
  'seconds',
  'How long a claim may lock a dead letter. Past it 400.',
)
/** Resolved and archived items are kept this long. */
export const ended_kept_ms = limit(
  'dlq.ended_kept',
  90 * day_ms,
  'milliseconds',
  'How long resolved and archived dead letters are kept. After that they are removed.',
)

export interface ItemRow {
  id: string
  status: DlqStatus
  /** JSON text. Lists leave it out. */
  payload?: string
  error: string
  cause: string
  workflow_id: string | null
  source: (typeof sources)[number]
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
  locked_by: string | null
  locked_until: Millis | null
  /** SHA-256 of the token that the claim answered. */
  lock_token_hash: string | null
  claims: number
  created_at: Millis
  updated_at: Millis
  resolved_at: Millis | null
  /** The schedule or checkpoint that was sent again for it. */
  redriven_as: string | null
}

/** An item with the token of its lock in clear, which only the holder of the lock can send. */
export interface HeldItem extends ItemRow {
  lock_token: string | null
}

/** The item as it is shown at `now`: an expired lock is not a lock, and the item is failed again. */
export function seenAt(item: ItemRow, now: Millis): ItemRow {
  const expired = item.status === 'claimed' && item.locked_until !== null && item.locked_until <= now
  return expired
    ? { ...item, status: 'failed', locked_by: null, locked_until: null, lock_token_hash: null }
    : item
}

/** True when the item counts against dlq_items. */
export function isOpen(status: DlqStatus): boolean {
  return status === 'failed' || status === 'claimed'
}

/** The reason for which a claim changed no row. */
export function claimRefusal(item: ItemRow | null): ApiError {
  if (!item) return new ApiError('DLQ_NOT_FOUND')
  if (item.status === 'claimed') return new ApiError('ALREADY_CLAIMED')
  return new ApiError('INVALID_STATE', { details: { status: item.status } })
}

/** The reason for which an extend, release, fail or resolve changed no row: not claimed comes before not held. */
export function moveRefusal(item: ItemRow | null, verb: 'extend' | 'release' | 'fail' | 'resolve'): ApiError {
  if (!item) return new ApiError('DLQ_NOT_FOUND')
  const allowed = (moves[verb].from as readonly DlqStatus[]).includes(item.status)
  if (!allowed || (verb === 'resolve' && item.status !== 'claimed')) {
    return new ApiError('INVALID_STATE', { details: { status: item.status } })
  }
  return new ApiError('LOCK_NOT_HELD')
}

/** The reason for which an item is not sent again: of another status than claimed, its source does not allow it. */
export function redriveRefusal(item: ItemRow | null): ApiError {
  if (!item) return new ApiError('DLQ_NOT_FOUND')
  if (item.status === 'claimed') return new ApiError('ALREADY_CLAIMED')
  const { status, redriven_as } = item
  return new ApiError('INVALID_STATE', { details: { status, redriven_as } })
}

/**
 * True when a redrive was refused because somebody else works on the item or has moved it, also to another status than the one
 * that was asked for; false when what it names cannot be sent again.
 */
export function hasMoved({ code, details }: ApiError, asked: DlqStatus | undefined): boolean {
  if (code !== 'INVALID_STATE' || details?.status === 'resolved') return true
  return asked !== undefined && details?.status !== asked
}
