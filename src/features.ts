// The one list of what the service is made of: a feature that is not in it does not exist.

import { agents } from './agents/feature.ts'
import { approvalKeys } from './approval-keys/feature.ts'
import { audit } from './audit/feature.ts'
import { checkpoints } from './checkpoints/feature.ts'
import { clock } from './clock/feature.ts'
import type { Decides } from './contract/decides.ts'
import type { Plan } from './contract/dependencies.ts'
import type { Feature, NamedRoute } from './contract/feature.ts'
import { countersOf, eventTypesOf, inOrder } from './contract/features.ts'
import { redrivesOf } from './contract/redrive.ts'
import { credentials } from './credentials/feature.ts'
import { recounted } from './db/recount.ts'
import { resealed } from './db/reseal.ts'
import { dlq } from './dlq/feature.ts'
import { effects } from './effects/feature.ts'
import { eventsFeature } from './events/feature.ts'
import { health } from './health/feature.ts'
import { idempotency } from './idempotency/feature.ts'
import { inbox } from './inbox/feature.ts'
import { jobs } from './jobs/feature.ts'
import type { JobKind } from './jobs/kind.ts'
import { journalFeature } from './journal/feature.ts'
import { kv } from './kv/feature.ts'
import { lookups } from './lookups/feature.ts'
import { maintenanceFeature } from './maintenance/feature.ts'
import { quarantine } from './quarantine/feature.ts'
import { quotas } from './quotas/feature.ts'
import { defaultPlans, limitsInWords } from './quotas/plans.ts'
import { ratelimit } from './ratelimit/feature.ts'
import { schedules } from './schedules/feature.ts'
import { seal } from './seal/feature.ts'
import { secrets } from './secrets/feature.ts'
import { subscriptions } from './subscriptions/feature.ts'
import { tenantsFeature } from './tenants/feature.ts'
import { usageFeature } from './usage/feature.ts'
import { workflows } from './workflows/feature.ts'

/** In the order in which the document, plans, quotas and usage show them. */
const nouns: readonly Feature[] = [
  ...[agents, approvalKeys, kv, audit, dlq, schedules, checkpoints, inbox, ratelimit],
  ...[effects, workflows, subscriptions, seal],
]
/** Counted in the database, and limited by plans. */
export const counted_quotas = nouns.flatMap((feature) => feature.quotas ?? [])
const tenants = tenantsFeature(counted_quotas)

const journal = journalFeature(tenants)
const events = eventsFeature([
  ...new Set(['audit.appended', 'dlq.created', ...eventTypesOf([tenants, ...nouns]).keys()]),
])
const usage = usageFeature([
  ...new Set([tenants, ...nouns, events].flatMap((feature) => feature.usage ?? [])),
])
const before_maintenance = [
  ...[secrets, quarantine, lookups, tenants, credentials, quotas, journal, usage, ...nouns, events],
]
const after_maintenance = [clock, health, idempotency, jobs]

/** Those whose rows are pointed to come first: tables are made in this order, and purged in the opposite one. */
export const features = inOrder([
  ...before_maintenance,
  ...[maintenanceFeature(countersOf([...before_maintenance, ...after_maintenance])), ...after_maintenance],
])

/** With the name under which their calls are counted. */
export const routes: readonly NamedRoute[] = features.flatMap(({ routes = [], usage }) =>
  usage === undefined ? routes : routes.map((named) => ({ ...named, usage })),
)
/** The tags of routes, each with a sentence. */
export const tags: Readonly<Record<string, string>> = Object.assign(
  {},
  ...features.map((feature) => feature.tags),
)
/** The types of all events, by name. */
export const event_types = eventTypesOf(features)
export const follows = features.flatMap((feature) => feature.follows ?? [])
export const job_kinds: readonly JobKind[] = features.flatMap((feature) => feature.jobs ?? [])
/** Called at the end of a checkpoint. */
export const decides: readonly Decides[] = features.flatMap((feature) => feature.decides ?? [])
/** How the sources of dead letters are sent again. */
export const redrives = redrivesOf(features.flatMap((feature) => feature.redrives ?? []))
/** Moved when a tenant is resumed. */
export const deadlines = features
  .flatMap((feature) => feature.deadlines ?? [])
  .toSorted((a, b) => (a.name < b.name ? -1 : 1))
export const migrations = features.flatMap((feature) => feature.migrations ?? [])
export const stored_tables = features.flatMap((feature) => feature.stored ?? [])
export const recounted_tables = recounted(stored_tables)
export const sealed_columns = features.flatMap((feature) => feature.sealed ?? []).map(resealed)
export const docs_pages = features.flatMap((feature) => feature.docs ?? [])

/** Numbers that a plan has: those that are counted first. */
export const plan_limits = [...counted_quotas, ...features.flatMap((feature) => feature.plan_limits ?? [])]
export const default_plans = defaultPlans(plan_limits)

/** The quotas of a plan. */
export function planInWords(plan: Plan): string {
  return limitsInWords(
    plan,
    [...(quotas.plan_limits ?? []), ...counted_quotas].map(({ name }) => name),
  )
}
