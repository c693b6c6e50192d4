// Parameters and answers that the routes share.

import { type Static, type TObject, Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import {
  AnyJson,
  idParam,
  Json,
  label_characters_max,
  Nullable,
  RawJson,
  Shape,
  Text,
  Time,
  Url,
  value_bytes_max,
} from '../contract/schemas.ts'
import { ShownWorkflowId, WorkflowId } from '../contract/workflow.ts'
import { type ScheduleRow, statuses } from './schedule.ts'

export const CallbackUrl = Url(
  "An http or https URL, or a path that is resolved against the agent's callback_base_url.",
)
export const CallbackPayload = AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB; sent byte for byte.')
export const FireAt = Time('When it is called; the past means now.')

const DlqOnFailure = Type.Boolean({
  description: 'Default false. True: after the last failure a dead letter is kept.',
})

/** Settings that may be left out when a schedule is created. */
export const optional = {
  dlq_on_failure: Type.Optional(DlqOnFailure),
  name: Type.Optional(
    Text(label_characters_max, 'A name for people, shown in lists and not sent; empty for none.'),
  ),
  workflow_id: Type.Optional(WorkflowId),
}

export const Schedule = Shape(
  'Schedule',
  'A one-time signed callback, with its status and its last outcome.',
  {
    id: Type.String(),
    status: Type.Enum([...statuses]),
    name: Nullable(Type.String({ description: 'Null when it has none.' })),
    workflow_id: ShownWorkflowId,
    callback_url: Type.String(),
    callback_payload: Json('The exact text that was sent.'),
    fire_at: FireAt,
    dlq_on_failure: Type.Boolean(),
    agent_id: Type.String(),
    attempts: Type.Integer({ description: 'The number of calls since fire_at was set.' }),
    next_attempt_at: Nullable(Time('When it is called next; null when no attempt is to come.')),
    last_error: Nullable(Type.String()),
    last_status_code: Nullable(Type.Integer()),
    fired_at: Nullable(Time('When a receiver accepted it.')),
    retry_of: Nullable(Type.String({ description: 'The schedule that it repeats.' })),
    redrive_of: Nullable(
      Type.String({ description: 'The dead letter that was resolved by sending it again.' }),
    ),
    retried_as: Nullable(Type.String({ description: 'The schedule that repeats it.' })),
    dead_letter_id: Nullable(
      Type.String({ description: 'The dead letter that its failure left; it may have been removed.' }),
    ),
    created_at: Time('When it was created.'),
    updated_at: Time('When it last changed.'),
  },
)

/** Those that were given, as they are stored. */
export function optionalOf({ dlq_on_failure, ...texts }: Static<TObject<typeof optional>>) {
  return { ...texts, ...(dlq_on_failure === undefined ? {} : { dlq_on_failure: dlq_on_failure ? 1 : 0 }) }
}

export function scheduleOf(row: ScheduleRow) {
  return {
    id: row.id,
    status: row.status,
    name: row.name || null,
    workflow_id: row.workflow_id || null,
    callback_url: row.callback_url,
    callback_payload: new RawJson(row.callback_payload),
    fire_at: iso(row.fire_at),
    dlq_on_failure: row.dlq_on_failure === 1,
    agent_id: row.agent_id,
    attempts: row.attempts,
    next_attempt_at: isoOrNull(row.next_at),
    last_error: row.last_error,
    last_status_code: row.last_status_code,
    fired_at: isoOrNull(row.fired_at),
    retry_of: row.retry_of,
    redrive_of: row.redrive_of,
    retried_as: row.retried_as,
    dead_letter_id: row.dead_letter_id,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

export const tag = 'Schedules'
export const id = idParam('The schedule, sch_….')
