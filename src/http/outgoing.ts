// The body of every answer. A small one is handed to Bun at once. A large one goes out in pieces, as fast as the client
// reads it: between two pieces the event loop has a turn, and nothing is sent, or made, for a client that is gone.

import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import { type Hold, type MemoryBudget, outOfMemory } from '../base/memory.ts'

export const piece_bytes_max = limit(
  'http.piece_bytes',
  65_536,
  'bytes',
  'The part of an answer that Bun holds for a connection; a larger answer is sent in pieces, in chunked coding.',
)

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

type Body = string | Uint8Array<ArrayBuffer>

/** An answer that is larger than a piece, or may be: `Deliveries` sends it. */
export class LargeAnswer {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    /** Shared when it is one for all; never copied as a whole. */
    readonly body: Body | AsyncIterator<Body>,
  ) {}
}

export type Outgoing = Response | LargeAnswer

export function outgoing(status: number, headers: Record<string, string>, body: Body): Outgoing {
  return isLarge(body)
    ? new LargeAnswer(status, new Headers(headers), body)
    : new Response(body, { status, headers })
}

/** Of a text that may be, UTF-8 takes three bytes a character at most. */
export function isLarge(body: Body): boolean {
  if (typeof body !== 'string') return body.length > piece_bytes_max
  return body.length * 3 > piece_bytes_max && Buffer.byteLength(body) > piece_bytes_max
}

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
    const delivery = new Delivery(this.memory, this.#turns, body, asked, this.wait_ms_max)
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

/** The same answer for a caller inside the process: there is no connection that could be slow. */
export function undivided({ status, headers, body }: LargeAnswer): Response {
  if (typeof body === 'string' || body instanceof Uint8Array) return new Response(body, { status, headers })
  const rest = pieces(body, async () => {})
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await rest.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: () => close(body),
  })
  return new Response(stream, { status, headers })
}

/** With the headers of GET: Bun sends no Content-Length beside a stream, but chunked coding. */
function headOf({ status, headers, body }: LargeAnswer): Response {
  close(body)
  return new Response(new ReadableStream(), { status, headers })
}

/** What is in memory for this answer alone from its start. Bytes are shared between all who ask for them. */
function heldBytes(body: LargeAnswer['body']): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? piece_bytes_max : 0
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
    memory: MemoryBudget,
    private readonly turns: Turns,
    private readonly body: LargeAnswer['body'],
    private readonly asked: Asked,
    private readonly wait_ms_max: number,
  ) {
    this.#pieces = pieces(body, (part) => this.#countPart(part))
    const { address, tenant_id } = asked
    this.#hold = memory.hold({ address, tenant_id }, () => {
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
    await this.turns.next()
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
      if (waited_ms >= this.wait_ms_max) break
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

/** `onPart` is told of each part that was made only now. */
async function* pieces(
  body: LargeAnswer['body'],
  onPart: (part: Body) => Promise<void>,
): AsyncGenerator<Uint8Array, void> {
  if (typeof body === 'string' || body instanceof Uint8Array) return yield* piecesOf(body)
  for (;;) {
    const { done, value } = await body.next()
    if (done) return
    await onPart(value)
    yield* piecesOf(value)
  }
}

/** Lets go of what the rest would be made from. */
function close(body: LargeAnswer['body']): void {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) body.return?.().catch(() => {})
}

function piecesOf(body: Body): Generator<Uint8Array, void> {
  return typeof body === 'string' ? piecesOfText(body) : piecesOfBytes(body)
}

function* piecesOfBytes(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += piece_bytes_max) yield bytes.subarray(at, at + piece_bytes_max)
}

/** Encoded a piece at a time, never within a character. */
function* piecesOfText(text: string): Generator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + piece_bytes_max, text.length)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1
    const bytes = new Uint8Array(Math.min(piece_bytes_max, (end - at) * 3))
    const { read, written } = encoder.encodeInto(text.slice(at, end), bytes)
    yield bytes.subarray(0, written)
    at += read
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff
}
