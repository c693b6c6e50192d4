import { day_ms } from '../base/clock.ts'
import type { Feature } from '../contract/feature.ts'
import schema from './schema.sql' with { type: 'text' }
import { sweepCalls } from './service.ts'
import { purge } from './store.ts'

/** The counts of past months are kept for a year. */
const months_kept_ms = 400 * day_ms

const gib = 1_073_741_824

export const quotas: Feature = {
  name: 'quotas',
  plan_limits: [
    { name: 'api_calls_per_month', defaults: { free: 500, builder: null, pro: null, enterprise: null } },
    {
      name: 'storage_bytes',
      defaults: { free: gib, builder: 10 * gib, pro: 100 * gib, enterprise: null },
    },
  ],
  migrations: [{ name: 'quotas/0001', text: schema }],
  points_to: ['tenants'],
  sweep: {
    run: (db, now, lists, { rows_max }) => sweepCalls(db, now - months_kept_ms, lists, rows_max),
  },
  purge,
}
