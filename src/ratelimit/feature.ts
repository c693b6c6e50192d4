import { type Feature, routesOf } from '../contract/feature.ts'
import * as lists from './list-routes.ts'
import * as routes from './routes.ts'

export const ratelimit: Feature = {
  name: 'ratelimit',
  routes: routesOf({ ...routes, ...lists }),
  usage: 'rate_limits',
  docs: { file: 'rate-limit.md', load: () => import('../../docs/rate-limit.md', { with: { type: 'text' } }) },
}
