// The types of this feature's events. Only namespaces that are asked to leave events of keys.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'

const namespace = Type.String()
const entry = {
  namespace,
  key: Type.String(),
  version: Type.Integer({ description: 'The version of the value.' }),
}

export const events = declareEvents({
  'kv.put': {
    about: 'A value was written, in a namespace that leaves events.',
    subject: 'kv_key',
    data: { ...entry, expires_at: Nullable(Time('When it expires; null for never.')) },
  },
  'kv.deleted': {
    about: 'A key was deleted, in a namespace that leaves events.',
    subject: 'kv_key',
    data: entry,
  },
  'kv.expired': {
    about: 'A key expired, in a namespace that leaves events.',
    subject: 'kv_key',
    data: { ...entry, expired_at: Time('When it expired; the event may come a second later.') },
  },
  'kv.events_enabled': {
    about: 'A namespace leaves events from now on.',
    subject: 'kv_namespace',
    data: { namespace },
  },
  'kv.events_disabled': {
    about: 'A namespace no longer leaves events.',
    subject: 'kv_namespace',
    data: { namespace },
  },
})
