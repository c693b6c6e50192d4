// Statements of the job of a schedule: the callback to send, and its outcome.

import { type Reader, sql, type Tx } from '../db/db.ts'
import type { LeasedJob } from '../jobs/job.ts'

const tried = `attempts = :attempts, last_error = :last_error, last_status_code = :last_status_code, updated_at = :now
    where tenant_id = :tenant_id and id = :id and status = 'pending'`

const LEFT = sql(
  'schedules.left_dead_letter',
  'update schedules set dead_letter_id = :dead_letter_id where tenant_id = :tenant_id and id = :id',
)

/** The schedule that an attempt was made for. */
export interface Attempted {
  /** Empty: none. */
  workflow_id: string
}

const FIRED = sql<Attempted>(
  'schedules.fired',
  `update schedules set status = 'fired', fired_at = :now, ${tried} returning workflow_id`,
)
const RETRYING = sql<Attempted>('schedules.retrying', `update schedules set ${tried} returning workflow_id`)
const WORKFLOW = sql<Attempted>(
  'schedules.workflow',
  'select workflow_id from schedules where tenant_id = :tenant_id and id = :id',
)

export interface Failed extends Attempted {
  id: string
  dlq_on_failure: number
  callback_url: string
  callback_payload: string
  agent_id: string
}

const FAILED = sql<Failed>(
  'schedules.failed',
  `update schedules set status = 'failed', ${tried}
   returning id, dlq_on_failure, callback_url, callback_payload, agent_id, workflow_id`,
)

const DELIVERABLE = sql<{ callback_url: string; callback_payload: string; workflow_id: string }>(
  'schedules.deliverable',
  `select s.callback_url, s.callback_payload, s.workflow_id
     from jobs j join schedules s on s.tenant_id = j.tenant_id and s.id = j.source_id
    where j.tenant_id = :tenant_id and j.kind = 'schedule' and j.source_id = :id and j.fence = :fence`,
)

export interface Tried {
  attempts: number
  last_error: string | null
  last_status_code: number | null
}

export function fired(tx: Tx, tenant_id: string, id: string, tried: Tried) {
  return tx.one(FIRED, { tenant_id, id, ...tried, now: tx.now })
}

export function retrying(tx: Tx, tenant_id: string, id: string, tried: Tried) {
  return tx.one(RETRYING, { tenant_id, id, ...tried, now: tx.now })
}

export function failed(tx: Tx, tenant_id: string, id: string, tried: Tried) {
  return tx.one(FAILED, { tenant_id, id, ...tried, now: tx.now })
}

/** Null when it is gone. */
export function attempted(q: Reader, tenant_id: string, id: string) {
  return q.one(WORKFLOW, { tenant_id, id })
}

/** Notes the dead letter that its failure left. */
export function leftDeadLetter(tx: Tx, tenant_id: string, id: string, dead_letter_id: string) {
  return tx.run(LEFT, { tenant_id, id, dead_letter_id })
}

/** The same under this lease; null when it was lost. */
export function deliverable(q: Reader, { tenant_id, source_id: id, fence }: LeasedJob) {
  return q.one(DELIVERABLE, { tenant_id, id, fence })
}
