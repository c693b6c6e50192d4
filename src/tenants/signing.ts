// The signing secrets of a tenant, and the callbacks signed with them.

import { type Millis, realTime } from '../base/clock.ts'
import type { Outgoing } from '../callbacks/attempt.ts'
import { type Callback, signedRequest } from '../callbacks/message.ts'
import type { Secrets } from '../contract/dependencies.ts'
import type { Reader } from '../db/db.ts'
import type { LeasedJob } from '../jobs/job.ts'
import type { MessageContext } from '../jobs/kind.ts'
import * as store from './store.ts'

/**
 * The secrets that sign a callback now: the current one and, for 24 h after a rotation, the one before. Null when no
 * callback of the tenant is to be sent: it waits for deletion, or is gone, or it is frozen and this one does not go on.
 */
export async function signingSecrets(
  q: Reader,
  secrets: Secrets,
  tenant_id: string,
  now: Millis,
  { goes_on = false } = {},
): Promise<string[] | null> {
  const row = await store.signingSecrets(q, tenant_id)
  if (row?.status !== 'active' || (row.frozen_at !== null && !goes_on)) return null
  const sealed = [row.signing_secret]
  const until = row.previous_signing_secret_until
  if (row.previous_signing_secret !== null && until !== null && until > now)
    sealed.push(row.previous_signing_secret)
  return sealed.map((text) => secrets.open(signingContext(tenant_id), text))
}

/**
 * The signed request of one attempt. Read at each attempt: since the lease the secrets may have been rotated, the
 * tenant deleted or frozen, or the callback changed. `find` comes last, so that a callback that a PATCH or DELETE has changed since
 * is not sent under the old event. Null when it finds none.
 */
export async function signedCallback(
  { db, dependencies, started_at }: MessageContext,
  job: LeasedJob,
  find: () => Promise<Callback | null>,
): Promise<Outgoing | 'paused' | null> {
  const secrets = await signingSecrets(db, dependencies.keys.secrets, job.tenant_id, started_at)
  if (!secrets) return 'paused'
  const callback = await find()
  return (
    callback &&
    signedRequest({
      ...{ ...callback, id: job.event_id, attempt: job.attempts, secrets },
      sent_at: realTime(dependencies.clock),
    })
  )
}

/** The context that a sealed signing secret is bound to, so that one tenant's cannot be put into another's row. */
export function signingContext(tenant_id: string): string {
  return `signing_secret ${tenant_id}`
}
