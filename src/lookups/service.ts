// The tenants of names, keys and inbox tokens. They never change: a value is claimed once, with the row that it stands for,
// and removed with it or after it.

import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'
import type { Db } from '../db/db.ts'
import { DelegatingDb } from '../db/delegating.ts'
import * as store from './store.ts'

export const { claim, remove } = store

const known_max = limit(
  'lookups.known',
  10_000,
  'entries',
  'Keys and inbox tokens whose tenant a node remembers. Past it the least recently used are looked up again.',
)

const known = new WeakMap<Db, Remembered<string>>()

/** The tenant of a key or token, by its hash; null when there is none. One that was removed may still be found. */
export async function tenantOf(db: Db, kind: 'key' | 'inbox', hash: string): Promise<string | null> {
  const tenants = knownOf(db)
  const tenant_id = tenants.get(hash) ?? (await store.find(db, kind, hash))?.tenant_id
  if (tenant_id === undefined) return null
  tenants.put(hash, tenant_id)
  return tenant_id
}

/** True when this node has found the tenant of this value before. */
export function isKnown(db: Db, hash: string): boolean {
  return knownOf(db).get(hash) !== undefined
}

/** One for each database, also where another stands in front of it. */
function knownOf(db: Db): Remembered<string> {
  const behind = DelegatingDb.behind(db)
  const tenants = known.get(behind) ?? new Remembered<string>(known_max)
  known.set(behind, tenants)
  return tenants
}
