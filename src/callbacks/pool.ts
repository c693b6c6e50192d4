// Connections to checked addresses, kept for a few seconds to be used again.

import http from 'node:http'
import type { Socket } from 'node:net'
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

/**
 * node:http's own pool, which also honours a receiver's `Keep-Alive: timeout=…`. The key of a connection holds scheme,
 * name, port and all addresses that were checked for it, so that it is only used again for an attempt whose own look-up
 * allowed the very address it leads to.
 */
export class Pool extends http.Agent {
  readonly settings: PoolSettings
  readonly #dials = new Set<Dial>()
  #is_closed = false

  constructor(settings: PoolSettings) {
    super({ keepAlive: true, timeout: settings.idle_ms })
    this.settings = settings
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
      done?.(error, socket as Socket)
    })
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
