// The claim of an effect, and its start: of any number of callers exactly one gets the lease.

import './errors.ts'
import { isoOrNull, type Millis, second_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashKey, hashOf } from '../base/keys.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { type Approval, openApproval, takeUse } from './approval-service.ts'
import {
  boundHash,
  isSamePayload,
  lease_seconds_default,
  type OnUnknown,
  secondsLeft,
  type WholeEffect,
} from './effect.ts'
import { aboutOf, dataOf, leaseDataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import { asksFor, type PolicyRow, policyFor } from './policy.ts'
import * as policies from './policy-store.ts'
import { permitExpired, rejectedAs } from './refusal-service.ts'
import { keptMs } from './retention.ts'
import * as store from './store.ts'

export interface Claim {
  type: string
  key: string
  /** The exact text. */
  payload: string
  note: string | null
  workflow_id: string | null
  on_unknown: OnUnknown
  /** 0: as long as the effect says, or the default. */
  lease_ms: Millis
  /** Made up by the caller, so that a repeat finds its own lease; null: the service makes one. */
  lease_token: string | null
  /** Null: only when a policy asks for one. */
  approval: Approval | null
  /** An approval that another effect was asked for, and that has a use left; null: none. */
  under_checkpoint_id: string | null
}

export type Checkpoint = NonNullable<Awaited<ReturnType<typeof checkpoints.find>>>

/** 201: the caller has the lease. 202: it waits for the approval. 200: it is approved, or over. */
export interface Claimed {
  status: 200 | 201 | 202
  effect: WholeEffect
  lease_token: string | null
  checkpoint: Checkpoint | null
}

/**
 * Throws EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_KEY_REUSED, EFFECT_REJECTED, QUOTA_EXCEEDED. A repeat of an effect that is
 * over is one read.
 */
export async function claim(
  db: Db,
  caller: AgentCaller,
  dependencies: Dependencies,
  claim: Claim,
): Promise<Claimed> {
  const { tenant_id } = caller
  const payload_hash = hashOf(claim.payload)
  const found = await store.findPair(db, tenant_id, claim.type, claim.key)
  const seen = found && (await presentState(db, caller, claim, payload_hash, found, db.clock.now()))
  if (seen) return seen
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

/** Another call has made the pair, after a use of an approval was taken for it: that is undone. */
class TakenMeanwhile extends Error {}

interface Hashed extends Claim {
  payload_hash: string
  /** False when the pair was there already. */
  is_new: boolean
}

/** A refusal that is returned stands, and is to be thrown after the commit. */
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
    const policy = policyFor(type, await policies.forType(tx, tenant_id, type))
    const asks = claim.approval !== null || asksFor(policy) || onlyProposes(caller)
    const claimed = found
      ? await claimAgain(tx, caller, dependencies, { claim, policy, asks, found })
      : await claimNew(tx, caller, dependencies, { claim, policy, asks })
    if (claimed) return claimed
  }
}

/** Null when the pair is there meanwhile. */
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
  const permit_expires_at = await takeUse(tx, caller.tenant_id, id, claim)
  const claimed = await run(tx, caller, dependencies, claim, { policy, permit_expires_at })
  if (!claimed) throw new TakenMeanwhile()
  return claimed
}

/** True for an agent whose effects all wait for an approval. */
function onlyProposes({ mode }: AgentCaller): boolean {
  return mode === 'propose'
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
  if (found.status === 'approved') return permitExpired(tx, dependencies, tenant_id, found.id)
  if (!asks) {
    const lease_token = claim.lease_token ?? newId('lse', tx.now)
    const { lease_ms } = claim
    const lease = { lease_token, lease_ms, payload_hash: '', policies_known: 1 as const }
    const started = await startIn(tx, caller, dependencies, found.id, lease)
    return started && { status: 201, effect: started, lease_token, checkpoint: null }
  }
  const checkpoint = await openApproval(tx, caller, dependencies, { ...claim, id: found.id }, policy)
  const proposed = await store.propose(tx, tenant_id, found.id, checkpoint.id)
  if (!proposed) throw new ApiError('INVALID_STATE', { details: { status: found.status } })
  return wasProposed(tx, caller, proposed, checkpoint)
}

/** A new effect with its lease. Null when the pair is there already or, with `known` null, when a policy might apply. */
async function run(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  claim: Hashed,
  known: { policy: PolicyRow | null; permit_expires_at: Millis | null } | null,
): Promise<Claimed | null> {
  const { agent_id } = caller
  const lease_token = claim.lease_token ?? newId('lse', tx.now)
  const terms = termsOf(claim, known?.policy ?? null)
  const effect = await insert(tx, caller, dependencies, claim, {
    ...terms,
    ...{ id: newId('eff', tx.now), status: 'running', fence: 1, held_by: agent_id },
    ...{ checkpoint_id: claim.under_checkpoint_id, permit_expires_at: known?.permit_expires_at ?? null },
    lease_token_hash: hashKey(lease_token),
    lease_until: tx.now + terms.lease_ms,
    policies_known: known ? 1 : 0,
  })
  if (!effect) return null
  const about = aboutOf(caller.tenant_id, causeOf(caller), effect)
  await journal.emit(tx, events['effect.claimed'], { ...about, data: leaseDataOf(effect) })
  return { status: 201, effect, lease_token, checkpoint: null }
}

/** A new effect that waits for its approval. Null when the pair is there already. */
async function ask(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  claim: Hashed,
  policy: PolicyRow | null,
): Promise<Claimed | null> {
  const id = newId('eff', tx.now)
  const checkpoint_id = newId('chk', tx.now)
  const effect = await insert(tx, caller, dependencies, claim, {
    ...termsOf(claim, policy),
    ...{ id, status: 'awaiting_approval', fence: 0, held_by: null, checkpoint_id },
    ...{ permit_expires_at: null, lease_token_hash: null, lease_until: null, policies_known: 1 },
  })
  if (!effect) return null
  const asked = { ...claim, id, checkpoint_id }
  const checkpoint = await openApproval(tx, caller, dependencies, asked, policy)
  return wasProposed(tx, caller, effect, checkpoint)
}

async function wasProposed(
  tx: Tx,
  caller: AgentCaller,
  effect: WholeEffect,
  checkpoint: Checkpoint,
): Promise<Claimed> {
  await journal.emit(tx, events['effect.proposed'], {
    ...aboutOf(caller.tenant_id, causeOf(caller), effect),
    data: { ...dataOf(effect), checkpoint_id: checkpoint.id },
  })
  return { status: 202, effect, lease_token: null, checkpoint }
}

/** The lease that it is claimed for, not longer than the policy allows. */
function termsOf({ lease_ms }: Claim, policy: PolicyRow | null) {
  const lease_ms_max = policy?.lease_seconds_max ? policy.lease_seconds_max * second_ms : null
  const asked_ms = lease_ms === 0 ? lease_seconds_default * second_ms : lease_ms
  return { lease_ms: Math.min(asked_ms, lease_ms_max ?? asked_ms), lease_ms_max }
}

type Made = Pick<
  store.NewEffect,
  | 'id'
  | 'status'
  | 'lease_ms'
  | 'lease_ms_max'
  | 'checkpoint_id'
  | 'permit_expires_at'
  | 'fence'
  | 'lease_token_hash'
  | 'lease_until'
  | 'held_by'
  | 'policies_known'
>

async function insert(
  tx: Tx,
  caller: AgentCaller,
  { plans }: Dependencies,
  { type, key, payload, payload_hash, note, workflow_id, on_unknown }: Hashed,
  made: Made,
): Promise<WholeEffect | null> {
  const { tenant_id, agent_id } = caller
  const bytes = rowBytes(type, key, note, workflow_id, payload)
  quotas.requireRoom(tx, caller, plans, bytes)
  const given = { type, key, payload, payload_hash, note, workflow_id, on_unknown }
  const kept = { kept_ms: keptMs(plans, caller.plan), kept_bytes: textBytes(payload) }
  const effect = await store.insert(tx, tenant_id, { ...given, ...made, ...kept, agent_id })
  if (!effect) return null
  tx.stores(tenant_id, bytes)
  await quotas.reserve(tx, caller, plans, 'effects')
  return effect
}

/**
 * The answer to a repeat that changes nothing. Null when it may be started, or its permit is over. Throws
 * EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_KEY_REUSED, EFFECT_REJECTED.
 */
async function presentState(
  q: Reader,
  { tenant_id }: AgentCaller,
  { lease_token }: Claim,
  payload_hash: string,
  effect: WholeEffect,
  now: Millis,
): Promise<Claimed | null> {
  if (!isSamePayload(effect, payload_hash)) throw keyReused(effect)
  const { status, checkpoint_id } = effect
  const answer = { effect, lease_token: null, checkpoint: null }
  if (status === 'succeeded' || status === 'failed') return { ...answer, status: 200 }
  if (status === 'approved') return isOver(effect, now) ? null : { ...answer, status: 200 }
  if (status === 'awaiting_approval') {
    const checkpoint = await checkpoints.find(q, tenant_id, checkpoint_id!)
    return { ...answer, status: 202, checkpoint }
  }
  if (isOwnLease(effect, lease_token, now)) return { ...answer, status: 201, lease_token }
  if (status === 'ready') return null
  throw refusalOf(effect, now)
}

function isOver({ permit_expires_at }: WholeEffect, now: Millis): boolean {
  return permit_expires_at !== null && permit_expires_at <= now
}

/** A repeat of the call that got this lease: its answer was lost. */
function isOwnLease(
  { status, lease_token_hash, lease_until }: WholeEffect,
  lease_token: string | null,
  now: Millis,
): boolean {
  if (lease_token === null || status !== 'running' || lease_until! <= now) return false
  return hashKey(lease_token) === lease_token_hash
}

export interface Start {
  /** Of the bytes that the caller is about to act on; empty: any. */
  payload_hash: string
  lease_ms: Millis
  lease_token: string | null
}

/**
 * Throws EFFECT_NOT_FOUND, EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_KEY_REUSED, EFFECT_REJECTED, EFFECT_APPROVAL_REQUIRED,
 * INVALID_STATE.
 */
export async function start(
  db: Db,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { lease_token: given, ...asked }: Start,
): Promise<Claimed> {
  const { tenant_id } = caller
  const started = await db.write(tenant_id, async (tx) => {
    const lease_token = given ?? newId('lse', tx.now)
    const lease = { ...asked, lease_token }
    const effect =
      (await startIn(tx, caller, dependencies, id, {
        ...lease,
        policies_known: onlyProposes(caller) ? 2 : 0,
      })) ?? (await startAfterAll(tx, caller, dependencies, id, lease))
    if (effect instanceof ApiError) return effect
    return { status: 201 as const, effect, lease_token, checkpoint: null }
  })
  if (started instanceof ApiError) throw started
  return started
}

type Lease = Omit<Start, 'lease_token'> & { lease_token: string }

async function startIn(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { lease_token, ...lease }: Lease & Pick<store.NewLease, 'policies_known'>,
): Promise<WholeEffect | null> {
  const { tenant_id, agent_id } = caller
  const lease_token_hash = hashKey(lease_token)
  const started = await store.start(tx, tenant_id, id, { ...lease, agent_id, lease_token_hash })
  if (!started) return null
  const about = aboutOf(tenant_id, causeOf(caller), started)
  await journal.emit(tx, events['effect.started'], { ...about, data: leaseDataOf(started) })
  notify(tx, dependencies, tenant_id, id)
  return started
}

/** Where the guarded statement found nothing to start: the reason, or the policies that it did not judge. */
async function startAfterAll(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  lease: Lease,
): Promise<WholeEffect | ApiError> {
  const { tenant_id } = caller
  const effect = await read(tx, tenant_id, id)
  if (isOwnLease(effect, lease.lease_token, tx.now)) return effect
  if (lease.payload_hash !== '' && lease.payload_hash !== boundHash(effect)) throw keyReused(effect)
  if (effect.status === 'approved' && isOver(effect, tx.now))
    return (await permitExpired(tx, dependencies, tenant_id, id)) ?? refusalOf(effect, tx.now)
  if (effect.status !== 'ready') throw refusalOf(effect, tx.now)
  const policy = policyFor(effect.type, await policies.forType(tx, tenant_id, effect.type))
  if (asksFor(policy) || onlyProposes(caller)) throw new ApiError('EFFECT_APPROVAL_REQUIRED')
  const known = { ...lease, policies_known: 1 as const }
  const started = await startIn(tx, caller, dependencies, id, known)
  if (started) return started
  throw refusalOf(await read(tx, tenant_id, id), tx.now)
}

/** Throws EFFECT_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<WholeEffect> {
  const effect = await store.find(q, tenant_id, id)
  if (!effect) throw new ApiError('EFFECT_NOT_FOUND')
  return effect
}

function keyReused({ id }: WholeEffect): ApiError {
  return new ApiError('EFFECT_KEY_REUSED', { details: { effect_id: id } })
}

/** The reason that nothing may be started. */
function refusalOf(effect: WholeEffect, now: Millis): ApiError {
  const { id: effect_id, status, held_by, lease_until, checkpoint_id } = effect
  switch (status) {
    case 'running':
      return new ApiError('EFFECT_IN_FLIGHT', {
        details: { effect_id, agent_id: held_by, lease_until: isoOrNull(lease_until) },
        retry_after_seconds: secondsLeft(effect, now),
      })
    case 'unknown':
      return new ApiError('EFFECT_UNKNOWN', { details: { effect_id, checkpoint_id: effect.question_id } })
    case 'rejected':
      return rejectedAs(effect)
    default:
      return new ApiError('INVALID_STATE', { details: { status, checkpoint_id } })
  }
}
