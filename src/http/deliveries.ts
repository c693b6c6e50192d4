// Large answers, sent in pieces, as fast as the client reads: between two pieces the event loop has a turn, and nothing is
// sent, or made, for a client that is gone.

import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import { type Hold, type MemoryBudget, outOfMemory } from '../base/memory.ts'
import { type Body, close, type LargeAnswer, piece_bytes_max, pieces } from './outgoing.ts'

const sent_bytes_a_turn_max = limit(
  'http.sent_bytes_a_turn',
  8 * piece_bytes_max,
  'bytes',
  'Pieces of large answers that are sent in one turn of the event loop; the others wait, so that small answers need not.',
)

export const sending_of_address_max = limit(
  'http.sending_of_address',
  1_024,
  'requests',
  'Large answers that one client address has not read to their end; past it 503 UNAVAILABLE.',
)

export const sending_max = limit(
  'http.sending',
  4_096,
  'requests',
  'Large answers of a node that have not been read to their end; past it 503 UNAVAILABLE.',
)

const room_wait_ms_max = limit(
  'http.room_wait_ms',
  10_000,
  'milliseconds',
  'How long the next part of an answer, or the answer to a write, waits for room; then it is broken off.',
)

const room_looked_for_ms = 50

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

export class Deliveries {
  readonly #turns = new Turns(sent_bytes_a_turn_max / piece_bytes_max)
  readonly #of_address = new Map<string, number>()
  #sending = 0

  constructor(
    private readonly memory: MemoryBudget,
    private readonly wait_ms_max: number = room_wait_ms_max,
  ) {}

  /** Large answers under way, and addresses that have one. For tests. */
  get size(): { sending: number; addresses: number } {
    return { sending: this.#sending, addresses: this.#of_address.size }
  }

  /**
   * The response that Bun sends; `onEnd` is called whatever becomes of it. Throws UNAVAILABLE to a safe method when there
   * is no room; any other has had its effect, so its answer waits for room, and is broken off when there is none for long.
   */
  send(answer: LargeAnswer, asked: Asked): Response {
    const { status, headers, body } = answer
    const { method } = asked.request
    if (method === 'HEAD') {
      asked.onEnd()
      return headOf(answer)
    }
    const delivery = new Delivery(
      { memory: this.memory, turns: this.#turns, wait_ms_max: this.wait_ms_max },
      body,
      asked,
    )
    const enter = () => {
      if (!this.#hasPlace(asked.address) || !delivery.count(heldBytes(body))) return false
      this.#enter(asked.address)
      delivery.onLeave(() => this.#leave(asked.address))
      return true
    }
    if (!enter()) {
      if (method === 'GET') {
        delivery.end()
        throw outOfMemory(true)
      }
      delivery.enterLater(enter)
    }
    return new Response(delivery.stream(), { status, headers })
  }

  #hasPlace(address: string): boolean {
    return this.#sending < sending_max && (this.#of_address.get(address) ?? 0) < sending_of_address_max
  }

  #enter(address: string): void {
    this.#sending += 1
    this.#of_address.set(address, (this.#of_address.get(address) ?? 0) + 1)
  }

  #leave(address: string): void {
    this.#sending -= 1
    const left = this.#of_address.get(address)! - 1
    if (left === 0) this.#of_address.delete(address)
    else this.#of_address.set(address, left)
  }
}

/** With the headers of GET: Bun sends no Content-Length beside a stream, but chunked coding. */
function headOf({ status, headers, body }: LargeAnswer): Response {
  close(body)
  return new Response(new ReadableStream(), { status, headers })
}

/** The bytes in memory for this answer alone from its start. Bytes are shared between all who ask for them. */
function heldBytes(body: LargeAnswer['body']): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? piece_bytes_max : 0
}

/** Shared by the deliveries of a node. */
interface Means {
  memory: MemoryBudget
  turns: Turns
  wait_ms_max: number
}

/** One answer on its way. */
class Delivery {
  readonly #hold: Hold
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #has_ended = false
  /** Bytes of the part that is being sent, when the rest is not in memory yet. */
  #part_bytes = 0
  #leave = () => {}
  /** Null once there was room. */
  #enter: (() => boolean) | null = null
  readonly #pieces: AsyncGenerator<Uint8Array, void>
  readonly #stop = () => this.#break()

  constructor(
    private readonly means: Means,
    private readonly body: LargeAnswer['body'],
    private readonly asked: Asked,
  ) {
    this.#pieces = pieces(body, (part) => this.#countPart(part))
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

  /** Nothing is sent until `enter` answers true. */
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
    close(this.body)
  }

  /** Called when Bun has handed the piece before to the operating system. */
  async #sendNext(): Promise<void> {
    this.#hold.progress()
    await this.means.turns.next()
    if (this.#has_ended) return this.#break()
    try {
      if (this.#enter) await this.#untilRoom(this.#enter)
      this.#enter = null
      const { done, value } = await this.#pieces.next()
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

  async #countPart(part: Body): Promise<void> {
    this.#hold.shrink(this.#part_bytes)
    this.#part_bytes = Buffer.byteLength(part)
    await this.#untilRoom(() => this.#hold.grow(this.#part_bytes))
  }

  /** Others are being sent, or are cut off. Throws UNAVAILABLE when there is no room for long. */
  async #untilRoom(take: () => boolean): Promise<void> {
    for (let waited_ms = 0; !this.#has_ended; waited_ms += room_looked_for_ms) {
      if (take()) return
      if (waited_ms >= this.means.wait_ms_max) break
      await new Promise((resolve) => setTimeout(resolve, room_looked_for_ms))
    }
    throw outOfMemory()
  }

  /** The client gets an answer that visibly has no end. */
  #break(): void {
    this.end()
    this.#controller?.error(new Error('the answer was broken off'))
  }
}
