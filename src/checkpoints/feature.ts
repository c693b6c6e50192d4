import { type Feature, routesOf } from '../contract/feature.ts'
import steering from './0002.sql' with { type: 'text' }
import * as comments from './comment-routes.ts'
import { purge as purgeComments } from './comment-store.ts'
import { timeouts } from './deadline-service.ts'
import * as decisions from './decision-routes.ts'
import { errors } from './errors.ts'
import { escalation_job } from './escalation-service.ts'
import { events } from './events.ts'
import { callback_job, checkpoint_redrive, timeout_job } from './jobs.ts'
import * as lists from './list-routes.ts'
import * as revocations from './revocation-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge, texts } from './store.ts'
import * as votes from './vote-routes.ts'
import { purge as purgeVotes } from './vote-store.ts'

export const checkpoints: Feature = {
  name: 'checkpoints',
  tags: { Checkpoints: 'Questions to people, their votes, comments and decisions.' },
  routes: routesOf({ ...routes, ...decisions, ...votes, ...revocations, ...comments, ...lists }),
  errors,
  events,
  usage: 'checkpoints',
  migrations: [
    { name: 'checkpoints/0001', text: schema },
    { name: 'checkpoints/0002', text: steering },
  ],
  stored: [
    { table: 'checkpoints', key: [['id', '']], texts },
    {
      table: 'checkpoint_votes',
      key: [
        ['checkpoint_id', ''],
        ['voter', ''],
      ],
      texts: ['reason', 'answer'],
    },
    {
      table: 'checkpoint_comments',
      key: [
        ['checkpoint_id', ''],
        ['id', ''],
      ],
      texts: ['text'],
    },
  ],
  purge: [purgeVotes, purgeComments, purge],
  jobs: [timeout_job, callback_job, escalation_job],
  redrives: [checkpoint_redrive],
  deadlines: [timeouts],
  counters: { checkpoints: ['rejected', 'expired', 'callbacks'] },
  docs: {
    file: 'checkpoints.md',
    load: () => import('../../docs/checkpoints.md', { with: { type: 'text' } }),
  },
}
