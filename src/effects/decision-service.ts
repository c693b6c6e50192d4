// How a decision changes an effect: as the approval of one that waits, or as the answer about one that is unknown.

import { isoOrNull } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { hashOf } from '../base/keys.ts'
import type { DecidedCheckpoint } from '../contract/decides.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import { aboutOf, dataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import * as permits from './permit-store.ts'
import { afterRefusal, expirePermit } from './refusal-service.ts'
import { endQuestion } from './report-store.ts'
import { resolveIn, type Verdict } from './resolve-service.ts'
import * as store from './store.ts'

interface Decided {
  tenant_id: string
  checkpoint: DecidedCheckpoint
  cause: Cause
}

export async function decides(tx: Tx, dependencies: Dependencies, decided: Decided): Promise<void> {
  const { tenant_id, checkpoint } = decided
  const id = checkpoint.effect_id
  if (id === null) return
  if (checkpoint.status === 'revoked') return revoked(tx, dependencies, id, decided)
  if (await (checkpoint.status === 'approved' ? approved : refused)(tx, dependencies, id, decided)) return
  const effect = await store.find(tx, tenant_id, id)
  if (effect?.question_id !== checkpoint.id) return
  await endQuestion(tx, tenant_id, id, checkpoint.id)
  const verdict = verdictOf(checkpoint)
  if (verdict === null) return
  await resolveIn(tx, tenant_id, dependencies, effect, {
    ...{ ...verdict, resolved_by: checkpoint.resolved_by!, cause: decided.cause },
  })
}

/** False unless it is the approval of this effect. */
async function approved(
  tx: Tx,
  dependencies: Dependencies,
  id: string,
  { tenant_id, checkpoint, cause }: Decided,
): Promise<boolean> {
  const { effective_payload, permit_expires_at } = checkpoint
  const more_bytes = textBytes(effective_payload)
  const effective_hash = effective_payload === null ? null : hashOf(effective_payload)
  const permit = { permit_expires_at, effective_payload, effective_hash, more_bytes }
  const effect = await permits.approve(tx, tenant_id, id, checkpoint.id, permit)
  if (!effect) return false
  tx.stores(tenant_id, more_bytes)
  await journal.emit(tx, events['effect.approved'], {
    ...aboutOf(tenant_id, cause, effect),
    data: {
      ...{ ...dataOf(effect), checkpoint_id: checkpoint.id, uses: checkpoint.uses },
      permit_expires_at: isoOrNull(permit_expires_at),
    },
  })
  notify(tx, dependencies, tenant_id, id)
  return true
}

/** False unless it is the approval of this effect. */
async function refused(
  tx: Tx,
  dependencies: Dependencies,
  id: string,
  { tenant_id, checkpoint, cause }: Decided,
): Promise<boolean> {
  const refused_as = checkpoint.status as 'rejected' | 'expired' | 'cancelled'
  const effect = await permits.refuse(tx, tenant_id, id, checkpoint.id, refused_as)
  if (!effect) return false
  await afterRefusal(tx, dependencies, tenant_id, effect, cause)
  return true
}

/**
 * Ends those that may still start, and lets those that run finish: none of them starts again. Throws INVALID_STATE for a
 * checkpoint that asks what became of the effect.
 */
async function revoked(
  tx: Tx,
  dependencies: Dependencies,
  id: string,
  { tenant_id, checkpoint, cause }: Decided,
): Promise<void> {
  const asked_for = await store.find(tx, tenant_id, id)
  if (asked_for?.checkpoint_id !== checkpoint.id)
    throw new ApiError('INVALID_STATE', { details: { status: 'approved' } })
  const startable: string[] = []
  for (const under of await permits.openUnder(tx, tenant_id, checkpoint.id)) {
    const effect = await permits.endPermit(tx, tenant_id, under.id)
    if (effect?.status === 'approved') startable.push(under.id)
  }
  // Only now, since it locks the counter: a report locks its effect before that, and the two would deadlock.
  for (const each of startable) await expirePermit(tx, dependencies, tenant_id, each, cause)
}

/** Null: the person could not say, and the effect stays unknown. */
function verdictOf({ status, answer, reason }: DecidedCheckpoint): Verdict | null {
  if (status !== 'approved' || answer === null) return null
  const { outcome, result } = JSON.parse(answer) as { outcome: Verdict['outcome']; result?: string }
  return {
    outcome,
    result: outcome === 'succeeded' && result !== undefined ? JSON.stringify(result) : null,
    error: outcome === 'failed' ? reason : null,
  }
}
