// Reports of the holder of a lease.

import './errors.ts'
import { hashKey } from '../base/keys.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Awaitable, Db, Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { leaseTime } from './deadline-service.ts'
import { type EffectStatus, moves, type WholeEffect } from './effect.ts'
import { aboutOf, dataOf, leaseDataOf, notify } from './event-service.ts'
import { events } from './events.ts'
import { notHeld } from './refusal-service.ts'
import * as store from './report-store.ts'
import { read } from './start-service.ts'
import { extend as extendLease } from './store.ts'

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
    const extended = await extendLease(tx, tenant_id, id, lease)
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
          move: (before) => store.succeedLate(tx, tenant_id, before, report),
        })
    if (before === effect) return effect
    tx.stores(tenant_id, report.more_bytes)
    await afterEnd(tx, dependencies, tenant_id, id)
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
      move: (before) => move(tx, tenant_id, before, failure),
    })
    if (before === effect) return effect
    tx.stores(tenant_id, textBytes(error) - textBytes(before.error))
    const about = { ...aboutOf(tenant_id, causeOf(caller), effect), failing: failingAfter(before) }
    if (retry) {
      notify(tx, dependencies, tenant_id, id)
      const data = { ...dataOf(effect), ran_out: false }
      await journal.emit(tx, events['effect.retried'], { ...about, data })
    } else {
      await afterEnd(tx, dependencies, tenant_id, id)
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
  /** Null when it has changed since it was read. */
  move: (before: WholeEffect) => Awaitable<WholeEffect | null>
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
    const effect = await move(before)
    if (effect) return { effect, before }
  }
}

/** Nobody needs to be asked any more. The checkpoint comes first: a decision takes the rows in the same order. */
export async function endQuestion(
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

/** An effect that was unknown no longer counts as a failure of its workflow. */
export function failingAfter(before: WholeEffect | null): -1 | 0 {
  return before?.status === 'unknown' ? -1 : 0
}

export async function afterEnd(
  tx: Tx,
  dependencies: Dependencies,
  tenant_id: string,
  id: string,
): Promise<void> {
  await quotas.release(tx, tenant_id, 'effects', 1)
  notify(tx, dependencies, tenant_id, id)
}
