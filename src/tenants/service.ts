// Tenants: one function per verb. Their jobs are paused in pause.ts, callbacks are signed in signing.ts.

import './errors.ts'
import * as audit from '../audit/service.ts'
import { iso } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { newSigningSecret } from '../base/seal.ts'
import type { AdminCaller, TenantFacts } from '../contract/caller.ts'
import type { Jobs, Keys, Secrets } from '../contract/dependencies.ts'
import { type Cause, causeOf, operator_cause } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import * as lookups from '../lookups/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import * as freezes from './freeze-service.ts'
import * as moves from './move-service.ts'
import * as operator from './operator-service.ts'
import * as pauses from './pause.ts'
import * as setting_store from './setting-store.ts'
import { FreezeReason, OwnerEmail, TenantName } from './shapes.ts'
import { signalChange } from './signal.ts'
import * as signing from './signing.ts'
import * as store from './store.ts'
import {
  frozenSince,
  hasControls,
  nameKey,
  previous_secret_ms,
  purge_grace_ms,
  type TenantRow,
} from './tenant.ts'
import {
  inMemory,
  read,
  requireOwn,
  requireOwnOrMe,
  type Shown,
  type TenantView,
  type ViewDependencies,
  view,
} from './view.ts'

export type { Frozen } from './freeze-store.ts'
export type { FrozenDeadlines } from './move-service.ts'
export { FreezeReason, frozenSince, hasControls, nameKey, OwnerEmail, read, requireOwnOrMe, TenantName }
export const { freeze, resume } = freezes
export const { deadlineAt, deadlineNow, frozenDeadlines, lockFreeze } = moves
export const { describe, freezeByOperator, resetAdminKey, resumeByOperator, revokeKeys } = operator
export const { pauseOrResumeStep, pauseStragglers } = pauses
export const { addEventNamespace, lockEventNamespaces, removeEventNamespace } = setting_store
export const { signedCallback, signingSecrets } = signing
export const { all, find, plans: plansInUse } = store

/** Last of a purge. The name of the tenant is free with the commit. */
export async function finishPurge(tx: Tx, tenant_id: string): Promise<void> {
  const removed = await store.remove(tx, tenant_id)
  if (removed) await lookups.remove(tx, tenant_id, 'name', nameKey(removed.name))
}

/** The facts of a tenant whose due work acts for it; null when it is gone. */
export async function facts(tx: Tx, tenant_id: string): Promise<TenantFacts | null> {
  const tenant = await store.find(tx, tenant_id)
  if (!tenant) return null
  const { plan, status, storage_bytes_max } = tenant
  return { tenant_id, plan, status, storage_bytes_max, stored: await quotas.storedCounter(tx, tenant_id) }
}

export interface Created extends TenantView {
  admin_key: string
  signing_secret: string
}

interface CreateDependencies extends Shown {
  keys: { secrets: Secrets }
}

/** By the operator, also while sign-up is closed, unless another made it. Throws TENANT_NAME_TAKEN. `name` is already trimmed. */
export async function create(
  tx: Tx,
  { plans, keys, counts }: CreateDependencies,
  input: { name: string; owner_email: string; plan: string },
  cause: Cause,
): Promise<Created> {
  quotas.requireDisk(tx)
  const tenant_id = newId('ten', tx.now)
  const signing_secret = newSigningSecret()
  const is_free = await lookups.claim(tx, tenant_id, 'name', nameKey(input.name))
  if (!is_free) throw new ApiError('TENANT_NAME_TAKEN')
  const sealer = await keys.secrets.sealerIn(tx)
  const sealed = sealer.seal(signing.signingContext(tenant_id), signing_secret)
  await store.insert(tx, { ...input, tenant_id, signing_secret: sealed })
  await quotas.create(tx, tenant_id)
  await audit.begin(tx, tenant_id)
  const admin_key = await credentials.issue(tx, adminOf(tenant_id))
  const about = { tenant_id, cause, subject_id: tenant_id }
  await journal.emit(tx, events['tenant.created'], { ...about, data: { plan: input.plan } })
  const tenant: TenantRow = {
    ...{ ...input, tenant_id, status: 'active', purge_at: null },
    ...{ storage_bytes_max: null, created_at: tx.now },
    ...{ frozen_at: null, frozen_reason: null, resumed_at: null, frozen_again_at: null },
  }
  const nothing = { calls: 0, storedBytes: () => 0 }
  const quota = await quotas.usage(tx, tenant, nothing, { plans, quotas: counts.quotas })
  return { tenant, admin_key, signing_secret, quota }
}

/** From now on only the admin key may read, delete again or restore; the purge comes 30 days later. A second deletion changes nothing. */
export function remove(
  db: Db,
  dependencies: { keys: Pick<Keys, 'cache'>; jobs: Pick<Jobs, 'pauseOrResume'> },
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantRow> {
  requireOwn(caller, tenant_id)
  return db.write(tenant_id, async (tx) => {
    for (;;) {
      const tenant = await store.markDeleted(tx, caller.tenant_id, tx.now + purge_grace_ms)
      if (tenant) return deleted(tx, dependencies, caller, tenant)
      // A restore that is under way is waited for. The purge comes when the first deletion said.
      const before = await store.lockDeleted(tx, caller.tenant_id)
      if (before) return before
      if (!(await store.find(tx, caller.tenant_id))) throw new ApiError('UNAUTHORIZED')
    }
  })
}

async function deleted(
  tx: Tx,
  dependencies: { keys: Pick<Keys, 'cache'>; jobs: Pick<Jobs, 'pauseOrResume'> },
  caller: AdminCaller,
  tenant: TenantRow,
): Promise<TenantRow> {
  await pauses.beginPause(tx, dependencies, tenant)
  const data = { purge_at: iso(tenant.purge_at!) }
  await journal.emit(tx, events['tenant.deleted'], { ...aboutOf(caller), data })
  tx.afterCommit(() => dependencies.keys.cache.clear(caller.tenant_id))
  return tenant
}

function aboutOf(caller: AdminCaller) {
  const { tenant_id } = caller
  return { tenant_id, cause: causeOf(caller), subject_id: tenant_id }
}

interface ChangeDependencies extends ViewDependencies {
  keys: Pick<Keys, 'cache' | 'secrets'>
  jobs: Pick<Jobs, 'wake' | 'pauseOrResume'>
}

/** Throws INVALID_STATE when it is active, or when its purge may have begun. */
export async function restore(
  db: Db,
  dependencies: ChangeDependencies,
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantView> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  return db.write(tenant_id, async (tx) => {
    const restored = await store.restore(tx, caller.tenant_id)
    if (!restored) throw await restoreRefusal(tx, caller.tenant_id)
    await pauses.beginPause(tx, dependencies, restored)
    await journal.emit(tx, events['tenant.restored'], { ...aboutOf(caller), data: {} })
    tx.afterCommit(() => {
      dependencies.keys.cache.clear(caller.tenant_id)
      dependencies.jobs.wake(tx.now)
    })
    return view(tx, caller.tenant_id, dependencies, tx.now, counted)
  })
}

async function restoreRefusal(tx: Tx, tenant_id: string): Promise<ApiError> {
  const tenant = await store.find(tx, tenant_id)
  return tenant
    ? new ApiError('INVALID_STATE', { details: { status: tenant.status } })
    : new ApiError('UNAUTHORIZED')
}

export async function rotateKey(
  db: Db,
  dependencies: ChangeDependencies,
  caller: AdminCaller,
  tenant_id: string,
  grace_seconds: number,
): Promise<TenantView & credentials.Rotation> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  return credentials.endKeys(db, dependencies.keys.cache, caller.tenant_id, async (tx, ending) => {
    await store.markRotated(tx, caller.tenant_id)
    // Of two rotations at once the second would end the new key of the first, with one that has ended.
    await credentials.requireHeld(tx, caller)
    const rotation = await credentials.rotate(tx, ending, adminOf(caller.tenant_id), grace_seconds)
    await journal.emit(tx, events['tenant.key_rotated'], { ...aboutOf(caller), data: { grace_seconds } })
    return { ...(await view(tx, caller.tenant_id, dependencies, tx.now, counted)), ...rotation }
  })
}

/** The new secret, shown once; the one before signs beside it for 24 h. */
export async function rotateSigningSecret(
  db: Db,
  dependencies: ChangeDependencies,
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantView & { signing_secret: string }> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  const signing_secret = newSigningSecret()
  return db.write(tenant_id, async (tx) => {
    const sealer = await dependencies.keys.secrets.sealerIn(tx)
    const sealed = sealer.seal(signing.signingContext(caller.tenant_id), signing_secret)
    const previous_until = tx.now + previous_secret_ms
    await store.rotateSigningSecret(tx, caller.tenant_id, sealed, previous_until)
    const data = { previous_until: iso(previous_until) }
    await journal.emit(tx, events['tenant.signing_secret_rotated'], { ...aboutOf(caller), data })
    return { ...(await view(tx, caller.tenant_id, dependencies, tx.now, counted)), signing_secret }
  })
}

/** For the operator. False when it is on this plan already, or there is no such tenant. */
export async function setPlan(db: Db, tenant_id: string, plan: string): Promise<boolean> {
  const set = await db.write(async (tx) => {
    const changed = await store.setPlan(tx, tenant_id, plan)
    const about = { tenant_id, cause: operator_cause, subject_id: tenant_id }
    if (changed) await journal.emit(tx, events['tenant.plan_changed'], { ...about, data: { plan } })
    return changed
  })
  await signalChange(db, tenant_id)
  return set
}

/** For the operator: the bytes that the tenant may store; null: those of its plan. False when that changes nothing. */
export async function setStorage(
  db: Db,
  tenant_id: string,
  storage_bytes_max: number | null,
): Promise<boolean> {
  const set = await db.write(async (tx) => {
    const changed = await store.setStorage(tx, tenant_id, storage_bytes_max)
    const about = { tenant_id, cause: operator_cause, subject_id: tenant_id }
    const data = { storage_bytes_max }
    if (changed) await journal.emit(tx, events['tenant.storage_changed'], { ...about, data })
    return changed
  })
  await signalChange(db, tenant_id)
  return set
}

function adminOf(tenant_id: string): credentials.Subject {
  return { tenant_id, kind: 'admin', subject: '' }
}
