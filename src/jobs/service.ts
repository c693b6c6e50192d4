// Jobs as features use them.

import type { Millis } from '../base/clock.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Tx } from '../db/db.ts'
import { countDue } from './due-store.ts'
import { type AttemptResult, idle_at, type JobKey, type LeasedJob, nextAttemptAt } from './job.ts'
import type { JobKind, SendingKind } from './kind.ts'
import { moveDue } from './move-store.ts'
import { dueOverview } from './overview-store.ts'
import { type Paused, setPaused } from './pause-store.ts'
import * as store from './store.ts'
import * as wake from './wake-store.ts'

export const { attempts, cancel, cancelTraced, changeEvent, complete, retarget } = store
export const { lock } = wake
export { countDue, dueOverview, idle_at, moveDue, type Paused, setPaused }

interface Wakeable {
  wake(due_at: Millis, at_once?: boolean): void
}

/** Adds a job and, once that is durable, wakes the worker for it. */
export async function enqueue(tx: Tx, wakeable: Wakeable, job: store.NewJob): Promise<void> {
  await store.enqueue(tx, job)
  wakeAfter(tx, wakeable, job.next_at, job.kind.starts_at_once)
}

/** Moves a job to another time. False when it is gone. */
export async function reschedule(
  tx: Tx,
  wakeable: Wakeable,
  job: store.Rescheduled,
  again_at: Millis = job.next_at,
): Promise<boolean> {
  const rescheduled = await store.reschedule(tx, job, again_at)
  if (rescheduled) tx.afterCommit(() => wakeable.wake(job.next_at))
  return rescheduled
}

/**
 * Sets the next step of a job that is done in steps, at `next_at`; `tried`: the attempts already made. False when the
 * lease was lost, or when this was done before: a transaction whose answer was lost may run again.
 */
export async function repeat(
  tx: Tx,
  wakeable: Wakeable,
  job: LeasedJob,
  next_at: Millis,
  tried?: store.Tried,
): Promise<boolean> {
  const repeated = await store.repeat(tx, job, next_at, tried)
  if (repeated) wakeAfter(tx, wakeable, next_at, job.starts_at_once && tried === undefined)
  return repeated
}

/** Changes the time of the next step that `repeat` has set in this transaction. */
export async function setNext(tx: Tx, wakeable: Wakeable, job: LeasedJob, next_at: Millis): Promise<void> {
  await store.setNext(tx, job, next_at)
  wakeAfter(tx, wakeable, next_at, job.starts_at_once)
}

/** `at_once`: the job waits for no tick. One that is idle wakes nobody. */
function wakeAfter(tx: Tx, wakeable: Wakeable, due_at: Millis, at_once: boolean | undefined): void {
  if (due_at !== idle_at) tx.afterCommit(() => wakeable.wake(due_at, at_once))
}

/**
 * Makes those that are idle due now. Their rows are locked in any case: a settlement that is about to make one idle comes first,
 * or looks for work after this transaction.
 */
export async function wakeIdle(
  tx: Tx,
  wakeable: Wakeable,
  tenant_id: string,
  { kind, source_ids }: { kind: JobKind; source_ids: readonly string[] },
): Promise<void> {
  if (source_ids.length === 0) return
  await wake.wakeIdle(tx, tenant_id, { kind, source_ids, idle_at })
  tx.afterCommit(() => wakeable.wake(tx.now))
}

/**
 * Ends an attempt: the job is tried again later, or is done. `lost`: the lease was lost, and the result does not count.
 * The first statement of a settlement: the job's row comes before all others, as in a lease, or the two would deadlock.
 */
export async function endAttempt(
  tx: Tx,
  wakeable: Wakeable,
  kind: SendingKind,
  job: LeasedJob,
  result: AttemptResult,
): Promise<'done' | 'retrying' | 'lost'> {
  const next_at = nextAttemptAt(job, result, kind.attempts_max, kind.attempt_offsets_ms)
  const held = await (next_at === null ? store.complete(tx, job) : store.retry(tx, job, next_at))
  const logged = await store.log(tx, kind, job, result)
  if (!held) {
    if (logged) await kind.uncounted?.(tx, job, result)
    return 'lost'
  }
  if (next_at === null) return 'done'
  tx.afterCommit(() => wakeable.wake(next_at))
  return 'retrying'
}

export function keyOf(
  { tenant_id }: Pick<TenantFacts, 'tenant_id'>,
  kind: JobKind,
  source_id: string,
): JobKey {
  return { tenant_id, kind: kind.name, source_id }
}
