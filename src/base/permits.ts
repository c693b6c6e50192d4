// A fixed number of permits that accounts share. A permit cannot be withdrawn, so no account ever gets so many
// that another finds none.

/** Of the reserve, an account may hold one part in this many of what is free. */
const reserve_parts = 8

/**
 * An account may hold all permits but the reserve. The reserve is for accounts that hold little: each may take permits
 * as long as it holds less than an eighth of those that are free, and one in any case. So the last fifteen go only to
 * accounts that hold nothing, and such an account finds a permit while any is free.
 *
 * From seventeen accounts on that hold all they may, none may be free. Then accounts wait, and the code that hands out
 * permits has to serve the one that holds least first, and of those that hold the same the one that was served longest
 * ago: then each gets its fair share as permits are released, even where as many accounts as there are permits ask
 * without end.
 */
export class Permits {
  readonly #held = new Map<string, number>()
  #free: number

  constructor(
    total: number,
    private readonly reserve: number,
  ) {
    this.#free = total
  }

  get free(): number {
    return this.#free
  }

  /** True while permits are free beyond the reserve. */
  get hasBeyondReserve(): boolean {
    return this.#free > this.reserve
  }

  /** True while some of the reserve is held. */
  get isReserveInUse(): boolean {
    return this.#free < this.reserve
  }

  heldBy(account: string): number {
    return this.#held.get(account) ?? 0
  }

  /** True when the account may acquire one more permit now. */
  mayAcquire(account: string): boolean {
    if (this.#free <= 0) return false
    return (
      this.#free > this.reserve || this.heldBy(account) < Math.max(1, Math.floor(this.#free / reserve_parts))
    )
  }

  /** Only where `mayAcquire` allows it. */
  acquire(account: string): void {
    this.#free -= 1
    this.#held.set(account, this.heldBy(account) + 1)
  }

  release(account: string): void {
    this.#free += 1
    const held = this.heldBy(account) - 1
    if (held > 0) this.#held.set(account, held)
    else this.#held.delete(account)
  }
}
