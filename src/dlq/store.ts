// Statements on one dead letter. Those of lists are in list-store.ts, those of the sweep in sweep-store.ts.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { causeOf } from './cause.ts'
import type { DlqStatus, ItemRow } from './item.ts'

const INSERT = sql(
  'dlq.insert',
  `insert into dlq_items
     (tenant_id, id, status, payload, error, cause, workflow_id, source, source_id, agent_id, lock_seconds, claims,
      created_at, updated_at)
   values
     (:tenant_id, :id, 'failed', :payload, :error, :cause, :workflow_id, :source, :source_id, :agent_id, :lock_seconds, 0,
      :now, :now)`,
)

export const listed = `id, status, error, cause, workflow_id, source, source_id, agent_id, lock_seconds, locked_by, locked_until,
     lock_token_hash, claims, created_at, updated_at, resolved_at, redriven_as`

const here = 'tenant_id = :tenant_id and id = :id'
// The first half matches the index of open items.
export const claimable = `(status in ('failed', 'claimed') and (status = 'failed' or locked_until <= :now))`
// `:at` is the time by which locks are judged: that of the freeze while the tenant is frozen.
const held = `status = 'claimed' and locked_until > :at`

const FIND = sql<ItemRow>('dlq.find', `select ${listed}, payload from dlq_items where ${here}`)

// Held until the end of the transaction: nobody claims, resolves or removes the item meanwhile.
const FIND_LOCKED = sql<ItemRow>(
  'dlq.find_locked',
  `select ${listed}, payload from dlq_items where ${here} {locked}`,
)

/** An item after a change, and the end of an expired lock that the change found; null when there was none. */
export interface Changed extends ItemRow {
  lock_expired_at: Millis | null
}

/** The end of a lock that has expired while the item is still stored as claimed, from the row before the update. */
export const expired_lock = `lock_expired_at = case when status = 'claimed' then locked_until else null end`
const claimed = `${listed}, payload, lock_expired_at`
const lock = `update dlq_items
      set ${expired_lock}, status = 'claimed', locked_by = :agent_id, lock_token_hash = :lock_token_hash, claims = claims + 1,
          held = 0, updated_at = :now, locked_until = coalesce(:locked_until, :now + lock_seconds * 1000)`

export const expired_max = limit(
  'dlq.expired_locks',
  500,
  'rows',
  'Expired locks that the sweep has not released yet, the first to expire, among which the claim of the oldest looks for an item that is older than every failed one.',
)

/** The search for the oldest begins here: however many older items are locked, it does not walk past them. */
const from_oldest = `(select min(id) from
     (select id from (select id from dlq_items {by dlq_items_status}
                       where ${of_shard} (tenant_id, status, id) > (:tenant_id, 'failed', '')
                         and (tenant_id, status, id) < (:tenant_id, 'failed', 'z')
                       order by tenant_id, status, id limit 1) as first_failed
      union all
      select id from (select id from dlq_items {by dlq_items_tenant_locked}
                       where ${of_shard} status = 'claimed' and held = 0 and tenant_id >= :tenant_id
                         and (tenant_id, locked_until) <= (:tenant_id, :now)
                       order by tenant_id, locked_until limit ${expired_max}) as expired) as claimable_items)`

const oldest = `tenant_id = :tenant_id and ${claimable}
      and id = (select id from dlq_items where tenant_id = :tenant_id and ${claimable} and id >= ${from_oldest}
                 order by id limit 1 {skip_locked})`

const CLAIM = sql<Changed>('dlq.claim', `${lock} where ${here} and ${claimable} returning ${claimed}`)
const CLAIM_OLDEST = sql<Changed>('dlq.claim_oldest', `${lock} where ${oldest} returning ${claimed}`)

const kept = `where ${here} and ${held} and locked_by = :agent_id and lock_token_hash = :lock_token_hash
   returning ${listed}, payload`

const EXTEND = sql<ItemRow>(
  'dlq.extend',
  `update dlq_items
      set locked_until = coalesce(:locked_until, :at + lock_seconds * 1000), held = 0, updated_at = :now ${kept}`,
)

const unlock = 'locked_by = null, locked_until = null, lock_token_hash = null, updated_at = :now'

const RELEASE = sql<ItemRow>('dlq.release', `update dlq_items set status = 'failed', ${unlock} ${kept}`)

const ARCHIVE = sql<ItemRow>('dlq.archive', `update dlq_items set status = 'archived', ${unlock} ${kept}`)

// An equal count of claims shows that nothing else has changed since the item was read.
// The lock may have been extended meanwhile, so whether it has expired is taken from the row that is changed.
const RESOLVE = sql<Changed>(
  'dlq.resolve',
  `update dlq_items
      set lock_expired_at = case when status = 'claimed' and locked_until <= :at then locked_until else null end,
          status = 'resolved', resolved_at = :now, ${unlock}
    where ${here} and status = :status and claims = :claims
   returning ${claimed}`,
)

const REDRIVE = sql<ItemRow>(
  'dlq.redrive',
  `update dlq_items set status = 'resolved', resolved_at = :now, redriven_as = :redriven_as, ${unlock}
    where ${here}
   returning ${listed}, payload`,
)

const REOPEN = sql<ItemRow>(
  'dlq.reopen',
  `update dlq_items set status = 'failed', updated_at = :now where ${here} and status = 'archived'
   returning ${listed}, payload`,
)

/** The texts that a row counts (db/stored.ts). */
export const bytes = `octet_length(payload) + octet_length(error) + coalesce(octet_length(workflow_id), 0) as bytes`

type Removed = Pick<ItemRow, 'id' | 'status' | 'locked_until' | 'workflow_id'> & { bytes: number }
const DELETE = sql<Removed>(
  'dlq.delete',
  `delete from dlq_items where ${here} returning id, status, locked_until, workflow_id, ${bytes}`,
)

export const table = { table: 'dlq_items', key: 'tenant_id, id', texts: ['payload', 'error'] }

export interface NewItem {
  id: string
  payload: string
  error: string
  workflow_id: string | null
  source: ItemRow['source']
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
}

export function insert(tx: Tx, tenant_id: string, item: NewItem) {
  return tx.run(INSERT, { tenant_id, ...item, cause: causeOf(item.error), now: tx.now })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

/** The same, and locks the row. */
export function findLocked(tx: Tx, tenant_id: string, id: string) {
  return tx.one(FIND_LOCKED, { tenant_id, id })
}

interface Lock {
  agent_id: string
  lock_token_hash: string
  /** Null: the item's own lock_seconds. */
  locked_until: Millis | null
}

/** Null when the item is not there or not claimable. */
export function claim(tx: Tx, tenant_id: string, id: string, lock: Lock) {
  return tx.one(CLAIM, { tenant_id, id, ...lock, now: tx.now })
}

/** Null when nothing is claimable. */
export function claimOldest(tx: Tx, tenant_id: string, lock: Lock) {
  return tx.one(CLAIM_OLDEST, { tenant_id, ...lock, now: tx.now })
}

export interface Hold {
  agent_id: string
  lock_token_hash: string
  /** The time by which the lock is judged. */
  at: Millis
}

/** Null unless this agent holds this lock. `locked_until` null: by the item's own lock_seconds from now. */
export function extend(tx: Tx, tenant_id: string, id: string, hold: Hold, locked_until: Millis | null) {
  return tx.one(EXTEND, { tenant_id, id, ...hold, locked_until, now: tx.now })
}

/** Null unless this agent holds this lock. */
export function release(tx: Tx, tenant_id: string, id: string, hold: Hold) {
  return tx.one(RELEASE, { tenant_id, id, ...hold, now: tx.now })
}

export function archive(tx: Tx, tenant_id: string, id: string, hold: Hold) {
  return tx.one(ARCHIVE, { tenant_id, id, ...hold, now: tx.now })
}

/** Null when the item changed since `seen` was read. `at`: by which its lock is judged. */
export function resolve(
  tx: Tx,
  tenant_id: string,
  { id, status, claims }: { id: string; status: DlqStatus; claims: number },
  at: Millis,
) {
  return tx.one(RESOLVE, { tenant_id, id, status, claims, at, now: tx.now })
}

/** Resolves an item whose row this transaction has locked. */
export async function redrive(tx: Tx, tenant_id: string, id: string, redriven_as: string): Promise<ItemRow> {
  return (await tx.one(REDRIVE, { tenant_id, id, redriven_as, now: tx.now }))!
}

/** An archived item whose row this transaction has locked can be claimed again. */
export async function reopen(tx: Tx, tenant_id: string, id: string): Promise<ItemRow> {
  return (await tx.one(REOPEN, { tenant_id, id, now: tx.now }))!
}

/** Returns what it was, with the bytes of its texts; null when it is not there. */
export function remove(tx: Tx, tenant_id: string, id: string) {
  return tx.one(DELETE, { tenant_id, id })
}
