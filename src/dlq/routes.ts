// /v1/dlq

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { AnyJson, kib } from '../contract/schemas.ts'
import { deadlineTime } from '../contract/stopped.ts'
import { callerFor, WorkflowId, workflowOf } from '../contract/workflow.ts'
import * as dlq from './service.ts'
import { Item, id, itemOf, LockSeconds, tag } from './shapes.ts'

/** A payload may fill the body; the rest is for the other fields, of which the error alone takes 64 KiB. */
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

export const captureItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq',
  tag,
  summary: 'Record a failure',
  description:
    'The payload is kept as the exact text. `cause` groups it with others that failed the same way.',
  sdk: { name: 'dlq.create' },
  cli: {
    usage: 'dlq create [payload]',
    about: 'Record a failure: a JSON payload, and what went wrong',
    group: 'Dead letters: record failures, claim and resolve them',
    examples: [
      `waystation dlq create '{"order": 7}' --error "card declined"`,
      'waystation dlq create --file order.json --error "card declined" --workflow night-17',
    ],
  },
  auth: ['agent'],
  body: Type.Object({
    payload: AnyJson(payload_bytes_max, 'Any JSON; comes back as the same text.'),
    error: Type.String({
      'x-bytes-max': error_bytes_max,
      description: 'The cause of the failure, at most 64 KiB.',
    }),
    workflow_id: Type.Optional(WorkflowId),
    lock_seconds: Type.Optional(LockSeconds),
  }),
  replies: { 201: { body: Item } },
  emits: ['dlq.created'],
  errors: ['QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { body }) {
    const item = await dlq.capture(tx, callerFor(caller, body.workflow_id), dependencies.plans, {
      payload: body.payload.text,
      error: body.error,
      workflow_id: workflowOf(body.workflow_id, caller),
      lock_seconds: body.lock_seconds ?? null,
    })
    return itemOf(item)
  },
})

export const getItem = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/:id',
  tag,
  summary: 'Read a dead letter',
  description: 'Includes its payload, as the exact text that was captured.',
  sdk: { name: 'dlq.get' },
  cli: { usage: 'dlq get <id>', about: 'Show a dead letter with its payload' },
  auth: ['agent', 'admin'],
  heavy: true,
  params: { id },
  replies: { 200: { body: Item } },
  errors: ['DLQ_NOT_FOUND'],
  async handle({ db, caller, now }, { params }) {
    return itemOf(await dlq.read(db, caller.tenant_id, params.id, deadlineTime(caller, now)))
  },
})

export const deleteItem = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/dlq/:id',
  tag,
  summary: 'Remove a dead letter for good',
  description: 'Works in any status.',
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
  emits: ['dlq.deleted', 'dlq.lock_expired'],
  errors: ['DLQ_NOT_FOUND'],
  handle: ({ db, caller }, { params }) => dlq.remove(db, caller, params.id),
})
