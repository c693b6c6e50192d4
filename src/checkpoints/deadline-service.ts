// Timeouts and escalations of a tenant that is resumed.

import type { Deadlines } from '../contract/deadlines.ts'
import * as jobs from '../jobs/service.ts'
import * as store from './deadline-store.ts'
import { escalation_job } from './escalation-service.ts'
import { timeout_job } from './jobs.ts'

/** A checkpoint's timeout and the steps of its escalation, which are counted from its creation, with their jobs. */
export const timeouts: Deadlines = {
  name: 'checkpoints',
  async move(tx, move, after_id, rows_max) {
    const moved = await store.move(tx, move, after_id, rows_max)
    const { last_id } = moved
    if (last_id !== null) {
      const { tenant_id, frozen_at: due_after, frozen_ms: by_ms } = move
      const due = { tenant_id, after_id, last_id, due_after, by_ms }
      await jobs.moveDue(tx, { ...due, kind: timeout_job })
      await jobs.moveDue(tx, { ...due, kind: escalation_job })
    }
    return moved
  },
}
