// A change of what a subscription takes. Before it the position passes over what the selection does not take: otherwise the new one
// would take it or not by how far the old one was read.

import type { Dependencies } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import * as deliveries from './delivery-store.ts'
import { read } from './service.ts'
import { isIdle } from './shapes.ts'
import type { SubscriptionRow } from './subscription.ts'
import { passedUpTo } from './waiting-service.ts'

export interface Passed {
  row: SubscriptionRow
  up_to: number
}

/** How far it takes nothing, read while others may write: it may be most of the journal. Throws SUBSCRIPTION_NOT_FOUND. */
export async function passed(
  db: Db,
  { journal, event_types }: Dependencies,
  tenant_id: string,
  id: string,
): Promise<Passed> {
  // Events that were committed before get their numbers now: what they are taken by is not changed.
  await journal.number(tenant_id)
  const row = await read(db, tenant_id, id)
  const up_to = isIdle(row) ? row.position : await passedUpTo(db, tenant_id, row, event_types)
  return { row, up_to }
}

/** Goes on from there, unless it was changed or set back meanwhile. The head is locked. */
export async function passOver(
  tx: Tx,
  { event_types }: Dependencies,
  tenant_id: string,
  now: SubscriptionRow,
  { row, up_to }: Passed,
): Promise<void> {
  const holds = now.types === row.types && now.workflow_id === row.workflow_id && now.position >= row.position
  const position = holds ? Math.max(now.position, up_to) : now.position
  const reached = await passedUpTo(tx, tenant_id, { ...now, position }, event_types)
  await deliveries.advance(tx, tenant_id, now.id, reached)
}
