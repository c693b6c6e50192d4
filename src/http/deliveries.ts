// Large answers, sent in pieces, as fast as the client reads: between two pieces the event loop has a turn, and nothing
// is sent, or made, for a client that is gone.

import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import { type MemoryBudget, outOfMemory } from '../base/memory.ts'
import { Places } from '../base/places.ts'
import { InParts } from '../contract/route.ts'
import { type Asked, Delivery } from './delivery.ts'
import { close, type LargeAnswer, partBytes, piece_bytes_max } from './outgoing.ts'

const sent_bytes_a_turn_max = limit(
  'http.sent_bytes_a_turn',
  8 * piece_bytes_max,
  'bytes',
  'Pieces of large answers that are sent in one turn of the event loop; the others wait, so that small answers do not.',
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
  'How long the next part of an answer, or the answer to a write, waits for room; then it is cut off.',
)

export class Deliveries {
  readonly #turns = new Turns(sent_bytes_a_turn_max / piece_bytes_max)
  readonly #sending = new Places(sending_max)

  constructor(
    private readonly memory: MemoryBudget,
    private readonly wait_ms_max: number = room_wait_ms_max,
  ) {}

  /** Large answers under way, and addresses that have one. For tests. */
  get size(): { sending: number; addresses: number } {
    return { sending: this.#sending.all, addresses: this.#sending.keys }
  }

  /**
   * The response that Bun sends; `onEnd` is called in any case. Throws UNAVAILABLE to a safe method when
   * there is no room; any other has had its effect, so its answer waits for room, and is cut off when there is
   * none for long.
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
      answer,
      asked,
    )
    if (answer.is_live) return new Response(delivery.stream(), { status, headers }) // it has a place of those that wait
    const enter = () => {
      if (!this.#sending.enter(asked.address, sending_of_address_max)) return false
      const has_room = delivery.count(heldBytes(body))
      if (has_room) delivery.onLeave(() => this.#sending.leave(asked.address))
      else this.#sending.leave(asked.address)
      return has_room
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
}

/** With the headers of GET: Bun sends no Content-Length with a stream, but chunked coding. */
function headOf({ status, headers, body }: LargeAnswer): Response {
  close(body)
  return new Response(new ReadableStream(), { status, headers })
}

/** The bytes in memory for this answer alone from its start. A `Uint8Array` is shared between answers. */
function heldBytes(body: LargeAnswer['body']): number {
  if (typeof body === 'string' || body instanceof InParts) return partBytes(body)
  return body instanceof Uint8Array ? piece_bytes_max : 0
}
