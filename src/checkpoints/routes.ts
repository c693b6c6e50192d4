// /v1/checkpoints

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { parseTime } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import {
  AnyJson,
  kib,
  label_characters_max,
  OrNull,
  sharing,
  Text,
  Time,
  Url,
  value_bytes_max,
} from '../contract/schemas.ts'
import { callerFor, WorkflowId, workflowOf } from '../contract/workflow.ts'
import {
  expiryOf,
  no_callback,
  timeout_actions,
  timeout_seconds_max,
  timeout_seconds_min,
} from './checkpoint.ts'
import * as checkpoints from './service.ts'
import { Checkpoint, checkpointOf, id, readWhenSettled, tag, Wait } from './shapes.ts'
import { steeringOf } from './steering.ts'
import { steering_fields } from './steering-fields.ts'

const prompt_bytes_max = limit(
  'checkpoints.prompt_bytes',
  32 * kib,
  'bytes',
  'The prompt of a checkpoint. Past it 413.',
)

export const createCheckpoint = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints',
  tag,
  summary: 'Ask a human',
  description:
    'A person decides it with the admin key or an approval key. The decision is sent to `callback_url`, and the agent can wait for it. Without a decision the timeout settles it.',
  sdk: { name: 'checkpoints.create' },
  cli: {
    usage: 'checkpoint create <title> [callback_payload]',
    about: 'Ask a human; the decision is sent to the callback, or waited for',
    group: 'Questions that a human approves or rejects',
    examples: [
      'waystation checkpoint create "Deploy v2?" --callback https://example.com/decided --expires-in 2h',
      'waystation checkpoint create "Deploy v2?" --wait && ./deploy',
      `waystation checkpoint create "Refund?" '{"order": 7}' --callback /decided --prompt-file refund.txt`,
    ],
    options: {
      callback_url: ['--callback <url>', 'where the decision is sent'],
      prompt: ['--prompt <text>', 'what else the human should know'],
      timeout_action: ['--on-timeout <action>', 'default auto_reject'],
      timeout_seconds: ['--expires-in <duration>', 'how long it waits; default 24h'],
      expires_at: ['--expires-at <time>', 'until when it waits, RFC 3339'],
      workflow_id: ['--workflow <id>', 'ties it to what belongs to the same work'],
      required_approvals: ['--approvals <n>', 'how many must approve; default 1'],
      required_rejections: ['--rejections <n>', 'how many must reject; default 1'],
      approvers: ['--approvers <list>', 'who may decide: ids of approval keys, or admin, comma-separated'],
      answer_schema: ['--answer-schema <json>', 'the schema of the answer that an approval carries', 'json'],
      escalate: ['--escalate <json>', 'who else may decide, and after how many seconds', 'json'],
    },
    or: {
      callback_url: ['--no-callback', 'nowhere: the agent waits for it', null],
      prompt: ['--prompt-file <path>', 'the same from a file'],
    },
  },
  auth: ['agent'],
  body: Type.Object(
    {
      title: Text(label_characters_max, 'The question.', { minLength: 1 }),
      prompt: Type.Optional(
        Type.String({ 'x-bytes-max': prompt_bytes_max, description: 'At most 32 KiB of plain text.' }),
      ),
      callback_url: OrNull(
        Url(
          "An http or https URL, or a path that is resolved against the agent's callback_base_url; null for no callback.",
        ),
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
        Time('With timeout_seconds, the earlier one counts; without either, 24 hours from now.'),
      ),
      workflow_id: Type.Optional(WorkflowId),
      ...steering_fields,
    },
    sharing('CheckpointRequest', 'A question to people, and who may decide it.'),
  ),
  replies: { 201: { body: Checkpoint } },
  emits: ['checkpoint.created'],
  errors: ['QUOTA_EXCEEDED'],
  prepare: ({ db, dependencies, caller }, { body }) =>
    body.callback_url === null
      ? Promise.resolve(no_callback)
      : agents.callbackUrl(db, dependencies, caller, body.callback_url),
  async create(tx, { caller, dependencies }, { body }, callback_url) {
    const expires_at = body.expires_at === undefined ? undefined : parseTime(body.expires_at)!
    const checkpoint = await checkpoints.create(tx, callerFor(caller, body.workflow_id), dependencies, {
      title: body.title,
      prompt: body.prompt ?? null,
      callback_url,
      callback_payload: body.callback_payload?.text ?? null,
      timeout_action: body.timeout_action ?? 'auto_reject',
      expires_at: expiryOf(tx.now, body.timeout_seconds, expires_at),
      workflow_id: workflowOf(body.workflow_id, caller),
      ...steeringOf(body),
    })
    return checkpointOf(checkpoint, dependencies)
  },
})

export const getCheckpoint = route({
  group: v1,
  method: 'GET',
  path: '/v1/checkpoints/:id',
  tag,
  summary: 'Read a checkpoint, or wait until it is settled',
  description: 'With `wait`, the answer comes when the checkpoint is settled, or after that many seconds.',
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
    const checkpoint = await readWhenSettled(context, params.id, query.wait, look)
    return checkpointOf(checkpoint, context.dependencies)
  },
})

export const cancelCheckpoint = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/checkpoints/:id',
  tag,
  summary: 'Cancel a checkpoint that you created',
  description: 'Only for the agent that created it. No decision is sent.',
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
  emits: ['checkpoint.cancelled'],
  errors: ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_ALREADY_RESOLVED'],
  handle: ({ db, caller, dependencies }, { params }) =>
    checkpoints.cancel(db, caller, dependencies, params.id),
})
