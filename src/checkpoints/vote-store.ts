// Every statement on votes, and those that count them in their checkpoint.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import type { CheckpointRow } from './checkpoint.ts'
import { columns, here } from './store.ts'

export interface Vote {
  /** The id of an approval key, or `admin`. */
  voter: string
  voter_label: string | null
  decision: 'approved' | 'rejected'
  /** 0 once an edit has changed what it was for. */
  counts: number
  /** 1 when it changed the payload. */
  edited: number
  /** The SHA-256 of the payload that it is for, in hexadecimal; null without one. */
  effective_hash: string | null
  permit_expires_at: Millis | null
  uses: number
  at: Millis
  reason: string | null
  /** JSON. */
  answer: string | null
}

const LOCK = sql<CheckpointRow>(
  'checkpoints.lock',
  `update checkpoints set updated_at = updated_at where ${here} and status = 'pending' returning ${columns}`,
)

const vote_columns = `voter, voter_label, decision, counts, edited, effective_hash, permit_expires_at, uses, at, reason,
       answer`

const COUNTED = sql<Vote>(
  'checkpoints.counted_votes',
  `select ${vote_columns} from checkpoint_votes
    where tenant_id = :tenant_id and checkpoint_id = :id and counts = 1`,
)

const FIND = sql<Vote>(
  'checkpoints.find_vote',
  `select ${vote_columns} from checkpoint_votes
    where tenant_id = :tenant_id and checkpoint_id = :id and voter = :voter`,
)

const LIST = sql<Vote>(
  'checkpoints.list_votes',
  `select ${vote_columns} from checkpoint_votes
    where tenant_id = :tenant_id and checkpoint_id = :id and voter > :after_voter
    order by voter limit :rows_max`,
)

const UNCOUNT = sql(
  'checkpoints.uncount_votes',
  'update checkpoint_votes set counts = 0 where tenant_id = :tenant_id and checkpoint_id = :id and counts = 1',
)

// One vote a voter: only one that no longer counts is written over.
const CAST = sql(
  'checkpoints.cast_vote',
  `insert into checkpoint_votes
     (tenant_id, checkpoint_id, voter, voter_label, decision, counts, edited, effective_hash, permit_expires_at, uses, at,
      reason, answer)
   values
     (:tenant_id, :id, :voter, :voter_label, :decision, 1, :edited, :effective_hash, :permit_expires_at, :uses, :now,
      :reason, :answer)
   on conflict (tenant_id, checkpoint_id, voter) do update
      set voter_label = :voter_label, decision = :decision, counts = 1, edited = :edited,
          effective_hash = :effective_hash, permit_expires_at = :permit_expires_at, uses = :uses, at = :now,
          reason = :reason, answer = :answer
    where checkpoint_votes.counts = 0`,
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

const PURGE = sql(
  'checkpoints.purge_votes',
  `delete from checkpoint_votes where ${inChunk({
    ...{ table: 'checkpoint_votes', key: 'tenant_id, checkpoint_id, voter', index: null },
    ...{ order: 'tenant_id, checkpoint_id, voter', where: 'tenant_id = :tenant_id' },
  })}`,
)

/** Its row, which no other transaction settles before this one ends. Null unless it is pending. */
export function lock(tx: Tx, tenant_id: string, id: string) {
  return tx.one(LOCK, { tenant_id, id })
}

/** The votes that count. */
export function counted(q: Reader, tenant_id: string, id: string) {
  return q.all(COUNTED, { tenant_id, id })
}

export function find(q: Reader, tenant_id: string, id: string, voter: string) {
  return q.one(FIND, { tenant_id, id, voter })
}

export function list(
  q: Reader,
  tenant_id: string,
  id: string,
  page: { after_voter: string; rows_max: number },
) {
  return q.all(LIST, { tenant_id, id, ...page })
}

/** None of its votes counts any more. */
export function uncount(tx: Tx, tenant_id: string, id: string) {
  return tx.run(UNCOUNT, { tenant_id, id })
}

/** False when this voter has a vote that counts. */
export async function cast(tx: Tx, tenant_id: string, id: string, vote: Omit<Vote, 'counts' | 'at'>) {
  return (await tx.run(CAST, { tenant_id, id, ...vote, now: tx.now })) === 1
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

/** Removes rows of a tenant that is being purged; returns how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max })
}
