// The jobs of a tenant are paused with its deletion and resumed with its restoration.

import { limit } from '../base/limit.ts'
import type { Jobs } from '../contract/dependencies.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as jobs from '../jobs/service.ts'
import * as store from './pause-store.ts'
import type { TenantRow } from './tenant.ts'

const pause_rows_max = limit(
  'tenants.pause_rows',
  500,
  'rows',
  'Jobs of a deleted or restored tenant that one transaction pauses or resumes.',
)

const pause_chunks_max = limit(
  'tenants.pause_chunks',
  8,
  'entries',
  'Transactions in one step that pauses or resumes the jobs of deleted or restored tenants.',
)

const pause_tenants_max = limit(
  'tenants.pause_tenants',
  8,
  'entries',
  'Tenants in one step that pauses or resumes the jobs of deleted or restored tenants.',
)

/** The first part of a tenant's jobs follows its status at once; for nearly every tenant these are all. */
export async function beginPause(
  tx: Tx,
  dependencies: { jobs: Pick<Jobs, 'pauseOrResume'> },
  { tenant_id, status }: TenantRow,
): Promise<void> {
  if (await jobs.setPaused(tx, tenant_id, status !== 'active', pause_rows_max)) return
  await store.markPausePending(tx, tenant_id)
  tx.afterCommit(() => dependencies.jobs.pauseOrResume())
}

/**
 * A bounded part of the jobs that do not follow their tenant's status yet, for tenants after this one. Returns the id
 * after which to continue, or null when no tenant is left.
 */
export async function pauseOrResumeStep(db: Db, after_tenant_id: string): Promise<string | null> {
  const pending = await store.pausePending(db, after_tenant_id, pause_tenants_max)
  const last = pending.at(-1)
  if (!last) return after_tenant_id === '' ? null : ''
  const next = pending.length < pause_tenants_max ? '' : last.tenant_id
  for (let chunk = 0; chunk < pause_chunks_max && pending.length > 0; chunk++) {
    const turn = pending.shift()!
    if (!(await pauseChunk(db, turn.tenant_id))) pending.push(turn)
  }
  return next
}

/** True when nothing of the tenant is left to do. */
function pauseChunk(db: Db, tenant_id: string): Promise<boolean> {
  return db.write(upkeep, async (tx) => {
    const locked = await store.lockPausePending(tx, tenant_id)
    if (!locked) return true
    const all = await jobs.setPaused(tx, tenant_id, locked.status !== 'active', pause_rows_max)
    if (all) await store.endPausePending(tx, tenant_id)
    return all
  })
}

/** Due jobs of tenants that are pending deletion were found: they were enqueued after the deletion. */
export async function pauseStragglers(
  db: Db,
  dependencies: { jobs: Pick<Jobs, 'pauseOrResume'> },
  tenant_ids: readonly string[],
): Promise<void> {
  for (const tenant_id of tenant_ids) {
    if (await db.write(upkeep, (tx) => store.markStragglers(tx, tenant_id))) dependencies.jobs.pauseOrResume()
  }
}
