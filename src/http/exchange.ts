// One request and its answer: the state and the steps that routes and pages share.

import type { BunRequest, Server } from 'bun'
import type { Clock } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import type { TurnBudget } from '../base/event-loop.ts'
import type { HeavyReads, Permit } from '../base/heavy-reads.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { Caller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { clientAddress, clientKey, type Range } from './address.ts'
import { type Failing, failure, type Log } from './answers.ts'
import type { KnownHosts } from './host.ts'
import type { AddressLimit } from './limits.ts'
import { type Deliveries, LargeAnswer, type Outgoing, undivided } from './outgoing.ts'
import { type RequestsUnderWay, requests_max, uncounted_max } from './under-way.ts'
import { Upload } from './upload.ts'

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
  limits: { sign_ups: AddressLimit; failed_keys: AddressLimit } | null
  /** Null unless everything is loopback. */
  hosts: KnownHosts | null
  deliveries: Deliveries
  heavy_reads: HeavyReads
}

export interface Running extends ServerOptions {
  turn_budget: TurnBudget
  under_way: RequestsUnderWay
}

/** Bun closes a connection that is idle, or slow, this long. */
export const idle_timeout_seconds = limit(
  'http.idle_seconds',
  10,
  'seconds',
  'How long a connection may be idle, or send or read nothing; past it the connection is closed.',
)
/** A held answer gets this much on top of its time. */
const hold_margin_seconds = 10

/** The part of Bun's server that a request needs. */
export interface Connection extends Pick<Server<undefined>, 'requestIP' | 'timeout' | 'pendingRequests'> {
  /** The request that came on the connection, when another is answered in process for it. */
  outer?: { request: Request; asking: Asking }
}

export type Handler = (request: BunRequest, server: Connection) => Promise<Response>

/** What is known of a request so far: also when what follows fails. */
export interface Asking {
  caller: Caller | null
  /** The memory that its body takes. */
  upload: Upload | null
  /** Of a heavy read, until its answer was sent. */
  permit: Permit | null
  /** Whether the connection may be idle for longer than usual until the answer is there. */
  held: boolean
  /** Gives back the place of its client; null while nobody is counted. */
  leave: (() => void) | null
}

export function newAsking(): Asking {
  return { caller: null, upload: null, permit: null, held: false, leave: null }
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

/** Costs nothing while few requests are under way. */
export function requireRoom(options: Running, request: BunRequest, server: Connection, asking: Asking): void {
  const { pendingRequests } = server
  if (pendingRequests <= uncounted_max) return
  const { under_way } = options
  const client = clientKey(addressOf(options, request, server))
  if (pendingRequests > requests_max || !under_way.enter(client))
    throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1, close: true })
  asking.leave = () => under_way.leave(client)
}

/** Nothing is done for a client that went away meanwhile: the answer is for nobody. */
export async function untilNextTurn(waiting: Promise<void>, { signal }: Request): Promise<void> {
  await waiting
  if (signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
}

export function addressOf(options: ServerOptions, request: BunRequest, server: Connection): string {
  const peer = server.requestIP(request)?.address ?? 'unknown'
  return clientAddress(peer, request.headers.get('x-forwarded-for'), options.trusted_proxies)
}

/** Throws UNAVAILABLE when there is no room for a large body. */
export function newUpload(options: ServerOptions, request: BunRequest, server: Connection): Upload {
  return new Upload(request, options.dependencies.shared.memory, () =>
    clientKey(addressOf(options, request, server)),
  )
}

/** Keeps the connection open although nothing is sent for this long. */
export function hold(asking: Asking, request: Request, server: Connection, ms: number): void {
  asking.held = true
  server.timeout(request, Math.ceil(ms / 1_000) + hold_margin_seconds)
}

/** The answer is there, maybe long before the connection's time is over. */
export function settle({ upload, held, leave }: Asking, request: Request, server: Connection): void {
  upload?.release()
  leave?.()
  if (held) server.timeout(request, idle_timeout_seconds)
}

/** What Bun gets. Throws UNAVAILABLE when a large answer has no room. */
export function responseOf(
  answered: Outgoing,
  options: ServerOptions,
  request: BunRequest,
  server: Connection,
  asking: Asking,
  route: Failing,
  request_id: string,
): Response {
  if (server.outer) {
    // What is made of it is sent by the outer request, which may have asked for more than one.
    if (asking.permit) {
      server.outer.asking.permit?.release()
      server.outer.asking.permit = asking.permit
      asking.permit.releaseSoon()
    }
    return answered instanceof LargeAnswer ? undivided(answered) : answered
  }
  if (!(answered instanceof LargeAnswer)) {
    asking.permit?.release()
    return answered
  }
  asking.permit?.releaseSoon()
  return options.deliveries.send(answered, {
    request,
    address: clientKey(addressOf(options, request, server)),
    tenant_id: asking.caller?.tenant_id ?? null,
    closeAfter: (seconds) => server.timeout(request, seconds),
    onBroken: (error) => void failure(error, request_id, options.log, route),
    onEnd: () => asking.permit?.release(),
  })
}

/** Only what is known to be harmless: the route's pattern, never a path, a header or a body. */
export function logRequest(
  { log, clock }: ServerOptions,
  route: Failing,
  request: Request,
  response: Response,
  began: number,
  request_id: string,
): void {
  const duration_ms = clock.now() - began
  log.debug(
    { request_id, method: request.method, route: route.path, status: response.status, duration_ms },
    'request',
  )
}
