// The table of plans: the defaults that features declare, or the file that PLANS_FILE names.

import type { Plan, Plans } from '../contract/dependencies.ts'
import { type PlanLimit, type PlanName, plan_names, unlimited_plan } from '../contract/feature.ts'

/** The table of plans of the API contract, and `unlimited`. */
export function defaultPlans(limits: readonly PlanLimit[]): Plans {
  return Object.fromEntries([...plan_names, unlimited_plan].map((plan) => [plan, defaultsOf(limits, plan)]))
}

/** Those of `free` for a plan of another name. */
function defaultsOf(limits: readonly PlanLimit[], plan: string): Plan {
  const known = (plan_names as readonly string[]).includes(plan) ? (plan as PlanName) : 'free'
  const name = plan === unlimited_plan ? 'enterprise' : known
  return Object.fromEntries(limits.map((limit) => [limit.name, limit.defaults[name]]))
}

/**
 * Reads a JSON object of plan name -> limits; a limit is a whole number of 0 or more, or null for unlimited. One that a
 * plan does not name is the default of the plan of that name, of `free` for a name that is not in the default table:
 * a file that is older than a limit keeps working, and nothing becomes unlimited because it is absent. `free` and
 * `pro`, which sign-up offers, must be among the plans. Throws with one line that says what is wrong.
 */
export function parsePlans(text: string, limits: readonly PlanLimit[]): Plans {
  const table = JSON.parse(text) as Record<string, Record<string, unknown>>
  if (!isObject(table)) throw new Error('it is not a JSON object')
  for (const required of ['free', 'pro']) {
    if (!Object.hasOwn(table, required)) throw new Error(`plan "${required}" is missing`)
  }
  return Object.fromEntries(
    Object.entries(table).map(([plan, given]) => [plan, parsePlan(plan, given, limits)]),
  )
}

function parsePlan(plan: string, given: Record<string, unknown>, limits: readonly PlanLimit[]): Plan {
  if (!isObject(given)) throw new Error(`"${plan}" is not a JSON object`)
  for (const [name, limit] of Object.entries(given)) {
    if (!limits.some((known) => known.name === name)) throw new Error(`"${plan}.${name}" is not a limit`)
    if (limit !== null && (!Number.isSafeInteger(limit) || (limit as number) < 0))
      throw new Error(`"${plan}.${name}" must be a whole number of 0 or more, or null`)
  }
  return { ...defaultsOf(limits, plan), ...(given as Plan) }
}

/** `500 api calls per month, 1 GiB storage, 25 agents`: those of these limits that the plan has. */
export function limitsInWords(plan: Plan, names: readonly string[]): string {
  const words = names.flatMap((name) => {
    const limit = plan[name] ?? null
    if (limit === null) return []
    const is_size = name.endsWith('_bytes')
    return `${is_size ? sized(limit) : grouped(limit)} ${name.replace(/_bytes$/, '').replaceAll('_', ' ')}`
  })
  return words.length > 0 ? words.join(', ') : 'no quotas'
}

function sized(bytes: number): string {
  const mib = bytes / 1_048_576
  return mib < 1_024 ? `${grouped(Math.round(mib))} MiB` : `${grouped(Math.round(mib / 1_024))} GiB`
}

function grouped(value: number): string {
  return value.toLocaleString('en')
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
