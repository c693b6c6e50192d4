// A tenant and its use of quotas.

import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Counts, MonthlyCalls, Plans } from '../contract/dependencies.ts'
import type { Db, Reader } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import * as store from './store.ts'
import type { TenantRow } from './tenant.ts'

export interface Shown {
  plans: Plans
  counts: Pick<Counts, 'quotas'>
}

export interface ViewDependencies extends Shown {
  counts: Pick<Counts, 'calls' | 'quotas'>
}

export interface TenantView {
  tenant: TenantRow
  quota: quotas.QuotaObject
}

/** The tenant and its use of quotas, in one state of the database; `me` is the own one. Throws FORBIDDEN for any other tenant's id. */
export async function read(
  db: Db,
  now: Millis,
  caller: AdminCaller,
  tenant_id: string,
  dependencies: ViewDependencies,
): Promise<TenantView> {
  requireOwnOrMe(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, now)
  return db.read(caller.tenant_id, (q) => view(q, caller.tenant_id, dependencies, now, counted))
}

/** The numbers that this node has counted and not yet written. Not within a transaction. */
export async function inMemory(
  db: Db,
  calls: MonthlyCalls,
  tenant_id: string,
  now: Millis,
): Promise<quotas.InMemory> {
  return {
    calls: await calls.used(tenant_id, now),
    storedBytes: (counter) => db.storedBytes(tenant_id, counter),
  }
}

export async function view(
  q: Reader,
  tenant_id: string,
  { plans, counts }: Shown,
  now: Millis,
  counted: quotas.InMemory,
): Promise<TenantView> {
  const tenant = await store.find(q, tenant_id)
  if (!tenant) throw new ApiError('UNAUTHORIZED')
  const expired = await quotas.expiredOf(q, counts.quotas, tenant_id, now)
  return { tenant, quota: await quotas.usage(q, tenant, counted, { plans, quotas: counts.quotas, expired }) }
}

/** Throws FORBIDDEN for every id but the caller's own, existing or not. */
export function requireOwn(caller: AdminCaller, tenant_id: string): void {
  if (tenant_id !== caller.tenant_id) throw new ApiError('FORBIDDEN')
}

/** The same for reads, where `me` is the own id: a caller may have nothing but the key. */
export function requireOwnOrMe(caller: AdminCaller, tenant_id: string): void {
  if (tenant_id !== 'me') requireOwn(caller, tenant_id)
}
