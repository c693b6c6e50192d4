// The caller of a request, and how often an address may send a wrong key.

import { ApiError } from '../base/errors.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'
import * as credentials from '../credentials/service.ts'
import type { Awaitable } from '../db/db.ts'
import { clientKey } from './address.ts'
import { authenticate, type Find, type Refusal, requireAllowed } from './auth.ts'
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
  const { options } = exchange
  const find = route.shed === 'last' ? urgentFind(exchange) : undefined
  const found = authenticate(options, route.group, headers, now, find)
  if (found instanceof Promise) return found.then((caller) => admit(exchange, route, caller))
  return admit(exchange, route, found)
}

/** Looks the key up ahead of other requests, unless the key may be invented and too many such look-ups run. */
function urgentFind(exchange: Exchange): Find {
  const { look_ups } = exchange.options
  return async (db, key_cache, key, now) => {
    const urgent_db = new UrgentDb(db, null)
    if (credentials.isKnown(db, key)) return credentials.identify(urgent_db, key_cache, key, now)
    const client = clientKey(exchange.address)
    if (!look_ups.enter(client)) return credentials.identify(db, key_cache, key, now)
    try {
      return await credentials.identify(urgent_db, key_cache, key, now)
    } finally {
      look_ups.leave(client)
    }
  }
}

function admit(exchange: Exchange, route: Asking, found: KeyHolder | Refusal): Awaitable<void> {
  if (typeof found !== 'string') {
    const { request_id } = exchange
    exchange.caller = { ...found, request_id, workflow_id: workflowOf(exchange.request.headers) }
    requireAllowed(found, route)
    return
  }
  return refuse(found === 'bad_key' ? countWrongKey(exchange) : null)
}

/** Throws RATE_LIMITED past the failed keys of this address. */
function countWrongKey(exchange: Exchange): Awaitable<unknown> {
  const { limits, look_ups } = exchange.options
  if (!limits) return null
  return requireLeft(limits.failed_keys, exchange.address, (retry_after_seconds) =>
    look_ups.refuse(clientKey(exchange.address), retry_after_seconds),
  )
}

/** Once the wrong key is counted. */
function refuse(counted: Awaitable<unknown>): Awaitable<never> {
  if (counted instanceof Promise) return counted.then(refuse)
  throw new ApiError('UNAUTHORIZED')
}
