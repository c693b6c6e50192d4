import { type Feature, routesOf } from '../contract/feature.ts'
import * as lists from './list-routes.ts'
import * as routes from './routes.ts'

export const ratelimit: Feature = {
  name: 'ratelimit',
  tags: { 'Rate limiter': 'Counters of hits, with limits.' },
  routes: routesOf({ ...routes, ...lists }),
  usage: 'rate_limits',
  docs: { file: 'rate-limit.md', load: () => import('../../docs/rate-limit.md', { with: { type: 'text' } }) },
}
