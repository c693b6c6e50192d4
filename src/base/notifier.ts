// Requests that wait for a change. The writer of a change notifies them once it is durable, those of other nodes by a
// signal; a waiting request also looks again at intervals.

import { second_ms } from './clock.ts'
import { limit } from './limit.ts'
import { Places } from './places.ts'
import { groupOf, topicOf } from './signal-text.ts'

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
/** How often a waiting request polls while the signals of other nodes are not heard. */
const look_again_ms = 500
/** The same while they are: for what a node changed that died before it could signal it. */
const look_again_heard_ms = 5_000
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

const slice_ms = 50
const slice_looks = (looks_a_second_max * slice_ms) / second_ms

/** The other nodes. */
export interface NotifierOutlet {
  /** Something changed here. */
  changed(topic: string): void
  /** A request here begins to wait. */
  waits(topic: string): void
}

export class Notifier {
  /** By topic. */
  readonly #waiting = new Map<string, Set<() => void>>()
  /** Of tenants, for their requests that wait. */
  readonly #places = new Places(waiting_max)
  readonly #looks_again: boolean
  #outlet: NotifierOutlet | null = null
  #heard = false
  /** Waits that are still to end so that their requests look, a slice at a time. */
  #to_look: (() => void)[] = []
  #slices: Timer | undefined
  /** All have to look once more after those. */
  #all_again = false
  #draining = false

  /** `looks_again` false: a waiting request looks only when it is notified. For tests. */
  constructor({ looks_again = true } = {}) {
    this.#looks_again = looks_again
  }

  connect(outlet: NotifierOutlet): void {
    this.#outlet = outlet
  }

  /** True while changes on other nodes are signalled to this one. Either way every waiting request looks. */
  setHeard(heard: boolean): void {
    this.#heard = heard
    this.wakeAll()
  }

  /** Acquires a place for a request of this tenant, which releases it with `leave`. False when there is none. */
  enter(tenant_id: string): boolean {
    return this.#places.enter(tenant_id, waiting_of_tenant_max)
  }

  leave(tenant_id: string): void {
    this.#places.leave(tenant_id)
  }

  /** Requests that have a place. */
  get waiting(): number {
    return this.#places.all
  }

  /** The longest wait before the next look. */
  get look_again_ms(): number {
    if (!this.#looks_again) return Number.POSITIVE_INFINITY
    const least_ms = this.#heard ? look_again_heard_ms : look_again_ms
    return Math.max(least_ms, (this.#places.all * second_ms) / looks_a_second_max)
  }

  wait(key: string, ms: number): Waiting {
    if (this.#draining) return { notified: Promise.resolve(), stop() {} }
    const { promise, resolve } = Promise.withResolvers<void>()
    const topic = topicOf(key)
    const all = this.#waiting.get(topic) ?? new Set()
    const stop = () => {
      // Once: afterwards others may wait for the topic, in a new set.
      if (!all.delete(stop)) return
      clearTimeout(timer)
      if (all.size === 0) this.#waiting.delete(topic)
      resolve()
    }
    // A timer of infinity would end at once.
    const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(stop, ms)
    this.#waiting.set(topic, all.add(stop))
    this.#outlet?.waits(topic)
    return { notified: promise, stop }
  }

  /** Something that requests wait for under this key was changed by this node. */
  notify(key: string): void {
    if (this.#waiting.size === 0 && !this.#outlet) return
    const topic = topicOf(key)
    this.wake(topic)
    this.#outlet?.changed(topic)
  }

  /** The requests of this node that wait for this topic look. */
  wake(topic: string): void {
    const all = this.#waiting.get(topic)
    if (all) for (const stop of [...all]) stop()
  }

  wakeGroups(groups: ReadonlySet<number>): void {
    for (const topic of [...this.#waiting.keys()]) if (groups.has(groupOf(topic))) this.wake(topic)
  }

  /** Every waiting request looks once, as many at a time as the limit of looks allows. */
  wakeAll(): void {
    this.#all_again = true
    if (!this.#slices) this.#wakeSlice()
  }

  #wakeSlice(): void {
    if (this.#to_look.length === 0 && this.#all_again) {
      this.#all_again = false
      this.#to_look = [...this.#waiting.values()].flatMap((all) => [...all])
    }
    for (const stop of this.#to_look.splice(0, slice_looks)) stop()
    const is_over = this.#to_look.length === 0 && !this.#all_again
    this.#slices = is_over ? undefined : setTimeout(() => this.#wakeSlice(), slice_ms)
  }

  /** The topics that requests wait for. */
  topics(): Iterable<string> {
    return this.#waiting.keys()
  }

  get draining(): boolean {
    return this.#draining
  }

  /** Ends every wait, now and from now on. */
  drain(): void {
    this.#draining = true
    for (const topic of [...this.#waiting.keys()]) this.wake(topic)
  }
}
