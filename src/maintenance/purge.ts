// Purges tenants whose 30 days are over: in chunks, so that requests come first, and resumable, because the tenant's
// own row goes last.

import * as agents from '../agents/service.ts'
import * as approvalKeys from '../approval-keys/service.ts'
import * as audit from '../audit/service.ts'
import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import * as checkpoints from '../checkpoints/service.ts'
import * as credentials from '../credentials/service.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as dlq from '../dlq/service.ts'
import * as idempotency from '../idempotency/service.ts'
import * as inbox from '../inbox/service.ts'
import * as jobs from '../jobs/service.ts'
import * as kv from '../kv/service.ts'
import * as quotas from '../quotas/service.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'
import * as usage from '../usage/service.ts'

/** Rows of each table that one chunk removes. */
const rows_max = limit(
  'purge.rows',
  500,
  'rows',
  'Rows of each table that one step of the purge of a tenant removes, so that requests wait for no more than one step.',
)
/** And about how much text of each: requests wait for it no longer than for the rows. */
const bytes_max = limit(
  'purge.bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes that one step of the purge removes where rows may be large.',
)
const tenants_a_step_max = limit(
  'purge.tenants',
  4,
  'entries',
  'Tenants that one step of the purge works on.',
)
const chunks_a_step_max = limit('purge.chunks', 8, 'entries', 'Transactions in one step of the purge.')

type Purge = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => number | Promise<number>

/** What points to a tenant before what it points to. */
const purges: Purge[] = [
  jobs.purge,
  schedules.purge,
  checkpoints.purge,
  dlq.purge,
  inbox.purge,
  kv.purge,
  audit.purge,
  idempotency.purge,
  approvalKeys.purge,
  agents.purge,
  credentials.purge,
  quotas.purge,
  usage.purge,
]

/** One bounded step. Answers which tenants are gone now, and whether another step would find more. */
export async function purgeStep(db: Db, now: Millis): Promise<{ purged: string[]; more: boolean }> {
  const due = await tenants.purgeable(db, now, tenants_a_step_max)
  const purged: string[] = []
  for (const { tenant_id } of due) {
    let gone = false
    for (let chunk = 0; chunk < chunks_a_step_max && !gone; chunk++) gone = await purgeChunk(db, tenant_id)
    if (gone) purged.push(tenant_id)
  }
  return { purged, more: purged.length < due.length || due.length === tenants_a_step_max }
}

/** True when nothing of the tenant was left, and its own row is gone as well. */
function purgeChunk(db: Db, tenant_id: string): Promise<boolean> {
  return db.write(upkeep, async (tx) => {
    if (!(await tenants.lockPurgeable(tx, tenant_id))) return false
    if ((await purgeRows(tx, tenant_id)) > 0) return false
    // A row that another node was changing has been waited for, and left out: now it is seen as it is.
    if ((await purgeRows(tx, tenant_id)) > 0) return false
    await tenants.finishPurge(tx, tenant_id)
    return true
  })
}

async function purgeRows(tx: Tx, tenant_id: string): Promise<number> {
  let removed = 0
  for (const purge of purges) removed += await purge(tx, tenant_id, rows_max, bytes_max)
  return removed
}
