// A request, top to bottom.

import type { BunRequest } from 'bun'
import { ApiError, invalid } from '../base/errors.ts'
import { TurnBudget } from '../base/event-loop.ts'
import type { Caller } from '../contract/caller.ts'
import { encode } from '../contract/encode.ts'
import { type Context, type Input, type RawRequest, type Route, successStatus } from '../contract/route.ts'
import { dataText, isApi } from '../contract/surface.ts'
import { type Answer, claimOf, isAnswered, once } from '../idempotency/service.ts'
import { failure, json, respond } from './answers.ts'
import { mustBeCron } from './auth.ts'
import { mustBeJson, Reader } from './body.ts'
import { ConnectedDb } from './connected.ts'
import { corsHeaders } from './cors.ts'
import {
  type Asking,
  addressOf,
  type Connection,
  type Handler,
  hold,
  logRequest,
  newAsking,
  newUpload,
  type Running,
  requestId,
  requireOneHost,
  requireRoom,
  responseOf,
  type ServerOptions,
  settle,
  untilNextTurn,
} from './exchange.ts'
import { readHeavy } from './heavy.ts'
import { forKnownHosts } from './host.ts'
import { Admission, identify } from './identify.ts'
import { IgnoredNames } from './ignored.ts'
import { mustBeAllowedOrigin } from './origin.ts'
import type { Outgoing } from './outgoing.ts'
import { inProcess, servePage } from './page-requests.ts'
import type { Page } from './pages.ts'
import { type ParamList, pathOf, readParams } from './params.ts'
import { RequestsUnderWay } from './under-way.ts'
import { answerUnrouted, findPath, type KnownPath, knownPaths } from './unrouted.ts'
import type { Upload } from './upload.ts'

const methods: readonly Route['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Everything that a route needs more than once, made ready before the first request. */
interface Prepared {
  route: Route
  params: ParamList
  query: Reader<NonNullable<Route['query']>> | null
  body: Reader<NonNullable<Route['body']>> | null
  status: number
  /** It changes something and asks for no key: then the page that makes a browser send it must be one of ours. */
  judges_origin: boolean
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
  given: ServerOptions,
  pages: readonly Page[] = [],
): RequestHandlers {
  const options: Running = {
    ...given,
    turn_budget: new TurnBudget(given.clock),
    under_way: new RequestsUnderWay(),
  }
  const prepared = list.map(prepare)
  const routes: RequestHandlers['routes'] = {}
  const add = (path: string, method: Route['method'], handler: Handler) => {
    routes[path] ??= {}
    routes[path][method] = forKnownHosts(options, path, handler)
  }
  for (const item of prepared) {
    add(item.route.path, item.route.method, (request, server) => serve(item, options, request, server))
  }
  const pages_methods = pages.flatMap(({ path, methods }) => methods.map((method) => ({ path, method })))
  const known = knownPaths([...list, ...pages_methods])
  const unrouted: Handler = (request) => serveUnrouted(known, options, request)
  const fetch = forKnownHosts(options, null, unrouted)
  const api = inProcess(routes, knownPaths(list), unrouted)
  for (const page of pages) {
    const handler: Handler = (request, server) => servePage(page, options, api, request, server)
    for (const method of page.methods) add(page.path, method, handler)
  }
  // Otherwise Bun takes GET /v1/dlq/claim for GET /v1/dlq/:id.
  for (const [path, handlers] of Object.entries(routes)) {
    if (!path.includes(':')) for (const method of methods) handlers[method] ??= fetch
  }
  return {
    routes,
    fetch,
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
    judges_origin: route.method !== 'GET' && route.auth.length === 0 && !route.cron && !route.raw,
  }
}

async function serve(
  prepared: Prepared,
  options: Running,
  request: BunRequest,
  server: Connection,
): Promise<Response> {
  const now = options.clock.now()
  const request_id = requestId(request.headers, now)
  const asking = newAsking()
  let response: Response
  try {
    requireRoom(options, request, server, asking)
    const answered = await answer(prepared, options, request, server, now, request_id, asking)
    response = responseOf(answered, options, request, server, asking, prepared.route, request_id)
  } catch (error) {
    asking.permit?.release()
    response = failure(error, request_id, options.log, prepared.route)
  }
  settle(asking, request, server)
  if (asking.caller && isUsage(asking.caller, request)) {
    const failed = response.status >= 400
    options.dependencies.counts.usage.count(asking.caller.tenant_id, prepared.route.path, failed, now)
  }
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.log_requests) logRequest(options, prepared.route, request, response, now, request_id)
  return response
}

/** Whoever looks at usage with the admin key would otherwise see mostly that. */
function isUsage(caller: Caller, request: Request): boolean {
  return caller.kind !== 'admin' || (request.method !== 'GET' && request.method !== 'HEAD')
}

async function answer(
  { route, params: param_list, query, body, status, judges_origin }: Prepared,
  options: Running,
  request: BunRequest,
  server: Connection,
  now: number,
  request_id: string,
  asking: Asking,
): Promise<Outgoing> {
  const { dependencies } = options
  const { headers } = request
  requireOneHost(headers)

  const addressHere = () => addressOf(options, request, server)

  // Who asks.
  if (body || route.raw) asking.upload = newUpload(options, request, server)
  let address = ''
  if (route.auth.length > 0) await identify(asking, route, options, headers, addressHere, now)
  const { caller } = asking
  if (caller && isApi(route.path)) await dependencies.counts.calls.take(caller, dependencies.plans, now)
  if (route.cron) mustBeCron(headers, options.cron_secret)
  if (judges_origin) mustBeAllowedOrigin(headers, dependencies.urls.public_url, options.cors_origins)
  if (route.sign_up) {
    if (!dependencies.service.signup_open) throw new ApiError('FORBIDDEN')
    address = addressHere()
  }

  // What is asked.
  const params = param_list.length === 0 ? no_params : readParams(param_list, request)
  const ignored = body ? new IgnoredNames() : null
  let bytes: Uint8Array = no_bytes
  let body_value: object = no_body
  if (body) bytes = await asking.upload!.read(caller?.tenant_id ?? null)
  const waiting = server.outer ? null : options.turn_budget.enter()
  if (waiting) await untilNextTurn(waiting, request)
  if (body) body_value = await readBody(route, body, headers, bytes, ignored!)
  const query_value = query ? await query.query(queryOf(request.url)) : no_query
  const input: Input<never, never, never> = {
    params: params as never,
    query: query_value as never,
    body: body_value as never,
    header: (name) => headers.get(name),
  }
  const connection = server.outer?.request ?? request
  // A GET is safe to repeat. A message is kept although its sender has left, once its length says that it came whole.
  const outlives_client = route.method === 'GET' || (route.raw && headers.has('content-length'))
  const db = outlives_client ? options.db : new ConnectedDb(options.db, connection)
  const context: Context<never> = {
    db,
    caller: caller as never,
    dependencies,
    now,
    request_id,
    path: () => pathOf(route, params),
    hold: (ms) => hold(asking, request, server, ms),
    gone: () => request.signal,
    pause: (waiting) => waiting,
  }

  // What comes of it.
  if (!route.create) {
    const raw = route.raw
      ? await rawOf(route, context, options, request, server, params, asking.upload!)
      : no_raw
    const result =
      route.heavy && caller
        ? await readHeavy(route, options.heavy_reads, asking, context, input, connection)
        : await route.handle!(context, input, raw)
    return respond(route.path, result, status, request_id, ignored)
  }
  const key = headers.get('idempotency-key')
  const claim =
    key === null ? null : claimOf(key, caller, address, `${route.method} ${context.path()}`, bytes)
  // What has to be found out counts for a new effect only: a repeat is answered as the first was.
  const repeated = route.prepare && claim ? await isAnswered(db, claim, now) : false
  const ready = repeated ? undefined : await route.prepare?.(context, input)
  const admission = route.sign_up && options.limits ? new Admission(options.limits.sign_ups, address) : null
  try {
    const turn = {
      key: caller?.tenant_id ?? 'sign-up',
      ...(route.row === undefined ? {} : { row: route.row }),
    }
    const created = await db.write<Answer>(turn, async (tx) => {
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

const no_params: Record<string, string> = {}
const no_query = {}
const no_body = {}
const no_bytes = new Uint8Array(0)
const no_raw = null as never
const replayed = { 'idempotent-replayed': 'true' }

/** Bun hands no body of a GET on: rather than to lose it, nothing is taken. */
function mustHaveNoBody(headers: Headers): void {
  const name = headers.has('transfer-encoding') ? 'Transfer-Encoding' : 'Content-Length'
  if (!headers.has('transfer-encoding') && Number(headers.get('content-length') ?? 0) === 0) return
  throw invalid({ path: `header.${name}`, message: 'announces a body, which a GET cannot have here' })
}

async function rawOf(
  route: Route,
  { db }: Context<never>,
  options: ServerOptions,
  request: BunRequest,
  server: Connection,
  params: Record<string, string>,
  upload: Upload,
): Promise<RawRequest> {
  if (request.method === 'GET') mustHaveNoBody(request.headers)
  const tenant_id = (await route.admit?.(db, params, upload.is_large)) ?? null
  return {
    method: request.method,
    headers: request.headers,
    bytes: await upload.read(tenant_id),
    url: request.url,
    address: addressOf(options, request, server),
  }
}

async function readBody(
  route: Route,
  reader: NonNullable<Prepared['body']>,
  headers: Headers,
  bytes: Uint8Array,
  ignored: IgnoredNames,
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
    requireOneHost(request.headers)
    response = answerUnrouted(found, request.method, request_id, options.log)
  } catch (error) {
    response = failure(error, request_id, options.log, null)
  }
  if (options.cors_origins.length > 0) {
    corsHeaders(options.cors_origins, request.headers, response.headers, found?.allow)
  }
  return response
}
