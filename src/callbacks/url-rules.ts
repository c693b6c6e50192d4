// Rules for the text, the host and the port of a URL. They need no policy and no look-up.

import { limit } from '../base/limit.ts'
import { isPublicPort } from './ranges.ts'

const url_characters_max = limit('callbacks.url', 2_048, 'characters', 'A URL that is called. Past it 400.')

const name_characters_max = limit('callbacks.name', 253, 'characters', 'The name of a host. Past it 400.')

/** On the raw text, because the parser of the URL standard silently strips and repairs (its sections 4.1 and 4.4). */
export function textRefusal(text: string): string | null {
  if (text.length > url_characters_max) return `must have at most ${url_characters_max} characters`
  if (/[\s\\\x00-\x20\x7f-\x9f]/.test(text) || !text.isWellFormed()) {
    return 'must hold no spaces, backslashes or control characters'
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  if (authority === undefined) return 'must be an absolute http or https URL'
  if (authority.includes('@')) return 'must hold no user name or password'
  return null
}

/** RFC 1123 section 2.1, and the underscore that DNS knows. */
export function isDomainName(name: string): boolean {
  return name.length <= name_characters_max && /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(name)
}

// RFC 6761 and 6762, RFC 8375, RFC 7686, and ICANN's private-use domain.
const special_names = /(^|\.)(localhost|local|internal|home\.arpa|onion)$/

export function nameRestriction(name: string): string | null {
  return name.includes('.') && !special_names.test(name) ? null : 'must name a host of the public internet'
}

export function portRestriction(port: number): string | null {
  return isPublicPort(port) ? null : 'must use port 80, 443 or one from 1024 that serves HTTP'
}

/** Without the brackets of IPv6 and the dot of the root. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$|\.$/g, '')
}

/** The one that a connection would use. */
export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}
