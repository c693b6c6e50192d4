// Events of effects that several verbs leave.

import { iso } from '../base/clock.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Cause } from '../contract/event.ts'
import { waitKey } from '../contract/wait.ts'
import type { Tx } from '../db/db.ts'
import type { EffectRow } from './effect.ts'

export function aboutOf(tenant_id: string, cause: Cause, { id, workflow_id }: EffectRow) {
  return { tenant_id, cause, subject_id: id, workflow_id }
}

/** The members that every event of an effect has. */
export function dataOf({ type, key, payload_hash, effective_hash, fence }: EffectRow) {
  return { type, key, payload_hash, effective_hash, fence }
}

/** The same for one that has a lease. */
export function leaseDataOf(row: EffectRow) {
  return { ...dataOf(row), lease_until: iso(row.lease_until!), checkpoint_id: row.checkpoint_id }
}

/** Requests that wait for this effect look again. */
export function notify(
  tx: Tx,
  { shared }: { shared: Pick<Dependencies['shared'], 'notifier'> },
  tenant_id: string,
  id: string,
): void {
  tx.afterCommit(() => shared.notifier.notify(waitKey(tenant_id, id)))
}
