// The names under which a service that only this machine can reach may be called.

import { ApiError } from '../base/errors.ts'
import type { Group } from '../contract/group.ts'
import { failure } from './answers.ts'
import { type Handler, type Running, requestId, type ServerOptions } from './exchange.ts'
import { untilTurnEnds } from './frame.ts'
import { noteUnrouted } from './unrouted.ts'

/**
 * While everything is loopback, a Host of any other name comes from a web page whose host name resolves to this machine (DNS
 * rebinding): to the browser, that page and this service are one site.
 */
export class KnownHosts {
  readonly #public_host: string
  /** The header that was accepted last: most requests repeat it. */
  #accepted = ''

  constructor(public_url: string) {
    this.#public_host = new URL(public_url).hostname
  }

  /** A request without a Host, as in HTTP/1.0, comes from no browser. */
  isKnown(headers: Headers): boolean {
    const host = headers.get('host')
    if (host === this.#accepted || host === null || host === '') return true
    if (!this.#isName(host)) return false
    this.#accepted = host
    return true
  }

  #isName(host: string): boolean {
    const name = /^(\[[^\]]*\]|[^:[\]]*)(?::\d{0,5})?$/.exec(host)?.[1]?.toLowerCase()
    if (name === undefined) return false
    if (name === this.#public_host || name === '[::1]') return true
    return /^(?:[a-z0-9-]+\.)*localhost\.?$/.test(name) || isLoopbackIpv4(name)
  }
}

function isLoopbackIpv4(name: string): boolean {
  const parts = /^127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(name)
  return parts?.slice(1).every((part) => Number(part) <= 255) ?? false
}

function unknownHost(): ApiError {
  const message =
    'is not a name of this machine; while HOST and PUBLIC_URL are loopback, no other name is served'
  return new ApiError('FORBIDDEN', { details: { issues: [{ path: 'header.Host', message }] } })
}

/**
 * Refuses a request that names a host that is not this service, before anything else. `groupFor`: the group of the route, or of
 * the path of this request where no route takes it.
 */
export function forKnownHosts(
  options: Running,
  path: string,
  groupFor: (url: string) => Group | null,
  handler: Handler,
): Handler {
  const { hosts } = options
  if (!hosts) return handler
  return (request, server) => {
    if (hosts.isKnown(request.headers)) return handler(request, server)
    const group = groupFor(request.url)
    return group?.any_host
      ? handler(request, server)
      : untilTurnEnds(options).then(() => refusal(options, request, path, group))
  }
}

function refusal(
  options: ServerOptions,
  { method, headers }: Request,
  path: string,
  group: Group | null,
): Response {
  const request_id = requestId(headers, options.clock.now())
  const refused = failure(unknownHost(), request_id, options.log, { method, path, group })
  noteUnrouted(options, { method, headers }, request_id, refused)
  return refused
}
