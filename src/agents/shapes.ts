// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { maskedKey } from '../base/keys.ts'
import { agent_modes } from '../contract/caller.ts'
import { idParam, Nullable, PreviousKey, Shape, Time } from '../contract/schemas.ts'
import type * as store from './store.ts'

export const tag = 'Agents'
export const agentId = idParam('The agent, by its name.')
export const Agent = Shape('Agent', 'A program that calls the service with a key of its own.', {
  agent_id: Type.String(),
  name: Type.String({ description: 'The same as agent_id.' }),
  description: Nullable(Type.String()),
  callback_base_url: Nullable(
    Type.String({ description: 'The URL against which a callback_url that starts with / is resolved.' }),
  ),
  api_key: Nullable(
    Type.String({
      description:
        'Masked: svc_agt_****x7Qa. Null after the operator has revoked all keys of the tenant, until a rotation.',
    }),
  ),
  created_at: Time('When it was created.'),
  mode: Type.Enum([...agent_modes], {
    description: 'full, read (it changes nothing) or propose (each of its effects waits for an approval).',
  }),
  paused_at: Nullable(Time('When it was paused; null while it is not.')),
  paused_reason: Nullable(Type.String()),
})

const keyed_fields = {
  ...Agent.properties,
  api_key: Type.String({ description: 'In full, in this answer only.' }),
}
export const CreatedAgent = Shape(
  'CreatedAgent',
  { of: 'Agent', about: 'An agent with its key in full, as only its creation answers it.' },
  keyed_fields,
)
export const RotatedAgent = Shape(
  'RotatedAgent',
  { of: 'Agent', about: 'An agent with its new key, and when the key before ends.' },
  { ...keyed_fields, previous_key_expires_at: PreviousKey },
)

export function masked(agent: store.AgentRow) {
  return agentOf(agent, agent.last_four === null ? null : maskedKey('agent', agent.last_four))
}

export function agentOf<Key extends string | null>(agent: Omit<store.AgentRow, 'last_four'>, api_key: Key) {
  return {
    agent_id: agent.agent_id,
    name: agent.agent_id,
    description: agent.description,
    callback_base_url: agent.callback_base_url,
    api_key,
    created_at: iso(agent.created_at),
    mode: agent.mode,
    paused_at: isoOrNull(agent.paused_at),
    paused_reason: agent.paused_reason,
  }
}
