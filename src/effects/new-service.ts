// A new effect: with its lease, or with an approval that it waits for.

import './errors.ts'
import { day_ms, type Millis, second_ms } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { hashKey } from '../base/keys.ts'
import type * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { rowBytes, textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { type Approval, openApproval } from './approval-service.ts'
import { lease_seconds_default, type OnUnknown, type WholeEffect } from './effect.ts'
import { aboutOf, dataOf, leaseDataOf } from './event-service.ts'
import { events } from './events.ts'
import type { PolicyRow } from './policy.ts'
import { expirePermits } from './refusal-service.ts'
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
  /** An approval with a use left that was asked for another effect; null: none. */
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

export interface Hashed extends Claim {
  payload_hash: string
  /** False when the pair was there already. */
  is_new: boolean
}

/** A new effect with its lease. Null when the pair is there already or, with `known` null, when a policy might apply. */
export async function run(
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
export async function ask(
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
  return afterProposal(tx, caller, effect, checkpoint)
}

export async function afterProposal(
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

async function insert(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  { type, key, payload, payload_hash, note, workflow_id, on_unknown }: Hashed,
  made: Omit<store.NewEffect, keyof Hashed | 'agent_id' | 'kept_ms' | 'kept_bytes'> & { lease_ms: Millis },
): Promise<WholeEffect | null> {
  const { tenant_id, agent_id } = caller
  const { plans } = dependencies
  const bytes = rowBytes(type, key, note, workflow_id, payload)
  quotas.requireRoom(tx, caller, plans, bytes)
  const given = { type, key, payload, payload_hash, note, workflow_id, on_unknown }
  // Null: its texts are kept for ever.
  const days = quotas.limitOf(plans, caller.plan, 'effect_days')
  const kept = { kept_ms: days === null ? null : days * day_ms, kept_bytes: textBytes(payload) }
  const effect = await store.insert(tx, tenant_id, { ...given, ...made, ...kept, agent_id })
  if (!effect) return null
  tx.stores(tenant_id, bytes)
  await quotas.reserve(tx, caller, plans, 'effects', () => expirePermits(tx, dependencies, tenant_id))
  return effect
}
