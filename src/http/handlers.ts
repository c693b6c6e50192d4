// Every route and page as handlers for Bun.

import { TurnBudget } from '../base/event-loop.ts'
import { FairTurns } from '../base/fair-turns.ts'
import { Places } from '../base/places.ts'
import type { NamedRoute } from '../contract/feature.ts'
import type { Group } from '../contract/group.ts'
import type { Method } from '../contract/route.ts'
import { Exchange, type Handler, type Running, type ServerOptions } from './exchange.ts'
import { respond, type Served } from './frame.ts'
import { forKnownHosts } from './host.ts'
import { inProcess } from './internal-calls.ts'
import type { RouteMeasures } from './measures.ts'
import { pages_a_turn_max, servedPage } from './page-requests.ts'
import type { Page } from './pages.ts'
import { type Prepared, prepare } from './prepared.ts'
import { answer } from './server.ts'
import { KeyChecks } from './still-allowed.ts'
import { groupOf, knownPaths, type RoutedHandlers, unroutedHandler } from './unrouted.ts'
import { UrgentLookUps } from './urgent-look-ups.ts'

const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export interface RequestHandlers {
  /** For `Bun.serve({ routes })`. */
  routes: RoutedHandlers
  /** For `Bun.serve({ fetch })`: unknown paths, other methods, OPTIONS. */
  fetch: Handler
  /** Compiles every schema, so that no request waits for it. */
  warmUp(): Promise<void>
}

export function requestHandlers(
  named: readonly NamedRoute[],
  given: ServerOptions,
  pages: readonly Page[] = [],
): RequestHandlers {
  const list = named.flatMap(withAliases)
  const options: Running = {
    ...given,
    timed: Boolean(given.measures ?? given.request_log),
    turn_budget: new TurnBudget(given.clock),
    page_turns: new FairTurns(given.clock, pages_a_turn_max),
    under_way: new Places(),
    look_ups: new UrgentLookUps(given.clock),
    key_checks: new KeyChecks(given),
  }
  const prepared = list.map(({ route }) => prepare(route, given.dependencies.service))
  const routes: RoutedHandlers = {}
  const add = (served: Served) => {
    const { path, method, group } = served
    const handler: Handler = (request, server) => respond(served, new Exchange(options, request, server))
    routes[path] ??= {}
    routes[path][method] = group?.any_host ? handler : forKnownHosts(options, path, () => group, handler)
  }
  const measured = (method: Method, path: string) => options.measures?.route(method, path) ?? null
  for (const [i, { route, usage }] of list.entries())
    add(servedRoute(prepared[i]!, usage ?? null, measured(route.method, route.path)))

  const own = list.map(({ route }) => route)
  const known = knownPaths([...own, ...pages.filter(({ unlisted }) => !unlisted).flatMap(methodsOf)])
  const unrouted = unroutedHandler(options, known)
  const api = inProcess(routes, knownPaths(own), unrouted)
  for (const page of pages) {
    for (const method of page.methods)
      add(servedPage(page, method, { api, measures: measured(method, page.path) }))
  }

  const fetch = forKnownHosts(options, 'unrouted', (url) => groupOf(known, url), unrouted)
  // Otherwise Bun takes GET /v1/dlq/claim for GET /v1/dlq/:id.
  for (const [path, handlers] of Object.entries(routes)) {
    if (!path.includes(':')) for (const method of methods) handlers[method] ??= fetch
  }
  return { routes, fetch, warmUp: () => warmUp(prepared) }
}

function withAliases(named: NamedRoute): NamedRoute[] {
  const { aliases = [] } = named.route
  return [named, ...aliases.map((path) => ({ ...named, route: { ...named.route, path } }))]
}

/** `usage`: the name under which its calls are counted. */
function servedRoute(prepared: Prepared, usage: string | null, measures: RouteMeasures | null): Served {
  const { method, path, group, shed } = prepared.route
  return {
    method,
    path,
    group,
    shed,
    measures,
    answer: (exchange) => answer(prepared, exchange),
    finish: (exchange, response) => {
      if (usage !== null && isCounted(exchange)) count(exchange, usage, response)
    },
  }
}

/** Calls that read the usage are not counted: an admin who looks at it would otherwise see mostly them. */
function isCounted({ caller, request: { method } }: Exchange): boolean {
  return caller !== null && (caller.kind !== 'admin' || (method !== 'GET' && method !== 'HEAD'))
}

function count({ options, caller, now }: Exchange, usage: string, { status }: Response): void {
  options.dependencies.counts.usage.count(caller!.tenant_id, usage, status >= 400, now)
}

function methodsOf({ path, methods }: Page): { path: string; method: Method; group: Group | null }[] {
  return methods.map((method) => ({ path, method, group: null }))
}

async function warmUp(prepared: readonly Prepared[]): Promise<void> {
  for (const { query, body } of prepared) {
    await query?.prepare()
    await body?.prepare()
  }
}
