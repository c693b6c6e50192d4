// Connections: made to a checked address only, looked at once more when they stand, kept for a few seconds.

import http from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { limit } from '../base/limit.ts'
import { hostOf, portOf, type Target } from './guard.ts'
import { isSame, parseAddress } from './ranges.ts'

/** Why no answer came. The classes are explained at `Outcome`. */
export type ConnectionFailure = 'refused' | 'tls' | 'blocked'

export interface Peer {
  address: string
  port: number
  /** Null: plain TCP. Else TLS, verified against this name; '' for a URL whose host is an address. */
  server_name: string | null
}

/** Begins a connection to exactly that address. `connect`, `secureConnect`, `error` and `close` come later. */
export type Connect = (peer: Peer) => Socket

export interface PoolSettings {
  /** Part of it is what each address but the last of a name may take. */
  deadline_ms: number
  /** How long an unused connection is kept. */
  idle_ms: number
  /** Connections in use and idle: above this none is kept for reuse. */
  connections_kept_max: number
  connect: Connect
}

/** Of a name with more answers only the first of each family are tried; all were checked. */
const addresses_tried_max = limit(
  'callbacks.addresses_tried',
  2,
  'entries',
  'Addresses of each family that an attempt connects to, one after the other.',
)

/** `tls_options` adds to what is fixed here, for a test's own certificate authority. */
export function openConnection(peer: Peer, tls_options: ConnectionOptions = {}): Socket {
  const { address, port, server_name } = peer
  if (server_name === null) return connectTcp({ host: address, port, noDelay: true })
  const fixed = { host: address, port, servername: server_name, rejectUnauthorized: true }
  return connectTls({ ...tls_options, ...fixed, ALPNProtocols: ['http/1.1'] }).setNoDelay(true)
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

  /** True once answers have to close their connections. */
  isFull(): boolean {
    const { totalSocketCount } = this as unknown as { totalSocketCount: number }
    return totalSocketCount > this.settings.connections_kept_max
  }

  /** Closes the idle connections of a key. */
  forget(key: string): void {
    for (const socket of this.freeSockets[key] ?? []) socket.destroy()
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

type Dialled = (failure: DialError | null, socket: Socket | null) => void

export class DialError extends Error {
  override name = 'DialError'
  constructor(readonly failure: ConnectionFailure) {
    super(failure)
  }
}

/** The way to one target. Opened when the pool has no connection for it. */
export class Dial {
  readonly key: string
  readonly #target: Target
  #peers: Peer[] = []
  #socket: Socket | undefined
  #done: Dialled | undefined

  constructor(target: Target) {
    const { url, addresses } = target
    this.key = `${url.origin} ${addresses.length > 1 ? addresses.toSorted() : addresses[0]}`
    this.#target = target
  }

  open(settings: PoolSettings, done: Dialled): void {
    this.#done = done
    this.#peers = peersOf(this.#target)
    this.#try(0, settings)
  }

  /** Ends a connection that is still being made; one that stands is not concerned. */
  abandon(): void {
    this.#finish('refused')
  }

  /** Each address but the last gets a quarter of the deadline, so that a silent one leaves time for the next. */
  #try(index: number, settings: PoolSettings): void {
    const peer = this.#peers[index]!
    const is_last = index + 1 === this.#peers.length
    const socket = settings.connect(peer)
    const timer = is_last ? undefined : setTimeout(() => socket.destroy(), settings.deadline_ms / 4)
    let is_connected = false
    this.#socket = socket
    socket.on('connect', () => {
      is_connected = true
      clearTimeout(timer)
      if (!leadsTo(socket, peer.address)) this.#finish('blocked')
      else if (peer.server_name === null) this.#finish(null)
    })
    socket.on('secureConnect', () => this.#finish(null))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      if (is_connected) this.#finish('tls')
      else if (is_last) this.#finish('refused')
      else if (this.#done) this.#try(index + 1, settings)
    })
  }

  #finish(failure: ConnectionFailure | null): void {
    const done = this.#done
    if (!done) return
    this.#done = undefined
    if (failure === null) {
      done(null, this.#socket!)
    } else {
      this.#socket?.destroy()
      done(new DialError(failure), null)
    }
  }
}

/** First IPv4, then IPv6, in the resolver's order: on a machine with one family only, the other fails at once. */
function peersOf({ url, addresses }: Target): Peer[] {
  const host = hostOf(url)
  const server_name = url.protocol === 'https:' ? (isIP(host) ? '' : host) : null
  const of = (family: number) => addresses.filter((address) => isIP(address) === family)
  const tried = [...of(4).slice(0, addresses_tried_max), ...of(6).slice(0, addresses_tried_max)]
  return tried.map((address) => ({ address, port: portOf(url), server_name }))
}

/** The last look at where a request would go, before a byte of it is written. */
function leadsTo(socket: Socket, address: string): boolean {
  const reached = parseAddress(socket.remoteAddress ?? '')
  return reached !== null && isSame(reached, parseAddress(address)!)
}
