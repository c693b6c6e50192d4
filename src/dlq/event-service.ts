// Events of dead letters that several verbs leave.

import { iso, type Millis } from '../base/clock.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { type Cause, causeOf, type EventData, type EventType, service_cause } from '../contract/event.ts'
import type { Awaitable, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import { type DlqStatus, type ItemRow, isOpen } from './item.ts'
import type { OperationRow } from './operation.ts'

type Named = Pick<ItemRow, 'id' | 'workflow_id'>

/** The members that every event of an item has. */
export function aboutOf(tenant_id: string, cause: Cause, { id, workflow_id }: Named) {
  return { tenant_id, cause, subject_id: id, workflow_id }
}

/** Leaves the event of an agent's change of an item. `status`: the one before, where the change settles or removes it. */
export function changed<T extends EventType>(
  tx: Tx,
  caller: AgentCaller,
  type: T,
  { item, data, status }: { item: Named; data: EventData<T>; status?: DlqStatus },
) {
  const about = aboutOf(caller.tenant_id, causeOf(caller), item)
  return journal.emit(tx, type, { ...about, data, ...(status && { failing: failingOf(status) }) })
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
export function storedLockExpired(
  tx: Tx,
  tenant_id: string,
  item: Named & StoredLock,
  at: Millis,
): Awaitable<unknown> {
  const { status, locked_until } = item
  const is_expired = status === 'claimed' && locked_until !== null && locked_until <= at
  return lockExpired(tx, tenant_id, item, is_expired ? locked_until : null)
}

type StoredLock = Pick<ItemRow, 'status' | 'locked_until'>

/** How an item that is settled or removed changes the failures of its workflow: an ended one counts no more. */
export function failingOf(status: DlqStatus): -1 | 0 {
  return isOpen(status) ? -1 : 0
}

/** Of an operation that has taken all its items. */
export function succeeded(
  tx: Tx,
  about: { tenant_id: string; cause: Cause; subject_id: string },
  { done, failed, skipped }: Pick<OperationRow, 'done' | 'failed' | 'skipped'>,
) {
  return journal.emit(tx, events['dlq_operation.succeeded'], { ...about, data: { done, failed, skipped } })
}
