import { type Feature, routesOf } from '../contract/feature.ts'
import { upkeep } from '../db/db.ts'
import { usageRoutes } from './routes.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge, sweep } from './service.ts'

/** `groups`: the names under which calls are counted. */
export function usageFeature(groups: readonly string[]): Feature {
  return {
    name: 'usage',
    routes: routesOf(usageRoutes(groups)),
    usage: 'tenants',
    migrations: [{ name: 'usage/0001', text: schema }],
    sweep: {
      async run(db, _now, rows_max) {
        const removed = await db.write(upkeep, (tx) => sweep(tx, tx.now, rows_max))
        return { more: removed === rows_max }
      },
    },
    purge,
  }
}
