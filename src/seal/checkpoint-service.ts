// Checkpoints: signed notes about a tenant's tree, made on request and every hour.

import type { Dependencies } from '../contract/dependencies.ts'
import { service_cause } from '../contract/event.ts'
import { type Db, dueWork, type Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import type { StoredHead } from './append.ts'
import { events } from './events.ts'
import { grown } from './grow-service.ts'
import { keysFor } from './key-service.ts'
import { Edge, type Hash } from './merkle.ts'
import { checkpointText, signedNote, workflowBeforeLine, workflowLine } from './note.ts'
import * as store from './store.ts'
import { hashesIn, hashText } from './tiles.ts'

export interface Checkpoint {
  origin: string
  size: number
  root: string
  note: string
  /** The one that signs comes first. */
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
  const { size } = head
  const counted =
    workflow_id === null
      ? null
      : await db.read(tenant_id, (q) => countsOf(q, tenant_id, { workflow_id, size, after: 0 }))
  return noted(db, dependencies, tenant_id, { size, root: rootOf(head) }, counted)
}

/** How many events a workflow has: all, and those up to `after`, after which a bundle begins. Private ones apart. */
export interface Counts {
  workflow_id: string
  all: number
  after: number
  before: number
}

/** Signs a note about the tree. */
export async function noted(
  db: Db,
  { keys: { secrets } }: Pick<Dependencies, 'keys'>,
  tenant_id: string,
  { size, root }: { size: number; root: Hash },
  counts: Counts | null,
): Promise<Checkpoint> {
  const lines = counts ? countLines(counts) : []
  const { origin, pair, verifier_keys } = await keysFor(db, secrets, tenant_id)
  const note = signedNote(checkpointText(origin, { size, root }, lines), origin, pair)
  return { origin, size, root: hashText(root), note, keys: verifier_keys }
}

export function rootOf({ size, edge }: StoredHead): Hash {
  return new Edge(size, hashesIn(edge)).root()
}

function countLines({ workflow_id, all, before, after }: Counts): string[] {
  const line = workflowLine(workflow_id, all)
  return after === 0 ? [line] : [line, workflowBeforeLine(workflow_id, before, after)]
}

/** Among the first `size` events, of which retention has removed none after `after`. */
export async function countsOf(
  q: Reader,
  tenant_id: string,
  { workflow_id, size, after }: { workflow_id: string; size: number; after: number },
): Promise<Counts> {
  const all = await countOf(q, tenant_id, workflow_id, size)
  const before = after === 0 ? 0 : await countOf(q, tenant_id, workflow_id, after)
  return { workflow_id, all, after, before }
}

const looked_rows = 500

/** How many events the workflow has among the first `size`, private ones apart. */
async function countOf(q: Reader, tenant_id: string, workflow_id: string, size: number): Promise<number> {
  // Only the events that came after those of the tree are read, so this ends soon.
  for (let after = size; ; ) {
    const rows = await journal.page(q, tenant_id, { workflow_id }, { after, rows_max: looked_rows })
    const next = rows.find(({ workflow_seq }) => workflow_seq !== null)
    if (next) return next.workflow_seq! - 1
    if (rows.length < looked_rows) return (await store.workflow(q, tenant_id, workflow_id))?.events ?? 0
    after = rows.at(-1)!.seq
  }
}

/** Keeps the checkpoint of the hour when it is due, unless the tree grows meanwhile. */
export async function keepCheckpoint(db: Db, dependencies: Dependencies, tenant_id: string): Promise<void> {
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
