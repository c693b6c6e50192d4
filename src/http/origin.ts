// The web pages that may call the service, by the Origin that a browser sends.

import { ApiError } from '../base/errors.ts'

/**
 * Throws FORBIDDEN for a page of another site. Without it, any page could use what the browser of its visitor can
 * reach, such as a service on the same machine. Programs send no Origin. `null`, the origin of a page that has none,
 * is another site (RFC 6454 section 7.3).
 */
export function requireAllowedOrigin(
  headers: Headers,
  public_url: () => string,
  cors_origins: readonly string[],
): void {
  const origin = headers.get('origin')
  if (origin === null || cors_origins.includes(origin) || cors_origins.includes('*')) return
  if (origin === new URL(public_url()).origin) return
  const issues = [{ path: 'header.Origin', message: 'is neither this service nor one of CORS_ORIGINS' }]
  throw new ApiError('FORBIDDEN', { details: { issues } })
}
