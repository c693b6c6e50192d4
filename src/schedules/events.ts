// The types of this feature's events.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'
import { attempted_data } from '../jobs/attempts.ts'

const LastError = Nullable(
  Type.String({ description: 'The error of the last attempt: a class, or `status 503`.' }),
)

export const events = declareEvents({
  'schedule.created': {
    about: 'A schedule was created; its workflow waits for it.',
    subject: 'schedule',
    data: {
      fire_at: Time('When it is called.'),
      retry_of: Nullable(Type.String({ description: 'The schedule that it repeats.' })),
      redrive_of: Nullable(Type.String({ description: 'The dead letter that it sends again.' })),
    },
    waiting: 1,
  },
  'schedule.updated': {
    about: 'A pending schedule was changed.',
    subject: 'schedule',
    data: {
      changed: Type.String({
        description: 'The names of the fields in the request, sorted, separated by commas.',
      }),
      fire_at: Time('When it is called, after the change.'),
    },
  },
  'schedule.workflow_left': {
    about: 'A pending schedule was moved out of this workflow, which no longer waits for it.',
    subject: 'schedule',
    data: { to: Nullable(Type.String({ description: 'The workflow that it was moved to.' })) },
    waiting: -1,
  },
  'schedule.workflow_joined': {
    about: 'A pending schedule was moved to this workflow, which now waits for it.',
    subject: 'schedule',
    data: { from: Nullable(Type.String({ description: 'The workflow that it was moved out of.' })) },
    waiting: 1,
  },
  'schedule.cancelled': {
    about: 'A pending schedule was cancelled.',
    subject: 'schedule',
    data: {},
    waiting: -1,
  },
  'schedule.attempted': {
    about: 'It was called. What follows is a separate event.',
    subject: 'schedule',
    data: attempted_data,
  },
  'schedule.fired': {
    about: 'A receiver accepted the call.',
    subject: 'schedule',
    data: { attempts: Type.Integer({ description: 'How many attempts it needed.' }) },
    waiting: -1,
  },
  'schedule.failed': {
    about: 'No receiver accepted the call, and no attempt is left.',
    subject: 'schedule',
    data: {
      attempts: Type.Integer({ description: 'The attempts that were made.' }),
      last_error: LastError,
      dead_letter_id: Nullable(Type.String({ description: 'The dead letter that the failure left.' })),
    },
    waiting: -1,
  },
  'schedule.retried': {
    about: 'A schedule that had ended was sent again, as a new schedule.',
    subject: 'schedule',
    data: { retried_as: Type.String({ description: 'The new schedule.' }) },
  },
})
