// Statements on kv_namespaces: the namespaces whose changes leave events.

import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

const here = 'tenant_id = :tenant_id and namespace = :namespace'

const INSERT = sql(
  'kv.insert_namespace',
  `insert into kv_namespaces (tenant_id, namespace, created_at) values (:tenant_id, :namespace, :now)`,
)

const DELETE = sql('kv.delete_namespace', `delete from kv_namespaces where ${here}`)

const FIND = sql<{ namespace: string }>(
  'kv.find_namespace',
  `select namespace from kv_namespaces where ${here}`,
)

const LIST = sql<{ namespace: string }>(
  'kv.list_namespaces',
  `select namespace from kv_namespaces where tenant_id = :tenant_id order by namespace limit :rows_max`,
)

/** One whose changes leave no events yet. */
export function insert(tx: Tx, tenant_id: string, namespace: string) {
  return tx.run(INSERT, { tenant_id, namespace, now: tx.now })
}

/** False when its changes leave no events. */
export async function remove(tx: Tx, tenant_id: string, namespace: string): Promise<boolean> {
  return (await tx.run(DELETE, { tenant_id, namespace })) === 1
}

/** True when its changes leave events. */
export async function leavesEvents(q: Reader, tenant_id: string, namespace: string): Promise<boolean> {
  return (await q.one(FIND, { tenant_id, namespace })) !== null
}

/** Those whose changes leave events, in bytewise order. */
export async function names(q: Reader, tenant_id: string, rows_max: number): Promise<string[]> {
  return (await q.all(LIST, { tenant_id, rows_max })).map(({ namespace }) => namespace)
}

export const purge = purging('kv.purge_namespaces', { table: 'kv_namespaces', key: 'tenant_id, namespace' })
