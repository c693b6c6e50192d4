// client.checkpoints

import { listOf, split } from './options.ts'
import type { Pages } from './pages.ts'
import { type CallOptions, type CreateOptions, retries_max, type Transport } from './transport.ts'
import type { Attempt, Checkpoint, Operations } from './types.ts'

/** What the service is asked to hold a waiting request for; it takes 55 at most. */
const wait_seconds_default = 50
/** A service on which too many wait answers at once; then this long, and a little more, is waited here. */
const look_again_ms = 1_000

export class Checkpoints {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  create(body: Operations['createCheckpoint']['body'], options: CreateOptions = {}): Promise<Checkpoint> {
    return this.#transport.call('createCheckpoint', { body }, options)
  }

  list(query: Operations['listCheckpoints']['query'] & CallOptions = {}): Pages<Checkpoint> {
    return listOf(this.#transport, 'listCheckpoints', {}, query)
  }

  /** With `wait`, in seconds, the answer comes once it is settled, and by then in any case. */
  get(id: string, given: Operations['getCheckpoint']['query'] & CallOptions = {}): Promise<Checkpoint> {
    const [query, options] = split(given)
    const held_ms = (query.wait ?? 0) * 1_000
    return this.#transport.call('getCheckpoint', { params: { id }, query, held_ms }, options)
  }

  /**
   * Waits until it is approved, rejected, expired or cancelled, however long that takes; `signal` ends the wait. A
   * service that is away is asked again for about a minute, unless `retries` says otherwise.
   */
  async waitFor(
    id: string,
    {
      wait_seconds = wait_seconds_default,
      retries = retries_max,
      ...options
    }: CallOptions & { wait_seconds?: number | undefined } = {},
  ): Promise<Checkpoint> {
    const { now, sleep, random } = this.#transport.platform
    for (;;) {
      const asked_at = now()
      const checkpoint = await this.get(id, { ...options, retries, wait: wait_seconds })
      if (checkpoint.status !== 'pending') return checkpoint
      if (now() - asked_at < look_again_ms) {
        await sleep(look_again_ms + Math.floor(random() * look_again_ms), options.signal)
      }
    }
  }

  /** With the admin key or an approval key. Throws CHECKPOINT_ALREADY_RESOLVED. */
  approve(
    id: string,
    given: Operations['approveCheckpoint']['body'] & CallOptions = {},
  ): Promise<Checkpoint> {
    const [body, options] = split(given)
    return this.#transport.call('approveCheckpoint', { params: { id }, body }, options)
  }

  /** As approve. */
  reject(id: string, given: Operations['rejectCheckpoint']['body'] & CallOptions = {}): Promise<Checkpoint> {
    const [body, options] = split(given)
    return this.#transport.call('rejectCheckpoint', { params: { id }, body }, options)
  }

  /** Only by the agent that created it. */
  cancel(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.#transport.call('cancelCheckpoint', { params: { id } }, options)
  }

  /** What was tried to tell the decision, latest first. */
  attempts(
    id: string,
    query: Operations['listCheckpointAttempts']['query'] & CallOptions = {},
  ): Pages<Attempt> {
    return listOf(this.#transport, 'listCheckpointAttempts', { id }, query)
  }
}
