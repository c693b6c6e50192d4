// Sign-ups: open to all when the operator allows it, and limited per address.

import { ApiError } from '../base/errors.ts'
import type { ServiceFacts } from '../contract/dependencies.ts'
import type { Exchange } from './exchange.ts'
import { type AddressLimit, type Counted, requireLeft } from './limits.ts'

/** Throws FORBIDDEN while sign-up is closed. */
export function requireOpenSignUp({ signup_open }: Pick<ServiceFacts, 'signup_open'>): void {
  if (!signup_open) throw new ApiError('FORBIDDEN')
}

/** One sign-up: counted once before its effect, however often the driver runs it, and not at all when it fails. */
export class SignUp {
  #counted: Counted | null = null

  /** Null where addresses are not limited. */
  static of(exchange: Exchange): SignUp | null {
    const { limits } = exchange.options
    return limits && new SignUp(limits.sign_ups, exchange.address)
  }

  constructor(
    private readonly limit: AddressLimit,
    private readonly address: string,
  ) {}

  /** Throws RATE_LIMITED past the sign-ups of this address. */
  count(): void {
    this.#counted ??= requireLeft(this.limit, this.address)
  }

  cancel(): void {
    if (this.#counted) this.limit.release(this.#counted)
    this.#counted = null
  }
}
