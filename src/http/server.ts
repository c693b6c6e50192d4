// A request, top to bottom.

import type { BunRequest, Server } from 'bun'
import type { Clock } from '../base/clock.ts'
import { ApiError, type ErrorCode } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Caller } from '../contract/caller.ts'
import { encode } from '../contract/encode.ts'
import { type Context, type Input, Reply, type Route, successStatus } from '../contract/route.ts'
import type { Services } from '../contract/services.ts'
import { type Db, DbError } from '../db/db.ts'
import { clientAddress, type Range } from './address.ts'
import { authenticate, mustBeAllowed } from './auth.ts'
import { mustBeJson, Reader, readBytes } from './body.ts'
import { corsHeaders } from './cors.ts'
import { type Answer, claimOf, once } from './idempotency.ts'
import type { AddressLimit } from './limits.ts'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface ServerOptions {
  db: Db
  clock: Clock
  services: Services
  log: Log
  /** Every request is logged; costs time, so only at level debug. */
  log_requests: boolean
  trusted_proxies: readonly Range[]
  cors_origins: readonly string[]
  /** Null while everything is loopback. */
  limits: { sign_ups: AddressLimit; failed_keys: AddressLimit } | null
}

type Handler = (request: BunRequest, server: Server<undefined>) => Promise<Response>

/** Everything that a route needs more than once, made ready before the first request. */
interface Prepared {
  route: Route
  params: [name: string, param: NonNullable<Route['params']>[string]][]
  query: Reader<NonNullable<Route['query']>> | null
  body: Reader<NonNullable<Route['body']>> | null
  status: number
}

export interface RequestHandlers {
  /** For `Bun.serve({ routes })`. */
  routes: Record<string, Partial<Record<Route['method'], Handler>>>
  /** For `Bun.serve({ fetch })`: unknown paths, other methods, OPTIONS. */
  fetch: Handler
  /** Compiles every schema, so that no request waits for it. */
  warmUp(): Promise<void>
}

export function requestHandlers(list: readonly Route[], options: ServerOptions): RequestHandlers {
  const prepared = list.map(prepare)
  const routes: RequestHandlers['routes'] = {}
  for (const item of prepared) {
    routes[item.route.path] ??= {}
    routes[item.route.path]![item.route.method] = (request, server) => serve(item, options, request, server)
  }
  const known = knownPaths(list)
  return {
    routes,
    fetch: (request, server) => serveUnrouted(known, options, request, server),
    async warmUp() {
      for (const { query, body } of prepared) {
        await query?.prepare()
        await body?.prepare()
      }
    },
  }
}

function prepare(route: Route): Prepared {
  return {
    route,
    params: Object.entries(route.params ?? {}),
    query: route.query ? new Reader(route.query) : null,
    body: route.body ? new Reader(route.body) : null,
    status: successStatus(route),
  }
}

async function serve(
  prepared: Prepared,
  options: ServerOptions,
  request: BunRequest,
  server: Server<undefined>,
): Promise<Response> {
  const now = options.clock.now()
  const request_id = requestId(request.headers, now)
  let response: Response
  try {
    response = await answer(prepared, options, request, server, now, request_id)
  } catch (error) {
    response = failure(error, request_id, options.log, prepared.route)
  }
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.log_requests) logRequest(options, prepared.route, request, response, now, request_id)
  return response
}

async function answer(
  { route, params: param_list, query, body, status }: Prepared,
  options: ServerOptions,
  request: BunRequest,
  server: Server<undefined>,
  now: number,
  request_id: string,
): Promise<Response> {
  const { db, services } = options
  const { headers } = request

  // Who asks.
  let caller: Caller | null = null
  let address = ''
  if (route.auth.length > 0) caller = await identified(route, options, request, server, now)
  if (route.sign_up) {
    if (!services.signup_open) throw new ApiError('FORBIDDEN')
    address = addressOf(options, request, server)
  }

  // What is asked.
  const params = param_list.length === 0 ? no_params : readParams(param_list, request)
  const ignored: string[] = []
  let bytes: Uint8Array = no_bytes
  let body_value: object = no_body
  if (body) {
    bytes = await readBytes(request)
    body_value = await readBody(route, body, headers, bytes, ignored)
  }
  const query_value = query ? await query.query(queryOf(request.url)) : no_query
  const input: Input<never, never, never> = {
    params: params as never,
    query: query_value as never,
    body: body_value as never,
    header: (name) => headers.get(name),
  }
  const context: Context<never> = {
    db,
    caller: caller as never,
    services,
    now,
    request_id,
    path: pathOf(route, params),
  }

  // What comes of it.
  if (!route.create) return respond(await route.handle!(context, input), status, request_id, ignored)
  const key = headers.get('idempotency-key')
  const claim = key === null ? null : claimOf(key, caller, address, `${route.method} ${context.path}`, bytes)
  const give_back = route.sign_up ? admit(options.limits?.sign_ups ?? null, address) : null
  try {
    const created = await db.write<Answer>(async (tx) => {
      const effect = async () => ({ status, text: encode(await route.create!(tx, context, input)) })
      return claim ? once(tx, claim, effect) : { ...(await effect()), replayed: false }
    })
    if (created.replayed) give_back?.()
    return json(created.status, created.text, request_id, created.replayed ? replayed : null, ignored)
  } catch (error) {
    give_back?.()
    throw error
  }
}

const no_params: Record<string, string> = {}
const no_query = {}
const no_body = {}
const no_bytes = new Uint8Array(0)
const replayed = { 'idempotent-replayed': 'true' }

const request_id_form = /^[A-Za-z0-9_.-]{8,64}$/

/** A caller's own id is kept when it is harmless. */
function requestId(headers: Headers, now: number): string {
  const sent = headers.get('x-request-id')
  return sent !== null && request_id_form.test(sent) ? sent : newId('req', now)
}

/** Throws UNAUTHORIZED, or RATE_LIMITED past the failed keys of this address; then what the kind of key decides. */
async function identified(
  route: Route,
  options: ServerOptions,
  request: BunRequest,
  server: Server<undefined>,
  now: number,
): Promise<Caller> {
  const found = await authenticate(options.db, options.services.key_cache, request.headers, now)
  if (typeof found !== 'string') {
    mustBeAllowed(found, route)
    return found
  }
  if (found === 'bad_key' && options.limits) {
    mustHaveLeft(options.limits.failed_keys, addressOf(options, request, server))
  }
  throw new ApiError('UNAUTHORIZED')
}

function mustHaveLeft(limit: AddressLimit, address: string): void {
  if (limit.take(address)) return
  throw new ApiError('RATE_LIMITED', { retry_after_seconds: limit.retryAfter(address) })
}

/** Counts a sign-up before it happens; what is answered takes it back when none did. */
function admit(limit: AddressLimit | null, address: string): (() => void) | null {
  if (!limit) return null
  mustHaveLeft(limit, address)
  return () => limit.giveBack(address)
}

function addressOf(options: ServerOptions, request: BunRequest, server: Server<undefined>): string {
  const peer = server.requestIP(request)?.address ?? 'unknown'
  return clientAddress(peer, request.headers.get('x-forwarded-for'), options.trusted_proxies)
}

/** Bun turns a bad escape into U+FFFD; where one shows, the raw segments tell it from a real one. */
function readParams(list: Prepared['params'], request: BunRequest): Record<string, string> {
  const raw = request.params as Record<string, string>
  const params: Record<string, string> = {}
  const issues: { path: string; message: string }[] = []
  for (const [name, param] of list) {
    const decoded = raw[name]!
    const value = decoded.includes('\ufffd') && !isRealText(decoded, request.url) ? null : param.read(decoded)
    if (value !== null) params[name] = value
    else if (param.message === '') params[name] = param.read('')!
    else issues.push({ path: `path.${name}`, message: param.message })
  }
  if (issues.length > 0) throw new ApiError('VALIDATION_FAILED', { details: { issues } })
  return params
}

function isRealText(decoded: string, url: string): boolean {
  const path = url.replace(/^[a-z]+:\/\/[^/]*/, '').split('?', 1)[0]!
  return path.split('/').some((segment) => {
    try {
      return decodeURIComponent(segment) === decoded
    } catch {
      return false
    }
  })
}

async function readBody(
  route: Route,
  reader: NonNullable<Prepared['body']>,
  headers: Headers,
  bytes: Uint8Array,
  ignored: string[],
): Promise<object> {
  if (bytes.length > 0) mustBeJson(headers)
  try {
    return await reader.body(bytes, ignored)
  } catch (error) {
    const { code } = error as ApiError
    const replaced = route.body_error && (code === 'INVALID_JSON' || code === 'VALIDATION_FAILED')
    throw replaced ? new ApiError(route.body_error!) : error
  }
}

function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}

/** The path as the router saw it: cursors and idempotency keys are bound to it. */
function pathOf(route: Route, params: Record<string, string>): string {
  return route.path.includes(':')
    ? route.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name]!))
    : route.path
}

function respond(result: unknown, status: number, request_id: string, ignored: string[]): Response {
  if (result instanceof Reply) {
    if (result.body === null) return empty(result.status, request_id, result.headers)
    return json(result.status, encode(result.body), request_id, result.headers, ignored)
  }
  return result === undefined
    ? empty(status, request_id, null)
    : json(status, encode(result), request_id, null, ignored)
}

type Extra = Readonly<Record<string, string>> | null

function json(status: number, text: string, request_id: string, extra: Extra, ignored: string[]): Response {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'x-request-id': request_id,
    'cache-control': 'no-store',
  }
  if (extra) Object.assign(headers, extra)
  const names = ignored.length > 0 ? ignoredNames(ignored) : ''
  if (names !== '') headers['x-ignored-fields'] = names
  return new Response(text, { status, headers })
}

function empty(status: number, request_id: string, extra: Extra): Response {
  return new Response(null, { status, headers: { 'x-request-id': request_id, ...extra } })
}

const ignored_names_max = 20

function ignoredNames(names: string[]): string {
  const shown = names.filter((name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name))
  return shown.slice(0, ignored_names_max).join(', ')
}

/** Paths with their methods, for whatever Bun's router did not match. */
type KnownPaths = { segments: string[]; allow: string }[]

function knownPaths(list: readonly Route[]): KnownPaths {
  const methods = new Map<string, Set<string>>()
  for (const { path, method } of list) {
    const known = methods.get(path) ?? new Set<string>()
    methods.set(path, known.add(method))
    if (method === 'GET') known.add('HEAD')
  }
  return [...methods].map(([path, allowed]) => ({
    segments: path.split('/'),
    allow: [...allowed, 'OPTIONS'].sort().join(', '),
  }))
}

/** 404, 405 with Allow, or the 204 of OPTIONS. */
async function serveUnrouted(
  known: KnownPaths,
  options: ServerOptions,
  request: BunRequest,
  _server: Server<undefined>,
): Promise<Response> {
  const request_id = requestId(request.headers, options.clock.now())
  const path = request.url.replace(/^[a-z]+:\/\/[^/]*/, '').split('?', 1)[0]!
  const found = known.find(({ segments }) => matches(segments, path.split('/')))
  let response: Response
  if (!found) response = failure(new ApiError('ROUTE_NOT_FOUND'), request_id, options.log, null)
  else if (request.method === 'OPTIONS') response = empty(204, request_id, { allow: found.allow })
  else {
    response = failure(new ApiError('METHOD_NOT_ALLOWED'), request_id, options.log, null)
    response.headers.set('allow', found.allow)
  }
  if (options.cors_origins.length > 0)
    corsHeaders(options.cors_origins, request.headers, response.headers, found?.allow)
  return response
}

function matches(pattern: string[], path: string[]): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((segment, i) => (segment.startsWith(':') ? path[i] !== '' : segment === path[i]))
  )
}

/** The error envelope of CORE section 2. What is no expected failure becomes INTERNAL, and goes to the log only. */
export function failure(error: unknown, request_id: string, log: Log, route: Route | null): Response {
  const known = error instanceof ApiError ? error : databaseError(error)
  if (!known)
    log.error(
      { request_id, route: route && `${route.method} ${route.path}`, error: stackOf(error) },
      'request failed',
    )
  const { code, status, message, details, retry_after_seconds } = known ?? new ApiError('INTERNAL')
  const envelope = details ? { code, message, details, request_id } : { code, message, request_id }
  const headers: Record<string, string> = {}
  if (retry_after_seconds !== undefined) headers['retry-after'] = String(retry_after_seconds)
  if (code === 'UNAUTHORIZED') headers['www-authenticate'] = 'Bearer'
  if (code === 'PAYLOAD_TOO_LARGE' || code === 'REQUEST_TIMEOUT') headers.connection = 'close'
  return json(status, JSON.stringify({ error: envelope }), request_id, headers, [])
}

const database_codes = {
  busy: 'UNAVAILABLE',
  lost: 'UNAVAILABLE',
  full: 'STORAGE_FULL',
  outcome_unknown: 'OUTCOME_UNKNOWN',
} as const satisfies Record<string, ErrorCode>

function databaseError(error: unknown): ApiError | null {
  if (!(error instanceof DbError) || error.kind === 'unique') return null
  return new ApiError(database_codes[error.kind], { retry_after_seconds: 1 })
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Only what is known to be harmless: the route's pattern, never a path, a header or a body. */
function logRequest(
  { log, clock }: ServerOptions,
  route: Route,
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
