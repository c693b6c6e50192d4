// Every statement on tenant_lookups.

import { amongFirst, upToLastOf } from '../db/chunk.ts'
import { byHash, type Reader, sql, type Tx } from '../db/db.ts'

export type LookupKind = 'name' | 'key' | 'inbox'

const CLAIM = sql(
  'lookups.claim',
  `insert into tenant_lookups (value, kind, tenant_id) values (:value, :kind, :tenant_id)
   on conflict (value, kind) do nothing`,
)

const FIND = byHash<{ tenant_id: string }>(
  'lookups.find',
  'select tenant_id from tenant_lookups where value = :hash and kind = :kind',
)

const REMOVE = sql(
  'lookups.remove',
  'delete from tenant_lookups where value = :value and kind = :kind and tenant_id = :tenant_id',
)

/** But for its name, which stays taken until its own row goes. */
const of_tenant = {
  table: 'tenant_lookups',
  key: 'value, kind',
  index: 'tenant_lookups_tenant',
  order: 'tenant_id, value, kind',
  where: "tenant_id = :tenant_id and kind <> 'name'",
}
const PURGE = sql(
  'lookups.purge',
  `delete from tenant_lookups where ${amongFirst(of_tenant)}`,
  `delete from tenant_lookups where ${of_tenant.where} and ${upToLastOf({ ...of_tenant, order: 'value' })}`,
)

/** False when the value leads to a tenant already. */
export async function claim(tx: Tx, tenant_id: string, kind: LookupKind, value: string): Promise<boolean> {
  return (await tx.run(CLAIM, { tenant_id, kind, value })) === 1
}

/** The tenant of a key or token, by its hash. */
export function find(q: Reader, kind: LookupKind, hash: string) {
  return q.one(FIND, { kind, hash })
}

export function remove(tx: Tx, tenant_id: string, kind: LookupKind, value: string) {
  return tx.run(REMOVE, { tenant_id, kind, value })
}

/** Removes rows of a tenant that is being purged, but not its name; returns how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number) {
  return tx.run(PURGE, { tenant_id, rows_max })
}
