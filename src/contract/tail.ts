// The tail of a tenant's journal on this node: while requests wait for events, each new one is numbered and read once,
// and handed to all of them in memory.

import { limit } from '../base/limit.ts'
import type { Notifier, Waiting } from '../base/notifier.ts'
import type { Awaitable } from '../db/db.ts'
import { type EventRow, eventsKey } from './event.ts'
import { isWanted, marksOf, type Wants } from './wanted.ts'

/** Of the events that came last, those that are kept for requests that have not read them yet. */
const recent_max = limit(
  'events.recent',
  64,
  'rows',
  'Latest events of a tenant that a node keeps in memory while requests wait for events. A request that is further behind reads them from the database.',
)
const read_max = limit(
  'events.read',
  500,
  'rows',
  'New events of a tenant that a node reads at once for the requests that wait.',
)
/** How long a node waits at most before it polls for events. */
const look_ms_max = limit(
  'events.look',
  5_000,
  'milliseconds',
  'How long a node that waits for events goes without looking for them, when no signal has come.',
)

/** The same where events could not get their numbers, of which no other signal comes. */
const look_behind_ms_max = limit(
  'events.look_behind',
  500,
  'milliseconds',
  'How long a node that waits for events goes without looking for them when the last look could not number them.',
)

/** The journal, as tails read it. */
export interface JournalReader {
  /** Numbers what is committed. False when the database takes no writes now. */
  number(tenant_id: string): Promise<boolean>
  lastSeq(tenant_id: string): Awaitable<number>
  /** Numbered events, oldest first. */
  after(tenant_id: string, seq: number, rows_max: number): Awaitable<EventRow[]>
}

/** A request that waits, until its first event comes. */
export interface Waiter extends Wants {
  /** Only events with a higher number are meant. */
  position: number
  /** Called at most once, with the first event that it waits for. It then waits no longer. */
  take(event: EventRow): void
  /** No event comes any more: the node drains. */
  end(): void
}

export class Tail {
  /** The number of the last event that was handed on. */
  position = -1
  users = 0
  #is_watched = false
  /** The last look did not come to its end, or events are left without a number. */
  #is_behind = false
  #recent: EventRow[] = []
  readonly #waiters = new Map<string, Set<Waiter>>()
  #refreshing: Promise<void> | null = null
  /** For those who came while `refreshing` was under way. */
  #next: Promise<void> | null = null
  #stop = () => {}

  constructor(
    readonly tenant_id: string,
    private readonly reader: JournalReader,
    private readonly notifier: Notifier,
  ) {}

  /** Hands on what was committed before the call. Many calls at once share a look. */
  refresh(): Promise<void> {
    if (!this.#refreshing) return this.#begin()
    this.#next ??= this.#refreshing.catch(() => {}).then(() => this.#begin())
    return this.#next
  }

  #begin(): Promise<void> {
    const refreshing = this.#look().finally(() => {
      // The next one, which begins a little later, takes its place: no other may begin before it.
      if (this.#refreshing === refreshing && !this.#next) this.#refreshing = null
    })
    this.#refreshing = refreshing
    this.#next = null
    return refreshing
  }

  async #look(): Promise<void> {
    const { reader, tenant_id } = this
    this.#is_behind = true
    const are_numbered = await reader.number(tenant_id)
    if (this.position < 0) this.position = await reader.lastSeq(tenant_id)
    else await this.#readOn()
    this.#is_behind = !are_numbered
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const events = await this.reader.after(this.tenant_id, this.position, read_max)
      this.#handOn(events)
      if (events.length < read_max) return
    }
  }

  #handOn(events: readonly EventRow[]): void {
    for (const event of events) {
      if (event.seq <= this.position) continue
      this.position = event.seq
      this.#recent.push(event)
      for (const waiter of this.#waitersFor(event)) {
        this.remove(waiter)
        waiter.take(event)
      }
    }
    if (this.#recent.length > recent_max) this.#recent = this.#recent.slice(-recent_max)
  }

  #waitersFor(event: EventRow): Set<Waiter> {
    const found = new Set<Waiter>()
    for (const mark of marksOf(event)) {
      for (const waiter of this.#waiters.get(mark) ?? [])
        if (event.seq > waiter.position && isWanted(event, waiter)) found.add(waiter)
    }
    return found
  }

  /** Events past the position of the tail come to the waiter from now on. */
  add(waiter: Waiter): void {
    for (const { mark } of waiter.filters) {
      const others = this.#waiters.get(mark)
      if (others) others.add(waiter)
      else this.#waiters.set(mark, new Set([waiter]))
    }
    if (!this.#is_watched) void this.#watch()
  }

  remove(waiter: Waiter): void {
    for (const { mark } of waiter.filters) {
      const others = this.#waiters.get(mark)
      if (others?.delete(waiter) && others.size === 0) this.#waiters.delete(mark)
    }
  }

  /** True when all events after this number, up to the position of the tail, are still in memory. */
  remembers(seq: number): boolean {
    return seq + 1 >= (this.#recent[0]?.seq ?? this.position + 1)
  }

  /** Events after this number up to the position of the tail; null when they are not in memory any more. */
  since(seq: number): readonly EventRow[] | null {
    if (seq >= this.position) return []
    return this.remembers(seq) ? this.#recent.filter((event) => event.seq > seq) : null
  }

  /** Hands on events as they come, until nobody is left or the node drains. */
  async #watch(): Promise<void> {
    const { notifier } = this
    this.#is_watched = true
    while (this.users > 0 && !notifier.draining) {
      // Waiting begins before looking, so that a change in between is not missed.
      const waiting = this.#wait(this.#look_again_ms)
      await this.refresh().catch(() => {})
      if (this.users > 0) await (this.#is_behind ? this.#wait(look_behind_ms_max) : waiting).notified
      waiting.stop()
      this.#stop()
    }
    this.#is_watched = false
    for (const waiters of [...this.#waiters.values()]) for (const waiter of [...waiters]) waiter.end()
  }

  /** Infinite in tests where only signals count. */
  get #look_again_ms(): number {
    const { look_again_ms } = this.notifier
    return look_again_ms === Number.POSITIVE_INFINITY ? look_again_ms : Math.min(look_again_ms, look_ms_max)
  }

  #wait(ms: number): Waiting {
    const waiting = this.notifier.wait(eventsKey(this.tenant_id), ms)
    this.#stop = waiting.stop
    return waiting
  }

  /** Nobody is left. */
  end(): void {
    this.#stop()
  }
}
