// The context that a handler gets beside its input.

import type { Context } from '../contract/route.ts'
import { dbOf } from './connected.ts'
import type { Exchange } from './exchange.ts'
import { type Params, pathOf } from './params.ts'
import type { Prepared } from './prepared.ts'

/**
 * Handlers take from it what they need by name. A function is made only when a handler takes it: most requests need none, and
 * making them all would cost each request a hundredth of its time.
 */
export class RequestContext implements Context<never> {
  readonly db: Context<never>['db']
  readonly caller: never
  readonly dependencies: Context<never>['dependencies']
  readonly now: Context<never>['now']
  readonly request_id: string

  constructor(
    private readonly prepared: Prepared,
    private readonly exchange: Exchange,
    private readonly params: Params,
  ) {
    this.db = dbOf(prepared.route, exchange)
    this.caller = exchange.caller as never
    this.dependencies = exchange.options.dependencies
    this.now = exchange.now
    this.request_id = exchange.request_id
  }

  get path(): Context<never>['path'] {
    return () => pathOf(this.prepared.route, this.params)
  }

  get extendTimeout(): Context<never>['extendTimeout'] {
    return (ms) => this.exchange.extendTimeout(ms)
  }

  get signal(): Context<never>['signal'] {
    return () => this.exchange.request.signal
  }

  get requireStillAllowed(): Context<never>['requireStillAllowed'] {
    const { options, request } = this.exchange
    return () => options.key_checks.requireAllowed(this.prepared.route, request.headers)
  }

  get pause(): Context<never>['pause'] {
    const { permit } = this.exchange
    return (waiting) => (permit ? permit.pause(waiting) : waiting)
  }
}
