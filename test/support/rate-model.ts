// A model of a rate counter, as plain as possible: the service is compared with it.

export interface Asked {
  algorithm: 'fixed_window' | 'sliding_window'
  window_ms: number
  limit: number
  cost: number
}

interface State {
  algorithm: string
  window_ms: number
  started_at: number
  /** Hits of the window, or of the bucket that began at started_at; and of the bucket before. */
  hits: number
  previous: number
}

export interface Told {
  allowed: boolean
  count: number
  remaining: number
}

export class RateModel {
  #state: State | null = null

  check(asked: Asked, now: number): Told {
    const state = this.#at(asked, now)
    this.#state = state
    const ceiling = Math.floor(asked.limit)
    const count = state.hits + asked.cost + Math.floor(this.#fading(now))
    const allowed = count <= ceiling
    if (allowed || asked.algorithm === 'fixed_window') state.hits += asked.cost
    return { allowed, count, remaining: Math.max(0, ceiling - count) }
  }

  /** The first millisecond from `now` on at which this check would be allowed, by trying each. */
  passesAt(asked: Asked, now: number): number {
    for (let at = now; ; at++) {
      const other = new RateModel()
      other.#state = this.#state && { ...this.#state }
      if (other.check(asked, at).allowed) return at
    }
  }

  #at({ algorithm, window_ms }: Asked, now: number): State {
    const state = this.#state
    const fresh = { algorithm, window_ms, started_at: now, hits: 0, previous: 0 }
    if (!state || state.algorithm !== algorithm || state.window_ms !== window_ms) return fresh
    if (now < state.started_at + window_ms) return state
    if (algorithm === 'fixed_window' || now >= state.started_at + 2 * window_ms) return fresh
    return { ...fresh, started_at: state.started_at + window_ms, previous: state.hits }
  }

  /** The bucket before, weighted by how much of it lies in the last window. */
  #fading(now: number): number {
    const { previous, started_at, window_ms } = this.#state!
    return (previous * (started_at + window_ms - now)) / window_ms
  }
}
