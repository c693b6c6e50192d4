// The frame around every request, of a route or of a page: whatever happens, there is one response, and
// everything that was held for the request is released.

import { nextTurn } from '../base/next-turn.ts'
import type { Span, Tracer } from '../base/tracer.ts'
import type { Method, Route } from '../contract/route.ts'
import { clientKey } from './address.ts'
import { type Failing, failed, failure } from './answers.ts'
import { corsHeaders } from './cors.ts'
import { type Exchange, type Running, requireOneHost } from './exchange.ts'
import type { RouteMeasures } from './measures.ts'
import { isWhole, LargeAnswer, type Outgoing, outgoing, undivided } from './outgoing.ts'
import { unreadBody } from './unread-body.ts'

/** A route or a page, as the frame sees it. */
export interface Served extends Failing {
  method: Method
  /** Absent for a page. */
  shed?: Route['shed']
  /** Null: it is not counted. */
  measures: RouteMeasures | null
  answer(exchange: Exchange): Promise<Outgoing>
  /** Called with every response, also that of a failure. */
  finish(exchange: Exchange, response: Response): void
}

export async function respond(served: Served, exchange: Exchange): Promise<Response> {
  const { options, request } = exchange
  if (options.timed) exchange.began = options.clock.monotonic()
  if (options.tracer) startSpan(options.tracer, served, exchange)
  options.drain.requests += 1
  let response: Response
  let takes_no_turn = served.shed === 'never'
  try {
    if (served.shed !== 'never') exchange.requireRoom(served.shed)
    requireOneHost(request.headers)
    response = responseOf(served, exchange, await served.answer(exchange))
  } catch (error) {
    takes_no_turn = true
    exchange.permit?.release()
    exchange.permit = null
    response = refusalOf(served, exchange, error)
    options.measures?.failed(error)
  }
  if (takes_no_turn && !exchange.server.outer) await untilTurnEnds(options)
  const unread = unreadBody(options, request, exchange.server, response)
  if (unread) {
    exchange.upload?.release()
    await unread
  }
  exchange.settle()
  served.finish(exchange, response)
  if (options.cors_origins.length > 0) corsHeaders(options.cors_origins, request.headers, response.headers)
  if (options.drain.begun) response.headers.set('connection', 'close')
  if (options.log_requests) logRequest(served, exchange, response)
  if (exchange.span) endSpan(exchange.span, exchange, response)
  if (options.timed) noteAnswer(served, exchange, response)
  return response
}

/**
 * Waits for the next turn of the event loop when this one has lasted long. Bun begins the requests that a client has sent ahead one
 * after the other for as long as each is answered at once, and closes the connection at the first that is not.
 */
export async function untilTurnEnds({ turn_budget }: Running): Promise<void> {
  if (!turn_budget.begin()) await nextTurn()
}

/** A large one that has no room is refused in its turn, in a few words. */
function refusalOf(served: Served, exchange: Exchange, error: unknown): Response {
  const { request_id, options } = exchange
  const { status, headers, text } = failed(error, request_id, options.log, served)
  try {
    return responseOf(served, exchange, outgoing(status, headers, text))
  } catch (no_room) {
    return failure(no_room, request_id, options.log, served)
  }
}

/** The response for Bun. Throws UNAVAILABLE when a large answer has no room. */
export function responseOf(failing: Failing, exchange: Exchange, answered: Outgoing): Response {
  const { outer } = exchange.server
  if (outer) {
    // The outer request sends the result, and may have needed more than one.
    if (exchange.permit) {
      outer.permit?.release()
      outer.permit = exchange.permit
      exchange.permit.releaseSoon()
    }
    return answered instanceof LargeAnswer ? undivided(answered) : answered
  }
  if (answered instanceof LargeAnswer) return sent(failing, exchange, answered)
  exchange.permit?.release()
  return answered
}

function sent(failing: Failing, exchange: Exchange, answered: LargeAnswer): Response {
  const { options, request, server, caller, request_id } = exchange
  exchange.permit?.releaseSoon()
  exchange.is_in_pieces = true
  exchange.is_being_made = !isWhole(answered.body)
  return options.deliveries.send(answered, {
    request,
    address: clientKey(exchange.address),
    tenant_id: caller?.tenant_id ?? null,
    closeAfter: (seconds) => server.timeout(request, seconds),
    onBroken: (error) => void failure(error, request_id, options.log, failing),
    onEnd: () => {
      exchange.permit?.release()
      exchange.is_in_pieces = false
      exchange.keep()
    },
  })
}

/** A call in process belongs to the request that makes it. */
function startSpan(tracer: Tracer, { method, path }: Failing, exchange: Exchange): void {
  if (exchange.server.outer) return
  exchange.span = tracer.start({
    ...{ kind: 'server', name: `${method} ${path}`, parent: exchange.traceparent },
    attributes: {
      'http.request.method': exchange.request.method,
      'http.route': path,
      'waystation.request_id': exchange.request_id,
    },
  })
}

function endSpan(span: Span, { caller }: Exchange, { status }: Response): void {
  const of_tenant = caller ? { 'waystation.tenant_id': caller.tenant_id } : {}
  span.end({ 'http.response.status_code': status, ...of_tenant }, status >= 500)
}

/** Counts it, and logs it where that is wanted. A call in process is part of another request. */
function noteAnswer({ measures, path }: Served, exchange: Exchange, { status }: Response): void {
  const { options, has_waited } = exchange
  if (exchange.server.outer) return
  const ms = options.clock.monotonic() - exchange.began
  if (measures) measures.answered(status, has_waited ? null : ms)
  if (!options.request_log) return
  const { request_id, traceparent, request, caller } = exchange
  const facts = { request_id, traceparent, method: request.method, route: path, status }
  options.request_log.answered({ ...facts, ms, waited: has_waited, tenant_id: caller?.tenant_id ?? null })
}

/** Logs only what is known to be harmless: the route's pattern, never a path, a header or a body. */
function logRequest({ path }: Failing, exchange: Exchange, { status }: Response): void {
  const { options, request, request_id, now } = exchange
  const duration_ms = options.clock.now() - now
  options.log.debug({ request_id, method: request.method, route: path, status, duration_ms }, 'request')
}
