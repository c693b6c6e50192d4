import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import * as routes from './routes.ts'
import schema from './schema.sql' with { type: 'text' }

export const clock: Feature = {
  name: 'clock',
  tags: { 'Test clock': 'Time that a test controls, on a service with CLOCK=test.' },
  routes: routesOf(routes),
  errors,
  migrations: [{ name: 'clock/0001', text: schema }],
  docs: { file: 'test-clock.md', load: () => import('../../docs/test-clock.md', { with: { type: 'text' } }) },
}
