// The types of this feature's events. Messages that an inbox no longer keeps leave none.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'
import { forward_statuses } from './message.ts'

const message = {
  message_id: Type.String({ description: 'The message.' }),
  message_seq: Type.Integer({ description: 'Its number in the inbox.' }),
}
const StatusCode = Nullable(Type.Integer({ description: 'The status of the answer; null when none came.' }))

export const events = declareEvents({
  'inbox.created': {
    about: 'An inbox was created.',
    subject: 'inbox',
    data: { expires_at: Time('It accepts no messages from then on.') },
  },
  'inbox.deleted': {
    about: 'An inbox was deleted, or it expired.',
    subject: 'inbox',
    data: { expired: Type.Boolean({ description: 'True when it expired.' }) },
  },
  'message.received': {
    about: 'A message arrived.',
    subject: 'inbox',
    data: {
      ...message,
      method: Type.String({ description: 'The method of the request.' }),
      forward: Nullable(
        Type.Enum([...forward_statuses], {
          description:
            'pending: it is forwarded. failed: it came through too many forwards. Null: it stays here.',
        }),
      ),
    },
  },
  'message.forwarded': {
    about: 'The receiver of a forwarded message accepted it.',
    subject: 'inbox',
    data: { ...message, status_code: StatusCode },
  },
  'message.forward_failed': {
    about: 'The forward of a message failed; it is not tried again.',
    subject: 'inbox',
    data: {
      ...message,
      status_code: StatusCode,
      error: Type.String({ description: 'The class of the failure.' }),
    },
  },
  'message.replayed': {
    about: 'A message is forwarded once more.',
    subject: 'inbox',
    data: message,
  },
})
