// A request for a page, and the calls of the API that a page makes in process.

import type { BunRequest } from 'bun'
import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import type { Route } from '../contract/route.ts'
import { failure } from './answers.ts'
import { corsHeaders } from './cors.ts'
import {
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
  settle,
  untilNextTurn,
} from './exchange.ts'
import { identify } from './identify.ts'
import { type Page, withPageHeaders } from './pages.ts'
import { paramsIn } from './params.ts'
import { findPath, type KnownPath } from './unrouted.ts'

type InProcess = (
  request: Request,
  outer: NonNullable<Connection['outer']>,
  server: Connection,
) => Promise<Response>

/** Calls a route as Bun's router would, on the connection of another request. */
export function inProcess(
  routes: Record<string, Partial<Record<Route['method'], Handler>>>,
  known: readonly KnownPath[],
  unrouted: Handler,
): InProcess {
  return (request, outer, server) => {
    const found = findPath(known, request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const handler = found && routes[found.path]![method as Route['method']]
    const proxies = outer.request.headers.get('x-forwarded-for')
    if (proxies === null) request.headers.delete('x-forwarded-for')
    else request.headers.set('x-forwarded-for', proxies)
    const routed = Object.assign(request, {
      params: found ? paramsIn(found.segments, request.url) : {},
    }) as unknown as BunRequest
    return (handler ?? unrouted)(routed, {
      requestIP: () => server.requestIP(outer.request),
      timeout: (_, seconds) => server.timeout(outer.request, seconds),
      pendingRequests: 0,
      outer,
    })
  }
}

const pages_a_turn_max = limit(
  'http.pages_a_turn',
  4,
  'requests',
  'Calls of MCP that begin in one turn of the event loop; the others wait for another.',
)

/** For pages that take long. */
const page_turns = new Turns(pages_a_turn_max)
const no_bytes = new Uint8Array(0)

export async function servePage(
  page: Page,
  options: Running,
  api: InProcess,
  request: BunRequest,
  server: Connection,
): Promise<Response> {
  const now = options.clock.now()
  const request_id = requestId(request.headers, now)
  const failing = { method: request.method, path: page.path }
  const asking = newAsking()
  const address = () => addressOf(options, request, server)
  let response: Response
  try {
    requireRoom(options, request, server, asking)
    requireOneHost(request.headers)
    if (request.method === 'POST') asking.upload = newUpload(options, request, server)
    const waiting = options.turn_budget.enter()
    if (waiting) await untilNextTurn(waiting, request)
    const answered = await page.answer(request, {
      request_id,
      mustBe: async (kinds, headers) =>
        identify(asking, { path: page.path, auth: kinds }, options, headers, address, now),
      bytes: async () => (await asking.upload?.read(asking.caller?.tenant_id ?? null)) ?? no_bytes,
      api: (inner) => api(inner, { request, asking }, server),
      turn: () => page_turns.next(),
      hold: (ms) => hold(asking, request, server, ms),
    })
    withPageHeaders(answered, request_id)
    response = responseOf(answered, options, request, server, asking, failing, request_id)
  } catch (error) {
    asking.permit?.release()
    response = failure(error, request_id, options.log, failing)
    withPageHeaders(response, request_id)
  }
  settle(asking, request, server)
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.log_requests) logRequest(options, failing, request, response, now, request_id)
  return response
}
