// /v1/approval-keys

import { Type } from 'typebox'
import { iso, isoOrNull, parseTime } from '../base/clock.ts'
import { maskedKey } from '../base/keys.ts'
import { approvalUrl } from '../checkpoints/service.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import {
  idParam,
  label_characters_max,
  Nullable,
  Page,
  PageQuery,
  Shape,
  Text,
  Time,
} from '../contract/schemas.ts'
import * as approvalKeys from './service.ts'
import * as store from './store.ts'

const tag = 'Approval keys'

const fields = {
  approval_key_id: Type.String(),
  checkpoint_id: Nullable(
    Type.String({ description: 'The one checkpoint it may decide; null for all of the tenant.' }),
  ),
  label: Nullable(Type.String()),
  approval_key: Type.String({
    description: 'In full at creation only, afterwards masked: svc_apr_****x7Qa.',
  }),
  created_at: Time('When it was created.'),
  expires_at: Nullable(Time('It is refused from then on; null: it does not expire.')),
  last_used_at: Nullable(Time('When it was last used, to the minute; null: never.')),
}
const ApprovalKey = Shape('ApprovalKey', 'A key with which a person decides checkpoints, masked.', fields)

export const createApprovalKey = route({
  group: v1,
  method: 'POST',
  path: '/v1/approval-keys',
  tag,
  summary: 'Create a key that may approve and reject checkpoints, and nothing else',
  description:
    'With `checkpoint_id` the key can decide only that checkpoint, and the answer has the URL of a page for it. The key is shown in this answer only.',
  sdk: { name: 'approvalKeys.create' },
  cli: {
    usage: 'key create',
    about: 'Create an approval key; it is shown only once',
    group: 'Approval keys, for the people who decide checkpoints',
    examples: [
      'waystation key create --label "on call" --save approver',
      'waystation key create --checkpoint chk_01m7yjrz37hxnv52px0106nehd',
    ],
    options: {
      checkpoint_id: ['--checkpoint <id>', 'for this checkpoint only'],
      expires_at: ['--expires-at <time>', 'when it expires, RFC 3339'],
    },
    key: 'approval_key',
  },
  auth: ['admin'],
  body: Type.Object({
    checkpoint_id: Type.Optional(Type.String({ description: 'Binds the key to this checkpoint.' })),
    label: Type.Optional(Text(label_characters_max, 'For people: who has it. Votes and comments show it.')),
    expires_at: Type.Optional(Time('When it expires, in the future. Default: never.')),
  }),
  replies: {
    201: {
      body: Shape(
        'CreatedApprovalKey',
        { of: 'ApprovalKey', about: 'An approval key in full, as only its creation answers it.' },
        {
          ...fields,
          approval_url: Nullable(
            Type.String({
              description: 'For a bound key: a page to decide the checkpoint, with the key in its fragment.',
            }),
          ),
        },
      ),
    },
  },
  emits: ['approval_key.created'],
  errors: ['CHECKPOINT_NOT_FOUND', 'QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { body }) {
    const { row, key } = await approvalKeys.create(tx, caller, dependencies.plans, {
      checkpoint_id: body.checkpoint_id ?? null,
      label: body.label ?? null,
      expires_at: body.expires_at === undefined ? null : parseTime(body.expires_at),
    })
    const approval_url =
      row.checkpoint_id === null ? null : keyedUrl(dependencies.urls.public_url(), row.checkpoint_id, key)
    return { ...approvalKeyOf({ ...row, created_at: tx.now, last_used_at: null }, key), approval_url }
  },
})

export const listApprovalKeys = route({
  group: v1,
  method: 'GET',
  path: '/v1/approval-keys',
  tag,
  summary: 'List approval keys, newest first, masked',
  description: 'Includes those bound to a checkpoint. Each has the time when it was last used.',
  sdk: { name: 'approvalKeys.list' },
  cli: {
    usage: 'key list',
    columns: [
      ...['approval_key_id', 'label', 'checkpoint_id', 'approval_key', 'created_at', 'expires_at'],
      'last_used_at',
    ],
  },
  auth: ['admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(ApprovalKey) } },
  shed: 'last',
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const rows = await store.list(context.db, context.caller.tenant_id, pageOfIds(request))
    return pageOf(context, request, { rows, itemOf: masked, positionOf: (row) => [row.approval_key_id] })
  },
})

export const deleteApprovalKey = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/approval-keys/:approval_key_id',
  tag,
  summary: 'Revoke an approval key',
  description: 'The key is refused on all nodes within a second.',
  sdk: {
    name: 'approvalKeys.delete',
    retry: {
      safe: true,
      why: 'an id is used once; a deleted key stays deleted',
      done: { code: 'APPROVAL_KEY_NOT_FOUND' },
    },
  },
  cli: { usage: 'key delete <approval_key_id>' },
  auth: ['admin'],
  destructive: true,
  params: { approval_key_id: idParam('The approval key, apk_….') },
  replies: { 204: { body: null } },
  shed: 'last',
  emits: ['approval_key.revoked'],
  errors: ['APPROVAL_KEY_NOT_FOUND'],
  handle: ({ db, caller, dependencies }, { params }) =>
    approvalKeys.remove(db, dependencies.keys.cache, caller, params.approval_key_id),
})

/** A browser keeps the fragment to itself: the key is in no request line, log or referrer. */
function keyedUrl(public_url: string, checkpoint_id: string, key: string): string {
  return `${approvalUrl(public_url, checkpoint_id)}#${key}`
}

function masked(row: store.ApprovalKeyRow) {
  return approvalKeyOf(row, maskedKey('approval', row.last_four))
}

function approvalKeyOf(row: Omit<store.ApprovalKeyRow, 'last_four'>, approval_key: string) {
  return {
    approval_key_id: row.approval_key_id,
    checkpoint_id: row.checkpoint_id,
    label: row.label,
    approval_key,
    created_at: iso(row.created_at),
    expires_at: isoOrNull(row.expires_at),
    last_used_at: isoOrNull(row.last_used_at),
  }
}
