// Key-value store: one function per verb. Lists are in lists.ts, the sweep in sweep.ts.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import type { Batch, Db, Turn, Tx } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import {
  type EntryRow,
  ifMatchHolds,
  isForbiddenNamespace,
  isReservedKey,
  type KeyRef,
  type PutInput,
  preconditionFailed,
  prefixEnd,
  tombstone_ms,
} from './entry.ts'
import { emitDeleted } from './event-service.ts'
import * as store from './store.ts'
import { reserve } from './sweep.ts'
import { leavesEvents, type Put, putIn } from './write-service.ts'

export { prefixEnd, reserve, tombstone_ms }

/** Throws KEY_NOT_FOUND, VERSION_MISMATCH (412). */
export async function read(
  db: Db,
  caller: AgentCaller | AdminCaller,
  ref: KeyRef,
  if_match: string | null,
  now: Millis,
): Promise<EntryRow> {
  requireAllowed(caller, ref)
  const entry = await store.find(db, caller.tenant_id, ref, now)
  if (!entry) throw new ApiError('KEY_NOT_FOUND')
  if (if_match !== null && !ifMatchHolds(if_match, entry.version)) throw preconditionFailed(entry)
  return entry
}

/** Throws NAMESPACE_FORBIDDEN, VERSION_MISMATCH (409 for cas_version, 412 for If-Match), QUOTA_EXCEEDED. */
export function put(db: Db, caller: AgentCaller, plans: Plans, ref: KeyRef, input: PutInput): Promise<Put> {
  requireAllowed(caller, ref)
  // Beside another put of the same key its event might come before that of the version before.
  const apart = caller.kv_events === true
  const turn = turnOf(caller, ref, { line: caller.tenant_id, apart, bytes: input.value.length })
  return db.write(turn, (tx) => putIn(tx, caller, plans, ref, input))
}

/** Puts of a key may share a transaction: each is one statement, or is guarded by the version that it has read. */
function turnOf({ tenant_id }: AgentCaller, { namespace, key }: KeyRef, batch: Batch): Turn {
  return { key: tenant_id, row: `${namespace} ${key}`, batch }
}

/** Throws KEY_NOT_FOUND, VERSION_MISMATCH (412). */
export function remove(db: Db, caller: AgentCaller, ref: KeyRef, if_match: string | null): Promise<void> {
  requireAllowed(caller, ref)
  // Between the statements of a put that makes the key it would count one key less too early.
  return db.write(turnOf(caller, ref, { line: caller.tenant_id, apart: true }), async (tx) => {
    const removed =
      if_match === null
        ? await store.remove(tx, caller.tenant_id, ref)
        : await removeIf(tx, caller.tenant_id, ref, if_match)
    if (!removed) throw new ApiError('KEY_NOT_FOUND')
    tx.stores(caller.tenant_id, removed.bytes)
    await quotas.release(tx, caller.tenant_id, 'kv_keys', 1, 1)
    if (!(await leavesEvents(tx, caller, ref))) return
    await emitDeleted(tx, caller.tenant_id, causeOf(caller), { ...ref, version: removed.version })
  })
}

async function removeIf(tx: Tx, tenant_id: string, ref: KeyRef, if_match: string) {
  for (;;) {
    const current = await store.find(tx, tenant_id, ref, tx.now)
    if (!current) return null
    if (!ifMatchHolds(if_match, current.version)) throw preconditionFailed(current)
    const removed = await store.removeIfVersion(tx, tenant_id, ref, current.version)
    if (removed) return removed
  }
}

/** Called before anything is looked up, so that the answer for a reserved name reveals nothing. Throws NAMESPACE_FORBIDDEN. */
export function requireAllowed(caller: AgentCaller | AdminCaller, { namespace, key }: KeyRef): void {
  if (isForbiddenNamespace(namespace, caller) || isReservedKey(key)) throw new ApiError('NAMESPACE_FORBIDDEN')
}
