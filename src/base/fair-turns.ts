// Requests that wait for a turn of the event loop, tenant by tenant: a tenant that sends more than its share makes its
// own requests wait and then be refused, and those of others begin next.

import type { Clock } from './clock.ts'
import type { ApiError } from './errors.ts'
import { limit } from './limit.ts'
import { NextTurn } from './next-turn.ts'
import { Refusals } from './overload.ts'

export const begun_a_turn_max = limit(
  'http.begun_a_turn',
  16,
  'requests',
  'Requests that begin in one turn of the event loop, once requests have to wait for a turn.',
)

const refused_a_turn_max = limit(
  'http.refused_a_turn',
  32,
  'requests',
  'Requests that have waited too long and are refused in one turn of the event loop, so that refusals need no turn of their own.',
)

export const turns_wait_ms_max = limit(
  'http.turns_wait_ms',
  500,
  'milliseconds',
  'How long a request waits for a turn of the event loop, in the line of its tenant; past it 503 UNAVAILABLE. Tenants take turns.',
)

const urgent_turns_wait_ms_max = limit(
  'http.urgent_turns_wait_ms',
  5_000,
  'milliseconds',
  'The same for what is refused last: what stops agents, revokes keys and decides.',
)

export const turns_waiting_max = limit(
  'http.turns_waiting',
  8_192,
  'requests',
  'Requests that wait for a turn of the event loop; a tenant may have as many as there is room left for, so one alone has half. Past it 503 UNAVAILABLE.',
)

const urgent_turns_waiting_max = limit(
  'http.urgent_turns_waiting',
  512,
  'requests',
  'Requests beyond http.turns_waiting of what is refused last that wait for a turn of the event loop.',
)

interface Waiting {
  since: number
  ms_max: number
  weight: number
  begin(): void
  refuse(error: ApiError): void
}

const too_many = new Refusals('share', 'too many requests of this tenant, or of this address, are waiting')

/** A caller whose key is not known yet, or who has none, stands in the line of its address: anybody can have many of them. */
export type Standing = 'tenant' | 'urgent' | 'stranger'

/** Of the room, what all strangers together may wait in; the rest stays for tenants. */
const strangers_part = 0.75

/** Lines that have turns in rotation: the one that had the last turn stands last. A line without requests is absent. */
class Rotation {
  readonly #lines = new Map<string, Waiting[]>()
  size = 0

  waitingOf(key: string): number {
    return this.#lines.get(key)?.length ?? 0
  }

  push(key: string, waiting: Waiting): void {
    const line = this.#lines.get(key)
    if (line) line.push(waiting)
    else this.#lines.set(key, [waiting])
    this.size += 1
  }

  shift(): Waiting | undefined {
    for (const [key, line] of this.#lines) {
      const first = line.shift()!
      this.size -= 1
      this.#lines.delete(key)
      if (line.length > 0) this.#lines.set(key, line)
      return first
    }
    return undefined
  }
}

export class FairTurns {
  readonly #tenants = new Rotation()
  readonly #strangers = new Rotation()
  /** When turns were had last. Waits are judged by it, so that one long pause of the process is not taken for a long line. */
  #ran_at = 0
  readonly #next_turn = new NextTurn(() => {
    const now = this.clock.monotonic()
    this.#run()
    this.#ran_at = now
    if (this.size > 0) this.#next_turn.set()
  })

  /** `begun_max` begin in one turn, or fewer whose weights add up to that. */
  constructor(
    private readonly clock: Clock,
    private readonly begun_max = begun_a_turn_max,
  ) {}

  /** The number that wait. */
  get size(): number {
    return this.#tenants.size + this.#strangers.size
  }

  /**
   * Resolves in a later turn of the event loop: in the order of the calls among those of one key, and in rotation between
   * keys; strangers have half of the turns when tenants wait. Rejects with UNAVAILABLE at once when too many wait, and when it has
   * waited too long before its turn. An urgent one waits for longer, and finds room when the others have none.
   */
  next(key: string, standing: Standing = 'tenant', weight = 1): Promise<void> {
    const is_urgent = standing === 'urgent'
    const lines = standing === 'stranger' ? this.#strangers : this.#tenants
    const room = turns_waiting_max + (is_urgent ? urgent_turns_waiting_max : 0) - this.size
    const is_full =
      standing === 'stranger' && this.#strangers.size >= Math.floor(turns_waiting_max * strangers_part)
    if (is_full || lines.waitingOf(key) >= room) return Promise.reject(too_many.next())
    const ms_max = is_urgent ? urgent_turns_wait_ms_max : turns_wait_ms_max
    return new Promise((begin, refuse) => {
      lines.push(key, { since: this.clock.monotonic(), ms_max, weight, begin, refuse })
      this.#next_turn.set()
    })
  }

  #run(): void {
    let begun = 0
    let refused = 0
    let from = this.#tenants
    while (begun < this.begun_max && refused < refused_a_turn_max) {
      const other = from === this.#tenants ? this.#strangers : this.#tenants
      const first = from.shift() ?? other.shift()
      if (!first) return
      from = other
      if (this.#ran_at - first.since < first.ms_max) {
        first.begin()
        begun += first.weight
      } else {
        first.refuse(too_many.next())
        refused += 1
      }
    }
  }
}
