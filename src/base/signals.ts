// Signals: changes that the nodes of one database report to each other at once. A signal is a hint: nothing is lost with
// one, since each node also looks for changes; it is only found later.

import type { Clock } from './clock.ts'
import { limit } from './limit.ts'
import {
  Groups,
  groupOf,
  groups_count,
  type Signal,
  signalOf,
  signalText,
  text_bytes_max,
} from './signal-text.ts'

/** After each signal a node gathers for this long: every NOTIFY costs each node a little, and the database a lock. */
export const gap_ms = limit(
  'nodes.gap',
  10,
  'milliseconds',
  'The least time between two signals of a node to the others; what changes meanwhile goes with the next.',
)
const topics_max = limit(
  'nodes.topics',
  5_000,
  'entries',
  'Changes for waiting requests that a node has to signal. Past it every waiting request of the other nodes looks once.',
)
const tenants_max = limit(
  'nodes.tenants',
  1_000,
  'entries',
  'Tenants with changed keys or plans that a node has to signal. Past it the other nodes forget all keys that they remember.',
)
const nodes_max = limit(
  'nodes.known',
  256,
  'entries',
  'Other nodes whose waiting requests a node knows. Past it every change is signalled.',
)
/** A node says this often what its requests wait for. */
const announce_every_ms = 5_000
/** Then the others forget it. */
const announced_ms = 3 * announce_every_ms
const due_every_ms = 100
const failed_ms = 250

/** The most that the parts of a signal besides its lists take. */
const frame_bytes = 1_100
const topic_bytes = '"0123456789abcdef",'.length
const group_bytes = '4095,'.length

/** The effects of other nodes' signals. */
export interface SignalListener {
  /** Something that requests may wait for has changed. */
  wake(topic: string): void
  /** The same for all topics of these groups. */
  wakeGroups(groups: ReadonlySet<number>): void
  wakeAll(): void
  /** The topics that requests of this node wait for. */
  topics(): Iterable<string>
  /** Keys, plan or status of this tenant changed; null: of any. */
  forget(tenant_id: string | null): void
  /** Jobs are due. */
  due(): void
}

export interface SignalOptions {
  clock: Clock
  /** The name of this node, unlike any other. */
  node: string
  /** Sends to all nodes. */
  send(text: string): Promise<void>
  listener: SignalListener
}

export class Signals {
  readonly #options: SignalOptions
  #heard = false
  /** Until then others may have requests that wait and that this node does not know of. */
  #unknown_until = 0
  readonly #others = new Map<string, { waits: Groups; until: number }>()
  #announced = new Groups()
  /** When something in each group changed here. */
  readonly #changed_at = new Float64Array(groups_count).fill(Number.NEGATIVE_INFINITY)
  #due_at = Number.NEGATIVE_INFINITY
  readonly #gathered = new Gathered()
  #sending: Promise<void> | null = null
  #stopped = false
  #endRest: () => void = () => {}
  readonly #announcing: Timer

  constructor(options: SignalOptions) {
    this.#options = options
    this.#announcing = setInterval(() => this.#announceAgain(), announce_every_ms)
    this.#announcing.unref()
  }

  /** Something changed that requests may wait for. Nothing is sent unless one of another node may. */
  changed(topic: string): void {
    const group = groupOf(topic)
    this.#changed_at[group] = this.#options.clock.monotonic()
    if (!this.#isWaitedFor(group)) return
    this.#gathered.topics.add(topic)
    this.#send()
  }

  /** Keys, plan or status of this tenant changed. */
  tenantChanged(tenant_id: string): void {
    this.#gathered.tenant_ids.add(tenant_id)
    this.#send()
  }

  /** Jobs are due that this node has no permits for. */
  due(): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#due_at < due_every_ms) return
    this.#due_at = now
    this.#gathered.due = true
    this.#send()
  }

  /** A request of this node begins to wait for this topic. */
  waits(topic: string): void {
    if (this.#announced.add(groupOf(topic))) this.#announce()
  }

  /** True: what other nodes send is heard from now on. False: it may be missed. */
  setHeard(heard: boolean): void {
    this.#heard = heard
    this.#others.clear()
    this.#unknown_until = this.#options.clock.monotonic() + announced_ms
    if (heard) this.#announceAgain()
  }

  receive(text: string): void {
    const signal = signalOf(text)
    if (!signal || signal.from === this.#options.node) return
    const { listener } = this.#options
    if (signal.waits) this.#learn(signal.from, signal.waits)
    if (signal.all_tenants) listener.forget(null)
    else for (const tenant_id of signal.tenant_ids) listener.forget(tenant_id)
    if (signal.all_topics) listener.wakeAll()
    for (const topic of signal.topics) listener.wake(topic)
    if (signal.groups.length > 0) listener.wakeGroups(new Set(signal.groups))
    if (signal.due) listener.due()
  }

  #isWaitedFor(group: number): boolean {
    const now = this.#options.clock.monotonic()
    if (!this.#heard || now < this.#unknown_until) return true
    for (const { waits, until } of this.#others.values()) if (until > now && waits.has(group)) return true
    return false
  }

  /**
   * A request of that node may have looked before a change here, and the change may have come before this node learned
   * that somebody waits for it: then it is signalled now.
   */
  #learn(node: string, waits: Groups): void {
    const now = this.#options.clock.monotonic()
    const known = this.#others.get(node)
    const heeded = known && known.until > now ? known.waits : new Groups()
    for (const group of waits.without(heeded)) {
      if (now - this.#changed_at[group]! < announced_ms) this.#gathered.groups.add(group)
    }
    if (known || this.#others.size < nodes_max) this.#others.set(node, { waits, until: now + announced_ms })
    else this.#unknown_until = now + announced_ms
    this.#send()
  }

  #announce(): void {
    this.#gathered.announces = true
    this.#send()
  }

  /** With what nobody waits for any more left out; silent when nobody waits for anything. */
  #announceAgain(): void {
    const now = this.#options.clock.monotonic()
    for (const [node, { until }] of this.#others) if (until <= now) this.#others.delete(node)
    const was_empty = this.#announced.isEmpty
    this.#announced = new Groups()
    for (const topic of this.#options.listener.topics()) this.#announced.add(groupOf(topic))
    if (!was_empty || !this.#announced.isEmpty) this.#announce()
  }

  /** The first signal leaves at once, in this turn of the event loop. */
  #send(): void {
    if (this.#stopped || this.#gathered.isEmpty) return
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null
      this.#send()
    })
  }

  async #sendAll(): Promise<void> {
    await null // what changes with the same commit goes with the same signal
    while (!this.#gathered.isEmpty) {
      const signal = this.#gathered.take(this.#options.node, this.#announced)
      let rest_ms = gap_ms
      try {
        await this.#options.send(signalText(signal))
      } catch {
        if (this.#stopped) return
        this.#gathered.putBack(signal)
        rest_ms = failed_ms
      }
      if (!this.#stopped) await this.#rest(rest_ms)
    }
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#endRest = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Sends what is left, and nothing from then on. */
  async stop(): Promise<void> {
    clearInterval(this.#announcing)
    const sending = this.#sending
    this.#stopped = true
    this.#endRest()
    await sending
  }
}

/** Changes that are to be signalled. */
class Gathered {
  announces = false
  due = false
  readonly groups = new Set<number>()
  readonly topics = new Names(topics_max)
  readonly tenant_ids = new Names(tenants_max)

  get isEmpty(): boolean {
    const { announces, due, groups, topics, tenant_ids } = this
    return !announces && !due && groups.size === 0 && topics.isEmpty && tenant_ids.isEmpty
  }

  /** As much as one signal holds; tenants first, since a key that ended must not be accepted. */
  take(from: string, waits: Groups): Signal {
    let bytes_left = text_bytes_max - frame_bytes
    const taken = <T>(all: Set<T>, bytesOf: (one: T) => number): T[] => {
      const some: T[] = []
      for (const one of all) {
        bytes_left -= bytesOf(one)
        if (bytes_left < 0) break
        all.delete(one)
        some.push(one)
      }
      return some
    }
    const { announces, due, topics, tenant_ids } = this
    const signal: Signal = {
      from,
      waits: announces ? waits : null,
      tenant_ids: taken(tenant_ids.names, (tenant_id) => tenant_id.length + 3),
      groups: taken(this.groups, () => group_bytes),
      topics: taken(topics.names, () => topic_bytes),
      all_topics: topics.all,
      all_tenants: tenant_ids.all,
      due,
    }
    this.announces = this.due = topics.all = tenant_ids.all = false
    return signal
  }

  putBack(signal: Signal): void {
    this.announces ||= signal.waits !== null
    this.due ||= signal.due
    for (const group of signal.groups) this.groups.add(group)
    this.topics.putBack(signal.topics, signal.all_topics)
    this.tenant_ids.putBack(signal.tenant_ids, signal.all_tenants)
  }
}

/** Names up to a number; past it all are meant, and none is named. */
class Names {
  readonly names = new Set<string>()
  all = false

  constructor(private readonly names_max: number) {}

  get isEmpty(): boolean {
    return !this.all && this.names.size === 0
  }

  add(name: string): void {
    if (this.all) return
    this.names.add(name)
    if (this.names.size <= this.names_max) return
    this.names.clear()
    this.all = true
  }

  putBack(names: readonly string[], all: boolean): void {
    if (all) this.names.clear()
    this.all ||= all
    for (const name of names) this.add(name)
  }
}
