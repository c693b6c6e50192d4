// The verb that comments on a checkpoint.

import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { Caller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { aboutOf } from './about.ts'
import type { CheckpointRow } from './checkpoint.ts'
import * as comments from './comment-store.ts'
import { events } from './events.ts'
import { readAs } from './service.ts'
import { isApprover, voterOf } from './steering.ts'

const comments_max = limit('checkpoints.comments', 200, 'entries', 'Comments on a checkpoint. Past it 409.')

/**
 * By the agent that asked, an approver or the admin. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN for others, NOT_AN_APPROVER,
 * TOO_MANY_COMMENTS, QUOTA_EXCEEDED.
 */
export async function comment(
  tx: Tx,
  caller: Caller,
  plans: Plans,
  checkpoint_id: string,
  text: string,
): Promise<comments.Comment> {
  const { tenant_id } = caller
  const row = await comments.count(tx, tenant_id, checkpoint_id, comments_max)
  if (!row) {
    await readAs(tx, caller, checkpoint_id)
    throw new ApiError('TOO_MANY_COMMENTS')
  }
  requireParty(caller, row)
  const author = caller.kind === 'agent' ? caller.agent_id : voterOf(caller)
  const author_label = caller.kind === 'approval' ? caller.label : null
  const made = { id: newId('cmt', tx.now), author, author_label, text }
  quotas.reserveBytes(tx, caller, plans, rowBytes(text))
  await comments.insert(tx, tenant_id, checkpoint_id, made)
  await journal.emit(tx, events['checkpoint.commented'], {
    ...aboutOf(tenant_id, row, causeOf(caller)),
    data: { comment_id: made.id },
  })
  return { ...made, at: tx.now }
}

/** Throws FORBIDDEN for another agent and for a key of another checkpoint, NOT_AN_APPROVER. */
function requireParty(caller: Caller, row: CheckpointRow): void {
  if (caller.kind === 'agent' && caller.agent_id !== row.agent_id) throw new ApiError('FORBIDDEN')
  if (caller.kind !== 'approval') return
  if (caller.checkpoint_id !== null && caller.checkpoint_id !== row.id) throw new ApiError('FORBIDDEN')
  if (!isApprover(row, voterOf(caller))) throw new ApiError('NOT_AN_APPROVER')
}
