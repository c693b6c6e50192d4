// Which address a request comes from.

import ipaddr from 'ipaddr.js'

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A comma list of addresses or CIDR ranges. Throws on anything else. */
export function parseRanges(text: string): Range[] {
  return text.split(',').map((part) => {
    const item = part.trim()
    const host = item.split('/', 1)[0]!
    // ipaddr.js also reads 10, 127.1 and 0x7f.1, which nobody means here.
    if (!ipaddr.IPv4.isValidFourPartDecimal(host) && !ipaddr.IPv6.isValid(host))
      throw new Error(`no address: ${item}`)
    if (item !== host) return ipaddr.parseCIDR(item) as Range
    const address = ipaddr.parse(host)
    return [address, address.kind() === 'ipv4' ? 32 : 128] as Range
  })
}

/**
 * The peer itself, unless it is a trusted proxy: then the last address of X-Forwarded-For that is none. A header
 * from anybody else is not believed.
 */
export function clientAddress(peer: string, forwarded_for: string | null, trusted: readonly Range[]): string {
  if (trusted.length === 0 || forwarded_for === null || !isTrusted(peer, trusted)) return peer
  const hops = forwarded_for.split(',').map((hop) => hop.trim())
  let client = peer
  for (const hop of hops.reverse()) {
    if (!ipaddr.isValid(hop)) break
    client = hop
    if (!isTrusted(hop, trusted)) break
  }
  return client
}

function isTrusted(address: string, trusted: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return trusted.some(([range, bits]) => parsed.kind() === range.kind() && parsed.match(range as never, bits))
}
