// An effect whose approval was refused, or whose permit is over.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, service_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import type { WholeEffect } from './effect.ts'
import { aboutOf, dataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import * as permits from './permit-store.ts'

const over_rows_max = limit(
  'effects.over_rows',
  200,
  'rows',
  'Effects whose permit is over, of those that one claim at the limit of the quota ends.',
)
const over_bytes_max = limit('effects.over_bytes', 4 * 1_048_576, 'bytes', 'Bytes of these effects.')

/**
 * Ends an effect whose permit is over, as unknown when its last lease was not reported; returns the refusal. Null when it
 * has changed meanwhile.
 */
export async function expirePermit(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  id: string,
  cause: Cause = service_cause,
): Promise<ApiError | null> {
  const effect = await permits.expirePermit(tx, tenant_id, id)
  if (!effect) return expireUnreported(tx, dependencies, tenant_id, id, cause)
  await afterRefusal(tx, dependencies, tenant_id, effect, cause)
  return rejectedAs(effect)
}

async function expireUnreported(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  id: string,
  cause: Cause,
): Promise<ApiError | null> {
  const effect = await permits.expireUnreported(tx, tenant_id, id)
  if (!effect) return null
  const data = { ...dataOf(effect), checkpoint_id: null }
  await journal.emit(tx, events['effect.unknown'], { ...aboutOf(tenant_id, cause, effect), data })
  notify(tx, dependencies, tenant_id, id)
  return unknownNow(effect)
}

export async function afterRefusal(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  effect: WholeEffect,
  cause: Cause,
): Promise<void> {
  await quotas.release(tx, tenant_id, 'effects', 1)
  await tell(tx, dependencies, tenant_id, effect, cause)
}

/** For a claim at the limit of the quota: effects that nobody can start any more make room, the first of them. */
export async function expirePermits(tx: Tx, dependencies: Dependencies, tenant_id: string): Promise<void> {
  const expired = await permits.expirePermits(tx, tenant_id, over_rows_max, over_bytes_max)
  if (expired.length === 0) return
  await quotas.release(tx, tenant_id, 'effects', expired.length)
  for (const effect of expired) await tell(tx, dependencies, tenant_id, effect, service_cause)
}

async function tell(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  effect: WholeEffect,
  cause: Cause,
): Promise<void> {
  await journal.emit(tx, events['effect.rejected'], {
    ...aboutOf(tenant_id, cause, effect),
    data: { ...dataOf(effect), checkpoint_id: effect.checkpoint_id!, status: effect.refused_as! },
  })
  notify(tx, dependencies, tenant_id, effect.id)
}

export function unknownNow({ id: effect_id, question_id: checkpoint_id }: WholeEffect): ApiError {
  return new ApiError('EFFECT_UNKNOWN', { details: { effect_id, checkpoint_id } })
}

export function notHeld({ status }: WholeEffect): ApiError {
  return new ApiError('EFFECT_NOT_HELD', { details: { status } })
}

export function rejectedAs({ id, refused_as, checkpoint_id }: WholeEffect): ApiError {
  return new ApiError('EFFECT_REJECTED', { details: { effect_id: id, status: refused_as, checkpoint_id } })
}
