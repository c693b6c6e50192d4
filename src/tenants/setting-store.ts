// Statements on what a tenant has turned on.

import { sql, type Tx } from '../db/db.ts'

const ADD_EVENT_NAMESPACE = sql(
  'tenants.add_event_namespace',
  `update tenants set kv_events = kv_events + 1 where tenant_id = :tenant_id and kv_events < :namespaces_max`,
)

const REMOVE_EVENT_NAMESPACE = sql(
  'tenants.remove_event_namespace',
  'update tenants set kv_events = kv_events - 1 where tenant_id = :tenant_id and kv_events > 0',
)

// Of two calls that set namespaces the second finds what the first has done.
const LOCK_EVENT_NAMESPACES = sql(
  'tenants.lock_event_namespaces',
  'update tenants set kv_events = kv_events where tenant_id = :tenant_id',
)

/** Which namespaces leave events is changed by no other transaction before this one ends. */
export function lockEventNamespaces(tx: Tx, tenant_id: string) {
  return tx.run(LOCK_EVENT_NAMESPACES, { tenant_id })
}

/** Counts a namespace that leaves events; false when the tenant has as many as it may. */
export async function addEventNamespace(tx: Tx, tenant_id: string, namespaces_max: number): Promise<boolean> {
  return (await tx.run(ADD_EVENT_NAMESPACE, { tenant_id, namespaces_max })) === 1
}

export function removeEventNamespace(tx: Tx, tenant_id: string) {
  return tx.run(REMOVE_EVENT_NAMESPACE, { tenant_id })
}
