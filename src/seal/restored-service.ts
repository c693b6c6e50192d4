// The mark that a restore from a backup leaves in the journal of a tenant.

import { isoOrNull, type Millis } from '../base/clock.ts'
import { operator_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'

export interface Restored {
  /** The epoch that begins. */
  epoch: number
  backup_at: Millis | null
}

export function markRestored(tx: Tx, tenant_id: string, { epoch, backup_at }: Restored) {
  return journal.emit(tx, events['seal.restored'], {
    ...{ tenant_id, cause: operator_cause, subject_id: String(epoch) },
    data: { epoch, backup_at: isoOrNull(backup_at) },
  })
}
