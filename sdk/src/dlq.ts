// client.dlq

import { listOf, split } from './options.ts'
import type { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Transport } from './transport.ts'
import type {
  ClaimedDeadLetter,
  DeadLetter,
  ExtendedDeadLetter,
  ListedDeadLetter,
  Operations,
} from './types.ts'
import { type WorkContext, type WorkOptions, type WorkSummary, workOn } from './work.ts'

interface Locking {
  /** How long the lock holds; default that of the item. */
  lock_seconds?: number | undefined
}

interface Held {
  /** What the claim answered. With it only that very lock counts, and the call is safe to try again. */
  lock_token?: string | undefined
}

export class Dlq {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Parks a failure. Throws QUOTA_EXCEEDED. */
  create(body: Operations['captureItem']['body'], options: CreateOptions = {}): Promise<DeadLetter> {
    return this.#transport.call('captureItem', { body }, options)
  }

  /** Newest first, without payloads. */
  list(query: Operations['listItems']['query'] & CallOptions = {}): Pages<ListedDeadLetter> {
    return listOf(this.#transport, 'listItems', {}, query)
  }

  get(id: string, options: CallOptions = {}): Promise<DeadLetter> {
    return this.#transport.call('getItem', { params: { id } }, options)
  }

  delete(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.#transport.call('deleteItem', { params: { id } }, options)
  }

  /** Throws ALREADY_CLAIMED, INVALID_STATE. */
  claim(id: string, given: Locking & CallOptions = {}): Promise<ClaimedDeadLetter> {
    const [body, options] = split(given)
    return this.#transport.call('claimItem', { params: { id }, body }, options)
  }

  /** The oldest item that can be claimed; null when there is none. */
  async claimOldest(given: Locking & CallOptions = {}): Promise<ClaimedDeadLetter | null> {
    const [body, options] = split(given)
    return (await this.#transport.call('claimOldestItem', { body }, options)) ?? null
  }

  /** Lets the lock end `lock_seconds` from now. Throws LOCK_NOT_HELD, INVALID_STATE, as release and fail do. */
  extend(id: string, given: Held & Locking & CallOptions = {}): Promise<ExtendedDeadLetter> {
    const [body, options] = split(given)
    return this.#transport.call('extendItem', { params: { id }, body }, options)
  }

  /** Gives the lock back; the item is failed again. */
  release(id: string, given: Held & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.#transport.call('releaseItem', { params: { id }, body }, options)
  }

  /** Gives the item up; it is archived. */
  fail(id: string, given: Held & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.#transport.call('failItem', { params: { id }, body }, options)
  }

  /** From any status; a repeat changes nothing. */
  resolve(id: string, given: Held & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.#transport.call('resolveItem', { params: { id }, body }, options)
  }

  /**
   * Claims items one after the other, oldest first, keeps their locks alive, and resolves each when `handler` is done
   * with it. When the handler throws, the item is released to be tried again, or given up for GiveUp and after
   * `claims_max` claims. Goes on until `signal` is aborted, and then answers once what was begun has ended.
   */
  work(
    handler: (item: ClaimedDeadLetter, context: WorkContext) => unknown,
    options: WorkOptions = {},
  ): Promise<WorkSummary> {
    return workOn(this, this.#transport.platform, handler, options)
  }
}
