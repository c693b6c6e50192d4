// The calls of one tenant in one month, as a node knows them.

import type { Millis } from '../base/clock.ts'
import type { ApiError } from '../base/errors.ts'
import type { Plans } from '../contract/dependencies.ts'
import { calls_name, exceeded, type OnPlan } from './quota.ts'

export interface Entry {
  tenant_id: string
  month: string
  /** The number in the database when it was last read. */
  known: number
  /** Counted here since; `writing` is on its way. */
  unwritten: number
  writing: number
  looked_at: number
  asked_at: number
  /** A look or a write under way: they exclude each other, so that nothing is counted twice or not at all. */
  busy: Promise<void> | null
  looking: boolean
}

/** False past the limit: a call that is refused is not counted. */
export function count(entry: Entry, limit: number | null): boolean {
  if (limit !== null && usedOf(entry) >= limit) return false
  entry.unwritten += 1
  return true
}

export function refusal(entry: Entry, tenant: OnPlan, plans: Plans, now: Millis): ApiError {
  const used = usedOf(entry)
  const limit = plans[tenant.plan]![calls_name]!
  return exceeded(tenant, plans, { quota: calls_name, used, limit }, now)
}

export function usedOf({ known, writing, unwritten }: Entry): number {
  return known + writing + unwritten
}
