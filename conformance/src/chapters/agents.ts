// Agents and their keys.

import { equal, holds, invalid, matches, refused, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { keyForm, maskedForm, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { agent as agentShape, agree, hasShape, newAgent } from '../shapes.ts'
import { agentActor, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

export const agents = chapter('agents', {
  create: [
    'POST /agents answers 201 with agent_id, which is the name, description, callback_base_url, api_key and created_at',
    'core 2, core 4, decisions 5 Agents',
    async (t) => {
      const { admin } = await t.tenant()
      const name = `agent-${unique()}`
      const bare = succeeded(await admin.post('/v1/agents', { name }), 201)
      hasShape(bare, newAgent, 'POST /v1/agents')
      equal([bare.agent_id, bare.name], [name, name], 'agent_id and name')
      equal([bare.description, bare.callback_base_url], [null, null], 'fields without a value')
      const given = {
        name: `agent-${unique()}`,
        description: 'Checks',
        callback_base_url: `${t.world.idle_url}/base`,
      }
      const full = succeeded(await admin.post('/v1/agents', given), 201)
      equal(
        [full.description, full.callback_base_url],
        [given.description, given.callback_base_url],
        'description and callback_base_url',
      )
    },
  ],
  name: [
    'An agent’s name matches ^[a-z0-9][a-z0-9-]{2,31}$',
    'core 2, core 8',
    async (t) => {
      const { admin } = await t.tenant()
      for (const name of [`0${unique().slice(0, 2)}`, `a-${unique()}`.padEnd(32, 'x')]) {
        const answer = await admin.post('/v1/agents', { name })
        if (answer.status !== 409) succeeded(answer, 201)
      }
      for (const name of ['ab', 'x'.repeat(33), 'Upper', '-dash', 'under_score', 'a b', '', 'ümlaut', 7])
        invalid(await admin.post('/v1/agents', { name }), '/name')
    },
  ],
  'base-url': [
    'callback_base_url is a URI of 2,048 characters at most',
    'core 2, decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      const long = `${t.world.idle_url}/${'x'.repeat(2_048)}`
      for (const callback_base_url of ['not a url', 'ftp://example.com', '', long, 7])
        invalid(
          await admin.post('/v1/agents', { name: `agent-${unique()}`, callback_base_url }),
          '/callback_base_url',
        )
    },
  ],
  taken: [
    'A name in use is 409 AGENT_ID_TAKEN; another tenant may have the same',
    'core 4, core 7, decisions 1',
    async (t) => {
      const body = { name: `agent-${unique()}` }
      const { admin } = await t.tenant()
      succeeded(await admin.post('/v1/agents', body), 201)
      refused(await admin.post('/v1/agents', body), 'AGENT_ID_TAKEN')
      succeeded(await (await t.stranger()).admin.post('/v1/agents', body), 201)
    },
  ],
  read: [
    'GET /agents/{id} answers metadata with the key masked, in the field that held it',
    'core 2, core 4, decisions 2',
    async (t) => {
      const { admin } = await t.tenant()
      const made = succeeded(await admin.post('/v1/agents', { name: `agent-${unique()}` }), 201)
      const shown = succeeded(await admin.get(`/v1/agents/${made.agent_id}`), 200)
      hasShape(shown, agentShape, 'GET /v1/agents/{id}')
      matches(shown.api_key, maskedForm('agent'), 'masked api_key')
      equal(shown.api_key.slice(-4), made.api_key.slice(-4), 'last four characters of the masked key')
      agree({ ...shown, api_key: '' }, { ...made, api_key: '' }, agentShape, 'the agent')
    },
  ],
  list: [
    'GET /agents lists the agents of the tenant with their keys masked, newest first',
    'decisions 1, decisions 2',
    async (t) => {
      const { admin } = await t.tenant()
      const { agent_id } = await objects.agent(await t.tenant())
      const { items } = succeeded(await admin.get('/v1/agents?limit=200'), 200)
      holds(
        items.some((one: { agent_id: string }) => one.agent_id === agent_id),
        'the new agent is not in the list',
      )
      for (const one of items) matches(one.api_key, maskedForm('agent'), 'masked api_key')
    },
  ],
  'rotate-key': [
    'POST /agents/{id}/rotate-key answers a new api_key; the old key dies at once',
    'core 4, decisions 2',
    async (t) => {
      const { admin, path, old } = await toRotate(t)
      succeeded(await old.get(path), 200)
      const rotated = succeeded(await admin.post(`${path}/rotate-key`), 200)
      matches(rotated.api_key, keyForm('agent'), 'api_key')
      refused(await old.get(path), 'UNAUTHORIZED')
      const fresh = agentActor(t.anyone.send, old.id, rotated.api_key)
      equal(succeeded(await fresh.get(path), 200).api_key.slice(-4), rotated.api_key.slice(-4), 'masked key')
    },
  ],
  'rotate-key-grace': [
    'With grace_seconds the old key works on; rotating again ends it at once',
    'decisions 2',
    async (t) => {
      const { admin, path, old } = await toRotate(t)
      for (const grace_seconds of [-1, 604_801, 0.5])
        invalid(await admin.post(`${path}/rotate-key`, { grace_seconds }), '/grace_seconds')
      succeeded(await admin.post(`${path}/rotate-key`, { grace_seconds: 600 }), 200)
      succeeded(await old.get(path), 200)
      succeeded(await admin.post(`${path}/rotate-key`), 200)
      refused(await old.get(path), 'UNAUTHORIZED')
    },
  ],
  'grace-ends': timed(
    minute + 5,
    'The key of an agent that was rotated with a grace works until the grace ends',
    'decisions 2',
    async (t) => {
      const { admin, path, old } = await toRotate(t)
      succeeded(await admin.post(`${path}/rotate-key`, { grace_seconds: minute }), 200)
      await t.time.wait(minute - 5)
      succeeded(await old.get(path), 200)
      await t.time.wait(10)
      refused(await old.get(path), 'UNAUTHORIZED')
    },
  ),
  delete: [
    'DELETE /agents/{id} answers 204: its keys die, its records stay, and its name may be used again',
    'decisions 2',
    async (t) => {
      const { admin } = await t.tenant()
      const name = `agent-${unique()}`
      const { api_key } = succeeded(await admin.post('/v1/agents', { name }), 201)
      const agent = agentActor(t.anyone.send, name, api_key)
      const { id } = succeeded(await agent.post('/v1/dlq', { payload: 1, error: 'stays' }), 201)
      succeeded(await admin.delete(`/v1/agents/${name}`), 204)
      refused(await agent.get(`/v1/dlq/${id}`), 'UNAUTHORIZED')
      refused(await admin.get(`/v1/agents/${name}`), 'AGENT_NOT_FOUND')
      equal(succeeded(await admin.get(`/v1/dlq/${id}`), 200).agent_id, name, 'agent_id of what it left')
      const again = succeeded(await admin.post('/v1/agents', { name }), 201)
      holds(again.api_key !== api_key, 'the new agent has the old key')
      refused(await agent.get(`/v1/dlq/${id}`), 'UNAUTHORIZED')
    },
  ],
  'relative-callback': [
    'A callback_url that starts with / is resolved against the agent’s callback_base_url; without one it is 400',
    'decisions 5 Agents',
    async (t) => {
      const { admin } = await t.tenant()
      const body = { name: `agent-${unique()}`, callback_base_url: `${t.world.idle_url}/base/` }
      const made = succeeded(await admin.post('/v1/agents', body), 201)
      const agent = agentActor(t.anyone.send, made.agent_id, made.api_key)
      const relative = { ...objects.scheduleBody(t.world), callback_url: '/done?x=1' }
      const { callback_url } = succeeded(await agent.post('/v1/schedules', relative), 201)
      // With the path of the base, or in its place: both are ways to resolve it.
      const resolved = [`${body.callback_base_url}done?x=1`, new URL('/done?x=1', t.world.idle_url).href]
      holds(resolved.includes(callback_url), `callback_url is ${callback_url}`)
      const without = await (await t.tenant()).agent()
      invalid(await without.post('/v1/schedules', relative), '/callback_url')
    },
  ],
})

/** An agent whose key will be rotated, as it calls with the key that it has. */
async function toRotate(t: Trial) {
  const { admin } = await t.tenant()
  const made = succeeded(await admin.post('/v1/agents', { name: `agent-${unique()}` }), 201)
  return {
    admin,
    path: `/v1/agents/${made.agent_id}`,
    old: agentActor(t.anyone.send, made.agent_id, made.api_key),
  }
}
