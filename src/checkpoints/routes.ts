// /v1/checkpoints

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { iso, isoOrNull, parseTime, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest } from '../contract/page.ts'
import { type Context, route } from '../contract/route.ts'
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
  Url,
  value_bytes_max,
} from '../contract/schemas.ts'
import { waitFor } from '../contract/wait.ts'
import { AttemptPage, attempt_columns, attemptPage } from '../jobs/attempts.ts'
import {
  type CheckpointRow,
  callback_statuses,
  expiryOf,
  statuses,
  timeout_actions,
  timeout_seconds_max,
  timeout_seconds_min,
  wait_seconds_max,
  waitKey,
} from './checkpoint.ts'
import * as checkpoints from './service.ts'
import * as store from './store.ts'

const tag = 'Checkpoints'
const id = idParam('The checkpoint, chk_….')
const example = 'chk_01m7yjrz37hxnv52px0106nehd'
const prompt_bytes_max = limit(
  'checkpoints.prompt_bytes',
  32 * kib,
  'bytes',
  'The prompt of a checkpoint. Past it 413.',
)
const reason_characters_max = limit(
  'checkpoints.reason',
  4_096,
  'characters',
  'The reason of a decision. Past it 400.',
)

const Checkpoint = Shape('Checkpoint', {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  title: Type.String(),
  prompt: Nullable(Type.String()),
  callback_url: Type.String(),
  callback_payload: Json('The exact text that was sent, or null.'),
  timeout_action: Type.Enum([...timeout_actions]),
  expires_at: Time('When the timeout is due.'),
  agent_id: Type.String(),
  reason: Nullable(Type.String()),
  resolved_by: Nullable(Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })),
  resolved_at: Nullable(Time('When it was settled.')),
  callback: Shape('CheckpointCallback', {
    status: Type.Enum([...callback_statuses]),
    attempts: Type.Integer(),
    last_error: Nullable(Type.String()),
  }),
  created_at: Time('When it was created.'),
  updated_at: Time('When it last changed.'),
})

const Approval = Shape('Approval', {
  checkpoint_id: Type.String(),
  title: Type.String(),
  prompt: Nullable(Type.String()),
  payload: Json('The callback_payload, the exact text that was sent, or null.'),
  agent: Shape({
    agent_id: Type.String({ description: 'Who asks.' }),
    name: Type.String(),
  }),
  status: Type.Enum([...statuses]),
  created_at: Time('When it was created.'),
  expires_at: Time('When the timeout is due.'),
  reason: Nullable(Type.String()),
  resolved_by: Nullable(Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })),
  resolved_at: Nullable(Time('When it was settled.')),
})

const Wait = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: wait_seconds_max,
    description: 'Seconds to hold the request while the checkpoint is pending.',
  }),
)

const DecisionBody = Type.Object({
  reason: Type.Optional(Text(reason_characters_max, 'Told to the agent.')),
})

export const createCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints',
  tag,
  summary: 'Ask a human',
  sdk: { name: 'checkpoints.create' },
  cli: {
    usage: 'checkpoint create <title> [callback_payload]',
    about: 'Ask a human; the decision is sent to the callback',
    group: 'Questions that a human approves or rejects',
    examples: [
      'waystation checkpoint create "Deploy v2?" --callback https://example.com/decided --expires-in 2h',
      `waystation checkpoint create "Refund?" '{"order": 7}' --callback /decided --prompt-file refund.txt`,
    ],
    options: {
      callback_url: ['--callback <url>', 'where the decision is sent'],
      prompt: ['--prompt <text>', 'what else the human should know'],
      timeout_action: ['--on-timeout <action>', 'default auto_reject'],
      timeout_seconds: ['--expires-in <duration>', 'how long it waits; default 24h'],
      expires_at: ['--expires-at <time>', 'until when it waits, RFC 3339'],
    },
    or: { prompt: ['--prompt-file <path>', 'the same from a file'] },
  },
  auth: ['agent'],
  body: Type.Object({
    title: Text(label_characters_max, 'What is asked.', { minLength: 1 }),
    prompt: Type.Optional(
      Type.String({ 'x-bytes-max': prompt_bytes_max, description: 'At most 32 KiB of plain text.' }),
    ),
    callback_url: Url(
      "An http or https URL, or a path that is resolved against the agent's callback_base_url.",
    ),
    callback_payload: Type.Optional(
      AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB; sent with the decision.'),
    ),
    timeout_action: Type.Optional(
      Type.Enum([...timeout_actions], { description: 'auto_reject, the default, or dlq.' }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({ minimum: timeout_seconds_min, maximum: timeout_seconds_max }),
    ),
    expires_at: Type.Optional(
      Time('With timeout_seconds, the earlier of both; without either, 24 hours from now.'),
    ),
  }),
  replies: { 201: { body: Checkpoint } },
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ db, dependencies, caller }, { body }) =>
    agents.callbackUrl(db, dependencies, caller, body.callback_url),
  async create(tx, { caller, dependencies }, { body }, callback_url) {
    const expires_at = body.expires_at === undefined ? undefined : parseTime(body.expires_at)!
    const checkpoint = await checkpoints.create(tx, caller, dependencies, {
      title: body.title,
      prompt: body.prompt ?? null,
      callback_url,
      callback_payload: body.callback_payload?.text ?? null,
      timeout_action: body.timeout_action ?? 'auto_reject',
      expires_at: expiryOf(tx.now, body.timeout_seconds, expires_at),
    })
    return checkpointOf(checkpoint)
  },
})

export const listCheckpoints = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints',
  tag,
  summary: 'List checkpoints, newest first',
  sdk: { name: 'checkpoints.list' },
  cli: {
    usage: 'checkpoint list',
    examples: ['waystation checkpoint list --status pending'],
    columns: ['id', 'status', 'title', 'agent_id', 'expires_at', 'resolved_by', 'callback.status'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({ ...PageQuery, status: Type.Optional(Type.Enum([...statuses])) }),
  replies: { 200: { body: Page(Checkpoint) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const { db, caller } = context
    const rows = await store.list(db, caller.tenant_id, query.status, pageOfIds(request))
    return pageOf(context, request, { rows, itemOf: checkpointOf, positionOf: (row) => [row.id] })
  },
})

export const getCheckpoint = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id',
  tag,
  summary: 'Read a checkpoint, or wait until it is settled',
  description: 'With `wait`, in seconds, the answer comes once it is settled, and by then in any case.',
  sdk: { name: 'checkpoints.get' },
  cli: { usage: 'checkpoint get <id>', about: 'Read a checkpoint' },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object({ wait: Wait }),
  replies: { 200: { body: Checkpoint } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { tenant_id } = context.caller
    const look = () => checkpoints.read(context.db, tenant_id, params.id)
    return checkpointOf(await settled(context, params.id, query.wait, look))
  },
})

export const getApproval = route({
  group: v1,
  method: 'GET',
  path: '/v1/approvals/:checkpoint_id',
  tag,
  summary: 'Read what an approval key is to decide, or wait until it is settled',
  description: 'With `wait`, in seconds, the answer comes once it is settled, and by then in any case.',
  sdk: { name: 'approvals.get' },
  cli: { usage: 'approval <checkpoint_id>', about: 'Show what is to be decided, with an approval key' },
  auth: ['approval'],
  params: { checkpoint_id: id },
  query: Type.Object({ wait: Wait }),
  replies: { 200: { body: Approval } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const look = () => checkpoints.readFor(context.db, context.caller, params.checkpoint_id)
    return approvalOf(await settled(context, params.checkpoint_id, query.wait, look))
  },
})

function settled(
  context: Context<TenantFacts>,
  id: string,
  wait_seconds: number | undefined,
  look: () => Promise<CheckpointRow>,
): Promise<CheckpointRow> {
  const key = waitKey(context.caller.tenant_id, id)
  const wait_ms = (wait_seconds ?? 0) * second_ms
  return waitFor(context, { key, wait_ms, look, isDone: ({ status }) => status !== 'pending' })
}

export const cancelCheckpoint = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/checkpoints/:id',
  tag,
  summary: 'Cancel a checkpoint; its creator only',
  sdk: {
    name: 'checkpoints.cancel',
    retry: {
      safe: true,
      why: 'a cancelled checkpoint stays cancelled',
      done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'cancelled' },
    },
  },
  cli: { usage: 'checkpoint cancel <id>', about: 'Cancel a checkpoint of your own', done: 'cancelled' },
  auth: ['agent'],
  destructive: true,
  params: { id },
  replies: { 204: { body: null } },
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  handle: ({ db, caller, dependencies }, { params }) =>
    checkpoints.cancel(db, caller, dependencies, params.id),
})

export const approveCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/approve',
  tag,
  summary: 'Approve; the agent is called back',
  description: 'With the admin key or an approval key.',
  sdk: {
    name: 'checkpoints.approve',
    retry: {
      safe: true,
      why: 'approving it again changes nothing',
      done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'approved', read: 'getCheckpoint' },
    },
  },
  cli: {
    usage: 'approve <id>',
    about: 'Approve a checkpoint, with an admin or approval key',
    examples: [`waystation approve ${example} --reason "seen by Kim"`],
  },
  auth: ['admin', 'approval'],
  params: { id },
  body: DecisionBody,
  replies: { 200: { body: Checkpoint } },
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    return checkpointOf(
      await checkpoints.decide(db, caller, dependencies, params.id, 'approved', body.reason ?? null),
    )
  },
})

export const rejectCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/reject',
  tag,
  summary: 'Reject; the agent is called back',
  description: 'With the admin key or an approval key.',
  sdk: {
    name: 'checkpoints.reject',
    retry: {
      safe: true,
      why: 'rejecting it again changes nothing',
      done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'rejected', read: 'getCheckpoint' },
    },
  },
  cli: {
    usage: 'reject <id>',
    about: 'Reject a checkpoint, with an admin or approval key',
    examples: [`waystation reject ${example} --reason "seen by Kim"`],
  },
  auth: ['admin', 'approval'],
  params: { id },
  body: DecisionBody,
  replies: { 200: { body: Checkpoint } },
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    return checkpointOf(
      await checkpoints.decide(db, caller, dependencies, params.id, 'rejected', body.reason ?? null),
    )
  },
})

export const listCheckpointAttempts = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id/attempts',
  tag,
  summary: 'List the attempts to send the decision, newest first',
  sdk: { name: 'checkpoints.attempts' },
  cli: { usage: 'checkpoint attempts <id>', columns: attempt_columns },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: AttemptPage } },
  errors: ['CHECKPOINT_NOT_FOUND'],
  handle: (context, { params, query }) =>
    attemptPage(context, query, 'checkpoint', () =>
      checkpoints.read(context.db, context.caller.tenant_id, params.id),
    ),
})

function checkpointOf(row: CheckpointRow) {
  return {
    id: row.id,
    status: row.status,
    title: row.title,
    prompt: row.prompt,
    callback_url: row.callback_url,
    callback_payload: row.callback_payload === null ? null : new RawJson(row.callback_payload),
    timeout_action: row.timeout_action,
    expires_at: iso(row.expires_at),
    agent_id: row.agent_id,
    reason: row.reason,
    resolved_by: row.resolved_by,
    resolved_at: isoOrNull(row.resolved_at),
    callback: {
      status: row.callback_status,
      attempts: row.callback_attempts,
      last_error: row.callback_last_error,
    },
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

function approvalOf(row: CheckpointRow) {
  return {
    checkpoint_id: row.id,
    title: row.title,
    prompt: row.prompt,
    payload: row.callback_payload === null ? null : new RawJson(row.callback_payload),
    agent: { agent_id: row.agent_id, name: row.agent_id },
    status: row.status,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    reason: row.reason,
    resolved_by: row.resolved_by,
    resolved_at: isoOrNull(row.resolved_at),
  }
}
