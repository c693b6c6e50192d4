// The sweep and the purge, over every feature.

import type { Clock, Millis } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { features } from '../../src/features.ts'
import * as purging from '../../src/maintenance/purge.ts'
import * as sweeping from '../../src/maintenance/sweep.ts'

export function sweep(db: Db, clock: Clock) {
  return sweeping.sweep(db, clock, features)
}

export function purgeStep(db: Db, now: Millis) {
  return purging.purgeStep(db, now, features)
}
