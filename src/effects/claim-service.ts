// The claim of an effect: of any number of callers exactly one gets the lease.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashOf } from '../base/keys.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { type Approval, openApproval, takeUse } from './approval-service.ts'
import { isSamePayload, type WholeEffect } from './effect.ts'
import { afterProposal, ask, type Claim, type Claimed, type Hashed, run } from './new-service.ts'
import * as permits from './permit-store.ts'
import { asksFor, type PolicyRow } from './policy.ts'
import * as policies from './policy-store.ts'
import { expirePermit } from './refusal-service.ts'
import {
  isOwnLease,
  isPermitOver,
  keyReused,
  onlyProposes,
  refusalOf,
  requireNewToken,
  startIn,
} from './start-service.ts'
import * as store from './store.ts'

/**
 * Throws the codes of its route. A repeat of an effect that is over is one read. `findApproval` returns the approval that
 * the claim asks for, or throws; null: it asks for none.
 */
export async function claim(
  db: Db,
  caller: AgentCaller,
  dependencies: Dependencies,
  asked: Omit<Claim, 'approval'>,
  findApproval: (() => Promise<Approval>) | null,
): Promise<Claimed> {
  const { tenant_id } = caller
  const payload_hash = hashOf(asked.payload)
  const found = await store.findPair(db, tenant_id, asked.type, asked.key)
  const seen = found && (await presentState(db, caller, asked, payload_hash, found, db.clock.now()))
  if (seen) return seen
  // An effect whose permit is over asks for no other approval.
  const approval = found?.status === 'approved' ? null : findApproval && (await findApproval())
  const claim = { ...asked, approval }
  for (;;) {
    try {
      const claimed = await db.write(tenant_id, (tx) =>
        claimIn(tx, caller, dependencies, { ...claim, payload_hash, is_new: found === null }),
      )
      if (claimed instanceof ApiError) throw claimed
      return claimed
    } catch (error) {
      if (!(error instanceof TakenMeanwhile)) throw error
    }
  }
}

/** Another call came first, after a use of an approval was taken or a checkpoint was opened: that is undone. */
class TakenMeanwhile extends Error {}

/** A refusal that is returned has changes to commit: it is thrown afterwards. */
async function claimIn(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  claim: Hashed,
): Promise<Claimed | ApiError> {
  const { tenant_id } = caller
  const { type, key, payload_hash } = claim
  const is_plain = claim.approval === null && claim.under_checkpoint_id === null
  if (claim.is_new && is_plain && !onlyProposes(caller)) {
    const made = await run(tx, caller, dependencies, claim, null)
    if (made) return made
  }
  for (;;) {
    const found = await store.findPair(tx, tenant_id, type, key)
    const seen = found && (await presentState(tx, caller, claim, payload_hash, found, tx.now))
    if (seen) return seen
    const policy = await policies.forType(tx, tenant_id, type)
    const asks = claim.approval !== null || asksFor(policy) || onlyProposes(caller)
    const claimed = found
      ? await claimAgain(tx, caller, dependencies, { claim, policy, asks, found })
      : await claimNew(tx, caller, dependencies, { claim, policy, asks })
    if (claimed) return claimed
  }
}

/** Null when the pair now exists. */
async function claimNew(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  { claim, policy, asks }: Omit<Again, 'found'>,
): Promise<Claimed | null> {
  const { under_checkpoint_id: id } = claim
  if (id === null)
    return asks
      ? ask(tx, caller, dependencies, claim, policy)
      : run(tx, caller, dependencies, claim, { policy, permit_expires_at: null })
  const permit_expires_at = await takeUse(tx, caller.tenant_id, id, { ...claim, policy })
  const claimed = await run(tx, caller, dependencies, claim, { policy, permit_expires_at })
  if (!claimed) throw new TakenMeanwhile()
  return claimed
}

interface Again {
  claim: Hashed
  policy: PolicyRow | null
  asks: boolean
  /** Ready, or approved with a permit that is over. */
  found: WholeEffect
}

/** Null when it has changed meanwhile. */
async function claimAgain(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  { claim, policy, asks, found }: Again,
): Promise<Claimed | ApiError | null> {
  const { tenant_id } = caller
  if (found.status === 'approved') return expirePermit(tx, dependencies, tenant_id, found.id)
  const under = await underOf(tx, tenant_id, claim, policy)
  if (under || !asks) {
    const lease_token = claim.lease_token ?? newId('lse', tx.now)
    const { lease_ms, payload_hash } = claim
    const lease = { lease_token, lease_ms, payload_hash, policies_known: 1 as const, under }
    const started = await startIn(tx, caller, dependencies, found.id, lease)
    if (!started && under) throw new TakenMeanwhile()
    return started && { status: 201, effect: started, lease_token, checkpoint: null }
  }
  const checkpoint = await openApproval(
    tx,
    caller,
    dependencies,
    { ...claim, id: found.id, note: found.note, workflow_id: found.workflow_id },
    policy,
  )
  const proposed = await permits.propose(tx, tenant_id, found.id, checkpoint.id)
  if (!proposed) throw new TakenMeanwhile()
  return afterProposal(tx, caller, proposed, checkpoint)
}

/** Takes a use of the approval that the claim names; null when it names none. Throws as `takeUse` does. */
async function underOf(
  tx: Tx,
  tenant_id: string,
  claim: Hashed,
  policy: PolicyRow | null,
): Promise<permits.Under | null> {
  const { under_checkpoint_id: checkpoint_id } = claim
  if (checkpoint_id === null) return null
  return {
    checkpoint_id,
    permit_expires_at: await takeUse(tx, tenant_id, checkpoint_id, { ...claim, policy }),
  }
}

/**
 * The answer to a repeat that changes nothing. Null when it may be started, or its permit is over. Throws
 * EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_NOT_HELD, EFFECT_KEY_REUSED, EFFECT_REJECTED.
 */
async function presentState(
  q: Reader,
  { tenant_id }: AgentCaller,
  { lease_token }: Pick<Claim, 'lease_token'>,
  payload_hash: string,
  effect: WholeEffect,
  now: Millis,
): Promise<Claimed | null> {
  if (!isSamePayload(effect, payload_hash)) throw keyReused(effect)
  const { status, checkpoint_id } = effect
  const answer = { effect, lease_token: null, checkpoint: null }
  if (status === 'succeeded' || status === 'failed') return { ...answer, status: 200 }
  if (status === 'approved') return isPermitOver(effect, now) ? null : { ...answer, status: 200 }
  if (status === 'awaiting_approval') {
    const checkpoint = await checkpoints.find(q, tenant_id, checkpoint_id!)
    return { ...answer, status: 202, checkpoint }
  }
  if (isOwnLease(effect, lease_token, now)) return { ...answer, status: 201, lease_token }
  if (status !== 'ready') throw refusalOf(effect, now)
  requireNewToken(effect, lease_token)
  return null
}
