// One request and its answer: the state and the steps that routes and pages share.

import type { BunRequest, Server } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import type { TurnBudget } from '../base/event-loop.ts'
import type { FairTurns } from '../base/fair-turns.ts'
import type { Permit } from '../base/heavy-read.ts'
import type { HeavyReads } from '../base/heavy-reads.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { Overload } from '../base/overload.ts'
import type { Places } from '../base/places.ts'
import { traceIdOf, traceparent_header, traceparentOf } from '../base/traceparent.ts'
import type { Span, Tracer } from '../base/tracer.ts'
import type { Caller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Route } from '../contract/route.ts'
import type { Db } from '../db/db.ts'
import { clientAddress, clientKey, isTrustedPeer, type Range } from './address.ts'
import type { Log } from './answers.ts'
import type { Deliveries } from './deliveries.ts'
import type { Drain } from './drain.ts'
import type { KnownHosts } from './host.ts'
import type { IgnoredNames } from './ignored.ts'
import type { Limiters } from './limits.ts'
import type { RequestMeasures } from './measures.ts'
import type { RequestLog } from './request-log.ts'
import type { KeyChecks } from './still-allowed.ts'
import {
  requests_max,
  requests_of_address_max,
  uncounted_max,
  urgent_requests_max,
  urgent_requests_of_address_max,
} from './under-way.ts'
import { Upload } from './upload.ts'
import { urgent } from './urgent-db.ts'
import type { UrgentLookUps } from './urgent-look-ups.ts'

export interface ServerOptions {
  db: Db
  clock: Clock
  dependencies: Dependencies
  log: Log
  /** Every request is logged; costs time, so only at level debug. */
  log_requests: boolean
  trusted_proxies: readonly Range[]
  cors_origins: readonly string[]
  cron_secret: string
  /** Null while everything is loopback. */
  limits: Limiters | null
  /** Null unless everything is loopback. */
  hosts: KnownHosts | null
  drain: Drain
  deliveries: Deliveries
  heavy_reads: HeavyReads
  overload: Overload
  /** Null: no requests are logged, but at level debug. */
  request_log: RequestLog | null
  /** Null: requests are not counted. */
  measures: RequestMeasures | null
  /** Null: there are no spans. */
  tracer: Tracer | null
}

export interface Running extends ServerOptions {
  /** How long requests take is counted or logged. */
  timed: boolean
  turn_budget: TurnBudget
  /** Of pages that take long. */
  page_turns: FairTurns
  /** Of clients, once there are many requests. */
  under_way: Places
  look_ups: UrgentLookUps
  key_checks: KeyChecks
}

/** Bun closes a connection that is idle, or slow, this long. */
export const idle_timeout_seconds = limit(
  'http.idle_seconds',
  10,
  'seconds',
  'How long a connection may be idle, or send or read nothing; past it the connection is closed.',
)
/** A proxy that uses a connection just as it is closed answers 502: most keep theirs for 60, 90 or 120 s. Bun knows at most 255. */
const proxy_idle_seconds = limit(
  'http.proxy_idle_seconds',
  250,
  'seconds',
  'How long a connection of a proxy in TRUST_PROXY is kept after an answer: longer than proxies keep theirs, so that it is never closed just as one uses it.',
)
/** An answer that takes long gets this much on top of its time. */
const extension_margin_seconds = 10

/** The part of Bun's server that a request needs. */
export interface Connection extends Pick<Server<undefined>, 'requestIP' | 'timeout' | 'pendingRequests'> {
  /** The exchange on whose connection this request is answered in process. */
  outer?: Exchange
}

export type Handler = (request: BunRequest, server: Connection) => Promise<Response>

/** A request, and what is known of it so far, also after a failure. */
export class Exchange {
  readonly now: Millis
  readonly request_id: string
  caller: Caller | null = null
  /** The memory that its body takes. */
  upload: Upload | null = null
  /** Names in its body that its route does not know. */
  ignored: IgnoredNames | null = null
  /** The permit of a heavy read, until its answer was sent. */
  permit: Permit | null = null
  /** The connection may be idle for longer than usual until the answer is there. */
  is_extended = false
  /** It takes long because it asks to, as may a call in process that is a part of it. */
  has_waited = false
  /** The answer is sent in pieces: a client that reads none of them for long holds memory. */
  is_in_pieces = false
  /** The answer is made while it is sent, and may need the body until then. */
  is_being_made = false
  /** On the monotonic clock, where requests are timed. */
  began = 0
  /** Null while nothing is traced. */
  span: Span | null = null
  /** Its client, while requests are counted by client. */
  counted_client: string | null = null
  #address: string | null = null

  constructor(
    readonly options: Running,
    readonly request: BunRequest,
    readonly server: Connection,
  ) {
    this.now = options.clock.now()
    this.request_id = requestId(request.headers, this.now)
  }

  /** The request that came on the connection; this one, unless it is answered in process for another. */
  get connection(): Request {
    return this.server.outer?.request ?? this.request
  }

  /** The client's, behind trusted proxies. Some requests need it several times, and each read of it is a system call. */
  get address(): string {
    this.#address ??= clientAddress(
      this.server.requestIP(this.request)?.address ?? 'unknown',
      this.request.headers.get('x-forwarded-for'),
      this.options.trusted_proxies,
    )
    return this.#address
  }

  /** The trace that it belongs to: its span, or the header that came with it, or that of the request that it is a part of. */
  get traceparent(): string | null {
    if (this.span) return this.span.traceparent
    const sent = traceparentOf(this.request.headers.get(traceparent_header))
    const outer = this.server.outer?.traceparent ?? null
    // Within one trace the span of the request is the nearer one.
    const is_other = sent !== null && (outer === null || traceIdOf(outer) !== traceIdOf(sent))
    return is_other ? sent : outer
  }

  /**
   * Throws UNAVAILABLE when too many requests are under way. Costs nothing while they are few. Routes that are refused last have
   * extra room, even for a client that has filled its share.
   */
  requireRoom(shed?: Route['shed']): void {
    const { pendingRequests } = this.server
    if (pendingRequests <= uncounted_max) return
    const { under_way } = this.options
    const address = clientKey(this.address)
    const client = shed === 'last' ? urgent(null, address) : address
    const has_room =
      shed === 'last'
        ? pendingRequests <= requests_max + urgent_requests_max &&
          under_way.enter(client, urgent_requests_of_address_max)
        : pendingRequests <= requests_max && under_way.enter(client, requests_of_address_max)
    if (!has_room)
      throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1, close: true, shed: 'in_flight' })
    this.counted_client = client
  }

  /**
   * Waits for a turn of the event loop, in the queue of its tenant, or of its client when no tenant is known. Throws
   * UNAVAILABLE when that takes too long, and REQUEST_TIMEOUT when the client has left: nothing is done for it.
   */
  async turn(shed?: Route['shed']): Promise<void> {
    const { line } = this
    const { turn_budget } = this.options
    if (shed === 'last') await turn_budget.turn(urgent(this.caller?.kind ?? null, line), 'urgent')
    else await turn_budget.turn(line, this.caller ? 'tenant' : 'stranger')
    if (this.request.signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
  }

  /** The queue in which it waits: of its tenant, or of its client when no tenant is known. */
  get line(): string {
    return this.caller?.tenant_id ?? clientKey(this.address)
  }

  /** Begins to count the body. Throws UNAVAILABLE when there is no room for a large one. */
  expectBody(): void {
    this.upload = new Upload(this.request, this.options.dependencies.shared.memory, this)
  }

  /** Keeps the connection open although nothing is sent for this long. */
  extendTimeout(ms: number): void {
    this.is_extended = true
    this.has_waited = true
    if (this.server.outer) this.server.outer.has_waited = true
    this.server.timeout(this.request, Math.ceil(ms / 1_000) + extension_margin_seconds)
  }

  /** Ends the longer time of the connection once the answer is there. */
  settle(): void {
    if (this.is_in_pieces && !this.is_being_made) this.upload?.release()
    if (this.counted_client !== null) this.options.under_way.leave(this.counted_client)
    if (this.is_extended) this.server.timeout(this.request, idle_timeout_seconds)
    if (!this.is_in_pieces) this.keep()
  }

  /** The answer is there, or was sent in all its pieces. */
  keep(): void {
    this.upload?.release()
    keepForProxy(this.options, this.request, this.server)
  }
}

/** Lets the connection of a trusted proxy be idle for longer than usual, until its next request. */
export function keepForProxy(
  options: Pick<ServerOptions, 'trusted_proxies'>,
  request: Request,
  server: Connection,
): void {
  if (isProxy(options, request, server)) server.timeout(request, proxy_idle_seconds)
}

/** A trusted proxy has sent this request. False for a call in process: it came on no connection of its own. */
export function isProxy(
  { trusted_proxies }: Pick<ServerOptions, 'trusted_proxies'>,
  request: Request,
  server: Connection,
): boolean {
  if (trusted_proxies.length === 0 || server.outer) return false
  const peer = server.requestIP(request)?.address
  return peer !== undefined && isTrustedPeer(peer, trusted_proxies)
}

const request_id_form = /^[A-Za-z0-9_.-]{8,64}$/

/** A caller's own id is kept when it is harmless. */
export function requestId(headers: Headers, now: number): string {
  const sent = headers.get('x-request-id')
  return sent !== null && request_id_form.test(sent) ? sent : newId('req', now)
}

/** Bun joins repeated headers, and takes the first for the host (RFC 9112 section 3.2: a server refuses that). */
export function requireOneHost(headers: Headers): void {
  if (headers.get('host')?.includes(', '))
    throw invalid({ path: 'header.Host', message: 'was sent more than once' })
}
