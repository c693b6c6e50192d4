// Connections to checked addresses, kept for a few seconds to be used again.

import http from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'
import { type Connect, type Dial, DialError } from './dial.ts'

export interface PoolSettings {
  /** Each address of a name but the last may take a part of it. */
  deadline_ms: number
  /** How long an unused connection is kept. */
  idle_ms: number
  /** Connections in use and idle: above this none is kept for reuse. */
  connections_kept_max: number
  connect: Connect
}

const unkept_ms = limit(
  'callbacks.connections_unkept',
  10 * minute_ms,
  'milliseconds',
  'How long no connection is kept to a receiver that has closed one without announcing it.',
)
const unkept_max = limit(
  'callbacks.receivers_unkept',
  1_000,
  'entries',
  'Such receivers that a node remembers. Past it the first are forgotten.',
)

/**
 * node:http's own pool, which also honours a receiver's `Keep-Alive: timeout=…`. The key of a connection holds scheme,
 * name, port and all addresses that were checked for it, so that it is only used again for an attempt whose own look-up
 * allowed the very address it leads to.
 */
export class Pool extends http.Agent {
  readonly settings: PoolSettings
  readonly #clock: Clock
  readonly #dials = new Set<Dial>()
  /** By key: until when no connection is kept, on the monotonic clock. */
  readonly #unkept = new Remembered<number>(unkept_max)
  #is_closed = false

  constructor(settings: PoolSettings, clock: Clock) {
    super({ keepAlive: true, timeout: settings.idle_ms })
    this.settings = settings
    this.#clock = clock
  }

  override getName(options?: http.RequestOptions): string {
    return dialOf(options).key
  }

  override createConnection(
    options: http.ClientRequestArgs,
    done?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    const dial = dialOf(options)
    if (this.#is_closed) {
      done?.(new DialError('refused'), undefined as never)
      return
    }
    this.#dials.add(dial)
    dial.open(this.settings, (error, socket) => {
      this.#dials.delete(dial)
      if (socket) this.#watch(dial.key, socket)
      done?.(error, socket as Socket)
    })
  }

  /** One that this node closes, because it was idle for long, ends destroyed and without an error. */
  #watch(key: string, socket: Socket): void {
    const ended = (error?: Error) => {
      const by_receiver = error !== undefined || !socket.destroyed
      if (by_receiver && this.freeSockets[key]?.includes(socket)) this.keepNone(key)
    }
    socket.once('end', ended).once('error', ended)
  }

  /** For a receiver that closes connections and does not say so (RFC 9112 section 9.6): the request on the next would fail. */
  keepNone(key: string): void {
    this.#unkept.put(key, this.#clock.monotonic() + unkept_ms)
  }

  /** Closes the idle connections of a key, unless it may have any. */
  closeUnkept(key: string): void {
    if (!this.keeps(key)) for (const socket of this.freeSockets[key] ?? []) socket.destroy()
  }

  keeps(key: string): boolean {
    return !((this.#unkept.get(key) ?? 0) > this.#clock.monotonic())
  }

  /** True when a connection must be closed after its answer. */
  isFull(): boolean {
    const { totalSocketCount } = this as unknown as { totalSocketCount: number }
    return totalSocketCount > this.settings.connections_kept_max
  }

  /** True when a connection of this key is kept, as far as is known. */
  hasIdle(key: string): boolean {
    return this.freeSockets[key] !== undefined
  }

  close(): void {
    this.#is_closed = true
    for (const dial of this.#dials) dial.abandon()
    this.destroy()
  }
}

/** node:http hands the options of a request through to its agent; this is how the agent learns the target. */
function dialOf(options: http.RequestOptions | undefined): Dial {
  return (options as { dial: Dial }).dial
}
