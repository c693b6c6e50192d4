// The workers of due jobs and the maintenance, which run in the background.

import type { Tracer } from '../base/tracer.ts'
import type { Sender } from '../callbacks/deliver.ts'
import type { Mailer } from '../callbacks/mail.ts'
import type { Config } from '../config.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { DbError, isLost } from '../db/errors.ts'
import { TracedDb } from '../db/traced.ts'
import { features, job_kinds } from '../features.ts'
import type { Log } from '../http/answers.ts'
import { JobTimer } from '../jobs/timer.ts'
import { JobWorker } from '../jobs/worker.ts'
import type { JournalKeeper } from '../journal/keeper.ts'
import { Maintenance } from '../maintenance/tick.ts'
import type { Measures } from '../metrics/service.ts'
import * as tenants from '../tenants/service.ts'
import { sendFor } from './traced.ts'

/** A fault of the code, at which tests fail. */
export const undeclared_message = 'a counter was raised that no feature declares'

export interface Background {
  db: Db
  log: Log
  internal: boolean
  /** True while nothing may be sent: the database is a restored copy that the operator has not released. */
  held: () => boolean
  /** Called before each look for due jobs. */
  beforeLook: (() => Promise<void>) | undefined
  onError(error: unknown): void
  measures: Measures | null
  /** Null: there are no spans. */
  tracer: Tracer | null
}

export function backgroundOf(
  config: Config,
  db: Db,
  log: Log,
  given: Pick<Background, 'held' | 'beforeLook' | 'measures' | 'tracer'>,
): Background {
  const { measures } = given
  return {
    db,
    log,
    internal: config.tick === 'internal',
    ...given,
    onError(error) {
      measures?.background_errors.add()
      const reported_before = isLost(error)
        ? db.is_away || db.trouble()?.kind === 'read_only'
        : error instanceof DbError && error.kind === 'damaged'
      if (!reported_before) log.error({ error: String(error) }, 'background work failed')
    },
  }
}

/** The ways out: HTTP, and mail. */
export interface Senders {
  sender: Sender
  mailer: Mailer
}

export function workersOf(
  { log, measures, tracer, ...given }: Background & { journal: Pick<JournalKeeper, 'tick'> },
  dependencies: Dependencies,
  senders: Senders,
) {
  const { db } = given
  const background = { ...given, clock: db.clock }
  const traced = tracer ? new TracedDb(db, tracer, null) : db
  const worker = new JobWorker({
    ...background,
    db: traced,
    dependencies,
    kinds: job_kinds,
    send: (job, request) => sendFor(job, request, senders, tracer),
    measures: measures?.jobs,
    onStragglers: (tenant_ids) => tenants.pauseStragglers(db, dependencies, tenant_ids),
  })
  const timer = new JobTimer({
    ...background,
    worker,
    pauseOrResumeStep: (after_tenant_id, goesOn) =>
      tenants.pauseOrResumeStep(db, dependencies, after_tenant_id, background.onError, goesOn),
  })
  const maintenance = new Maintenance({
    ...background,
    worker,
    timer,
    features,
    onSwept: measures ? (ms) => measures.sweep_seconds.observe(ms / 1_000) : undefined,
    onUndeclared: (counter) => log.error({ counter }, undeclared_message),
    onPurged: (tenant_id) => log.info({ tenant_id }, 'tenant purged'),
  })
  return { worker, timer, maintenance }
}
