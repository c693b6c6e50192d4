// The types of events of agents.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'

export const events = declareEvents({
  'agent.created': { about: 'An agent was created with its key.', subject: 'agent', data: {} },
  'agent.key_rotated': {
    about: 'The agent has a new key.',
    subject: 'agent',
    data: { grace_seconds: Type.Integer({ description: 'How long the old key still works.' }) },
  },
  'agent.deleted': { about: 'The agent was removed, and its keys ended.', subject: 'agent', data: {} },
})
