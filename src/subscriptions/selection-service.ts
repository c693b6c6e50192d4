// Changes which events a subscription takes. First the position moves past the events that the old selection skips: otherwise it
// would depend on how far these had been read which of them the new selection takes.

import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { nextTurn } from '../base/next-turn.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import * as deliveries from './delivery-store.ts'
import { read } from './service.ts'
import { isIdle } from './shapes.ts'
import type { SubscriptionRow } from './subscription.ts'
import { passedFrom } from './waiting-service.ts'

const looks_max = limit(
  'subscriptions.looks_before_change',
  200,
  'attempts',
  'Searches of a `PATCH` with `types` or `workflow_id` for the first event that waits. Past it 503; the next such `PATCH` continues.',
)

/**
 * Moves the position past events that the subscription skips, which may be most of the journal, while others are served. Throws
 * SUBSCRIPTION_NOT_FOUND, and UNAVAILABLE while more may be left; the next call continues there.
 */
export async function pass(
  db: Db,
  { journal, event_types }: Dependencies,
  tenant_id: string,
  id: string,
): Promise<void> {
  // Events that were committed before get their numbers now: the old selection decides on them.
  await journal.number(tenant_id)
  const row = await read(db, tenant_id, id)
  if (isIdle(row)) return
  let { position } = row
  let more = true
  for (let look = 0; more && look < looks_max; look++) {
    if (look > 0) await nextTurn()
    ;({ position, more } = await passedFrom(db, tenant_id, { ...row, position }, event_types))
  }
  if (position > row.position)
    await db.write(tenant_id, (tx) => deliveries.passOver(tx, tenant_id, row, position))
  if (more) throw thereIsMore()
}

/** The same for events that came since, or are left because the subscription was changed or replayed meanwhile. The head is locked. */
export async function passRest(
  tx: Tx,
  { event_types }: Dependencies,
  tenant_id: string,
  row: SubscriptionRow,
): Promise<void> {
  const { position, more } = await passedFrom(tx, tenant_id, row, event_types)
  if (more) throw thereIsMore()
  await deliveries.advance(tx, tenant_id, row.id, position)
}

function thereIsMore(): ApiError {
  return new ApiError('UNAVAILABLE', { retry_after_seconds: 1 })
}
