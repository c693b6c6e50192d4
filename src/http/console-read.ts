// Reads of the console, which calls of /api within a plan do not count.

import type { Caller } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'

/**
 * True for a read that people make by looking: of a route that allows it, with an admin key. Calls of agents count,
 * whatever header they send. The header is that of `console/api/client.ts`.
 */
export function isConsoleRead(route: Route, caller: Caller, headers: Headers): boolean {
  return (
    route.free_in_console === true &&
    caller.kind === 'admin' &&
    headers.get('x-waystation-client') === 'console'
  )
}
