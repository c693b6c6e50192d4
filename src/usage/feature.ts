import { type Feature, routesOf } from '../contract/feature.ts'
import { usageRoutes } from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { sweep } from './service.ts'
import { purge } from './store.ts'

/** `groups`: the names under which calls are counted. */
export function usageFeature(groups: readonly string[]): Feature {
  return {
    name: 'usage',
    routes: routesOf(usageRoutes(groups)),
    usage: 'tenants',
    migrations: [{ name: 'usage/0001', text: schema }],
    sweep: { run: sweep },
    purge,
  }
}
