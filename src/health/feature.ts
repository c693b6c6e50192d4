import { type Feature, routesOf } from '../contract/feature.ts'
import * as routes from './routes.ts'

export const health: Feature = {
  name: 'health',
  tags: { Service: 'Health, and this document.' },
  routes: routesOf(routes),
}
