// The sweep and the purge, over every feature.

import type { Clock, Millis } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { DueLists } from '../../src/db/sweep-tenants.ts'
import { features } from '../../src/features.ts'
import * as purging from '../../src/maintenance/purge.ts'
import * as sweeping from '../../src/maintenance/sweep.ts'

/** One step, and what it counted. Throws the first failure at its end. */
export async function sweep(db: Db, clock: Clock) {
  const counts: Record<string, number> = {}
  const errors: unknown[] = []
  const lists = new DueLists(clock, (error) => errors.push(error))
  const count = (counter: string, by: number) => {
    counts[counter] = (counts[counter] ?? 0) + by
  }
  const { more } = await sweeping.sweep({ db, clock, features, count, lists })
  if (errors.length > 0) throw errors[0]
  return { counts, more }
}

/** Throws the first failure, unless others are given. */
export function purgeStep(db: Db, now: Millis, lists = new DueLists(db.clock)) {
  return purging.purgeStep(db, now, features, lists)
}
