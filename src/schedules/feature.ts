import { type Feature, routesOf } from '../contract/feature.ts'
import * as changes from './change-routes.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import { schedule_job } from './jobs.ts'
import * as lists from './list-routes.ts'
import { schedule_redrive } from './repeat.ts'
import * as routes from './routes.ts'
import { texts } from './schedule.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const schedules: Feature = {
  name: 'schedules',
  tags: { Schedules: 'One-time signed callbacks.' },
  routes: routesOf({ ...routes, ...changes, ...lists }),
  errors,
  events,
  usage: 'schedules',
  quotas: [
    { name: 'active_schedules', defaults: { free: 100, builder: 1_000, pro: 50_000, enterprise: null } },
  ],
  migrations: [{ name: 'schedules/0001', text: schema }],
  stored: [{ table: 'schedules', key: [['id', '']], texts }],
  purge,
  jobs: [schedule_job],
  redrives: [schedule_redrive],
  counters: { schedules: ['due', 'fired', 'retrying', 'failed'] },
  docs: { file: 'schedules.md', load: () => import('../../docs/schedules.md', { with: { type: 'text' } }) },
}
