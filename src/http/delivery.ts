// One large answer on its way: the next piece is made when the client has taken the one before.

import type { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import { type MemoryBudget, outOfMemory } from '../base/memory.ts'
import type { Hold } from '../base/memory-hold.ts'
import { sleep } from '../base/sleep.ts'
import { close, type LargeAnswer, type Part, partBytes, pieces } from './outgoing.ts'

const room_looked_for_ms = 50

/** Longer than the pause between two pieces of an answer that never ends. */
const live_idle_seconds = limit(
  'http.live_idle_seconds',
  30,
  'seconds',
  'How long a client of an answer that never ends may read nothing; past it the connection is closed.',
)

/** The request that an answer is for. */
export interface Asked {
  request: Request
  /** Of the client, behind trusted proxies. */
  address: string
  tenant_id: string | null
  /** Bun closes the connection when the client takes nothing for this long. */
  closeAfter(seconds: number): void
  /** The answer could not be made to its end. */
  onBroken(error: unknown): void
  /** Called once: the answer was sent, or never will be. */
  onEnd(): void
}

/** Shared by the deliveries of a node. */
interface Means {
  memory: MemoryBudget
  turns: Turns
  wait_ms_max: number
}

/** One answer on its way. */
export class Delivery {
  readonly #hold: Hold
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #has_ended = false
  /** Bytes of the part that is being sent, when the rest is not in memory yet. */
  #part_bytes = 0
  #leave = nothing
  /** Null once there was room, or it has ended. */
  #enter: (() => boolean) | null = null
  /** Null once it has ended: a piece that waits for its turn keeps nothing of the answer for a client that is gone. */
  #body: LargeAnswer['body'] | null
  #pieces: AsyncGenerator<Uint8Array, void> | null
  readonly #is_live: boolean
  readonly #stop = () => this.#break()

  constructor(
    private readonly means: Means,
    { body, is_live }: Pick<LargeAnswer, 'body' | 'is_live'>,
    private readonly asked: Asked,
  ) {
    this.#body = body
    this.#is_live = is_live
    this.#pieces = pieces(
      body,
      (part) => this.#countPart(part),
      () => this.#beginPause(),
    )
    const { address, tenant_id } = asked
    this.#hold = means.memory.hold({ address, tenant_id }, () => {
      this.#break()
      asked.closeAfter(1)
    })
  }

  /** False when there is no room in the memory budget. */
  count(bytes: number): boolean {
    return this.#hold.grow(bytes)
  }

  /** Nothing is sent until `enter` returns true. */
  enterLater(enter: () => boolean): void {
    this.#enter = enter
  }

  onLeave(leave: () => void): void {
    this.#leave = leave
  }

  stream(): ReadableStream<Uint8Array> {
    const { signal } = this.asked.request
    if (signal.aborted) this.end()
    else if (!this.#has_ended) signal.addEventListener('abort', this.#stop, { once: true })
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#sendNext(),
        cancel: () => this.end(),
      },
      { highWaterMark: 0 },
    )
  }

  end(): void {
    if (this.#has_ended) return
    this.#has_ended = true
    this.asked.request.signal.removeEventListener('abort', this.#stop)
    this.#hold.release()
    this.#leave()
    this.asked.onEnd()
    close(this.#body!)
    this.#body = this.#pieces = this.#enter = null
    this.#leave = nothing // its closure keeps the body
  }

  /** Called when Bun has handed the piece before to the operating system. */
  async #sendNext(): Promise<void> {
    if (this.#has_ended) return this.#break()
    this.#hold.progress()
    if (this.#is_live) this.asked.closeAfter(live_idle_seconds)
    else await this.means.turns.next(() => this.#has_ended)
    if (this.#has_ended) return this.#break()
    try {
      if (this.#enter) await this.#untilRoom(this.#enter)
      if (this.#has_ended) return this.#break()
      this.#enter = null
      const { done, value } = await this.#pieces!.next()
      if (this.#has_ended) return this.#break()
      if (done) {
        this.end()
        this.#controller!.close()
      } else this.#controller!.enqueue(value)
    } catch (error) {
      this.asked.onBroken(error)
      this.#break()
    }
  }

  /** The previous part is sent in full; nobody knows when the next part of an answer that never ends will come. */
  #beginPause(): void {
    if (!this.#is_live) return
    this.#hold.shrink(this.#part_bytes)
    this.#part_bytes = 0
  }

  async #countPart(part: Part): Promise<void> {
    this.#hold.shrink(this.#part_bytes)
    this.#part_bytes = partBytes(part)
    await this.#untilRoom(() => this.#hold.grow(this.#part_bytes))
  }

  /** Waits until other answers have left room. Throws UNAVAILABLE when there is none for long. */
  async #untilRoom(take: () => boolean): Promise<void> {
    for (let waited_ms = 0; !this.#has_ended; waited_ms += room_looked_for_ms) {
      if (take()) return
      if (waited_ms >= this.means.wait_ms_max) break
      await sleep(room_looked_for_ms)
    }
    throw outOfMemory()
  }

  /** Ends the connection before the answer is complete, so that the client sees that. */
  #break(): void {
    this.end()
    this.#controller?.error(new Error('the answer was broken off'))
  }
}

function nothing(): void {}
