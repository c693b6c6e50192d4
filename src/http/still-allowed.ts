// The key of a request whose answer takes long, checked again and again.

import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'
import { authenticate, requireAllowed } from './auth.ts'
import type { ServerOptions } from './exchange.ts'

type Asking = Pick<Route, 'method' | 'path' | 'group' | 'auth' | 'while_pending_deletion' | 'frozen'>

/** A key may end by the clock alone: the check of a moment ago says nothing of now. */
const shared_ms = 100

export class KeyChecks {
  /** Many answers of a route under one key share a check that began just now, unless keys have changed since. */
  readonly #under_way = new Map<string, { holder: Promise<KeyHolder>; changes: number; began_at: Millis }>()

  constructor(private readonly options: Pick<ServerOptions, 'db' | 'dependencies' | 'clock'>) {}

  /** The holder of the key as it is now. Throws the error that a new request with these headers would get, once it would be refused. */
  requireAllowed(route: Asking, headers: Headers): Promise<KeyHolder> {
    const presented = ['authorization', 'x-agent-id', ...route.group.key_headers.map(({ name }) => name)]
    const sent = JSON.stringify([route.method, route.path, ...presented.map((name) => headers.get(name))])
    const { changes } = this.options.dependencies.keys.cache.ask()
    const now = this.options.clock.now()
    const under_way = this.#under_way.get(sent)
    if (under_way?.changes === changes && now - under_way.began_at < shared_ms) return under_way.holder
    const holder = this.#check(route, headers, now).finally(() => {
      if (this.#under_way.get(sent) === check) this.#under_way.delete(sent)
    })
    const check = { holder, changes, began_at: now }
    this.#under_way.set(sent, check)
    return holder
  }

  async #check(route: Asking, headers: Headers, now: Millis): Promise<KeyHolder> {
    const { options } = this
    const found = await authenticate(options, route.group, headers, now)
    if (typeof found === 'string') throw new ApiError('UNAUTHORIZED')
    requireAllowed(found, route)
    return found
  }
}
