// Statements that change a subscription: its settings, and where it continues.

import { sql, type Tx } from '../db/db.ts'
import { here } from './store.ts'
import type { PauseReason, SubscriptionStatus } from './subscription.ts'

// A text that is left out stays; null for workflow_id is a value of its own.
const UPDATE = sql(
  'subscriptions.update',
  `update subscriptions
      set name = coalesce(:name, name), types = coalesce(:types, types),
          workflow_id = case when :sets_workflow = 1 then :workflow_id else workflow_id end,
          target = coalesce(:target, target), shown = coalesce(:shown, shown),
          status = coalesce(:status, status),
          paused_reason = case when :sets_status = 1 then :paused_reason else paused_reason end,
          paused_by_admin = coalesce(:paused_by_admin, paused_by_admin),
          attempts = 0, updated_at = :now
    where ${here}`,
)

const REPLAY = sql(
  'subscriptions.replay',
  `update subscriptions set position = :position, attempts = 0, updated_at = :now where ${here}`,
)

export interface Change {
  name?: string
  types?: string
  workflow_id?: string | null
  target?: string
  shown?: string
  status?: SubscriptionStatus
  paused_reason?: PauseReason | null
  paused_by_admin?: boolean
}

/** Fields that are left out stay; the attempts of the event that is tried begin again. */
export function update(tx: Tx, tenant_id: string, id: string, change: Change) {
  const { workflow_id, status, paused_by_admin } = change
  return tx.run(UPDATE, {
    ...{ ...same, ...change, tenant_id, id, now: tx.now },
    sets_workflow: workflow_id === undefined ? 0 : 1,
    sets_status: status === undefined ? 0 : 1,
    paused_by_admin: paused_by_admin === undefined ? null : Number(paused_by_admin),
  })
}

const same = {
  ...{ name: null, types: null, workflow_id: null, target: null, shown: null },
  ...{ status: null, paused_reason: null },
}

/** The next event is the first after this number. */
export function replay(tx: Tx, tenant_id: string, id: string, position: number) {
  return tx.run(REPLAY, { tenant_id, id, position, now: tx.now })
}
