import { type CountedQuota, type Feature, routesOf } from '../contract/feature.ts'
import freeze_schema from './0002.sql' with { type: 'text' }
import { errors } from './errors.ts'
import { events } from './events.ts'
import { tenantRoutes } from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { finishPurge } from './service.ts'
import { signingContext } from './signing.ts'
import { lockPurgeable, purgeable } from './store.ts'

/** `quotas`: those that a tenant's `quota` shows. */
export function tenantsFeature(quotas: readonly CountedQuota[]): Feature {
  return {
    name: 'tenants',
    tags: { Tenants: 'Accounts: sign-up, keys, plan and quotas, freeze, deletion.' },
    routes: routesOf(tenantRoutes(quotas)),
    events,
    errors,
    usage: 'tenants',
    migrations: [
      { name: 'tenants/0001', text: schema },
      { name: 'tenants/0002', text: freeze_schema },
    ],
    sealed: ['signing_secret', 'previous_signing_secret'].map((column) => ({
      ...{ table: 'tenants', key: [], column },
      context: ({ tenant_id }) => signingContext(String(tenant_id)),
    })),
    purgeable: { due: purgeable, lock: lockPurgeable, remove: finishPurge },
    docs: { file: 'tenants.md', load: () => import('../../docs/tenants.md', { with: { type: 'text' } }) },
  }
}
