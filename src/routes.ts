// Every route of the service and every kind of job: a feature that is not in this list does not exist.

import * as agents from './agents/routes.ts'
import * as approvalKeys from './approval-keys/routes.ts'
import * as audit from './audit/routes.ts'
import { callback_job, timeout_job } from './checkpoints/jobs.ts'
import * as checkpoints from './checkpoints/routes.ts'
import type { NamedRoute, Route } from './contract/route.ts'
import * as dlq from './dlq/routes.ts'
import * as health from './health/routes.ts'
import * as hook from './inbox/hook-routes.ts'
import { forward_job } from './inbox/jobs.ts'
import * as inbox from './inbox/routes.ts'
import type { JobKind } from './jobs/kind.ts'
import * as kv from './kv/routes.ts'
import * as tick from './maintenance/routes.ts'
import * as ratelimit from './ratelimit/routes.ts'
import { schedule_job } from './schedules/jobs.ts'
import * as schedules from './schedules/routes.ts'
import * as tenants from './tenants/routes.ts'
import * as usage from './usage/routes.ts'

export const features = {
  tenants,
  usage,
  agents,
  'approval-keys': approvalKeys,
  kv,
  audit,
  dlq,
  schedules,
  checkpoints,
  inbox,
  hook,
  ratelimit,
  tick,
  health,
}

export const job_kinds: readonly JobKind[] = [schedule_job, timeout_job, callback_job, forward_job]

/** The name under which the calls of a feature are counted. */
const usage_names: Partial<Record<keyof typeof features, string>> = {
  ...{ tenants: 'tenants', usage: 'tenants', agents: 'agents', 'approval-keys': 'approval_keys', kv: 'kv' },
  ...{ audit: 'audit', dlq: 'dlq', schedules: 'schedules', checkpoints: 'checkpoints', inbox: 'inboxes' },
  ratelimit: 'rate_limits',
}

/** In the order of the features; the export's name is the operation's id. */
export const routes: readonly NamedRoute[] = Object.entries(features).flatMap(([folder, feature]) => {
  const usage = usage_names[folder as keyof typeof features]
  return Object.entries(feature).flatMap(([name, value]) =>
    isRoute(value) ? [{ name, route: value, ...(usage === undefined ? {} : { usage }) }] : [],
  )
})

function isRoute(value: unknown): value is Route {
  return (
    typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'replies' in value
  )
}
