// The service's own address: by PUBLIC_URL, and by the interfaces that it listens on.

import { type Address, isLocal, isSame, isUnspecified, parseAddress } from './ranges.ts'
import { hostOf, portOf } from './url-rules.ts'

export interface Listening {
  /** An address or a name. */
  host: string
  port: number
}

/** Of the egress policy. */
interface Listener {
  listening: Listening | null
  interfaces(): string[]
}

/** Our own address as PUBLIC_URL has it. */
interface Own {
  public_url: string
  origin: string
  name: string
  port: number
  hook_path: string
  /** Of the URL's host when it is a literal or localhost. */
  address: Address | null
}

let remembered: Own | null = null

export function ownOf(public_url: string): Own {
  if (remembered?.public_url !== public_url) {
    const url = new URL(public_url)
    const name = hostOf(url)
    const address = /(^|\.)localhost$/.test(name) ? parseAddress('127.0.0.1') : parseAddress(name)
    const hook_path = `${url.pathname.replace(/\/$/, '')}/hook/`
    remembered = { public_url, origin: url.origin, name, port: portOf(url), hook_path, address }
  }
  return remembered
}

/** A proxy in front of us may decode `%2e` and `%2f` and then climb out of /hook: such a path is not under it. */
export function isUnder(hook_path: string, url: URL): boolean {
  if (!url.pathname.startsWith(hook_path)) return false
  const segments = url.pathname.replace(/%2e/gi, '.').split(/\/|%2f|%5c/i)
  return !segments.includes('..')
}

/** Our name and port; 80 and 443 of one name count as one, because one usually redirects to the other. */
export function isOwnHost(own: Own, host: string, port: number): boolean {
  if (own.name !== host) return false
  const both = [own.port, port]
  return both[0] === both[1] || both.every((port) => port === 80 || port === 443)
}

/** Our port behind an address: the one PUBLIC_URL names, or this machine under another of its spellings. */
export function isOwnAddress(own: Own, address: Address, port: number): boolean {
  if (own.port !== port || !own.address) return false
  return isSame(own.address, address) || (isLocal(own.address) && isLocal(address))
}

/** Our port behind an address at which this very process answers: behind a proxy PUBLIC_URL names neither. */
export function isListening({ listening, interfaces }: Listener, address: Address, port: number): boolean {
  if (listening?.port !== port) return false
  const at = parseAddress(listening.host)
  if (at && !isUnspecified(at)) return isSame(at, address) || (isLocal(at) && isLocal(address))
  // Every interface, or a name, which may be any of them.
  return isLocal(address) || interfaces().some((text) => isSameText(text, address))
}

function isSameText(text: string, address: Address): boolean {
  const other = parseAddress(text)
  return other !== null && isSame(other, address)
}
