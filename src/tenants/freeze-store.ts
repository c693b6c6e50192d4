// Statements of a tenant's freeze. What runs out is moved by the features whose rows run out.

import type { Millis } from '../base/clock.ts'
import { sql, type Tx } from '../db/db.ts'
import { columns } from './store.ts'
import type { TenantRow } from './tenant.ts'

// During a resume it takes effect at once, and is a freeze of its own once everything has been moved.
const FREEZE = sql<TenantRow>(
  'tenants.freeze',
  `update tenants
      set frozen_again_at = case when resumed_at is null then frozen_again_at else :now end,
          frozen_at = coalesce(frozen_at, :now), frozen_reason = :reason
    where tenant_id = :tenant_id and status = 'active'
      and (frozen_at is null or (resumed_at is not null and frozen_again_at is null))
   returning ${columns}`,
)

const RESUME = sql<Frozen>(
  'tenants.resume',
  `update tenants set resumed_at = :now, moved_to = ''
    where tenant_id = :tenant_id and status = 'active' and frozen_at is not null and resumed_at is null
   returning frozen_at, resumed_at, moved_to, frozen_again_at`,
)

// Takes the row's lock, so that a step that moves and what the holder of a lock changes go one after the other.
const LOCK = sql<Frozen>(
  'tenants.lock_freeze',
  `update tenants set frozen_at = frozen_at where tenant_id = :tenant_id and frozen_at is not null
   returning frozen_at, resumed_at, moved_to, frozen_again_at`,
)

const SET_MOVED = sql(
  'tenants.set_moved',
  'update tenants set moved_to = :moved_to where tenant_id = :tenant_id',
)

const END_RESUME = sql<TenantRow>(
  'tenants.end_resume',
  `update tenants
      set frozen_reason = case when frozen_again_at is null then null else frozen_reason end,
          frozen_at = frozen_again_at, frozen_again_at = null, resumed_at = null, moved_to = null
    where tenant_id = :tenant_id
   returning ${columns}`,
)

export interface Frozen {
  frozen_at: Millis
  /** Null unless what runs out is being moved. */
  resumed_at: Millis | null
  /** `<table> <id>`: up to there it has been moved; empty at the beginning. Null unless it is being moved. */
  moved_to: string | null
  frozen_again_at: Millis | null
}

/** Null when it is frozen already, and not about to be resumed, or not active. */
export function freeze(tx: Tx, tenant_id: string, reason: string | null) {
  return tx.one(FREEZE, { tenant_id, reason, now: tx.now })
}

/** Null unless it is active and frozen, and not about to be resumed. */
export function resume(tx: Tx, tenant_id: string, resumed_at: Millis) {
  return tx.one(RESUME, { tenant_id, now: resumed_at })
}

/** Null unless it is frozen. */
export function lock(tx: Tx, tenant_id: string) {
  return tx.one(LOCK, { tenant_id })
}

export function setMoved(tx: Tx, tenant_id: string, moved_to: string) {
  return tx.run(SET_MOVED, { tenant_id, moved_to })
}

/** Everything has been moved: the tenant is no longer frozen, or has been frozen again. */
export async function endResume(tx: Tx, tenant_id: string): Promise<TenantRow> {
  return (await tx.one(END_RESUME, { tenant_id }))!
}
