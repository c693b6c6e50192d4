// A key may end while its request waits for others.

import { ApiError } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Tx } from '../db/db.ts'
import * as store from './store.ts'

/** The key that asks has not ended. Throws UNAUTHORIZED. */
export async function requireHeld(tx: Tx, { tenant_id, key_hash }: AdminCaller): Promise<void> {
  if (key_hash === undefined || (await store.find(tx, tenant_id, key_hash, tx.now))) return
  throw new ApiError('UNAUTHORIZED')
}
