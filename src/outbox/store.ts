// Every statement on outbox and attempts.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import {
  type AttemptRow,
  attemptNumber,
  type Leased,
  type Result,
  type WorkKey,
  type WorkKind,
} from './work.ts'

const here = 'tenant_id = :tenant_id and kind = :kind and source_id = :source_id'

const PLAN = sql(
  'outbox.plan',
  `insert into outbox
     (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, resting)
   values (:tenant_id, :kind, :source_id, :event_id, :destination, :next_at, 0, 0, 0, 0)`,
)

const MOVE = sql(
  'outbox.move',
  `update outbox
      set event_id = :event_id, destination = coalesce(:destination, destination), next_at = :next_at,
          lease_until = 0, fence = fence + 1, attempts = 0, first_attempt_at = null
    where ${here}`,
)

const REDIRECT = sql(
  'outbox.redirect',
  `update outbox
      set destination = coalesce(:destination, destination), lease_until = 0, fence = fence + 1,
          first_attempt_at = case when lease_until > :now and attempts = 1 then null else first_attempt_at end,
          attempts = case when lease_until > :now then attempts - 1 else attempts end
    where ${here}`,
)

const CANCEL = sql('outbox.cancel', `delete from outbox where ${here}`)

const COMPLETE = sql('outbox.complete', `delete from outbox where ${here} and fence = :fence`)

const RETRY = sql(
  'outbox.retry',
  `update outbox set next_at = :next_at, lease_until = 0 where ${here} and fence = :fence`,
)

const UNLEASE = sql(
  'outbox.unlease',
  `update outbox
      set lease_until = 0, attempts = attempts - 1,
          first_attempt_at = case when attempts = 1 then null else first_attempt_at end
    where ${here} and fence = :fence`,
)

/** How many rows one lease takes at most: the list of ids has this many places. */
export const lease_rows_max = 16
const id_names = Array.from({ length: lease_rows_max }, (_, i) => `id_${String.fromCharCode(97 + i)}`)
const id_list = id_names.map((name) => `:${name}`).join(', ')

const LEASE = sql<Omit<Leased, 'tenant_id'>>(
  'outbox.lease',
  `update outbox
      set lease_until = :lease_until, fence = fence + 1, attempts = attempts + 1,
          first_attempt_at = coalesce(first_attempt_at, :now)
    where tenant_id = :tenant_id and kind = :kind and resting = 0 and next_at <= :now and lease_until <= :now
      and source_id in
        (select source_id from outbox
          where tenant_id = :tenant_id and kind = :kind and source_id in (${id_list}) and lease_until <= :now
          order by source_id {skip_locked})
      and exists (select 1 from tenants where tenants.tenant_id = :tenant_id and tenants.status = 'active')
   returning kind, source_id, event_id, destination, fence, attempts, first_attempt_at`,
)

export interface Due extends WorkKey {
  destination: string
  /** Attempts so far. */
  attempts: number
}

// A request that was let in before its tenant was deleted may put work in after: it does not rest, and may not run.
const of_active = "(select status from tenants where tenants.tenant_id = outbox.tenant_id) = 'active'"

const DUE = sql<Due>(
  'outbox.due',
  `select tenant_id, kind, source_id, destination, attempts from outbox
    where resting = 0 and next_at <= :now and lease_until <= :now and ${of_active}
    order by next_at limit :rows_max`,
)

const DUE_FIRST_CALLBACKS = sql<Due>(
  'outbox.due_first_callbacks',
  `select tenant_id, kind, source_id, destination, attempts from outbox
    where resting = 0 and kind = 'callback' and attempts = 0 and next_at <= :now and lease_until <= :now
      and ${of_active}
    order by next_at limit :rows_max`,
)

// One step of the walk over lanes (a tenant's work for one destination): the first lane after this one. Its
// earliest work comes with it, because the index is ordered by it.
const NEXT_LANE = sql<{ tenant_id: string; destination: string; next_at: Millis }>(
  'outbox.next_lane',
  `select tenant_id, destination, next_at from outbox
    where resting = 0 and (tenant_id, destination) > (:tenant_id, :destination)
    order by tenant_id, destination, next_at limit 1`,
)

const DUE_IN_LANE = sql<Due>(
  'outbox.due_in_lane',
  `select tenant_id, kind, source_id, destination, attempts from outbox
    where resting = 0 and tenant_id = :tenant_id and destination = :destination
      and next_at <= :now and lease_until <= :now and ${of_active}
    order by next_at limit :rows_max`,
)

const NEXT_AT = sql<{ next_at: Millis }>(
  'outbox.next_at',
  'select next_at from outbox where resting = 0 and next_at > :now order by next_at limit 1',
)

const ANY_DUE = sql<{ kind: WorkKind }>(
  'outbox.any_due',
  `select kind from outbox where resting = 0 and next_at <= :due_at and ${of_active} limit 1`,
)

const REST = sql('outbox.rest', 'update outbox set resting = :resting where tenant_id = :tenant_id')

const PURGE = sql(
  'outbox.purge',
  `delete from outbox where tenant_id = :tenant_id and (kind, source_id) in
     (select kind, source_id from outbox where tenant_id = :tenant_id limit :rows_max)`,
)

const LOG = sql(
  'outbox.log_attempt',
  `insert into attempts
     (tenant_id, source, source_id, seq, event_id, attempt, started_at, duration_ms, status_code, error)
   values
     (:tenant_id, :source, :source_id, :seq, :event_id, :attempt, :started_at, :duration_ms, :status_code, :error)`,
)

const ATTEMPTS = sql<AttemptRow>(
  'outbox.attempts',
  `select seq, event_id, attempt, started_at, duration_ms, status_code, error from attempts
    where tenant_id = :tenant_id and source = :source and source_id = :source_id and seq < :before_seq
    order by seq desc limit :rows_max`,
)

const PURGE_ATTEMPTS = sql(
  'outbox.purge_attempts',
  `delete from attempts where tenant_id = :tenant_id and (source, source_id, seq) in
     (select source, source_id, seq from attempts where tenant_id = :tenant_id limit :rows_max)`,
)

export interface NewWork extends WorkKey {
  event_id: string
  destination: string
  next_at: Millis
}

/** A destination of null stays as it is. */
export type Move = Omit<NewWork, 'destination'> & { destination: string | null }

export function plan(tx: Tx, work: NewWork) {
  return tx.run(PLAN, { ...work })
}

/** A new time starts the attempts anew, under a new event. False when the work is gone. */
export async function move(tx: Tx, work: Move): Promise<boolean> {
  return (await tx.run(MOVE, { ...work })) === 1
}

/** Another receiver, the same time: an attempt under way no longer counts. False when the work is gone. */
export async function redirect(tx: Tx, key: WorkKey, destination: string | null): Promise<boolean> {
  return (await tx.run(REDIRECT, { ...keyOf(key), destination, now: tx.now })) === 1
}

/** False when the work is gone. */
export async function cancel(tx: Tx, key: WorkKey): Promise<boolean> {
  return (await tx.run(CANCEL, keyOf(key))) === 1
}

/** The work is done. False when the lease was lost, and with it the right to say so. */
export async function complete(tx: Tx, { fence, ...key }: Leased): Promise<boolean> {
  return (await tx.run(COMPLETE, { ...keyOf(key), fence })) === 1
}

/** The work is tried again at `next_at`. False when the lease was lost. */
export async function retry(tx: Tx, { fence, ...key }: Leased, next_at: Millis): Promise<boolean> {
  return (await tx.run(RETRY, { ...keyOf(key), fence, next_at })) === 1
}

/** Gives back a lease that was not used: the attempt does not count. */
export function unlease(tx: Tx, { fence, ...key }: Leased) {
  return tx.run(UNLEASE, { ...keyOf(key), fence })
}

/** Leases what is still due of these, at most `lease_rows_max`, all of one tenant and kind. */
export async function lease(
  tx: Tx,
  tenant_id: string,
  kind: WorkKind,
  source_ids: readonly string[],
  lease_until: Millis,
): Promise<Leased[]> {
  const ids = Object.fromEntries(
    id_names.map((name, i) => [name, source_ids[Math.min(i, source_ids.length - 1)]!]),
  )
  const rows = await tx.all(LEASE, { tenant_id, kind, lease_until, now: tx.now, ...ids })
  return rows.map((row) => ({ tenant_id, ...row }))
}

/** What has been due for longest, of all tenants. */
export function due(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE, { now, rows_max })
}

/** First attempts of decisions' callbacks alone: what starts without a tick. */
export function dueFirstCallbacks(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE_FIRST_CALLBACKS, { now, rows_max })
}

export function nextLane(q: Reader, after: { tenant_id: string; destination: string }) {
  return q.one(NEXT_LANE, { tenant_id: after.tenant_id, destination: after.destination })
}

export function dueInLane(q: Reader, tenant_id: string, destination: string, now: Millis, rows_max: number) {
  return q.all(DUE_IN_LANE, { tenant_id, destination, now, rows_max })
}

/** When the next work falls due that is not due now; null when none waits. */
export async function nextAt(q: Reader, now: Millis): Promise<Millis | null> {
  return (await q.one(NEXT_AT, { now }))?.next_at ?? null
}

/** Whether anything that was due then is still to do, leased or not. */
export async function anyDue(q: Reader, due_at: Millis): Promise<boolean> {
  return (await q.one(ANY_DUE, { due_at })) !== null
}

/** Lets a tenant's work rest, or takes it up again. */
export function rest(tx: Tx, tenant_id: string, resting: boolean) {
  return tx.run(REST, { tenant_id, resting: resting ? 1 : 0 })
}

/** Keeps what came of an attempt, whether it still counted or not. */
export function log(tx: Tx, leased: Leased, source: 'schedule' | 'checkpoint', result: Result) {
  return tx.run(LOG, {
    tenant_id: leased.tenant_id,
    source,
    source_id: leased.source_id,
    seq: leased.fence,
    event_id: leased.event_id,
    attempt: attemptNumber(leased),
    started_at: result.started_at,
    duration_ms: result.duration_ms,
    status_code: result.status_code,
    error: result.error,
  })
}

/** Newest first. */
export function attempts(
  q: Reader,
  tenant_id: string,
  source: 'schedule' | 'checkpoint',
  source_id: string,
  before_seq: number,
  rows_max: number,
) {
  return q.all(ATTEMPTS, { tenant_id, source, source_id, before_seq, rows_max })
}

/** Removes rows of a tenant that is being purged; answers how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number): Promise<number> {
  return (
    (await tx.run(PURGE, { tenant_id, rows_max })) + (await tx.run(PURGE_ATTEMPTS, { tenant_id, rows_max }))
  )
}

function keyOf({ tenant_id, kind, source_id }: WorkKey) {
  return { tenant_id, kind, source_id }
}
