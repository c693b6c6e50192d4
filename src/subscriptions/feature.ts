import { type Feature, routesOf } from '../contract/feature.ts'
import { purge as purgeAddresses, purgeMails } from './address-store.ts'
import { purge as purgeAttempts } from './attempt-store.ts'
import * as changes from './change-routes.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import { subscription_job } from './jobs.ts'
import * as lists from './list-routes.ts'
import * as mail from './mail-routes.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { wake } from './service.ts'
import { purge } from './store.ts'
import { targetContext, tokenContext } from './targets.ts'

export const subscriptions: Feature = {
  name: 'subscriptions',
  tags: { Subscriptions: 'Events delivered to a URL or an address.' },
  routes: [...routesOf({ ...routes, ...changes, ...lists }), ...routesOf(mail)],
  events,
  follows: { numbered: wake },
  errors,
  usage: 'subscriptions',
  quotas: [{ name: 'subscriptions', defaults: { free: 3, builder: 10, pro: 50, enterprise: null } }],
  migrations: [{ name: 'subscriptions/0001', text: schema }],
  stored: [
    { table: 'subscriptions', key: [['id', '']], texts: ['name', 'types', 'workflow_id', 'target'] },
    { table: 'subscription_addresses', key: [['address_hash', '']], texts: ['token'] },
  ],
  sealed: [
    {
      ...{ table: 'subscriptions', key: [['id', '']], column: 'target' },
      context: ({ tenant_id, id }) => targetContext(String(tenant_id), String(id)),
    },
    {
      ...{ table: 'subscription_addresses', key: [['address_hash', '']], column: 'token' },
      context: ({ tenant_id, address_hash }) => tokenContext(String(tenant_id), String(address_hash)),
    },
  ],
  purge: [purge, purgeAttempts, purgeAddresses, purgeMails],
  jobs: [subscription_job],
  docs: {
    file: 'subscriptions.md',
    load: () => import('../../docs/subscriptions.md', { with: { type: 'text' } }),
  },
}
