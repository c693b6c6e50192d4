// The approval of an effect: a checkpoint that shows its exact bytes, with at least the terms of its policy. Or an approval
// with a use left that was asked for another effect of the same type and bytes.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import { boundHash } from './effect.ts'
import type { PolicyRow } from './policy.ts'
import * as store from './store.ts'
import { atLeast, isEnough, type Steering } from './terms-service.ts'

/** As an agent asks for it. */
export interface Approval {
  title: string
  prompt: string | null
  /** `no_callback` for none. */
  callback_url: string
  timeout_action: 'auto_reject' | 'dlq'
  timeout_seconds: number | undefined
  expires_at: Millis | undefined
  editable: boolean
  steering: Steering
}

interface Asked {
  id: string
  /** Absent: it gets one. */
  checkpoint_id?: string
  type: string
  key: string
  note: string | null
  payload: string
  workflow_id: string | null
  approval: Approval | null
}

/** By default, the approval that a policy asks for. */
function approvalOf({ approval, type }: Asked): Approval {
  return (
    approval ?? {
      ...{ title: `Allow ${type}?`, prompt: null, callback_url: checkpoints.no_callback },
      ...{ timeout_action: 'auto_reject', timeout_seconds: undefined, expires_at: undefined },
      ...{ editable: false, steering: {} },
    }
  )
}

/** Throws QUOTA_EXCEEDED, VALIDATION_FAILED, EFFECT_APPROVERS_GONE. */
export async function openApproval(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  asked: Asked,
  policy: PolicyRow | null,
) {
  const { timeout_seconds, expires_at, editable, steering, ...approval } = approvalOf(asked)
  const { id: effect_id, checkpoint_id, payload, workflow_id, type, key, note } = asked
  const effect = { type, key, note }
  const given = await atLeast(tx, caller.tenant_id, steering, policy)
  return checkpoints.create(tx, caller, dependencies, {
    ...{ ...approval, callback_payload: null, workflow_id },
    expires_at: checkpoints.expiryOf(tx.now, timeout_seconds, expires_at),
    ...(checkpoint_id !== undefined && { id: checkpoint_id }),
    ...checkpoints.steeringOf(given, { effect_id, effect, payload, editable }, '/approval'),
    approvers_at: policy?.approvers == null ? '/approval' : null,
  })
}

/**
 * Takes a use of an approval that was asked for another effect; returns when it expires, null for never. Throws
 * EFFECT_REJECTED, EFFECT_KEY_REUSED for another type or other bytes, EFFECT_APPROVAL_REQUIRED when the policy wants more,
 * INVALID_STATE while it is pending, CHECKPOINT_NOT_FOUND.
 */
export async function takeUse(
  tx: Tx,
  tenant_id: string,
  id: string,
  { type, payload_hash, policy }: { type: string; payload_hash: string; policy: PolicyRow | null },
): Promise<Millis | null> {
  const checkpoint = await checkpoints.read(tx, tenant_id, id)
  const { effect_id, status } = checkpoint
  const effect = effect_id === null ? null : await store.find(tx, tenant_id, effect_id)
  if (!effect || effect.checkpoint_id !== id) throw new ApiError('CHECKPOINT_NOT_FOUND')
  if (effect.type !== type || boundHash(effect) !== payload_hash)
    throw new ApiError('EFFECT_KEY_REUSED', { details: { effect_id } })
  if (status === 'pending') throw new ApiError('INVALID_STATE', { details: { status, checkpoint_id: id } })
  if (status === 'approved' && !(await isEnough(tx, tenant_id, id, policy)))
    throw new ApiError('EFFECT_APPROVAL_REQUIRED', { details: { checkpoint_id: id } })
  const taken = await checkpoints.takeUse(tx, tenant_id, id)
  if (taken) return taken.permit_expires_at
  // It may have been revoked since it was read.
  const is_over = checkpoints.isPermitOver(await checkpoints.read(tx, tenant_id, id), tx.now)
  const reason = status !== 'approved' ? status : is_over ? 'expired' : 'used_up'
  throw new ApiError('EFFECT_REJECTED', { details: { status: reason, checkpoint_id: id } })
}
