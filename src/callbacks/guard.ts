// The egress guard: which URLs the service may call. A check at creation is a courtesy to the caller; the check at
// each attempt, whose answer is the very address that is then connected to, is the defence.

import { networkInterfaces } from 'node:os'
import { limit } from '../base/limit.ts'
import type { Purpose } from './lookups.ts'
import {
  type Address,
  type AllowRange,
  isAllowed,
  isLocal,
  isPublic,
  isPublicPort,
  isSame,
  isUnspecified,
  parseAddress,
  parseRange,
} from './ranges.ts'

export type { AllowRange } from './ranges.ts'

/** All A and AAAA answers as text. None, or a throw, when the name does not resolve; null when nobody was asked. */
export type Resolver = (tenant_id: string, name: string, purpose: Purpose) => Promise<string[] | null>

export interface EgressPolicy {
  /** CALLBACK_ALLOW: judges the resolved address, and lifts the rules for names and ports for it. */
  allow: readonly AllowRange[]
  https_only: boolean
  /** Without a slash at the end. `<public_url>/hook/…` is always allowed, our other paths never. */
  public_url: string
  /** Where we listen, whatever PUBLIC_URL calls it; null before we do. */
  listening: Listening | null
  /** Addresses of this machine's interfaces, as text. */
  interfaces(): string[]
  resolve: Resolver
}

export interface Listening {
  /** An address or a name. */
  host: string
  port: number
}

/** `addresses`: the checked addresses to connect to; the name in `url` stays for Host and TLS. */
export type Target = { url: URL; addresses: string[] }
export type Judged = { ok: true; target: Target } | { ok: false; why: Refusal; message: string }
/** `untried`: it was not this name's turn to be looked up. */
type Refusal = 'blocked' | 'dns' | 'untried'

/** The verdict before a look-up. */
export type UrlJudged = { ok: false; message: string } | { ok: true; candidate: Candidate }

interface Candidate {
  url: URL
  host: string
  port: number
  /** When the host is an address; a name has to be looked up. */
  address: Address | null
  hook_path: boolean
  /** The path is under /hook/ where we listen. */
  direct_hook_path: boolean
  /** Exactly `<public_url>/hook/…`: whatever that resolves to is allowed. */
  own_hook: boolean
  /** Why only addresses of `allow` may be reached, or null. */
  restriction: string | null
}

export const url_characters_max = limit(
  'callbacks.url',
  2_048,
  'characters',
  'A URL that is called. Past it 400.',
)
const addresses_max = limit(
  'dns.addresses',
  64,
  'entries',
  'Addresses of one name. A name that has more is not called: 400, and `blocked` at an attempt.',
)
const name_characters_max = limit('callbacks.name', 253, 'characters', 'The name of a host. Past it 400.')

export function systemInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
}

/** The truth, for one attempt. Exactly one look-up for a name, none for a literal. */
export async function judge(policy: EgressPolicy, tenant_id: string, text: string): Promise<Judged> {
  const judged = judgeUrl(policy, text)
  if (!judged.ok) return { ok: false, why: 'blocked', message: judged.message }
  const { candidate } = judged
  const { url, host } = candidate
  if (candidate.address) return { ok: true, target: { url, addresses: [host] } }
  const addresses = await answersFor(policy, tenant_id, host, 'attempt')
  if (!addresses) return { ok: false, why: 'untried', message: 'was not looked up' }
  if (addresses.length === 0) return { ok: false, why: 'dns', message: 'does not resolve' }
  const message = addressesRefusal(policy, candidate, addresses)
  return message === null ? { ok: true, target: { url, addresses } } : { ok: false, why: 'blocked', message }
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

/**
 * The sentence to refuse a URL with when it is created, or null. Only a forbidden answer refuses: a name that does
 * not resolve now, or not in time, is accepted and fails at its attempt.
 */
export async function refusalAtCreation(
  policy: EgressPolicy,
  tenant_id: string,
  text: string,
): Promise<string | null> {
  const judged = judgeUrl(policy, text)
  if (!judged.ok) return judged.message
  const { candidate } = judged
  if (candidate.address) return null
  const addresses = await answersFor(policy, tenant_id, candidate.host, 'creation')
  return addressesRefusal(policy, candidate, addresses ?? [])
}

/** A name that does not resolve, for whatever reason, has no answers. */
async function answersFor(
  policy: EgressPolicy,
  tenant_id: string,
  name: string,
  purpose: Purpose,
): Promise<string[] | null> {
  try {
    return await policy.resolve(tenant_id, name, purpose)
  } catch {
    return []
  }
}

/** Everything that needs no look-up: the whole verdict for an address literal, half of it for a name. */
export function judgeUrl(policy: EgressPolicy, text: string): UrlJudged {
  const malformed = textRefusal(text)
  if (malformed !== null) return { ok: false, message: malformed }
  const url = URL.parse(text)
  if (!url) return { ok: false, message: 'is not a valid URL' }
  if (url.port === '0') return { ok: false, message: 'must name a port from 1 to 65535' }
  const candidate = candidateOf(policy, url)
  const message = candidateRefusal(policy, candidate)
  return message === null ? { ok: true, candidate } : { ok: false, message }
}

/** On the raw text, because the parser of the URL standard silently strips and repairs (its sections 4.1 and 4.4). */
function textRefusal(text: string): string | null {
  if (text.length > url_characters_max) return `must have at most ${url_characters_max} characters`
  if (/[\s\\\x00-\x20\x7f-\x9f]/.test(text) || !text.isWellFormed()) {
    return 'must hold no spaces, backslashes or control characters'
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  if (authority === undefined) return 'must be an absolute http or https URL'
  if (authority.includes('@')) return 'must hold no user name or password'
  return null
}

function candidateOf(policy: EgressPolicy, url: URL): Candidate {
  const host = hostOf(url)
  const port = portOf(url)
  const own = ownOf(policy.public_url)
  const hook_path = isUnder(own.hook_path, url)
  const address = parseAddress(host)
  const restriction = (address ? null : nameRestriction(host)) ?? portRestriction(port)
  return {
    url,
    host,
    port,
    address,
    hook_path,
    direct_hook_path: isUnder('/hook/', url),
    own_hook: hook_path && url.origin === own.origin,
    restriction,
  }
}

function candidateRefusal(policy: EgressPolicy, candidate: Candidate): string | null {
  const { url, host, port, address, hook_path, own_hook, restriction } = candidate
  if (own_hook) return null
  if (!hook_path && isOwnHost(ownOf(policy.public_url), candidate)) return refused_as_own
  if (policy.https_only && url.protocol !== 'https:') return 'must be an https URL'
  if (address) return addressRefusal(policy, candidate, address)
  if (!isDomainName(host)) return 'must name a valid host'
  const could_be_allowed = policy.allow.some((range) => range.port === null || range.port === port)
  return could_be_allowed ? null : restriction
}

/** Any bad answer blocks: who connects next may be given another one of them. */
function addressesRefusal(policy: EgressPolicy, candidate: Candidate, answers: string[]): string | null {
  if (answers.length > addresses_max) return 'must lead to a public address'
  let read: string[] | null = null
  const interfaces = () => (read ??= policy.interfaces()) // a system call
  const once = { ...policy, interfaces }
  for (const answer of answers) {
    const message = addressRefusal(once, candidate, parseAddress(answer))
    if (message !== null) return message
  }
  return null
}

const refused_as_own = 'must not be a path of this service other than /hook/'

/** The address itself is never shown: that would make the service a window into the operator's network. */
function addressRefusal(policy: EgressPolicy, candidate: Candidate, address: Address | null): string | null {
  const { port, hook_path, direct_hook_path, own_hook, restriction } = candidate
  if (!address) return 'must lead to a public address'
  if (own_hook) return null
  if (!hook_path && isOwnAddress(ownOf(policy.public_url), address, port)) return refused_as_own
  if (!direct_hook_path && isListening(policy, address, port)) return refused_as_own
  if (isAllowed(policy.allow, address, port)) return null
  return restriction ?? (isPublic(address) ? null : 'must lead to a public address')
}

/** RFC 1123 section 2.1, and the underscore that DNS knows. */
function isDomainName(name: string): boolean {
  return name.length <= name_characters_max && /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(name)
}

// RFC 6761 and 6762, RFC 8375, RFC 7686, and ICANN's private-use domain.
const special_names = /(^|\.)(localhost|local|internal|home\.arpa|onion)$/

function nameRestriction(name: string): string | null {
  return name.includes('.') && !special_names.test(name) ? null : 'must name a host of the public internet'
}

function portRestriction(port: number): string | null {
  return isPublicPort(port) ? null : 'must use port 80, 443 or one from 1024 that serves HTTP'
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

function ownOf(public_url: string): Own {
  if (remembered?.public_url !== public_url) {
    const url = new URL(public_url)
    const name = hostOf(url)
    const address = /(^|\.)localhost$/.test(name) ? parseAddress('127.0.0.1') : parseAddress(name)
    const hook_path = `${url.pathname.replace(/\/$/, '')}/hook/`
    remembered = { public_url, origin: url.origin, name, port: portOf(url), hook_path, address }
  }
  return remembered
}

/** A proxy in front of us may decode `%2e` and `%2f` and then climb out of /hook: such a path is none of it. */
function isUnder(hook_path: string, url: URL): boolean {
  if (!url.pathname.startsWith(hook_path)) return false
  const segments = url.pathname.replace(/%2e/gi, '.').split(/\/|%2f|%5c/i)
  return !segments.includes('..')
}

/** Our name and port; 80 and 443 of one name count as one, because one usually redirects to the other. */
function isOwnHost(own: Own, candidate: Candidate): boolean {
  if (own.name !== candidate.host) return false
  const both = [own.port, candidate.port]
  return both[0] === both[1] || both.every((port) => port === 80 || port === 443)
}

/** Our port behind an address: the one PUBLIC_URL names, or this machine under another of its spellings. */
function isOwnAddress(own: Own, address: Address, port: number): boolean {
  if (own.port !== port || !own.address) return false
  return isSame(own.address, address) || (isLocal(own.address) && isLocal(address))
}

/** Our port behind an address at which this very process answers: behind a proxy PUBLIC_URL names neither. */
function isListening({ listening, interfaces }: EgressPolicy, address: Address, port: number): boolean {
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

/** Without the brackets of IPv6 and the dot of the root. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$|\.$/g, '')
}

/** The one that a connection would use. */
export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}
