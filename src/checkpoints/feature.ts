import { type Feature, routesOf } from '../contract/feature.ts'
import workflows from './0002.sql' with { type: 'text' }
import { timeouts } from './deadline-service.ts'
import * as decisions from './decision-routes.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import { callback_job, checkpoint_redrive, timeout_job } from './jobs.ts'
import * as lists from './list-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './service.ts'

export const checkpoints: Feature = {
  name: 'checkpoints',
  routes: routesOf({ ...routes, ...decisions, ...lists }),
  errors,
  events,
  usage: 'checkpoints',
  migrations: [
    { name: 'checkpoints/0001', text: schema },
    { name: 'checkpoints/0002', text: workflows },
  ],
  stored: [
    {
      table: 'checkpoints',
      key: [['id', '']],
      texts: ['title', 'prompt', 'callback_url', 'callback_payload', 'reason', 'workflow_id'],
    },
  ],
  purge,
  jobs: [timeout_job, callback_job],
  redrives: [checkpoint_redrive],
  deadlines: [timeouts],
  counters: { checkpoints: ['rejected', 'expired', 'callbacks'] },
  docs: {
    file: 'checkpoints.md',
    load: () => import('../../docs/checkpoints.md', { with: { type: 'text' } }),
  },
}
