// Work that waits: when it is due, when it is tried again, when it is given up. No imports from db or http.

import { iso, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export type WorkKind = 'schedule' | 'timeout' | 'callback' | 'forward'

/** Attempts at 0, +30 s and +90 s, both counted from the first (CORE section 8). No jitter. */
const attempt_offsets_ms = [0, 30 * second_ms, 90 * second_ms]
export const attempts_max = limit(
  'jobs.attempts',
  attempt_offsets_ms.length,
  'attempts',
  'Attempts of one callback, at 0, 30 and 90 seconds. Then it has failed.',
)

/** A forward has one: its sender was promised nothing more. */
export function attemptsMax(kind: WorkKind): number {
  return kind === 'forward' ? 1 : attempts_max
}

/** Longer than an attempt may last: when it is over, whoever leased the work is taken for dead. */
export const lease_ms = limit(
  'jobs.lease',
  30 * second_ms,
  'milliseconds',
  'How long a node may work on a job. Past it another node may take the job.',
)
/** Leased work that has waited this long in its node is not sent any more: the lease might run out under way. */
export const stale_lease_ms = 15 * second_ms

export interface WorkKey {
  tenant_id: string
  kind: WorkKind
  source_id: string
}

/** Work that this node may do now, and no other while the lease holds. */
export interface Leased extends WorkKey {
  /** The webhook-id, the same on every retry. */
  event_id: string
  destination: string
  fence: number
  /** Which attempt this is, counted when it was leased. */
  attempts: number
  first_attempt_at: Millis
}

/** What came of an attempt, as it is kept and as callers see it. */
export interface Result {
  ok: boolean
  status_code: number | null
  /** A failure class of callbacks/deliver.ts, or `interrupted`: whoever tried did not live to tell. */
  error: string | null
  started_at: Millis
  duration_ms: number
}

/** When the attempt after this one is due, or null when this was the last. 410 Gone ends them at once. */
export function nextAttemptAt(
  leased: Pick<Leased, 'attempts' | 'first_attempt_at'>,
  result: Result,
): Millis | null {
  if (result.status_code === 410 || leased.attempts >= attempts_max) return null
  return leased.first_attempt_at + attempt_offsets_ms[leased.attempts]!
}

/** 1, 2 or 3. A lease past the last attempt only tells that nobody lived to end it. */
export function attemptNumber({ attempts }: Pick<Leased, 'attempts'>): number {
  return Math.min(attempts, attempts_max)
}

/** Scheme, host and port: what a receiver is limited and served by. */
export function destinationOf(url: string): string {
  return new URL(url).origin
}

/** The words of last_error: `status 503`, `timeout`, `refused`. */
export function errorText({ error, status_code }: Pick<Result, 'error' | 'status_code'>): string | null {
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
