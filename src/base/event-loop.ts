// Spreads work over turns of the event loop: between two turns other requests are served, and it shows which clients
// are still there.

import type { Clock } from './clock.ts'
import { FairTurns, type Standing } from './fair-turns.ts'
import { limit } from './limit.ts'
import { NextTurn } from './next-turn.ts'

export const turn_ms_max = limit(
  'http.turn_ms',
  5,
  'milliseconds',
  'How long requests may begin in one turn of the event loop; the next wait for another, so that connections that are open already are served between new ones.',
)

/** One request in so many checks that the turn still runs. */
const looked_at_every = 16

/**
 * Makes requests wait once a turn of the event loop has taken long: Bun accepts connections and begins their
 * requests for as long as new ones come, and meanwhile serves no others.
 */
export class TurnBudget {
  readonly #turns: FairTurns
  #begun = 0
  /** When this turn was first looked at; null from the next one on. */
  #turn_since: number | null = null

  constructor(private readonly clock: Clock) {
    this.#turns = new FairTurns(clock)
  }

  /** True when the request may begin at once; otherwise it has to wait for its turn. */
  begin(): boolean {
    if (this.#turn_since !== null || this.#turns.size > 0) return !this.#isOver()
    this.#begun += 1
    if (this.#begun < looked_at_every) return true
    this.#begun = 0
    this.#turn_since = this.clock.monotonic()
    setImmediate(() => {
      this.#turn_since = null
    })
    return true
  }

  /** Resolves when a request of this key may begin, in fair order between keys. Rejects with UNAVAILABLE when that takes too long. */
  turn(key: string, standing: Standing): Promise<void> {
    return this.#turns.next(key, standing)
  }

  /** Also true while others wait, so that none overtakes them. */
  #isOver(): boolean {
    return this.#turns.size > 0 || this.clock.monotonic() - this.#turn_since! >= turn_ms_max
  }
}

export class Turns {
  #waiting: { begin: () => void; isGone: () => boolean }[] = []
  readonly #next_turn = new NextTurn(() => {
    for (const { begin } of this.#waiting.splice(0, this.#countOfThisTurn())) begin()
    if (this.#waiting.length > 0) this.#next_turn.set()
  })

  /** `pieces_max` pieces of work begin in one turn; the others wait. */
  constructor(private readonly pieces_max: number) {}

  /** The number that wait. */
  get size(): number {
    return this.#waiting.length
  }

  /** Resolves in a later turn of the event loop, in the order of the calls. What is gone takes no turn from the others. */
  next(isGone: () => boolean = never): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.push({ begin, isGone })
      this.#next_turn.set()
    })
  }

  /** How many of those that wait end or begin now. */
  #countOfThisTurn(): number {
    let pieces = 0
    let count = 0
    for (const { isGone } of this.#waiting) {
      if (!isGone()) pieces += 1
      if (pieces > this.pieces_max) break
      count += 1
    }
    return count
  }
}

function never(): boolean {
  return false
}
