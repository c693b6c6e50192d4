// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { idParam, Json, Nullable, Part, RawJson, Shape, sharing, Time } from '../contract/schemas.ts'
import { type HeldItem, type ItemRow, lock_seconds_max, sources, statuses } from './item.ts'

export const tag = 'Dead letters'
/** In the examples of commands. */
export const example = 'dlq_01m7yjrz37hxnv52px0106nehd'
export const token_option = [
  '--token <lock_token>',
  'the token that the claim returned: only that lock counts',
] as const
export const id = idParam('The dead letter, dlq_….')
const seconds = { minimum: 1, maximum: lock_seconds_max }
export const LockSeconds = Type.Integer({ ...seconds, description: 'The duration of a claim; default 300.' })

const listed_fields = {
  id: Type.String(),
  status: Type.Enum([...statuses]),
  error: Type.String(),
  cause: Type.String({
    description:
      'The first line of the error with ids and numbers masked: failures with the same cause have the same text.',
  }),
  workflow_id: Nullable(Type.String()),
  source: Type.Enum([...sources]),
  source_id: Nullable(Type.String({ description: 'The schedule or checkpoint that gave up.' })),
  agent_id: Nullable(Type.String()),
  lock_seconds: Type.Integer(),
  locked_by: Nullable(Type.String({ description: 'The agent that holds the lock.' })),
  locked_until: Nullable(Time('When the lock expires and the item is failed again.')),
  claims: Type.Integer({ description: 'The number of claims.' }),
  created_at: Time('When it was captured.'),
  updated_at: Time('When it last changed.'),
  resolved_at: Nullable(Time('When it was resolved.')),
  redriven_as: Nullable(
    Type.String({ description: 'The schedule, or the checkpoint, that was sent again for it.' }),
  ),
}
export const ListedItem = Shape(
  'ListedDeadLetter',
  { of: 'DeadLetter', about: 'A dead letter as lists show it: without its payload.' },
  listed_fields,
)
export const Item = Shape('DeadLetter', 'Work that failed for good and is kept until somebody resolves it.', {
  ...listed_fields,
  payload: Json('The exact text that was sent.'),
})

export function itemOf(item: ItemRow) {
  return { ...listedOf(item), payload: new RawJson(item.payload!) }
}

export function listedOf(item: ItemRow) {
  return {
    id: item.id,
    status: item.status,
    error: item.error,
    cause: item.cause,
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
    redriven_as: item.redriven_as,
  }
}

export const Causes = Part(
  'DeadLetterCauses',
  { of: 'Listing', about: 'The causes of dead letters, the most frequent first.' },
  {
    items: Type.Array(
      Shape('DeadLetterCause', 'Dead letters of one cause and source, counted.', {
        cause: Type.String(),
        source: Type.Enum([...sources]),
        count: Type.Integer({ description: 'Dead letters of this cause and source.' }),
        oldest_at: Time('When the oldest of them was captured.'),
        newest_at: Time('When the latest of them was captured.'),
        latest_id: Type.String({ description: 'The latest of them.' }),
      }),
    ),
    truncated: Type.Boolean({
      description: 'True when there are older dead letters, or further causes, that are not counted.',
    }),
  },
)

const OwnLockSeconds = Type.Integer({
  ...seconds,
  description: 'The duration of the lock from now; default that of the item.',
})

const LockToken = Type.Optional(
  Type.String({ description: 'The token that the claim returned; when sent, it must be the current one.' }),
)

export const ClaimedItem = Shape(
  'ClaimedDeadLetter',
  { of: 'DeadLetter', about: 'A dead letter with the token of the lock that the call got.' },
  {
    ...Item.properties,
    lock_token: Type.String({
      description: 'Send it with extend, release, fail and resolve to be sure that the lock is still yours.',
    }),
  },
)

export const ExtendedItem = Shape(
  'ExtendedDeadLetter',
  { of: 'DeadLetter', about: 'A dead letter with the token of the lock that was extended.' },
  {
    ...Item.properties,
    lock_token: Nullable(Type.String({ description: 'The one that was sent; null when none was.' })),
  },
)

export const ClaimBody = Type.Object(
  { lock_seconds: Type.Optional(OwnLockSeconds) },
  sharing('LockRequest', 'Which lock, and how long it holds.'),
)
export const ExtendBody = Type.Object(
  { lock_seconds: Type.Optional(OwnLockSeconds), lock_token: LockToken },
  sharing('LockRequest', 'Which lock, and how long it holds.'),
)
export const LeaveBody = Type.Object(
  { lock_token: LockToken },
  sharing('LockRequest', 'Which lock, and how long it holds.'),
)

export function claimedOf(item: HeldItem) {
  return { ...itemOf(item), lock_token: item.lock_token }
}
