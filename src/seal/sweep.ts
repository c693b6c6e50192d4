// Finds the journals that no node handles on its own: those whose checkpoint of the hour is due, and those that a node has
// numbered and not sealed. Their next step does the rest.

import { type Millis, second_ms } from '../base/clock.ts'
import { eventsKey } from '../contract/event.ts'
import type { Swept } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import * as store from './store.ts'

/** A node that numbers events seals them within a second, unless it has stopped. */
const left_behind_ms = 10 * second_ms

export async function sweep(
  db: Db,
  now: Millis,
  _: unknown,
  { rows_max }: { rows_max: number },
): Promise<Swept> {
  const due = [
    ...(await store.tenantsPending(db, now - left_behind_ms, rows_max)),
    ...(await store.tenantsWithCheckpoint(db, now, rows_max)),
  ]
  for (const { tenant_id } of due)
    await db.write(tenant_id, (tx) => Promise.resolve(tx.changed(eventsKey(tenant_id))))
  return { more: false }
}
