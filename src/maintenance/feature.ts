import { type Counters, type Feature, routesOf } from '../contract/feature.ts'
import { tickRoutes } from './routes.ts'

/** `counters`: the numbers that a tick reports. */
export function maintenanceFeature(counters: Counters): Feature {
  return {
    name: 'maintenance',
    tags: { Tick: 'The work that is due, on demand.' },
    routes: routesOf(tickRoutes(counters)),
    docs: { file: 'tick.md', load: () => import('../../docs/tick.md', { with: { type: 'text' } }) },
  }
}
