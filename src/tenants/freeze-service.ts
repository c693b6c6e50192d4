// A tenant is frozen and resumed. While it is frozen its agents change nothing and its jobs wait. What runs out is moved
// before agents and jobs go on.

import './errors.ts'
import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Jobs } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
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
  'Steps that a resume makes to end the one before it, when the tenant was frozen again meanwhile. Past it 503.',
)

interface FreezeDependencies extends ViewDependencies, MoveDependencies {
  jobs: Pick<Jobs, 'wake' | 'pauseOrResume'>
}

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
    const frozen = await freeze_store.freeze(tx, tenant_id, reason)
    if (frozen) {
      await beginPause(tx, dependencies, frozen)
      await journal.emit(tx, events['tenant.frozen'], { ...aboutOf(caller), data: { reason } })
      tx.afterCommit(() => dependencies.keys.cache.clear(tenant_id))
    } else await requireActive(tx, tenant_id)
    return view(tx, tenant_id, dependencies, tx.now, counted)
  })
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
  for (let step = 0; step <= rest_steps_max; step++) {
    const resumed = await db.write(tenant_id, async (tx) =>
      (await beginResume(tx, dependencies, caller, frozen_at))
        ? view(tx, tenant_id, dependencies, tx.now, counted)
        : null,
    )
    if (resumed) return resumed
    await db.write(upkeep, (tx) => continueResume(tx, dependencies, tenant_id))
  }
  throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1 })
}

/** False when the resume before it has to end first: the tenant was frozen again meanwhile, and both times are added. */
async function beginResume(
  tx: Tx,
  dependencies: FreezeDependencies,
  caller: AdminCaller,
  frozen_at: Millis | null,
): Promise<boolean> {
  const { tenant_id } = caller
  const found = await freeze_store.lock(tx, tenant_id)
  if (!found) {
    await requireActive(tx, tenant_id)
    return true
  }
  const holds_since = found.resumed_at === null ? found.frozen_at : found.frozen_again_at
  if (holds_since === null) return true // it is being resumed
  if (frozen_at !== null && frozen_at !== holds_since)
    throw new ApiError('INVALID_STATE', { details: { frozen_at: iso(holds_since) } })
  if (found.resumed_at !== null) return false
  // A clock that was set back moves nothing to an earlier time.
  const resumed = await freeze_store.resume(tx, tenant_id, Math.max(tx.now, found.frozen_at))
  if (!resumed) throw new ApiError('TENANT_PENDING_DELETION')
  const data = { frozen_ms: resumed.resumed_at! - resumed.frozen_at }
  await journal.emit(tx, events['tenant.resumed'], { ...aboutOf(caller), data })
  await moveAndFollow(tx, dependencies, tenant_id, resumed)
  return true
}

async function continueResume(tx: Tx, dependencies: FreezeDependencies, tenant_id: string): Promise<void> {
  const found = await freeze_store.lock(tx, tenant_id)
  if (found && found.resumed_at !== null) await moveAndFollow(tx, dependencies, tenant_id, found)
}

async function moveAndFollow(
  tx: Tx,
  dependencies: FreezeDependencies,
  tenant_id: string,
  frozen: freeze_store.Frozen,
): Promise<void> {
  const moved = await moveStep(tx, dependencies, tenant_id, frozen)
  if (!moved) return continueLater(tx, dependencies, tenant_id)
  await beginPause(tx, dependencies, moved)
  tx.afterCommit(() => dependencies.jobs.wake(tx.now))
}

function aboutOf(caller: AdminCaller) {
  const { tenant_id } = caller
  return { tenant_id, cause: causeOf(caller), subject_id: tenant_id }
}
