// URLs that lead to an inbox of this service, under any spelling of its address.

import { answersFor, type EgressPolicy, judgeUrl } from './guard.ts'
import { isListening, isOwnAddress, isOwnHost, ownOf } from './own-address.ts'
import { type Address, parseAddress } from './ranges.ts'

/** Of a URL that may be called. A name is looked up once, unless it is our own; false when it does not resolve yet. */
export async function isOwnInbox(policy: EgressPolicy, tenant_id: string, text: string): Promise<boolean> {
  const judged = judgeUrl(policy, text)
  if (!judged.ok) return false
  const { hook_path, direct_hook_path, own_hook, host, port, address } = judged.candidate
  if (own_hook) return true
  if (!hook_path && !direct_hook_path) return false
  const own = ownOf(policy.public_url)
  let read: string[] | null = null
  const once = { ...policy, interfaces: () => (read ??= policy.interfaces()) } // a system call
  if (hook_path && isOwnHost(own, host, port)) return true
  const isOurs = (found: Address) =>
    (hook_path && isOwnAddress(own, found, port)) || (direct_hook_path && isListening(once, found, port))
  if (address) return isOurs(address)
  const answers = (await answersFor(policy, tenant_id, host, 'creation')) ?? []
  return answers.map(parseAddress).some((found) => found !== null && isOurs(found))
}
