import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as lists from './list-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { markPending, purge, sealedUpTo, step } from './service.ts'
import { sweep } from './sweep.ts'

export const seal: Feature = {
  name: 'seal',
  routes: routesOf({ ...routes, ...lists }),
  errors,
  events,
  usage: 'seal',
  migrations: [{ name: 'seal/0001', text: schema }],
  follows: {
    async numbered(tx, _, tenant_id) {
      await markPending(tx, tenant_id, tx.now)
    },
    step,
    // Only the hash of a removed event is left, so it is sealed first.
    usedUpTo: sealedUpTo,
  },
  sweep: { run: sweep },
  purge,
  docs: { file: 'seal.md', load: () => import('../../docs/seal.md', { with: { type: 'text' } }) },
}
