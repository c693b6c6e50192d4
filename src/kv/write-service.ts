// A put within its transaction: the room that it takes, the write over the version that was expected, the count of a new
// key, and the events.

import type { Millis } from '../base/clock.ts'
import type { AgentCaller, TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import { type Awaitable, andThen, MustRunAlone, type Tx } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import { expiryOf, type KeyRef, type PutInput, requirePrecondition } from './entry.ts'
import { emitExpired, emitPut } from './event-service.ts'
import * as expiry_store from './expiry-store.ts'
import * as namespaces from './namespace-store.ts'
import * as store from './store.ts'
import { reserve } from './sweep.ts'

export interface Put {
  version: number
  expires_at: Millis | null
}

/** Most puts are one statement, and wait for nothing on SQLite. Throws VERSION_MISMATCH, QUOTA_EXCEEDED. */
export function putIn(
  tx: Tx,
  caller: AgentCaller,
  plans: Plans,
  ref: KeyRef,
  input: PutInput,
): Awaitable<Put> {
  const write = store.writeOf(ref, input.value, expiryOf(tx.now, input.ttl_seconds))
  const { cas_version, if_match, if_none_match } = input
  const unconditional = cas_version === undefined && if_match === null && if_none_match === null
  const precondition = unconditional ? null : input
  const is_plain = !tx.disk_full && !caller.kv_events && !quotas.overBy(tx, caller, plans, write.bytes)
  return is_plain
    ? putEntry(tx, caller, plans, write, precondition)
    : putWithCare(tx, caller, plans, write, precondition)
}

/** Where there may be no room for it, or it may leave an event. */
async function putWithCare(
  tx: Tx,
  caller: AgentCaller,
  plans: Plans,
  write: store.Write,
  precondition: PutInput | null,
): Promise<Put> {
  const leaves_events = await leavesEvents(tx, caller, write)
  if (tx.disk_full || quotas.overBy(tx, caller, plans, write.bytes)) {
    // A write that grows nothing is never refused; one that does fails on its precondition first.
    const bytes = await store.growth(tx, caller.tenant_id, write)
    if (bytes > 0 && precondition)
      requirePrecondition(await store.find(tx, caller.tenant_id, write, tx.now), precondition)
    quotas.requireRoom(tx, caller, plans, bytes)
  }
  // Nothing is awaited between the look at the room and `putEntry`, which reserves it.
  if (!leaves_events) return putEntry(tx, caller, plans, write, precondition)
  const put = await putEntry(tx, caller, plans, write, precondition, writeWithEvents)
  const { namespace, key } = write
  await emitPut(tx, caller.tenant_id, causeOf(caller), { namespace, key, ...put })
  return put
}

function putEntry(
  tx: Tx,
  caller: AgentCaller,
  plans: Plans,
  write: store.Write,
  precondition: PutInput | null,
  writes: typeof writeEntry = writeEntry,
): Awaitable<Put> {
  // Until it is known by how much the row grows, writes beside this one find all of its bytes taken.
  const reserved = tx.beside > 0 ? write.bytes : 0
  tx.stores(caller.tenant_id, reserved)
  return andThen(writes(tx, caller.tenant_id, write, precondition), (written) => {
    const { version, created_version, grew } = written
    const { expires_at } = write
    tx.stores(caller.tenant_id, grew - reserved)
    if (version !== created_version) return { version, expires_at }
    return count(tx, caller, plans, write, written).then((counted) => ({ version: counted, expires_at }))
  })
}

/** Only a tenant that has such namespaces looks. */
export async function leavesEvents(tx: Tx, { tenant_id, kv_events }: AgentCaller, { namespace }: KeyRef) {
  return kv_events === true && (await namespaces.leavesEvents(tx, tenant_id, namespace))
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

/** `input`: the precondition, null for none. */
function writeEntry(
  tx: Tx,
  tenant_id: string,
  write: store.Write,
  input: PutInput | null,
): Awaitable<store.Written> {
  if (input) return writeIf(tx, tenant_id, write, input)
  return store.put(tx, tenant_id, write) as Awaitable<store.Written> // never null: it writes over whatever is there
}

/** Starts again when another writer came between. */
async function writeIf(
  tx: Tx,
  tenant_id: string,
  write: store.Write,
  input: PutInput,
): Promise<store.Written> {
  for (;;) {
    const written = await putIf(tx, tenant_id, write, input, store.putIfAbsent)
    if (written) return written
  }
}

/** The same where events are left: a key that has expired becomes a tombstone first, with an event of its own. */
async function writeWithEvents(
  tx: Tx,
  tenant_id: string,
  write: store.Write,
  input: PutInput | null,
): Promise<store.Written> {
  for (;;) {
    const written = input
      ? await putIf(tx, tenant_id, write, input, expiry_store.putIfTombstone)
      : await expiry_store.putLive(tx, tenant_id, write)
    if (written) return written
    await expire(tx, tenant_id, write)
  }
}

/** Reads, checks, and writes only over the version it has read; null when another writer came between. */
async function putIf(
  tx: Tx,
  tenant_id: string,
  write: store.Write,
  input: PutInput,
  putNew: typeof store.putIfAbsent,
): Promise<store.Written | null> {
  const current = await store.find(tx, tenant_id, write, tx.now)
  const expected = requirePrecondition(current, input)
  return current ? store.putIfVersion(tx, tenant_id, write, expected) : putNew(tx, tenant_id, write)
}

async function expire(tx: Tx, tenant_id: string, { namespace, key }: KeyRef): Promise<void> {
  const expired = await expiry_store.expire(tx, tenant_id, { namespace, key })
  if (!expired) return
  const { version, expires_at, bytes } = expired
  tx.stores(tenant_id, bytes)
  await quotas.release(tx, tenant_id, 'kv_keys', 1, 1)
  await emitExpired(tx, tenant_id, { namespace, key, version, expires_at })
}
