// The features that hear of the end of a checkpoint. They declare it; checkpoints know none of them.

import type { Millis } from '../base/clock.ts'
import type { Awaitable, Tx } from '../db/db.ts'
import type { Dependencies } from './dependencies.ts'
import type { Cause } from './event.ts'

/** A checkpoint that has just been settled, as its row stands, or one whose approval has been revoked. */
export interface DecidedCheckpoint {
  id: string
  status: 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' | 'revoked'
  agent_id: string
  workflow_id: string | null
  /** The effect that it was asked for; null for none. */
  effect_id: string | null
  /** Exact texts: as it was proposed, and the change that was approved, null for none. */
  payload: string | null
  effective_payload: string | null
  /** JSON; null for none. */
  answer: string | null
  reason: string | null
  resolved_by: string | null
  resolved_at: Millis | null
  permit_expires_at: Millis | null
  uses: number
  uses_left: number
}

/** Called in the transaction that settles a checkpoint: approved, rejected, expired or cancelled, or that revokes its approval. */
export type Decides = (
  tx: Tx,
  dependencies: Dependencies,
  decided: { tenant_id: string; checkpoint: DecidedCheckpoint; cause: Cause },
) => Awaitable<unknown>
