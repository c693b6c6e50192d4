// The events of this feature.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable } from '../contract/schemas.ts'
import { formats, pause_reasons } from './subscription.ts'

const subject = 'subscription'

export const events = declareEvents({
  'subscription.created': {
    about: 'A subscription was created.',
    subject,
    data: { format: Type.Enum([...formats]) },
  },
  'subscription.confirmed': {
    about: 'The holder of an address has confirmed that emails may be sent there.',
    subject,
    data: {},
  },
  'subscription.updated': {
    about: 'A subscription was changed.',
    subject,
    data: {},
  },
  'subscription.paused': {
    about: 'A subscription was paused: nothing is delivered until it is resumed.',
    subject,
    data: {
      reason: Type.Enum([...pause_reasons]),
      last_error: Nullable(
        Type.String({ description: 'The error of the last attempt; null when none failed.' }),
      ),
    },
  },
  'subscription.resumed': { about: 'A subscription was resumed.', subject, data: {} },
  'subscription.replayed': {
    about: 'A subscription delivers the events after a number again.',
    subject,
    data: { after: Type.Integer() },
  },
  'subscription.deleted': { about: 'A subscription was deleted.', subject, data: {} },
})
