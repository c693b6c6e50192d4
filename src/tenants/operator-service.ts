// The operator's work on a tenant, without its keys. Nodes that serve it learn of it within a second.

import type { Dependencies } from '../contract/dependencies.ts'
import { operator_cause } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import { freezeIn, resumeAll } from './freeze-service.ts'
import { pauseOrResumeAll } from './pause.ts'
import { signalChange } from './signal.ts'
import * as store from './store.ts'
import { type Shown, type TenantView, view } from './view.ts'

/** A command remembers no keys. */
const no_cache = { clear() {} }

const no_jobs = { wake() {}, pauseOrResume() {} }

/** The key before ends at once. Returns the new one, which is shown here alone. */
export async function resetAdminKey(db: Db, tenant_id: string): Promise<string> {
  const subject = { tenant_id, kind: 'admin', subject: '' } as const
  const { key } = await credentials.endKeys(db, no_cache, tenant_id, async (tx, ending) => {
    await store.markRotated(tx, tenant_id)
    const rotation = await credentials.rotate(tx, ending, subject, 0)
    const about = { tenant_id, cause: operator_cause, subject_id: tenant_id }
    await journal.emit(tx, events['tenant.key_rotated'], { ...about, data: { grace_seconds: 0 } })
    return rotation
  })
  await signalChange(db, tenant_id)
  return key
}

/** Every key of the tenant ends, of every kind. Returns how many. */
export async function revokeKeys(
  db: Db,
  endApprovalKeys: (tx: Tx, tenant_id: string) => Promise<number>,
  tenant_id: string,
): Promise<number> {
  let revoked = 0
  for (;;) {
    const ended = await db.write(tenant_id, async (tx) => {
      const others = await endApprovalKeys(tx, tenant_id)
      const counts = await credentials.endSome(tx, tenant_id)
      const keys = counts.admin + counts.agent + counts.approval
      const about = { tenant_id, cause: operator_cause, subject_id: tenant_id }
      if (keys > 0) await journal.emit(tx, events['tenant.keys_revoked'], { ...about, data: counts })
      return { keys, all: keys + others }
    })
    if (ended.all === 0) break
    revoked += ended.keys
  }
  if (revoked > 0) await signalChange(db, tenant_id)
  return revoked
}

/** True when it was not frozen before. Throws TENANT_PENDING_DELETION. */
export async function freezeByOperator(db: Db, tenant_id: string, reason: string | null): Promise<boolean> {
  const dependencies = { keys: { cache: no_cache }, jobs: no_jobs }
  const frozen = await db.write(tenant_id, (tx) =>
    freezeIn(tx, dependencies, { tenant_id, cause: operator_cause }, reason),
  )
  await signalChange(db, tenant_id)
  return frozen
}

/** With all that is moved by the frozen time, and without what other tenants have pending. Throws TENANT_PENDING_DELETION. */
export async function resumeByOperator(
  db: Db,
  { deadlines }: Pick<Dependencies, 'deadlines'>,
  tenant_id: string,
): Promise<void> {
  const dependencies = { deadlines, keys: { cache: no_cache }, jobs: no_jobs }
  await resumeAll(db, dependencies, { tenant_id, cause: operator_cause }, async () => true)
  await pauseOrResumeAll(db, dependencies, tenant_id)
  await signalChange(db, tenant_id)
}

/** As the database has it: without what nodes have counted and not written yet. */
export function describe(db: Db, dependencies: Shown, tenant_id: string): Promise<TenantView> {
  const now = db.clock.now()
  return db.read(tenant_id, async (q) => {
    const calls = await quotas.callsWritten(q, tenant_id, now)
    const written: quotas.InMemory = { calls, storedBytes: (counter) => counter.used }
    return view(q, tenant_id, dependencies, now, written)
  })
}
