// /v1/events and /v1/wait

import { listEventsOf } from './list-routes.ts'
import { wantedFields } from './shapes.ts'
import { waitForEventOf } from './wait-routes.ts'

/** `types`: of the events that features declare. */
export function eventRoutes(types: readonly string[]) {
  const wanted = wantedFields(types)
  return { listEvents: listEventsOf(wanted), waitForEvent: waitForEventOf(wanted) }
}
