// The requests under way on a node, shared out between clients once there are many.

import { limit } from '../base/limit.ts'

export const requests_max = limit(
  'http.requests',
  16_384,
  'requests',
  'Requests under way on a node, those that wait included; past it 503 UNAVAILABLE and the connection is closed.',
)

export const urgent_requests_max = limit(
  'http.urgent_requests',
  1_024,
  'requests',
  'Requests under way beyond http.requests of what is refused last: what stops agents, revokes keys and decides.',
)

export const urgent_requests_of_address_max = limit(
  'http.urgent_requests_of_address',
  urgent_requests_max / 4,
  'requests',
  'Counted requests under way of one client address, beyond http.requests_of_address, of what is refused last; past it 503 UNAVAILABLE, so that it leaves places for others.',
)

export const uncounted_max = limit(
  'http.uncounted_requests',
  2_048,
  'requests',
  'Requests under way on a node up to which none is counted; each that comes past it is counted by its client address.',
)

export const requests_of_address_max = limit(
  'http.requests_of_address',
  requests_max / 2,
  'requests',
  'Counted requests under way of one client address on a node; past it 503 UNAVAILABLE, so that it leaves places for others.',
)

/** The requests of each client that came while there were many. */
export class RequestsUnderWay {
  readonly #of_client = new Map<string, number>()
  #all = 0

  /** Of all clients. */
  get all(): number {
    return this.#all
  }

  /** Clients that are counted at the moment. For tests. */
  get clients(): number {
    return this.#of_client.size
  }

  /** Counts one until `leave`; false when this client has as many as it may have. */
  enter(client: string, max = requests_of_address_max): boolean {
    const under_way = this.#of_client.get(client) ?? 0
    if (under_way >= max) return false
    this.#of_client.set(client, under_way + 1)
    this.#all += 1
    return true
  }

  leave(client: string): void {
    this.#all -= 1
    const left = this.#of_client.get(client)! - 1
    if (left === 0) this.#of_client.delete(client)
    else this.#of_client.set(client, left)
  }
}
