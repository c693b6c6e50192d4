// Statements that search for due jobs, and say when the next falls due. No request waits for them, and requests that are
// refused in an overload must not stop what is due: each runs alone on the Db, where it waits for a connection as due work does,
// and fails after `postgres.answer_ms`, 2.8 s.

import type { Millis } from '../base/clock.ts'
import { acrossTenants, forDueWork, of_shard, type Reader, sql } from '../db/db.ts'
import { idle_at, type JobKey } from './job.ts'

export interface DueJob extends JobKey {
  destination: string
  /** Attempts so far. */
  attempts: number
}

/** With the status of its tenant: `frozen` for a job that waits until it is resumed, null when the tenant is gone. */
export interface DueJobOfAny extends DueJob {
  tenant_status: string | null
}

// The jobs of a deleted or frozen tenant are paused in steps, and a request that was admitted before may enqueue one after.
// Such stragglers are marked by their tenant's status, not left out: a read of the oldest rows must not scan past them.
const statusOf = (tenant_id: string) =>
  `(select case when status = 'active' and frozen_at is not null and jobs.goes_on = 0 then 'frozen' else status end
      from tenants where tenants.tenant_id = ${tenant_id}) as tenant_status`
export const tenant_status = statusOf('jobs.tenant_id')
const own_status = statusOf(':tenant_id')

const due_columns = 'tenant_id, kind, source_id, destination, attempts'

const searchOfTenant: typeof sql = (...given) => forDueWork(sql(...given))
export const searchOfAll: typeof sql = (...given) => forDueWork(acrossTenants(...given))

function dueStatement<Row>(define: typeof sql, name: string, columns: string, where = '') {
  return define<Row>(
    `jobs.${name}`,
    `select ${columns} from jobs
      where paused = 0 ${where} and next_at <= :now and lease_until <= :now
      order by next_at limit :rows_max`,
  )
}

const DUE = dueStatement<DueJobOfAny>(searchOfAll, 'due', `${due_columns}, ${tenant_status}`)
const DUE_AT_ONCE = dueStatement<DueJobOfAny>(
  searchOfAll,
  'due_at_once',
  `${due_columns}, ${tenant_status}`,
  'and starts_at_once = 1 and attempts = 0',
)
const DUE_IN_LANE = dueStatement<DueJobOfAny>(
  searchOfTenant,
  'due_in_lane',
  `${due_columns}, ${own_status}`,
  'and tenant_id = :tenant_id and destination = :destination',
)

// Where the earliest of a tenant are wanted, the tenant is a range, and comes first in the order. With an equal sign
// PostgreSQL may scan jobs_due and skip the rows of other tenants, however many there are.
const DUE_OF_TENANT = searchOfTenant<DueJobOfAny>(
  'jobs.due_of_tenant',
  `select ${due_columns}, ${own_status} from jobs
    where ${of_shard} paused = 0 and tenant_id >= :tenant_id and (tenant_id, next_at) <= (:tenant_id, :now)
      and lease_until <= :now
    order by tenant_id, next_at limit :rows_max`,
)

// These two skip along an index from one tenant, or destination, to the next: their cost depends on how many
// there are, not on how many rows those have.
const TENANTS = searchOfAll<TenantAhead>(
  'jobs.tenants',
  `select tenant_id,
          (select status from tenants where tenants.tenant_id = scan.tenant_id) as tenant_status,
          (select next_at from jobs
            where paused = 0 and jobs.tenant_id >= scan.tenant_id and jobs.tenant_id <= scan.tenant_id
            order by jobs.tenant_id, next_at limit 1) as next_at
     from
       (with recursive skip (tenant_id, number) as
          (select (select tenant_id from jobs where paused = 0 and tenant_id > :after_tenant_id
                    order by tenant_id limit 1), 1
           union all
           select (select jobs.tenant_id from jobs where paused = 0 and jobs.tenant_id > skip.tenant_id
                    order by jobs.tenant_id limit 1), number + 1
             from skip where skip.tenant_id is not null and number < :rows_max)
        select tenant_id from skip where tenant_id is not null) as scan`,
  // All shards are asked at once, and no scan can skip from one shard to the next tenant in another.
  `select tenant_id, status as tenant_status, next_at
     from (select tenant_id, status,
                  (select next_at from jobs
                    where paused = 0 and jobs.tenant_id = tenants.tenant_id order by next_at limit 1) as next_at
             from tenants where tenant_id > :after_tenant_id) as scan
    where next_at is not null order by tenant_id limit :rows_max`,
)

const LANES = searchOfTenant<LaneAhead>(
  'jobs.lanes',
  `select destination,
          (select next_at from jobs
            where paused = 0 and tenant_id = :tenant_id and jobs.destination = scan.destination
            order by next_at limit 1) as next_at
     from
       (with recursive skip (destination, number) as
          (select (select destination from jobs
                    where paused = 0 and tenant_id = :tenant_id and destination >= :from_destination
                    order by destination limit 1), 1
           union all
           select (select jobs.destination from jobs
                    where paused = 0 and tenant_id = :tenant_id and jobs.destination > skip.destination
                    order by jobs.destination limit 1), number + 1
             from skip where skip.destination is not null and number < :rows_max)
        select destination from skip where destination is not null) as scan`,
)

const NEXT_AT = searchOfAll<{ next_at: Millis }>(
  'jobs.next_at',
  'select next_at from jobs where paused = 0 and next_at > :now order by next_at limit 1',
)

const NEXT_AT_ONCE = searchOfAll<{ next_at: Millis }>(
  'jobs.next_at_once',
  `select next_at from jobs
    where paused = 0 and starts_at_once = 1 and attempts = 0 and next_at > :now and next_at < :idle_at
    order by next_at limit 1`,
)

/** The jobs of all tenants that have been due for longest, stragglers of deleted and frozen tenants included. */
export function due(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE, { now, rows_max })
}

/** Only first attempts of kinds that wait for no tick. */
export function dueAtOnce(q: Reader, now: Millis, rows_max: number) {
  return q.all(DUE_AT_ONCE, { now, rows_max })
}

export interface TenantAhead {
  tenant_id: string
  tenant_status: string | null
  /** When its earliest job is due, leased or not. */
  next_at: Millis
}

/** The next tenants after this one that have jobs, in the order of their ids. */
export function tenants(q: Reader, after_tenant_id: string, rows_max: number) {
  return q.all(TENANTS, { after_tenant_id, rows_max })
}

export interface LaneAhead {
  destination: string
  /** When its earliest job is due, leased or not. */
  next_at: Millis
}

/** The destinations of a tenant's jobs, in their order, this one and those after it. */
export function lanes(q: Reader, tenant_id: string, from_destination: string, rows_max: number) {
  return q.all(LANES, { tenant_id, from_destination, rows_max })
}

/** The due jobs of one tenant, the longest due first. */
export function dueOfTenant(q: Reader, tenant_id: string, now: Millis, rows_max: number) {
  return q.all(DUE_OF_TENANT, { tenant_id, now, rows_max })
}

/** The same for one destination. */
export function dueInLane(q: Reader, tenant_id: string, destination: string, now: Millis, rows_max: number) {
  return q.all(DUE_IN_LANE, { tenant_id, destination, now, rows_max })
}

/** When the next job falls due that is not due now; null when there is none. */
export async function nextAt(q: Reader, now: Millis): Promise<Millis | null> {
  return (await q.one(NEXT_AT, { now }))?.next_at ?? null
}

/** The same of first attempts of kinds that wait for no tick, idle ones apart. */
export async function nextAtOnce(q: Reader, now: Millis): Promise<Millis | null> {
  return (await q.one(NEXT_AT_ONCE, { now, idle_at }))?.next_at ?? null
}
