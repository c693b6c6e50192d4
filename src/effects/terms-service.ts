// The terms of an approval, and of the question what became of an effect: as asked for, raised to what the policy requires.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import * as checkpoints from '../checkpoints/service.ts'
import * as credentials from '../credentials/service.ts'
import type { Reader, Tx } from '../db/db.ts'
import type { WholeEffect } from './effect.ts'
import { approversOf, type PolicyRow } from './policy.ts'
import * as policies from './policy-store.ts'

export type Steering = Parameters<typeof checkpoints.steeringOf>[0]
type Step = NonNullable<Steering['escalate']>[number]

/** Throws EFFECT_APPROVERS_GONE when too few approvers of the policy are left. */
export async function atLeast(
  tx: Tx,
  tenant_id: string,
  given: Steering,
  policy: PolicyRow | null,
): Promise<Steering> {
  const raised = await raise(tx, tenant_id, given, policy)
  if (raised) return raised
  const { type, required_approvals } = policy!
  throw new ApiError('EFFECT_APPROVERS_GONE', { details: { policy: type, required_approvals } })
}

/**
 * The policy sets the minimum, whatever the agent asks for: how many approve, who may, and that one rejection is enough.
 * Null when too few of its approvers are left.
 */
async function raise(
  tx: Tx,
  tenant_id: string,
  given: Steering,
  policy: PolicyRow | null,
): Promise<Steering | null> {
  if (!policy) return given
  const required_approvals = Math.max(given.required_approvals ?? 1, policy.required_approvals)
  const raised = { ...given, required_approvals, required_rejections: 1 }
  const named = approversOf(policy)
  if (named === null) return raised
  const allowed = await thatCanVote(tx, tenant_id, named)
  if (allowed.length < policy.required_approvals) return null
  const within = (list: string[] | undefined) =>
    list ? [...new Set(list)].filter((each) => allowed.includes(each)) : allowed
  const own = within(given.approvers)
  const approvers = own.length >= required_approvals ? own : allowed
  const limited = (step: Step): Step => ({ ...step, approvers: within(step.approvers) })
  const steps = given.escalate?.map(limited).filter((step) => step.approvers!.length > 0) ?? []
  const { escalate: _, ...rest } = raised
  return { ...rest, approvers, ...(steps.length > 0 && { escalate: steps }) }
}

async function thatCanVote(tx: Tx, tenant_id: string, approvers: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const approver of approvers)
    if (approver === 'admin' || (await credentials.voterIssue(tx, tenant_id, approver)) === null)
      found.push(approver)
  return found
}

/**
 * For the question what became of an effect, whose answer can let it happen again: no less than its approval and its policy
 * asked for. Null when too few are left to answer.
 */
export async function questionTerms(
  tx: Tx,
  tenant_id: string,
  { type, checkpoint_id }: Pick<WholeEffect, 'type' | 'checkpoint_id'>,
): Promise<Steering | null> {
  const policy = await policies.forType(tx, tenant_id, type)
  const approval = checkpoint_id === null ? null : await checkpoints.find(tx, tenant_id, checkpoint_id)
  const asked = approval && {
    required_approvals: approval.required_approvals,
    approvers: approversOf(approval) ?? undefined,
  }
  const terms = await raise(tx, tenant_id, asked ?? {}, policy)
  if (!terms?.approvers) return terms
  const approvers = await thatCanVote(tx, tenant_id, terms.approvers)
  return approvers.length < (terms.required_approvals ?? 1) ? null : { ...terms, approvers }
}

/** True when an approval that was given has what this policy asks for: it may be newer than the approval. */
export async function isEnough(
  q: Reader,
  tenant_id: string,
  checkpoint_id: string,
  policy: PolicyRow | null,
): Promise<boolean> {
  if (!policy) return true
  const named = approversOf(policy)
  if (named === null && policy.required_approvals === 1) return true
  const votes = await checkpoints.countedVotes(q, tenant_id, checkpoint_id)
  const counting = votes.filter(
    ({ decision, voter }) => decision === 'approved' && (named?.includes(voter) ?? true),
  )
  return counting.length >= policy.required_approvals
}
