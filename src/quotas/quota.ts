// The limits of a plan. No imports from db or http.

import { day_ms, iso, type Millis, nextMonth } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Plan, Plans } from '../contract/dependencies.ts'

/** The limit of this plan; null is unlimited. */
export function limitOf(plans: Plans, plan: string, name: string): number | null {
  const limit = planOf(plans, plan)[name]
  if (limit === undefined) throw new Error(`${name} is not a limit of plans`)
  return limit
}

function planOf(plans: Plans, plan: string): Plan {
  const found = plans[plan]
  if (!found) throw new Error(`plan ${plan} is not in the table of plans`)
  return found
}

/** The tenant that met its limit. */
export type OnPlan = Pick<TenantFacts, 'tenant_id' | 'plan'>

export interface Full {
  quota: string
  used: number
  limit: number
}

/** 402: nothing was changed. Its sentence says which plan it is, when that ends by itself, and how the operator raises it. */
export function exceeded(tenant: OnPlan, plans: Plans, { quota, used, limit }: Full, now: Millis): ApiError {
  const full = quota === calls_name ? callsMade(limit, now) : `${limit} ${quota}, and ${used} are used`
  const message = `The plan ${tenant.plan} allows ${full}. ${wayOn(tenant, plans, quota, limit)}`
  return new ApiError('QUOTA_EXCEEDED', { message, details: { quota, used, limit } })
}

export const calls_name = 'api_calls_per_month'
export const bytes_name = 'storage_bytes'

function callsMade(limit: number, now: Millis): string {
  return `${limit} calls of /api per month, and all are used; the next month begins at ${iso(nextMonth(now))}`
}

/** The commands are those of src/admin.ts. */
function wayOn({ tenant_id }: OnPlan, plans: Plans, quota: string, limit: number): string {
  const ask = quota === calls_name ? 'Ask the operator' : 'Remove some, or ask the operator'
  const command = `${ask}, who raises it with: npm run admin --`
  if (quota === bytes_name) return `${command} set-storage ${tenant_id} <bytes>`
  const [first, ...others] = Object.keys(plans).filter(
    (plan) => (plans[plan]![quota] ?? Number.POSITIVE_INFINITY) > limit,
  )
  if (first === undefined) return `${ask} to change the table of plans, PLANS_FILE.`
  return `${command} set-plan ${tenant_id} ${first}${others.length > 0 ? ` (or ${others.join(', ')})` : ''}`
}

let last_day = Number.NaN
let last_month = ''

/** `2026-11`: the calendar month in UTC. */
export function monthOf(now: Millis): string {
  const day = Math.floor(now / day_ms)
  if (day !== last_day) {
    last_day = day
    last_month = iso(now).slice(0, 7)
  }
  return last_month
}

/** The last instant of a month. */
export function endOf(month: string): Millis {
  return nextMonth(Date.parse(month)) - 1
}
