// client.events and client.wait

import { pauseAfter, waitSeconds } from './look.ts'
import { split } from './options.ts'
import { type CallOptions, retries_max, type Transport } from './transport.ts'
import type { JournalEvent, Operations } from './types.ts'

type ListQuery = Operations['listEvents']['query']
type WaitBody = Operations['waitForEvent']['body']

export type EventFilter = Pick<ListQuery, 'type' | 'subject' | 'workflow_id'>

export interface EventsOptions extends EventFilter, CallOptions {
  /** The number of the last event seen. Keep it, and go on from there after a restart. Default: the oldest event. */
  after?: number | undefined
  /** Events a request, at most 200; default 50. */
  limit?: number | undefined
}

export interface FollowOptions extends EventsOptions {
  /** Default: now. */
  after?: number | undefined
  /** How long the service holds a request that waits, at most 55; default 50. */
  wait_seconds?: number | undefined
}

export interface WaitOptions extends CallOptions {
  /** Alternatives: waits for an event that matches all members of one of them. 1 to 16. */
  any: WaitBody['any']
  /** The number of the last event seen; default: where the journal stands when the first request is answered. */
  after?: number | undefined
  /** How long the service holds each request, at most 55; default 50. */
  wait_seconds?: number | undefined
}

export interface EventsPage {
  items: JournalEvent[]
  /** Give it as `after` to go on. A page may be short, or empty, before the end. */
  next_after: number
}

export class Events {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The events so far, oldest first. */
  list(options: EventsOptions = {}): EventList {
    const [{ after, ...query }, call] = split(options)
    const read = (from: number | undefined) =>
      this.#transport.call('listEvents', { query: { ...query, after: from } }, call)
    return new EventList(after, read)
  }

  /** The number of the last event so far: the `after` for what comes from now on. */
  async position(options: CallOptions = {}): Promise<number> {
    const body = { any: [{}], wait_seconds: 0 }
    return (await this.#transport.call('waitForEvent', { body }, options)).after
  }

  /**
   * Events as they come, oldest first, until `signal` is aborted. Nothing is missed: each request goes on where the one
   * before ended. An unavailable service is tried again for about a minute, unless `retries` says otherwise.
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<JournalEvent, void, undefined> {
    const [{ after, wait_seconds, ...query }, given] = split(options)
    const call = { retries: retries_max, ...given }
    const wait = waitSeconds(wait_seconds)
    let from = after ?? (await this.position(call))
    for (;;) {
      const pause = pauseAfter(this.#transport, call.signal)
      const input = { query: { ...query, after: from, wait }, held_ms: wait * 1_000 }
      const { items, next_after } = await this.#transport.call('listEvents', input, call)
      yield* items
      const has_moved = next_after > from
      from = next_after
      if (items.length === 0 && !has_moved) await pause()
    }
  }
}

/** `for await (const event of list)`, `for await (const page of list.pages())`, or `await list.page()`. */
export class EventList implements AsyncIterable<JournalEvent> {
  readonly #read: (after: number | undefined) => Promise<EventsPage>
  readonly #first: number | undefined

  /** @internal */
  constructor(first: number | undefined, read: (after: number | undefined) => Promise<EventsPage>) {
    this.#first = first
    this.#read = read
  }

  /** One page: the first, or the one behind the `after` that was given. */
  page(): Promise<EventsPage> {
    return this.#read(this.#first)
  }

  async *pages(): AsyncGenerator<EventsPage, void, undefined> {
    let after = this.#first
    for (;;) {
      const page = await this.#read(after)
      if (page.items.length === 0 && page.next_after === (after ?? 0)) return
      yield page
      after = page.next_after
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<JournalEvent, void, undefined> {
    for await (const page of this.pages()) yield* page.items
  }
}

/**
 * A wait for whichever of several events comes first. `await` it for the first one, or go over it for one after the other:
 * `for await (const event of client.wait({ any }))`.
 */
export class EventWait implements Promise<JournalEvent>, AsyncIterable<JournalEvent> {
  readonly [Symbol.toStringTag] = 'EventWait'
  /**
   * The number that it begins behind, once that is known: at once where `after` was given, else when the first request
   * is answered. Every event that happens afterwards is found.
   */
  readonly begun: Promise<number>
  readonly #transport: Transport
  readonly #options: WaitOptions
  readonly #first: Promise<JournalEvent>

  /** @internal Its first request is sent at once. */
  constructor(transport: Transport, options: WaitOptions) {
    this.#transport = transport
    this.#options = options
    let begin = (_: number) => {}
    const beginning = new Promise<number>((resolve) => {
      begin = resolve
    })
    this.#first = this.#next(options.after, begin)
    this.begun = Promise.race([beginning, this.#first.then(({ seq }) => seq)])
    // Nobody may have asked for them yet.
    this.#first.catch(() => {})
    this.begun.catch(() => {})
  }

  async #next(after: number | undefined, begin = (_: number) => {}): Promise<JournalEvent> {
    if (after !== undefined) begin(after)
    const [{ any, wait_seconds, after: _ }, given] = split(this.#options)
    const call = { retries: retries_max, ...given }
    const seconds = waitSeconds(wait_seconds)
    let from = after
    for (;;) {
      const pause = pauseAfter(this.#transport, call.signal)
      // The beginning is found out first: a first request that is lost must not begin later when it is sent again.
      const wait = from === undefined ? 0 : seconds
      const body = { any, wait_seconds: wait, ...(from === undefined ? {} : { after: from }) }
      const answer = await this.#transport.call('waitForEvent', { body, held_ms: wait * 1_000 }, call)
      if (answer.event) return answer.event
      if (from === undefined) begin(answer.after)
      const has_moved = answer.after > (from ?? -1)
      from = answer.after
      if (!has_moved) await pause()
    }
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited
  then<A = JournalEvent, B = never>(
    fulfilled?: ((event: JournalEvent) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#first.then(fulfilled, rejected)
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<JournalEvent | B> {
    return this.#first.catch(rejected)
  }

  finally(settled?: (() => void) | null): Promise<JournalEvent> {
    return this.#first.finally(settled)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<JournalEvent, void, undefined> {
    for (let event = await this.#first; ; event = await this.#next(event.seq)) yield event
  }
}
