// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { idParam, label_characters_max, Nullable, Shape, Text, Time } from '../contract/schemas.ts'
import { idle_at } from '../jobs/service.ts'
import {
  formats,
  pause_reasons,
  type SubscriptionRow,
  statuses,
  type_characters_max,
  type_pattern,
  types_max,
  unknownAmong,
} from './subscription.ts'

export const tag = 'Subscriptions'
/** In the examples of commands. */
export const example = 'sub_01m7yjrz37hxnv52px0106nehd'
export const id = idParam('The subscription, sub_….')

export const Types = Type.Array(Type.String({ maxLength: type_characters_max, pattern: type_pattern }), {
  minItems: 1,
  maxItems: types_max,
  description: 'Event types, exact or all of a noun: `schedule.failed`, `checkpoint.*`.',
  examples: [['subscription.paused']],
})
export const Name = Text(label_characters_max, 'A name for people, shown in lists; empty for none.')
export const WorkflowId = Text(label_characters_max, 'Only events of this workflow.', { minLength: 1 })
export const Paused = Type.Boolean({ description: 'True: nothing is delivered until it is false again.' })

export const Subscription = Shape(
  'Subscription',
  'Events that are delivered to a URL or an address, and their progress.',
  {
    id: Type.String(),
    status: Type.Enum([...statuses], {
      description:
        'unconfirmed: the holder of the address has not confirmed it yet, by the link in the email.',
    }),
    paused_reason: Nullable(
      Type.Enum([...pause_reasons], {
        description:
          'requested: by an admin, even while unconfirmed, and it will stay paused; gone: the receiver answered 410; failing: an event could not be delivered for three days; unsubscribed: by the holder of the address.',
      }),
    ),
    name: Nullable(Type.String({ description: 'Null when it has none.' })),
    format: Type.Enum([...formats]),
    url: Nullable(Type.String({ description: 'Masked: https://hooks.slack.com/…aB3d. Null for emails.' })),
    to: Nullable(
      Type.String({ description: 'The address of emails, masked: a…@example.com. Null for others.' }),
    ),
    types: Type.Array(Type.String()),
    workflow_id: Nullable(Type.String()),
    after: Type.Integer({ description: 'The number of the last event that was delivered, or skipped.' }),
    behind: Type.Integer({
      description:
        'Events that have happened since, of all types; 0 for an active one that has delivered all that it is for.',
    }),
    attempts: Type.Integer({ description: 'Attempts made so far to deliver the next event.' }),
    next_attempt_at: Nullable(Time('When the next event is tried; null when none waits.')),
    last_error: Nullable(
      Type.String({ description: 'The error of the last attempt; null when it succeeded.' }),
    ),
    last_status_code: Nullable(Type.Integer()),
    last_attempt_at: Nullable(Time('When the last attempt began.')),
    delivered_at: Nullable(Time('When an event was last delivered.')),
    created_at: Time('When it was created.'),
    updated_at: Time('When it was last changed.'),
  },
)

/** True when no event waits: the subscription has skipped what it does not take. */
export function isIdle({ status, next_at }: SubscriptionRow): boolean {
  return status === 'active' && next_at >= idle_at
}

/** `head`: the number of the tenant's last event, read before the row: an idle subscription has skipped all up to it. */
export function subscriptionOf(row: SubscriptionRow, head: number) {
  const after = isIdle(row) ? Math.max(row.position, head) : row.position
  const is_mail = row.format === 'mail'
  return {
    id: row.id,
    status: row.status,
    paused_reason: row.paused_reason,
    name: row.name === '' ? null : row.name,
    format: row.format,
    url: is_mail ? null : row.shown,
    to: is_mail ? row.shown : null,
    types: JSON.parse(row.types) as string[],
    workflow_id: row.workflow_id,
    after,
    behind: Math.max(0, head - after),
    attempts: row.attempts,
    next_attempt_at: isIdle(row) || row.status !== 'active' ? null : iso(row.next_at),
    last_error: row.last_error,
    last_status_code: row.last_status_code,
    last_attempt_at: isoOrNull(row.last_attempt_at),
    delivered_at: isoOrNull(row.delivered_at),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

/** Throws VALIDATION_FAILED for a type that no event has. */
export function requireKnown(types: readonly string[], known: ReadonlyMap<string, unknown>): void {
  const unknown = unknownAmong(types, [...known.keys()])
  if (unknown.length === 0) return
  throw invalid(
    ...unknown.map((type) => ({ path: `/types/${types.indexOf(type)}`, message: 'is not a type of event' })),
  )
}
