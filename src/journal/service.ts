// The journal: an event for each change, in its transaction, and its number afterwards.

import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { Dependencies, Journal } from '../contract/dependencies.ts'
import { type Cause, dataText, type EventData, type EventType, eventsKey } from '../contract/event.ts'
import type { Follows } from '../contract/feature.ts'
import type { JournalReader } from '../contract/tail.ts'
import type { Awaitable, Db, Reader, Tx } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import * as pages from './page-store.ts'
import * as store from './store.ts'

export const find = pages.find
export const lastSeq = store.lastSeq
export const lockHead = store.lockHead
export const page = pages.page

interface Happened<D> {
  tenant_id: string
  cause: Cause
  subject_id: string
  /**
   * That of the thing itself. Null, empty or absent: that of the cause, which does not wait for it, since its end may come
   * from another request.
   */
  workflow_id?: string | null
  /** The agent whose private namespace it is about. */
  private_to?: string | null
  /** Where a change does not change the failures of its workflow as its type says. */
  failing?: -1 | 0 | 1
  data: D
}

/** Leaves an event in the transaction of the change. No other row is changed, and no other transaction waits for it. */
export function emit<T extends EventType>(
  tx: Tx,
  type: T,
  { tenant_id, cause, subject_id, workflow_id, private_to = null, failing, data }: Happened<EventData<T>>,
): Awaitable<unknown> {
  tx.changed(eventsKey(tenant_id))
  return store.insert(tx, tenant_id, {
    id: newId('evt', tx.now),
    type: type.name,
    subject_kind: type.subject,
    subject_id,
    workflow_id: workflow_id || cause.workflow_id || null,
    private_to,
    agent_id: cause.agent_id,
    actor: cause.actor,
    request_id: cause.request_id,
    at: tx.now,
    // Only of a thing that belongs to the workflow: the event that takes it back is in the workflow of the thing as well.
    waiting: workflow_id ? type.waiting : 0,
    failing: workflow_id ? (failing ?? type.failing) : 0,
    data: dataText(type, data as Record<string, unknown>),
  })
}

const numbered_max = limit(
  'journal.numbered',
  500,
  'rows',
  'Events that get their numbers in one transaction, so that requests wait for no more than these.',
)

/**
 * Gives numbers to all events of the tenant that were committed before the call. A transaction that commits later gets later
 * numbers, so that no event ever appears behind a reader.
 */
export async function number(
  db: Db,
  dependencies: Dependencies,
  follows: readonly Follows[],
  tenant_id: string,
): Promise<void> {
  if (!(await store.anyUnnumbered(db, tenant_id))) return
  let numbered: number
  do {
    numbered = await db.write(tenant_id, async (tx) => {
      const { after, count } = await store.number(tx, tenant_id, numbered_max)
      const events = () => pages.page(tx, tenant_id, {}, { after, rows_max: count })
      if (count > 0)
        for (const follow of follows) await follow.numbered?.(tx, dependencies, tenant_id, events)
      return count
    })
  } while (numbered === numbered_max)
}

export const tenants_a_look_max = limit(
  'journal.tenants_looked_at',
  50,
  'entries',
  'Tenants with events without a number that one look finds. The next look continues behind them.',
)

/** Tenants behind this one with events that have no number yet, which a node left behind; fewer than the most at the end. */
export async function unnumberedTenants(q: Reader, after_tenant_id: string): Promise<string[]> {
  const found: string[] = []
  let tenant_id = await store.nextUnnumberedTenant(q, after_tenant_id)
  while (tenant_id !== null) {
    found.push(tenant_id)
    if (found.length === tenants_a_look_max) return found
    tenant_id = await store.nextUnnumberedTenant(q, tenant_id)
  }
  return found
}

/** The journal as waiting requests read it. */
export function journalReader(db: Db, journal: Journal): JournalReader {
  return {
    number: (tenant_id) => numberIfPossible(journal, tenant_id),
    lastSeq: (tenant_id) => store.lastSeq(db, tenant_id),
    after: (tenant_id, after, rows_max) => pages.page(db, tenant_id, {}, { after, rows_max }),
  }
}

/**
 * A database that takes no writes now still shows the events that have numbers; the others get theirs later. False when they
 * have none yet.
 */
export async function numberIfPossible(journal: Journal, tenant_id: string): Promise<boolean> {
  try {
    await journal.number(tenant_id)
    return true
  } catch (error) {
    if (!(error instanceof DbError)) throw error
    return false
  }
}
