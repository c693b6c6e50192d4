// Look-ups of keys on routes that are refused last, while it is not known if there is such a key. Anybody can make keys up:
// few of these look-ups are urgent at a time, fewer of one address, and none of one that has used up its wrong keys. The
// others wait with those of all routes. A key that this node has seen before is never among them.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Places } from '../base/places.ts'

export const urgent_look_ups_max = limit(
  'http.urgent_look_ups',
  64,
  'requests',
  'Unknown keys that are looked up at a time before what other requests wait for; past it they wait with them.',
)

export const urgent_look_ups_of_address_max = limit(
  'http.urgent_look_ups_of_address',
  16,
  'requests',
  'The same for one client address.',
)

export const refused_addresses_max = limit(
  'http.refused_addresses',
  1_000,
  'entries',
  'Client addresses that a process remembers as refused for their wrong keys; past it the first is forgotten.',
)

export class UrgentLookUps {
  readonly #places = new Places(urgent_look_ups_max)
  /** When each may be trusted again, in the order of their refusals. */
  readonly #refused = new Map<string, Millis>()

  constructor(private readonly clock: Clock) {}

  /** Counts one until `leave`; false when this client, or all together, have as many as they may have. */
  enter(client: string): boolean {
    return !this.#isRefused(client) && this.#places.enter(client, urgent_look_ups_of_address_max)
  }

  leave(client: string): void {
    this.#places.leave(client)
  }

  /** This client has sent too many wrong keys. */
  refuse(client: string, retry_after_seconds: number): void {
    this.#refused.delete(client)
    this.#refused.set(client, this.clock.monotonic() + retry_after_seconds * 1_000)
    if (this.#refused.size > refused_addresses_max) this.#refused.delete(this.#refused.keys().next().value!)
  }

  #isRefused(client: string): boolean {
    const until = this.#refused.get(client)
    if (until === undefined) return false
    if (until > this.clock.monotonic()) return true
    this.#refused.delete(client)
    return false
  }
}
