import { type Feature, routesOf } from '../contract/feature.ts'
import { errors } from './errors.ts'
import * as routes from './routes.ts'

/** The rows are the journal's. */
export const workflows: Feature = {
  name: 'workflows',
  tags: { Workflows: 'What happened in one piece of work.' },
  routes: routesOf(routes),
  errors,
  usage: 'workflows',
  docs: { file: 'workflows.md', load: () => import('../../docs/workflows.md', { with: { type: 'text' } }) },
}
