// Bundles: everything that is needed to check a workflow, or a part of the journal, offline. A bundle is JSON text in pieces;
// each piece is read when it is sent.

import { limit } from '../base/limit.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { canonicalText, type EventRow } from '../contract/event.ts'
import type { Db, Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { type Counts, countsOf, latest, noted, rootOf } from './checkpoint-service.ts'
import { broken } from './grow-service.ts'
import type { Hash } from './merkle.ts'
import { orBroken, sizeUnknown, storedTree } from './service.ts'
import * as store from './store.ts'
import { hashText, type TiledTree } from './tiles.ts'

const format = 'waystation-seal-bundle/1'
const part_events_max = limit(
  'seal.bundle_events',
  100_000,
  'rows',
  'Events in one bundle of the journal. A longer one is checked in parts: `next_after` is where the next begins.',
)
const piece_rows = 200

export interface Asked {
  /** Null: the whole journal. */
  workflow_id: string | null
  /** The size of a checkpoint that was kept: the bundle shows that the tree goes on from it. */
  from: number | null
  /** Only the events after this one. */
  after: number
  /** How many events of the journal one part has; absent: as many as the limit says. */
  events_max?: number | undefined
}

interface Span {
  tenant_id: string
  workflow_id: string | null
  after: number
  /** The tree that the proofs are for: events up to this one. */
  size: number
  /** Null for the journal. */
  counts: Counts | null
}

/** Throws SEAL_SIZE_UNKNOWN and SEAL_BROKEN before the first piece. */
export async function bundle(
  db: Db,
  dependencies: Dependencies,
  tenant_id: string,
  { workflow_id, from, after, events_max = part_events_max }: Asked,
): Promise<AsyncGenerator<string>> {
  const head = await latest(db, dependencies, tenant_id)
  if (after > head.size) throw sizeUnknown(head.size)
  const { begins, counts } = await placeOf(db, tenant_id, { workflow_id, after }, head.size)
  const size = workflow_id === null ? Math.min(begins + events_max, head.size) : head.size
  if (from !== null && from > head.size) throw sizeUnknown(head.size)
  const tree = storedTree(db, tenant_id)
  const { root, edge, proof } = await orBroken(async () => ({
    root: await tree.root(size),
    edge: workflow_id === null ? await tree.edge(begins) : null,
    // A part that ends before it is the beginning of that tree.
    proof: from === null ? null : await tree.consistencyProof(Math.min(from, size), Math.max(from, size)),
  }))
  if (size === head.size && hashText(root) !== hashText(rootOf(head)))
    throw broken('the stored hashes do not add up to the root of the tree')
  const { origin, note, keys } = await noted(db, dependencies, tenant_id, { size, root }, counts)
  const opening = {
    ...{ format, origin, size, root: hashText(root), note, keys, workflow_id, after: begins },
    edge: edge && texts(edge),
    consistency: proof && { from, proof: texts(proof) },
    next_after: size < head.size ? size : null,
  }
  return joined(opening, pieces(db, tree, { tenant_id, workflow_id, after: begins, size, counts }))
}

/** Where the bundle begins, and the counts of its workflow there. One read finds both: retention could run between two. */
function placeOf(
  db: Db,
  tenant_id: string,
  { workflow_id, after }: Pick<Asked, 'workflow_id' | 'after'>,
  size: number,
): Promise<{ begins: number; counts: Counts | null }> {
  return db.read(tenant_id, async (q) => {
    const begins = Math.max(after, await removedBefore(q, tenant_id, workflow_id, size))
    if (workflow_id === null) return { begins, counts: null }
    return { begins, counts: await countsOf(q, tenant_id, { workflow_id, size, after: begins }) }
  })
}

/**
 * How many of the first `size` events of the journal retention has removed; others may be numbered meanwhile. For a workflow 0
 * when none of its own are among them.
 */
async function removedBefore(
  q: Reader,
  tenant_id: string,
  workflow_id: string | null,
  size: number,
): Promise<number> {
  if (workflow_id !== null && !(await store.workflow(q, tenant_id, workflow_id))?.gone) return 0
  const [oldest] = await journal.page(q, tenant_id, {}, { after: 0, rows_max: 1 })
  return oldest ? Math.min(oldest.seq - 1, size) : size
}

async function* joined(opening: object, items: AsyncIterable<string>): AsyncGenerator<string> {
  yield `${JSON.stringify(opening).slice(0, -1)},"events":[`
  let comma = ''
  for await (const item of items) {
    yield comma + item
    comma = ','
  }
  yield ']}'
}

/**
 * Events as text, separated by commas, `piece_rows` at a time. Throws when one is missing, for example because retention has
 * overtaken a slow reader: verifiers would think that somebody has changed the bundle.
 */
async function* pieces(db: Db, tree: TiledTree, span: Span): AsyncGenerator<string> {
  const { tenant_id, workflow_id, size, counts } = span
  const filter = workflow_id === null ? {} : { workflow_id }
  let number = counts ? counts.before : span.after
  for (let [after, is_last] = [span.after, span.after >= size]; !is_last; ) {
    const rows = await journal.page(db, tenant_id, filter, { after, rows_max: piece_rows })
    const shown = rows.filter(({ seq, workflow_seq }) => {
      return seq <= size && (workflow_id === null || workflow_seq !== null)
    })
    for (const { seq, workflow_seq } of shown)
      if ((counts ? workflow_seq : seq) !== ++number) throw await brokenOff(db, span, number)
    after = rows.at(-1)?.seq ?? size
    is_last = rows.length < piece_rows || after >= size
    if (is_last && number !== (counts ? counts.all : size)) throw await brokenOff(db, span, number + 1)
    if (shown.length > 0) yield await textOf(tree, span, shown)
  }
}

async function brokenOff(
  db: Db,
  { tenant_id, workflow_id, after, size }: Span,
  number: number,
): Promise<Error> {
  if ((await removedBefore(db, tenant_id, workflow_id, size)) > after)
    return new Error('retention has removed events of a bundle while it was sent')
  return broken(`event ${number}${workflow_id === null ? '' : ' of a workflow'} is missing`)
}

async function textOf(tree: TiledTree, { workflow_id, size }: Span, rows: EventRow[]): Promise<string> {
  const indexes = rows.map(({ seq }) => seq - 1)
  const proofs = workflow_id === null ? null : await tree.inclusionProofs(indexes, size)
  return rows
    .map((row, i) => `{"event":${canonicalText(row)},"proof":${JSON.stringify(proofs && texts(proofs[i]!))}}`)
    .join(',')
}

function texts(hashes: readonly Hash[]): string[] {
  return hashes.map(hashText)
}
