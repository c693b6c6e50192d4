// Events of dead letters that several verbs leave.

import { iso, type Millis } from '../base/clock.ts'
import { type Cause, service_cause } from '../contract/event.ts'
import type { Awaitable, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import { type DlqStatus, type ItemRow, isOpen } from './item.ts'

type Named = Pick<ItemRow, 'id' | 'workflow_id'>

/** What every event of an item says. */
export function aboutOf(tenant_id: string, cause: Cause, { id, workflow_id }: Named) {
  return { tenant_id, cause, subject_id: id, workflow_id }
}

/** For a change that finds a lock that has expired and ends it. Null: there was none. */
export function lockExpired(
  tx: Tx,
  tenant_id: string,
  item: Named,
  lock_expired_at: Millis | null,
): Awaitable<unknown> {
  if (lock_expired_at === null) return
  const data = { locked_until: iso(lock_expired_at) }
  return journal.emit(tx, events['dlq.lock_expired'], { ...aboutOf(tenant_id, service_cause, item), data })
}

/** The same for an item as it is stored, before it is changed. */
export function storedLockExpired(tx: Tx, tenant_id: string, item: Named & StoredLock): Awaitable<unknown> {
  const { status, locked_until } = item
  const is_expired = status === 'claimed' && locked_until !== null && locked_until <= tx.now
  return lockExpired(tx, tenant_id, item, is_expired ? locked_until : null)
}

type StoredLock = Pick<ItemRow, 'status' | 'locked_until'>

/** How an item that is settled or removed changes the failures of its workflow: an ended one counts no more. */
export function failingOf(status: DlqStatus): -1 | 0 {
  return isOpen(status) ? -1 : 0
}
