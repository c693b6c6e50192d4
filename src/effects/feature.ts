import { type Feature, routesOf } from '../contract/feature.ts'
import { leases } from './deadline-service.ts'
import { decides } from './decision-service.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as lists from './list-routes.ts'
import { countExpired } from './permit-store.ts'
import * as policies from './policy-routes.ts'
import * as reports from './report-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import * as starts from './start-routes.ts'
import { forget, runOut } from './sweep.ts'
import { NEXT_EXPIRY, purge } from './sweep-store.ts'

export const effects: Feature = {
  name: 'effects',
  tags: { Effects: 'Actions that happen at most once, after an approval where one is needed.' },
  routes: [...routesOf({ ...routes, ...starts, ...reports, ...lists }), ...routesOf(policies)],
  errors,
  events,
  usage: 'effects',
  quotas: [
    { name: 'effects', defaults: { free: 500, builder: 5_000, pro: 50_000, enterprise: null }, countExpired },
    { name: 'effect_policies', defaults: { free: 10, builder: 50, pro: 100, enterprise: null } },
  ],
  plan_limits: [{ name: 'effect_days', defaults: { free: 7, builder: 30, pro: 90, enterprise: 365 } }],
  migrations: [{ name: 'effects/0001', text: schema }],
  stored: [
    {
      table: 'effects',
      key: [['id', '']],
      texts: ['type', 'key', 'note', 'workflow_id', 'error', 'payload', 'effective_payload', 'result'],
    },
    { table: 'effect_policies', key: [['type', '']], texts: ['type', 'approvers'] },
  ],
  decides,
  sweep: { run: forget },
  expiries: {
    counters: { effects: ['ran_out'] },
    run: runOut,
    nextAt: NEXT_EXPIRY,
  },
  deadlines: [leases],
  purge,
  docs: { file: 'effects.md', load: () => import('../../docs/effects.md', { with: { type: 'text' } }) },
}
