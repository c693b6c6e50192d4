// The seal: checkpoints of a tenant's journal, and proofs about its events.

import './errors.ts'
import { ApiError } from '../base/errors.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { eventOf, service_cause } from '../contract/event.ts'
import { type Db, dueWork, type Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import type { StoredHead } from './append.ts'
import { events } from './events.ts'
import { broken, grow, grown } from './grow-service.ts'
import { keysFor, originOf, rotate } from './key-service.ts'
import { Edge, type Hash } from './merkle.ts'
import { checkpointText, signedNote, workflowLine } from './note.ts'
import * as store from './store.ts'
import { hashesIn, hashText, MissingHash, TiledTree } from './tiles.ts'

export const markPending = store.markPending
export const purge = store.purge
export const rotateKey = rotate

export interface Checkpoint {
  origin: string
  size: number
  root: string
  note: string
  /** The one that signs first. */
  keys: string[]
}

/** Numbers and seals what has committed, and returns the tree. Throws SEAL_BROKEN. */
export async function latest(db: Db, dependencies: Dependencies, tenant_id: string): Promise<StoredHead> {
  await dependencies.journal.number(tenant_id)
  return grown(db, tenant_id)
}

/** A signed note about the tree as it is now; with a workflow it states how many events that has. Throws SEAL_BROKEN. */
export async function checkpoint(
  db: Db,
  dependencies: Dependencies,
  tenant_id: string,
  workflow_id: string | null,
): Promise<Checkpoint> {
  const head = await latest(db, dependencies, tenant_id)
  return noted(db, dependencies, tenant_id, { size: head.size, root: rootOf(head) }, workflow_id)
}

/** Signs what is known of the tree. */
export async function noted(
  db: Db,
  { keys: { secrets } }: Pick<Dependencies, 'keys'>,
  tenant_id: string,
  { size, root }: { size: number; root: Hash },
  workflow_id: string | null,
): Promise<Checkpoint> {
  const lines =
    workflow_id === null ? [] : [workflowLine(workflow_id, await countOf(db, tenant_id, workflow_id, size))]
  const { signer, verifier_keys } = await keysFor(db, secrets, tenant_id)
  const origin = originOf(tenant_id)
  const note = signedNote(checkpointText(origin, { size, root }, lines), signer)
  return { origin, size, root: hashText(root), note, keys: verifier_keys }
}

export function rootOf({ size, edge }: StoredHead): Hash {
  return new Edge(size, hashesIn(edge)).root()
}

const looked_rows = 500

/** How many events the workflow has among the first `size`, private ones apart. */
function countOf(db: Db, tenant_id: string, workflow_id: string, size: number): Promise<number> {
  return db.read(tenant_id, async (q) => {
    // Behind the tree there is only what has come since, so this is soon at the end.
    for (let after = size; ; ) {
      const rows = await journal.page(q, tenant_id, { workflow_id }, { after, rows_max: looked_rows })
      const next = rows.find(({ workflow_seq }) => workflow_seq !== null)
      if (next) return next.workflow_seq! - 1
      if (rows.length < looked_rows) return (await store.workflowEvents(q, tenant_id, workflow_id)) ?? 0
      after = rows.at(-1)!.seq
    }
  })
}

/** The tree as its tiles are stored. */
export function storedTree(q: Reader, tenant_id: string): TiledTree {
  return new TiledTree(async (ids) =>
    (await Promise.all(ids.map((id) => store.pieces(q, tenant_id, id)))).flat(),
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

/**
 * Seals events that have got numbers, beside requests, and keeps the checkpoint of the hour when it is due. A journal that is
 * broken is left as it is: the next who asks for its seal gets SEAL_BROKEN.
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

async function keepCheckpoint(db: Db, dependencies: Dependencies, tenant_id: string): Promise<void> {
  const head = await store.head(db, tenant_id)
  if (!head || head.checkpoint_at === null || head.checkpoint_at > db.clock.now()) return
  const { size, root, note } = await noted(
    db,
    dependencies,
    tenant_id,
    { size: head.size, root: rootOf(head) },
    null,
  )
  await db.write(dueWork(tenant_id), async (tx) => {
    if (!(await store.keepCheckpoint(tx, tenant_id, { size, root, note }))) return
    const data = { size, root, note }
    await journal.emit(tx, events['seal.checkpoint'], {
      ...{ tenant_id, cause: service_cause, subject_id: String(size), data },
    })
  })
}
