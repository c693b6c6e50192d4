// Jobs of a lane that are leased before it has a permit for them, so that a quick receiver does not cost a commit for
// each handful of answers. They wait in memory under their leases.

import { limit } from '../base/limit.ts'

/** For one lane, in addition to its permits. */
export const prefetch_max = limit(
  'jobs.prefetch_of_destination',
  72,
  'attempts',
  'Jobs that are leased for a quick receiver and not sent yet. A node that dies delays them.',
)
/** The same for all lanes of the node, in addition to the attempts in flight. */
export const node_prefetch_max = limit(
  'jobs.prefetch',
  96,
  'attempts',
  'Jobs that are prefetched for all receivers of a node.',
)
/** An attempt that took no longer shows that its receiver is quick. */
export const quick_ms = 50

/** The end of an attempt. `answered`: the receiver sent a status, whatever it was. */
export interface Ended {
  answered: boolean
  duration_ms: number
}

/** The prefetched jobs of one lane, and whether its receiver is quick enough for any. */
export class Prefetch {
  #quick_in_a_row = 0
  /** True while the lane may prefetch more: false once it is full, true again when few jobs are left. */
  #filling = true
  readonly #waiting: ((starts: boolean) => void)[] = []

  /** `permits_max`: of the lane. */
  constructor(private readonly permits_max: number) {}

  /** True when the receiver has answered quickly, as many times in a row as the lane has permits. */
  get isQuick(): boolean {
    return this.#quick_in_a_row >= this.permits_max
  }

  get isFilling(): boolean {
    return this.isQuick && this.#filling
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** `held`: permits and prefetched jobs of the lane, after one more or one less. */
  onAcquired(held: number): void {
    if (held === this.permits_max + prefetch_max) this.#filling = false
  }

  onReleased(held: number): void {
    if (held <= 2 * this.permits_max) this.#filling = true
  }

  /** Resolves true when the job may start, false when it is cancelled. */
  wait(): Promise<boolean> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** False when none waits. */
  startNext(): boolean {
    const next = this.#waiting.shift()
    next?.(true)
    return next !== undefined
  }

  judge({ answered, duration_ms }: Ended): void {
    if (answered && duration_ms <= quick_ms) this.#quick_in_a_row += 1
    else this.slowDown()
  }

  /** The receiver has to show again that it is quick. */
  slowDown(): void {
    this.#quick_in_a_row = 0
    this.cancelAll()
  }

  cancelAll(): void {
    for (const start of this.#waiting.splice(0)) start(false)
  }
}
