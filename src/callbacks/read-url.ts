// The parts of a URL, before any policy judges it: the same text has the same ones every time, so they are remembered.

import { limit } from '../base/limit.ts'
import { isUnder } from './own-address.ts'
import { type Address, parseAddress } from './ranges.ts'
import { hostOf, nameRestriction, portOf, portRestriction, textRefusal } from './url-rules.ts'

const remembered_max = limit(
  'callbacks.urls_remembered',
  1_000,
  'entries',
  'URLs whose parts a node remembers between attempts. Past it all are forgotten, and read again.',
)

export interface ReadUrl {
  /** Shared by all who read this text: never changed. */
  url: Readonly<URL>
  host: string
  port: number
  /** When the host is an address; a name has to be looked up. */
  address: Address | null
  /** The path is under /hook/ at the address that the service listens on. */
  direct_hook_path: boolean
  /** Why only addresses of `allow` may be reached, or null. */
  restriction: string | null
}

const remembered = new Map<string, ReadUrl>()

/** Its parts, or the sentence to refuse it with. */
export function readUrl(text: string): ReadUrl | string {
  const known = remembered.get(text)
  if (known) return known
  const malformed = textRefusal(text)
  if (malformed !== null) return malformed
  const url = URL.parse(text)
  if (!url) return 'is not a valid URL'
  if (url.port === '0') return 'must name a port from 1 to 65535'
  const host = hostOf(url)
  const port = portOf(url)
  const address = parseAddress(host)
  const restriction = (address ? null : nameRestriction(host)) ?? portRestriction(port)
  const read = { url, host, port, address, direct_hook_path: isUnder('/hook/', url), restriction }
  if (remembered.size >= remembered_max) remembered.clear()
  remembered.set(text, read)
  return read
}
