// Requests that wait for a change. The writer of a change notifies them once it is durable; on a database that other
// nodes share, a waiting request also looks again at intervals.

import { second_ms } from './clock.ts'
import { limit } from './limit.ts'

/** Waiting requests on one node at once: each holds a connection and a little memory. */
export const waiting_max = limit(
  'waiting.requests',
  10_000,
  'requests',
  'Requests that wait for an event on one node. Past it they are answered at once.',
)
/** Waiting requests of one tenant, so that a few tenants leave places for the others. */
export const waiting_of_tenant_max = limit(
  'waiting.requests_of_tenant',
  1_000,
  'requests',
  'Requests of one tenant that wait for an event on one node, so that others have places.',
)
/** How often a waiting request looks by itself, for what another node did. */
const look_again_ms = 500
/** Looks of all together: past a thousand waiting requests each looks less often, and the database is left to others. */
const looks_a_second_max = limit(
  'waiting.looks',
  2_000,
  'requests',
  'Looks into the database a second, of all waiting requests together. Past it each looks less often.',
)

export interface Waiting {
  /** Resolves when the key is notified, when the time is over, or when the node drains. */
  notified: Promise<void>
  /** Ends the wait: `notified` resolves, and its place is free. */
  stop(): void
}

export class Notifier {
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #places = new Map<string, number>()
  #taken = 0
  #draining = false

  /** Acquires a place for a request of this tenant, which releases it with `leave`. False when there is none. */
  enter(tenant_id: string): boolean {
    const of_tenant = this.#places.get(tenant_id) ?? 0
    if (this.#taken >= waiting_max || of_tenant >= waiting_of_tenant_max) return false
    this.#taken++
    this.#places.set(tenant_id, of_tenant + 1)
    return true
  }

  leave(tenant_id: string): void {
    const of_tenant = this.#places.get(tenant_id)! - 1
    this.#taken--
    if (of_tenant === 0) this.#places.delete(tenant_id)
    else this.#places.set(tenant_id, of_tenant)
  }

  /** The longest wait before the next look. */
  get look_again_ms(): number {
    return Math.max(look_again_ms, (this.#taken * second_ms) / looks_a_second_max)
  }

  wait(key: string, ms: number): Waiting {
    if (this.#draining) return { notified: Promise.resolve(), stop() {} }
    const { promise, resolve } = Promise.withResolvers<void>()
    const all = this.#waiting.get(key) ?? new Set()
    const stop = () => {
      clearTimeout(timer)
      all.delete(stop)
      if (all.size === 0) this.#waiting.delete(key)
      resolve()
    }
    const timer = setTimeout(stop, ms)
    this.#waiting.set(key, all.add(stop))
    return { notified: promise, stop }
  }

  notify(key: string): void {
    const all = this.#waiting.get(key)
    if (all) for (const stop of [...all]) stop()
  }

  get draining(): boolean {
    return this.#draining
  }

  /** Ends every wait, now and from now on. */
  drain(): void {
    this.#draining = true
    for (const key of [...this.#waiting.keys()]) this.notify(key)
  }
}
