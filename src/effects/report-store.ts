// Statements by which an effect is reported, or resolved.

import { sql, type Tx, writesRow } from '../db/db.ts'
import type { WholeEffect } from './effect.ts'
import { columns, ended, from, held, here, no_lease, startable } from './store.ts'

// A lease that was settled has no end any more; one that ran out has it in the past, and its holder may still report. While a
// person is asked what became of it, the question is withdrawn first: a decision takes the rows in the same order.
const reported = `${held} and lease_until is not null and question_id is null`
// A report counts from what was read: when the row has changed meanwhile, it is read again.
const as_read = 'status = :status_before and fence = :fence_before'

const succeeded = `status = 'succeeded', result = :result, kept_bytes = kept_bytes + :more_bytes, lease_until = null, ${ended}`

const SUCCEED = writesRow<WholeEffect>(
  'effects.succeed',
  `update effects set ${succeeded} where ${here} and status = 'running' and ${reported}`,
  columns,
  `effects where ${here}`,
)

const SUCCEED_LATE = sql<WholeEffect>(
  'effects.succeed_late',
  `update effects set ${succeeded}
    where ${here} and ${from('succeed')} and ${as_read} and ${reported}
   returning ${columns}`,
)

const FAIL = sql<WholeEffect>(
  'effects.fail',
  `update effects set status = 'failed', error = :error, lease_until = null, ${ended}
    where ${here} and ${from('fail')} and ${as_read} and ${reported}
   returning ${columns}`,
)

const RELEASE = sql<WholeEffect>(
  'effects.release',
  `update effects set status = ${startable}, error = :error, lease_until = null, held = 0, updated_at = :now
    where ${here} and ${from('fail_retry', 'fail_retry_with_permit')} and ${as_read} and ${reported}
   returning ${columns}`,
)

// Its bytes are counted from the error that was read: a holder may report one that leaves the status as it is.
const RESOLVE = sql<WholeEffect>(
  'effects.resolve',
  `update effects
      set status = :status, result = :result, error = :error, kept_bytes = kept_bytes + :more_bytes,
          resolved_by = :resolved_by, ${no_lease}, ${ended}
    where ${here} and ${from('resolve_succeeded', 'resolve_failed')} and ${as_read}
      and error is not distinct from :error_before and question_id is null
   returning ${columns}`,
)

const RESOLVE_RETRY = sql<WholeEffect>(
  'effects.resolve_retry',
  `update effects
      set status = ${startable}, resolved_by = :resolved_by, ${no_lease}, updated_at = :now
    where ${here} and ${from('resolve_retry', 'resolve_retry_with_permit')} and ${as_read} and question_id is null
   returning ${columns}`,
)

const END_QUESTION = sql(
  'effects.end_question',
  `update effects set question_id = null where ${here} and question_id = :question_id`,
)

interface Success {
  lease_token_hash: string
  /** JSON text. */
  result: string | null
  more_bytes: number
}

/** Null unless it is running under this lease. */
export function succeed(tx: Tx, tenant_id: string, id: string, success: Success) {
  return tx.one(SUCCEED, { tenant_id, id, ...success, now: tx.now })
}

/** The effect as it was read. Null is returned when its status or its lease has changed since. */
type Before = Pick<WholeEffect, 'id' | 'status' | 'fence'>

function asRead({ id, status, fence }: Before) {
  return { id, status_before: status, fence_before: fence }
}

/** The same after the lease has run out, as long as nobody has decided otherwise. */
export function succeedLate(tx: Tx, tenant_id: string, before: Before, success: Success) {
  return tx.one(SUCCEED_LATE, { tenant_id, ...asRead(before), ...success, now: tx.now })
}

interface Failure {
  lease_token_hash: string
  error: string
}

/** Null unless this lease may report it; `release` too. */
export function fail(tx: Tx, tenant_id: string, before: Before, failure: Failure) {
  return tx.one(FAIL, { tenant_id, ...asRead(before), ...failure, now: tx.now })
}

export function release(tx: Tx, tenant_id: string, before: Before, failure: Failure) {
  return tx.one(RELEASE, { tenant_id, ...asRead(before), ...failure, now: tx.now })
}

interface Resolution {
  status: 'succeeded' | 'failed'
  result: string | null
  error: string | null
  more_bytes: number
  resolved_by: string
}

/** Null unless it may be resolved, and nobody is asked. */
export function resolve(
  tx: Tx,
  tenant_id: string,
  before: Before & Pick<WholeEffect, 'error'>,
  resolution: Resolution,
) {
  const as_read = { ...asRead(before), error_before: before.error }
  return tx.one(RESOLVE, { tenant_id, ...as_read, ...resolution, now: tx.now })
}

export function resolveRetry(tx: Tx, tenant_id: string, before: Before, resolved_by: string) {
  return tx.one(RESOLVE_RETRY, { tenant_id, ...asRead(before), resolved_by, now: tx.now })
}

/** Nobody is asked any more what became of it. */
export function endQuestion(tx: Tx, tenant_id: string, id: string, question_id: string) {
  return tx.run(END_QUESTION, { tenant_id, id, question_id })
}
