// The write of a put: over the version that was expected, and with the end of the value before.

import { ApiError } from '../base/errors.ts'
import { type Awaitable, MustRunAlone, type Tx } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import { type EntryRow, ifMatchHolds, ifNoneMatchNames, type KeyRef } from './entry.ts'
import { emitExpired } from './event-service.ts'
import * as expiry_store from './expiry-store.ts'
import * as store from './store.ts'

export interface PutInput {
  /** JSON text. */
  value: string
  ttl_seconds: number | undefined
  cas_version: number | undefined
  if_match: string | null
  if_none_match: string | null
}

/** `input`: the precondition, null for none. Starts again when another writer came between. */
export function writeEntry(
  tx: Tx,
  tenant_id: string,
  write: store.Write,
  input: PutInput | null,
): Awaitable<store.Written> {
  return input === null
    ? (store.put(tx, tenant_id, write) as Awaitable<store.Written>)
    : writeIf(tx, tenant_id, write, input)
}

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
export async function writeWithEvents(
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
  let expected: number
  try {
    expected = requirePrecondition(current, input)
  } catch (refusal) {
    if (current && (await isBeingMade(tx, tenant_id, current))) throw new MustRunAlone()
    throw refusal
  }
  return current ? store.putIfVersion(tx, tenant_id, write, expected) : putNew(tx, tenant_id, write)
}

/** Beside the write that makes the key, whose first version is not the one that it is about to get. */
async function isBeingMade(tx: Tx, tenant_id: string, { version, updated_at }: EntryRow): Promise<boolean> {
  if (tx.beside === 0 || version > 1 || updated_at !== tx.now) return false
  return (await quotas.floorOf(tx, tenant_id, 'kv_keys')) > 0
}

async function expire(tx: Tx, tenant_id: string, { namespace, key }: KeyRef): Promise<void> {
  const expired = await expiry_store.expire(tx, tenant_id, { namespace, key })
  if (!expired) return
  const { version, expires_at, bytes } = expired
  tx.stores(tenant_id, bytes)
  await quotas.release(tx, tenant_id, 'kv_keys', 1, 1)
  await emitExpired(tx, tenant_id, { namespace, key, version, expires_at })
}

/** Returns the version to write over, 0 for none. Throws VERSION_MISMATCH. */
export function requirePrecondition(
  current: EntryRow | null,
  { cas_version, if_match, if_none_match }: PutInput,
): number {
  if (if_match !== null && !(current && ifMatchHolds(if_match, current.version)))
    throw preconditionFailed(current)
  if (if_none_match !== null && current && ifNoneMatchNames(if_none_match, current.version))
    throw preconditionFailed(current)
  const expected = cas_version ?? current?.version ?? 0
  if (expected !== (current?.version ?? 0)) throw casFailed(current)
  return expected
}

function casFailed(current: EntryRow | null): ApiError {
  return new ApiError('VERSION_MISMATCH', { details: { current_version: current?.version ?? null } })
}

export function preconditionFailed(current: EntryRow | null): ApiError {
  return new ApiError('VERSION_MISMATCH', {
    precondition: true,
    details: { current_version: current?.version ?? null },
  })
}
