// /v1/dlq

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { looked_max, pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { Reply, route } from '../contract/route.ts'
import {
  AnyJson,
  idParam,
  Json,
  kib,
  label_characters_max,
  Nullable,
  Page,
  PageQuery,
  RawJson,
  Shape,
  Text,
  Time,
} from '../contract/schemas.ts'
import { type HeldItem, type ItemRow, lock_seconds_max, seenAt, statuses } from './item.ts'
import * as dlq from './service.ts'
import * as store from './store.ts'

const tag = 'Dead letters'
const id = idParam('The dead letter, dlq_….')
const example = 'dlq_01m7yjrz37hxnv52px0106nehd'
const token_option = ['--token <lock_token>', 'what the claim answered: only that very lock counts'] as const

/** A payload may fill the body; what is left is for the envelope, whose error alone takes 64 KiB. */
const payload_bytes_max = limit(
  'dlq.payload_bytes',
  1_024 * kib,
  'bytes',
  'The payload of a dead letter. Past it 413.',
)
const error_bytes_max = limit(
  'dlq.error_bytes',
  64 * kib,
  'bytes',
  'The error of a dead letter. Past it 413.',
)

const seconds = { minimum: 1, maximum: lock_seconds_max }
const LockSeconds = Type.Integer({ ...seconds, description: 'How long a claim holds; default 300.' })
const OwnLockSeconds = Type.Integer({
  ...seconds,
  description: 'How long the lock holds from now; default that of the item.',
})
const LockToken = Type.Optional(
  Type.String({ description: 'What the claim answered; when sent, it must be the current one.' }),
)

const listed_fields = {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  error: Type.String(),
  workflow_id: Nullable(Type.String()),
  source: Type.Enum(['agent', 'schedule', 'checkpoint']),
  source_id: Nullable(Type.String({ description: 'The schedule or checkpoint that gave up.' })),
  agent_id: Nullable(Type.String()),
  lock_seconds: Type.Integer(),
  locked_by: Nullable(Type.String({ description: 'The agent that holds the lock.' })),
  locked_until: Nullable(Time('From then on the item is failed again.')),
  claims: Type.Integer({ description: 'How often it was claimed.' }),
  created_at: Time('When it was captured.'),
  updated_at: Time('When it last changed.'),
  resolved_at: Nullable(Time('When it was resolved.')),
}
const ListedItem = Shape('ListedDeadLetter', listed_fields)
const Item = Shape('DeadLetter', { ...listed_fields, payload: Json('The exact text that was sent.') })
const ClaimedItem = Shape('ClaimedDeadLetter', {
  ...Item.properties,
  lock_token: Type.String({
    description: 'Send it with extend, release, fail and resolve to be sure that the lock is still yours.',
  }),
})

const ExtendedItem = Shape('ExtendedDeadLetter', {
  ...Item.properties,
  lock_token: Nullable(Type.String({ description: 'The one that was sent; null when none was.' })),
})

const ClaimBody = Type.Object({ lock_seconds: Type.Optional(OwnLockSeconds) })
const ExtendBody = Type.Object({ lock_seconds: Type.Optional(OwnLockSeconds), lock_token: LockToken })
const LeaveBody = Type.Object({ lock_token: LockToken })

export const captureItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq',
  tag,
  summary: 'Park a failure',
  sdk: { name: 'dlq.create' },
  cli: {
    usage: 'dlq create [payload]',
    about: 'Record a failure: a payload as JSON, and what went wrong',
    group: 'Dead letters: record failures, claim and resolve them',
    examples: [
      `waystation dlq create '{"order": 7}' --error "card declined"`,
      'waystation dlq create --file order.json --error "card declined" --workflow night-17',
    ],
  },
  auth: ['agent'],
  body: Type.Object({
    payload: AnyJson(payload_bytes_max, 'Any JSON; comes back as the same text.'),
    error: Type.String({ 'x-bytes-max': error_bytes_max, description: 'What went wrong, at most 64 KiB.' }),
    workflow_id: Type.Optional(Text(label_characters_max, 'Ties records together.')),
    lock_seconds: Type.Optional(LockSeconds),
  }),
  replies: { 201: { body: Item } },
  errors: ['QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { body }) {
    const item = await dlq.capture(tx, caller, dependencies.plans, {
      payload: body.payload.text,
      error: body.error,
      workflow_id: body.workflow_id ?? null,
      lock_seconds: body.lock_seconds ?? null,
    })
    return itemOf(item)
  },
})

export const listItems = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq',
  tag,
  summary: 'List dead letters, newest first, without payloads',
  sdk: { name: 'dlq.list' },
  cli: {
    usage: 'dlq list',
    examples: ['waystation dlq list --status failed'],
    columns: ['id', 'status', 'error', 'source', 'workflow_id', 'claims', 'locked_by', 'created_at'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({ ...PageQuery, status: Type.Optional(Type.Enum([...statuses])) }),
  replies: { 200: { body: Page(ListedItem) } },
  errors: [],
  async handle(context, { query }) {
    const { db, caller, now } = context
    const request = pageRequest(context, query)
    const page = { ...pageOfIds(request), looked_max }
    const found = await store.list(db, caller.tenant_id, query.status, now, page)
    return pageOf(context, request, {
      rows: found.rows,
      itemOf: (row) => listedOf(seenAt(row, now)),
      positionOf: (row) => [row.id],
      reached: found.reached === null ? null : [found.reached],
    })
  },
})

export const getItem = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/:id',
  tag,
  summary: 'Read a dead letter',
  sdk: { name: 'dlq.get' },
  cli: { usage: 'dlq get <id>', about: 'Show a dead letter with its payload' },
  auth: ['agent', 'admin'],
  heavy: true,
  params: { id },
  replies: { 200: { body: Item } },
  errors: ['DLQ_NOT_FOUND'],
  async handle({ db, caller, now }, { params }) {
    return itemOf(await dlq.read(db, caller.tenant_id, params.id, now))
  },
})

export const deleteItem = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/dlq/:id',
  tag,
  summary: 'Remove a dead letter for good',
  sdk: {
    name: 'dlq.delete',
    retry: {
      safe: true,
      why: 'an id is used once; a deleted item stays deleted',
      done: { code: 'DLQ_NOT_FOUND' },
    },
  },
  cli: { usage: 'dlq delete <id>' },
  auth: ['agent'],
  destructive: true,
  params: { id },
  replies: { 204: { body: null } },
  errors: ['DLQ_NOT_FOUND'],
  handle: ({ db, caller }, { params }) => dlq.remove(db, caller, params.id),
})

export const claimOldestItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/claim',
  tag,
  summary: 'Take the lock on the oldest failed item; 204 when there is none',
  sdk: {
    name: 'dlq.claimOldest',
    retry: {
      safe: false,
      why: 'a repeat would claim another item; the lock of the first runs out by itself',
    },
  },
  auth: ['agent'],
  body: ClaimBody,
  replies: { 200: { body: ClaimedItem }, 204: { body: null } },
  errors: [],
  async handle({ db, caller }, { body }) {
    const item = await dlq.claimOldest(db, caller, body.lock_seconds)
    return item ? claimedOf(item) : new Reply(204, null)
  },
})

export const claimItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/claim',
  tag,
  summary: 'Take the lock on a failed item',
  sdk: {
    name: 'dlq.claim',
    retry: { safe: false, why: 'nobody would have the token of the lock; it runs out by itself' },
  },
  cli: {
    usage: 'dlq claim [id]',
    about: 'Lock a dead letter, or the oldest; its lock_token is for the other commands',
    examples: ['waystation dlq claim --lock 10m', `waystation dlq claim ${example}`],
    options: { lock_seconds: ['--lock <duration>', 'how long the lock holds; default that of the item'] },
  },
  auth: ['agent'],
  params: { id },
  body: ClaimBody,
  replies: { 200: { body: ClaimedItem } },
  errors: ['DLQ_NOT_FOUND', 'ALREADY_CLAIMED', 'INVALID_STATE'],
  async handle({ db, caller }, { params, body }) {
    return claimedOf(await dlq.claim(db, caller, params.id, body.lock_seconds))
  },
})

export const extendItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/extend',
  tag,
  summary: 'Keep the lock, for lock_seconds from now',
  description: 'The lock then ends `lock_seconds` from now.',
  sdk: { name: 'dlq.extend', retry: { safe: { with: 'lock_token' }, why: 'the token names one lock' } },
  cli: {
    usage: 'dlq extend <id>',
    about: 'Extend the lock',
    examples: [`waystation dlq extend ${example} --lock 10m --token <token>`],
    options: {
      lock_seconds: ['--lock <duration>', 'how long from now; default that of the item'],
      lock_token: token_option,
    },
  },
  auth: ['agent'],
  params: { id },
  body: ExtendBody,
  replies: { 200: { body: ExtendedItem } },
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD'],
  async handle({ db, caller }, { params, body }) {
    return claimedOf(await dlq.extend(db, caller, params.id, body.lock_token, body.lock_seconds))
  },
})

export const releaseItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/release',
  tag,
  summary: 'Give the lock back; the item is failed again',
  sdk: {
    name: 'dlq.release',
    retry: {
      safe: { with: 'lock_token' },
      why: 'the token names one lock; a released item is failed again',
      done: { code: 'INVALID_STATE', status: 'failed', read: 'getItem' },
    },
  },
  cli: {
    usage: 'dlq release <id>',
    about: 'Release the lock; the dead letter can be claimed again',
    examples: [`waystation dlq release ${example} --token <token>`],
    options: { lock_token: token_option },
  },
  auth: ['agent'],
  params: { id },
  body: LeaveBody,
  replies: { 200: { body: Item } },
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD'],
  async handle({ db, caller }, { params, body }) {
    return itemOf(await dlq.release(db, caller, params.id, body.lock_token))
  },
})

export const failItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/fail',
  tag,
  summary: 'Give the item up; it is archived',
  sdk: {
    name: 'dlq.fail',
    retry: {
      safe: { with: 'lock_token' },
      why: 'the token names one lock; an archived item stays archived',
      done: { code: 'INVALID_STATE', status: 'archived', read: 'getItem' },
    },
  },
  cli: {
    usage: 'dlq fail <id>',
    about: 'Give a dead letter up; it is archived',
    examples: [`waystation dlq fail ${example} --token <token>`],
    options: { lock_token: token_option },
  },
  auth: ['agent'],
  params: { id },
  body: LeaveBody,
  replies: { 200: { body: Item } },
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD'],
  async handle({ db, caller }, { params, body }) {
    return itemOf(await dlq.fail(db, caller, params.id, body.lock_token))
  },
})

export const resolveItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/resolve',
  tag,
  summary: 'Mark the item as mended',
  description: 'From any status; a repeat changes nothing.',
  sdk: { name: 'dlq.resolve', retry: { safe: true, why: 'resolving a resolved item answers the same' } },
  cli: {
    usage: 'dlq resolve <id>',
    about: 'Mark a dead letter as resolved',
    examples: [`waystation dlq resolve ${example} --token <token>`],
    options: { lock_token: token_option },
  },
  auth: ['agent'],
  params: { id },
  body: LeaveBody,
  replies: { 200: { body: Item } },
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD'],
  async handle({ db, caller }, { params, body }) {
    return itemOf(await dlq.resolve(db, caller, params.id, body.lock_token))
  },
})

function claimedOf(item: HeldItem) {
  return { ...itemOf(item), lock_token: item.lock_token }
}

function itemOf(item: ItemRow) {
  return { ...listedOf(item), payload: new RawJson(item.payload!) }
}

function listedOf(item: ItemRow) {
  return {
    id: item.id,
    status: item.status,
    error: item.error,
    workflow_id: item.workflow_id,
    source: item.source,
    source_id: item.source_id,
    agent_id: item.agent_id,
    lock_seconds: item.lock_seconds,
    locked_by: item.locked_by,
    locked_until: isoOrNull(item.locked_until),
    claims: item.claims,
    created_at: iso(item.created_at),
    updated_at: iso(item.updated_at),
    resolved_at: isoOrNull(item.resolved_at),
  }
}
