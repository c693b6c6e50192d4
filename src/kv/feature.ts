import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import { events } from './events.ts'
import { NEXT_EXPIRY } from './expiry-store.ts'
import * as namespaces from './namespace-routes.ts'
import { purge as purgeNamespaces } from './namespace-store.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { expire, sweep } from './sweep.ts'
import { countExpired, purge } from './sweep-store.ts'

export const kv: Feature = {
  name: 'kv',
  tags: { 'Key-value store': 'Values under keys in namespaces, with compare-and-set.' },
  routes: routesOf({ ...routes, ...namespaces }),
  events,
  errors,
  usage: 'kv',
  quotas: [
    {
      name: 'kv_keys',
      defaults: { free: 5_000, builder: 50_000, pro: 1_000_000, enterprise: null },
      countExpired,
    },
  ],
  migrations: [{ name: 'kv/0001', text: schema }],
  stored: [
    {
      table: 'kv_entries',
      key: [
        ['namespace', ''],
        ['key', ''],
      ],
      texts: ['namespace', 'key', 'value'],
    },
    { table: 'kv_namespaces', key: [['namespace', '']], texts: ['namespace'] },
  ],
  sweep: {
    counters: { expired: ['kv_keys'] },
    async run(db, now, lists) {
      const { expired, more } = await sweep(db, now, lists)
      return { counts: { 'expired.kv_keys': expired }, more }
    },
  },
  expiries: {
    async run(db, now, lists) {
      const { expired, more } = await expire(db, now, lists)
      return { counts: { 'expired.kv_keys': expired }, more }
    },
    nextAt: NEXT_EXPIRY,
  },
  purge: [purgeNamespaces, purge],
  docs: { file: 'kv.md', load: () => import('../../docs/kv.md', { with: { type: 'text' } }) },
}
