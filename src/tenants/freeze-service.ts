// A tenant is frozen and resumed. While it is frozen its agents change nothing and its jobs wait. What runs out is moved
// before agents and jobs go on.

import './errors.ts'
import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Jobs, KeyCache } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import * as freeze_store from './freeze-store.ts'
import { type MoveDependencies, moveStep } from './move-service.ts'
import { beginPause, continueLater } from './pause.ts'
import * as store from './store.ts'
import { inMemory, requireOwn, type TenantView, type ViewDependencies, view } from './view.ts'

/** Of any but a very large tenant that is all. */
const rest_steps_max = limit(
  'tenants.resume_rest_steps',
  64,
  'entries',
  'Steps that a resume makes to finish the previous one, when the tenant was frozen again meanwhile. Past it 503.',
)

interface ResumeDependencies extends MoveDependencies {
  jobs: Pick<Jobs, 'wake' | 'pauseOrResume'>
}

interface FreezeDependencies extends ViewDependencies, ResumeDependencies {}

/** A tenant that is frozen stays as it is. Throws TENANT_PENDING_DELETION. */
export async function freeze(
  db: Db,
  dependencies: FreezeDependencies,
  caller: AdminCaller,
  tenant_id: string,
  reason: string | null,
): Promise<TenantView> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, tenant_id, db.clock.now())
  return db.write(tenant_id, async (tx) => {
    await freezeIn(tx, dependencies, byCaller(caller), reason)
    return view(tx, tenant_id, dependencies, tx.now, counted)
  })
}

/** The tenant, and who freezes or resumes it. */
interface Asked {
  tenant_id: string
  cause: Cause
  /** The freeze that a resume is for; absent or null: whichever holds. */
  frozen_at?: Millis | null
}

/**
 * True when it was not frozen before. The freeze that it leaves as it is holds until this transaction ends: a resume that is under
 * way is waited for, and what it ends begins again. Throws TENANT_PENDING_DELETION.
 */
export async function freezeIn(
  tx: Tx,
  dependencies: { keys: { cache: Pick<KeyCache, 'clear'> }; jobs: Pick<Jobs, 'pauseOrResume'> },
  { tenant_id, cause }: Asked,
  reason: string | null,
): Promise<boolean> {
  for (;;) {
    const frozen = await freeze_store.freeze(tx, tenant_id, reason)
    if (frozen) {
      await beginPause(tx, dependencies, frozen)
      const about = { tenant_id, cause, subject_id: tenant_id }
      await journal.emit(tx, events['tenant.frozen'], { ...about, data: { reason } })
      tx.afterCommit(() => dependencies.keys.cache.clear(tenant_id))
      return true
    }
    await requireActive(tx, tenant_id)
    const held = await freeze_store.lock(tx, tenant_id)
    if (held && holdsSince(held) !== null) return false
  }
}

/** Null while it is being resumed, and was not frozen again. */
function holdsSince({ frozen_at, resumed_at, frozen_again_at }: freeze_store.Frozen): Millis | null {
  return resumed_at === null ? frozen_at : frozen_again_at
}

async function requireActive(tx: Tx, tenant_id: string): Promise<void> {
  const tenant = await store.find(tx, tenant_id)
  if (!tenant) throw new ApiError('UNAUTHORIZED')
  if (tenant.status !== 'active') throw new ApiError('TENANT_PENDING_DELETION')
}

/**
 * A tenant that is not frozen stays as it is. `frozen_at` is still there in the answer when so much is to be moved that it is
 * done in the background. With the `frozen_at` of a freeze no other one is ended. Throws TENANT_PENDING_DELETION, INVALID_STATE
 * while another freeze holds, and UNAVAILABLE when the resume before this one takes long.
 */
export async function resume(
  db: Db,
  dependencies: FreezeDependencies,
  caller: AdminCaller,
  tenant_id: string,
  frozen_at: Millis | null = null,
): Promise<TenantView> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, tenant_id, db.clock.now())
  return resumeAll(db, dependencies, { ...byCaller(caller), frozen_at }, (tx) =>
    view(tx, tenant_id, dependencies, tx.now, counted),
  )
}

/** Returns what `answer` reads in the transaction that resumes. Throws as `resume` does. */
export async function resumeAll<T extends {}>(
  db: Db,
  dependencies: ResumeDependencies,
  asked: Asked,
  answer: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { tenant_id } = asked
  for (let step = 0; step <= rest_steps_max; step++) {
    const resumed = await db.write(tenant_id, async (tx) =>
      (await beginResume(tx, dependencies, asked)) ? answer(tx) : null,
    )
    if (resumed !== null) return resumed
    await db.write(upkeep, (tx) => continueResume(tx, dependencies, tenant_id))
  }
  throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1 })
}

/** False when the resume before it has to end first: the tenant was frozen again meanwhile, and both times are added. */
async function beginResume(
  tx: Tx,
  dependencies: ResumeDependencies,
  { tenant_id, cause, frozen_at = null }: Asked,
): Promise<boolean> {
  const found = await freeze_store.lock(tx, tenant_id)
  if (!found) {
    await requireActive(tx, tenant_id)
    return true
  }
  const holds_since = holdsSince(found)
  if (holds_since === null) return true // it is being resumed
  if (frozen_at !== null && frozen_at !== holds_since)
    throw new ApiError('INVALID_STATE', { details: { frozen_at: iso(holds_since) } })
  if (found.resumed_at !== null) return false
  // A clock that was set back moves nothing to an earlier time.
  const resumed = await freeze_store.resume(tx, tenant_id, Math.max(tx.now, found.frozen_at))
  if (!resumed) throw new ApiError('TENANT_PENDING_DELETION')
  const data = { frozen_ms: resumed.resumed_at! - resumed.frozen_at }
  await journal.emit(tx, events['tenant.resumed'], { tenant_id, cause, subject_id: tenant_id, data })
  await moveAndFollow(tx, dependencies, tenant_id, resumed)
  return true
}

async function continueResume(tx: Tx, dependencies: ResumeDependencies, tenant_id: string): Promise<void> {
  const found = await freeze_store.lock(tx, tenant_id)
  if (found && found.resumed_at !== null) await moveAndFollow(tx, dependencies, tenant_id, found)
}

async function moveAndFollow(
  tx: Tx,
  dependencies: ResumeDependencies,
  tenant_id: string,
  frozen: freeze_store.Frozen,
): Promise<void> {
  const moved = await moveStep(tx, dependencies, tenant_id, frozen)
  if (!moved) return continueLater(tx, dependencies, tenant_id)
  await beginPause(tx, dependencies, moved)
  tx.afterCommit(() => dependencies.jobs.wake(tx.now))
}

function byCaller(caller: AdminCaller): Asked {
  return { tenant_id: caller.tenant_id, cause: causeOf(caller) }
}
