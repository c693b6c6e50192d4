// The start of an effect: of any number of callers exactly one gets the lease.

import './errors.ts'
import { isoOrNull, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashKey } from '../base/keys.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { boundHash, type EffectStatus, moves, secondsLeft, type WholeEffect } from './effect.ts'
import { aboutOf, leaseDataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import type { Claimed } from './new-service.ts'
import * as permits from './permit-store.ts'
import { asksFor } from './policy.ts'
import * as policies from './policy-store.ts'
import { expirePermit, notHeld, rejectedAs, unknownNow } from './refusal-service.ts'
import * as store from './store.ts'

/** True for an agent whose effects all wait for an approval. */
export function onlyProposes({ mode }: AgentCaller): boolean {
  return mode === 'propose'
}

export function isPermitOver({ permit_expires_at, revoked }: WholeEffect, now: Millis): boolean {
  return revoked === 1 || (permit_expires_at !== null && permit_expires_at <= now)
}

/** A repeat of the call that got this lease: its answer was lost. */
export function isOwnLease(
  { status, lease_token_hash, lease_until }: WholeEffect,
  lease_token: string | null,
  now: Millis,
): boolean {
  if (lease_token === null || status !== 'running' || lease_until! <= now) return false
  return hashKey(lease_token) === lease_token_hash
}

/**
 * Throws EFFECT_NOT_HELD when the lease of this token was released: this is a late repeat of the call that got it, and nobody
 * would know of another lease.
 */
export function requireNewToken(effect: WholeEffect, lease_token: string | null): void {
  const { lease_token_hash, lease_until } = effect
  if (lease_token === null || lease_until !== null || hashKey(lease_token) !== lease_token_hash) return
  throw notHeld(effect)
}

export interface Start {
  /** Of the bytes that the caller is about to act on; empty: any. */
  payload_hash: string
  lease_ms: Millis
  lease_token: string | null
}

/**
 * Throws EFFECT_NOT_FOUND, EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_NOT_HELD, EFFECT_KEY_REUSED, EFFECT_REJECTED,
 * EFFECT_APPROVAL_REQUIRED, INVALID_STATE.
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

interface StartsUnder {
  /** Absent, or null: its own approval, if it has one. */
  under?: permits.Under | null
}

export async function startIn(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { lease_token, under = null, ...asked }: Lease & Pick<store.NewLease, 'policies_known'> & StartsUnder,
): Promise<WholeEffect | null> {
  const { tenant_id, agent_id } = caller
  const lease = { ...asked, agent_id, lease_token_hash: hashKey(lease_token) }
  const started = under
    ? await permits.startUnder(tx, tenant_id, id, { ...lease, ...under })
    : await store.start(tx, tenant_id, id, lease)
  if (!started) return null
  const about = aboutOf(tenant_id, causeOf(caller), started)
  await journal.emit(tx, events['effect.started'], { ...about, data: leaseDataOf(started) })
  notify(tx, dependencies, tenant_id, id)
  return started
}

/**
 * Where the guarded statement started nothing: the reason, or a start that reads the policies. An effect that its holder
 * has released meanwhile is tried again.
 */
async function startAfterAll(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  lease: Lease,
): Promise<WholeEffect | ApiError> {
  const { tenant_id } = caller
  const from: readonly EffectStatus[] = moves.start.from
  for (;;) {
    const effect = await read(tx, tenant_id, id)
    if (isOwnLease(effect, lease.lease_token, tx.now)) return effect
    if (lease.payload_hash !== '' && lease.payload_hash !== boundHash(effect)) throw keyReused(effect)
    if (!from.includes(effect.status)) throw refusalOf(effect, tx.now)
    requireNewToken(effect, lease.lease_token)
    if (effect.checkpoint_id === null) await requireNoApproval(tx, caller, effect)
    const started = isPermitOver(effect, tx.now)
      ? await expirePermit(tx, dependencies, tenant_id, id)
      : await startIn(tx, caller, dependencies, id, { ...lease, policies_known: 1 })
    if (started) return started
  }
}

/** Throws EFFECT_APPROVAL_REQUIRED. */
async function requireNoApproval(tx: Tx, caller: AgentCaller, { type }: WholeEffect): Promise<void> {
  const policy = await policies.forType(tx, caller.tenant_id, type)
  if (asksFor(policy) || onlyProposes(caller)) throw new ApiError('EFFECT_APPROVAL_REQUIRED')
}

/** Throws EFFECT_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<WholeEffect> {
  const effect = await store.find(q, tenant_id, id)
  if (!effect) throw new ApiError('EFFECT_NOT_FOUND')
  return effect
}

export function keyReused({ id }: WholeEffect): ApiError {
  return new ApiError('EFFECT_KEY_REUSED', { details: { effect_id: id } })
}

/** The reason that nothing may be started. */
export function refusalOf(effect: WholeEffect, now: Millis): ApiError {
  const { id: effect_id, status, held_by, lease_until, checkpoint_id } = effect
  switch (status) {
    case 'running':
      return new ApiError('EFFECT_IN_FLIGHT', {
        details: { effect_id, agent_id: held_by, lease_until: isoOrNull(lease_until) },
        retry_after_seconds: secondsLeft(effect, now),
      })
    case 'unknown':
      return unknownNow(effect)
    case 'rejected':
      return rejectedAs(effect)
    default:
      return new ApiError('INVALID_STATE', { details: { status, checkpoint_id } })
  }
}
