// Who asks, and how often an address may fail to say so or may sign up.

import { ApiError } from '../base/errors.ts'
import type { Route } from '../contract/route.ts'
import { isApi } from '../contract/surface.ts'
import { authenticate, mustBeAllowed } from './auth.ts'
import type { Asking, ServerOptions } from './exchange.ts'
import type { AddressLimit, Counted } from './limits.ts'

/** Throws UNAUTHORIZED, or RATE_LIMITED past the failed keys of this address; then what the kind of key decides. */
export async function identify(
  asking: Asking,
  route: Pick<Route, 'path' | 'auth' | 'while_pending_deletion'>,
  options: ServerOptions,
  headers: Headers,
  address: () => string,
  now: number,
): Promise<void> {
  const surface = isApi(route.path) ? 'api' : 'v1'
  const found = await authenticate(options.db, options.dependencies.keys.cache, headers, now, surface)
  if (typeof found !== 'string') {
    asking.caller = found
    mustBeAllowed(found, route)
    return
  }
  if (found === 'bad_key' && options.limits) {
    requireLeft(options.limits.failed_keys, address())
  }
  throw new ApiError('UNAUTHORIZED')
}

function requireLeft(limit: AddressLimit, address: string): Counted {
  const counted = limit.take(address)
  if (counted) return counted
  throw new ApiError('RATE_LIMITED', { retry_after_seconds: limit.retryAfter(address) })
}

/** One sign-up: counted once before its effect, however often the driver runs it, and not at all when it fails. */
export class Admission {
  #counted: Counted | null = null

  constructor(
    private readonly limit: AddressLimit,
    private readonly address: string,
  ) {}

  take(): void {
    this.#counted ??= requireLeft(this.limit, this.address)
  }

  giveBack(): void {
    if (this.#counted) this.limit.giveBack(this.#counted)
    this.#counted = null
  }
}
