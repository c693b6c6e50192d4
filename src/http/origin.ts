// The web pages that may call the service, by the Origin that a browser sends.

import { ApiError } from '../base/errors.ts'
import { isLoopback, unbracketed } from './address.ts'

/**
 * Throws FORBIDDEN for a page of another site. Without it, any page could use what the browser of its visitor can
 * reach, such as a service on the same machine. Programs send no Origin. `null`, the origin of a page that has none,
 * is another site (RFC 6454 section 7.3).
 */
export function requireAllowedOrigin(
  headers: Headers,
  public_url: () => string,
  cors_origins: readonly string[],
  isOwn: (origin: string, own: URL) => boolean = (origin, own) => origin === own.origin,
): void {
  const origin = headers.get('origin')
  if (origin === null || cors_origins.includes(origin) || cors_origins.includes('*')) return
  if (isOwn(origin, new URL(public_url()))) return
  const issues = [{ path: 'header.Origin', message: 'is neither this service nor one of CORS_ORIGINS' }]
  throw new ApiError('FORBIDDEN', { details: { issues } })
}

/**
 * A page of this service. On loopback it may be open under another name, such as `localhost` for 127.0.0.1, with the same
 * port.
 */
export function isOwnPage(origin: string, own: URL): boolean {
  if (origin === own.origin) return true
  const from = URL.parse(origin)
  const is_same = from?.origin === origin && from.protocol === own.protocol && from.port === own.port
  return is_same && [from, own].every(({ hostname }) => isLoopback(unbracketed(hostname)))
}
