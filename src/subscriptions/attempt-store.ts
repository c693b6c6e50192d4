// Statements on the attempts of subscriptions: the last ones of each are kept, in a ring.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export const attempts_kept_max = limit(
  'subscriptions.attempts_kept',
  100,
  'rows',
  'The last attempts of a subscription that are kept and shown. Older ones are removed.',
)

export interface LoggedAttempt {
  number: number
  event_id: string
  event_seq: number
  event_type: string
  attempt: number
  started_at: Millis
  duration_ms: number
  status_code: number | null
  error: string | null
}

const PUT = sql(
  'subscriptions.put_attempt',
  `insert into subscription_attempts
     (tenant_id, subscription_id, slot, number, event_id, event_seq, event_type, attempt, started_at, duration_ms,
      status_code, error)
   values
     (:tenant_id, :id, :slot, :number, :event_id, :event_seq, :event_type, :attempt, :started_at, :duration_ms,
      :status_code, :error)
   on conflict (tenant_id, subscription_id, slot) do update
     set number = excluded.number, event_id = excluded.event_id, event_seq = excluded.event_seq,
         event_type = excluded.event_type, attempt = excluded.attempt, started_at = excluded.started_at,
         duration_ms = excluded.duration_ms, status_code = excluded.status_code, error = excluded.error`,
)

const KEPT = sql<LoggedAttempt>(
  'subscriptions.attempts',
  `select number, event_id, event_seq, event_type, attempt, started_at, duration_ms, status_code, error
     from subscription_attempts where tenant_id = :tenant_id and subscription_id = :id`,
)

const REMOVE = sql(
  'subscriptions.remove_attempts',
  'delete from subscription_attempts where tenant_id = :tenant_id and subscription_id = :id',
)

/** In the place of the oldest that is kept. */
export function put(tx: Tx, tenant_id: string, id: string, attempt: LoggedAttempt) {
  return tx.run(PUT, { tenant_id, id, slot: attempt.number % attempts_kept_max, ...attempt })
}

/** Those that are kept, newest first. */
export async function kept(q: Reader, tenant_id: string, id: string): Promise<LoggedAttempt[]> {
  const rows = await q.all(KEPT, { tenant_id, id })
  return rows.toSorted((one, other) => other.number - one.number)
}

export function remove(tx: Tx, tenant_id: string, id: string) {
  return tx.run(REMOVE, { tenant_id, id })
}

export const purge = purging('subscriptions.purge_attempts', {
  ...{ table: 'subscription_attempts', key: 'tenant_id, subscription_id, slot' },
})
