// The approval of an effect: a checkpoint that shows its exact bytes, with what a policy asks for at the least.

import type { Millis } from '../base/clock.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import type { PolicyRow } from './policy.ts'

/** As an agent asks for it. */
export interface Approval {
  title: string
  prompt: string | null
  /** `no_callback` for none. */
  callback_url: string
  timeout_action: 'auto_reject' | 'dlq'
  timeout_seconds: number | undefined
  expires_at: Millis | undefined
}

interface Asked {
  id: string
  /** Absent: it gets one. */
  checkpoint_id?: string
  type: string
  payload: string
  workflow_id: string | null
  approval: Approval | null
}

/** The one that a policy asks for when its agent asks for none. */
function approvalOf({ approval, type }: Asked): Approval {
  return (
    approval ?? {
      ...{ title: `Allow ${type}?`, prompt: null, callback_url: checkpoints.no_callback },
      ...{ timeout_action: 'auto_reject', timeout_seconds: undefined, expires_at: undefined },
    }
  )
}

export function openApproval(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  asked: Asked,
  _policy: PolicyRow | null,
) {
  const { timeout_seconds, expires_at, ...approval } = approvalOf(asked)
  const { id: effect_id, checkpoint_id, payload, workflow_id } = asked
  return checkpoints.create(tx, caller, dependencies, {
    ...approval,
    ...{ callback_payload: null, workflow_id, effect_id, payload },
    expires_at: checkpoints.expiryOf(tx.now, timeout_seconds, expires_at),
    ...(checkpoint_id !== undefined && { id: checkpoint_id }),
  })
}
