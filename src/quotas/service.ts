// Counters that are exact under concurrency: taking one is a guarded update, never a count.
// Lock order everywhere: first the row that is counted, then its counter.

import type { TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/services.ts'
import type { Reader, Tx } from '../db/db.ts'
import { counted, exceeded, limitOf, planOf, type Quota } from './quota.ts'
import * as store from './store.ts'

export const add = store.add
export const create = store.create
export const giveBack = store.giveBack
export const purge = store.purge
export const raiseFloor = store.raiseFloor

interface Taken {
  /** See migrations: used by kv_keys alone. */
  version_floor: number
}

/**
 * Counts one more. At the limit, what has expired is swept first (`sweepExpired` answers how many that were);
 * if that frees nothing, throws QUOTA_EXCEEDED.
 */
export async function take(
  tx: Tx,
  tenant: TenantFacts,
  plans: Plans,
  quota: Quota,
  sweepExpired: () => Promise<number> = async () => 0,
): Promise<Taken> {
  const limit = limitOf(plans, tenant.plan, quota)
  const ceiling = limit ?? Number.MAX_SAFE_INTEGER
  const taken = await store.take(tx, tenant.tenant_id, quota, ceiling)
  if (taken) return taken
  if ((await sweepExpired()) > 0) {
    const second = await store.take(tx, tenant.tenant_id, quota, ceiling)
    if (second) return second
  }
  const used = (await store.usedOne(tx, tenant.tenant_id, quota))?.used ?? 0
  throw exceeded(quota, used, ceiling)
}

export type QuotaObject = Record<string, { used: number; limit: number | null }>

/** The `quota` object of the API contract. `expired` is what is counted but no longer there. */
export async function usage(
  q: Reader,
  tenant: Pick<TenantFacts, 'tenant_id' | 'plan'>,
  plans: Plans,
  expired: Partial<Record<Quota, number>> = {},
): Promise<QuotaObject> {
  const plan = planOf(plans, tenant.plan)
  const rows = await store.used(q, tenant.tenant_id)
  const quota: QuotaObject = {}
  for (const name of counted) {
    const used = rows.find((row) => row.quota === name)?.used ?? 0
    quota[name] = { used: Math.max(0, used - (expired[name] ?? 0)), limit: plan[name] }
  }
  quota.api_calls_per_month = { used: 0, limit: plan.api_calls_per_month }
  return quota
}
