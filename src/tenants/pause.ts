// The jobs of a tenant are paused with its deletion or its freeze, and resumed afterwards. The freeze leaves some kinds out.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Jobs } from '../contract/dependencies.ts'
import { eachInTurn } from '../db/backoff.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as jobs from '../jobs/service.ts'
import type { Frozen } from './freeze-store.ts'
import { type MoveDependencies, moveStep } from './move-service.ts'
import * as store from './pause-store.ts'
import type { TenantRow } from './tenant.ts'

const pause_rows_max = limit(
  'tenants.pause_rows',
  500,
  'rows',
  'Jobs of a tenant that one transaction pauses or resumes.',
)

const pause_chunks_max = limit(
  'tenants.pause_chunks',
  8,
  'entries',
  'Transactions in one step that pauses or resumes the jobs of tenants.',
)

const pause_tenants_max = limit(
  'tenants.pause_tenants',
  8,
  'entries',
  'Tenants in one step that pauses or resumes the jobs of tenants.',
)

interface PauseDependencies {
  jobs: Pick<Jobs, 'pauseOrResume'>
}

/** The first part of a tenant's jobs follows its status at once; for nearly every tenant these are all. */
export async function beginPause(tx: Tx, dependencies: PauseDependencies, tenant: TenantRow): Promise<void> {
  const { tenant_id } = tenant
  if (await jobs.setPaused(tx, tenant_id, pausedOf(tenant), pause_rows_max)) return
  await continueLater(tx, dependencies, tenant_id)
}

/** The rest of a pause, or of a resume, is done in steps. */
export async function continueLater(
  tx: Tx,
  dependencies: PauseDependencies,
  tenant_id: string,
): Promise<void> {
  await store.markPausePending(tx, tenant_id)
  tx.afterCommit(() => dependencies.jobs.pauseOrResume())
}

/** The jobs of the tenant that are to be paused. */
function pausedOf({ status, frozen_at }: Pick<TenantRow, 'status' | 'frozen_at'>): jobs.Paused {
  if (status !== 'active') return 'all'
  return frozen_at === null ? 'none' : 'frozen'
}

/**
 * A bounded part of the jobs that do not follow their tenant's status yet, for tenants after this one. Returns the id
 * after which to continue, or null when no tenant is left. Those that fail keep no other from its turn: `onError` gets the failures,
 * and those behind them are looked at while `goesOn`. Where all fail, it ends with null: the next look tries them again.
 */
export async function pauseOrResumeStep(
  db: Db,
  dependencies: MoveDependencies,
  after_tenant_id: string,
  onError = raise,
  goesOn = () => true,
): Promise<string | null> {
  for (let after = after_tenant_id; ; ) {
    const pending = await store.pausePending(db, after, pause_tenants_max)
    const [last, is_end] = [pending.at(-1)?.tenant_id ?? '', pending.length < pause_tenants_max]
    if (await pauseEach(db, dependencies, pending, onError)) return is_end ? '' : last
    // Those before `after_tenant_id` may have more to do.
    if (is_end) return after_tenant_id === '' ? null : ''
    if (!goesOn()) return last
    after = last
  }
}

/** A turn of each, and further ones of those that have more to do. False when none has had one. */
async function pauseEach(
  db: Db,
  dependencies: MoveDependencies,
  tenants: readonly { tenant_id: string }[],
  onError: (error: unknown) => void,
): Promise<boolean> {
  const turns = [...tenants]
  let failed = 0
  for (let chunk = 0; chunk < pause_chunks_max && turns.length > 0; chunk++) {
    const turn = turns.shift()!
    try {
      if (!(await pauseChunk(db, dependencies, turn.tenant_id))) turns.push(turn)
    } catch (error) {
      failed += 1
      onError(error)
    }
  }
  return failed < tenants.length
}

function raise(error: unknown): void {
  throw error
}

/** All steps of one tenant. */
export async function pauseOrResumeAll(
  db: Db,
  dependencies: MoveDependencies,
  tenant_id: string,
): Promise<void> {
  while (!(await pauseChunk(db, dependencies, tenant_id)));
}

/** True when nothing of the tenant is left to do. */
function pauseChunk(db: Db, dependencies: MoveDependencies, tenant_id: string): Promise<boolean> {
  return db.write(upkeep, async (tx) => {
    const locked = await store.lockPausePending(tx, tenant_id)
    if (!locked) return true
    const tenant = isMoving(locked) ? await moveStep(tx, dependencies, tenant_id, locked) : locked
    if (!tenant) return false
    const all = await jobs.setPaused(tx, tenant_id, pausedOf(tenant), pause_rows_max)
    if (all) await store.endPausePending(tx, tenant_id)
    return all
  })
}

/** Deadlines come first: jobs follow when all of them have been moved. */
function isMoving<T extends { resumed_at: Millis | null }>(tenant: T): tenant is T & Frozen {
  return tenant.resumed_at !== null
}

/** Due jobs of tenants that are deleted or frozen were found: they were enqueued afterwards. */
export async function pauseStragglers(
  db: Db,
  dependencies: PauseDependencies,
  tenant_ids: readonly string[],
): Promise<void> {
  await eachInTurn(tenant_ids, async (tenant_id) => {
    if (await db.write(upkeep, (tx) => store.markStragglers(tx, tenant_id))) dependencies.jobs.pauseOrResume()
  })
}
