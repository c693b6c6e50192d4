// Pause, resume and mode of an agent: they say how much it may do.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller, AgentMode } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import type { Awaitable, Db, Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { events } from './events.ts'
import { aboutOf } from './service.ts'
import * as store from './store.ts'

/** An agent that is paused stays as it is. Throws AGENT_NOT_FOUND. */
export function pause(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  agent_id: string,
  reason: string | null,
): Promise<store.AgentRow> {
  return change(db, key_cache, caller, agent_id, {
    isSo: ({ paused_at }) => paused_at !== null,
    work: (tx) => store.pause(tx, caller.tenant_id, agent_id, reason),
    emit: (tx, about) => journal.emit(tx, events['agent.paused'], { ...about, data: { reason } }),
  })
}

/** An agent that is not paused stays as it is. Throws AGENT_NOT_FOUND. */
export function resume(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  agent_id: string,
): Promise<store.AgentRow> {
  return change(db, key_cache, caller, agent_id, {
    isSo: ({ paused_at }) => paused_at === null,
    work: (tx) => store.resume(tx, caller.tenant_id, agent_id),
    emit: (tx, about) => journal.emit(tx, events['agent.resumed'], { ...about, data: {} }),
  })
}

/** Throws AGENT_NOT_FOUND. */
export function setMode(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  agent_id: string,
  mode: AgentMode,
): Promise<store.AgentRow> {
  return change(db, key_cache, caller, agent_id, {
    isSo: (agent) => agent.mode === mode,
    work: (tx) => store.setMode(tx, caller.tenant_id, agent_id, mode),
    emit: (tx, about) => journal.emit(tx, events['agent.mode_changed'], { ...about, data: { mode } }),
  })
}

interface Change {
  /** False when the agent is so already, as far as the statement saw, or is not there. */
  work: (tx: Tx) => Promise<boolean>
  isSo: (agent: Pick<store.AgentRow, 'mode' | 'paused_at'>) => boolean
  /** The event of what has changed. */
  emit: (tx: Tx, about: ReturnType<typeof aboutOf>) => Awaitable<unknown>
}

/**
 * The keys of the tenant are looked up again, on all nodes, when something has changed. An agent that is so already stays so until
 * this transaction ends: a change that is under way is waited for.
 */
function change(
  db: Db,
  key_cache: KeyCache,
  caller: AdminCaller,
  agent_id: string,
  { work, isSo, emit }: Change,
): Promise<store.AgentRow> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    for (;;) {
      if (await work(tx)) {
        await emit(tx, aboutOf(caller, agent_id))
        tx.afterCommit(() => key_cache.clear(tenant_id))
        break
      }
      const held = await store.lock(tx, tenant_id, agent_id)
      // One that is made from now on is not what was asked for.
      if (!held) throw new ApiError('AGENT_NOT_FOUND')
      if (isSo(held)) break
    }
    return (await store.find(tx, tenant_id, agent_id))!
  })
}
