// The types of events of tenants.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'

export const events = declareEvents({
  'tenant.created': {
    about: 'The tenant signed up.',
    subject: 'tenant',
    data: { plan: Type.String({ description: 'Its plan.' }) },
  },
  'tenant.key_rotated': {
    about: 'It has a new admin key.',
    subject: 'tenant',
    data: { grace_seconds: Type.Integer({ description: 'How long the old key still works.' }) },
  },
  'tenant.keys_revoked': {
    about: 'The operator revoked all of its keys, because a restored backup had brought old ones back.',
    subject: 'tenant',
    data: {
      admin: Type.Integer({ description: 'How many admin keys.' }),
      agent: Type.Integer({ description: 'How many keys of agents.' }),
      approval: Type.Integer({ description: 'How many approval keys.' }),
    },
  },
  'tenant.signing_secret_rotated': {
    about: 'It has a new signing secret.',
    subject: 'tenant',
    data: { previous_until: Time('Until then the old secret also signs.') },
  },
  'tenant.plan_changed': {
    about: 'The operator put it on another plan.',
    subject: 'tenant',
    data: { plan: Type.String({ description: 'The new plan.' }) },
  },
  'tenant.storage_changed': {
    about: 'The operator changed how much it may store.',
    subject: 'tenant',
    data: {
      storage_bytes_max: Nullable(Type.Integer({ description: 'Bytes; null for what its plan allows.' })),
    },
  },
  'tenant.deleted': {
    about: 'It is deleted, and can be restored until the purge.',
    subject: 'tenant',
    data: { purge_at: Time('When all of its data is removed, including its events.') },
  },
  'tenant.frozen': {
    about: 'It is frozen: its agents may change nothing, and only subscriptions deliver.',
    subject: 'tenant',
    data: { reason: Nullable(Type.String({ description: 'Why.' })) },
  },
  'tenant.resumed': {
    about: 'Its freeze ended.',
    subject: 'tenant',
    data: { frozen_ms: Type.Integer({ description: 'How long it was frozen, in milliseconds.' }) },
  },
  'tenant.restored': { about: 'Its deletion was cancelled.', subject: 'tenant', data: {} },
})
