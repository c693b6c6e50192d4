// Everything that a route needs more than once, made ready before the first request.

import type { ServiceFacts } from '../contract/dependencies.ts'
import { type Route, successStatus } from '../contract/route.ts'
import { Reader } from './body.ts'
import type { ParamList } from './params.ts'

export interface Prepared {
  route: Route
  params: ParamList
  query: Reader<NonNullable<Route['query']>> | null
  body: Reader<NonNullable<Route['body']>> | null
  /** For a request that was forwarded; null when it is the same. */
  forwarded_body: Reader<NonNullable<Route['body']>> | null
  /** The status of a plain result. */
  status: number
  /** True for a write without a key: a page that makes a browser send it must be of this service. */
  judges_origin: boolean
  /** Refused first while the service is overloaded. */
  is_new_work: boolean
  /** Waits for a turn of the event loop when others do. */
  takes_turns: boolean
}

export function prepare(route: Route, service: ServiceFacts): Prepared {
  const body = route.configuredBody?.(service) ?? route.body
  const forwarded_body = route.configuredBody && forwardedBody(route.configuredBody, service)
  return {
    route,
    params: Object.entries(route.params ?? {}),
    query: route.query ? new Reader(route.query) : null,
    body: body ? new Reader(body) : null,
    forwarded_body: forwarded_body ? new Reader(forwarded_body) : null,
    status: successStatus(route),
    judges_origin: route.method !== 'GET' && route.auth.length === 0 && !route.cron && !route.raw,
    is_new_work: route.shed === undefined && !route.cron,
    takes_turns: route.shed !== 'never',
  }
}

function forwardedBody(
  bodyFor: NonNullable<Route['configuredBody']>,
  { plans_open, plans_local }: ServiceFacts,
): Route['body'] | null {
  if (plans_local.length === 0) return null
  return bodyFor({ plans_open: plans_open.filter((plan) => !plans_local.includes(plan)) })
}
