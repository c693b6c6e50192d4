// Results that are written together, on SQLite: while more attempts go out under existing leases, those that have ended wait
// a moment for others, so that one commit holds them all.

import { limit } from '../base/limit.ts'

export const wait_ms_max = limit(
  'jobs.coalescing',
  25,
  'milliseconds',
  'How long a result waits for others that are written in the same commit, on SQLite.',
)

export class Coalescer {
  #group: PromiseWithResolvers<void> | null = null

  /** Resolves when the group is to be written: at a result that no more follow, or when the time is over. */
  wait(more_follow: boolean): Promise<void> | undefined {
    if (!more_follow) {
      this.end()
      return undefined
    }
    this.#group ??= this.#newGroup()
    return this.#group.promise
  }

  /** Writes what waits now: there is a commit that can hold it. */
  end(): void {
    this.#group?.resolve()
  }

  #newGroup(): PromiseWithResolvers<void> {
    const group = Promise.withResolvers<void>()
    const timer = setTimeout(group.resolve, wait_ms_max)
    group.promise = group.promise.then(() => {
      clearTimeout(timer)
      if (this.#group === group) this.#group = null
    })
    return group
  }
}
