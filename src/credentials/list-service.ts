// All keys of a tenant, for the operator.

import type { Millis } from '../base/clock.ts'
import type { KeyKind } from '../base/keys.ts'
import { limit } from '../base/limit.ts'
import type { Db, Tx } from '../db/db.ts'
import * as lookups from '../lookups/service.ts'
import * as store from './list-store.ts'

export type { KeyRow } from './list-store.ts'

const rows_max = limit(
  'credentials.rows',
  500,
  'rows',
  'Keys that one statement of an operator’s command lists or ends, so that requests wait for no more than these.',
)

/** Those that were last used, or made, before this time. */
export async function unused(db: Db, tenant_id: string, before: Millis): Promise<store.KeyRow[]> {
  const found: store.KeyRow[] = []
  for (let after: store.KeyRow | undefined; ; ) {
    const rows = await store.page(db, tenant_id, after, rows_max)
    found.push(...rows.filter(({ used_at, created_at }) => (used_at ?? created_at) < before))
    if (rows.length < rows_max) return found
    after = rows.at(-1)
  }
}

/** Ends a bounded number of the tenant's keys, of every kind. Returns how many; none when there are no more. */
export async function endSome(tx: Tx, tenant_id: string): Promise<Record<KeyKind, number>> {
  const ended = await store.endFirst(tx, tenant_id, rows_max)
  for (const { hash } of ended) await lookups.remove(tx, tenant_id, 'key', hash)
  const count = (kind: KeyKind) => ended.filter((key) => key.kind === kind).length
  return { admin: count('admin'), agent: count('agent'), approval: count('approval') }
}
