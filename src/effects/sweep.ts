// Leases that ran out: nobody knows what became of their effects. And the texts of effects that ended long ago.

import { day_ms, type Millis } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import * as checkpoints from '../checkpoints/service.ts'
import { service_cause } from '../contract/event.ts'
import type { Swept } from '../contract/feature.ts'
import { waitKey } from '../contract/wait.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import { type Due, DueLists, type Touched } from '../db/sweep-tenants.ts'
import * as journal from '../journal/service.ts'
import * as tenants from '../tenants/service.ts'
import { leases } from './deadline-service.ts'
import { outcomes, type WholeEffect } from './effect.ts'
import { aboutOf, dataOf } from './event-service.ts'
import { events } from './events.ts'
import * as store from './sweep-store.ts'
import { questionTerms } from './terms-service.ts'

const sweep_rows_max = limit(
  'effects.sweep_rows',
  200,
  'rows',
  'Effects that one step of a sweep touches, so that requests wait for no more than one step.',
)
const sweep_bytes_max = limit(
  'effects.sweep_bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes of effects that one step of a sweep touches.',
)
const question_ms = limit(
  'effects.question',
  7 * day_ms,
  'milliseconds',
  'How long a person is asked what became of an effect with `on_unknown` ask. After that it waits for an admin.',
)

/** One bounded step: leases that ran out. */
export async function runOut(db: Db, now: Millis, lists = new DueLists(db.clock)): Promise<Swept> {
  let ran_out = 0
  const { more } = await lists.of('effects.run_out').each(
    (from) => store.tenantsRunOut(db, now, from, sweep_rows_max),
    sweep_rows_max,
    async (due) => {
      const { ended, held } = await db.write(upkeep, (tx) => runOutOf(tx, due))
      ran_out += ended
      return ended + held
    },
  )
  return { counts: { 'effects.ran_out': ran_out }, more }
}

/** In a frozen tenant only leases that had run out before end. The others hold until the resume has moved them. */
async function runOutOf(tx: Tx, due: Due): Promise<{ ended: number; held: number }> {
  const frozen = await tenants.lockFreeze(tx, due.tenant_id)
  const judged = tenants.frozenDeadlines(tx.now, frozen, leases.name)
  const { effects, held } = await store.runOut(tx, due, judged, sweep_rows_max, sweep_bytes_max)
  for (const effect of effects.toSorted((a, b) => a.lease_until! - b.lease_until!))
    await leaseRanOut(tx, due.tenant_id, effect, frozen)
  return { ended: effects.length, held }
}

async function leaseRanOut(
  tx: Tx,
  tenant_id: string,
  effect: WholeEffect,
  frozen: tenants.Frozen | null,
): Promise<void> {
  const about = aboutOf(tenant_id, service_cause, effect)
  tx.changed(waitKey(tenant_id, effect.id))
  if (effect.status !== 'unknown') {
    const data = { ...dataOf(effect), ran_out: true }
    // It was never unknown.
    await journal.emit(tx, events['effect.retried'], { ...about, failing: 0, data })
    return
  }
  const checkpoint_id = effect.on_unknown === 'ask' ? await ask(tx, tenant_id, effect, frozen) : null
  await journal.emit(tx, events['effect.unknown'], { ...about, data: { ...dataOf(effect), checkpoint_id } })
}

/** Opens the checkpoint that asks what became of it; returns its id. Null when nobody is left who may answer: it waits for an admin. */
async function ask(
  tx: Tx,
  tenant_id: string,
  effect: WholeEffect,
  frozen: tenants.Frozen | null,
): Promise<string | null> {
  const terms = await questionTerms(tx, tenant_id, effect)
  if (terms === null) return null
  const { id, type, key, note, agent_id, workflow_id, held_by } = effect
  const about = { effect_id: id, effect: { type, key, note }, payload: null, editable: false }
  const question_id = newId('chk', tx.now)
  // The time of its timeout stands still in a freeze: the resume moves it by all of the frozen time.
  const asked_at = tenants.deadlineAt(tx.now, frozen, checkpoints.timeouts.name, question_id)
  await checkpoints.ask(tx, tenant_id, no_worker, {
    id: question_id,
    title: `Did ${type} happen?`,
    prompt: questionOf({ type, key, held_by, id }),
    ...{ callback_url: checkpoints.no_callback, callback_payload: null, timeout_action: 'auto_reject' },
    ...{ expires_at: asked_at + question_ms, agent_id, workflow_id },
    ...checkpoints.steeringOf({ ...terms, answer_schema: question_schema }, about),
  })
  await store.ask(tx, tenant_id, id, question_id)
  return question_id
}

const question_schema = {
  type: 'object',
  properties: {
    outcome: { type: 'string', title: 'What became of it', enum: [...outcomes] },
    result: {
      type: 'string',
      title: 'Reference',
      description: 'Such as the number that the target gave it.',
    },
  },
  required: ['outcome'],
}

/** Its timeout is days away: the worker finds it by looking. */
const no_worker = { jobs: { wake() {} } }

function questionOf({
  id,
  type,
  key,
  held_by,
}: Pick<WholeEffect, 'id' | 'type' | 'key' | 'held_by'>): string {
  return `The agent ${held_by} began the effect ${id} and did not report before its lease ran out.

- Type: ${codeOf(type)}
- Key: ${codeOf(key)}

Look at its target, and answer what became of it: succeeded, failed, or retry when it did not happen and may be done now. Reject when you cannot tell: an admin can still resolve it.`
}

/** As code in Markdown, whatever it holds. */
function codeOf(text: string): string {
  return `\`${text.replace(/[`\s]+/g, ' ')}\``
}

/** One bounded step: removes payload and result of effects past their retention. The pair, its hash and the outcome stay. */
export function forget(db: Db, now: Millis, lists = new DueLists(db.clock)): Promise<Touched> {
  return lists.of('effects.forgetting').each(
    (from) => store.tenantsForgetting(db, now, from, sweep_rows_max),
    sweep_rows_max,
    (due) => db.write(upkeep, (tx) => forgetOf(tx, due)),
  )
}

async function forgetOf(tx: Tx, due: Due): Promise<number> {
  const { tenant_id } = due
  const effects = await store.forget(tx, due, sweep_rows_max, sweep_bytes_max)
  for (const { id, checkpoint_id, kept_bytes } of effects) {
    tx.stores(tenant_id, -kept_bytes)
    if (checkpoint_id !== null)
      tx.stores(tenant_id, -(await checkpoints.forget(tx, tenant_id, checkpoint_id, id)))
  }
  return effects.length
}
