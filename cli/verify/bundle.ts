// Checks a bundle of the seal offline: that its events are those of the signed tree, that none is missing, and that the tree
// goes on from a checkpoint that was kept. It shares no code with the service.

import { canonical } from './canonical.ts'
import { type Checkpoint, checkpointOf, hashIn } from './checkpoint.ts'
import { Refused } from './refused.ts'
import { beginsWith, Growing, hashOfLeaf, rootByPath } from './tree.ts'

export interface Known {
  /** A checkpoint that was kept: a note, or JSON with the member `note`. */
  checkpoint?: string | undefined
  /** The key that is trusted; without it those in the bundle are taken. */
  key?: string | undefined
  /** The bundle may begin behind this event: those before were checked earlier, or removed by retention. Default 0. */
  after?: number | undefined
  /** The bundle may end before the checkpoint that was kept, because it is one part of several. */
  part?: boolean | undefined
}

export interface Report {
  origin: string
  size: number
  root: string
  workflow_id: string | null
  /** How many events were checked, and from which number on. */
  events: number
  after: number
  /** Where the next part begins; null for all. */
  next_after: number | null
  key: string
  key_is_given: boolean
  /** The size of the checkpoint that was kept; null without one. */
  kept_size: number | null
}

interface Bundle {
  origin: string
  size: number
  root: Buffer
  keys: string[]
  workflow_id: string | null
  after: number
  edge: Buffer[] | null
  consistency: { from: number; proof: Buffer[] } | null
  events: { event: Event; proof: Buffer[] }[]
  note: string
  next_after: number | null
}

interface Event {
  seq: number
  workflow_id: string | null
  workflow_seq: number | null
}

const format = 'waystation-seal-bundle/1'

/** Throws `Refused` with the first thing that is wrong. */
export function verifyBundle(text: string, known: Known = {}): Report {
  const bundle = bundleOf(text)
  const latest = checkpointOf(
    'the checkpoint of the bundle',
    bundle.note,
    known.key === undefined ? bundle.keys : [known.key],
  )
  requireSame(bundle, latest)
  const kept = known.checkpoint === undefined ? null : keptOf(known.checkpoint, bundle, known.key)
  if (bundle.after > (known.after ?? 0))
    throw new Refused(`the events up to ${bundle.after} are missing: the bundle begins after them`)
  if (kept && latest.size < kept.size) requirePart(bundle, latest, kept, known.part === true)
  else if (kept) requireGrown(bundle, latest, kept)
  if (bundle.workflow_id === null) verifyJournal(bundle, latest, kept)
  else verifyWorkflow(bundle, bundle.workflow_id, latest, kept)
  return {
    origin: bundle.origin,
    size: latest.size,
    root: latest.root.toString('base64'),
    workflow_id: bundle.workflow_id,
    events: bundle.events.length,
    after: bundle.after,
    next_after: bundle.next_after,
    key: latest.key,
    key_is_given: known.key !== undefined,
    kept_size: kept?.size ?? null,
  }
}

/** Size, root and name of the tree are those that are signed. */
function requireSame({ origin, size, root, workflow_id, next_after }: Bundle, latest: Checkpoint): void {
  if (latest.origin !== origin) throw new Refused('the checkpoint belongs to another journal')
  if (latest.size !== size || !latest.root.equals(root))
    throw new Refused('the checkpoint belongs to another tree')
  if (next_after !== null && (workflow_id !== null || next_after !== latest.size))
    throw new Refused('the next part does not begin here')
}

function keptOf(text: string, bundle: Bundle, key: string | undefined): Checkpoint {
  const note = text.trimStart().startsWith('{') ? String(objectOf(parsed(text)).note) : text
  const kept = checkpointOf(
    'the checkpoint that was kept',
    note,
    key === undefined ? bundle.keys : [key, ...bundle.keys],
  )
  if (kept.origin === bundle.origin) return kept
  throw new Refused('the checkpoint that was kept belongs to another journal')
}

/** The tree of the bundle, which ends before the one that was kept, is the beginning of that. */
function requirePart(
  { workflow_id, consistency, next_after }: Bundle,
  latest: Checkpoint,
  kept: Checkpoint,
  is_asked: boolean,
): void {
  if (workflow_id !== null || next_after === null)
    throw new Refused(`the journal has ${latest.size} events, and had ${kept.size}: it was truncated`)
  if (!is_asked)
    throw new Refused(
      `the bundle ends with event ${latest.size}, before the ${kept.size} events of the checkpoint that was kept; if it is one part of several, say so with --part`,
    )
  if (consistency?.from !== kept.size)
    throw new Refused(
      `nothing shows that this part belongs to the journal of ${kept.size} events: ask for it with from=${kept.size}`,
    )
  if (!beginsWith(kept, latest, consistency.proof))
    throw new Refused(
      `the part is not of the journal whose checkpoint of ${kept.size} events was kept: history was changed`,
    )
}

/** The tree of the bundle begins with the one that was kept. Leaves that follow one another show it as well. */
function requireGrown(bundle: Bundle, latest: Checkpoint, kept: Checkpoint): void {
  const { consistency } = bundle
  if (consistency?.from === kept.size || latest.size === kept.size) {
    const proof = consistency?.from === kept.size ? consistency.proof : []
    if (!beginsWith(latest, kept, proof))
      throw new Refused(
        `the journal does not continue from the checkpoint of ${kept.size} events: history was changed`,
      )
  } else if (bundle.workflow_id !== null || kept.size < bundle.after)
    throw new Refused(
      `nothing shows that the journal continues from ${kept.size} events: ask for it with from=${kept.size}`,
    )
}

/** Every event from `after` on, so that the root is computed from all of them. */
function verifyJournal({ edge, after, events }: Bundle, latest: Checkpoint, kept: Checkpoint | null) {
  const tree = Growing.after(after, edge ?? [])
  if (!tree) throw new Refused(`the edge is not that of ${after} events`)
  const requireKept = () => {
    if (kept && tree.size === kept.size && !tree.root().equals(kept.root))
      throw new Refused(
        `the first ${kept.size} events are not those of the checkpoint that was kept: history was changed`,
      )
  }
  requireKept()
  for (const { event } of events) {
    if (event.seq !== tree.size + 1)
      throw new Refused(`event ${tree.size + 1} is missing: event ${event.seq} is in its place`)
    tree.add(hashOfLeaf(canonical(event)))
    requireKept()
  }
  if (tree.size !== latest.size) throw new Refused(`the events after ${tree.size} are missing`)
  if (!tree.root().equals(latest.root)) throw new Refused('the events are not those of the checkpoint')
}

/**
 * The events of a workflow, each with its proof, numbered without a gap from the count that is signed for its beginning up
 * to the one that is signed for all.
 */
function verifyWorkflow(
  bundle: Bundle,
  workflow_id: string,
  latest: Checkpoint,
  kept: Checkpoint | null,
): void {
  const { before, stated } = countsOf(bundle, workflow_id, latest)
  let [seq, number, kept_count] = [bundle.after, before, before]
  for (const { event, proof } of bundle.events) {
    if (event.workflow_id !== workflow_id) throw new Refused(`event ${event.seq} belongs to another workflow`)
    if (event.seq <= seq) throw new Refused(`event ${event.seq} is out of order`)
    if (event.workflow_seq !== number + 1)
      throw new Refused(
        `event ${number + 1} of the workflow is missing: number ${event.workflow_seq} is in its place`,
      )
    const root = rootByPath(event.seq - 1, latest.size, hashOfLeaf(canonical(event)), proof)
    if (!root?.equals(latest.root)) throw new Refused(`event ${event.seq} is not the one of the checkpoint`)
    ;[seq, number] = [event.seq, number + 1]
    if (kept && seq <= kept.size) kept_count = number
  }
  if (number !== stated)
    throw new Refused(`the workflow has ${stated} events, and the bundle ends with number ${number}`)
  const kept_stated = kept?.workflows.get(workflow_id)
  if (kept === null || kept_stated === undefined) return
  // Where the bundle begins behind that checkpoint, others may have come between.
  const has_those = bundle.after > kept.size ? before >= kept_stated : kept_count === kept_stated
  if (!has_those)
    throw new Refused(
      `the workflow had ${kept_stated} events in the checkpoint that was kept, and has ${kept_count} of them`,
    )
}

/** How many events of the workflow are signed to lie before the bundle, and in all. */
function countsOf({ after }: Bundle, workflow_id: string, { workflows, before }: Checkpoint) {
  const stated = workflows.get(workflow_id)
  if (stated === undefined)
    throw new Refused('the checkpoint does not state how many events the workflow has')
  if (after === 0) return { before: 0, stated }
  const begins = before.get(workflow_id)
  if (begins?.after !== after)
    throw new Refused(
      `the checkpoint does not state how many events the workflow has up to event ${after}, where the bundle begins`,
    )
  return { before: begins.count, stated }
}

function bundleOf(text: string): Bundle {
  const bundle = objectOf(parsed(text))
  if (bundle.format !== format) throw new Refused(`this is not a bundle in the format ${format}`)
  const consistency = bundle.consistency === null ? null : objectOf(bundle.consistency)
  return {
    origin: textOf(bundle.origin),
    size: wholeNumberOf(bundle.size),
    root: hashIn(bundle.root),
    keys: listOf(bundle.keys).map(textOf),
    workflow_id: bundle.workflow_id === null ? null : textOf(bundle.workflow_id),
    after: wholeNumberOf(bundle.after),
    edge: bundle.edge === null ? null : listOf(bundle.edge).map(hashIn),
    consistency: consistency && {
      from: wholeNumberOf(consistency.from),
      proof: listOf(consistency.proof).map(hashIn),
    },
    events: listOf(bundle.events).map(eventOf),
    note: textOf(bundle.note),
    next_after: bundle.next_after === null ? null : wholeNumberOf(bundle.next_after),
  }
}

function eventOf(item: unknown): Bundle['events'][number] {
  const { event, proof } = objectOf(item)
  const { seq, workflow_seq } = objectOf(event)
  wholeNumberOf(seq)
  if (workflow_seq !== null) wholeNumberOf(workflow_seq)
  return { event: event as Event, proof: proof === null ? [] : listOf(proof).map(hashIn) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refused('it is not JSON, or it was cut off')
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new Refused('an object is missing')
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  throw new Refused('a text is missing')
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  throw new Refused('a list is missing')
}

function wholeNumberOf(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw new Refused('a whole number is missing')
}
