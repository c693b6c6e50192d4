// Counters that are exact under concurrency: reserving is a guarded update, never a count of rows.
// Lock order everywhere: first the row that is counted, then its counter. A sweep of many rows takes the counter first
// (`lock`) and skips rows that others hold, so that it waits for none of them.
// A transaction that changes several takes them in this order: the head of the journal (`lockHead`), the job, the dead letter
// that is there already, the schedule or checkpoint that is active, `active_schedules`, `dlq_items`. A source that has ended
// may come after `active_schedules`: no transaction that holds its row waits for that counter.

import type { Clock, Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import type { CountedQuota } from '../contract/feature.ts'
import {
  type Awaitable,
  type Db,
  dueWork,
  MustRunAlone,
  type Reader,
  type StoredCounter,
  type Tx,
} from '../db/db.ts'
import { isOutcomeUnknown } from '../db/errors.ts'
import { type DueLists, sweepTenants, type Touched } from '../db/sweep-tenants.ts'
import { Calls } from './calls.ts'
import { bytes_name, calls_name, endOf, exceeded, limitOf, monthOf } from './quota.ts'
import * as store from './store.ts'

export const { add, create, lock, raiseFloor, release } = store
export { limitOf }

/** Calls of /api by the month, on this node. */
export function monthlyCalls(db: Db, clock: Clock): Calls {
  return new Calls(clock, {
    look: (tenant_id, month) => store.calls(db, tenant_id, month),
    async add(tenant_id, month, count) {
      try {
        return await db.write(dueWork(tenant_id), (tx) => store.addCalls(tx, tenant_id, month, count))
      } catch (error) {
        if (isOutcomeUnknown(error)) return null
        throw error
      }
    },
  })
}

/** Calls of /api in this month, without what nodes have counted and not written yet. */
export function callsWritten(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return store.calls(q, tenant_id, monthOf(now))
}

/** Removes the counts of months before the one of `at`, at most `rows_max`. */
export function sweepCalls(db: Db, at: Millis, lists: DueLists, rows_max: number): Promise<Touched> {
  const month = monthOf(at)
  return sweepTenants(
    db,
    lists.of('quotas.old_calls'),
    rows_max,
    async (from) => {
      const tenants = await store.tenantsWithOldCalls(db, monthOf(from), month, rows_max)
      return tenants.map((tenant) => ({ ...tenant, until: endOf(tenant.until) }))
    },
    (tx, tenant_id, most) => store.sweepCalls(tx, tenant_id, month, most),
  )
}

/**
 * Counts one more; the counter is made when it is first used. At the limit, what has expired is swept first; if that frees
 * nothing, throws QUOTA_EXCEEDED.
 */
export async function reserve(
  tx: Tx,
  tenant: TenantFacts,
  plans: Plans,
  quota: string,
  sweepExpired: () => Promise<unknown> = async () => {},
): Promise<void> {
  const take = (ceiling: number) => store.reserve(tx, tenant.tenant_id, quota, ceiling)
  await reserveBy(take, { tx, tenant, plans, quota, sweepExpired })
}

/** The same for a quota with tombstones. `revived`: those that are keys again by this. */
export function reserveKey(
  tx: Tx,
  tenant: TenantFacts,
  plans: Plans,
  quota: string,
  sweepExpired: () => Promise<unknown>,
  revived: number,
): Promise<store.Reserved> {
  const take = (ceiling: number) => store.reserveKey(tx, tenant.tenant_id, quota, ceiling, revived)
  return reserveBy(take, { tx, tenant, plans, quota, sweepExpired })
}

interface Reserving {
  tx: Tx
  tenant: TenantFacts
  plans: Plans
  quota: string
  sweepExpired: () => Promise<unknown>
}

/** `take` counts one more; it returns 0 or null at the ceiling, and when there is no counter yet. */
async function reserveBy<Taken>(
  take: (ceiling: number) => Awaitable<Taken>,
  { tx, tenant, plans, quota, sweepExpired }: Reserving,
): Promise<NonNullable<Taken> | store.Reserved> {
  const { tenant_id } = tenant
  const ceiling = limitOf(plans, tenant.plan, quota) ?? Number.MAX_SAFE_INTEGER
  const taken = (await take(ceiling)) || (ceiling > 0 && (await store.start(tx, tenant_id, quota)))
  if (taken) return taken
  await sweepExpired()
  // Even when nothing was left to sweep: another caller may just have swept.
  const second = await take(ceiling)
  if (second) return second
  const used = await usedOf(tx, tenant_id, quota)
  throw exceeded(tenant, plans, { quota, used, limit: ceiling }, tx.now)
}

/** Rows that have expired and were not swept yet are left out of the number used, up to this many. */
export const expired_counted_max = limit(
  'quotas.expired_counted',
  10_000,
  'rows',
  'Bounds how long others wait for the quota of one tenant: past it, what has expired counts until it is swept.',
)

export async function usedOf(q: Reader, tenant_id: string, quota: string): Promise<number> {
  return (await store.usedOne(q, tenant_id, quota))?.used ?? 0
}

/** The highest version of tombstones that were removed; 0 when none was. */
export async function floorOf(q: Reader, tenant_id: string, quota: string): Promise<number> {
  return (await store.usedOne(q, tenant_id, quota))?.version_floor ?? 0
}

/**
 * Reserves bytes for what a tenant's own call stores: before anything is written, so that a refusal undoes nothing.
 * Fewer bytes are never refused. Throws QUOTA_EXCEEDED, and STORAGE_FULL when the disk has no
 * room for what grows.
 */
export function reserveBytes(tx: Tx, tenant: TenantFacts, plans: Plans, bytes: number): void {
  requireRoom(tx, tenant, plans, bytes)
  tx.stores(tenant.tenant_id, bytes)
}

/** Throws as reserveBytes does, and counts nothing. */
export function requireRoom(tx: Tx, tenant: TenantFacts, plans: Plans, bytes: number): void {
  const over = overBy(tx, tenant, plans, bytes)
  if (over) throw exceeded(tenant, plans, { quota: bytes_name, ...over }, tx.now)
}

/** False where requireRoom throws. */
export function hasRoom(tx: Tx, tenant: TenantFacts, plans: Plans, bytes: number): boolean {
  return bytes <= 0 || (!tx.disk_full && overBy(tx, tenant, plans, bytes) === null)
}

/**
 * Null when these bytes may be stored; else what is stored now, and the limit. Throws STORAGE_FULL, and MustRunAlone
 * where writes beside this one hold bytes that they may not need.
 */
export function overBy(
  tx: Tx,
  tenant: Omit<TenantFacts, 'status'>,
  plans: Plans,
  bytes: number,
): { used: number; limit: number } | null {
  if (bytes <= 0) return null
  requireDisk(tx)
  const limit = tenant.storage_bytes_max ?? limitOf(plans, tenant.plan, bytes_name)
  if (limit === null) return null
  const used = tx.stored(tenant.tenant_id, tenant.stored ?? no_counter)
  if (used + bytes <= limit) return null
  if (tx.beside > 0) throw new MustRunAlone()
  return { used, limit }
}

/** Throws STORAGE_FULL when the disk has no room for what grows. */
export function requireDisk(tx: Tx): void {
  if (tx.disk_full) throw new ApiError('STORAGE_FULL', { retry_after_seconds: 1, shed: 'disk_full' })
}

/** The counter of stored bytes as it is now. */
export async function storedCounter(q: Reader, tenant_id: string): Promise<StoredCounter> {
  return (await store.usedOne(q, tenant_id, bytes_name)) ?? no_counter
}

export type QuotaObject = Record<string, { used: number; limit: number | null }>

const no_counter: StoredCounter = { used: 0, writes: 0 }

/** Counts of a tenant that this node has only in memory. */
export interface InMemory {
  calls: number
  /** The bytes stored, given the counter as it was just read. */
  storedBytes(counter: StoredCounter): number
}

/** The members of the `quota` object, in order. */
export function quotasShown(quotas: readonly CountedQuota[]): string[] {
  return [...quotas.map(({ name }) => name), calls_name, bytes_name]
}

interface Viewed {
  plans: Plans
  quotas: readonly CountedQuota[]
  /** Rows that are counted but have expired, by quota. */
  expired?: Readonly<Record<string, number>>
}

/** The `quota` object of the API contract. `calls`: of /api in this month. */
export async function usage(
  q: Reader,
  tenant: Pick<TenantFacts, 'tenant_id' | 'plan' | 'storage_bytes_max'>,
  { calls, storedBytes }: InMemory,
  { plans, quotas, expired = {} }: Viewed,
): Promise<QuotaObject> {
  const rows = await store.used(q, tenant.tenant_id)
  // Nothing is awaited between the counter's answer and this: a flush that ends later is not in it twice.
  const stored_bytes = storedBytes(rows.find(({ quota }) => quota === bytes_name) ?? no_counter)
  const usedOf = (name: string) => rows.find((row) => row.quota === name)?.used ?? 0
  const quota: QuotaObject = {}
  for (const { name } of quotas) {
    const used = Math.max(0, usedOf(name) - (expired[name] ?? 0))
    quota[name] = { used, limit: limitOf(plans, tenant.plan, name) }
  }
  quota[calls_name] = { used: calls, limit: limitOf(plans, tenant.plan, calls_name) }
  quota[bytes_name] = {
    used: Math.max(0, stored_bytes),
    limit: tenant.storage_bytes_max ?? limitOf(plans, tenant.plan, bytes_name),
  }
  return quota
}

/** Rows that are counted but have expired, by quota. */
export async function expiredOf(
  q: Reader,
  quotas: readonly CountedQuota[],
  tenant_id: string,
  now: Millis,
): Promise<Record<string, number>> {
  const expired: Record<string, number> = {}
  for (const { name, countExpired } of quotas) {
    if (countExpired) expired[name] = await countExpired(q, tenant_id, now)
  }
  return expired
}
