// The address that a request comes from.

import ipaddr from 'ipaddr.js'

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A comma list of addresses or CIDR ranges. Throws on anything else. */
export function parseRanges(text: string): Range[] {
  return text.split(',').map((part) => {
    const item = part.trim()
    const host = item.split('/', 1)[0]!
    // ipaddr.js also reads 10, 127.1 and 0x7f.1, which are not meant here.
    if (!ipaddr.IPv4.isValidFourPartDecimal(host) && !ipaddr.IPv6.isValid(host))
      throw new Error(`not an IP address: ${item}`)
    if (item !== host) return unmapped(ipaddr.parseCIDR(item) as Range)
    const address = ipaddr.parse(host)
    return unmapped([address, address.kind() === 'ipv4' ? 32 : 128])
  })
}

/** A range of IPv4-mapped IPv6 addresses as its range of IPv4, because peers are compared as IPv4. */
function unmapped([first, bits]: Range): Range {
  const is_mapped = first instanceof ipaddr.IPv6 && first.isIPv4MappedAddress() && bits >= 96
  return is_mapped ? [first.toIPv4Address(), bits - 96] : [first, bits]
}

/**
 * The peer itself, unless it is a trusted proxy: then the last address of X-Forwarded-For that is not a trusted proxy. The
 * header of any other peer is not trusted. The address is returned in its normal spelling.
 */
export function clientAddress(peer: string, forwarded_for: string | null, trusted: readonly Range[]): string {
  let client = normalAddress(peer) ?? peer
  if (trusted.length === 0 || forwarded_for === null || !isTrusted(client, trusted)) return client
  for (const hop of forwarded_for.split(',').reverse()) {
    const address = normalAddress(hop.trim())
    if (address === null) break
    client = address
    if (!isTrusted(address, trusted)) break
  }
  return client
}

/**
 * The one spelling of an address: an IPv4 address, also one that IPv6 carries, in four decimals, an IPv6 address as in
 * RFC 5952, both without port, brackets and zone. Null for a text that is not an address, such as 0313.0.113.11 or
 * 127.1.
 */
export function normalAddress(text: string): string | null {
  if (normal_ipv4.test(text)) return text
  if (text.startsWith(mapped) && normal_ipv4.test(text.slice(mapped.length))) return text.slice(mapped.length)
  const ipv4 = /^(\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?$/.exec(text)?.[1]
  if (ipv4 !== undefined) return ipaddr.IPv4.isValidFourPartDecimal(ipv4) ? ipv4 : null
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1]
  const ipv6 = (bracketed ?? text).split('%', 1)[0]!
  const tail = ipv6.slice(ipv6.lastIndexOf(':') + 1)
  if (!ipaddr.IPv6.isValid(ipv6) || (tail.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(tail)))
    return null
  return ipaddr.process(ipv6).toString()
}

/** The beginning of an IPv4 peer on a socket that takes both families. */
const mapped = '::ffff:'
/** Four decimals without leading zeros: nearly every peer is one, and reading it takes ten times as long. */
const normal_ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

/** The networks that a client is counted by. */
export interface Networks {
  /** The client itself: the address, or the /64 of IPv6, which one connection to the internet gets. */
  client: string
  /** The /48 of IPv6, all of which may belong to one customer; null for IPv4. */
  site: string | null
  /** The /16 of IPv4 or the /32 of IPv6, roughly a provider. */
  provider: string
}

/** The networks of an address in its normal spelling; any other text is a client of its own. */
export function networksOf(address: string): Networks {
  if (!address.includes(':')) {
    const [first, second, third] = address.split('.')
    const provider = third === undefined ? address : `${first}.${second}.0.0/16`
    return { client: address, site: null, provider }
  }
  const { parts } = ipaddr.IPv6.parse(address)
  const prefix = (bits: number) => {
    const groups = parts.slice(0, bits / 16).map((part) => part.toString(16))
    return `${groups.join(':')}::/${bits}`
  }
  return { client: prefix(64), site: prefix(48), provider: prefix(32) }
}

/** The client that a limit counts: the address, or the /64 of IPv6. `address` in its normal spelling. */
export function clientKey(address: string): string {
  return address.includes(':') ? networksOf(address).client : address
}

/** `peer` in any spelling. */
export function isTrustedPeer(peer: string, trusted: readonly Range[]): boolean {
  return isTrusted(normalAddress(peer) ?? peer, trusted)
}

function isTrusted(address: string, trusted: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return trusted.some(([range, bits]) => parsed.kind() === range.kind() && parsed.match(range as never, bits))
}

/** Where a client on this machine finds a server that listens on every address. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

export function unbracketed(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
