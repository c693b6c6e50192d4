// What a change of a pending schedule needs to know, and the events that it leaves.

import type { AgentCaller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import { type ScheduleRow, type Settings, texts } from './schedule.ts'
import * as store from './store.ts'

/** Called before anything is written, so that a refusal undoes nothing. One that is not pending is refused later. */
export async function requireRoom(
  tx: Tx,
  caller: AgentCaller,
  plans: Plans,
  id: string,
  change: Partial<Settings>,
): Promise<void> {
  const changed = texts.filter((name) => change[name] !== undefined)
  const bytesIn = (settings: Partial<Settings>) =>
    changed.reduce((sum, name) => sum + textBytes(settings[name]!), 0)
  const bytes = bytesIn(change)
  if (bytes === 0 || !(tx.disk_full || quotas.overBy(tx, caller, plans, bytes))) return
  const before = await store.find(tx, caller.tenant_id, id)
  if (before?.status !== 'pending') return
  quotas.requireRoom(tx, caller, plans, bytes - bytesIn(before))
}

/** True when another payload is sent, or to another URL. Nobody else changes it meanwhile: the job's row is locked. */
export async function isOther(tx: Tx, tenant_id: string, id: string, change: Partial<Settings>) {
  if (change.callback_url === undefined && change.callback_payload === undefined) return false
  const stored = (await store.stored(tx, tenant_id, id))!
  const { callback_url = stored.callback_url, callback_payload = stored.callback_payload } = change
  return callback_url !== stored.callback_url || callback_payload !== stored.callback_payload
}

/** Leaves the events of a schedule whose workflow was changed: one workflow no longer waits for it, another does. */
export async function moved(
  tx: Tx,
  caller: AgentCaller,
  { id, workflow_id }: ScheduleRow,
  left: string,
): Promise<void> {
  if (left === workflow_id) return
  const about = (in_workflow: string) => aboutOf(caller, { id, workflow_id: in_workflow })
  if (left !== '') {
    const data = { to: workflow_id || null }
    await journal.emit(tx, events['schedule.workflow_left'], { ...about(left), data })
  }
  if (workflow_id !== '') {
    const data = { from: left || null }
    await journal.emit(tx, events['schedule.workflow_joined'], { ...about(workflow_id), data })
  }
}

/** What every event of a schedule says that a caller causes. */
export function aboutOf(caller: AgentCaller, { id, workflow_id }: Pick<ScheduleRow, 'id' | 'workflow_id'>) {
  const { tenant_id } = caller
  return { tenant_id, cause: causeOf(caller), subject_id: id, workflow_id: workflow_id || null }
}
