// Where a subscription sends, sealed at rest: a URL, or an address of mail.

import { hashOf, newToken } from '../base/keys.ts'
import type { Sealer, Secrets } from '../contract/dependencies.ts'
import { sameAddress } from './subscription.ts'

/** The text of the target. Throws when the row was not sealed for this subscription. */
export function openTarget(
  secrets: Secrets,
  tenant_id: string,
  { id, target }: { id: string; target: string },
): string {
  return secrets.open(targetContext(tenant_id, id), target)
}

export function sealTarget(sealer: Sealer, tenant_id: string, id: string, text: string): string {
  return sealer.seal(targetContext(tenant_id, id), text)
}

/** Bound to its row, so that one tenant's target cannot be put into another's. */
export function targetContext(tenant_id: string, id: string): string {
  return `subscription_target ${tenant_id} ${id}`
}

/** An address is found again by it. A plain hash could be guessed from a list of addresses. */
export function addressHash(secrets: Secrets, tenant_id: string, address: string): string {
  return secrets.fingerprint(`subscription_address ${tenant_id}`, sameAddress(address))
}

const token_mark = '.'

/** A token for the links in emails to an address, which names its tenant. */
export function newLinkToken(sealer: Sealer, tenant_id: string, address_hash: string) {
  const token = `${tenant_id}${token_mark}${newToken()}`
  return { token_hash: hashOf(token), token: sealer.seal(tokenContext(tenant_id, address_hash), token) }
}

export function openToken(
  secrets: Secrets,
  tenant_id: string,
  { address_hash, token }: { address_hash: string; token: string },
): string {
  return secrets.open(tokenContext(tenant_id, address_hash), token)
}

export function tokenContext(tenant_id: string, address_hash: string): string {
  return `subscription_token ${tenant_id} ${address_hash}`
}

/** The tenant that a token names, and its hash; null for any other text. */
export function readToken(token: string): { tenant_id: string; token_hash: string } | null {
  const at = token.indexOf(token_mark)
  const tenant_id = token.slice(0, at)
  if (at === -1 || !/^[a-z0-9_]{1,64}$/.test(tenant_id)) return null
  return { tenant_id, token_hash: hashOf(token) }
}
