// The table of plans of the API contract, or the file that PLANS_FILE names.

import type { Plan, Plans } from '../contract/services.ts'

const day_seconds = 86_400
const gib = 1_073_741_824

export const default_plans: Plans = {
  free: {
    agents: 25,
    kv_keys: 5_000,
    dlq_items: 500,
    active_schedules: 100,
    inboxes: 3,
    api_calls_per_month: 500,
    storage_bytes: gib,
    inbox_messages: 100,
    inbox_ttl_seconds: 7 * day_seconds,
  },
  builder: {
    agents: 100,
    kv_keys: 50_000,
    dlq_items: 5_000,
    active_schedules: 1_000,
    inboxes: 10,
    api_calls_per_month: null,
    storage_bytes: 10 * gib,
    inbox_messages: 500,
    inbox_ttl_seconds: 30 * day_seconds,
  },
  pro: {
    agents: 500,
    kv_keys: 1_000_000,
    dlq_items: 50_000,
    active_schedules: 50_000,
    inboxes: 50,
    api_calls_per_month: null,
    storage_bytes: 100 * gib,
    inbox_messages: 1_000,
    inbox_ttl_seconds: 30 * day_seconds,
  },
  enterprise: {
    agents: null,
    kv_keys: null,
    dlq_items: null,
    active_schedules: null,
    inboxes: null,
    api_calls_per_month: null,
    storage_bytes: null,
    inbox_messages: 10_000,
    inbox_ttl_seconds: 365 * day_seconds,
  },
}

const names = Object.keys(default_plans.free!) as (keyof Plan)[]

/**
 * Reads a JSON object of plan name -> limits; a limit is a whole number of 0 or more, or null for unlimited. One that a
 * plan does not name is the default of the plan of that name, of `free` for a name that is not in the default table:
 * a file from before a limit was there goes on working, and nothing becomes unlimited by being left out. `free` and
 * `pro`, which sign-up offers, must be among the plans. Throws with one line that says what is wrong.
 */
export function parsePlans(text: string): Plans {
  const table = JSON.parse(text) as Record<string, Record<string, unknown>>
  if (!isObject(table)) throw new Error('it is no JSON object')
  for (const required of ['free', 'pro']) {
    if (!Object.hasOwn(table, required)) throw new Error(`plan "${required}" is missing`)
  }
  return Object.fromEntries(Object.entries(table).map(([plan, limits]) => [plan, parsePlan(plan, limits)]))
}

function parsePlan(plan: string, limits: Record<string, unknown>): Plan {
  if (!isObject(limits)) throw new Error(`"${plan}" is no JSON object`)
  for (const [name, limit] of Object.entries(limits)) {
    if (!names.includes(name as keyof Plan)) throw new Error(`"${plan}.${name}" is no limit`)
    if (limit !== null && (!Number.isSafeInteger(limit) || (limit as number) < 0))
      throw new Error(`"${plan}.${name}" must be a whole number of 0 or more, or null`)
  }
  const defaults = Object.hasOwn(default_plans, plan) ? default_plans[plan] : default_plans.free
  return { ...defaults!, ...limits }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
