// Calls of the API that a page makes in process.

import type { BunRequest } from 'bun'
import type { Connection, Exchange, Handler } from './exchange.ts'
import { paramsIn, pathSegments } from './params.ts'
import { findPath, type KnownPath, type RoutedHandlers } from './unrouted.ts'

/** Where the API is for calls without a connection: nothing is ever looked up under this name. */
export const in_process = 'http://in.process'

/**
 * The path of a request as a URL that can be parsed. That of the request may be a bare path, when it has no usable Host, or
 * have a Host that no URL has.
 */
export function localUrl({ url }: Pick<Request, 'url'>): string {
  return in_process + pathSegments(url).join('/')
}

export type InProcess = (request: Request, outer: Exchange) => Promise<Response>

/** Calls a route as Bun's router would, on the connection of another request. */
export function inProcess(routes: RoutedHandlers, known: readonly KnownPath[], unrouted: Handler): InProcess {
  const answer = routed(routes, known, unrouted)
  return (request, outer) => {
    const { server } = outer
    const proxies = outer.request.headers.get('x-forwarded-for')
    if (proxies === null) request.headers.delete('x-forwarded-for')
    else request.headers.set('x-forwarded-for', proxies)
    return answer(request, {
      requestIP: () => server.requestIP(outer.request),
      timeout: (_, seconds) => server.timeout(outer.request, seconds),
      pendingRequests: 0,
      outer,
    })
  }
}

/** Hands a request to its handler as Bun's router would. */
export function routed(
  routes: RoutedHandlers,
  known: readonly KnownPath[],
  unrouted: Handler,
): (request: Request, server: Connection) => Promise<Response> {
  return (request, server) => {
    const found = findPath(known, request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const handler = found && routes[found.path]![method as keyof RoutedHandlers[string]]
    const asked = Object.assign(request, {
      params: found ? paramsIn(found.segments, request.url) : {},
    }) as unknown as BunRequest
    return (handler ?? unrouted)(asked, server)
  }
}
