// Agents: one function per verb. An agent's id is its name.

import './errors.ts'
import { ApiError, invalid } from '../base/errors.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { KeyCache, Plans, Urls } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Tx } from '../db/db.ts'
import { row_bytes, rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import * as store from './store.ts'

export const { idsFrom, unpaused } = store

/** The agent's one-time key. Throws AGENT_ID_TAKEN, QUOTA_EXCEEDED. */
export async function create(
  tx: Tx,
  caller: AdminCaller,
  plans: Plans,
  agent: store.NewAgent,
): Promise<string> {
  const { agent_id, description, callback_base_url } = agent
  quotas.reserveBytes(tx, caller, plans, rowBytes(agent_id, description, callback_base_url))
  const inserted = await store.insert(tx, caller.tenant_id, agent)
  if (!inserted) throw new ApiError('AGENT_ID_TAKEN')
  await quotas.reserve(tx, caller, plans, 'agents')
  const key = await credentials.issue(tx, agentOf(caller.tenant_id, agent_id))
  await journal.emit(tx, events['agent.created'], { ...aboutOf(caller, agent_id), data: {} })
  return key
}

/** The head of an event of this agent. */
export function aboutOf(caller: AdminCaller, agent_id: string) {
  return { tenant_id: caller.tenant_id, cause: causeOf(caller), subject_id: agent_id }
}

/**
 * A callback_url as it will be called: one that starts with / is resolved against the agent's callback_base_url.
 * Throws VALIDATION_FAILED when there is none, or when the URL may not be called. `at` is the body's member that holds it.
 */
export async function callbackUrl(
  db: Db,
  dependencies: Guarded,
  caller: AgentCaller,
  given: string,
  at = '/callback_url',
): Promise<string> {
  const url = given.startsWith('/') ? await resolved(db, caller, given, at) : given
  await requireCallable(dependencies, caller.tenant_id, at, url)
  return url
}

interface Guarded {
  urls: Pick<Urls, 'callbackRefusal'>
}

/** Throws VALIDATION_FAILED for a URL that may not be called. `path` is the body's member that holds it. */
export async function requireCallable(
  dependencies: Guarded,
  tenant_id: string,
  path: string,
  url: string | undefined,
): Promise<undefined> {
  const refusal = url === undefined ? null : await dependencies.urls.callbackRefusal(tenant_id, url)
  if (refusal !== null) throw invalid({ path, message: refusal })
}

async function resolved(
  db: Db,
  { tenant_id, agent_id }: AgentCaller,
  given: string,
  at: string,
): Promise<string> {
  const base = (await store.find(db, tenant_id, agent_id))?.callback_base_url ?? null
  if (base === null) throw invalid({ path: at, message: 'is a path, and the agent has no callback_base_url' })
  const url = URL.parse(given, base)
  if (!url) throw invalid({ path: at, message: 'does not resolve against the callback_base_url' })
  return url.href
}

/** Throws AGENT_NOT_FOUND. */
export async function read(db: Db, tenant_id: string, agent_id: string): Promise<store.AgentRow> {
  const agent = await store.find(db, tenant_id, agent_id)
  if (!agent) throw new ApiError('AGENT_NOT_FOUND')
  return agent
}

export function rotateKey(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  { agent_id, grace_seconds }: { agent_id: string; grace_seconds: number },
): Promise<credentials.Rotation & { agent: store.AgentRow }> {
  const { tenant_id } = caller
  return credentials.endKeys(db, key_cache, tenant_id, async (tx, ending) => {
    const found = await store.markRotated(tx, tenant_id, agent_id)
    if (!found) throw new ApiError('AGENT_NOT_FOUND')
    const agent = (await store.find(tx, tenant_id, agent_id))!
    const rotation = await credentials.rotate(tx, ending, agentOf(tenant_id, agent_id), grace_seconds)
    const data = { grace_seconds }
    await journal.emit(tx, events['agent.key_rotated'], { ...aboutOf(caller, agent_id), data })
    return { agent, ...rotation }
  })
}

/** Its keys end with the commit; its records stay; its name may be used again. */
export function remove(db: Db, key_cache: KeyCache, caller: AdminCaller, agent_id: string): Promise<void> {
  const { tenant_id } = caller
  return credentials.endKeys(db, key_cache, tenant_id, async (tx, ending) => {
    const removed = await store.remove(tx, tenant_id, agent_id)
    if (!removed) throw new ApiError('AGENT_NOT_FOUND')
    tx.stores(tenant_id, -removed.bytes - row_bytes)
    await credentials.revoke(tx, ending, agentOf(tenant_id, agent_id))
    await quotas.release(tx, tenant_id, 'agents', 1)
    await journal.emit(tx, events['agent.deleted'], { ...aboutOf(caller, agent_id), data: {} })
  })
}

function agentOf(tenant_id: string, agent_id: string): credentials.Subject {
  return { tenant_id, kind: 'agent', subject: agent_id }
}
