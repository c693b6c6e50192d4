// Every statement on dlq_items.

import type { Millis } from '../base/clock.ts'
import { newestFirst } from '../base/ids.ts'
import type { PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk, ofStatus } from '../db/chunk.ts'
import { type Reader, type Statement, sql, type Tx } from '../db/db.ts'
import type { DlqStatus, ItemRow } from './item.ts'

const INSERT = sql(
  'dlq.insert',
  `insert into dlq_items
     (tenant_id, id, status, payload, error, workflow_id, source, source_id, agent_id, lock_seconds, claims,
      created_at, updated_at)
   values
     (:tenant_id, :id, 'failed', :payload, :error, :workflow_id, :source, :source_id, :agent_id, :lock_seconds, 0,
      :now, :now)`,
)

const listed = `id, status, error, workflow_id, source, source_id, agent_id, lock_seconds, locked_by, locked_until,
     lock_token_hash, claims, created_at, updated_at, resolved_at`

const here = 'tenant_id = :tenant_id and id = :id'
// The first half says it to the index of open items.
const claimable = `(status in ('failed', 'claimed') and (status = 'failed' or locked_until <= :now))`
const held = `status = 'claimed' and locked_until > :now`

const FIND = sql<ItemRow>('dlq.find', `select ${listed}, payload from dlq_items where ${here}`)

const lock = `status = 'claimed', locked_by = :agent_id, lock_token_hash = :lock_token_hash, claims = claims + 1, updated_at = :now`
const own_time = `update dlq_items set ${lock}, locked_until = :now + lock_seconds * 1000`
const given_time = `update dlq_items set ${lock}, locked_until = :locked_until`

const oldest = `tenant_id = :tenant_id and ${claimable}
      and id = (select id from dlq_items where tenant_id = :tenant_id and ${claimable}
                 order by id limit 1 {skip_locked})`

const CLAIM = sql<ItemRow>(
  'dlq.claim',
  `${own_time} where ${here} and ${claimable} returning ${listed}, payload`,
)
const CLAIM_UNTIL = sql<ItemRow>(
  'dlq.claim_until',
  `${given_time} where ${here} and ${claimable} returning ${listed}, payload`,
)
const CLAIM_OLDEST = sql<ItemRow>(
  'dlq.claim_oldest',
  `${own_time} where ${oldest} returning ${listed}, payload`,
)
const CLAIM_OLDEST_UNTIL = sql<ItemRow>(
  'dlq.claim_oldest_until',
  `${given_time} where ${oldest} returning ${listed}, payload`,
)

const kept = `where ${here} and ${held} and locked_by = :agent_id and lock_token_hash = :lock_token_hash
   returning ${listed}, payload`

const EXTEND = sql<ItemRow>(
  'dlq.extend',
  `update dlq_items set locked_until = :now + lock_seconds * 1000, updated_at = :now ${kept}`,
)
const EXTEND_UNTIL = sql<ItemRow>(
  'dlq.extend_until',
  `update dlq_items set locked_until = :locked_until, updated_at = :now ${kept}`,
)

const unlock = 'locked_by = null, locked_until = null, lock_token_hash = null, updated_at = :now'

const RELEASE = sql<ItemRow>('dlq.release', `update dlq_items set status = 'failed', ${unlock} ${kept}`)

const ARCHIVE = sql<ItemRow>('dlq.archive', `update dlq_items set status = 'archived', ${unlock} ${kept}`)

// The claims count stands for everything that may have changed since the item was looked at.
const RESOLVE = sql<ItemRow>(
  'dlq.resolve',
  `update dlq_items set status = 'resolved', resolved_at = :now, ${unlock}
    where ${here} and status = :status and claims = :claims
   returning ${listed}, payload`,
)

/** The texts that a row counts (db/stored.ts). */
const bytes = `octet_length(payload) + octet_length(error) + coalesce(octet_length(workflow_id), 0) as bytes`

const DELETE = sql<{ status: DlqStatus; bytes: number }>(
  'dlq.delete',
  `delete from dlq_items where ${here} returning status, ${bytes}`,
)

const table = { table: 'dlq_items', key: 'tenant_id, id', texts: ['payload', 'error'] }

const lapsed = "status = 'claimed' and locked_until <= :now"

// To change a row is to write it anew, payload included. The tenant is named as a range, and the order begins with it:
// with an equal sign PostgreSQL may walk the index of all tenants' rows, and pass those of the others.
const RELEASE_LAPSED = sql(
  'dlq.release_lapsed',
  `update dlq_items set status = 'failed', locked_by = null, locked_until = null, lock_token_hash = null
    where ${inChunk({
      ...{ ...table, index: 'dlq_items_tenant_locked', order: 'tenant_id, locked_until', skip_locked: true },
      where: `status = 'claimed' and tenant_id >= :tenant_id and (tenant_id, locked_until) <= (:tenant_id, :now)`,
    })}`,
)

const TENANTS_LAPSED = sql<{ tenant_id: string; items: number }>(
  'dlq.tenants_lapsed',
  `select tenant_id, count(*) as items from
     (select tenant_id from dlq_items {by dlq_items_locked} where ${lapsed} order by locked_until limit :rows_max) as due
    group by tenant_id`,
)

const ended = "status in ('resolved', 'archived') and updated_at <= :ended_before"

const TENANTS_ENDED = sql<{ tenant_id: string; items: number }>(
  'dlq.tenants_ended',
  `select tenant_id, count(*) as items from
     (select tenant_id from dlq_items {by dlq_items_ended} where ${ended} order by updated_at limit :rows_max) as due
    group by tenant_id`,
)

const SWEEP_ENDED = sql<{ bytes: number }>(
  'dlq.sweep_ended',
  `delete from dlq_items where ${inChunk({
    ...{ ...table, index: 'dlq_items_tenant_ended', order: 'tenant_id, updated_at', skip_locked: true },
    where: `status in ('resolved', 'archived')
        and tenant_id >= :tenant_id and (tenant_id, updated_at) <= (:tenant_id, :ended_before)`,
  })}
   returning ${bytes}`,
)

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
  return tx.run(INSERT, { tenant_id, ...item, now: tx.now })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

interface Lock {
  agent_id: string
  lock_token_hash: string
  /** Null: the item's own lock_seconds. */
  locked_until: Millis | null
}

/** Null when the item is not there or not claimable. */
export function claim(tx: Tx, tenant_id: string, id: string, { locked_until, ...lock }: Lock) {
  const params = { tenant_id, id, ...lock, now: tx.now }
  return locked_until === null ? tx.one(CLAIM, params) : tx.one(CLAIM_UNTIL, { ...params, locked_until })
}

/** Null when nothing is claimable. */
export function claimOldest(tx: Tx, tenant_id: string, { locked_until, ...lock }: Lock) {
  const params = { tenant_id, ...lock, now: tx.now }
  return locked_until === null
    ? tx.one(CLAIM_OLDEST, params)
    : tx.one(CLAIM_OLDEST_UNTIL, { ...params, locked_until })
}

interface Hold {
  agent_id: string
  lock_token_hash: string
}

/** Null unless this agent holds this lock. `locked_until` null: by the item's own lock_seconds from now. */
export function extend(tx: Tx, tenant_id: string, id: string, hold: Hold, locked_until: Millis | null) {
  const params = { tenant_id, id, ...hold, now: tx.now }
  return locked_until === null ? tx.one(EXTEND, params) : tx.one(EXTEND_UNTIL, { ...params, locked_until })
}

/** Null unless this agent holds this lock. */
export function release(tx: Tx, tenant_id: string, id: string, hold: Hold) {
  return tx.one(RELEASE, { tenant_id, id, ...hold, now: tx.now })
}

export function archive(tx: Tx, tenant_id: string, id: string, hold: Hold) {
  return tx.one(ARCHIVE, { tenant_id, id, ...hold, now: tx.now })
}

/** Null when the item changed since `seen` was read. */
export function resolve(tx: Tx, tenant_id: string, seen: { id: string; status: DlqStatus; claims: number }) {
  const { id, status, claims } = seen
  return tx.one(RESOLVE, { tenant_id, id, status, claims, now: tx.now })
}

/** What its status was, and the bytes of its texts; null when it is not there. */
export function remove(tx: Tx, tenant_id: string, id: string) {
  return tx.one(DELETE, { tenant_id, id })
}

/** Whose locks are among the `rows_max` that ran out first, and how many of them. */
export function tenantsWithLapsed(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_LAPSED, { now, rows_max })
}

export function releaseLapsed(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.run(RELEASE_LAPSED, { tenant_id, now: tx.now, rows_max, bytes_max })
}

/** Whose items are among the `rows_max` that ended first, and how many of them. */
export function tenantsWithEnded(q: Reader, ended_before: Millis, rows_max: number) {
  return q.all(TENANTS_ENDED, { ended_before, rows_max })
}

/** Answers the bytes of each item's texts. */
export function sweepEnded(
  tx: Tx,
  tenant_id: string,
  ended_before: Millis,
  rows_max: number,
  bytes_max: number,
) {
  return tx.all(SWEEP_ENDED, { tenant_id, ended_before, rows_max, bytes_max })
}

type Listed = ItemRow & { bytes: number }

/**
 * Newest first, without payloads; `status` as everybody sees it at `now`. `rows_max` at most, and none after the first
 * that takes them to `bytes_max`. `reached` is the item up to which was looked when among `looked_max` too few had
 * this status to fill the page; null at the end.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  status: DlqStatus | undefined,
  now: Millis,
  { looked_max, ...page }: PageOfIds & { looked_max: number },
): Promise<{ rows: Listed[]; reached: string | null }> {
  if (status !== 'failed' && status !== 'claimed') {
    const rows = await q.all(LIST[status ?? 'any'], { tenant_id, ...page })
    return { rows: rows.sort(newestFirst), reached: null }
  }
  const { id, looked } = (await q.one(REACH[status], { tenant_id, before_id: page.before_id, looked_max }))!
  const reached = looked === looked_max ? id : null
  const rows = await q.all(LIST[status], { tenant_id, ...page, from_id: reached ?? '', now })
  return { rows: rows.sort(newestFirst), reached }
}

const by_status = (status: DlqStatus) => ofStatus('dlq_items_status', `'${status}'`)
const walks = {
  any: { index: null, order: 'id desc', where: 'tenant_id = :tenant_id and id < :before_id' },
  failed: {
    index: 'dlq_items_open',
    order: 'tenant_id desc, id desc, status desc',
    where: `tenant_id = :tenant_id and status in ('failed', 'claimed') and id < :before_id`,
  },
  claimed: by_status('claimed'),
  resolved: by_status('resolved'),
  archived: by_status('archived'),
}

const LIST = {
  any: listStatement('any', ''),
  failed: listStatement('failed', `and id >= :from_id and ${claimable}`),
  claimed: listStatement('claimed', 'and id >= :from_id and locked_until > :now'),
  resolved: listStatement('resolved', ''),
  archived: listStatement('archived', ''),
}

function listStatement(status: DlqStatus | 'any', condition: string): Statement<Listed> {
  const { index, order, where } = walks[status]
  const texts = ['error', 'workflow_id']
  return sql(
    `dlq.list_${status}`,
    `select ${listed}, ${bytesOf(texts)} as bytes from dlq_items where ${inChunk({
      ...{ ...table, index, order, only_read: true, texts, where: `${where} ${condition}` },
    })}`,
  )
}

const REACH = { failed: reachStatement('failed'), claimed: reachStatement('claimed') }

function reachStatement(status: 'failed' | 'claimed') {
  const { index, order, where } = walks[status]
  return sql<{ id: string; looked: number }>(
    `dlq.reach_${status}`,
    `select min(id) as id, count(*) as looked
       from (select id from dlq_items {by ${index}} where ${where} order by ${order} limit :looked_max) as next_items`,
  )
}

const PURGE = sql(
  'dlq.purge',
  `delete from dlq_items where ${inChunk({ ...table, index: null, order: table.key, where: 'tenant_id = :tenant_id' })}`,
)

/** Removes rows of a tenant that is being purged; answers how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max, bytes_max })
}
