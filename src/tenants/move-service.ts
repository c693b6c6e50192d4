// The resume of a tenant moves its deadlines by the frozen time, in bounded steps. The place that they have reached stands in
// the tenant's row, and changes in the transaction that moves: a step that was interrupted has moved nothing.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Dependencies, KeyCache } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import * as store from './freeze-store.ts'
import type { TenantRow } from './tenant.ts'

const move_rows_max = limit(
  'tenants.move_rows',
  500,
  'rows',
  'Rows of a table that one step of a resume moves by the frozen time, so that requests wait for no more than one step.',
)

export interface MoveDependencies extends Pick<Dependencies, 'deadlines'> {
  keys: { cache: Pick<KeyCache, 'clear'> }
}

/**
 * Moves a part of what runs out, for a tenant whose row this transaction has locked. Returns the tenant, which is frozen no
 * longer unless it was frozen again meanwhile; null when there is more to move.
 */
export async function moveStep(
  tx: Tx,
  { deadlines, keys }: MoveDependencies,
  tenant_id: string,
  { frozen_at, resumed_at, moved_to }: store.Frozen,
): Promise<TenantRow | null> {
  const move = { tenant_id, frozen_at, frozen_ms: resumed_at! - frozen_at }
  const [reached, after_id] = (moved_to ?? '').split(' ') as [string, string | undefined]
  for (const table of deadlines.filter(({ name }) => name >= reached)) {
    const { last_id, more } = await table.move(
      tx,
      move,
      table.name === reached ? after_id! : '',
      move_rows_max,
    )
    if (!more) continue
    await store.setMoved(tx, tenant_id, placeOf(table.name, last_id!))
    return null
  }
  const tenant = await store.endResume(tx, tenant_id)
  tx.afterCommit(() => keys.cache.clear(tenant_id))
  return tenant
}

export const lockFreeze = store.lock

/** How rows that run out are judged while their tenant is frozen, and while a resume moves them. */
export interface FrozenDeadlines {
  /** A row that ran out by then had run out before the freeze. */
  frozen_at: Millis
  /** Rows up to this id have been moved; empty when none has. */
  last_moved_id: string
  /** A row that was moved has run out when it ends by then. */
  moved_now: Millis
}

/** Of the rows of this table, for a tenant whose row this transaction has locked. */
export function frozenDeadlines(now: Millis, frozen: store.Frozen, name: string): FrozenDeadlines {
  const { frozen_at, moved_to, frozen_again_at } = frozen
  const [reached, last_id = ''] = (moved_to ?? '').split(' ') as [string, string | undefined]
  const last_moved_id = reached === name ? last_id : reached > name ? after_all_ids : ''
  return { frozen_at, last_moved_id, moved_now: frozen_again_at ?? now }
}

/** Ids begin with the three letters of their kind. */
const after_all_ids = 'z'

/** Tables are moved in the order of their names, the rows of each in the order of their ids. */
function placeOf(name: string, id: string): string {
  return `${name} ${id}`
}

/**
 * The time by which the lock, lease or timeout of this row is judged and set. It stands still while the tenant is frozen, since
 * the row is moved by the frozen time afterwards. Locks the row of a frozen tenant; of others it costs no statement.
 */
export async function deadlineNow(tx: Tx, caller: TenantFacts, name: string, id: string): Promise<number> {
  if (caller.frozen_at == null) return tx.now
  return deadlineAt(tx.now, await store.lock(tx, caller.tenant_id), name, id)
}

/** The same, for a tenant whose row this transaction has locked. Null: it is not frozen. */
export function deadlineAt(at: Millis, frozen: store.Frozen | null, name: string, id: string): Millis {
  if (!frozen) return at
  const { frozen_at, resumed_at, moved_to, frozen_again_at } = frozen
  if (resumed_at === null) return frozen_at
  const now = frozen_again_at ?? at
  return placeOf(name, id) <= moved_to! ? now : now - (resumed_at - frozen_at)
}
