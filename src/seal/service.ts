// The seal: the tree grows in the background, and on request it proves that an event is in it, or that it only grew.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { eventOf } from '../contract/event.ts'
import type { Db, Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import type { StoredHead } from './append.ts'
import { faultOf } from './check-service.ts'
import { keepCheckpoint, latest, noted } from './checkpoint-service.ts'
import { broken, grow } from './grow-service.ts'
import { beginEpoch, keyContext, rotate } from './key-service.ts'
import { markRestored } from './restored-service.ts'
import * as store from './store.ts'
import * as tiles from './tile-store.ts'
import { hashText, MissingHash, TiledTree } from './tiles.ts'

export const markPending = store.markPending
export const rotateKey = rotate
export { beginEpoch, faultOf, keyContext, markRestored }

/**
 * Seals numbered events in the background, and keeps the checkpoint of the hour when it is due. A journal that is broken is
 * left as it is: the next request for its seal gets SEAL_BROKEN.
 */
export async function step(
  db: Db,
  dependencies: Dependencies,
  tenant_id: string,
): Promise<{ more: boolean }> {
  try {
    const { more } = await grow(db, tenant_id)
    if (!more) await keepCheckpoint(db, dependencies, tenant_id)
    return { more }
  } catch (error) {
    if (error instanceof ApiError && error.code === 'SEAL_BROKEN') return { more: false }
    throw error
  }
}

/** The number of the last event that is sealed. */
export async function sealedUpTo(q: Reader, tenant_id: string): Promise<number> {
  return (await store.head(q, tenant_id))?.size ?? 0
}

/** The tree as its tiles are stored. */
export function storedTree(q: Reader, tenant_id: string): TiledTree {
  return new TiledTree(async (ids) =>
    (await Promise.all(ids.map((id) => tiles.pieces(q, tenant_id, id)))).flat(),
  )
}

/** Throws SEAL_BROKEN where stored hashes are missing. */
export async function orBroken<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof MissingHash ? broken(error.message) : error
  }
}

/**
 * Shows that an event, by its id or number, is a leaf of the tree of `size` events; of the whole tree when that is null.
 * Throws SEAL_EVENT_NOT_FOUND, SEAL_SIZE_UNKNOWN and SEAL_BROKEN.
 */
export async function inclusion(
  db: Db,
  dependencies: Dependencies,
  tenant_id: string,
  { event, size: asked_size }: { event: string; size: number | null },
) {
  const head = await latest(db, dependencies, tenant_id)
  const size = sizeWithin(head, asked_size)
  const seq = /^\d{1,15}$/.test(event) ? Number(event) : (await journal.find(db, tenant_id, event))?.seq
  if (seq === undefined || seq === 0 || seq > size) throw new ApiError('SEAL_EVENT_NOT_FOUND')
  const [row] = await journal.page(db, tenant_id, {}, { after: seq - 1, rows_max: 1 })
  const tree = storedTree(db, tenant_id)
  const { root, ...proven } = await orBroken(async () => ({
    leaf_hash: await tree.leaf(seq - 1),
    proof: (await tree.inclusionProofs([seq - 1], size))[0]!.map(hashText),
    root: await tree.root(size),
  }))
  return {
    event: row?.seq === seq ? eventOf(row) : null,
    seq,
    ...proven,
    ...(await noted(db, dependencies, tenant_id, { size, root }, null)),
  }
}

/** Shows that the tree of `to` events begins with that of `from`. Throws SEAL_SIZE_UNKNOWN and SEAL_BROKEN. */
export async function consistency(
  db: Db,
  dependencies: Dependencies,
  tenant_id: string,
  { from, to: asked_to }: { from: number; to: number | null },
) {
  const head = await latest(db, dependencies, tenant_id)
  const to = sizeWithin(head, asked_to)
  if (from > to) throw sizeUnknown(to)
  const tree = storedTree(db, tenant_id)
  const { root, ...proven } = await orBroken(async () => ({
    from_root: hashText(await tree.root(from)),
    proof: (await tree.consistencyProof(from, to)).map(hashText),
    root: await tree.root(to),
  }))
  return {
    from,
    ...proven,
    ...(await noted(db, dependencies, tenant_id, { size: to, root }, null)),
  }
}

function sizeWithin({ size }: StoredHead, asked: number | null): number {
  if (asked !== null && asked > size) throw sizeUnknown(size)
  return asked ?? size
}

export function sizeUnknown(size: number): ApiError {
  return new ApiError('SEAL_SIZE_UNKNOWN', { details: { size } })
}
