// The surroundings of a worker: the database, the kinds of jobs it runs, and who sends what they make.

import type { Clock } from '../base/clock.ts'
import type { Outcome, Sendable } from '../callbacks/attempt.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import type { LeasedJob } from './job.ts'
import type { JobKind } from './kind.ts'
import type { JobMeasures } from './measures.ts'

export interface WorkerOptions {
  db: Db
  clock: Clock
  dependencies: Dependencies
  kinds: readonly JobKind[]
  /** True when due jobs start on their own (TICK=internal); otherwise only kinds that start at once do. */
  internal: boolean
  /** True while nothing may start at all. Absent: never. */
  held?: () => boolean
  /** Called before each look for due jobs. */
  beforeLook?: (() => Promise<void>) | undefined
  /** By how much its leases raise the fencing tokens of jobs. Absent: at random, so that nodes differ (undo-store.ts). */
  fence_step?: number
  send(job: LeasedJob, request: Sendable): Promise<Outcome>
  /** Due jobs of these tenants were found, though they are deleted or frozen: they are to be paused. */
  onStragglers(tenant_ids: readonly string[]): Promise<void>
  onError: (error: unknown) => void
  measures?: JobMeasures | undefined
}
