// The verdict of a person on an unknown effect.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import { type EffectStatus, moves, type Outcome, type WholeEffect } from './effect.ts'
import { aboutOf, dataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import { afterEnd, endQuestion, failingAfter } from './report-service.ts'
import * as store from './report-store.ts'
import { read } from './start-service.ts'

export interface Verdict {
  outcome: Outcome
  /** JSON text. */
  result: string | null
  error: string | null
}

/**
 * A repeat answers the same. With a `fence` only the lease of this number is resolved: another one may have begun since the
 * person looked, or since a first call whose answer was lost. Throws EFFECT_NOT_FOUND, INVALID_STATE.
 */
export function resolve(
  db: Db,
  caller: AdminCaller,
  dependencies: Dependencies,
  id: string,
  { fence, ...verdict }: Verdict & { fence: number | null },
): Promise<WholeEffect> {
  const { tenant_id } = caller
  const by = { resolved_by: 'admin', cause: causeOf(caller) }
  return db.write(tenant_id, async (tx) => {
    for (;;) {
      const before = await read(tx, tenant_id, id)
      if (fence !== null && fence !== before.fence) throw refusal(before)
      if (isResolvedAs(before, verdict)) return before
      const from: readonly EffectStatus[] = moves[`resolve_${verdict.outcome}`].from
      if (!from.includes(before.status)) throw refusal(before)
      await endQuestion(tx, dependencies, tenant_id, before, by.cause)
      const resolved = await resolveIn(tx, tenant_id, dependencies, before, { ...verdict, ...by })
      if (resolved) return resolved
    }
  })
}

function refusal({ status, fence }: WholeEffect): ApiError {
  return new ApiError('INVALID_STATE', { details: { status, fence } })
}

function isResolvedAs({ status, resolved_by, lease_token_hash }: WholeEffect, { outcome }: Verdict): boolean {
  if (resolved_by === null || lease_token_hash !== null) return false
  return outcome === 'retry' ? status === 'ready' || status === 'approved' : status === outcome
}

/** Null unless it may be resolved so. */
export async function resolveIn(
  tx: Tx,
  tenant_id: string,
  dependencies: Dependencies,
  before: WholeEffect,
  { outcome, result, error, resolved_by, cause }: Verdict & { resolved_by: string; cause: Cause },
): Promise<WholeEffect | null> {
  const { id } = before
  const more_bytes = textBytes(result)
  const resolved =
    outcome === 'retry'
      ? await store.resolveRetry(tx, tenant_id, before, resolved_by)
      : await store.resolve(tx, tenant_id, before, {
          status: outcome,
          result,
          error,
          more_bytes,
          resolved_by,
        })
  if (!resolved) return null
  if (outcome === 'retry') notify(tx, dependencies, tenant_id, id)
  else {
    tx.stores(tenant_id, more_bytes + textBytes(error) - textBytes(before.error))
    await afterEnd(tx, dependencies, tenant_id, id)
  }
  await journal.emit(tx, events['effect.resolved'], {
    ...{ ...aboutOf(tenant_id, cause, resolved), failing: failingAfter(before) },
    data: { ...dataOf(resolved), outcome, resolved_by },
  })
  return resolved
}
