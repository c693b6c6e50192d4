// Timeouts and escalations of a tenant that is resumed.

import { limit } from '../base/limit.ts'
import { type Deadlines, movedOf } from '../contract/deadlines.ts'
import * as jobs from '../jobs/service.ts'
import * as store from './deadline-store.ts'
import { escalation_job } from './escalation-service.ts'
import { timeout_job } from './jobs.ts'

const bytes_max = limit(
  'checkpoints.move_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of checkpoints whose timeouts one step of a resume moves.',
)

/** A checkpoint's timeout and the steps of its escalation, which are counted from its creation, with their jobs. */
export const timeouts: Deadlines = {
  name: 'checkpoints',
  async move(tx, move, after_id, rows_max) {
    const rows = await store.move(tx, move, after_id, rows_max, bytes_max)
    const moved = movedOf(rows, rows_max, bytes_max)
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
