// Tenants: one function per verb.

import './errors.ts'
import * as audit from '../audit/service.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { newSigningSecret } from '../base/seal.ts'
import type { Outgoing } from '../callbacks/deliver.ts'
import { type Callback, signedRequest } from '../callbacks/message.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Counts, Jobs, Keys, MonthlyCalls, Plans, Secrets } from '../contract/dependencies.ts'
import type { CountedQuota } from '../contract/feature.ts'
import * as credentials from '../credentials/service.ts'
import { type Db, type Reader, type Tx, upkeep } from '../db/db.ts'
import type { LeasedJob } from '../jobs/job.ts'
import type { MessageContext } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as quotas from '../quotas/service.ts'
import * as store from './store.ts'
import { nameKey, previous_secret_ms, purge_grace_ms, type TenantRow } from './tenant.ts'

export const purgeable = store.purgeable
export const finishPurge = store.remove
export const lockPurgeable = store.lockPurgeable
export const all = store.all
export const plansInUse = store.plans

/** Jobs of a tenant that one transaction pauses or resumes. */
const pause_rows_max = limit(
  'tenants.pause_rows',
  500,
  'rows',
  'Jobs of a deleted or restored tenant that one transaction pauses or resumes.',
)
/** One step is so many transactions, for so many tenants in turn. */
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

export interface Created {
  tenant: TenantRow
  admin_key: string
  signing_secret: string
  quota: quotas.QuotaObject
}

interface Creating {
  plans: Plans
  keys: { secrets: Secrets }
  counts: { quotas: readonly CountedQuota[] }
}

/** Throws TENANT_NAME_TAKEN. `name` is already trimmed. */
export async function create(
  tx: Tx,
  { plans, keys, counts }: Creating,
  input: { name: string; owner_email: string; plan: string },
): Promise<Created> {
  quotas.requireDisk(tx)
  const tenant_id = newId('ten', tx.now)
  const signing_secret = newSigningSecret()
  const inserted = await store.insert(tx, {
    ...input,
    tenant_id,
    name_key: nameKey(input.name),
    signing_secret: keys.secrets.seal(signingContext(tenant_id), signing_secret),
  })
  if (!inserted) throw new ApiError('TENANT_NAME_TAKEN')
  await quotas.create(tx, tenant_id)
  await audit.begin(tx, tenant_id)
  const admin_key = await credentials.issue(tx, adminOf(tenant_id))
  const tenant: TenantRow = {
    ...{ ...input, tenant_id, status: 'active', purge_at: null },
    ...{ storage_bytes_max: null, created_at: tx.now },
  }
  const nothing = { calls: 0, storedBytes: () => 0 }
  const quota = await quotas.usage(tx, tenant, nothing, { plans, quotas: counts.quotas })
  return { tenant, admin_key, signing_secret, quota }
}

interface Viewing {
  plans: Plans
  counts: Pick<Counts, 'calls' | 'quotas'>
}

export interface TenantView {
  tenant: TenantRow
  quota: quotas.QuotaObject
}

/** The tenant and what it uses, in one state of the database; `me` is the own one. Throws FORBIDDEN for any other tenant's id. */
export async function read(
  db: Db,
  now: Millis,
  caller: AdminCaller,
  tenant_id: string,
  dependencies: Viewing,
): Promise<TenantView> {
  requireOwnOrMe(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, now)
  return db.read(caller.tenant_id, (q) => view(q, caller.tenant_id, dependencies, now, counted))
}

/** What this node has counted. Not within a transaction. */
async function inMemory(
  db: Db,
  calls: MonthlyCalls,
  tenant_id: string,
  now: Millis,
): Promise<quotas.InMemory> {
  return {
    calls: await calls.used(tenant_id, now),
    storedBytes: (counter) => db.storedBytes(tenant_id, counter),
  }
}

async function view(
  q: Reader,
  tenant_id: string,
  { plans, counts }: Viewing,
  now: Millis,
  counted: quotas.InMemory,
): Promise<TenantView> {
  const tenant = await store.find(q, tenant_id)
  if (!tenant) throw new ApiError('UNAUTHORIZED')
  const expired = await quotas.expiredOf(q, counts.quotas, tenant_id, now)
  return { tenant, quota: await quotas.usage(q, tenant, counted, { plans, quotas: counts.quotas, expired }) }
}

/** From now on only the admin key may look, delete again or restore; the purge comes 30 days later. */
export function remove(
  db: Db,
  dependencies: { keys: Pick<Keys, 'cache'>; jobs: Pick<Jobs, 'pauseOrResume'> },
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantRow> {
  requireOwn(caller, tenant_id)
  return db.write(tenant_id, async (tx) => {
    const tenant = await store.markDeleted(tx, caller.tenant_id, tx.now + purge_grace_ms)
    if (!tenant) throw new ApiError('UNAUTHORIZED')
    await beginPause(tx, dependencies, tenant)
    tx.afterCommit(() => dependencies.keys.cache.clear())
    return tenant
  })
}

interface Changing extends Viewing {
  keys: Pick<Keys, 'cache' | 'secrets'>
  jobs: Pick<Jobs, 'wake' | 'pauseOrResume'>
}

/** Throws INVALID_STATE when it is active, or when its purge may have begun. */
export async function restore(
  db: Db,
  dependencies: Changing,
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantView> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  return db.write(tenant_id, async (tx) => {
    const restored = await store.restore(tx, caller.tenant_id)
    if (!restored) throw await restoreRefusal(tx, caller.tenant_id)
    await beginPause(tx, dependencies, restored)
    tx.afterCommit(() => {
      dependencies.keys.cache.clear()
      dependencies.jobs.wake(tx.now)
    })
    return view(tx, caller.tenant_id, dependencies, tx.now, counted)
  })
}

/** The first part of a tenant's jobs follows its status at once, which is all of them for nearly everybody. */
async function beginPause(
  tx: Tx,
  dependencies: { jobs: Pick<Jobs, 'pauseOrResume'> },
  { tenant_id, status }: TenantRow,
): Promise<void> {
  if (await jobs.setPaused(tx, tenant_id, status !== 'active', pause_rows_max)) return
  await store.markPausePending(tx, tenant_id)
  tx.afterCommit(() => dependencies.jobs.pauseOrResume())
}

/**
 * A bounded part of what is left of that, for the tenants after this one. Answers where to go on, or null when no
 * tenant is left anywhere.
 */
export async function pauseStep(db: Db, after_tenant_id: string): Promise<string | null> {
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
    const held = await store.lockPausePending(tx, tenant_id)
    if (!held) return true
    const all = await jobs.setPaused(tx, tenant_id, held.status !== 'active', pause_rows_max)
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

async function restoreRefusal(tx: Tx, tenant_id: string): Promise<ApiError> {
  const tenant = await store.find(tx, tenant_id)
  return tenant
    ? new ApiError('INVALID_STATE', { details: { status: tenant.status } })
    : new ApiError('UNAUTHORIZED')
}

export async function rotateKey(
  db: Db,
  dependencies: Changing,
  caller: AdminCaller,
  tenant_id: string,
  grace_seconds: number,
): Promise<TenantView & credentials.Rotation> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  return db.write(tenant_id, async (tx) => {
    await store.markRotated(tx, caller.tenant_id)
    const rotation = await credentials.rotate(
      tx,
      dependencies.keys.cache,
      adminOf(caller.tenant_id),
      grace_seconds,
    )
    return { ...(await view(tx, caller.tenant_id, dependencies, tx.now, counted)), ...rotation }
  })
}

/** The new secret, shown once; the one before signs beside it for 24 h. */
export async function rotateSigningSecret(
  db: Db,
  dependencies: Changing,
  caller: AdminCaller,
  tenant_id: string,
): Promise<TenantView & { signing_secret: string }> {
  requireOwn(caller, tenant_id)
  const counted = await inMemory(db, dependencies.counts.calls, caller.tenant_id, db.clock.now())
  const signing_secret = newSigningSecret()
  const sealed = dependencies.keys.secrets.seal(signingContext(caller.tenant_id), signing_secret)
  return db.write(tenant_id, async (tx) => {
    await store.rotateSigningSecret(tx, caller.tenant_id, sealed, tx.now + previous_secret_ms)
    return { ...(await view(tx, caller.tenant_id, dependencies, tx.now, counted)), signing_secret }
  })
}

/**
 * What signs a callback now: the current secret and, for 24 h after a rotation, the one before. Null when nothing of
 * the tenant is to be sent: it waits for deletion, or is gone.
 */
export async function signingSecrets(
  q: Reader,
  secrets: Secrets,
  tenant_id: string,
  now: Millis,
): Promise<string[] | null> {
  const row = await store.signingSecrets(q, tenant_id)
  if (row?.status !== 'active') return null
  const sealed = [row.signing_secret]
  const until = row.previous_signing_secret_until
  if (row.previous_signing_secret !== null && until !== null && until > now)
    sealed.push(row.previous_signing_secret)
  return sealed.map((text) => secrets.open(signingContext(tenant_id), text))
}

/**
 * The signed request of one attempt. Read at each attempt: since the lease the secrets may have been rotated, the
 * tenant deleted, or the callback changed. `find` comes last, so that what a PATCH or DELETE has changed since is not
 * sent under the old event. Null when it finds none.
 */
export async function signedCallback(
  { db, dependencies, started_at }: MessageContext,
  job: LeasedJob,
  find: () => Promise<Callback | null>,
): Promise<Outgoing | 'paused' | null> {
  const secrets = await signingSecrets(db, dependencies.keys.secrets, job.tenant_id, started_at)
  if (!secrets) return 'paused'
  const callback = await find()
  return (
    callback && signedRequest({ ...callback, id: job.event_id, attempt: job.attempts, started_at, secrets })
  )
}

/** For the operator. False when there is no such tenant. */
export function setPlan(db: Db, tenant_id: string, plan: string): Promise<boolean> {
  return db.write((tx) => store.setPlan(tx, tenant_id, plan))
}

/** For the operator: how much the tenant may store, whatever its plan; null: what the plan says. False: see setPlan. */
export function setStorage(db: Db, tenant_id: string, storage_bytes_max: number | null): Promise<boolean> {
  return db.write((tx) => store.setStorage(tx, tenant_id, storage_bytes_max))
}

/** Every id but the caller's own answers alike, existing or not. */
function requireOwn(caller: AdminCaller, tenant_id: string): void {
  if (tenant_id !== caller.tenant_id) throw new ApiError('FORBIDDEN')
}

/** The same where nothing is changed: there `me` is the own id, for whoever has nothing but the key. */
export function requireOwnOrMe(caller: AdminCaller, tenant_id: string): void {
  if (tenant_id !== 'me') requireOwn(caller, tenant_id)
}

function adminOf(tenant_id: string): credentials.Subject {
  return { tenant_id, kind: 'admin', subject: '' }
}

/** What a sealed signing secret is bound to, so that one tenant's cannot be put into another's row. */
function signingContext(tenant_id: string): string {
  return `signing_secret ${tenant_id}`
}
