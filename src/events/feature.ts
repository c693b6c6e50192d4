import { type Feature, routesOf } from '../contract/feature.ts'
import { eventRoutes } from './routes.ts'

/** `types`: of the events that features declare. */
export function eventsFeature(types: readonly string[]): Feature {
  return {
    name: 'events',
    tags: { Events: 'What happened: list it, wait for it, or stream it.' },
    routes: routesOf(eventRoutes(types)),
    usage: 'events',
    docs: { file: 'events.md', load: () => import('../../docs/events.md', { with: { type: 'text' } }) },
  }
}
