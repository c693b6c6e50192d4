// The sweep and the purge, over every feature.

import type { Clock, Millis } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { features } from '../../src/features.ts'
import * as purging from '../../src/maintenance/purge.ts'
import * as sweeping from '../../src/maintenance/sweep.ts'

/** One step, and what it counted. */
export async function sweep(db: Db, clock: Clock) {
  const counts: Record<string, number> = {}
  const { more } = await sweeping.sweep(db, clock, features, (counter, by) => {
    counts[counter] = (counts[counter] ?? 0) + by
  })
  return { counts, more }
}

/** Throws the first failure, unless it is given to `onError`. */
export function purgeStep(
  db: Db,
  now: Millis,
  onError = (error: unknown): void => {
    throw error
  },
) {
  return purging.purgeStep(db, now, features, onError)
}
