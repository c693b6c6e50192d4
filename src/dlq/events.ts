// The types of events of dead letters, and of the operations on many.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'
import { sources } from './item.ts'
import { verbs } from './operation.ts'

const LockedUntil = Time('When the lock ends.')
const Count = (description: string) => Type.Integer({ description })

export const events = declareEvents({
  'dlq.created': {
    about: 'Something failed: an agent dead-lettered it, or the service gave up on it.',
    subject: 'dlq_item',
    data: {
      source: Type.Enum([...sources], { description: 'An agent, or what the service gave up on.' }),
      source_id: Nullable(Type.String({ description: 'The schedule or checkpoint that it came from.' })),
      cause: Type.String({ description: 'The first line of the error with ids and numbers masked.' }),
    },
    failing: 1,
  },
  'dlq.claimed': {
    about: 'An agent locked it in order to settle it.',
    subject: 'dlq_item',
    data: { locked_until: LockedUntil },
  },
  'dlq.extended': {
    about: 'The holder of the lock extended it.',
    subject: 'dlq_item',
    data: { locked_until: LockedUntil },
  },
  'dlq.released': {
    about: 'The holder of the lock released it: it has failed again.',
    subject: 'dlq_item',
    data: {},
  },
  'dlq.lock_expired': {
    about: 'The lock ran out: it has failed again.',
    subject: 'dlq_item',
    data: { locked_until: Time('When the lock ended; the event may come a second later.') },
  },
  'dlq.archived': {
    about: 'Its holder, or an operation on many, gave up on it.',
    subject: 'dlq_item',
    data: { operation_id: Nullable(Type.String({ description: 'The operation that discarded it.' })) },
    failing: -1,
  },
  'dlq.reopened': {
    about: 'An archived one can be claimed again.',
    subject: 'dlq_item',
    data: {},
    failing: 1,
  },
  'dlq.resolved': {
    about: 'It is settled.',
    subject: 'dlq_item',
    data: {
      redriven_as: Nullable(
        Type.String({ description: 'The schedule or checkpoint that was sent again for it.' }),
      ),
    },
    failing: -1,
  },
  'dlq.deleted': { about: 'It was removed for good.', subject: 'dlq_item', data: {}, failing: -1 },
  'dlq_operation.created': {
    about: 'A redrive or a discard of many began.',
    subject: 'dlq_operation',
    data: {
      verb: Type.Enum([...verbs], { description: 'What becomes of the dead letters.' }),
      matched: Count('How many it handles.'),
    },
  },
  'dlq_operation.succeeded': {
    about: 'It has handled all of its dead letters.',
    subject: 'dlq_operation',
    data: {
      done: Count('How many were redriven or discarded.'),
      failed: Count('How many could not be sent again.'),
      skipped: Count('How many were claimed or settled when their turn came.'),
    },
  },
  'dlq_operation.cancelled': {
    about: 'It was cancelled before it had handled all of them.',
    subject: 'dlq_operation',
    data: {},
  },
})
