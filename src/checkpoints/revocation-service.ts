// The revocation of an approval: what may still start under it may not any more.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller, ApprovalCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { aboutOf } from './about.ts'
import { type CheckpointRow, isPermitOver } from './checkpoint.ts'
import { events } from './events.ts'
import { read, readAs } from './service.ts'
import * as settlements from './settlement-store.ts'
import { isApprover, voterOf } from './steering.ts'

/**
 * Ends the approval of an effect now. A repeat changes nothing. The admin may always: it only stops, and the keys of the
 * approvers may be gone. Throws CHECKPOINT_NOT_FOUND, FORBIDDEN for a key bound to another one, NOT_AN_APPROVER, INVALID_STATE
 * unless an effect was approved.
 */
export function revoke(
  db: Db,
  caller: AdminCaller | ApprovalCaller,
  dependencies: Dependencies,
  id: string,
): Promise<CheckpointRow> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const row = await readAs(tx, caller, id)
    if (caller.kind !== 'admin' && !isApprover(row, voterOf(caller))) throw new ApiError('NOT_AN_APPROVER')
    const revoked = await settlements.revoke(tx, tenant_id, id)
    if (!revoked) {
      const found = await read(tx, tenant_id, id)
      if (!isPermitOver(found, tx.now))
        throw new ApiError('INVALID_STATE', { details: { status: found.status } })
      return found
    }
    const cause = causeOf(caller)
    await journal.emit(tx, events['checkpoint.revoked'], { ...aboutOf(tenant_id, revoked, cause), data: {} })
    for (const decides of dependencies.decides)
      await decides(tx, dependencies, { tenant_id, checkpoint: { ...revoked, status: 'revoked' }, cause })
    return revoked
  })
}
