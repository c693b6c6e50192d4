// Sign-ups: open to all when the operator allows it, and limited per address.

import { ApiError } from '../base/errors.ts'
import type { ServiceFacts } from '../contract/dependencies.ts'
import type { Awaitable } from '../db/db.ts'
import type { Exchange } from './exchange.ts'
import { type Limiter, requireLeft } from './limits.ts'

/** Throws FORBIDDEN while sign-up is closed. */
export function requireOpenSignUp({ signup_open }: Pick<ServiceFacts, 'signup_open'>): void {
  if (signup_open) return
  throw new ApiError('FORBIDDEN', {
    message: 'Sign-up is closed: the operator of this service creates tenants.',
  })
}

/** One sign-up: counted once before its effect, however often the driver runs it, and not at all when it fails. */
export class SignUp {
  #release: (() => void) | null = null

  /** Null where addresses are not limited. */
  static of(exchange: Exchange): SignUp | null {
    const { limits } = exchange.options
    return limits && new SignUp(limits.sign_ups, exchange.address)
  }

  constructor(
    private readonly limiter: Limiter,
    private readonly address: string,
  ) {}

  /** Throws RATE_LIMITED past the sign-ups of this address. */
  count(): Awaitable<void> {
    if (this.#release) return
    const counted = requireLeft(this.limiter, this.address)
    if (!(counted instanceof Promise)) {
      this.#release = counted
      return
    }
    return counted.then((release) => {
      this.#release = release
    })
  }

  cancel(): void {
    this.#release?.()
    this.#release = null
  }
}
