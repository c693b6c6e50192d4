// The egress guard: which URLs the service may call. A check at creation is a courtesy to the caller; the check at
// each attempt, whose answer is the very address that is then connected to, is the defence.

import { networkInterfaces } from 'node:os'
import { limit } from '../base/limit.ts'
import type { Purpose } from './lookups.ts'
import { isListening, isOwnAddress, isOwnHost, isUnder, type Listening, ownOf } from './own-address.ts'
import { type Address, type AllowRange, isAllowed, isPublic, parseAddress } from './ranges.ts'
import { hostOf, isDomainName, nameRestriction, portOf, portRestriction, textRefusal } from './url-rules.ts'

/** All A and AAAA answers as text. None, or a throw, when the name does not resolve; null when it was not looked up. */
export type Resolver = (tenant_id: string, name: string, purpose: Purpose) => Promise<string[] | null>

export interface EgressPolicy {
  /** CALLBACK_ALLOW: judges the resolved address, and lifts the rules for names and ports for it. */
  allow: readonly AllowRange[]
  https_only: boolean
  /** Without a slash at the end. `<public_url>/hook/…` is always allowed, other paths of the service never. */
  public_url: string
  /** The address that the service listens on, under any PUBLIC_URL; null before it does. */
  listening: Listening | null
  /** Addresses of this machine's interfaces, as text. */
  interfaces(): string[]
  resolve: Resolver
}

/** `addresses`: the checked addresses to connect to; the name in `url` stays for Host and TLS. */
export type Target = { url: URL; addresses: string[] }
export type Judged = { ok: true; target: Target } | { ok: false; why: Refusal; message: string }
/** `untried`: there was no permit to look the name up. */
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
  /** The path is under /hook/ at the address that the service listens on. */
  direct_hook_path: boolean
  /** Exactly `<public_url>/hook/…`: any address that it resolves to is allowed. */
  own_hook: boolean
  /** Why only addresses of `allow` may be reached, or null. */
  restriction: string | null
}

const addresses_max = limit(
  'dns.addresses',
  64,
  'entries',
  'Addresses of one name. A name that has more is not called: 400, and `blocked` at an attempt.',
)

export function systemInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
}

/** The verdict for one attempt. Exactly one look-up for a name, none for an address. */
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

/** The answers for a name; none when it does not resolve, for any reason. */
export async function answersFor(
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
  if (!hook_path && isOwnHost(ownOf(policy.public_url), host, port)) return refused_as_own
  if (policy.https_only && url.protocol !== 'https:') return 'must be an https URL'
  if (address) return addressRefusal(policy, candidate, address)
  if (!isDomainName(host)) return 'must name a valid host'
  const could_be_allowed = policy.allow.some((range) => range.port === null || range.port === port)
  return could_be_allowed ? null : restriction
}

/** Any forbidden answer blocks, because the next connection may get another of the answers. */
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
