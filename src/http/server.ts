// A request, top to bottom.

import type { BunRequest, Server } from 'bun'
import type { Clock } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Caller } from '../contract/caller.ts'
import { encode } from '../contract/encode.ts'
import { type Context, type Input, type RawRequest, type Route, successStatus } from '../contract/route.ts'
import type { Services } from '../contract/services.ts'
import { dataText, isApi } from '../contract/surface.ts'
import type { Db } from '../db/db.ts'
import { clientAddress, type Range } from './address.ts'
import { type Failing, failure, json, type Log, respond } from './answers.ts'
import { authenticate, mustBeAllowed, mustBeCron } from './auth.ts'
import { mustBeJson, Reader } from './body.ts'
import { ConnectedDb } from './connected.ts'
import { corsHeaders } from './cors.ts'
import { type Answer, claimOf, isAnswered, once } from './idempotency.ts'
import type { AddressLimit } from './limits.ts'
import { type Page, withPageHeaders } from './pages.ts'
import { type ParamList, paramsIn, pathOf, readParams } from './params.ts'
import { answerUnrouted, findPath, type KnownPath, knownPaths } from './unrouted.ts'
import { Upload } from './upload.ts'

export interface ServerOptions {
  db: Db
  clock: Clock
  services: Services
  log: Log
  /** Every request is logged; costs time, so only at level debug. */
  log_requests: boolean
  trusted_proxies: readonly Range[]
  cors_origins: readonly string[]
  cron_secret: string
  /** Null while everything is loopback. */
  limits: { sign_ups: AddressLimit; failed_keys: AddressLimit } | null
}

const methods: readonly Route['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** What a handler needs of Bun's server. */
interface Connection extends Pick<Server<undefined>, 'requestIP' | 'timeout'> {
  /** The request that came on the connection, when another is answered in process for it. */
  outer?: Request
}
type Handler = (request: BunRequest, server: Connection) => Promise<Response>

/** Everything that a route needs more than once, made ready before the first request. */
interface Prepared {
  route: Route
  params: ParamList
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

export function requestHandlers(
  list: readonly Route[],
  options: ServerOptions,
  pages: readonly Page[] = [],
): RequestHandlers {
  const prepared = list.map(prepare)
  const routes: RequestHandlers['routes'] = {}
  const add = (path: string, method: Route['method'], handler: Handler) => {
    routes[path] ??= {}
    routes[path][method] = handler
  }
  for (const item of prepared) {
    add(item.route.path, item.route.method, (request, server) => serve(item, options, request, server))
  }
  const pages_methods = pages.flatMap(({ path, methods }) => methods.map((method) => ({ path, method })))
  const known = knownPaths([...list, ...pages_methods])
  const unrouted: Handler = (request) => serveUnrouted(known, options, request)
  const api = inProcess(routes, knownPaths(list), unrouted)
  for (const page of pages) {
    const handler: Handler = (request, server) => servePage(page, options, api, request, server)
    for (const method of page.methods) add(page.path, method, handler)
  }
  // Otherwise Bun takes GET /v1/dlq/claim for GET /v1/dlq/:id.
  for (const [path, handlers] of Object.entries(routes)) {
    if (!path.includes(':')) for (const method of methods) handlers[method] ??= unrouted
  }
  return {
    routes,
    fetch: unrouted,
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

type InProcess = (request: Request, outer: Request, server: Connection) => Promise<Response>

/** Calls a route as Bun's router would, on the connection of another request. */
function inProcess(
  routes: RequestHandlers['routes'],
  known: readonly KnownPath[],
  unrouted: Handler,
): InProcess {
  return (request, outer, server) => {
    const found = findPath(known, request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const handler = found && routes[found.path]![method as Route['method']]
    const proxies = outer.headers.get('x-forwarded-for')
    if (proxies === null) request.headers.delete('x-forwarded-for')
    else request.headers.set('x-forwarded-for', proxies)
    const routed = Object.assign(request, {
      params: found ? paramsIn(found.segments, request.url) : {},
    }) as unknown as BunRequest
    return (handler ?? unrouted)(routed, {
      requestIP: () => server.requestIP(outer),
      timeout: (_, seconds) => server.timeout(outer, seconds),
      outer,
    })
  }
}

async function servePage(
  page: Page,
  options: ServerOptions,
  api: InProcess,
  request: BunRequest,
  server: Connection,
): Promise<Response> {
  const now = options.clock.now()
  const request_id = requestId(request.headers, now)
  const failing = { method: request.method, path: page.path }
  const asking: Asking = { caller: null, upload: null, held: false }
  const address = () => addressOf(options, request, server)
  let response: Response
  try {
    mustHaveOneHost(request.headers)
    if (request.method === 'POST') asking.upload = new Upload(request, options.services.memory, address)
    response = await page.answer(request, {
      request_id,
      mustBe: (kinds, headers) =>
        identify(asking, { path: page.path, auth: kinds }, options, headers, address, now),
      bytes: async () => (await asking.upload?.read(asking.caller?.tenant_id ?? null)) ?? no_bytes,
      api: (inner) => api(inner, request, server),
      hold: (ms) => hold(asking, request, server, ms),
    })
  } catch (error) {
    response = failure(error, request_id, options.log, failing)
  }
  settle(asking, request, server)
  withPageHeaders(response, request_id)
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.log_requests) logRequest(options, failing, request, response, now, request_id)
  return response
}

async function serve(
  prepared: Prepared,
  options: ServerOptions,
  request: BunRequest,
  server: Connection,
): Promise<Response> {
  const now = options.clock.now()
  const request_id = requestId(request.headers, now)
  const asking: Asking = { caller: null, upload: null, held: false }
  let response: Response
  try {
    response = await answer(prepared, options, request, server, now, request_id, asking)
  } catch (error) {
    response = failure(error, request_id, options.log, prepared.route)
  }
  settle(asking, request, server)
  if (asking.caller && isUsage(asking.caller, request)) {
    const failed = response.status >= 400
    options.services.usage.count(asking.caller.tenant_id, prepared.route.path, failed, now)
  }
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.log_requests) logRequest(options, prepared.route, request, response, now, request_id)
  return response
}

/** What is known of a request so far: also when what follows fails. */
interface Asking {
  /** Who asks. */
  caller: Caller | null
  /** The memory that its body takes. */
  upload: Upload | null
  /** The connection may be idle for longer than usual until the answer is there. */
  held: boolean
}

/** Whoever looks at usage with the admin key would otherwise see mostly that. */
function isUsage(caller: Caller, request: Request): boolean {
  return caller.kind !== 'admin' || (request.method !== 'GET' && request.method !== 'HEAD')
}

async function answer(
  { route, params: param_list, query, body, status }: Prepared,
  options: ServerOptions,
  request: BunRequest,
  server: Connection,
  now: number,
  request_id: string,
  asking: Asking,
): Promise<Response> {
  const { services } = options
  const { headers } = request
  mustHaveOneHost(headers)

  const addressHere = () => addressOf(options, request, server)

  // Who asks.
  if (body || route.raw) asking.upload = new Upload(request, services.memory, addressHere)
  let address = ''
  if (route.auth.length > 0) await identify(asking, route, options, headers, addressHere, now)
  const { caller } = asking
  if (caller && isApi(route.path)) await services.calls.take(caller, services.plans, now)
  if (route.cron) mustBeCron(headers, options.cron_secret)
  if (route.sign_up) {
    if (!services.signup_open) throw new ApiError('FORBIDDEN')
    address = addressHere()
  }

  // What is asked.
  const params = param_list.length === 0 ? no_params : readParams(param_list, request)
  const ignored: string[] = []
  let bytes: Uint8Array = no_bytes
  let body_value: object = no_body
  if (body) {
    bytes = await asking.upload!.read(caller?.tenant_id ?? null)
    body_value = await readBody(route, body, headers, bytes, ignored)
  }
  const query_value = query ? await query.query(queryOf(request.url)) : no_query
  const input: Input<never, never, never> = {
    params: params as never,
    query: query_value as never,
    body: body_value as never,
    header: (name) => headers.get(name),
  }
  const connection = server.outer ?? request
  // A message is kept although its sender has left, but not one of which it is not known that it came whole.
  const db = route.raw && headers.has('content-length') ? options.db : new ConnectedDb(options.db, connection)
  const context: Context<never> = {
    db,
    caller: caller as never,
    services,
    now,
    request_id,
    path: () => pathOf(route, params),
    hold: (ms) => hold(asking, request, server, ms),
    gone: () => request.signal,
  }

  // What comes of it.
  if (!route.create) {
    const raw = route.raw
      ? await rawOf(
          options,
          request,
          server,
          asking.upload!,
          await route.admit?.(db, params, asking.upload!.is_large),
        )
      : no_raw
    return respond(route.path, await route.handle!(context, input, raw), status, request_id, ignored)
  }
  const key = headers.get('idempotency-key')
  const claim =
    key === null ? null : claimOf(key, caller, address, `${route.method} ${context.path()}`, bytes)
  // What has to be found out counts for a new effect only: a repeat is answered as the first was.
  const repeated = route.prepare && claim ? await isAnswered(db, claim, now) : false
  const ready = repeated ? undefined : await route.prepare?.(context, input)
  const admission = route.sign_up && options.limits ? new Admission(options.limits.sign_ups, address) : null
  try {
    const created = await db.write<Answer>(async (tx) => {
      const effect = async () => {
        admission?.take()
        const made = encode(await route.create!(tx, context, input, ready))
        return { status, text: dataText(route.path, status, made) }
      }
      return claim ? once(tx, claim, effect) : { ...(await effect()), replayed: false }
    })
    return json(created.status, created.text, request_id, created.replayed ? replayed : null, ignored)
  } catch (error) {
    admission?.giveBack()
    throw error
  }
}

/** Bun closes a connection that is idle, or slow, this long. */
export const idle_timeout_seconds = 10
/** A held answer gets this much on top of its time. */
const hold_margin_seconds = 10

function hold(asking: Asking, request: Request, server: Connection, ms: number): void {
  asking.held = true
  server.timeout(request, Math.ceil(ms / 1_000) + hold_margin_seconds)
}

/** The answer is there, maybe long before the connection's time is over. */
function settle({ upload, held }: Asking, request: Request, server: Connection): void {
  upload?.release()
  if (held) server.timeout(request, idle_timeout_seconds)
}

const no_params: Record<string, string> = {}
const no_query = {}
const no_body = {}
const no_bytes = new Uint8Array(0)
const no_raw = null as never
const replayed = { 'idempotent-replayed': 'true' }

/** Bun joins what was sent twice, and takes the first for the host (RFC 9112 section 3.2: a server refuses that). */
function mustHaveOneHost(headers: Headers): void {
  if (headers.get('host')?.includes(', '))
    throw invalid({ path: 'header.Host', message: 'was sent more than once' })
}

const request_id_form = /^[A-Za-z0-9_.-]{8,64}$/

/** A caller's own id is kept when it is harmless. */
function requestId(headers: Headers, now: number): string {
  const sent = headers.get('x-request-id')
  return sent !== null && request_id_form.test(sent) ? sent : newId('req', now)
}

/** Throws UNAUTHORIZED, or RATE_LIMITED past the failed keys of this address; then what the kind of key decides. */
async function identify(
  asking: Asking,
  route: Pick<Route, 'path' | 'auth' | 'while_pending_deletion'>,
  options: ServerOptions,
  headers: Headers,
  address: () => string,
  now: number,
): Promise<void> {
  const surface = isApi(route.path) ? 'api' : 'v1'
  const found = await authenticate(options.db, options.services.key_cache, headers, now, surface)
  if (typeof found !== 'string') {
    asking.caller = found
    mustBeAllowed(found, route)
    return
  }
  if (found === 'bad_key' && options.limits) {
    mustHaveLeft(options.limits.failed_keys, address())
  }
  throw new ApiError('UNAUTHORIZED')
}

function mustHaveLeft(limit: AddressLimit, address: string): void {
  if (limit.take(address)) return
  throw new ApiError('RATE_LIMITED', { retry_after_seconds: limit.retryAfter(address) })
}

/** One sign-up: counted once before its effect, however often the driver runs it, and not at all when it fails. */
class Admission {
  #taken = false

  constructor(
    private readonly limit: AddressLimit,
    private readonly address: string,
  ) {}

  take(): void {
    if (!this.#taken) mustHaveLeft(this.limit, this.address)
    this.#taken = true
  }

  giveBack(): void {
    if (this.#taken) this.limit.giveBack(this.address)
    this.#taken = false
  }
}

function addressOf(options: ServerOptions, request: BunRequest, server: Connection): string {
  const peer = server.requestIP(request)?.address ?? 'unknown'
  return clientAddress(peer, request.headers.get('x-forwarded-for'), options.trusted_proxies)
}

/** Bun hands no body of a GET on: rather than to lose it, nothing is taken. */
function mustHaveNoBody(headers: Headers): void {
  const name = headers.has('transfer-encoding') ? 'Transfer-Encoding' : 'Content-Length'
  if (!headers.has('transfer-encoding') && Number(headers.get('content-length') ?? 0) === 0) return
  throw invalid({ path: `header.${name}`, message: 'announces a body, which a GET cannot have here' })
}

async function rawOf(
  options: ServerOptions,
  request: BunRequest,
  server: Connection,
  upload: Upload,
  tenant_id: string | null | undefined,
): Promise<RawRequest> {
  if (request.method === 'GET') mustHaveNoBody(request.headers)
  return {
    method: request.method,
    headers: request.headers,
    bytes: await upload.read(tenant_id ?? null),
    url: request.url,
    address: addressOf(options, request, server),
  }
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

async function serveUnrouted(
  known: readonly KnownPath[],
  options: ServerOptions,
  request: BunRequest,
): Promise<Response> {
  const request_id = requestId(request.headers, options.clock.now())
  const found = findPath(known, request.url)
  let response: Response
  try {
    mustHaveOneHost(request.headers)
    response = answerUnrouted(found, request.method, request_id, options.log)
  } catch (error) {
    response = failure(error, request_id, options.log, null)
  }
  if (options.cors_origins.length > 0) {
    corsHeaders(options.cors_origins, request.headers, response.headers, found?.allow)
  }
  return response
}

/** Only what is known to be harmless: the route's pattern, never a path, a header or a body. */
function logRequest(
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
