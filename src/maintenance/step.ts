// One step of sweep and purge, over every feature.

import type { Feature } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import type { Maintenance } from '../jobs/timer.ts'
import { purgeStep } from './purge.ts'
import { startSweeper, sweep } from './sweep.ts'

export function maintenanceOf(
  db: Db,
  features: readonly Feature[],
  onPurged: (tenant_id: string) => void,
): Maintenance {
  return {
    start: startSweeper,
    async step() {
      const swept = await sweep(db, db.clock, features)
      const purge = await purgeStep(db, db.clock.now(), features)
      for (const tenant_id of purge.purged) onPurged(tenant_id)
      return {
        counts: swept.counts,
        purged: purge.purged.length,
        more: swept.more || purge.more,
      }
    },
  }
}
