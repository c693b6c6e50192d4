import { type Feature, routesOf } from '../contract/feature.ts'
import held_locks from './0002.sql' with { type: 'text' }
import * as claims from './claim-routes.ts'
import { locks } from './deadline-service.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import { operation_job } from './jobs.ts'
import * as lists from './list-routes.ts'
import * as operations from './operation-routes.ts'
import { purge as purgeOperations, purgeParts } from './operation-store.ts'
import * as redrives from './redrive-routes.ts'
import * as releases from './release-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { expire, sweep } from './sweep.ts'
import { NEXT_EXPIRY, purge } from './sweep-store.ts'

export const dlq: Feature = {
  name: 'dlq',
  tags: { 'Dead letters': 'Work that failed for good: locks, redrives, causes.' },
  routes: routesOf({ ...routes, ...lists, ...claims, ...releases, ...redrives, ...operations }),
  events,
  errors,
  usage: 'dlq',
  quotas: [{ name: 'dlq_items', defaults: { free: 500, builder: 5_000, pro: 50_000, enterprise: null } }],
  migrations: [
    { name: 'dlq/0001', text: schema },
    { name: 'dlq/0002', text: held_locks },
  ],
  stored: [
    { table: 'dlq_items', key: [['id', '']], texts: ['payload', 'error', 'workflow_id'] },
    { table: 'dlq_operations', key: [['id', '']], texts: ['settings'] },
    {
      table: 'dlq_operation_parts',
      key: [
        ['operation_id', ''],
        ['part', -1],
      ],
      texts: ['items'],
    },
  ],
  jobs: [operation_job],
  deadlines: [locks],
  sweep: { run: sweep },
  expiries: {
    counters: { dlq: ['locks_released'] },
    async run(db, now, lists) {
      const { locks_released, more } = await expire(db, now, lists)
      return { counts: { 'dlq.locks_released': locks_released }, more }
    },
    nextAt: NEXT_EXPIRY,
  },
  purge: [purgeOperations, purgeParts, purge],
  docs: { file: 'dlq.md', load: () => import('../../docs/dlq.md', { with: { type: 'text' } }) },
}
