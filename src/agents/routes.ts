// /v1/agents

import { Type } from 'typebox'
import { isoOrNull } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery, RotateBody, sharing, Text, Url } from '../contract/schemas.ts'
import * as agents from './service.ts'
import { Agent, agentId, agentOf, CreatedAgent, masked, RotatedAgent, tag } from './shapes.ts'
import * as store from './store.ts'

const description_characters_max = limit(
  'agents.description',
  4_096,
  'characters',
  'The description of an agent. Past it 400.',
)

export const createAgent = route({
  group: v1,
  method: 'POST',
  path: '/v1/agents',
  tag,
  summary: 'Create an agent and its key',
  description: 'The key is shown in this answer only.',
  sdk: { name: 'agents.create' },
  cli: {
    usage: 'agent create <name>',
    about: 'Create an agent; its key is shown only once',
    group: 'Agents and their keys',
    examples: [
      'waystation agent create worker-1 --profile admin --save worker',
      'waystation agent create mailer --description "sends the email" --callback-base-url https://mail.example.com',
    ],
    options: { callback_base_url: ['--callback-base-url <url>', 'what callback paths are resolved against'] },
    key: 'api_key',
  },
  auth: ['admin'],
  body: Type.Object(
    {
      name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{2,31}$' }),
      description: Type.Optional(Text(description_characters_max, 'For people.')),
      callback_base_url: Type.Optional(Url('An http or https URL.')),
    },
    sharing('AgentRequest', 'The settings of an agent.'),
  ),
  replies: { 201: { body: CreatedAgent } },
  emits: ['agent.created'],
  errors: ['AGENT_ID_TAKEN', 'QUOTA_EXCEEDED'],
  prepare: ({ caller, dependencies }, { body }) =>
    agents.requireCallable(dependencies, caller.tenant_id, '/callback_base_url', body.callback_base_url),
  async create(tx, { caller, dependencies }, { body }) {
    const agent = {
      agent_id: body.name,
      description: body.description ?? null,
      callback_base_url: body.callback_base_url ?? null,
    }
    const key = await agents.create(tx, caller, dependencies.plans, agent)
    return agentOf({ ...agent, ...agents.unpaused, created_at: tx.now }, key)
  },
})

export const listAgents = route({
  group: v1,
  method: 'GET',
  path: '/v1/agents',
  tag,
  summary: 'List agents, newest first',
  description: 'Keys are masked.',
  sdk: { name: 'agents.list' },
  cli: {
    usage: 'agent list',
    columns: ['agent_id', 'description', 'callback_base_url', 'api_key', 'created_at'],
  },
  auth: ['admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(Agent) } },
  shed: 'last',
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const rows = await store.list(context.db, context.caller.tenant_id, request)
    return pageOf(context, request, {
      rows,
      itemOf: masked,
      positionOf: (row) => [row.created_at, row.agent_id],
    })
  },
})

export const getAgent = route({
  group: v1,
  method: 'GET',
  path: '/v1/agents/:agent_id',
  tag,
  summary: 'Read an agent, its key masked',
  description: 'Needs the admin key or the key of any agent of the tenant.',
  sdk: { name: 'agents.get' },
  cli: { usage: 'agent get <agent_id>', examples: ['waystation agent get worker-1'] },
  auth: ['admin', 'agent'],
  params: { agent_id: agentId },
  replies: { 200: { body: Agent } },
  errors: ['AGENT_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return masked(await agents.read(db, caller.tenant_id, params.agent_id))
  },
})

export const deleteAgent = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/agents/:agent_id',
  tag,
  summary: 'Remove an agent; its keys stop working, its records stay',
  description:
    'Its keys are refused on all nodes within a second. Its values, entries and schedules stay, under its id.',
  sdk: { name: 'agents.delete', retry: { safe: false, why: 'its name may be in use again by then' } },
  cli: { usage: 'agent delete <agent_id>', examples: ['waystation agent delete worker-1'] },
  auth: ['admin'],
  destructive: true,
  params: { agent_id: agentId },
  replies: { 204: { body: null } },
  shed: 'last',
  emits: ['agent.deleted'],
  errors: ['AGENT_NOT_FOUND'],
  handle: ({ db, caller, dependencies }, { params }) =>
    agents.remove(db, dependencies.keys.cache, caller, params.agent_id),
})

export const rotateAgentKey = route({
  group: v1,
  method: 'POST',
  path: '/v1/agents/:agent_id/rotate-key',
  tag,
  summary: 'Get a new key for an agent',
  description: 'The old key stops working at once, or after `grace_seconds`.',
  sdk: {
    name: 'agents.rotateKey',
    retry: { safe: false, why: 'a repeat would end the key of the answer that was lost' },
  },
  cli: {
    usage: 'agent rotate-key <agent_id>',
    about: 'Make a new key for an agent; it is shown only once',
    examples: ['waystation agent rotate-key worker-1 --profile admin --grace 1h --save worker'],
    options: { grace_seconds: ['--grace <duration>', 'how long the old key still works; default 0'] },
    key: 'api_key',
  },
  auth: ['admin'],
  destructive: true,
  params: { agent_id: agentId },
  body: RotateBody,
  replies: { 200: { body: RotatedAgent } },
  shed: 'last',
  emits: ['agent.key_rotated'],
  errors: ['AGENT_NOT_FOUND'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { agent, key, previous_key_expires_at } = await agents.rotateKey(
      db,
      dependencies.keys.cache,
      caller,
      { agent_id: params.agent_id, grace_seconds: body.grace_seconds ?? 0 },
    )
    return { ...agentOf(agent, key), previous_key_expires_at: isoOrNull(previous_key_expires_at) }
  },
})
