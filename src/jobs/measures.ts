// Jobs as numbers: attempts and their outcomes, how late they began, and leases that expired.

import type { Millis } from '../base/clock.ts'
import { Counter, Family, Histogram } from '../base/measures.ts'
import type { AttemptResult, LeasedJob } from './job.ts'

const late_bounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]
const attempt_bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export class JobMeasures {
  /** By kind and outcome: `ok`, or a failure class. */
  readonly attempts = new Family(() => new Counter())
  /** By kind. */
  readonly attempt_seconds = new Family(() => new Histogram(attempt_bounds))
  /** By kind: from the time when a job was due to its start. */
  readonly start_delay_seconds = new Family(() => new Histogram(late_bounds))
  /** By kind: a job was leased again because the node that had leased it did not settle it. */
  readonly leases_expired = new Family(() => new Counter())

  leased(jobs: readonly LeasedJob[]): void {
    for (const { kind, lease_expired } of jobs) if (lease_expired) this.leases_expired.of(kind).add()
  }

  /** A lease alone begins nothing: it may be released with nothing sent, and the job is leased again. */
  begun({ kind, due_at }: LeasedJob, at: Millis): void {
    this.start_delay_seconds.of(kind).observe(Math.max(0, at - (due_at ?? at)) / 1_000)
  }

  ended(kind: string, { sequence, ...last }: AttemptResult): void {
    for (const { ok, error, duration_ms } of sequence?.results ?? [last]) {
      this.attempts.of(kind, ok ? 'ok' : (error ?? 'failed')).add()
      this.attempt_seconds.of(kind).observe(duration_ms / 1_000)
    }
  }
}
