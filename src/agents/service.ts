// Agents: one function per verb. An agent's id is its name.

import { ApiError } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { KeyCache, Plans } from '../contract/services.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Tx } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import * as store from './store.ts'

/** The agent's one-time key. Throws AGENT_ID_TAKEN, QUOTA_EXCEEDED. */
export async function create(
  tx: Tx,
  caller: AdminCaller,
  plans: Plans,
  agent: store.NewAgent,
): Promise<string> {
  const inserted = await store.insert(tx, caller.tenant_id, agent)
  if (!inserted) throw new ApiError('AGENT_ID_TAKEN')
  await quotas.take(tx, caller, plans, 'agents')
  return credentials.issue(tx, agentOf(caller.tenant_id, agent.agent_id))
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
  tenant_id: string,
  agent_id: string,
  grace_seconds: number,
): Promise<credentials.Rotation & { agent: store.AgentRow }> {
  return db.write(async (tx) => {
    const found = await store.markRotated(tx, tenant_id, agent_id)
    if (!found) throw new ApiError('AGENT_NOT_FOUND')
    const agent = (await store.find(tx, tenant_id, agent_id))!
    return {
      agent,
      ...(await credentials.rotate(tx, key_cache, agentOf(tenant_id, agent_id), grace_seconds)),
    }
  })
}

/** Its keys die with the commit; its records stay; its name may be used again. */
export function remove(db: Db, key_cache: KeyCache, tenant_id: string, agent_id: string): Promise<void> {
  return db.write(async (tx) => {
    const removed = await store.remove(tx, tenant_id, agent_id)
    if (!removed) throw new ApiError('AGENT_NOT_FOUND')
    await credentials.revoke(tx, key_cache, agentOf(tenant_id, agent_id))
    await quotas.giveBack(tx, tenant_id, 'agents', 1)
  })
}

function agentOf(tenant_id: string, agent_id: string): credentials.Subject {
  return { tenant_id, kind: 'agent', subject: agent_id }
}
