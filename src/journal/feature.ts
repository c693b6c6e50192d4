import type { Feature } from '../contract/feature.ts'
import { purge } from './purge-store.ts'
import schema from './schema.sql' with { type: 'text' }

/** `tenants`: the feature of those whose events these are. */
export function journalFeature(tenants: Feature): Feature {
  return {
    name: 'journal',
    plan_limits: [
      { name: 'event_days', defaults: { free: 7, builder: 30, pro: 90, enterprise: 365 } },
      {
        name: 'events_kept',
        defaults: { free: 1_000_000, builder: 10_000_000, pro: 100_000_000, enterprise: null },
      },
    ],
    migrations: [{ name: 'journal/0001', text: schema }],
    points_to: [tenants.name],
    purge,
    docs: { file: 'events.md', load: () => import('../../docs/events.md', { with: { type: 'text' } }) },
  }
}
