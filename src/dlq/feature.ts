import { type Feature, routesOf } from '../contract/feature.ts'
import * as claims from './claim-routes.ts'
import { errors } from './errors.ts'
import rebuilt from './rebuilt.sql' with { type: 'text' }
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { sweep } from './sweep.ts'
import { purge } from './sweep-store.ts'

export const dlq: Feature = {
  name: 'dlq',
  routes: routesOf({ ...routes, ...claims }),
  errors,
  usage: 'dlq',
  quotas: [{ name: 'dlq_items', defaults: { free: 500, builder: 5_000, pro: 50_000, enterprise: null } }],
  migrations: [
    { name: 'dlq/0001', text: schema },
    { name: 'dlq/0002', text: rebuilt },
  ],
  stored: [{ table: 'dlq_items', key: [['id', '']], texts: ['payload', 'error', 'workflow_id'] }],
  sweep: {
    counters: { dlq: ['locks_released'] },
    async run(db, now) {
      const { locks_released, more } = await sweep(db, now)
      return { counts: { 'dlq.locks_released': locks_released }, more }
    },
  },
  purge,
  docs: { file: 'dlq.md', load: () => import('../../docs/dlq.md', { with: { type: 'text' } }) },
}
