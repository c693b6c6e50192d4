// All figures of one process that serves.

import { Counter, Histogram } from '../base/measures.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { DbMeasures } from '../db/measures.ts'
import { job_kinds } from '../features.ts'
import { RequestMeasures } from '../http/measures.ts'
import { JobMeasures } from '../jobs/measures.ts'
import { version } from '../version.ts'
import { databaseFigures } from './database.ts'
import { counter, type Figure, gauge, histogram, value } from './figure.ts'
import { jobFigures } from './jobs.ts'
import { readyFigure } from './ready.ts'
import { requestFigures } from './requests.ts'
import { processFigures } from './resources.ts'

const delay_bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const sweep_bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60]

/** The numbers that the parts of a process raise as they work. */
export class Measures {
  readonly requests = new RequestMeasures()
  readonly db = new DbMeasures()
  readonly jobs = new JobMeasures()
  readonly loop_delay_seconds = new Histogram(delay_bounds)
  readonly sweep_seconds = new Histogram(sweep_bounds)
  readonly background_errors = new Counter()
}

export interface Measured {
  measures: Measures
  db: Db
  dependencies: Dependencies
  /** When the service was opened. */
  started_at: number
  /** False where row-level security is not wanted. */
  secures_rows: boolean
  /** Jobs that are leased and not settled. */
  jobs_running: number
  /** Requests under way. */
  requests_running: number
}

export async function serviceFigures(measured: Measured): Promise<Figure[]> {
  const { measures, db, dependencies } = measured
  const { requests, jobs, loop_delay_seconds } = measures
  const now = db.clock.now()
  const due = { db, now, kinds: job_kinds, measures: jobs, running: measured.jobs_running }
  const [readiness, database, of_jobs] = await Promise.all([
    dependencies.service.readiness(),
    databaseFigures(db, measures.db, measured.secures_rows),
    jobFigures(due),
  ])
  return [
    gauge(
      'waystation_info',
      '1, with the version and the engine of the database.',
      [{ labels: { version, engine: db.engine }, value: 1 }],
      'max',
    ),
    readyFigure(readiness.reason === null),
    gauge(
      'waystation_quarantined',
      '1 while the database is a restored copy that was not released.',
      value(dependencies.service.quarantine.since === null ? 0 : 1),
      'max',
    ),
    ...requestFigures(requests),
    gauge('waystation_http_requests_in_flight', 'Requests under way.', value(measured.requests_running)),
    ...database,
    ...of_jobs,
    ...upkeepFigures(measures),
    ...sharedFigures(dependencies),
    histogram(
      'waystation_event_loop_delay_seconds',
      'Seconds by which a timer fired later than asked, 20 times a second, also of each while the loop stood still.',
      [{ measure: loop_delay_seconds }],
    ),
    ...processFigures(measured.started_at),
  ]
}

function upkeepFigures({ sweep_seconds, background_errors }: Measures): Figure[] {
  return [
    histogram('waystation_sweep_seconds', 'Seconds of one step of the sweep.', [{ measure: sweep_seconds }]),
    counter(
      'waystation_background_errors_total',
      'Failures of work beside requests: due jobs, sweeps, the journal.',
      value(background_errors.value),
    ),
  ]
}

function sharedFigures({ keys, shared }: Dependencies): Figure[] {
  const caches = { keys: keys.cache.size(), inbox_tokens: shared.tokens.size }
  return [
    gauge('waystation_waiters', 'Requests that wait for an event.', value(shared.notifier.waiting)),
    gauge(
      'waystation_cache_entries',
      'Entries of caches in memory.',
      Object.entries(caches).map(([cache, size]) => ({ labels: { cache }, value: size })),
    ),
    gauge(
      'waystation_memory_budget_used_bytes',
      'Bytes of request bodies and answers in memory (MEMORY_BUDGET).',
      value(shared.memory.bytes),
    ),
  ]
}
