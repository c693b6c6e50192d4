// Every statement on checkpoints.

import type { Millis } from '../base/clock.ts'
import { bytesOf } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { newestLists } from '../db/newest.ts'
import { purging } from '../db/purge.ts'
import type { CheckpointRow, CheckpointStatus, TimeoutAction } from './checkpoint.ts'
import type { Steering } from './steering.ts'

export const columns = `id, status, title, prompt, callback_url, callback_payload, timeout_action, expires_at, agent_id, reason,
     resolved_by, resolved_at, callback_status, callback_attempts, callback_last_error, callback_fence,
     callback_dead_letter_id, callback_redrive_of, workflow_id, created_at, updated_at, steered, editable,
     required_approvals, required_rejections, approvals, rejections, escalated, held_ms, comments, uses,
     uses_left, permit_expires_at, effect_id, effect, approvers, escalate, answer_schema, answer, payload, edited_payload,
     effective_payload`

export const here = 'tenant_id = :tenant_id and id = :id'

const INSERT = sql<CheckpointRow>(
  'checkpoints.insert',
  `insert into checkpoints
     (tenant_id, id, status, title, prompt, callback_url, callback_payload, timeout_action, expires_at, agent_id,
      workflow_id, callback_status, callback_attempts, created_at, updated_at, steered, editable, required_approvals,
      required_rejections, effect_id, effect, approvers, escalate, answer_schema, payload)
   values
     (:tenant_id, :id, 'pending', :title, :prompt, :callback_url, :callback_payload, :timeout_action, :expires_at,
      :agent_id, :workflow_id, 'none', 0, :now, :now, :steered, :editable, :required_approvals,
      :required_rejections, :effect_id, :effect, :approvers, :escalate, :answer_schema, :payload)
   returning ${columns}`,
)

const FIND = sql<CheckpointRow>('checkpoints.find', `select ${columns} from checkpoints where ${here}`)

// Approve, reject and timeout race for it. Of one that counts votes a plain decision settles nothing: see vote-store.ts.
const RESOLVE = sql<CheckpointRow>(
  'checkpoints.resolve',
  `update checkpoints
      set status = :status, reason = :reason, resolved_by = :resolved_by, resolved_at = :now,
          callback_status = case when callback_url = '' then 'none' else :callback_status end, updated_at = :now,
          approvals = approvals + :approvals, rejections = rejections + :rejections
    where ${here} and status = 'pending' and steered <= :steered_max
   returning ${columns}`,
)

const CANCEL = sql<CheckpointRow>(
  'checkpoints.cancel',
  `update checkpoints
      set status = 'cancelled', resolved_by = :resolved_by, resolved_at = :now, updated_at = :now
    where ${here} and status = 'pending' and agent_id = coalesce(:agent_id, agent_id)
   returning ${columns}`,
)

const of_effect = `${here} and effect_id = :effect_id and status <> 'pending'`

const PAYLOAD_BYTES = sql<{ bytes: number }>(
  'checkpoints.payload_bytes',
  `select ${bytesOf(['payload', 'edited_payload', 'effective_payload'])} as bytes from checkpoints where ${of_effect}`,
)

const FORGET = sql(
  'checkpoints.forget',
  `update checkpoints set payload = null, edited_payload = null, effective_payload = null where ${of_effect}`,
)

const RECORD_CALLBACK = sql<CheckpointRow>(
  'checkpoints.record_callback',
  `update checkpoints
      set callback_status = :callback_status, callback_attempts = :attempts, callback_last_error = :last_error,
          callback_fence = case when :callback_status = 'failed' then :fence else callback_fence end, updated_at = :now
    where ${here}
   returning ${columns}`,
)

const LEFT = sql(
  'checkpoints.left_dead_letter',
  `update checkpoints set callback_dead_letter_id = :dead_letter_id where ${here}`,
)

const REDRIVE = sql<CheckpointRow>(
  'checkpoints.redrive',
  `update checkpoints
      set callback_status = 'pending', callback_attempts = 0, callback_last_error = null,
          callback_redrive_of = :dead_letter_id, updated_at = :now
    where ${here} and callback_status = 'failed' and callback_dead_letter_id = :dead_letter_id
   returning ${columns}`,
)

/** Every column that may be large, and counts as stored bytes. */
export const texts = [
  ...[
    'prompt',
    'callback_payload',
    'reason',
    'title',
    'callback_url',
    'workflow_id',
    'answer_schema',
    'answer',
  ],
  ...['payload', 'edited_payload', 'effective_payload', 'approvers', 'escalate', 'effect'],
]

/** Newest first. */
export const list = newestLists<CheckpointRow, CheckpointStatus>({
  ...{ table: 'checkpoints', columns, has_workflow: 'workflow_id is not null' },
  texts,
})

export interface NewCheckpoint extends Steering {
  id: string
  title: string
  prompt: string | null
  callback_url: string
  callback_payload: string | null
  timeout_action: TimeoutAction
  expires_at: Millis
  agent_id: string
  workflow_id: string | null
}

export async function insert(tx: Tx, tenant_id: string, checkpoint: NewCheckpoint): Promise<CheckpointRow> {
  return (await tx.one(INSERT, { tenant_id, ...checkpoint, now: tx.now }))!
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

export interface Resolution {
  status: 'approved' | 'rejected' | 'expired'
  reason: string | null
  resolved_by: string
  /** Of one with a callback. */
  callback_status: 'none' | 'pending'
  /** Votes that it adds. */
  approvals: 0 | 1
  rejections: 0 | 1
  /** 1 settles one that counts votes as well. */
  steered_max: 0 | 1
}

/** Null unless it was pending, and plain where `steered_max` says so. */
export function resolve(tx: Tx, tenant_id: string, id: string, resolution: Resolution) {
  return tx.one(RESOLVE, { tenant_id, id, ...resolution, now: tx.now })
}

interface Cancellation {
  resolved_by: string
  /** Only one of this agent; null: of any. */
  agent_id: string | null
}

/** Null unless it was pending. */
export function cancel(tx: Tx, tenant_id: string, id: string, cancellation: Cancellation) {
  return tx.one(CANCEL, { tenant_id, id, ...cancellation, now: tx.now })
}

/** Removes the payloads of the effect that it was asked for; returns their bytes. */
export async function forget(tx: Tx, tenant_id: string, id: string, effect_id: string): Promise<number> {
  const { bytes } = (await tx.one(PAYLOAD_BYTES, { tenant_id, id, effect_id })) ?? { bytes: 0 }
  if (bytes > 0) await tx.run(FORGET, { tenant_id, id, effect_id })
  return bytes
}

interface CallbackProgress {
  callback_status: 'pending' | 'delivered' | 'failed'
  attempts: number
  last_error: string | null
  fence: number
}

export function recordCallback(tx: Tx, tenant_id: string, id: string, progress: CallbackProgress) {
  return tx.one(RECORD_CALLBACK, { tenant_id, id, ...progress, now: tx.now })
}

/** Notes the dead letter that the failure of its callback left. */
export function leftDeadLetter(tx: Tx, tenant_id: string, id: string, dead_letter_id: string) {
  return tx.run(LEFT, { tenant_id, id, dead_letter_id })
}

/** Its callback is pending again. Null unless its last failure left this dead letter. */
export function redrive(tx: Tx, tenant_id: string, id: string, dead_letter_id: string) {
  return tx.one(REDRIVE, { tenant_id, id, dead_letter_id, now: tx.now })
}

export const purge = purging('checkpoints.purge', {
  ...{ table: 'checkpoints', key: 'tenant_id, id' },
  texts: ['prompt', 'callback_payload', 'reason', 'payload', 'edited_payload', 'effective_payload', 'effect'],
})
