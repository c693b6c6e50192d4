// Events as Server-Sent Events (WHATWG HTML section 9.2), for as long as the client reads and its key holds.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { encode } from '../contract/encode.ts'
import { type EventRow, eventOf } from '../contract/event.ts'
import type { Follower } from './follower.ts'

/** A silent stream says this often that it is there. */
const heartbeat_ms_max = limit(
  'events.heartbeat',
  15_000,
  'milliseconds',
  'How long a stream of events sends nothing. Then a comment shows proxies and clients that the connection is alive.',
)
const check_ms_max = limit(
  'events.key_check',
  5_000,
  'milliseconds',
  'How long a stream of events continues without checking its key again, when no signal of a change has come; half a second while signals of other nodes are not heard.',
)
/** Before events are sent the key was checked this recently. */
const checked_ms_max = limit(
  'events.key_checked',
  1_000,
  'milliseconds',
  'How old the last check of its key may be when a stream sends an event.',
)
const piece_rows_max = limit(
  'events.stream_rows',
  16,
  'rows',
  'Events that a stream reads at once. The next are read when the client has taken these.',
)
/** How soon a client that lost its connection opens another. */
const reconnect_ms = 1_000

interface Streamed {
  follower: Follower
  clock: Clock
  /** How long a stream goes without checking its key, where that is less than usual: other nodes are not heard. */
  look_again_ms(): number
  /** Throws once the key of the request has ended. */
  requireStillAllowed(): Promise<unknown>
  /** Calls back when keys of the tenant may have ended, until the function that it returns is called. */
  onKeysChanged(listener: () => void): () => void
  /** Called once the stream is over. */
  onEnd(): void
}

export class EventTexts implements AsyncIterator<string> {
  #has_begun = false
  #is_over = false
  /** A key of the tenant may have ended since the last check, or since the request was let in. */
  #must_check = true
  #checked_at: number
  #silent_ms = 0
  readonly #unheed: () => void

  constructor(private readonly streamed: Streamed) {
    this.#checked_at = streamed.clock.monotonic()
    this.#unheed = streamed.onKeysChanged(() => {
      this.#must_check = true
      streamed.follower.wake()
    })
  }

  /** Called when the client has taken the text before: nothing is read ahead of it. */
  async next(): Promise<IteratorResult<string>> {
    const { follower } = this.streamed
    if (!this.#has_begun) {
      this.#has_begun = true
      // A client that is cut off before the first event goes on from here, too.
      return { done: false, value: `retry: ${reconnect_ms}\n${idOf(follower.position)}\n` }
    }
    while (!follower.is_over && !this.#is_over) {
      if (this.#must_check && !(await this.#isAllowed(false))) break
      if (this.#must_check) continue // meanwhile
      const wait_ms = Math.min(check_ms_max, this.streamed.look_again_ms())
      const events = await follower.next(piece_rows_max, wait_ms)
      if (events.length === 0) this.#silent_ms += wait_ms
      if (!(await this.#isAllowed(events.length > 0))) break
      if (events.length === 0 && this.#silent_ms < heartbeat_ms_max) continue
      this.#silent_ms = 0
      const value =
        events.length > 0 ? events.map(textOf).join('') : `: no news\n${idOf(follower.position)}\n`
      return { done: false, value }
    }
    this.#end()
    return { done: true, value: undefined }
  }

  async #isAllowed(has_events: boolean): Promise<boolean> {
    const { clock, requireStillAllowed } = this.streamed
    const age_ms = clock.monotonic() - this.#checked_at
    if (has_events && !this.#must_check && age_ms < checked_ms_max) return true
    this.#must_check = false
    this.#checked_at = clock.monotonic()
    // The client opens another stream, and is told what is wrong.
    return requireStillAllowed().then(
      () => true,
      () => false,
    )
  }

  /** The client has left. */
  async return(): Promise<IteratorResult<string>> {
    this.#end()
    return { done: true, value: undefined }
  }

  #end(): void {
    if (this.#is_over) return
    this.#is_over = true
    this.#unheed()
    this.streamed.follower.close()
    this.streamed.onEnd()
  }
}

/** Streams that read an event from memory share its text. */
const texts = new WeakMap<EventRow, string>()

function textOf(event: EventRow): string {
  const known = texts.get(event)
  if (known !== undefined) return known
  const text = `${idOf(event.seq)}event: ${event.type}\ndata: ${encode(eventOf(event))}\n\n`
  texts.set(event, text)
  return text
}

/** Where a client goes on, by the header Last-Event-ID. */
function idOf(seq: number): string {
  return `id: ${seq}\n`
}
