// Statements on checkpoints that count votes: what the votes, an escalation and a use of the approval change.

import { sql, type Tx } from '../db/db.ts'
import type { CheckpointRow } from './checkpoint.ts'
import { columns, here } from './store.ts'

const LOCK = sql<CheckpointRow>(
  'checkpoints.lock',
  `update checkpoints set updated_at = updated_at where ${here} and status = 'pending' returning ${columns}`,
)

// The row is locked by the same transaction: its caller has seen every vote that counts.
const COUNT = sql<CheckpointRow>(
  'checkpoints.count_votes',
  `update checkpoints
      set approvals = :approvals, rejections = :rejections, edited_payload = :edited_payload, updated_at = :now
    where ${here} and status = 'pending'
   returning ${columns}`,
)

const SETTLE = sql<CheckpointRow>(
  'checkpoints.settle',
  `update checkpoints
      set status = :status, reason = :reason, resolved_by = :resolved_by, resolved_at = :now,
          callback_status = case when callback_url = '' then 'none' else 'pending' end, updated_at = :now,
          approvals = :approvals, rejections = :rejections, answer = :answer, edited_payload = null,
          effective_payload = :effective_payload, permit_expires_at = :permit_expires_at, uses = :uses,
          uses_left = :uses
    where ${here} and status = 'pending'
   returning ${columns}`,
)

const ESCALATE = sql<CheckpointRow>(
  'checkpoints.escalate',
  `update checkpoints set approvers = :approvers, escalated = escalated + 1, updated_at = :now
    where ${here} and status = 'pending'
   returning ${columns}`,
)

// The last use is that of the effect that it was asked for.
const TAKE_USE = sql<CheckpointRow>(
  'checkpoints.take_use',
  `update checkpoints set uses_left = uses_left - 1
    where ${here} and status = 'approved' and uses_left > 1 and (permit_expires_at is null or permit_expires_at > :now)
   returning ${columns}`,
)

// One that was revoked has no use left, and any other has one: the clock of this node may be behind.
const REVOKE = sql<CheckpointRow>(
  'checkpoints.revoke',
  `update checkpoints set permit_expires_at = :now, uses_left = 0, updated_at = :now
    where ${here} and status = 'approved' and effect_id is not null and uses_left > 0
      and (permit_expires_at is null or permit_expires_at > :now)
   returning ${columns}`,
)

/** Its row, which no other transaction settles before this one ends. Null unless it is pending. */
export function lock(tx: Tx, tenant_id: string, id: string) {
  return tx.one(LOCK, { tenant_id, id })
}

type Counted = Pick<CheckpointRow, 'approvals' | 'rejections' | 'edited_payload'>

export async function count(tx: Tx, tenant_id: string, id: string, counts: Counted) {
  const { approvals, rejections, edited_payload } = counts
  return (await tx.one(COUNT, { tenant_id, id, approvals, rejections, edited_payload, now: tx.now }))!
}

export type Settlement = Pick<
  CheckpointRow,
  'approvals' | 'rejections' | 'reason' | 'answer' | 'effective_payload' | 'permit_expires_at' | 'uses'
> & { status: 'approved' | 'rejected'; resolved_by: string }

export async function settle(tx: Tx, tenant_id: string, id: string, settlement: Settlement) {
  return (await tx.one(SETTLE, { tenant_id, id, ...settlement, now: tx.now }))!
}

/** One step more was made. `approvers`: JSON, null for everybody. */
export function escalate(tx: Tx, tenant_id: string, id: string, approvers: string | null) {
  return tx.one(ESCALATE, { tenant_id, id, approvers, now: tx.now })
}

/** Another effect starts under the approval. Null when it is not approved, is over, or has no use left. */
export function takeUse(tx: Tx, tenant_id: string, id: string) {
  return tx.one(TAKE_USE, { tenant_id, id, now: tx.now })
}

/** The approval of an effect is over from now on. Null when it is none, or is over. */
export function revoke(tx: Tx, tenant_id: string, id: string) {
  return tx.one(REVOKE, { tenant_id, id, now: tx.now })
}
