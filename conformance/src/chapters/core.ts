// The first API document alone: tenants, agents, approval keys, the key-value store and the audit log.

import { equal, holds, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import { key_prefixes } from '../contract.ts'
import {
  agentIn,
  approverIn,
  created,
  holdsValue,
  isRefused,
  itemsOf,
  keyIn,
  newAgent,
} from '../documents.ts'
import { far_time } from '../objects.ts'
import { operations } from '../operations.ts'
import { Actor, agentActor, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

/** Those that the document lists, with who may call them. */
const listed: [call: string, callers: string][] = [
  ['GET /v1/tenants/x', 'A'],
  ['DELETE /v1/tenants/x', 'A'],
  ['POST /v1/tenants/x/rotate-key', 'A'],
  ['POST /v1/agents', 'A'],
  ['GET /v1/agents/x', 'AG'],
  ['POST /v1/agents/x/rotate-key', 'A'],
  ['POST /v1/approval-keys', 'A'],
  ['GET /v1/kv/n/k', 'G'],
  ['PUT /v1/kv/n/k', 'G'],
  ['DELETE /v1/kv/n/k', 'G'],
  ['POST /v1/audit', 'AG'],
  ['GET /v1/audit', 'AG'],
  ['POST /v1/dlq', 'G'],
  ['GET /v1/dlq', 'AG'],
  ['GET /v1/dlq/x', 'AG'],
  ['DELETE /v1/dlq/x', 'G'],
  ['POST /v1/dlq/x/claim', 'G'],
  ['POST /v1/dlq/x/release', 'G'],
  ['POST /v1/dlq/x/fail', 'G'],
  ['POST /v1/dlq/x/resolve', 'G'],
  ['POST /v1/schedules', 'G'],
  ['GET /v1/schedules', 'AG'],
  ['GET /v1/schedules/x', 'AG'],
  ['PATCH /v1/schedules/x', 'G'],
  ['DELETE /v1/schedules/x', 'G'],
  ['POST /v1/checkpoints', 'G'],
  ['GET /v1/checkpoints', 'AG'],
  ['GET /v1/checkpoints/x', 'AG'],
  ['DELETE /v1/checkpoints/x', 'G'],
  ['POST /v1/checkpoints/x/approve', 'AP'],
  ['POST /v1/checkpoints/x/reject', 'AP'],
]

export const core = chapter(
  'core',
  {
    'no-key': [
      'Every operation but POST /tenants refuses a request without a key, and with one that nobody has',
      'core 4, core 5',
      async (t) => {
        const nobody = { 'x-agent-id': 'nobody', 'x-api-key': `${key_prefixes.agent}nobody` }
        for (const [call] of listed) {
          const [method, path] = call.split(' ') as [string, string]
          for (const headers of [{}, nobody, { 'x-admin-key': `${key_prefixes.admin}nobody` }])
            isRefused(await t.anyone.call(method, path, bodyFor(t, method, path), headers))
        }
      },
    ],
    'wrong-kind': [
      'Every operation refuses a valid key of a kind that it is not for',
      'core 4, core 5',
      async (t) => {
        const tenant = await t.tenant()
        const agent = await agentIn(t, tenant)
        const approver = await approverIn(t, tenant)
        const actors = { A: tenant.admin, G: agent, P: approver }
        for (const [call, callers] of listed) {
          const [method, path] = call.split(' ') as [string, string]
          const target = path
            .replace('/tenants/x', `/tenants/${tenant.id}`)
            .replace('/agents/x', `/agents/${agent.id}`)
          for (const [kind, actor] of Object.entries(actors))
            if (!callers.includes(kind)) isRefused(await actor.call(method, target, bodyFor(t, method, path)))
        }
      },
    ],
    'sign-up': [
      'POST /tenants answers 201 with tenant_id, name, plan (free by default), a one-time admin_key and the quota',
      'core 2, core 4, core 5',
      async (t) => {
        const name = freshName()
        const made = succeeded(await signUp(t, { name }), 201)
        equal([made.name, made.plan], [name, 'free'], 'name and plan')
        holds(typeof made.tenant_id === 'string', 'tenant_id is missing')
        holds(String(made.admin_key).startsWith(key_prefixes.admin), `admin_key is ${made.admin_key}`)
        holds(typeof made.quota === 'object' && made.quota !== null, 'quota is not an object')
        equal(succeeded(await signUp(t, { plan: 'pro' }), 201).plan, 'pro', 'plan')
        const admin = new Actor(t.anyone.send, { 'x-admin-key': made.admin_key })
        succeeded(await admin.get(`/v1/tenants/${made.tenant_id}`), 200)
      },
    ],
    'sign-up-rules': [
      'A tenant has a name of 3 to 40 characters, an owner_email that is an address, and a plan that is free or pro',
      'core 2, core 8',
      async (t) => {
        succeeded(await signUp(t, { name: freshName().padEnd(40, 'x') }), 201)
        for (const wrong of [
          { name: 'ab' },
          { name: 'x'.repeat(41) },
          { name: undefined },
          { owner_email: 'nobody' },
          { owner_email: undefined },
          { plan: 'gold' },
        ])
          isRefused(await signUp(t, wrong))
      },
    ],
    'name-taken': [
      'A tenant name in use is 409 TENANT_NAME_TAKEN',
      'core 4, core 7',
      async (t) => {
        const name = freshName()
        succeeded(await signUp(t, { name }), 201)
        isRefused(await signUp(t, { name }), 409, 'TENANT_NAME_TAKEN')
      },
    ],
    tenant: [
      'GET /tenants/{id} is 200 for its admin key, and 403 when id is another tenant',
      'core 4, core 5.5, core 7',
      async (t) => {
        const [{ admin, id }, stranger] = [await t.tenant(), await t.stranger()]
        succeeded(await admin.get(`/v1/tenants/${id}`), 200)
        isRefused(await admin.get(`/v1/tenants/${stranger.id}`), 403)
      },
    ],
    'delete-tenant': [
      'DELETE /tenants/{id} without the body confirm is 400 DELETE_REQUIRES_CONFIRM, with it 202',
      'core 2, core 4, core 7',
      async (t) => {
        const { admin, id } = await t.newTenant()
        for (const body of [{}, { confirm: 'DELETE' }, { confirm: 'delete all data' }])
          isRefused(await admin.delete(`/v1/tenants/${id}`, body), 400, 'DELETE_REQUIRES_CONFIRM')
        succeeded(await admin.get(`/v1/tenants/${id}`), 200)
        succeeded(await admin.delete(`/v1/tenants/${id}`, { confirm: 'DELETE ALL DATA' }), 202)
      },
    ],
    'rotate-admin-key': [
      'POST /tenants/{id}/rotate-key answers 200 with a new admin key, which works',
      'core 4, core 5.3',
      async (t) => {
        const { admin, id } = await t.newTenant()
        const answer = await admin.post(`/v1/tenants/${id}/rotate-key`)
        succeeded(answer, 200)
        const key = keyIn(answer, key_prefixes.admin)
        holds(key !== admin.key, 'the new key is the old one')
        succeeded(await new Actor(t.anyone.send, { 'x-admin-key': key }).get(`/v1/tenants/${id}`), 200)
      },
    ],
    agent: [
      'POST /agents answers 201 with a one-time key; reading the agent masks it; a name in use is 409 AGENT_ID_TAKEN',
      'core 2, core 4, core 5.3, core 7',
      async (t) => {
        const tenant = await t.tenant()
        const { id, key, answer } = await newAgent(tenant)
        const agent = agentActor(t.anyone.send, id, key)
        for (const reader of [tenant.admin, agent]) {
          const shown = await reader.get(`/v1/agents/${id}`)
          succeeded(shown, 200)
          holds(!shown.text.includes(key), 'the key stands in the answer')
        }
        isRefused(await tenant.admin.post('/v1/agents', answer.sent.body), 409, 'AGENT_ID_TAKEN')
        for (const name of ['ab', 'x'.repeat(33), 'Upper', '-dash', 'a_b'])
          isRefused(await tenant.admin.post('/v1/agents', { name }))
        isRefused(
          await tenant.admin.post('/v1/agents', { name: `agent-${unique()}`, callback_base_url: 'no url' }),
        )
        isRefused(await (await t.stranger()).admin.get(`/v1/agents/${id}`), 404)
        isRefused(await tenant.admin.get(`/v1/agents/none-${unique()}`), 404)
      },
    ],
    'rotate-agent-key': [
      'POST /agents/{id}/rotate-key answers 200 with a new one-time agent key, which works',
      'core 4, core 5.3',
      async (t) => {
        const tenant = await t.tenant()
        const { id, key } = await newAgent(tenant)
        const answer = await tenant.admin.post(`/v1/agents/${id}/rotate-key`)
        succeeded(answer, 200)
        const fresh = keyIn(answer, key_prefixes.agent)
        holds(fresh !== key, 'the new key is the old one')
        succeeded(await agentActor(t.anyone.send, id, fresh).get(`/v1/agents/${id}`), 200)
      },
    ],
    kv: [
      'A put answers 200, a read 200 with the value and X-Version, a delete 204; an absent key is 404 KEY_NOT_FOUND',
      'core 2, core 4, core 7',
      async (t) => {
        const { agent, at } = await keyFor(t)
        isRefused(await agent.get(at), 404, 'KEY_NOT_FOUND')
        isRefused(await agent.delete(at), 404, 'KEY_NOT_FOUND')
        const versions = new Set<string | undefined>()
        for (const value of [{ n: [1, null] }, 'text', null, 0]) {
          succeeded(await agent.put(at, { value }), 200)
          const shown = await agent.get(at)
          succeeded(shown, 200)
          holdsValue(shown, value)
          versions.add(shown.headers['x-version'])
        }
        equal([versions.size, versions.has(undefined)], [4, false], 'different values of X-Version')
        succeeded(await agent.delete(at), 204)
        isRefused(await agent.get(at), 404, 'KEY_NOT_FOUND')
      },
    ],
    'kv-rules': [
      'A put needs a value; ttl_seconds is an integer of at least 1',
      'core 2, core 8',
      async (t) => {
        const { agent, at } = await keyFor(t)
        isRefused(await agent.put(at, {}))
        for (const ttl_seconds of [0, -1, 1.5, 'x']) isRefused(await agent.put(at, { value: 1, ttl_seconds }))
        succeeded(await agent.put(at, { value: 1, ttl_seconds: 3_600 }), 200)
        succeeded(await agent.get(at), 200)
      },
    ],
    'kv-cas': [
      'A put with cas_version applies only if the stored version matches, else 409 VERSION_MISMATCH',
      'core 2, core 4, core 7',
      async (t) => {
        const { agent, at } = await keyFor(t)
        succeeded(await agent.put(at, { value: 'first' }), 200)
        const version = Number((await agent.get(at)).headers['x-version'])
        succeeded(await agent.put(at, { value: 'second', cas_version: version }), 200)
        isRefused(await agent.put(at, { value: 'lost', cas_version: version }), 409, 'VERSION_MISMATCH')
        holdsValue(await agent.get(at), 'second')
      },
    ],
    'kv-if-match': [
      'A read with If-Match is 412 when the version differs',
      'core 4, core 7',
      async (t) => {
        const { agent, at } = await keyFor(t)
        succeeded(await agent.put(at, { value: 1 }), 200)
        const first = (await agent.get(at)).headers['x-version']!
        succeeded(await agent.get(at, { 'if-match': first }), 200)
        succeeded(await agent.put(at, { value: 2 }), 200)
        const names = ['VERSION_MISMATCH', 'PRECONDITION_FAILED']
        isRefused(await agent.get(at, { 'if-match': first }), 412, ...names)
      },
    ],
    audit: [
      'Agent and admin append to the audit log with 201 and read it, by workflow_id, with a limit; nothing changes an entry',
      'core 2, core 4, core 8',
      async (t) => {
        const tenant = await t.tenant()
        const agent = await agentIn(t, tenant)
        const workflow_id = `wf-${unique()}`
        for (const actor of [agent, tenant.admin]) {
          const metadata = { by: unique() }
          const { at } = await created(actor, '/v1/audit', { action: 'order.paid', workflow_id, metadata })
          holdsValue(await agent.get(at), metadata)
          for (const method of ['PUT', 'PATCH', 'DELETE'])
            isRefused(await actor.call(method, at, { action: 'changed' }))
          holdsValue(await agent.get(at), 'order.paid')
        }
        const read = async (query: string) =>
          itemsOf(succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}${query}`), 200)).length
        equal([await read(''), await read('&limit=1')], [2, 1], 'entries of the workflow, and with limit=1')
        isRefused(await agent.post('/v1/audit', { workflow_id }))
      },
    ],
    'audit-limit': [
      'The audit list has 50 entries when no limit is given',
      'core 4, core 8',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const workflow_id = `wf-${unique()}`
        await Promise.all(
          Array.from({ length: 52 }, (_, i) => agent.post('/v1/audit', { action: `n-${i}`, workflow_id })),
        )
        const page = succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}`), 200)
        equal(itemsOf(page).length, 50, 'entries of the first page')
      },
    ],
    isolation: [
      'What another tenant has is 404, and no value of its key-value store is seen',
      'core 1.2, core 5.5',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const theirs = await agentIn(t, await t.stranger())
        const bodies: [string, object][] = [
          ['/v1/audit', { action: 'x' }],
          ['/v1/dlq', { payload: 1, error: 'x' }],
          ['/v1/schedules', scheduleBody(t)],
          ['/v1/checkpoints', { title: 'x', callback_url: t.world.idle_url }],
        ]
        for (const [path, body] of bodies)
          isRefused(await agent.get((await created(theirs, path, body)).at), 404)
        const { at } = await keyFor(t)
        succeeded(await theirs.put(at, { value: 1 }), 200)
        isRefused(await agent.get(at), 404, 'KEY_NOT_FOUND')
      },
    ],
    'idempotency-key': [
      'A creation that is repeated with its Idempotency-Key creates once',
      'core 1.4',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const workflow_id = `wf-${unique()}`
        const headers = { 'idempotency-key': `conformance-${unique()}` }
        for (let i = 0; i < 3; i++)
          holds(
            (await agent.post('/v1/audit', { action: 'once', workflow_id }, headers)).status < 500,
            'a repeat is 5xx',
          )
        const list = succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}`), 200)
        equal(itemsOf(list).length, 1, 'entries after three requests with one key')
      },
    ],
    tick: [
      'POST /tick is 200 with the cron secret; without it, and with a wrong one, 401 UNAUTHORIZED',
      'core 4, core 5.4, core 7',
      async (t) => {
        const { admin } = await t.tenant()
        for (const headers of [{}, { authorization: 'Bearer wrong' }, admin.headers])
          isRefused(await t.anyone.post('/v1/tick', undefined, headers), 401, 'UNAUTHORIZED')
        const secret = t.world.cron_headers ?? t.notRun('needs the cron secret: give --cron-secret')
        succeeded(await t.anyone.post('/v1/tick', undefined, secret), 200)
      },
    ],
  },
  'documents',
)

function freshName(): string {
  return `conformance-${unique()}${unique()}`
}

function signUp(t: Trial, body: Record<string, unknown>) {
  if (t.world.options.tenants.length > 0) t.notRun('needs sign-up')
  return t.anyone.post('/v1/tenants', { name: freshName(), owner_email: 'conformance@example.com', ...body })
}

async function keyFor(t: Trial) {
  return { agent: await agentIn(t, await t.tenant()), at: `/v1/kv/documents/key-${unique()}` }
}

export function scheduleBody(t: Trial, fire_at = far_time) {
  return { callback_url: t.world.idle_url, callback_payload: { n: 1 }, fire_at }
}

/** A body that is in order, so that nothing but the key is wrong. */
function bodyFor(t: Trial, method: string, path: string): Record<string, unknown> | undefined {
  const plain = path.replace(/\/x(\/|$)/, '/{}$1').replace('/n/k', '/{}/{}')
  const found = operations.find(
    (one) => one.method === method && one.path.replace(/\{\w+\}/g, '{}') === plain,
  )
  return found?.body?.(t.world)
}
