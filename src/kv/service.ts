// Key-value store: one function per verb. Lists are in lists.ts, the sweep in sweep.ts.

import './errors.ts'
import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { AdminCaller, AgentCaller, TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import { type Batch, type Db, MustRunAlone, type Turn, type Tx } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import {
  type EntryRow,
  expiryOf,
  ifMatchHolds,
  isForbiddenNamespace,
  isReservedKey,
  type KeyRef,
  prefixEnd,
  tombstone_ms,
} from './entry.ts'
import { emitDeleted, emitPut } from './event-service.ts'
import * as namespaces from './namespace-store.ts'
import * as store from './store.ts'
import { reserve } from './sweep.ts'
import {
  type PutInput,
  preconditionFailed,
  requirePrecondition,
  writeEntry,
  writeWithEvents,
} from './write-service.ts'

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

export interface Put {
  version: number
  expires_at: Millis | null
}

/** Throws NAMESPACE_FORBIDDEN, VERSION_MISMATCH (409 for cas_version, 412 for If-Match), QUOTA_EXCEEDED. */
export function put(db: Db, caller: AgentCaller, plans: Plans, ref: KeyRef, input: PutInput): Promise<Put> {
  requireAllowed(caller, ref)
  const may_leave_events = caller.kv_events === true
  const turn = turnOf(caller, ref, {
    line: caller.tenant_id,
    apart: may_leave_events, // beside another put of the same key its event might come before that of the version before
    bytes: input.value.length,
  })
  return db.write(turn, async (tx) => {
    const expires_at = expiryOf(tx.now, input.ttl_seconds)
    const write = store.writeOf(ref, input.value, expires_at)
    const { cas_version, if_match, if_none_match } = input
    const unconditional = cas_version === undefined && if_match === null && if_none_match === null
    if (tx.disk_full || quotas.overBy(tx, caller, plans, write.bytes)) {
      // A write that grows nothing is never refused; one that does fails on its precondition first.
      const bytes = await store.growth(tx, caller.tenant_id, write)
      if (bytes > 0 && !unconditional)
        requirePrecondition(await store.find(tx, caller.tenant_id, write, tx.now), input)
      quotas.requireRoom(tx, caller, plans, bytes)
    }
    // Until it is known by how much the row grows, writes beside this one find all of its bytes taken.
    const reserved = tx.beside > 0 ? write.bytes : 0
    tx.stores(caller.tenant_id, reserved)
    // Awaited only where that is needed: what is there at once would cost a hundredth of the put more.
    const leaves_events =
      may_leave_events && (await namespaces.leavesEvents(tx, caller.tenant_id, ref.namespace))
    const writes = leaves_events ? writeWithEvents : writeEntry
    const writing = writes(tx, caller.tenant_id, write, unconditional ? null : input)
    const written = writing instanceof Promise ? await writing : writing
    tx.stores(caller.tenant_id, written.grew - reserved)
    const version =
      written.version === written.created_version
        ? await count(tx, caller, plans, ref, written)
        : written.version
    if (leaves_events) await emitPut(tx, caller.tenant_id, causeOf(caller), { ...ref, version, expires_at })
    return { version, expires_at }
  })
}

/** Puts of a key may share a transaction: each is one statement, or is guarded by the version that it has read. */
function turnOf({ tenant_id }: AgentCaller, { namespace, key }: KeyRef, batch: Batch): Turn {
  return { key: tenant_id, row: `${namespace} ${key}`, batch }
}

/**
 * The write created the key: it counts against kv_keys now, and its version must lie above every version that the
 * sweep has removed from this tenant.
 */
async function count(
  tx: Tx,
  caller: TenantFacts,
  plans: Plans,
  ref: KeyRef,
  made: store.Written,
): Promise<number> {
  const { version_floor } = await reserve(tx, caller, plans, made.version > 1)
  if (made.version > 1 || version_floor === 0) return made.version
  const raised = await store.raiseVersion(tx, caller.tenant_id, ref, version_floor + 1)
  // A put beside this one has written over the first version and answers the next.
  if (raised === 0) throw new MustRunAlone()
  return version_floor + 1
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
    if (caller.kv_events !== true) return
    if (!(await namespaces.leavesEvents(tx, caller.tenant_id, ref.namespace))) return
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
