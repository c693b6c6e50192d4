import { day_ms, second_ms } from '../base/clock.ts'
import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import * as hook from './hook-routes.ts'
import { forward_job } from './jobs.ts'
import * as messages from './message-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { tokenContext } from './service.ts'
import { expireDue, purge, sweep } from './sweep.ts'
import { countExpired, NEXT_EXPIRY } from './sweep-store.ts'

const day_seconds = day_ms / second_ms

export const inbox: Feature = {
  name: 'inbox',
  tags: { 'Webhook inbox': 'Public URLs that keep whatever is sent to them.' },
  routes: [...routesOf({ ...routes, ...messages }), ...routesOf(hook)],
  errors,
  events,
  usage: 'inboxes',
  quotas: [{ name: 'inboxes', defaults: { free: 3, builder: 10, pro: 50, enterprise: null }, countExpired }],
  plan_limits: [
    { name: 'inbox_messages', defaults: { free: 100, builder: 500, pro: 1_000, enterprise: 10_000 } },
    {
      name: 'inbox_ttl_seconds',
      defaults: {
        free: 7 * day_seconds,
        builder: 30 * day_seconds,
        pro: 30 * day_seconds,
        enterprise: 365 * day_seconds,
      },
    },
  ],
  migrations: [{ name: 'inbox/0001', text: schema }],
  stored: [
    { table: 'inboxes', key: [['id', '']], texts: ['label', 'forward_url', 'workflow_id'] },
    {
      table: 'inbox_messages',
      key: [
        ['inbox_id', ''],
        ['seq', 0],
      ],
      texts: [],
      size: 'size',
    },
  ],
  sweep: { run: sweep },
  expiries: {
    counters: { expired: ['inboxes'] },
    async run(db, now, lists) {
      const { expired, more } = await expireDue(db, now, lists)
      return { counts: { 'expired.inboxes': expired }, more }
    },
    nextAt: NEXT_EXPIRY,
  },
  sealed: [
    {
      table: 'inboxes',
      key: [['id', '']],
      column: 'token',
      context: ({ tenant_id, id }) => tokenContext(String(tenant_id), String(id)),
    },
  ],
  purge,
  jobs: [forward_job],
  docs: { file: 'inbox.md', load: () => import('../../docs/inbox.md', { with: { type: 'text' } }) },
}
