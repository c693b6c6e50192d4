// A job: when it is due, when it is tried again, when it is given up. No imports from db or http.

import { iso, last_instant_ms, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Sendable } from '../callbacks/attempt.ts'

/** Attempts at 0, +30 s and +90 s, both counted from the first. No jitter. */
export const attempt_offsets_ms: readonly number[] = [0, 30 * second_ms, 90 * second_ms]
export const attempts_max = limit(
  'jobs.attempts',
  attempt_offsets_ms.length,
  'attempts',
  'Attempts of one callback, at 0, 30 and 90 seconds. Then it has failed.',
)

/** Longer than an attempt may last: once it is over, the node that leased the job is presumed dead. */
export const lease_ms = limit(
  'jobs.lease',
  30 * second_ms,
  'milliseconds',
  'How long a node may work on a job. Past it another node may take the job.',
)
/** A job that has waited this long under its lease is not sent any more: the lease might end during the attempt. */
export const stale_lease_ms = 15 * second_ms
/** The same for an email, whose attempt may take twice as long. */
export const stale_mail_ms = 5 * second_ms

/** When an idle job is due: it stays, although it has nothing to do, until it is woken. */
export const idle_at: Millis = last_instant_ms

export interface JobKey {
  tenant_id: string
  /** The name of its kind. */
  kind: string
  source_id: string
}

/** A job that this node may run now, and no other while the lease holds. */
export interface LeasedJob extends JobKey {
  /** The webhook-id, the same on every retry. */
  event_id: string
  destination: string
  /** The fencing token of the lease. */
  fence: number
  /** The number of this attempt, counted when it was leased. */
  attempts: number
  first_attempt_at: Millis
  /** The trace that it belongs to; null for none. */
  traceparent?: string | null
  /** When it was due. */
  due_at?: Millis
  /** True when the lease before this one was not settled: its node may have died. */
  lease_expired?: boolean
  /** True when its kind waits for no tick. */
  starts_at_once?: boolean
}

/** The outcome of an attempt, as it is stored and as callers see it. */
export interface AttemptResult {
  ok: boolean
  status_code: number | null
  /** A failure class of callbacks/deliver.ts, or `interrupted`: the node died before it wrote the outcome. */
  error: string | null
  started_at: Millis
  duration_ms: number
  /** The sequence whose last request it was; absent for a request alone. */
  sequence?: Sequence
}

/** Requests that are sent one after the other under one lease, as long as each is accepted. */
export interface Sequence {
  /** The request that follows; null when none does, or when the lease is lost. The first is never null. */
  next(): Promise<Sendable | null>
  /** The outcomes so far, one for each request that was sent. */
  results: AttemptResult[]
}

/** When the attempt after this one is due, or null when this was the last. 410 Gone ends them at once. */
export function nextAttemptAt(
  job: Pick<LeasedJob, 'attempts' | 'first_attempt_at'>,
  result: AttemptResult,
  kind_attempts_max = attempts_max,
  offsets_ms = attempt_offsets_ms,
): Millis | null {
  if (result.ok || result.status_code === 410 || job.attempts >= kind_attempts_max) return null
  return job.first_attempt_at + offsets_ms[job.attempts]!
}

/** 1, 2 or 3. A lease past the last attempt only says that nobody wrote the outcome of that one. */
export function attemptNumber({ attempts }: Pick<LeasedJob, 'attempts'>): number {
  return Math.min(attempts, attempts_max)
}

/** Scheme, host and port: the key of a receiver's limits. */
export function destinationOf(url: string): string {
  return new URL(url).origin
}

/** The words of last_error: `status 503`, `timeout`, `refused`. */
export function errorText({
  error,
  status_code,
}: Pick<AttemptResult, 'error' | 'status_code'>): string | null {
  return error === 'status' ? `status ${status_code}` : error
}

export interface AttemptRow {
  seq: number
  event_id: string
  attempt: number
  started_at: Millis
  duration_ms: number
  status_code: number | null
  error: string | null
}

/** An attempt as the API shows it. */
export function attemptOf(row: AttemptRow) {
  return {
    attempt: row.attempt,
    webhook_id: row.event_id,
    started_at: iso(row.started_at),
    duration_ms: row.duration_ms,
    status_code: row.status_code,
    error: row.error,
  }
}
