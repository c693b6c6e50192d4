// Jobs: those that are due, how late they begin, and how their attempts end.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import type { JobMeasures } from '../jobs/measures.ts'
import { countDue } from '../jobs/service.ts'
import { counter, counts, type Figure, gauge, histogram, labelled, value } from './figure.ts'

const count_ms_max = limit(
  'metrics.count_ms',
  2_000,
  'milliseconds',
  'How long the database may take to count due jobs for the metrics. Past it the answer is without them.',
)

export interface JobFacts {
  db: Db
  now: Millis
  kinds: readonly { name: string }[]
  measures: JobMeasures
  /** Jobs that this process has leased and not settled. */
  running: number
}

export async function jobFigures({ db, now, kinds, measures, running }: JobFacts): Promise<Figure[]> {
  const { attempts, attempt_seconds, start_delay_seconds, leases_expired } = measures
  for (const { name } of kinds) leases_expired.of(name) // from 0 on, so that the first is an increase
  return [
    ...(await dueFigures(db, now, kinds)),
    gauge('waystation_jobs_running', 'Jobs that are leased and not settled.', value(running)),
    counter(
      'waystation_attempts_total',
      'Attempts that ended, by kind of job and outcome: ok, or a class of failures.',
      counts(['kind', 'outcome'], attempts),
    ),
    histogram(
      'waystation_attempt_duration_seconds',
      'Seconds of an attempt, until the header block of the answer was in.',
      labelled(['kind'], attempt_seconds),
    ),
    histogram(
      'waystation_job_start_delay_seconds',
      'Seconds from the time when a job was due to the time when a node began it.',
      labelled(['kind'], start_delay_seconds),
    ),
    counter(
      'waystation_leases_expired_total',
      'Jobs that were leased again because the node that had leased them did not settle them.',
      counts(['kind'], leases_expired),
    ),
  ]
}

/** Every process of a service sees the same jobs. */
async function dueFigures(db: Db, now: Millis, kinds: JobFacts['kinds']): Promise<Figure[]> {
  const due = await countDue(db, now, count_ms_max).catch(() => null)
  const of = new Map(due?.map((row) => [row.kind, row]))
  const oldest_at = Math.min(now, ...(due ?? []).map((row) => row.oldest_at))
  return [
    gauge(
      'waystation_jobs_due',
      'Jobs that are due and not leased, by kind, up to 10,000 of all kinds.',
      due ? kinds.map(({ name }) => ({ labels: { kind: name }, value: of.get(name)?.due ?? 0 })) : [],
      'max',
    ),
    gauge(
      'waystation_jobs_late_seconds',
      'Seconds for which the job that has been due for longest has been due.',
      due ? value((now - oldest_at) / 1_000) : [],
      'max',
    ),
  ]
}
