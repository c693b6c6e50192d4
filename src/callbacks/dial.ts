// Connects to exactly the addresses that were checked, one after the other until one answers.

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { limit } from '../base/limit.ts'
import type { Target } from './guard.ts'
import type { PoolSettings } from './pool.ts'
import { isSame, parseAddress } from './ranges.ts'
import { hostOf, portOf } from './url-rules.ts'

/** The reason that there is no connection. The classes are explained at `FailureClass`. */
export type ConnectionFailure = 'refused' | 'tls' | 'blocked'

export interface Peer {
  address: string
  port: number
  /** Null: plain TCP. Else TLS, verified against this name; '' for a URL whose host is an address. */
  server_name: string | null
}

/** Begins a connection to exactly that address. `connect`, `secureConnect`, `error` and `close` come later. */
export type Connect = (peer: Peer) => Socket

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

  /** Ends a connection that is still being made; one that is open stays. */
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

/** True when the socket is connected to this address: the last check before a byte is written. */
function leadsTo(socket: Socket, address: string): boolean {
  const reached = parseAddress(socket.remoteAddress ?? '')
  return reached !== null && isSame(reached, parseAddress(address)!)
}
