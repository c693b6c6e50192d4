import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const audit: Feature = {
  name: 'audit',
  tags: { 'Audit log': 'Entries that never change, numbered without gaps.' },
  routes: routesOf(routes),
  events,
  errors,
  usage: 'audit',
  migrations: [{ name: 'audit/0001', text: schema }],
  stored: [
    {
      table: 'audit_entries',
      key: [['seq', 0]],
      texts: ['action', 'workflow_id', 'actor', 'metadata', 'agent_id', 'request_id'],
    },
  ],
  points_to: ['tenants'],
  purge,
  docs: { file: 'audit.md', load: () => import('../../docs/audit.md', { with: { type: 'text' } }) },
}
