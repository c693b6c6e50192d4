// The types of events of approval keys.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable } from '../contract/schemas.ts'

export const events = declareEvents({
  'approval_key.created': {
    about: 'An approval key was created.',
    subject: 'approval_key',
    data: {
      checkpoint_id: Nullable(
        Type.String({ description: 'The checkpoint that it may decide; null: any of the tenant.' }),
      ),
    },
  },
  'approval_key.revoked': { about: 'The approval key was revoked.', subject: 'approval_key', data: {} },
})
