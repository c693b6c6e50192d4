// Approval keys as voters.

import type { Tx } from '../db/db.ts'
import * as store from './store.ts'

/** The reason for which this approval key could not vote on a checkpoint that is new; null when it could. */
export async function voterIssue(tx: Tx, tenant_id: string, approval_key_id: string): Promise<string | null> {
  const key = await store.findVoter(tx, { tenant_id, subject: approval_key_id })
  if (!key) return 'is not an approval key of this tenant'
  if (key.checkpoint_id !== null) return 'is bound to another checkpoint'
  return key.expires_at !== null && key.expires_at <= tx.now ? 'has expired' : null
}
