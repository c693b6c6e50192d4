// The caller of a request, and how often an address may send a wrong key.

import { ApiError } from '../base/errors.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'
import type { Awaitable } from '../db/db.ts'
import { authenticate, type Refusal, requireAllowed } from './auth.ts'
import type { Exchange } from './exchange.ts'
import { requireLeft } from './limits.ts'
import { UrgentDb } from './urgent-db.ts'
import { workflowOf } from './workflow.ts'

/** A route, or a page, that requires a key. */
type Asking = Pick<Route, 'method' | 'group' | 'auth' | 'while_pending_deletion' | 'frozen' | 'shed'>

/** Throws UNAUTHORIZED, or RATE_LIMITED past the failed keys of this address; then what the kind of key decides. */
export function identify(
  exchange: Exchange,
  route: Asking,
  headers: Headers,
  now = exchange.now,
): Awaitable<void> {
  const { db, dependencies } = exchange.options
  const asked = route.shed === 'last' ? { db: new UrgentDb(db, null), dependencies } : exchange.options
  const found = authenticate(asked, route.group, headers, now)
  if (found instanceof Promise) return found.then((caller) => admit(exchange, route, caller))
  return admit(exchange, route, found)
}

function admit(exchange: Exchange, route: Asking, found: KeyHolder | Refusal): Awaitable<void> {
  if (typeof found !== 'string') {
    const { request_id } = exchange
    exchange.caller = { ...found, request_id, workflow_id: workflowOf(exchange.request.headers) }
    requireAllowed(found, route)
    return
  }
  const { limits } = exchange.options
  return refuse(found === 'bad_key' && limits ? requireLeft(limits.failed_keys, exchange.address) : null)
}

/** Once the wrong key is counted. */
function refuse(counted: Awaitable<unknown>): Awaitable<never> {
  if (counted instanceof Promise) return counted.then(refuse)
  throw new ApiError('UNAUTHORIZED')
}
