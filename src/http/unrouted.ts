// Requests that Bun's router did not match: unknown paths, other methods, OPTIONS.

import { ApiError } from '../base/errors.ts'
import { traceparent_header, traceparentOf } from '../base/traceparent.ts'
import type { Group } from '../contract/group.ts'
import type { Method, Route } from '../contract/route.ts'
import { empty, failure } from './answers.ts'
import { corsHeaders } from './cors.ts'
import {
  type Handler,
  keepForProxy,
  type Running,
  requestId,
  requireOneHost,
  type ServerOptions,
} from './exchange.ts'
import { untilTurnEnds } from './frame.ts'
import { pathSegments } from './params.ts'
import { unreadBody } from './unread-body.ts'

/** Handlers by path and method. */
export type RoutedHandlers = Record<string, Partial<Record<Method, Handler>>>

export interface KnownPath {
  path: string
  segments: string[]
  methods: ReadonlySet<string>
  allow: string
  /** Null for a page. */
  group: Group | null
}

interface Known extends Pick<Route, 'path' | 'method'> {
  group: Group | null
}

export function knownPaths(list: readonly Known[]): KnownPath[] {
  const by_path = new Map<string, { methods: Set<string>; group: Group | null }>()
  for (const { path, method, group } of list) {
    const known = by_path.get(path) ?? { methods: new Set(['OPTIONS']), group }
    by_path.set(path, known)
    known.methods.add(method)
    if (method === 'GET') known.methods.add('HEAD')
  }
  const paths = [...by_path].map(([path, { methods, group }]) => ({
    path,
    segments: path.split('/'),
    methods,
    allow: [...methods].sort().join(', '),
    group,
  }))
  return paths.sort((one, other) => parameters(one) - parameters(other)) // /v1/dlq/claim before /v1/dlq/:id
}

/** 404, 405 with Allow, or the 204 of OPTIONS. */
export function unroutedHandler(options: Running, known: readonly KnownPath[]): Handler {
  return async (request, server) => {
    const { method, url, headers } = request
    const { drain } = options
    drain.requests += 1
    if (!server.outer) await untilTurnEnds(options)
    const found = findPath(known, url)
    const request_id = requestId(headers, options.clock.now())
    let response: Response
    try {
      requireOneHost(headers)
      if (found && method === 'OPTIONS') response = empty(204, request_id, { allow: found.allow })
      else response = refusal(found, method, request_id, options)
    } catch (error) {
      response = failure(error, request_id, options.log, null)
    }
    if (options.cors_origins.length > 0) {
      corsHeaders(options.cors_origins, headers, response.headers, found?.allow)
    }
    await unreadBody(options, request, server, response)
    if (drain.begun) response.headers.set('connection', 'close')
    keepForProxy(options, request, server)
    noteUnrouted(options, { method, headers }, request_id, response)
    return response
  }
}

/** Counts and logs a request that no route has answered. */
export function noteUnrouted(
  { measures, request_log }: ServerOptions,
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  request_id: string,
  { status }: Response,
): void {
  measures?.unrouted.answered(status, null)
  if (!request_log) return
  const traceparent = traceparentOf(headers.get(traceparent_header))
  const facts = { request_id, traceparent, method, route: 'unrouted', status }
  request_log.answered({ ...facts, ms: 0, waited: false, tenant_id: null })
}

function refusal(
  found: KnownPath | undefined,
  method: string,
  request_id: string,
  { log }: ServerOptions,
): Response {
  // A known method that was not routed came by a path such as /v1/../v1/agents, which only looks like this one.
  const code = found && !found.methods.has(method) ? 'METHOD_NOT_ALLOWED' : 'ROUTE_NOT_FOUND'
  if (!found || code === 'ROUTE_NOT_FOUND') return failure(new ApiError(code), request_id, log, null)
  const { path, group } = found
  const response = failure(new ApiError(code), request_id, log, { method, path, group })
  response.headers.set('allow', found.allow)
  return response
}

/** The path of the list that this URL names, if any. */
export function findPath(known: readonly KnownPath[], url: string): KnownPath | undefined {
  const path = pathSegments(url)
  return known.find(({ segments }) => matches(segments, path))
}

/** The group of a path, also of one that no route takes: it is that of its sibling routes. */
export function groupOf(known: readonly KnownPath[], url: string): Group | null {
  const found = findPath(known, url)
  if (found) return found.group
  const path = pathSegments(url)
  return (path.length > 2 && known.find(({ segments }) => segments[1] === path[1])?.group) || null
}

function matches(pattern: string[], path: string[]): boolean {
  const open_ended = pattern.at(-1) === '*'
  const fixed = open_ended ? pattern.slice(0, -1) : pattern
  return (
    (open_ended ? path.length > fixed.length : path.length === fixed.length) &&
    fixed.every((segment, i) => (segment.startsWith(':') ? path[i] !== '' : segment === path[i]))
  )
}

function parameters({ segments }: KnownPath): number {
  return segments.filter((segment) => segment.startsWith(':') || segment === '*').length
}
