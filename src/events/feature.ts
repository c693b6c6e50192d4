import { type Feature, routesOf } from '../contract/feature.ts'
import { eventRoutes } from './routes.ts'

/** `types`: of the events that features declare. */
export function eventsFeature(types: readonly string[]): Feature {
  return {
    name: 'events',
    tags: { Events: 'What happened, as a list, a wait or a stream.' },
    routes: routesOf(eventRoutes(types)),
    usage: 'events',
    docs: { file: 'events.md', load: () => import('../../docs/events.md', { with: { type: 'text' } }) },
  }
}
