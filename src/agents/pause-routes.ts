// /v1/agents/:agent_id/pause and /resume, and the mode of an agent

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { agent_modes } from '../contract/caller.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { action_request, sharing, Text } from '../contract/schemas.ts'
import * as agents from './pause-service.ts'
import { Agent, agentId, masked, tag } from './shapes.ts'

const reason_characters_max = limit(
  'agents.pause_reason',
  500,
  'characters',
  'The reason of the pause of an agent. Past it 400.',
)

export const updateAgent = route({
  group: v1,
  method: 'PATCH',
  path: '/v1/agents/:agent_id',
  tag,
  summary: 'Change what an agent may do',
  description: 'Takes effect on all nodes within a second.',
  sdk: {
    name: 'agents.update',
    retry: { safe: false, why: 'a repeat could undo a mode that was set in between' },
  },
  cli: {
    usage: 'agent update <agent_id>',
    about: 'Change what an agent may do',
    examples: ['waystation agent update worker-1 --mode read'],
    options: { mode: ['--mode <mode>', 'full, read or propose'] },
  },
  auth: ['admin'],
  params: { agent_id: agentId },
  body: Type.Object(
    {
      mode: Type.Enum([...agent_modes], {
        description:
          'full: it may do everything that agents may. read: it changes nothing. propose: each of its effects waits for an approval.',
      }),
    },
    sharing('AgentRequest', 'The settings of an agent.'),
  ),
  replies: { 200: { body: Agent } },
  shed: 'last',
  emits: ['agent.mode_changed'],
  errors: ['AGENT_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params, body }) {
    return masked(await agents.setMode(db, dependencies.keys.cache, caller, params.agent_id, body.mode))
  },
})

export const pauseAgent = route({
  group: v1,
  method: 'POST',
  path: '/v1/agents/:agent_id/pause',
  tag,
  summary: 'Stop one agent: it may change nothing',
  description: 'Takes effect on all nodes within a second. An agent that is already paused stays as it is.',
  sdk: { name: 'agents.pause', retry: { safe: true, why: 'an agent that is paused stays as it is' } },
  cli: {
    usage: 'agent pause <agent_id>',
    about: 'Stop one agent, until it is resumed',
    examples: ['waystation agent pause worker-1 --reason "asks twice"'],
    options: { reason: ['--reason <text>', 'shown to the agent when it is refused'] },
  },
  auth: ['admin'],
  destructive: true,
  params: { agent_id: agentId },
  body: Type.Object(
    {
      reason: Type.Optional(Text(reason_characters_max, 'Shown to the agent when it is refused.')),
    },
    action_request,
  ),
  replies: { 200: { body: Agent } },
  shed: 'last',
  emits: ['agent.paused'],
  errors: ['AGENT_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { reason = null } = body
    return masked(await agents.pause(db, dependencies.keys.cache, caller, params.agent_id, reason))
  },
})

export const resumeAgent = route({
  group: v1,
  method: 'POST',
  path: '/v1/agents/:agent_id/resume',
  tag,
  summary: 'Resume a paused agent',
  description: 'Takes effect on all nodes within a second. An agent that is not paused stays as it is.',
  sdk: {
    name: 'agents.resume',
    retry: { safe: false, why: 'a repeat could end a pause that came in between' },
  },
  cli: {
    usage: 'agent resume <agent_id>',
    about: 'Resume a paused agent',
    examples: ['waystation agent resume worker-1'],
  },
  auth: ['admin'],
  params: { agent_id: agentId },
  body: Type.Object({}),
  replies: { 200: { body: Agent } },
  shed: 'last',
  emits: ['agent.resumed'],
  errors: ['AGENT_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params }) {
    return masked(await agents.resume(db, dependencies.keys.cache, caller, params.agent_id))
  },
})
