// Every statement on outbox and attempts.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { row_bytes } from '../db/stored.ts'
import {
  type AttemptRow,
  attempts_max,
  type Leased,
  lease_ms,
  type Result,
  type WorkKey,
  type WorkKind,
} from './job.ts'

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
      set event_id = :event_id, destination = coalesce(:destination, destination),
          next_at = case when lease_until > :now then :later_at when lease_until <= :now then :next_at else next_at end,
          lease_until = 0, fence = fence + 1, attempts = 0, first_attempt_at = null
    where ${here}`,
)

const REDIRECT = sql(
  'outbox.redirect',
  `update outbox
      set destination = coalesce(:destination, destination), lease_until = 0, fence = fence + 1,
          next_at = case when lease_until > :now then :again_at else next_at end,
          first_attempt_at = case when lease_until > 0 and attempts = 1 then null else first_attempt_at end,
          attempts = case when lease_until > 0 then attempts - 1 else attempts end
    where ${here}`,
)

const RENAME = sql('outbox.rename', `update outbox set event_id = :event_id where ${here}`)

const CANCEL = sql('outbox.cancel', `delete from outbox where ${here}`)

const COMPLETE = sql('outbox.complete', `delete from outbox where ${here} and fence = :fence`)

const RETRY = sql(
  'outbox.retry',
  `update outbox set next_at = :next_at, lease_until = 0 where ${here} and fence = :fence`,
)

const UNLEASE = sql(
  'outbox.unlease',
  `update outbox
      set lease_until = 0, attempts = attempts - 1, next_at = coalesce(:again_at, next_at),
          first_attempt_at = case when attempts = 1 then null else first_attempt_at end
    where ${here} and fence = :fence`,
)

/** How many rows one lease takes at most: the list of ids has this many places. */
export const lease_rows_max = limit('jobs.lease_rows', 16, 'rows', 'Jobs that one lease takes.')
const id_names = Array.from({ length: lease_rows_max }, (_, i) => `id_${String.fromCharCode(97 + i)}`)
const id_list = id_names.map((name) => `:${name}`).join(', ')

// The + keeps SQLite from walking all that the tenant has due, by the index on that, to look for the few in the list.
const LEASE = sql<Omit<Leased, 'tenant_id'> & { lapsed_until: Millis }>(
  'outbox.lease',
  `update outbox
      set lease_until = :lease_until, lapsed_until = lease_until, fence = fence + 1, attempts = attempts + 1,
          first_attempt_at = coalesce(first_attempt_at, :now)
    where tenant_id = :tenant_id and kind = :kind and resting = 0 and +next_at <= :now and lease_until <= :now
      and source_id in
        (select source_id from outbox
          where tenant_id = :tenant_id and kind = :kind and source_id in (${id_list}) and lease_until <= :now
          order by source_id {skip_locked})
      and exists (select 1 from tenants where tenants.tenant_id = :tenant_id and tenants.status = 'active')
   returning kind, source_id, event_id, destination, fence, attempts, first_attempt_at, lapsed_until`,
)

export interface Due extends WorkKey {
  destination: string
  /** Attempts so far. */
  attempts: number
}

/** With the status of its tenant, null when the tenant is gone. */
export interface DueOfAny extends Due {
  tenant_status: string | null
}

// A deleted tenant's work comes to rest in steps, and a request that was let in before may put work in after. Such
// work is told by its tenant's status, not left out: a look at the oldest rows must not become a walk past them.
const tenant_status =
  '(select status from tenants where tenants.tenant_id = outbox.tenant_id) as tenant_status'

const DUE = sql<DueOfAny>(
  'outbox.due',
  `select tenant_id, kind, source_id, destination, attempts, ${tenant_status} from outbox
    where resting = 0 and next_at <= :now and lease_until <= :now
    order by next_at limit :rows_max`,
)

const DUE_FIRST_CALLBACKS = sql<DueOfAny>(
  'outbox.due_first_callbacks',
  `select tenant_id, kind, source_id, destination, attempts, ${tenant_status} from outbox
    where resting = 0 and kind in ('callback', 'forward') and attempts = 0 and next_at <= :now and lease_until <= :now
    order by next_at limit :rows_max`,
)

// Where the earliest of a tenant are wanted, it is named as a range, and the order begins with it. With an equal sign
// PostgreSQL may walk over outbox_due and leave out the others, however many rows those have.
const DUE_OF_TENANT = sql<Due>(
  'outbox.due_of_tenant',
  `select tenant_id, kind, source_id, destination, attempts from outbox
    where resting = 0 and tenant_id >= :tenant_id and (tenant_id, next_at) <= (:tenant_id, :now)
      and lease_until <= :now
    order by tenant_id, next_at limit :rows_max`,
)

const DUE_IN_LANE = sql<Due>(
  'outbox.due_in_lane',
  `select tenant_id, kind, source_id, destination, attempts from outbox
    where resting = 0 and tenant_id = :tenant_id and destination = :destination
      and next_at <= :now and lease_until <= :now
    order by next_at limit :rows_max`,
)

// These two leap along an index from one tenant, or destination, to the next: what they cost depends on how many
// there are, not on how many rows those have.
const TENANTS = sql<TenantAhead>(
  'outbox.tenants',
  `select tenant_id,
          (select status from tenants where tenants.tenant_id = walk.tenant_id) as tenant_status,
          (select next_at from outbox
            where resting = 0 and outbox.tenant_id >= walk.tenant_id and outbox.tenant_id <= walk.tenant_id
            order by outbox.tenant_id, next_at limit 1) as next_at
     from
       (with recursive leap (tenant_id, number) as
          (select (select tenant_id from outbox where resting = 0 and tenant_id > :after_tenant_id
                    order by tenant_id limit 1), 1
           union all
           select (select outbox.tenant_id from outbox where resting = 0 and outbox.tenant_id > leap.tenant_id
                    order by outbox.tenant_id limit 1), number + 1
             from leap where leap.tenant_id is not null and number < :rows_max)
        select tenant_id from leap where tenant_id is not null) as walk`,
)

const LANES = sql<LaneAhead>(
  'outbox.lanes',
  `select destination,
          (select next_at from outbox
            where resting = 0 and tenant_id = :tenant_id and outbox.destination = walk.destination
            order by next_at limit 1) as next_at
     from
       (with recursive leap (destination, number) as
          (select (select destination from outbox
                    where resting = 0 and tenant_id = :tenant_id and destination >= :from_destination
                    order by destination limit 1), 1
           union all
           select (select outbox.destination from outbox
                    where resting = 0 and tenant_id = :tenant_id and outbox.destination > leap.destination
                    order by outbox.destination limit 1), number + 1
             from leap where leap.destination is not null and number < :rows_max)
        select destination from leap where destination is not null) as walk`,
)

const NEXT_AT = sql<{ next_at: Millis }>(
  'outbox.next_at',
  'select next_at from outbox where resting = 0 and next_at > :now order by next_at limit 1',
)

const OLDEST_DUE = sql<{ tenant_status: string | null }>(
  'outbox.oldest_due',
  `select ${tenant_status} from outbox where resting = 0 and next_at <= :due_at order by next_at limit :rows_max`,
)

interface Place {
  next_at: Millis
  kind: WorkKind
  source_id: string
}

const AWAKE = sql<Place>(
  'outbox.awake',
  `select next_at, kind, source_id from outbox
    where resting = 0 and tenant_id >= :tenant_id and tenant_id <= :tenant_id
    order by tenant_id, next_at, kind, source_id limit :rows_max`,
)

const AT_REST = sql<Place>(
  'outbox.at_rest',
  `select next_at, kind, source_id from outbox
    where resting = 1 and tenant_id >= :tenant_id and tenant_id <= :tenant_id
    order by tenant_id, next_at, kind, source_id limit :rows_max`,
)

// Up to a place in the order of the index, and not a list of rows, which PostgreSQL may look up anew for each row of
// the tenant while it has no statistics.
const REST = sql(
  'outbox.rest',
  `update outbox set resting = 1
    where resting = 0 and tenant_id >= :tenant_id and tenant_id <= :tenant_id
      and (next_at, kind, source_id) <= (:next_at, :kind, :source_id)`,
)

const TAKE_UP = sql(
  'outbox.take_up',
  `update outbox set resting = 0
    where resting = 1 and tenant_id >= :tenant_id and tenant_id <= :tenant_id
      and (next_at, kind, source_id) <= (:next_at, :kind, :source_id)`,
)

const PURGE = sql(
  'outbox.purge',
  `delete from outbox where ${inChunk({
    ...{
      table: 'outbox',
      key: 'tenant_id, kind, source_id',
      index: null,
      order: 'tenant_id, kind, source_id',
    },
    where: 'tenant_id = :tenant_id',
  })}`,
)

const LOG = sql(
  'outbox.log_attempt',
  `insert into attempts
     (tenant_id, source, source_id, seq, event_id, attempt, started_at, duration_ms, status_code, error)
   values
     (:tenant_id, :source, :source_id, :seq, :event_id, :attempt, :started_at, :duration_ms, :status_code, :error)
   on conflict (tenant_id, source, source_id, seq) do nothing`,
)

const CORRECT = sql(
  'outbox.correct_attempt',
  `update attempts
      set started_at = :started_at, duration_ms = :duration_ms, status_code = :status_code, error = :error
    where tenant_id = :tenant_id and source = :source and source_id = :source_id and seq = :seq
      and error = 'interrupted'`,
)

const ATTEMPTS = sql<AttemptRow>(
  'outbox.attempts',
  `select seq, event_id, attempt, started_at, duration_ms, status_code, error from attempts
    where tenant_id = :tenant_id and source = :source and source_id = :source_id and seq < :before_seq
    order by seq desc limit :rows_max`,
)

const PURGE_ATTEMPTS = sql(
  'outbox.purge_attempts',
  `delete from attempts where ${inChunk({
    ...{ table: 'attempts', key: 'tenant_id, source, source_id, seq', index: null },
    ...{ order: 'tenant_id, source, source_id, seq', where: 'tenant_id = :tenant_id' },
  })}`,
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

/**
 * A new time starts the attempts anew, under a new event, and during an attempt not before `again_at`. False when the
 * work is gone.
 */
export async function move(tx: Tx, work: Move, again_at: Millis = work.next_at): Promise<boolean> {
  const later_at = Math.max(work.next_at, again_at)
  return (await tx.run(MOVE, { ...work, later_at, now: tx.now })) === 1
}

/**
 * Another receiver, the same time; an attempt under way no longer counts, and is made again at `again_at`. False when
 * the work is gone.
 */
export async function redirect(
  tx: Tx,
  key: WorkKey,
  destination: string | null,
  again_at: Millis,
): Promise<boolean> {
  return (await tx.run(REDIRECT, { ...keyOf(key), destination, again_at, now: tx.now })) === 1
}

/** What is sent is another event from now on. */
export function rename(tx: Tx, key: WorkKey, event_id: string) {
  return tx.run(RENAME, { ...keyOf(key), event_id })
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

/** Gives back a lease that was not used: the attempt does not count. It is due again at once, or at `again_at`. */
export function unlease(tx: Tx, { fence, ...key }: Leased, again_at: Millis | null = null) {
  return tx.run(UNLEASE, { ...keyOf(key), fence, again_at })
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
  const leased: Leased[] = []
  for (const { lapsed_until, ...row } of rows) {
    const work = { tenant_id, ...row }
    leased.push(work)
    if (lapsed_until > 0) await logLost(tx, work, lapsed_until)
  }
  return leased
}

/** What has been due for longest, of all tenants, those included whose work is to rest. */
export function due(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE, { now, rows_max })
}

/** First attempts of decisions' callbacks and of forwards alone: what starts without a tick. */
export function dueFirstCallbacks(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE_FIRST_CALLBACKS, { now, rows_max })
}

export interface TenantAhead {
  tenant_id: string
  tenant_status: string | null
  /** When its earliest work is due, leased or not. */
  next_at: Millis
}

/** The next tenants after this one with work that does not rest, in the order of their ids. */
export function tenants(q: Reader, after_tenant_id: string, rows_max: number) {
  return q.all(TENANTS, { after_tenant_id, rows_max })
}

export interface LaneAhead {
  destination: string
  /** When its earliest work is due, leased or not. */
  next_at: Millis
}

/** The destinations of a tenant's work that does not rest, in their order, this one and those after it. */
export function lanes(q: Reader, tenant_id: string, from_destination: string, rows_max: number) {
  return q.all(LANES, { tenant_id, from_destination, rows_max })
}

/** What one tenant has that is due, the longest due first. */
export function dueOfTenant(q: Reader, tenant_id: string, now: Millis, rows_max: number) {
  return q.all(DUE_OF_TENANT, { tenant_id, now, rows_max })
}

/** The same for one destination. */
export function dueInLane(q: Reader, tenant_id: string, destination: string, now: Millis, rows_max: number) {
  return q.all(DUE_IN_LANE, { tenant_id, destination, now, rows_max })
}

/** When the next work falls due that is not due now; null when none waits. */
export async function nextAt(q: Reader, now: Millis): Promise<Millis | null> {
  return (await q.one(NEXT_AT, { now }))?.next_at ?? null
}

/** How many rows of deleted tenants are looked past for what is still to do. */
const passed_over_max = limit(
  'jobs.resting_passed',
  1_000,
  'rows',
  'Jobs of deleted tenants that one look for due work passes.',
)

/** Whether anything that was due then is still to do, leased or not. Also true when too much that is to rest stands
 * before it to be sure. */
export async function anyDue(q: Reader, due_at: Millis): Promise<boolean> {
  for (const rows_max of [1, passed_over_max]) {
    const rows = await q.all(OLDEST_DUE, { due_at, rows_max })
    if (rows.some((row) => row.tenant_status === 'active')) return true
    if (rows.length < rows_max) return false
  }
  return true
}

/**
 * Lets a part of a tenant's work rest, or takes a part of it up again, the earliest first. True when all of it is as
 * it should be. The transaction must hold the tenant's row, so that nobody does the opposite.
 */
export async function rest(tx: Tx, tenant_id: string, resting: boolean, rows_max: number): Promise<boolean> {
  const [look, change] = resting ? [AWAKE, REST] : [AT_REST, TAKE_UP]
  const places = await tx.all(look, { tenant_id, rows_max })
  const last = places.at(-1)
  if (!last) return true
  await tx.run(change, { tenant_id, ...last })
  if (places.length === rows_max) return false
  // Another node may have given some of it a later time meanwhile.
  return (await tx.one(look, { tenant_id, rows_max: 1 })) === null
}

/**
 * Keeps what came of an attempt, whether it still counted or not; whoever was taken for dead and tells in the end is
 * right. A lease past the last attempt is no attempt: it only tells that nobody lived to end the last one.
 */
export async function log(
  tx: Tx,
  leased: Leased,
  source: 'schedule' | 'checkpoint',
  result: Result,
): Promise<void> {
  if (leased.attempts > attempts_max) return
  const { tenant_id, source_id, fence: seq, event_id, attempts: attempt } = leased
  const { started_at, duration_ms, status_code, error } = result
  const place = { tenant_id, source, source_id, seq }
  const came = { started_at, duration_ms, status_code, error }
  const added = await tx.run(LOG, { ...place, event_id, attempt, ...came })
  if (added === 1) tx.stores(tenant_id, row_bytes)
  else await tx.run(CORRECT, { ...place, ...came })
}

/** The attempt of the lease before this one, which nobody settled. */
async function logLost(tx: Tx, { fence, attempts, ...work }: Leased, lapsed_until: Millis): Promise<void> {
  if (work.kind === 'timeout' || work.kind === 'forward') return
  const source = work.kind === 'schedule' ? 'schedule' : 'checkpoint'
  const started_at = lapsed_until - lease_ms
  const lost = { ok: false, status_code: null, error: 'interrupted', started_at, duration_ms: 0 }
  await log(tx, { ...work, fence: fence - 1, attempts: attempts - 1 }, source, lost)
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
