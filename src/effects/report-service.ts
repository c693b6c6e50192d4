// Reports of the holder of a lease, and the verdict of a person on an effect of which nobody knows.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import { hashKey } from '../base/keys.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Awaitable, Db, Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { read } from './claim-service.ts'
import { leaseTime } from './deadline-service.ts'
import { type EffectStatus, moves, type Outcome, type WholeEffect } from './effect.ts'
import { aboutOf, dataOf, leaseDataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import * as store from './store.ts'

/** Lets the lease end `lease_ms` from now. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD. */
export function extend(
  db: Db,
  caller: AgentCaller,
  id: string,
  lease_token: string,
  lease_ms: number,
): Promise<WholeEffect> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const at = await leaseTime(tx, caller, id)
    const lease = { lease_token_hash: hashKey(lease_token), lease_ms, at }
    const extended = await store.extend(tx, tenant_id, id, lease)
    if (!extended) throw notHeld(await read(tx, tenant_id, id))
    const about = aboutOf(tenant_id, causeOf(caller), extended)
    await journal.emit(tx, events['effect.extended'], { ...about, data: leaseDataOf(extended) })
    return extended
  })
}

/**
 * It happened. A repeat answers the same. What has happened is recorded whatever the quotas say.
 * Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD.
 */
export function succeed(
  db: Db,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { lease_token, result }: { lease_token: string; result: string | null },
): Promise<WholeEffect> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const report = { lease_token_hash: hashKey(lease_token), result, more_bytes: textBytes(result) }
    const succeeded = await store.succeed(tx, tenant_id, id, report)
    const { effect, before } = succeeded
      ? { effect: succeeded, before: null }
      : await reported(tx, caller, dependencies, id, {
          ...{ verb: 'succeed', lease_token_hash: report.lease_token_hash, ends: ['succeeded'] },
          move: () => store.succeedLate(tx, tenant_id, id, report),
        })
    if (before === effect) return effect
    tx.stores(tenant_id, report.more_bytes)
    await isOver(tx, dependencies, tenant_id, id)
    const about = { ...aboutOf(tenant_id, causeOf(caller), effect), data: dataOf(effect) }
    await journal.emit(tx, events['effect.succeeded'], { ...about, failing: failingAfter(before) })
    return effect
  })
}

/** It did not happen. A repeat answers the same. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD. */
export function fail(
  db: Db,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { lease_token, error, retry }: { lease_token: string; error: string; retry: boolean },
): Promise<WholeEffect> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const failure = { lease_token_hash: hashKey(lease_token), error }
    const move = retry ? store.release : store.fail
    const { effect, before } = await reported(tx, caller, dependencies, id, {
      ...{ verb: 'fail', lease_token_hash: failure.lease_token_hash },
      ends: retry ? ['ready', 'approved'] : ['failed'],
      move: () => move(tx, tenant_id, id, failure),
    })
    if (before === effect) return effect
    tx.stores(tenant_id, textBytes(error) - textBytes(before.error))
    const about = { ...aboutOf(tenant_id, causeOf(caller), effect), failing: failingAfter(before) }
    if (retry) {
      notify(tx, dependencies, tenant_id, id)
      const data = { ...dataOf(effect), ran_out: false }
      await journal.emit(tx, events['effect.retried'], { ...about, data })
    } else {
      await isOver(tx, dependencies, tenant_id, id)
      await journal.emit(tx, events['effect.failed'], { ...about, data: dataOf(effect) })
    }
    return effect
  })
}

interface Report {
  verb: 'succeed' | 'fail'
  lease_token_hash: string
  /** The statuses in which a repeat finds the effect. */
  ends: readonly EffectStatus[]
  move: () => Awaitable<WholeEffect | null>
}

/** `before` is the effect itself when the same report was made before. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD. */
async function reported(
  tx: Tx,
  caller: AgentCaller,
  dependencies: Dependencies,
  id: string,
  { verb, lease_token_hash, ends, move }: Report,
): Promise<{ effect: WholeEffect; before: WholeEffect }> {
  for (;;) {
    const before = await read(tx, caller.tenant_id, id)
    if (before.lease_token_hash !== lease_token_hash) throw notHeld(before)
    if (before.lease_until === null) {
      if (ends.includes(before.status)) return { effect: before, before }
      throw notHeld(before)
    }
    const from: readonly EffectStatus[] = moves[verb].from
    if (!from.includes(before.status)) throw notHeld(before)
    await endQuestion(tx, dependencies, caller.tenant_id, before, causeOf(caller))
    const effect = await move()
    if (effect) return { effect, before }
  }
}

/** Nobody needs to be asked any more. The checkpoint comes first: a decision takes the rows in the same order. */
async function endQuestion(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  { id, question_id }: WholeEffect,
  cause: Cause,
): Promise<void> {
  if (question_id === null) return
  await checkpoints.withdraw(tx, tenant_id, dependencies, question_id, cause)
  await store.endQuestion(tx, tenant_id, id, question_id)
}

/** An effect that was unknown counts no longer as a failure of its workflow. */
function failingAfter(before: WholeEffect | null): -1 | 0 {
  return before?.status === 'unknown' ? -1 : 0
}

async function isOver(tx: Tx, dependencies: Dependencies, tenant_id: string, id: string): Promise<void> {
  await quotas.release(tx, tenant_id, 'effects', 1)
  notify(tx, dependencies, tenant_id, id)
}

function notHeld({ status }: WholeEffect): ApiError {
  return new ApiError('EFFECT_NOT_HELD', { details: { status } })
}

export interface Verdict {
  outcome: Outcome
  /** JSON text. */
  result: string | null
  error: string | null
}

/** A repeat answers the same. Throws EFFECT_NOT_FOUND, INVALID_STATE. */
export function resolve(
  db: Db,
  caller: AdminCaller,
  dependencies: Dependencies,
  id: string,
  verdict: Verdict,
): Promise<WholeEffect> {
  const { tenant_id } = caller
  const by = { resolved_by: 'admin', cause: causeOf(caller) }
  return db.write(tenant_id, async (tx) => {
    for (;;) {
      const before = await read(tx, tenant_id, id)
      if (isResolvedAs(before, verdict)) return before
      const from: readonly EffectStatus[] = moves[`resolve_${verdict.outcome}`].from
      if (!from.includes(before.status))
        throw new ApiError('INVALID_STATE', { details: { status: before.status } })
      await endQuestion(tx, dependencies, tenant_id, before, by.cause)
      const resolved = await resolveIn(tx, tenant_id, dependencies, before, { ...verdict, ...by })
      if (resolved) return resolved
    }
  })
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
      ? await store.resolveRetry(tx, tenant_id, id, resolved_by)
      : await store.resolve(tx, tenant_id, id, { status: outcome, result, error, more_bytes, resolved_by })
  if (!resolved) return null
  if (outcome === 'retry') notify(tx, dependencies, tenant_id, id)
  else {
    tx.stores(tenant_id, more_bytes + textBytes(error) - textBytes(before.error))
    await isOver(tx, dependencies, tenant_id, id)
  }
  await journal.emit(tx, events['effect.resolved'], {
    ...{ ...aboutOf(tenant_id, cause, resolved), failing: failingAfter(before) },
    data: { ...dataOf(resolved), outcome, resolved_by },
  })
  return resolved
}
