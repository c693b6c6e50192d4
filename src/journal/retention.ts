// Removes events once they are as old as the plan allows, or it allows no more of them: the oldest first, so that the rest
// has no gaps.

import { day_ms, hour_ms, type Millis, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Plans } from '../contract/dependencies.ts'
import type { Follows } from '../contract/feature.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as store from './retention-store.ts'

const removed_max = limit(
  'journal.removed',
  500,
  'rows',
  'Old events of a tenant that are removed in one transaction, so that requests wait for no more than these.',
)
const tenants_a_step_max = limit(
  'journal.tenants_a_step',
  16,
  'entries',
  'Tenants whose old events one step removes.',
)
/** Between two looks at the same tenant: at least, so that many young tenants cost little. */
const look_ms_min = limit(
  'journal.look_ms_min',
  hour_ms,
  'milliseconds',
  'The shortest time between two looks for old events of a tenant, once there are no more of them.',
)
/** At most, so that a change of its plan is noticed. */
const look_ms_max = limit(
  'journal.look_ms_max',
  day_ms,
  'milliseconds',
  'The longest time between two looks for old events of a tenant: after a change of its plan they are removed within this time.',
)

const behind_ms = limit(
  'journal.behind_ms',
  minute_ms,
  'milliseconds',
  'The time to the next look while the seal, or anything else that follows the journal, still needs events that are to be removed.',
)

const events_a_look = limit(
  'journal.events_a_look',
  1_000,
  'rows',
  'Events of a tenant between two looks for too many of them: a tenant may have this many more than its plan allows.',
)

/** When the events of a tenant are looked at unless they are already due before; at once when it may have too many. */
export function nextLookAfter(
  last_seq: number,
  seq: number,
  now: Millis,
): { look_at: Millis; at_once: boolean } {
  const at_once = Math.floor(seq / events_a_look) > Math.floor(last_seq / events_a_look)
  return { look_at: at_once ? now : now + look_ms_min, at_once }
}

interface Removing {
  db: Db
  plans: Plans
  follows: readonly Follows[]
  /** One tenant failed. Its turn comes again behind the others. */
  onError: (error: unknown) => void
}

/** One bounded step. True in `more` when another would find something. Throws when the due tenants cannot be read. */
export async function removeOld(removing: Removing): Promise<{ removed: number; more: boolean }> {
  const { db, plans, follows, onError } = removing
  const due = await store.tenantsDue(db, db.clock.now(), tenants_a_step_max)
  let [removed, failed, more] = [0, 0, false]
  for (const { tenant_id } of due) {
    try {
      const step = await db.write(upkeep, (tx) => removeOldOf(tx, plans, follows, tenant_id))
      removed += step.removed
      more ||= step.more
    } catch (error) {
      failed += 1
      onError(error)
      await db.write(upkeep, (tx) => store.lockDue(tx, tenant_id)).catch(onError)
    }
  }
  // Where all of them fail, others wait for the next turn: these would only fail again and again.
  const is_full = due.length === tenants_a_step_max && failed < due.length
  return { removed, more: more || is_full }
}

async function removeOldOf(
  tx: Tx,
  plans: Plans,
  follows: readonly Follows[],
  tenant_id: string,
): Promise<{ removed: number; more: boolean }> {
  const head = await store.lockDue(tx, tenant_id)
  if (!head) return { removed: 0, more: false }
  const { kept_ms, kept_max } = keptOf(plans, head.plan)
  const oldest = await store.oldestOf(tx, tenant_id, removed_max)
  const young = oldest.findIndex(({ seq, at }) => at > tx.now - kept_ms && seq > head.seq - kept_max)
  const is_full = young === -1 && oldest.length === removed_max
  const last_old = oldest.at(young === -1 ? oldest.length - 1 : young - 1)
  const old_seq = young === 0 ? 0 : (last_old?.seq ?? 0)
  const seq = Math.min(old_seq, await usedUpTo(tx, follows, tenant_id))
  const first_seq = oldest[0]?.seq ?? 0
  const removed = seq >= first_seq && seq > 0 ? await store.removeUpTo(tx, tenant_id, seq) : 0
  const is_behind = seq < old_seq
  const more = is_full && !is_behind
  const left = oldest.find((event) => event.seq > seq)
  const look_at = is_behind ? tx.now + behind_ms : nextLook(tx.now, kept_ms, left)
  if (!more) await store.lookAgain(tx, tenant_id, look_at)
  return { removed, more }
}

/** How long events of this plan are kept, and how many. */
function keptOf(plans: Plans, plan: string): { kept_ms: Millis; kept_max: number } {
  const { event_days = null, events_kept = null } = plans[plan] ?? {}
  return {
    kept_ms: (event_days ?? Number.POSITIVE_INFINITY) * day_ms,
    kept_max: events_kept ?? Number.POSITIVE_INFINITY,
  }
}

/** When the oldest that is left is old; null when none is. */
function nextLook(now: Millis, kept_ms: number, oldest: { at: Millis } | undefined): Millis | null {
  if (!oldest) return null
  return Math.max(now + look_ms_min, Math.min(oldest.at + kept_ms, now + look_ms_max))
}

/** Features that follow the journal may still need later ones. */
async function usedUpTo(tx: Tx, follows: readonly Follows[], tenant_id: string): Promise<number> {
  let seq = Number.MAX_SAFE_INTEGER
  for (const follow of follows) seq = Math.min(seq, (await follow.usedUpTo?.(tx, tenant_id)) ?? seq)
  return seq
}
