// Statements on tenants. Those that pause and resume their jobs are in pause-store.ts.

import type { Millis } from '../base/clock.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import type { Due } from '../db/sweep-tenants.ts'
import type { TenantRow } from './tenant.ts'

export const columns = `tenant_id, name, owner_email, plan, status, purge_at, storage_bytes_max, created_at, frozen_at,
          frozen_reason, resumed_at, frozen_again_at`

const INSERT = sql(
  'tenants.insert',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, :name, :owner_email, :plan, 'active', :signing_secret, :now)`,
)

const FIND = sql<TenantRow>('tenants.find', `select ${columns} from tenants where tenant_id = :tenant_id`)

const ALL = acrossTenants<TenantRow>(
  'tenants.all',
  `select ${columns} from tenants order by created_at, tenant_id`,
)

const MARK_DELETED = sql<TenantRow>(
  'tenants.mark_deleted',
  `update tenants set purge_at = :purge_at, status = 'pending_deletion'
    where tenant_id = :tenant_id and status = 'active'
   returning ${columns}`,
)

// Takes the row's lock, so that a deletion that was asked for before holds for one that changes nothing.
const LOCK_DELETED = sql<TenantRow>(
  'tenants.lock_deleted',
  `update tenants set purge_at = purge_at where tenant_id = :tenant_id and status = 'pending_deletion'
   returning ${columns}`,
)

const RESTORE = sql<TenantRow>(
  'tenants.restore',
  `update tenants set status = 'active', purge_at = null
    where tenant_id = :tenant_id and status = 'pending_deletion' and purge_at > :now
   returning ${columns}`,
)

// The update takes the row's lock, so that two rotations go one after the other.
const MARK_ROTATED = sql(
  'tenants.mark_rotated',
  'update tenants set admin_key_rotated_at = :now where tenant_id = :tenant_id',
)

const ROTATE_SIGNING_SECRET = sql(
  'tenants.rotate_signing_secret',
  `update tenants
      set previous_signing_secret = signing_secret, previous_signing_secret_until = :previous_until,
          signing_secret = :signing_secret
    where tenant_id = :tenant_id`,
)

const SET_PLAN = sql(
  'tenants.set_plan',
  'update tenants set plan = :plan where tenant_id = :tenant_id and plan <> :plan',
)

const SET_STORAGE = sql(
  'tenants.set_storage',
  `update tenants set storage_bytes_max = :storage_bytes_max
    where tenant_id = :tenant_id and storage_bytes_max is distinct from :storage_bytes_max`,
)

const PLANS = acrossTenants<{ plan: string }>('tenants.plans', 'select distinct plan from tenants')

const SIGNING_SECRETS = sql<{
  status: TenantRow['status']
  frozen_at: Millis | null
  signing_secret: string
  previous_signing_secret: string | null
  previous_signing_secret_until: Millis | null
}>(
  'tenants.signing_secrets',
  `select status, frozen_at, signing_secret, previous_signing_secret, previous_signing_secret_until from tenants
    where tenant_id = :tenant_id`,
)

const PURGEABLE = acrossTenants<Due>(
  'tenants.purgeable',
  `select tenant_id, 1 as due, purge_at as until from tenants
    where status = 'pending_deletion' and purge_at <= :now and purge_at >= :due_from order by purge_at limit :rows_max`,
)

// Takes the row's lock, so that a chunk of a purge and a restore go one after the other.
const LOCK_PURGEABLE = sql(
  'tenants.lock_purgeable',
  `update tenants set purge_at = purge_at
    where tenant_id = :tenant_id and status = 'pending_deletion' and purge_at <= :now`,
)

const DELETE = sql<{ name: string }>(
  'tenants.delete',
  'delete from tenants where tenant_id = :tenant_id returning name',
)

interface NewTenant extends Pick<TenantRow, 'tenant_id' | 'name' | 'owner_email' | 'plan'> {
  /** Sealed. */
  signing_secret: string
}

export function insert(tx: Tx, tenant: NewTenant) {
  return tx.run(INSERT, { ...tenant, now: tx.now })
}

export function find(q: Reader, tenant_id: string) {
  return q.one(FIND, { tenant_id })
}

export function all(q: Reader) {
  return q.all(ALL, {})
}

/** Null when it waits for its deletion already, or is not there. */
export function markDeleted(tx: Tx, tenant_id: string, purge_at: Millis) {
  return tx.one(MARK_DELETED, { tenant_id, purge_at })
}

/** Null unless it waits for its deletion. */
export function lockDeleted(tx: Tx, tenant_id: string) {
  return tx.one(LOCK_DELETED, { tenant_id })
}

/** Null when the tenant is active, or when its purge may have begun. */
export function restore(tx: Tx, tenant_id: string) {
  return tx.one(RESTORE, { tenant_id, now: tx.now })
}

/** First step of a rotation of the admin key. */
export function markRotated(tx: Tx, tenant_id: string) {
  return tx.run(MARK_ROTATED, { tenant_id, now: tx.now })
}

export function rotateSigningSecret(
  tx: Tx,
  tenant_id: string,
  signing_secret: string,
  previous_until: Millis,
) {
  return tx.run(ROTATE_SIGNING_SECRET, { tenant_id, signing_secret, previous_until })
}

/** False when it is on this plan already, or is not there. */
export async function setPlan(tx: Tx, tenant_id: string, plan: string): Promise<boolean> {
  return (await tx.run(SET_PLAN, { tenant_id, plan })) === 1
}

/** Null: the plan's. False when that is the limit already, or the tenant is not there. */
export async function setStorage(
  tx: Tx,
  tenant_id: string,
  storage_bytes_max: number | null,
): Promise<boolean> {
  return (await tx.run(SET_STORAGE, { tenant_id, storage_bytes_max })) === 1
}

export function signingSecrets(q: Reader, tenant_id: string) {
  return q.one(SIGNING_SECRETS, { tenant_id })
}

/** Tenants whose grace has ended, the longest ago first. */
export function purgeable(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(PURGEABLE, { now, due_from, rows_max })
}

/** First of every chunk of a purge. False when the tenant was restored, or is gone. */
export async function lockPurgeable(tx: Tx, tenant_id: string): Promise<boolean> {
  return (await tx.run(LOCK_PURGEABLE, { tenant_id, now: tx.now })) === 1
}

/** Nothing of the tenant is left to point here. Returns its name. */
export function remove(tx: Tx, tenant_id: string) {
  return tx.one(DELETE, { tenant_id })
}

/** The plans in use. */
export function plans(q: Reader) {
  return q.all(PLANS, {})
}
