// The addresses and ports of the public internet, and the ranges that an operator adds with CALLBACK_ALLOW.

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type Address = ipaddr.IPv4 | ipaddr.IPv6

/** A range of addresses that callbacks may reach although it is not public. `port` null: every port. */
export interface AllowRange {
  first: Address
  bits: number
  port: number | null
}

const global_unicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]

/**
 * Strict: four decimal parts or RFC 4291 text, as `isIP` has it. ipaddr.js alone would read `010.0.0.1` as octal.
 * Null for anything else, scoped addresses (`fe80::1%eth0`) included.
 */
export function parseAddress(text: string): Address | null {
  return isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text)
}

/**
 * True for an address that the public internet routes to a single host. A list of what is private forgets
 * something, so this names what is public: `unicast` of ipaddr.js, which subtracts the IANA special-purpose
 * registries (RFC 6890), and for IPv6 only the block that IANA hands out at all, 2000::/3 (RFC 4291 section 2.4).
 */
export function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(global_unicast)
}

/** Loopback, and the unspecified address, which Linux connects to the local host. */
export function isLocal(address: Address): boolean {
  return plain(address).range() === 'loopback' || isUnspecified(address)
}

/** 0.0.0.0 and ::, which stand for every interface. */
export function isUnspecified(address: Address): boolean {
  return plain(address).range() === 'unspecified'
}

/** An IPv4 address inside an IPv6 one (RFC 4291 section 2.5.5.2) leads where it leads by itself. */
function plain(address: Address): Address {
  const mapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
  return mapped ? address.toIPv4Address() : address
}

export function isAllowed(allow: readonly AllowRange[], address: Address, port: number): boolean {
  for (const range of allow) {
    if (range.port !== null && range.port !== port) continue
    if (range.first.kind() !== address.kind()) continue
    if (address.match(range.first as never, range.bits)) return true
  }
  return false
}

/** Two spellings of one address. */
export function isSame(one: Address, other: Address): boolean {
  return plain(one).toNormalizedString() === plain(other).toNormalizedString()
}

// Ports from 1024 up that the Fetch standard blocks (section "Port blocking"), and those of databases and caches.
const bad_ports = new Set([
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679],
  ...[6697, 10080],
  ...[5432, 3306, 6379, 11211, 27017],
])

export function isPublicPort(port: number): boolean {
  return port === 80 || port === 443 || (port >= 1024 && !bad_ports.has(port))
}

const range_forms = [
  /^(?<address>[\d.]+)(?:\/(?<bits>\d{1,2}))?(?::(?<port>\d{1,5}))?$/,
  /^\[(?<address>[\da-f:.]+)\](?:\/(?<bits>\d{1,3}))?(?::(?<port>\d{1,5}))?$/i,
  /^(?<address>[\da-f]*:[\da-f:.]*)(?:\/(?<bits>\d{1,3})(?::(?<port>\d{1,5}))?)?$/i,
]

/** `10.0.0.0/8`, `10.0.0.0/8:8080`, `fd00::/8`, `[fd00::]/8:8443`, or an address alone; null for any other text. */
function parseRange(item: string): AllowRange | null {
  for (const form of range_forms) {
    const { address, bits, port } = form.exec(item)?.groups ?? {}
    const first = parseAddress(address ?? '')
    if (!first) continue
    const width = first.kind() === 'ipv4' ? 32 : 128
    const range = { first, bits: Number(bits ?? width), port: port === undefined ? null : Number(port) }
    if (range.bits <= width && (range.port === null || (range.port >= 1 && range.port <= 65_535)))
      return range
  }
  return null
}

/**
 * CALLBACK_ALLOW: a comma list of CIDR[:port]: `10.0.0.0/8`, `10.0.0.0/8:8080`, `fd00::/8`, `[fd00::]/8:8443`; an
 * address alone is a range of one. Throws with a one-line message.
 */
export function parseAllow(text: string): AllowRange[] {
  if (text.trim() === '') return []
  return text.split(',').map((part) => {
    const range = parseRange(part.trim())
    if (range) return range
    throw new Error(`"${part.trim()}" is not a range such as 10.0.0.0/8, 10.0.0.0/8:8080 or [fd00::]/8:8443`)
  })
}
