// Votes on a checkpoint that takes more than one plain decision: who may cast one, what it is for, and when they are enough.

import { type Millis, parseTime } from '../base/clock.ts'
import { ApiError, type Issue, invalid } from '../base/errors.ts'
import { hashOf } from '../base/keys.ts'
import type { AdminCaller, ApprovalCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { RawJson } from '../contract/schemas.ts'
import type { Tx } from '../db/db.ts'
import { row_bytes, textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import { aboutOf } from './about.ts'
import { answerText } from './answer.ts'
import { type CheckpointRow, resolverOf } from './checkpoint.ts'
import { events } from './events.ts'
import { ended } from './jobs.ts'
import * as settlements from './settlement-store.ts'
import { isApprover, voterOf } from './steering.ts'
import * as store from './vote-store.ts'

/** A decision as it was sent. */
export interface Decision {
  status: 'approved' | 'rejected'
  reason: string | null
  answer?: RawJson | undefined
  effective_payload?: RawJson | undefined
  /** Of the payload that the voter has seen. */
  expected_hash?: string | undefined
  expires_at?: string | undefined
  uses?: number | undefined
}

/** True when it says no more than yes or no. */
export function isPlain({ answer, effective_payload, expected_hash, expires_at, uses }: Decision): boolean {
  const edit = effective_payload?.text === 'null' ? undefined : effective_payload
  return [answer, edit, expected_hash, expires_at, uses].every((given) => given === undefined)
}

interface Ballot {
  answer: string | null
  /** Null for the payload as it was proposed. */
  edited_payload: string | null
  permit_expires_at: Millis | null
  uses: number
}

/**
 * Counts a vote, and settles the checkpoint with the last that it takes. Null unless it is pending. Throws NOT_AN_APPROVER,
 * ALREADY_VOTED, VOTE_DIFFERS, ANSWER_INVALID, NOT_EDITABLE, VALIDATION_FAILED; then nothing has changed.
 */
export async function vote(
  tx: Tx,
  caller: AdminCaller | ApprovalCaller,
  dependencies: Dependencies,
  id: string,
  decision: Decision,
): Promise<CheckpointRow | null> {
  const { tenant_id } = caller
  const row = await settlements.lock(tx, tenant_id, id)
  if (!row) return null
  const voter = voterOf(caller)
  if (!isApprover(row, voter)) throw new ApiError('NOT_AN_APPROVER')
  const votes = await store.counted(tx, tenant_id, id)
  const before = votes.find((each) => each.voter === voter)
  if (before)
    throw new ApiError('ALREADY_VOTED', { details: { decision: before.decision, ...countsOf(row) } })
  const ballot = ballotOf(row, decision, tx.now)
  const { is_edit, voided } = await comparedWith(tx, caller, { row, votes, decision, ballot })
  const counting = voided > 0 ? [] : votes
  await castVote(tx, caller, { row, decision, ballot, is_edit })
  const counts = {
    approvals: (voided > 0 ? 0 : row.approvals) + (decision.status === 'approved' ? 1 : 0),
    rejections: (voided > 0 ? 0 : row.rejections) + (decision.status === 'rejected' ? 1 : 0),
  }
  await journal.emit(tx, events['checkpoint.voted'], {
    ...aboutOf(tenant_id, row, causeOf(caller)),
    data: { ...counts, decision: decision.status, edited: is_edit, voided },
  })
  const edited_payload = decision.status === 'approved' ? ballot.edited_payload : row.edited_payload
  tx.stores(tenant_id, textBytes(edited_payload) - textBytes(row.edited_payload))
  if (isPending(row, counts)) return settlements.count(tx, tenant_id, id, { ...counts, edited_payload })
  const settled = await settle(tx, caller, { row, counting, decision, ballot, counts, edited_payload })
  await ended(tx, tenant_id, dependencies, settled, causeOf(caller))
  return settled
}

function isPending(row: CheckpointRow, counts: { approvals: number; rejections: number }): boolean {
  return counts.approvals < row.required_approvals && counts.rejections < row.required_rejections
}

function countsOf({ approvals, rejections }: CheckpointRow) {
  return { approvals, rejections }
}

/** The vote that the decision casts, checked against the checkpoint. Throws ANSWER_INVALID, NOT_EDITABLE, VALIDATION_FAILED. */
function ballotOf(row: CheckpointRow, decision: Decision, now: Millis): Ballot {
  if (decision.status === 'rejected')
    return { answer: null, edited_payload: null, permit_expires_at: null, uses: 1 }
  const { effective_payload } = decision
  const given = decision.answer === undefined ? {} : JSON.parse(decision.answer.text)
  const answer = answerOf(row, given, decision.answer !== undefined)
  // Where nothing can be changed, null is like nothing.
  const is_given = effective_payload !== undefined && effective_payload.text !== 'null'
  if (is_given && row.editable === 0) throw new ApiError('NOT_EDITABLE')
  const permit = permitOf(row, decision, now)
  const edited = effective_payload?.text ?? null
  // In an answer it would look like a payload that nobody has changed.
  if (edited === 'null' && row.editable === 1 && row.payload !== edited)
    throw invalid({ path: '/effective_payload', message: 'must not be null: leave it out to change nothing' })
  const edited_payload = row.editable === 0 || edited === row.payload ? null : edited
  return { answer, edited_payload, ...permit }
}

/**
 * How far the approval of an effect reaches. Of anything else nobody would hold to it: a question about an effect binds no
 * payload, and approves none that its voter could have seen. Throws VALIDATION_FAILED.
 */
function permitOf(
  { payload }: CheckpointRow,
  { uses, expires_at, expected_hash }: Decision,
  now: Millis,
): Pick<Ballot, 'permit_expires_at' | 'uses'> {
  const given = Object.entries({ uses, expires_at, expected_hash }).filter(([, value]) => value !== undefined)
  if (payload === null && given.length > 0)
    throw invalid(
      ...given.map(([name]) => ({ path: `/${name}`, message: 'is only for the approval of an effect' })),
    )
  const permit_expires_at = expires_at === undefined ? null : parseTime(expires_at)
  if (permit_expires_at !== null && permit_expires_at <= now)
    throw invalid({ path: '/expires_at', message: 'must be in the future' })
  return { permit_expires_at, uses: uses ?? 1 }
}

function answerOf({ answer_schema }: CheckpointRow, given: unknown, was_given: boolean): string | null {
  if (answer_schema === null) {
    if (!was_given) return null
    throw answerInvalid([{ path: '/answer', message: 'is not asked for' }])
  }
  const read = answerText(JSON.parse(answer_schema), given)
  if ('issues' in read) throw answerInvalid(read.issues)
  return read.text
}

function answerInvalid(issues: Issue[]): ApiError {
  return new ApiError('ANSWER_INVALID', { details: { issues } })
}

interface Cast {
  row: CheckpointRow
  decision: Decision
  ballot: Ballot
}

/**
 * Votes must be for the same bytes and the same answer. An edit changes what is voted on: the votes before it count no longer,
 * and their voters may vote again. Throws VOTE_DIFFERS.
 */
async function comparedWith(
  tx: Tx,
  { tenant_id }: AdminCaller | ApprovalCaller,
  { row, votes, decision, ballot }: Cast & { votes: store.Vote[] },
): Promise<{ is_edit: boolean; voided: number }> {
  if (decision.status === 'rejected') return { is_edit: false, voided: 0 }
  const seen = decision.expected_hash
  if (seen !== undefined && seen !== hashOf((row.edited_payload ?? row.payload)!)) throw differsIn('payload')
  const differs = ballot.edited_payload !== row.edited_payload
  const is_edit = differs && decision.effective_payload !== undefined
  if (is_edit) {
    if (votes.length > 0) await store.uncount(tx, tenant_id, row.id)
    return { is_edit, voided: votes.length }
  }
  // Bytes that this voter did not name are not approved: somebody has changed them meanwhile.
  if (differs) throw differsIn('payload')
  const other = votes.find((each) => each.decision === 'approved' && each.answer !== ballot.answer)
  if (other) throw differsIn('answer')
  return { is_edit, voided: 0 }
}

function differsIn(differs: 'payload' | 'answer'): ApiError {
  return new ApiError('VOTE_DIFFERS', { details: { differs } })
}

async function castVote(
  tx: Tx,
  caller: AdminCaller | ApprovalCaller,
  { row, decision, ballot, is_edit }: Cast & { is_edit: boolean },
): Promise<void> {
  const { tenant_id } = caller
  const voter = voterOf(caller)
  const { reason, status } = decision
  const { answer, permit_expires_at, uses } = ballot
  const before = await store.find(tx, tenant_id, row.id, voter)
  const bytes = textBytes(reason) + textBytes(answer)
  const replaced = before ? textBytes(before.reason) + textBytes(before.answer) : -row_bytes
  tx.stores(tenant_id, bytes - replaced)
  const payload = (status === 'approved' ? ballot.edited_payload : row.edited_payload) ?? row.payload
  const cast = await store.cast(tx, tenant_id, row.id, {
    ...{ voter, decision: status, reason, answer, permit_expires_at, uses },
    voter_label: caller.kind === 'approval' ? caller.label : null,
    edited: is_edit ? 1 : 0,
    effective_hash: payload === null ? null : hashOf(payload),
  })
  if (!cast) throw new ApiError('ALREADY_VOTED')
}

interface Enough extends Cast {
  /** The votes before it that count. */
  counting: store.Vote[]
  counts: { approvals: number; rejections: number }
  edited_payload: string | null
}

/** Of the times and uses that approvers set the least counts. */
function settle(
  tx: Tx,
  caller: AdminCaller | ApprovalCaller,
  { row, counting, decision, ballot, counts, edited_payload }: Enough,
): Promise<CheckpointRow> {
  const { tenant_id } = caller
  const { status, reason } = decision
  const is_approved = status === 'approved'
  const approvals = is_approved ? [...counting.filter(({ decision }) => decision === status), ballot] : []
  const ends = approvals.flatMap(({ permit_expires_at }) => permit_expires_at ?? [])
  const settlement = {
    ...counts,
    ...{ status, reason, answer: ballot.answer, resolved_by: resolverOf(caller) },
    effective_payload: is_approved ? edited_payload : null,
    permit_expires_at: ends.length > 0 ? Math.min(...ends) : null,
    uses: Math.min(...approvals.map(({ uses }) => uses), is_approved ? Number.POSITIVE_INFINITY : 1),
  }
  const kept = textBytes(settlement.effective_payload) - textBytes(edited_payload)
  tx.stores(tenant_id, textBytes(reason) + textBytes(ballot.answer) + kept)
  return settlements.settle(tx, tenant_id, row.id, settlement)
}
