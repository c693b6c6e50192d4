// URLs that a subscription may send to.

import { invalid } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { takes } from './subscription.ts'

type Judges = Pick<Dependencies, 'urls'>

/** Throws VALIDATION_FAILED for a URL that may not be called. */
export async function requireCallable(
  judges: Judges,
  tenant_id: string,
  url: string,
  types: readonly string[],
): Promise<void> {
  const refusal = await judges.urls.callbackRefusal(tenant_id, url)
  if (refusal !== null) throw invalid({ path: '/url', message: refusal })
  await requireNoLoop(judges, tenant_id, url, types)
}

/** A delivery of `message.received` to an inbox would leave another such event, without end. */
export async function requireNoLoop(
  { urls }: Judges,
  tenant_id: string,
  url: string,
  types: readonly string[],
): Promise<void> {
  if (!['message.received', 'message.forwarded', 'message.forward_failed'].some((type) => takes(types, type)))
    return
  if (await urls.isOwnInbox(tenant_id, url))
    throw invalid({ path: '/url', message: 'must not be an inbox of this service where types name messages' })
}
