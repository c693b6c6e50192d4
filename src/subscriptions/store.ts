// Statements on subscriptions. Those that change them are in change-store.ts, those on their attempts in attempt-store.ts,
// those on addresses in address-store.ts.

import type { PageOfIds } from '../contract/page.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Format, PauseReason, SubscriptionRow, SubscriptionStatus } from './subscription.ts'

export const here = 'tenant_id = :tenant_id and id = :id'

const columns = `id, status, paused_reason, format, name, types, workflow_id, shown, position, attempts, last_error,
       last_status_code, last_attempt_at, delivered_at, created_at, updated_at,
       (select next_at from jobs
         where jobs.tenant_id = :tenant_id and jobs.kind = 'subscription' and jobs.source_id = shown_ones.id) as next_at`

const INSERT = sql(
  'subscriptions.insert',
  `insert into subscriptions
     (tenant_id, id, status, paused_reason, paused_by_admin, format, name, types, workflow_id, shown, address_hash, position, attempts,
      logged, created_at, updated_at, target)
   values
     (:tenant_id, :id, :status, :paused_reason, :paused_by_admin, :format, :name, :types, :workflow_id, :shown, :address_hash,
      :position, 0, 0, :now, :now, :target)`,
)

const FIND = sql<SubscriptionRow>(
  'subscriptions.find',
  `select ${columns} from subscriptions as shown_ones where ${here}`,
)

const LIST = sql<SubscriptionRow>(
  'subscriptions.list',
  `select ${columns} from subscriptions as shown_ones
    where tenant_id = :tenant_id and id < :before_id order by tenant_id desc, id desc limit :rows_max`,
)

const DELETE = sql<{ bytes: number; address_hash: string | null }>(
  'subscriptions.delete',
  `delete from subscriptions where ${here}
   returning coalesce(octet_length(name), 0) + coalesce(octet_length(types), 0) + coalesce(octet_length(workflow_id), 0)
             + coalesce(octet_length(target), 0) as bytes, address_hash`,
)

const TARGET = sql<{
  target: string
  format: Format
  types: string
  status: SubscriptionStatus
  address_hash: string | null
}>(
  'subscriptions.target',
  `select target, format, types, status, address_hash from subscriptions where ${here}`,
)

const ACTIVE = sql<{ id: string; types: string; workflow_id: string | null }>(
  'subscriptions.active',
  `select id, types, workflow_id from subscriptions {by subscriptions_active}
    where tenant_id = :tenant_id and status = 'active' and id > :after_id order by tenant_id, id limit :rows_max`,
)

const TEXTS = sql<{ name: string; types: string; workflow_id: string | null; target: string }>(
  'subscriptions.texts',
  `select name, types, workflow_id, target from subscriptions where ${here}`,
)

export interface NewSubscription {
  id: string
  status: SubscriptionStatus
  paused_reason: PauseReason | null
  paused_by_admin: boolean
  format: Format
  name: string
  types: string
  workflow_id: string | null
  shown: string
  address_hash: string | null
  position: number
  /** Sealed. */
  target: string
}

export function insert(tx: Tx, tenant_id: string, subscription: NewSubscription) {
  const paused_by_admin = subscription.paused_by_admin ? 1 : 0
  return tx.run(INSERT, { tenant_id, ...subscription, paused_by_admin, now: tx.now })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

/** Newest first. */
export function list(q: Reader, tenant_id: string, { before_id, rows_max }: PageOfIds) {
  return q.all(LIST, { tenant_id, before_id, rows_max })
}

/** Returns the bytes of its texts; null when there is none. */
export function remove(tx: Tx, tenant_id: string, id: string) {
  return tx.one(DELETE, { tenant_id, id })
}

/** Its sealed target, and what goes with it. */
export function target(q: Reader, tenant_id: string, id: string) {
  return q.one(TARGET, { tenant_id, id })
}

/** Active ones and what they take, in the order of their ids. */
export function active(q: Reader, tenant_id: string, after_id: string, rows_max: number) {
  return q.all(ACTIVE, { tenant_id, after_id, rows_max })
}

/** Those that count as stored bytes. */
export function texts(q: Reader, tenant_id: string, id: string) {
  return q.one(TEXTS, { tenant_id, id })
}

export const purge = purging('subscriptions.purge', { table: 'subscriptions', key: 'tenant_id, id' })
