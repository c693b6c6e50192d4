import { type Feature, routesOf } from '../contract/feature.ts'
import epoch_schema from './0002.sql' with { type: 'text' }
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as lists from './list-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { keyContext, markPending, sealedUpTo, step } from './service.ts'
import { purge } from './store.ts'
import { sweep } from './sweep.ts'

export const seal: Feature = {
  name: 'seal',
  tags: { Seal: 'Proofs that the journal was not changed.' },
  routes: routesOf({ ...routes, ...lists }),
  errors,
  events,
  usage: 'seal',
  migrations: [
    { name: 'seal/0001', text: schema },
    { name: 'seal/0002', text: epoch_schema },
  ],
  follows: {
    async numbered(tx, _, tenant_id) {
      await markPending(tx, tenant_id, tx.now)
    },
    step,
    // Only the hash of a removed event is left, so it is sealed first.
    usedUpTo: sealedUpTo,
  },
  sweep: { run: sweep },
  sealed: [
    {
      ...{ table: 'seal_keys', of_service: true, key: [['number', 0]], column: 'private_key' },
      context: ({ number }) => keyContext(Number(number)),
    },
  ],
  purge,
  docs: { file: 'seal.md', load: () => import('../../docs/seal.md', { with: { type: 'text' } }) },
}
