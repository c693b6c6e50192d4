// Audit log: append and read. Nothing changes or removes an entry.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { type AdminCaller, type AgentCaller, actorOf } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Db, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import * as store from './store.ts'

export const begin = store.begin

interface Append extends Pick<store.EntryRow, 'action' | 'workflow_id' | 'metadata'> {
  actor: string | null
}

/** Throws QUOTA_EXCEEDED. */
export async function append(
  tx: Tx,
  caller: AdminCaller | AgentCaller,
  plans: Plans,
  input: Append,
): Promise<store.EntryRow> {
  const { action, workflow_id, metadata } = input
  const { tenant_id, request_id } = caller
  const actor = input.actor ?? actorOf(caller)
  const agent_id = caller.kind === 'agent' ? caller.agent_id : null
  quotas.reserveBytes(tx, caller, plans, rowBytes(action, workflow_id, actor, metadata, agent_id, request_id))
  const { seq, last_at } = await store.next(tx, tenant_id)
  const entry: store.EntryRow = {
    id: newId('log', last_at),
    seq,
    action,
    workflow_id,
    actor,
    metadata,
    agent_id,
    request_id,
    created_at: last_at,
  }
  const about = { tenant_id, cause: causeOf(caller), subject_id: entry.id, workflow_id }
  await Promise.all([
    store.insert(tx, tenant_id, entry),
    journal.emit(tx, events['audit.appended'], { ...about, data: { action, entry_seq: seq } }),
  ])
  return entry
}

/** Throws AUDIT_ENTRY_NOT_FOUND. */
export async function read(db: Db, tenant_id: string, id: string): Promise<store.EntryRow> {
  const entry = await store.find(db, tenant_id, id)
  if (!entry) throw new ApiError('AUDIT_ENTRY_NOT_FOUND')
  return entry
}
