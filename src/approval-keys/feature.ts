import { type Feature, routesOf } from '../contract/feature.ts'
import expiry from './0002.sql' with { type: 'text' }
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const approvalKeys: Feature = {
  name: 'approval-keys',
  tags: { 'Approval keys': 'Keys that people use to decide checkpoints.' },
  routes: routesOf(routes),
  events,
  errors,
  usage: 'approval_keys',
  migrations: [
    { name: 'approval-keys/0001', text: schema },
    { name: 'approval-keys/0002', text: expiry },
  ],
  stored: [{ table: 'approval_keys', key: [['approval_key_id', '']], texts: ['label'] }],
  points_to: ['tenants'],
  purge,
  docs: {
    file: 'approval-keys.md',
    load: () => import('../../docs/approval-keys.md', { with: { type: 'text' } }),
  },
}
