// The limits of a plan. No imports from db or http.

import { day_ms, iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
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

/** 402: nothing was changed. */
export function exceeded(quota: string, used: number, limit: number): ApiError {
  return new ApiError('QUOTA_EXCEEDED', { details: { quota, used, limit } })
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
