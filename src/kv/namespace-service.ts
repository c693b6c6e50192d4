// Namespaces: whether their changes leave events.

import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { KeyCache, Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as quotas from '../quotas/service.ts'
import * as tenants from '../tenants/service.ts'
import { isForbiddenNamespace, ownerOf, type Place } from './entry.ts'
import { emitSetting } from './event-service.ts'
import { namespaces } from './lists.ts'
import * as store from './namespace-store.ts'

export const namespaces_max = limit(
  'kv.event_namespaces',
  100,
  'rows',
  'Namespaces of a tenant that may leave events. One more is 409 TOO_MANY_NAMESPACES.',
)

export interface Namespace {
  namespace: string
  /** The agent whose private namespace it is; null for a shared one. */
  agent_id: string | null
  /** True when its changes leave events. */
  events: boolean
}

interface SetDependencies {
  plans: Plans
  keys: { cache: KeyCache }
}

/**
 * Returns once every node goes by it: a change that begins afterwards leaves an event, or none. Throws
 * NAMESPACE_FORBIDDEN, TOO_MANY_NAMESPACES, QUOTA_EXCEEDED.
 */
export async function setEvents(
  db: Db,
  caller: AdminCaller,
  { plans, keys }: SetDependencies,
  namespace: string,
  events: boolean,
): Promise<Namespace> {
  requireReadable(caller, namespace)
  await db.write(caller.tenant_id, async (tx) => {
    // A setting that is found as it was asked for stays so until the commit: another call that changes it is waited for.
    await tenants.lockEventNamespaces(tx, caller.tenant_id)
    const changed = await (events ? enable(tx, caller, plans, namespace) : disable(tx, caller, namespace))
    if (!changed) return
    await emitSetting(tx, caller.tenant_id, causeOf(caller), namespace, events)
    tx.afterCommit(() => keys.cache.clear(caller.tenant_id))
  })
  // Also without a change: the call that made it may have ended before it was answered.
  await keys.cache.forgottenEverywhere()
  return { namespace, agent_id: ownerOf(namespace), events }
}

/** False when nothing changed. */
async function enable(tx: Tx, caller: AdminCaller, plans: Plans, namespace: string): Promise<boolean> {
  if (await store.leavesEvents(tx, caller.tenant_id, namespace)) return false
  quotas.reserveBytes(tx, caller, plans, rowBytes(namespace))
  await store.insert(tx, caller.tenant_id, namespace)
  const counted = await tenants.addEventNamespace(tx, caller.tenant_id, namespaces_max)
  if (!counted) throw new ApiError('TOO_MANY_NAMESPACES')
  return true
}

async function disable(tx: Tx, { tenant_id }: AdminCaller, namespace: string): Promise<boolean> {
  if (!(await store.remove(tx, tenant_id, namespace))) return false
  await tenants.removeEventNamespace(tx, tenant_id)
  tx.stores(tenant_id, -rowBytes(namespace))
  return true
}

/** Throws NAMESPACE_FORBIDDEN. */
export async function read(db: Db, caller: AgentCaller | AdminCaller, namespace: string): Promise<Namespace> {
  requireReadable(caller, namespace)
  const events = await store.leavesEvents(db, caller.tenant_id, namespace)
  return { namespace, agent_id: ownerOf(namespace), events }
}

/** Those that hold a live key or leave events, and that the caller may read, in bytewise order. `next`: as for namespaces(). */
export async function list(
  db: Db,
  caller: AgentCaller | AdminCaller,
  after: Place,
  now: Millis,
  names_max: number,
): Promise<{ items: Namespace[]; next: Place | null }> {
  const held = await namespaces(db, caller, after, now, names_max)
  const leave_events = caller.kv_events ? await store.names(db, caller.tenant_id, namespaces_max) : []
  const others = leave_events.filter((name) => {
    const is_listed = isBehind(name, after) && (held.next === null || !isBehind(name, held.next))
    return is_listed && !isForbiddenNamespace(name, caller)
  })
  const names = [...new Set([...held.names, ...others])].toSorted((a, b) => (a < b ? -1 : 1))
  const items = names.slice(0, names_max).map((namespace) => ({
    namespace,
    agent_id: ownerOf(namespace),
    events: leave_events.includes(namespace),
  }))
  const is_cut = names.length > names_max
  return { items, next: is_cut ? { namespace: items.at(-1)!.namespace, key: null } : held.next }
}

/** True when a list that goes on there comes to this namespace. */
function isBehind(name: string, { namespace, key }: Place): boolean {
  return name > namespace || (name === namespace && key !== null)
}

function requireReadable(caller: AgentCaller | AdminCaller, namespace: string): void {
  if (isForbiddenNamespace(namespace, caller)) throw new ApiError('NAMESPACE_FORBIDDEN')
}
