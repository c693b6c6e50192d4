// Statements on seal_heads and seal_checkpoints.

import type { Millis } from '../base/clock.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import { purging, purgingAll } from '../db/purge.ts'
import * as tiles from './tile-store.ts'

export interface HeadRow {
  size: number
  /** Hashes as text. */
  edge: string
  /** When the next checkpoint is kept; null while nothing has happened since the last. */
  checkpoint_at: Millis | null
}

const FIND_HEAD = sql<HeadRow>(
  'seal.head',
  'select size, edge, checkpoint_at from seal_heads where tenant_id = :tenant_id',
)

// Locks the row even when it is pending already, so that a step that clears it sees what was numbered before.
const MARK_PENDING = sql(
  'seal.mark_pending',
  `insert into seal_heads (tenant_id, size, pending_at, checkpoint_at, edge)
   values (:tenant_id, 0, :pending_at, null, '')
   on conflict (tenant_id) do update set pending_at = excluded.pending_at where seal_heads.pending_at is null`,
)

// When two nodes seal the same events, one of them finds another size.
const GROW = sql(
  'seal.grow',
  `update seal_heads set size = :size, edge = :edge, pending_at = null,
          checkpoint_at = case when checkpoint_at is null and :has_news = 1 then :checkpoint_at else checkpoint_at end
    where tenant_id = :tenant_id and size = :old_size`,
)

const TENANTS_PENDING = tenantsDue('seal.tenants_pending', 'seal_heads_pending', 'pending_at')
const TENANTS_CHECKPOINT = tenantsDue('seal.tenants_checkpoint', 'seal_heads_checkpoints', 'checkpoint_at')

function tenantsDue(name: string, index: string, due_at: string) {
  return acrossTenants<{ tenant_id: string }>(
    name,
    `select distinct tenant_id from
       (select tenant_id from seal_heads {by ${index}}
         where ${due_at} <= :now order by ${due_at} limit :rows_max) as due`,
  )
}

export function head(q: Reader, tenant_id: string) {
  return q.one(FIND_HEAD, { tenant_id })
}

export function markPending(tx: Tx, tenant_id: string, pending_at: Millis) {
  return tx.run(MARK_PENDING, { tenant_id, pending_at })
}

/** False when the tree has another size by now. */
export async function grow(
  tx: Tx,
  tenant_id: string,
  old_size: number,
  { size, edge, has_news, checkpoint_at }: HeadRow & { has_news: boolean },
): Promise<boolean> {
  const values = { tenant_id, old_size, size, edge, has_news: has_news ? 1 : 0, checkpoint_at }
  return (await tx.run(GROW, values)) > 0
}

export function tenantsPending(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_PENDING, { now, rows_max })
}

export function tenantsWithCheckpoint(q: Reader, now: Millis, rows_max: number) {
  return q.all(TENANTS_CHECKPOINT, { now, rows_max })
}

export interface CheckpointRow {
  size: number
  root: string
  note: string
}

const END_WAIT = sql(
  'seal.end_wait',
  `update seal_heads set checkpoint_at = null
    where tenant_id = :tenant_id and size = :size and checkpoint_at <= :now`,
)

const KEEP_CHECKPOINT = sql(
  'seal.keep_checkpoint',
  `insert into seal_checkpoints (tenant_id, size, root, created_at, note)
   values (:tenant_id, :size, :root, :now, :note) on conflict do nothing`,
)

/** False when the tree has grown, or another node has made the checkpoint. */
export async function keepCheckpoint(tx: Tx, tenant_id: string, row: CheckpointRow): Promise<boolean> {
  if ((await tx.run(END_WAIT, { tenant_id, size: row.size, now: tx.now })) === 0) return false
  await tx.run(KEEP_CHECKPOINT, { tenant_id, now: tx.now, ...row })
  return true
}

const CHECKPOINTS = sql<CheckpointRow & { created_at: Millis }>(
  'seal.checkpoints',
  `select size, root, note, created_at from seal_checkpoints
    where tenant_id = :tenant_id and size < :before_size order by tenant_id desc, size desc limit :rows_max`,
)

/** Those that were kept, the newest first. */
export function checkpoints(q: Reader, tenant_id: string, before_size: number, rows_max: number) {
  return q.all(CHECKPOINTS, { tenant_id, before_size, rows_max })
}

const WORKFLOW = sql<{ events: number; gone: number }>(
  'seal.workflow',
  'select events, gone from workflows where tenant_id = :tenant_id and workflow_id = :workflow_id',
)

/** How many events of a workflow have numbers, and how many of these retention has removed, private ones apart; null when it has none. */
export function workflow(q: Reader, tenant_id: string, workflow_id: string) {
  return q.one(WORKFLOW, { tenant_id, workflow_id })
}

export const purge = [
  tiles.purge,
  purging('seal.purge_checkpoints', { table: 'seal_checkpoints', key: 'tenant_id, size' }),
  purgingAll('seal.purge_head', 'seal_heads'),
]
