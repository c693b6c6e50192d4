// client.inboxes

import * as generated from './generated-resources.ts'
import { look_again_ms, waitSeconds } from './look.ts'
import { split } from './options.ts'
import type { Page } from './pages.ts'
import { type CallOptions, retries_max } from './transport.ts'
import type { InboxDetail as AnyInboxDetail, Message as AnyMessage, Inbox } from './types.ts'

export interface Message extends AnyMessage {
  headers: Record<string, string>
  query: Record<string, string | string[]>
}

export interface InboxDetail extends AnyInboxDetail {
  inbox: Inbox
  messages: Message[]
}

export interface MessagesOptions extends CallOptions {
  /** Id of the last message seen. Keep it, and go on from there after a restart. */
  after?: string | undefined
  /** Messages a request, at most 100; default 50. */
  limit?: number | undefined
  /**
   * Waits for more at the end, until the inbox expires or `signal` is aborted. An unavailable service is tried again
   * for about a minute, unless `retries` says otherwise.
   */
  follow?: boolean | undefined
  /** How long the service holds a request that waits, at most 55; default 50. */
  wait_seconds?: number | undefined
}

export class Inboxes extends generated.Inboxes {
  /** The inbox, and its latest 50 messages, newest first. */
  override get(id: string, options: CallOptions = {}): Promise<InboxDetail> {
    return super.get(id, options) as Promise<InboxDetail>
  }

  /** True until it has expired by the clock of the service: the one here may be wrong. */
  async #isListed(id: string, options: CallOptions): Promise<boolean> {
    let [offset, total] = [0, 0]
    for (;;) {
      const page = await this.transport.call('listInboxes', { query: { limit: 100, offset } }, options)
      if (page.items.some((inbox) => inbox.id === id)) return true
      // Others that are gone since the page before have moved those behind them up, over its edge.
      const may_skip = offset > 0 && page.total < total
      offset = may_skip ? 0 : offset + page.items.length
      total = page.total
      if (!may_skip && (page.items.length === 0 || offset >= total)) return false
    }
  }

  /**
   * All messages, oldest first. With `follow` the iteration waits for more and ends once the inbox has expired and
   * everything was read. `page()` reads what is there now; its `next_cursor` is the `after` of the next call.
   */
  messages(id: string, given: MessagesOptions = {}): Messages {
    const [{ after, limit, follow = false, wait_seconds }, call] = split(given)
    const wait_most = waitSeconds(wait_seconds)
    const { now, sleep, random } = this.transport.platform
    const options = follow ? { retries: retries_max, ...call } : call
    const read = async (from: string | undefined, wait: number): Promise<Page<Message>> => {
      const query = { after: from, limit, ...(wait > 0 ? { wait } : {}) }
      const input = { params: { id }, query, held_ms: wait * 1_000 }
      const { items, nextAfter } = await this.transport.call('listMessages', input, options)
      return { items: items as Message[], next_cursor: nextAfter }
    }
    let expires_ms: number | undefined
    const isOver = async (not_held: boolean) => {
      // The service holds no request for an inbox that has expired, whatever the clock here says.
      if (!not_held) {
        expires_ms ??= Date.parse((await this.get(id, options)).inbox.expiresAt)
        if (expires_ms > now()) return false
      }
      return !(await this.#isListed(id, options))
    }
    const pause = () => sleep(look_again_ms + Math.floor(random() * look_again_ms), options.signal)
    return new Messages({ after, wait: follow ? wait_most : 0, follow, read, isOver, pause, now })
  }
}

interface Reading {
  after: string | undefined
  /** Seconds. */
  wait: number
  follow: boolean
  read(after: string | undefined, wait: number): Promise<Page<Message>>
  /** `not_held`: a request was answered at once, although it asked to wait. */
  isOver(not_held: boolean): Promise<boolean>
  pause(): Promise<void>
  now(): number
}

/** Messages of an inbox, oldest first. */
export class Messages implements AsyncIterable<Message> {
  readonly #reading: Reading

  /** @internal */
  constructor(reading: Reading) {
    this.#reading = reading
  }

  page(): Promise<Page<Message>> {
    return this.#reading.read(this.#reading.after, 0)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    const { wait, follow, read, isOver, pause, now } = this.#reading
    let { after } = this.#reading
    let over = false
    for (;;) {
      const asked_at = now()
      const { items, next_cursor } = await read(after, over ? 0 : wait)
      yield* items
      after = next_cursor ?? after
      if (items.length > 0) continue
      // A message may have come between the empty page and the end, so one more read follows.
      if (!follow || over) return
      const at_once = now() - asked_at < look_again_ms
      over = await isOver(at_once && wait > 0)
      if (!over && at_once) await pause()
    }
  }
}
