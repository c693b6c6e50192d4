// URLs that a subscription may send to.

import { invalid } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { takes } from './subscription.ts'

/** Throws VALIDATION_FAILED for a URL that may not be called. */
export async function requireCallable(
  { urls }: Dependencies,
  tenant_id: string,
  url: string,
  types: readonly string[],
): Promise<void> {
  const refusal = await urls.callbackRefusal(tenant_id, url)
  if (refusal !== null) throw invalid({ path: '/url', message: refusal })
  requireNoLoop(urls.public_url(), url, types)
}

/** A delivery of `message.received` to an inbox would leave another such event, without end. */
export function requireNoLoop(public_url: string, url: string, types: readonly string[]): void {
  if (!URL.parse(url)?.href.startsWith(`${public_url}/hook/`)) return
  if (!['message.received', 'message.forwarded', 'message.forward_failed'].some((type) => takes(types, type)))
    return
  throw invalid({ path: '/url', message: 'must not be an inbox of this service where types name messages' })
}
