// The type of events of the audit log.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'

export const events = declareEvents({
  'audit.appended': {
    about: 'An entry was appended to the audit log.',
    subject: 'audit_entry',
    data: {
      action: Type.String({ description: 'Its action.' }),
      entry_seq: Type.Integer({ description: 'Its `seq` in the audit log.' }),
    },
  },
})
