// The key of a request whose answer takes long, checked again and again.

import { ApiError } from '../base/errors.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'
import { authenticate, requireAllowed } from './auth.ts'
import type { ServerOptions } from './exchange.ts'

type Asking = Pick<Route, 'method' | 'path' | 'group' | 'auth' | 'while_pending_deletion' | 'frozen'>

export class KeyChecks {
  /** Many answers of a route under one key share a check, unless keys have changed since it began. */
  readonly #under_way = new Map<string, { holder: Promise<KeyHolder>; changes: number }>()

  constructor(private readonly options: Pick<ServerOptions, 'db' | 'dependencies' | 'clock'>) {}

  /** The holder of the key as it is now. Throws what a new request with these headers would be answered, once that is refused. */
  requireAllowed(route: Asking, headers: Headers): Promise<KeyHolder> {
    const presented = ['authorization', 'x-agent-id', ...route.group.key_headers.map(({ name }) => name)]
    const sent = JSON.stringify([route.method, route.path, ...presented.map((name) => headers.get(name))])
    const { changes } = this.options.dependencies.keys.cache.ask()
    const under_way = this.#under_way.get(sent)
    if (under_way?.changes === changes) return under_way.holder
    const holder = this.#check(route, headers).finally(() => {
      if (this.#under_way.get(sent) === check) this.#under_way.delete(sent)
    })
    const check = { holder, changes }
    this.#under_way.set(sent, check)
    return holder
  }

  async #check(route: Asking, headers: Headers): Promise<KeyHolder> {
    const { options } = this
    const found = await authenticate(options, route.group, headers, options.clock.now())
    if (typeof found === 'string') throw new ApiError('UNAUTHORIZED')
    requireAllowed(found, route)
    return found
  }
}
