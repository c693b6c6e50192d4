// Statements on jobs and attempts: how they are enqueued, leased, changed and ended. search-store.ts finds those that are due.

import type { Millis } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { type Origin, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import { row_bytes } from '../db/stored.ts'
import { idNames, idParams, listOf } from './id-list.ts'
import { type AttemptResult, type AttemptRow, type JobKey, type LeasedJob, lease_ms } from './job.ts'
import type { JobKind, LocalKind } from './kind.ts'

const here = 'tenant_id = :tenant_id and kind = :kind and source_id = :source_id'

const ENQUEUE = sql(
  'jobs.enqueue',
  `insert into jobs
     (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused, starts_at_once,
      goes_on, traceparent)
   values
     (:tenant_id, :kind, :source_id, :event_id, :destination, :next_at, 0, :fence, 0, 0, :starts_at_once, :goes_on,
      :traceparent)`,
)

const RESCHEDULE = sql(
  'jobs.reschedule',
  `update jobs
      set event_id = :event_id, destination = coalesce(:destination, destination),
          next_at = case when lease_until > :now then :later_at when lease_until <= :now then :next_at else next_at end,
          lease_until = 0, fence = fence + 1, attempts = 0, first_attempt_at = null
    where ${here}`,
)

const RETARGET = sql(
  'jobs.retarget',
  `update jobs
      set destination = coalesce(:destination, destination), lease_until = 0, fence = fence + 1,
          next_at = case when lease_until > :now then :again_at else next_at end,
          first_attempt_at = case when lease_until > 0 and attempts = 1 then null else first_attempt_at end,
          attempts = case when lease_until > 0 then attempts - 1 else attempts end
    where ${here}`,
)

const CHANGE_EVENT = sql('jobs.change_event', `update jobs set event_id = :event_id where ${here}`)

const CANCEL = sql<Origin>('jobs.cancel', `delete from jobs where ${here} returning traceparent`)

const COMPLETE = sql('jobs.complete', `delete from jobs where ${here} and fence = :fence`)

// A lease that is past its time stays until another is given, or until this ends it: a repeat of the same settlement,
// whose answer from the database was lost, finds none.
const leased = `${here} and fence = :fence and lease_until > 0`

const RETRY = sql('jobs.retry', `update jobs set next_at = :next_at, lease_until = 0 where ${leased}`)

const REPEAT = sql(
  'jobs.repeat',
  `update jobs set next_at = :next_at, lease_until = 0, attempts = :attempts, first_attempt_at = :first_attempt_at
    where ${leased}`,
)

const SET_NEXT = sql(
  'jobs.set_next',
  `update jobs set next_at = :next_at where ${here} and fence = :fence and lease_until = 0`,
)

const RELEASE = sql(
  'jobs.release',
  `update jobs
      set lease_until = 0, attempts = attempts - 1, next_at = coalesce(:again_at, next_at),
          first_attempt_at = case when attempts = 1 then null else first_attempt_at end
    where ${leased}`,
)

/** The list of ids has this many places. */
export const lease_rows_max = limit('jobs.lease_rows', 16, 'rows', 'Jobs that one lease takes.')
const id_names = idNames(lease_rows_max)
const id_list = listOf(id_names)

// Found by their key alone, one after the other, whatever the planner believes: the + hides the columns of other indexes,
// and rows that were chosen are found again as those of a chunk are (db/dialect.ts). PostgreSQL would otherwise scan all
// jobs of the tenant, with a look into the list for each of them. They need no order: no lease waits for a row.
const LEASE = sql<Omit<LeasedJob, 'tenant_id'> & { previous_lease_until: Millis; due_at: Millis }>(
  'jobs.lease',
  `update jobs
      set lease_until = :lease_until, previous_lease_until = lease_until, fence = fence + :fence_step, attempts = attempts + 1,
          first_attempt_at = coalesce(first_attempt_at, :now)
    where ${of_shard} {rows_in tenant_id, kind, source_id} {each ${id_list}}
        select {row tenant_id, kind, source_id} from jobs
         where tenant_id = :tenant_id and kind = :kind and source_id {listed ${id_list}} and lease_until <= :now
         {skip_locked}{found}{end}
      and +paused = 0 and +next_at <= :now and +lease_until <= :now
      and exists (select 1 from tenants
                   where tenants.tenant_id = :tenant_id and tenants.status = 'active'
                     and (tenants.frozen_at is null or :goes_on = 1))
   returning kind, source_id, event_id, destination, fence, attempts, first_attempt_at, traceparent,
             next_at as due_at, previous_lease_until`,
)

const LOG = sql(
  'jobs.log_attempt',
  `insert into attempts
     (tenant_id, source, source_id, seq, event_id, attempt, started_at, duration_ms, status_code, error)
   values
     (:tenant_id, :source, :source_id, :seq, :event_id, :attempt, :started_at, :duration_ms, :status_code, :error)
   on conflict (tenant_id, source, source_id, seq) do nothing`,
)

const CORRECT = sql(
  'jobs.correct_attempt',
  `update attempts
      set started_at = :started_at, duration_ms = :duration_ms, status_code = :status_code, error = :error
    where tenant_id = :tenant_id and source = :source and source_id = :source_id and seq = :seq
      and error = 'interrupted'`,
)

const ATTEMPTS = sql<AttemptRow>(
  'jobs.attempts',
  `select seq, event_id, attempt, started_at, duration_ms, status_code, error from attempts
    where tenant_id = :tenant_id and source = :source and source_id = :source_id and seq < :before_seq
    order by seq desc limit :rows_max`,
)

/** Only one that sends nothing may be without a destination. */
export type NewJob = Enqueued &
  ({ kind: JobKind; destination: string } | { kind: LocalKind; destination?: never })

interface Enqueued extends Omit<JobKey, 'kind'> {
  /** Absent: a new one. */
  event_id?: string
  next_at: Millis
  /** Where its fencing tokens begin, when the same source had a job before: above those of that one. Default 0. */
  fence?: number
  /** The trace that it continues; absent: that of the transaction. */
  traceparent?: string | null
}

/** A destination of null stays as it is. */
export interface Rescheduled extends JobKey {
  event_id: string
  destination: string | null
  next_at: Millis
}

export function enqueue(tx: Tx, { kind, traceparent, ...given }: NewJob) {
  const { event_id = newId('evt', tx.now), destination = '', fence = 0, ...job } = given
  const of_trace = traceparent === undefined ? (tx.origin?.traceparent ?? null) : traceparent
  return tx.run(ENQUEUE, {
    ...{ ...job, event_id, destination, fence, kind: kind.name, traceparent: of_trace },
    ...{ starts_at_once: kind.starts_at_once ? 1 : 0, goes_on: goesOn(kind) },
  })
}

/** 1 for a kind that runs while its tenant is frozen. */
function goesOn({ goes_on = false }: JobKind): 0 | 1 {
  return goes_on ? 1 : 0
}

/**
 * Moves a job to another time: its attempts start again, under a new event; during an attempt, not before `again_at`. False when
 * the job is gone.
 */
export async function reschedule(tx: Tx, job: Rescheduled, again_at: Millis = job.next_at): Promise<boolean> {
  const later_at = Math.max(job.next_at, again_at)
  return (await tx.run(RESCHEDULE, { ...job, later_at, now: tx.now })) === 1
}

/**
 * Another receiver, the same time; an attempt in flight no longer counts, and is made again at `again_at`. False when
 * the job is gone.
 */
export async function retarget(
  tx: Tx,
  key: JobKey,
  destination: string | null,
  again_at: Millis,
): Promise<boolean> {
  return (await tx.run(RETARGET, { ...keyOf(key), destination, again_at, now: tx.now })) === 1
}

/** From now on another event is sent. */
export function changeEvent(tx: Tx, key: JobKey, event_id: string) {
  return tx.run(CHANGE_EVENT, { ...keyOf(key), event_id })
}

/** Returns the trace of the job; null when it is gone. */
export async function cancelTraced(tx: Tx, key: JobKey): Promise<Origin | null> {
  return tx.one(CANCEL, keyOf(key))
}

/** False when the job is gone. */
export async function cancel(tx: Tx, key: JobKey): Promise<boolean> {
  return (await cancelTraced(tx, key)) !== null
}

/** The job is done. False when the lease was lost: then this node may not settle the job. */
export async function complete(tx: Tx, { fence, ...key }: LeasedJob): Promise<boolean> {
  return (await tx.run(COMPLETE, { ...keyOf(key), fence })) === 1
}

/** The job is tried again at `next_at`. False when the lease was lost, or has ended so already. */
export async function retry(tx: Tx, { fence, ...key }: LeasedJob, next_at: Millis): Promise<boolean> {
  return (await tx.run(RETRY, { ...keyOf(key), fence, next_at })) === 1
}

export interface Tried {
  attempts: number
  first_attempt_at: Millis | null
}

const untried: Tried = { attempts: 0, first_attempt_at: null }

/**
 * Ends the lease: the job is due again at `next_at`, by default as if it had just been enqueued. False when the lease was
 * lost, or has ended so already.
 */
export async function repeat(
  tx: Tx,
  { fence, ...key }: LeasedJob,
  next_at: Millis,
  { attempts, first_attempt_at }: Tried = untried,
): Promise<boolean> {
  return (await tx.run(REPEAT, { ...keyOf(key), fence, next_at, attempts, first_attempt_at })) === 1
}

/** The job, whose lease ended in this transaction, is due at another time. */
export function setNext(tx: Tx, { fence, ...key }: LeasedJob, next_at: Millis) {
  return tx.run(SET_NEXT, { ...keyOf(key), fence, next_at })
}

/** Ends a lease that was not used: the attempt does not count, and a repeat changes nothing. The job is due again at once, or at `again_at`. */
export function release(tx: Tx, { fence, ...key }: LeasedJob, again_at: Millis | null = null) {
  return tx.run(RELEASE, { ...keyOf(key), fence, again_at })
}

/**
 * Leases those that are still due, at most `lease_rows_max`, all of one tenant and kind. `fence_step`: by how much their fencing
 * tokens rise.
 */
export async function lease(
  tx: Tx,
  tenant_id: string,
  kind: JobKind,
  source_ids: readonly string[],
  lease_until: Millis,
  fence_step = 1,
): Promise<LeasedJob[]> {
  const ids = idParams(id_names, source_ids)
  const goes_on = goesOn(kind)
  const rows = await tx.all(LEASE, {
    ...{ tenant_id, kind: kind.name, goes_on, lease_until, fence_step, now: tx.now },
    ...ids,
  })
  const leased: LeasedJob[] = []
  for (const { previous_lease_until, ...row } of rows) {
    const lease_expired = previous_lease_until > 0
    const job = { tenant_id, ...row, lease_expired, starts_at_once: kind.starts_at_once }
    leased.push(job)
    if (lease_expired) {
      const previous = { ...job, fence: job.fence - fence_step, attempts: job.attempts - 1 }
      await logInterrupted(tx, kind, previous, previous_lease_until)
    }
  }
  return leased
}

/**
 * Logs the outcome of an attempt, whether it still counted or not; a late report of a node that was
 * presumed dead replaces `interrupted`. A lease past the last attempt is not an attempt. False when nothing was logged: also
 * for an outcome that is in the log.
 */
export async function log(tx: Tx, kind: JobKind, job: LeasedJob, result: AttemptResult): Promise<boolean> {
  if (kind.message === null || kind.logged_as === null || job.attempts > kind.attempts_max) return false
  const { tenant_id, source_id, fence: seq, event_id, attempts: attempt } = job
  const { started_at, duration_ms, status_code, error } = result
  const key = { tenant_id, source: kind.logged_as, source_id, seq }
  const outcome = { started_at, duration_ms, status_code, error }
  const added = await tx.run(LOG, { ...key, event_id, attempt, ...outcome })
  if (added === 0) return (await tx.run(CORRECT, { ...key, ...outcome })) === 1
  tx.stores(tenant_id, row_bytes)
  return true
}

/** The attempt of the previous lease, which was not settled. */
async function logInterrupted(
  tx: Tx,
  kind: JobKind,
  previous: LeasedJob,
  leased_until: Millis,
): Promise<void> {
  const started_at = startOf(previous, leased_until)
  const interrupted = { ok: false, status_code: null, error: 'interrupted', started_at, duration_ms: 0 }
  const logged = await log(tx, kind, previous, interrupted)
  if (logged && kind.message !== null) await kind.uncounted?.(tx, previous, interrupted)
}

/** Under a test clock a lease may be cut short, so its end alone does not tell the start; but no attempt begins before it is due. */
function startOf({ attempts, first_attempt_at, due_at }: LeasedJob, leased_until: Millis): Millis {
  if (attempts === 1) return first_attempt_at
  return Math.max(leased_until - lease_ms, first_attempt_at, due_at ?? 0)
}

/** Newest first. */
export function attempts(
  q: Reader,
  { tenant_id, source, source_id }: { tenant_id: string; source: string; source_id: string },
  before_seq: number,
  rows_max: number,
) {
  return q.all(ATTEMPTS, { tenant_id, source, source_id, before_seq, rows_max })
}

export const purge = [
  purging('jobs.purge', { table: 'jobs', key: 'tenant_id, kind, source_id' }),
  purging('jobs.purge_attempts', { table: 'attempts', key: 'tenant_id, source, source_id, seq' }),
]

function keyOf({ tenant_id, kind, source_id }: JobKey) {
  return { tenant_id, kind, source_id }
}
