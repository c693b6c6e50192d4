// By which names a service that only this machine can reach may be asked.

import { ApiError } from '../base/errors.ts'
import { failure } from './answers.ts'
import { type Handler, requestId, type ServerOptions } from './exchange.ts'
import { pathSegments } from './params.ts'

/**
 * While everything is loopback, a Host of any other name comes from a web page whose DNS leads here (DNS rebinding):
 * to the browser that page and this service are one site.
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
 * Refuses what names a host that we are not, before anything else. Senders to /hook may name us as they like.
 * `path` is null for whatever no route takes.
 */
export function forKnownHosts(options: ServerOptions, path: string | null, handler: Handler): Handler {
  const { hosts, clock, log } = options
  if (!hosts || (path !== null && isHook(path))) return handler
  return (request, server) => {
    if (hosts.isKnown(request.headers)) return handler(request, server)
    const asked = path ?? pathSegments(request.url).join('/')
    if (isHook(asked)) return handler(request, server)
    const request_id = requestId(request.headers, clock.now())
    return Promise.resolve(failure(unknownHost(), request_id, log, { method: request.method, path: asked }))
  }
}

function isHook(path: string): boolean {
  return path.startsWith('/hook/')
}
