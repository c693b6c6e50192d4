// /v1/seal

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { route, Streamed } from '../contract/route.ts'
import { Nullable, Part, Shape, Text } from '../contract/schemas.ts'
import { bundle } from './bundle-service.ts'
import { checkpoint } from './checkpoint-service.ts'
import * as seal from './service.ts'
import { checkpoint_fields, Event, Proof, Size, tag, Workflow } from './shapes.ts'

export const getSeal = route({
  group: v1,
  method: 'GET',
  path: '/v1/seal',
  tag,
  summary: 'Seal the journal and return its checkpoint, a signed note',
  description:
    'Keep `note` somewhere else: it reveals any later change to the events before it. With `workflow_id` the note also states how many events that workflow has.',
  sdk: { name: 'seal.get' },
  cli: {
    usage: 'seal get',
    about: 'Seal the journal and print its checkpoint, to be kept elsewhere',
    group: 'The seal of the journal: checkpoints, proofs and bundles to check offline',
    examples: ['waystation seal get --json > kept.json', 'waystation seal get --workflow order-17'],
    options: { workflow_id: ['--workflow <id>', 'also state how many events this workflow has'] },
    shows: 'note',
  },
  auth: ['admin'],
  query: Type.Object({ workflow_id: Workflow }),
  replies: {
    200: {
      body: Shape(
        'SealCheckpoint',
        {
          of: 'SealStatement',
          about: 'The signed checkpoint of the journal.',
          shared: 'The signed checkpoint of the journal, and what is proved against it.',
        },
        checkpoint_fields,
      ),
    },
  },
  errors: ['SEAL_BROKEN', 'STORAGE_FULL'],
  handle: ({ db, caller, dependencies }, { query }) =>
    checkpoint(db, dependencies, caller.tenant_id, query.workflow_id ?? null),
})

export const getInclusionProof = route({
  group: v1,
  method: 'GET',
  path: '/v1/seal/proof',
  tag,
  summary: 'Prove that an event is in the journal',
  description:
    'The event is named by its id or its number. The proof is against the checkpoint of `size` events, or the current one.',
  sdk: { name: 'seal.proof' },
  cli: {
    usage: 'seal proof',
    examples: ['waystation seal proof --event 17', 'waystation seal proof --event 17 --size 120'],
    options: {
      event: ['--event <id>', 'the event, by its id or its number'],
      size: ['--size <n>', 'in the tree of this many events; default all'],
    },
  },
  auth: ['admin'],
  query: Type.Object({
    event: Text(64, 'The event, by its id, evt_…, or its number, seq.', { minLength: 1, examples: ['1'] }),
    size: Type.Optional(Size('The proof is for the tree of this many events; default all.', 1)),
  }),
  replies: {
    200: {
      body: Shape(
        'SealProof',
        { of: 'SealStatement', about: 'A proof that an event is in the journal.' },
        {
          event: Nullable(Event),
          seq: Type.Integer({ description: 'Its number; its place among the leaves is one less.' }),
          leaf_hash: Type.String({
            description: 'The hash that is sealed, base64; also of an event that retention has removed.',
          }),
          proof: Proof,
          ...checkpoint_fields,
        },
      ),
    },
  },
  errors: ['SEAL_EVENT_NOT_FOUND', 'SEAL_SIZE_UNKNOWN', 'SEAL_BROKEN', 'STORAGE_FULL'],
  handle: ({ db, caller, dependencies }, { query: { event, size = null } }) =>
    seal.inclusion(db, dependencies, caller.tenant_id, { event, size }),
})

export const getConsistencyProof = route({
  group: v1,
  method: 'GET',
  path: '/v1/seal/consistency',
  tag,
  summary: 'Prove that the journal continues from an earlier checkpoint',
  description: 'The tree of `to` events begins with the tree of `from` events: no earlier event was changed.',
  sdk: { name: 'seal.consistency' },
  cli: {
    usage: 'seal consistency',
    examples: ['waystation seal consistency --from 120'],
    options: {
      from: ['--from <n>', 'the size of the earlier checkpoint'],
      to: ['--to <n>', 'the size of the later checkpoint; default all'],
    },
  },
  auth: ['admin'],
  query: Type.Object({
    from: Size('The size of the earlier checkpoint.'),
    to: Type.Optional(Size('The size of the later checkpoint; default all events.')),
  }),
  replies: {
    200: {
      body: Shape(
        'SealConsistency',
        { of: 'SealStatement', about: 'A proof that a journal only grew.' },
        {
          from: Type.Integer(),
          from_root: Type.String({ description: 'The root of the tree of `from` events, base64.' }),
          proof: Proof,
          ...checkpoint_fields,
        },
      ),
    },
  },
  errors: ['SEAL_SIZE_UNKNOWN', 'SEAL_BROKEN', 'STORAGE_FULL'],
  handle: ({ db, caller, dependencies }, { query: { from, to = null } }) =>
    seal.consistency(db, dependencies, caller.tenant_id, { from, to }),
})

export const getBundle = route({
  group: v1,
  method: 'GET',
  path: '/v1/seal/bundle',
  tag,
  summary: 'Get everything needed to check a workflow, or the journal, offline',
  description:
    'With `workflow_id`, the events of that workflow, each with its proof; without it, all events, from which the root can be recomputed. Check it with `waystation verify` or `examples/verify_bundle.py`.',
  sdk: { name: 'seal.bundle' },
  cli: {
    usage: 'seal bundle',
    about: 'Print everything needed to check a workflow, or the journal, offline; use it with --json',
    examples: [
      'waystation seal bundle --workflow order-17 --json > order-17.json',
      'waystation seal bundle --from 120 --json | waystation verify - --checkpoint kept.json',
    ],
    options: {
      workflow_id: ['--workflow <id>', 'the events of this workflow; default all'],
      from: ['--from <n>', 'the size of a checkpoint that you kept'],
      after: ['--after <seq>', 'only events after this one'],
    },
  },
  auth: ['admin'],
  heavy: true,
  query: Type.Object({
    workflow_id: Workflow,
    from: Type.Optional(
      Size('The size of a checkpoint that you kept: the bundle proves that it continues from there.'),
    ),
    after: Type.Optional(
      Size(
        'Only events after this number; default 0. Where retention has removed more, the bundle begins after those.',
      ),
    ),
  }),
  replies: {
    200: {
      body: Shape('SealBundle', 'Events with everything needed to check them without the service.', {
        format: Type.String({ description: 'waystation-seal-bundle/1' }),
        ...checkpoint_fields,
        workflow_id: Nullable(Type.String()),
        after: Type.Integer({ description: 'The events of the bundle are those after this one.' }),
        edge: Nullable(
          Type.Array(Type.String(), {
            description:
              'For a bundle of the journal: the hashes of the complete parts of the tree of `after` events.',
          }),
        ),
        consistency: Nullable(
          Part(
            'SealBundleConsistency',
            {
              of: 'SealBundlePart',
              about:
                'Proves that the tree begins with the one of `from` events; in a part that ends before `from`, that the latter begins with this one.',
              shared: 'A part of a bundle with its proof.',
            },
            { from: Type.Integer(), proof: Proof },
          ),
        ),
        next_after: Nullable(
          Type.Integer({ description: 'Where the next part of the journal begins; null on the last.' }),
        ),
        events: Type.Array(
          Part(
            'SealBundleEvent',
            { of: 'SealBundlePart', about: 'An event of a bundle, with the proof that it is in the tree.' },
            {
              event: Event,
              proof: Nullable(Proof),
            },
          ),
        ),
      }),
    },
  },
  errors: ['SEAL_SIZE_UNKNOWN', 'SEAL_BROKEN', 'STORAGE_FULL'],
  async handle({ db, caller, dependencies }, { query: { workflow_id = null, from = null, after = 0 } }) {
    return new Streamed(await bundle(db, dependencies, caller.tenant_id, { workflow_id, from, after }))
  },
})
