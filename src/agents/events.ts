// The types of events of agents.

import { Type } from 'typebox'
import { agent_modes } from '../contract/caller.ts'
import { declareEvents } from '../contract/event.ts'
import { Nullable } from '../contract/schemas.ts'

export const events = declareEvents({
  'agent.created': { about: 'An agent was created with its key.', subject: 'agent', data: {} },
  'agent.key_rotated': {
    about: 'The agent has a new key.',
    subject: 'agent',
    data: { grace_seconds: Type.Integer({ description: 'How long the old key still works.' }) },
  },
  'agent.mode_changed': {
    about: 'The admin changed what the agent may do.',
    subject: 'agent',
    data: { mode: Type.Enum([...agent_modes], { description: 'The new mode.' }) },
  },
  'agent.paused': {
    about: 'The agent is paused: it may change nothing.',
    subject: 'agent',
    data: { reason: Nullable(Type.String({ description: 'Why.' })) },
  },
  'agent.resumed': { about: 'The agent is no longer paused.', subject: 'agent', data: {} },
  'agent.deleted': {
    about: 'The agent was removed, and its keys stopped working.',
    subject: 'agent',
    data: {},
  },
})
