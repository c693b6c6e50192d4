// Bundles that were changed on their way, by somebody without the key and by somebody with it, and honest ones beside them.

import { service_cause } from '../../src/contract/event.ts'
import type { Db } from '../../src/db/db.ts'
import * as journal from '../../src/journal/service.ts'
import { keysFor } from '../../src/seal/key-service.ts'
import { checkpointText, type KeyPair, newKeyPair, signedNote, verifierKey } from '../../src/seal/note.ts'
import { storedTree } from '../../src/seal/service.ts'
import { hashText } from '../../src/seal/tiles.ts'
import { unhurried } from '../support/patience.ts'
import { type Check, Journal, types } from './journals.ts'

const workflow_id = 'order-17'
/** Every other event is one of the workflow, from the first on. */
const size = 40
const kept_size = 20
/** Retention has removed the events up to here, or they were checked before. */
const begins = 10
const early_size = 4
const part_events = 15

// biome-ignore lint/suspicious/noExplicitAny: bundles are changed into what is none
type Bundle = any

export interface Materials {
  /** Bundles with the proof for the checkpoint that was kept; two begin behind `begins`. */
  workflow: Bundle
  workflow_behind: Bundle
  /** With the proof for a checkpoint of fewer events than it begins behind. */
  workflow_later: Bundle
  /** With the proof for the checkpoint of as many events as it begins behind. */
  workflow_next: Bundle
  whole: Bundle
  whole_behind: Bundle
  /** The journal in three parts, of which the first ends before the checkpoint that was kept. */
  parts: [Bundle, Bundle, Bundle]
  /** A checkpoint with the count of the workflow. */
  kept: string
  /** One of fewer events than the bundles begin behind. */
  kept_early: string
  /** One of as many events as the bundles begin behind. */
  kept_at_begin: string
  key: string
  stranger: KeyPair
  /** A checkpoint of the tree of so many events, as the holder of the key signs it. */
  signs(size: number, lines: string[], by?: KeyPair): Promise<{ size: number; root: string; note: string }>
}

export async function materialsIn(db: Db): Promise<Materials> {
  const made = await Journal.create(db, () => 0)
  const { dependencies, tenant_id } = made
  const kept_early = await grow(made, early_size)
  const kept_at_begin = await grow(made, begins - early_size)
  const kept = await grow(made, kept_size - begins)
  await grow(made, size - kept_size)
  const bundle = async (id: string | null, after = 0, events_max?: number, from = kept_size) =>
    JSON.parse(await made.bundle(id, { from, after, events_max }))
  const whole = await bundle(null)
  const { pair } = await keysFor(db, dependencies.keys.secrets, tenant_id)
  return {
    ...{ workflow: await bundle(workflow_id), workflow_behind: await bundle(workflow_id, begins) },
    workflow_later: await bundle(workflow_id, begins, undefined, early_size),
    workflow_next: await bundle(workflow_id, begins, undefined, begins),
    ...{ whole, whole_behind: await bundle(null, begins) },
    parts: [
      await bundle(null, 0, part_events),
      await bundle(null, part_events, part_events),
      await bundle(null, 2 * part_events, part_events),
    ],
    ...{
      kept,
      kept_at_begin,
      kept_early,
      key: whole.keys[0],
      stranger: newKeyPair(),
    },
    async signs(size, lines, by = pair) {
      const root = await storedTree(db, tenant_id).root(size)
      const text = checkpointText(whole.origin, { size, root }, lines)
      return { size, root: hashText(root), note: signedNote(text, whole.origin, by) }
    },
  }
}

/** Leaves events, and returns the checkpoint behind them. */
async function grow(made: Journal, more: number): Promise<string> {
  const { db, tenant_id } = made
  await db.write(unhurried, async (tx) => {
    for (let i = 0; i < more; i++) {
      await journal.emit(tx, types[0]!, {
        ...{ tenant_id, cause: service_cause, subject_id: 'thing', data: { count: i, note: '' } },
        workflow_id: i % 2 === 0 ? workflow_id : 'another',
      })
    }
  })
  return made.checkpoint(workflow_id)
}

type Make = (of: Materials) => Bundle | Promise<Bundle>
type Known = (of: Materials) => Omit<Check, 'bundle'>

const nothing: Known = () => ({ checkpoint: undefined, after: 0 })
const kept: Known = (of) => ({ checkpoint: of.kept, after: 0 })
const behind: Known = () => ({ checkpoint: undefined, after: begins })
const kept_behind: Known = (of) => ({ checkpoint: of.kept, after: begins })
const kept_part: Known = (of) => ({ checkpoint: of.kept, after: 0, part: true })
const keyed: Known = (of) => ({ checkpoint: undefined, after: 0, key: of.key })

export async function checkOf(of: Materials, [make, known]: readonly [Make, Known]): Promise<Check> {
  return { bundle: JSON.stringify(await make(of)), ...known(of) }
}

/** Both verifiers accept them. */
export const honest: Readonly<Record<string, readonly [Make, Known]>> = {
  'a workflow': [(of) => of.workflow, kept],
  'a workflow behind an event': [(of) => of.workflow_behind, kept_behind],
  'a workflow behind the checkpoint that was kept': [
    (of) => of.workflow_next,
    (of) => ({ checkpoint: of.kept_at_begin, after: begins }),
  ],
  'a workflow behind more than the checkpoint that was kept': [
    (of) => of.workflow_later,
    (of) => ({ checkpoint: of.kept_early, after: begins }),
  ],
  'the journal': [(of) => of.whole, (of) => ({ ...kept(of), key: of.key })],
  'the journal behind an event': [(of) => of.whole_behind, kept_behind],
  'a part that ends before the checkpoint that was kept': [(of) => of.parts[0], kept_part],
  'the next part': [(of) => of.parts[1], (of) => ({ checkpoint: of.kept, after: part_events })],
  'the last part': [(of) => of.parts[2], (of) => ({ checkpoint: of.kept, after: 2 * part_events })],
}

const withEvents = (bundle: Bundle, change: (events: Bundle[]) => Bundle[]) => ({
  ...bundle,
  events: change(bundle.events),
})
const withEvent = (bundle: Bundle, at: number, change: Bundle) =>
  withEvents(bundle, (events) =>
    events.with(at, { ...events[at], event: { ...events[at].event, ...change } }),
  )
const flipped = (hash: string) => `${hash.startsWith('A') ? 'B' : 'A'}${hash.slice(1)}`
const lineOf = (all: number) => `workflow "${workflow_id}" ${all}`
const lineBefore = (before: number) => `workflow-before "${workflow_id}" ${before} ${begins}`

/** Neither verifier accepts them. The first ones need no key, the last ones are signed with it. */
export const forged: Readonly<Record<string, readonly [Make, Known]>> = {
  'the journal begins behind a negative event': [(of) => ({ ...of.whole, after: -3 }), nothing],
  'the journal begins behind half an event': [(of) => ({ ...of.whole, after: 0.5 }), nothing],
  'the journal begins behind a truth': [(of) => ({ ...of.whole_behind, after: true }), behind],
  'a workflow begins behind a negative event, without its first': [
    (of) => withEvents({ ...of.workflow, after: -1 }, (events) => events.slice(1)),
    nothing,
  ],
  'a workflow without its first event': [(of) => withEvents(of.workflow, (all) => all.slice(1)), nothing],
  'a workflow behind an event, without its first there': [
    (of) => withEvents(of.workflow_behind, (events) => events.slice(1)),
    behind,
  ],
  'the same with a checkpoint that was kept': [
    (of) => withEvents(of.workflow_behind, (events) => events.slice(1)),
    kept_behind,
  ],
  'a workflow behind an event, without all up to the checkpoint that was kept': [
    (of) => withEvents(of.workflow_behind, (events) => events.filter(({ event }) => event.seq > kept_size)),
    kept_behind,
  ],
  'a workflow behind an event, without any': [(of) => withEvents(of.workflow_behind, () => []), behind],
  'a workflow behind an event, without one between': [
    (of) => withEvents(of.workflow_behind, (events) => events.toSpliced(3, 1)),
    behind,
  ],
  'a workflow behind an event, without its last': [
    (of) => withEvents(of.workflow_behind, (events) => events.slice(0, -1)),
    behind,
  ],
  'a workflow behind an event, two of them swapped': [
    (of) => withEvents(of.workflow_behind, (all) => all.with(2, all[3]).with(3, all[2])),
    behind,
  ],
  'a workflow behind an event, one of them twice': [
    (of) => withEvents(of.workflow_behind, (all) => all.toSpliced(2, 0, all[2])),
    behind,
  ],
  'a workflow that begins earlier than is signed': [
    (of) => withEvents({ ...of.workflow_behind, after: begins - 2 }, (events) => events.slice(1)),
    behind,
  ],
  'a workflow that begins at the first event, without those before': [
    (of) => ({ ...of.workflow_behind, after: 0 }),
    behind,
  ],
  'a whole workflow that says it begins behind an event': [
    (of) => withEvents({ ...of.workflow, after: begins }, (events) => events.slice(5)),
    behind,
  ],
  'a workflow that begins behind more than is asked for': [
    (of) => of.workflow_behind,
    (of) => ({ checkpoint: of.kept, after: begins - 1 }),
  ],
  'an edited event': [(of) => withEvent(of.workflow, 3, { actor: 'somebody' }), nothing],
  'an event with a member more': [(of) => withEvent(of.workflow, 3, { more: null }), nothing],
  'an event with the number of another': [(of) => withEvent(of.workflow, 3, { seq: 8 }), nothing],
  'an event whose number is a text': [(of) => withEvent(of.workflow, 3, { seq: '7' }), nothing],
  'an event without a number in the workflow': [
    (of) => withEvent(of.workflow, 3, { workflow_seq: null }),
    nothing,
  ],
  'an event of another workflow': [
    (of) => withEvents(of.workflow, (events) => events.with(3, of.whole.events[7])),
    nothing,
  ],
  'an edited proof': [
    (of) =>
      withEvents(of.workflow, (all) =>
        all.with(3, { ...all[3], proof: [flipped(all[3].proof[0]), ...all[3].proof.slice(1)] }),
      ),
    nothing,
  ],
  'an event without a proof': [
    (of) => withEvents(of.workflow, (events) => events.with(3, { ...events[3], proof: null })),
    nothing,
  ],
  'a count that was edited in the note': [
    (of) => ({
      ...withEvents(of.workflow, (events) => events.slice(0, -1)),
      note: of.workflow.note.replace(lineOf(20), lineOf(19)),
    }),
    nothing,
  ],
  'another workflow by name': [(of) => ({ ...of.workflow, workflow_id: 'another' }), nothing],
  'a list as the workflow': [(of) => ({ ...of.workflow, workflow_id: [workflow_id] }), nothing],
  'a workflow that says it is the journal': [(of) => ({ ...of.workflow, workflow_id: null }), nothing],
  'a journal that says it is a workflow': [(of) => ({ ...of.whole, workflow_id }), nothing],
  'a workflow that goes on elsewhere': [(of) => ({ ...of.workflow, next_after: size }), nothing],
  'a journal that goes on elsewhere': [(of) => ({ ...of.whole, next_after: size + 1 }), nothing],
  'another size than is signed': [(of) => ({ ...of.workflow, size: size + 1 }), nothing],
  'another root than is signed': [(of) => ({ ...of.workflow, root: flipped(of.workflow.root) }), nothing],
  'another journal than is signed': [(of) => ({ ...of.workflow, origin: 'waystation/ten_1' }), nothing],
  'no proof for the checkpoint that was kept': [(of) => ({ ...of.workflow, consistency: null }), kept],
  'the proof for another checkpoint': [
    (of) => ({ ...of.workflow, consistency: { ...of.workflow.consistency, from: kept_size - 1 } }),
    kept,
  ],
  'an edited proof for the checkpoint that was kept': [
    (of) => {
      const [first, ...rest] = of.workflow.consistency.proof
      return { ...of.workflow, consistency: { from: kept_size, proof: [flipped(first), ...rest] } }
    },
    kept,
  ],
  'an edited edge': [
    (of) => ({ ...of.whole_behind, edge: [flipped(of.whole_behind.edge[0]), of.whole_behind.edge[1]] }),
    behind,
  ],
  'no edge': [(of) => ({ ...of.whole_behind, edge: [] }), behind],
  'a journal without its first event': [(of) => withEvents(of.whole, (all) => all.slice(1)), nothing],
  'a journal without its last event': [(of) => withEvents(of.whole, (all) => all.slice(0, -1)), nothing],
  'a part that ends before the checkpoint that was kept, where none is expected': [(of) => of.parts[0], kept],
  'such a part that says it is the last': [(of) => ({ ...of.parts[0], next_after: null }), kept_part],
  'such a part without a proof': [(of) => ({ ...of.parts[0], consistency: null }), kept_part],
  'such a part with the proof of another': [
    (of) => ({ ...of.parts[0], consistency: of.parts[2].consistency }),
    kept_part,
  ],
  'such a part of a workflow': [(of) => ({ ...of.parts[0], workflow_id }), kept_part],
  'an empty text as the key that is trusted': [(of) => of.workflow, (of) => ({ ...keyed(of), key: '' })],
  'a stranger’s signature, and the key of the service': [
    async (of) => ({ ...of.workflow, ...(await of.signs(size, [lineOf(20)], of.stranger)) }),
    nothing,
  ],
  'a stranger’s signature and key, where the key is known': [
    async (of) => ({
      ...of.workflow,
      ...(await of.signs(size, [lineOf(20)], of.stranger)),
      keys: [verifierKey(of.workflow.origin, of.stranger.public_key)],
    }),
    keyed,
  ],
  'signed: a smaller count, without the first event behind the checkpoint that was kept': [
    async (of) => ({
      ...withEvents(of.workflow_next, (events) => events.slice(1)),
      ...(await of.signs(size, [lineOf(20), lineBefore(6)])),
    }),
    (of) => ({ checkpoint: of.kept_at_begin, after: begins }),
  ],
  'signed: fewer events up to the checkpoint that was kept': [
    async (of) => ({
      ...withEvents(of.workflow_behind, (all) => all.filter(({ event }) => event.seq > kept_size)),
      ...(await of.signs(size, [lineOf(20), lineBefore(4)])),
    }),
    kept_behind,
  ],
  'signed: the workflow ends before the checkpoint that was kept': [
    async (of) => ({
      ...withEvents(of.workflow, (events) => events.slice(0, 8)),
      ...(await of.signs(size, [lineOf(8)])),
    }),
    kept,
  ],
  'signed: the workflow ends before it, behind an event': [
    async (of) => ({
      ...withEvents(of.workflow_behind, (events) => events.slice(0, 3)),
      ...(await of.signs(size, [lineOf(8), lineBefore(5)])),
    }),
    kept_behind,
  ],
  'signed: a workflow that had events in the checkpoint that was kept, and has none': [
    async (of) => ({
      ...withEvents(of.workflow_later, () => []),
      ...(await of.signs(size, [lineOf(0), lineBefore(0)])),
    }),
    (of) => ({ checkpoint: of.kept_early, after: begins }),
  ],
  'signed: no count of the workflow': [
    async (of) => ({ ...of.workflow, ...(await of.signs(size, [])) }),
    nothing,
  ],
  'signed: no count of the workflow where the bundle begins': [
    async (of) => ({ ...of.workflow_behind, ...(await of.signs(size, [lineOf(20)])) }),
    behind,
  ],
  'signed: a journal that ends before the checkpoint that was kept': [
    async (of) => ({
      ...withEvents(of.whole, (events) => events.slice(0, 12)),
      ...(await of.signs(12, [])),
    }),
    kept_part,
  ],
}
