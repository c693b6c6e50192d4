import { type Feature, routesOf } from '../contract/feature.ts'
import modes from './0002.sql' with { type: 'text' }
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as pauses from './pause-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const agents: Feature = {
  name: 'agents',
  tags: { Agents: 'The programs that call the service, with their keys and modes.' },
  routes: routesOf({ ...routes, ...pauses }),
  events,
  errors,
  usage: 'agents',
  quotas: [{ name: 'agents', defaults: { free: 25, builder: 100, pro: 500, enterprise: null } }],
  migrations: [
    { name: 'agents/0001', text: schema },
    { name: 'agents/0002', text: modes },
  ],
  stored: [
    { table: 'agents', key: [['agent_id', '']], texts: ['agent_id', 'description', 'callback_base_url'] },
  ],
  points_to: ['tenants'],
  purge,
  docs: { file: 'agents.md', load: () => import('../../docs/agents.md', { with: { type: 'text' } }) },
}
