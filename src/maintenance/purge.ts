// Purges tenants whose 30 days are over: in chunks, so that requests come first, and resumable, because the tenant's
// own row goes last.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Feature, Purge, Purgeable } from '../contract/feature.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import type { DueLists } from '../db/sweep-tenants.ts'

/** Rows of each table that one chunk removes. */
const rows_max = limit(
  'purge.rows',
  500,
  'rows',
  'Rows of each table that one step of the purge of a tenant removes, so that requests wait for no more than one step.',
)
/** Bytes of text that one chunk removes: requests wait for them no longer than for the rows. */
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

interface Plan {
  purgeable: Purgeable
  /** Rows that point to others before those that they point to. */
  purges: readonly Purge[]
}

/** `features` are in the order of `inOrder`, and one of them is purgeable. */
function planOf(features: readonly Feature[]): Plan {
  const purgeable = features.find((feature) => feature.purgeable)?.purgeable
  if (!purgeable) throw new Error('no feature says what is purgeable')
  return { purgeable, purges: features.toReversed().flatMap(({ purge }) => purge ?? []) }
}

/** One bounded step. Returns the tenants that are removed now, and whether another step would find more. */
export async function purgeStep(
  db: Db,
  now: Millis,
  features: readonly Feature[],
  lists: DueLists,
): Promise<{ purged: string[]; more: boolean }> {
  const plan = planOf(features)
  const purged: string[] = []
  const { more } = await lists.of('purge').each(
    (from) => plan.purgeable.due(db, now, from, tenants_a_step_max),
    tenants_a_step_max,
    async ({ tenant_id }) => {
      if (!(await purgeChunks(db, plan, tenant_id))) return 0
      purged.push(tenant_id)
      return 1
    },
  )
  return { purged, more }
}

/** True once nothing of the tenant is left. */
async function purgeChunks(db: Db, plan: Plan, tenant_id: string): Promise<boolean> {
  for (let chunk = 0; chunk < chunks_a_step_max; chunk++)
    if (await purgeChunk(db, plan, tenant_id)) return true
  return false
}

/** True when nothing of the tenant was left, and its own row is removed as well. */
function purgeChunk(db: Db, { purgeable, purges }: Plan, tenant_id: string): Promise<boolean> {
  return db.write(upkeep, async (tx) => {
    if (!(await purgeable.lock(tx, tenant_id))) return false
    if ((await purgeRows(tx, purges, tenant_id)) > 0) return false
    // A row that another node was changing was waited for and skipped: now it is read as it is.
    if ((await purgeRows(tx, purges, tenant_id)) > 0) return false
    await purgeable.remove(tx, tenant_id)
    return true
  })
}

async function purgeRows(tx: Tx, purges: readonly Purge[], tenant_id: string): Promise<number> {
  let removed = 0
  for (const purge of purges) removed += await purge(tx, tenant_id, rows_max, bytes_max)
  return removed
}
