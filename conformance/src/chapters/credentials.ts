// The kinds of keys that may call each operation.

import { bytesOf, equal, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made } from '../check.ts'
import { type Kind, key_prefixes, kinds } from '../contract.ts'
import { filled, type Operation, operations, ready } from '../operations.ts'
import { hasShape } from '../shapes.ts'
import { type Actor, type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const authenticated = operations.filter(({ callers }) => Array.isArray(callers))
const open = operations.filter(({ callers }) => callers === 'anyone')

export const credentials = chapter('credentials', {
  ...forEach(authenticated, answers),
  ...forEach(authenticated, noKey),
  ...forEach(authenticated, wrongKind),
  ...forEach(authenticated, twoKeys),
  ...forEach(open, isPublic),
  'agent-headers': [
    'Agent-key requests under /v1 carry two headers, x-agent-id and x-api-key; 401 without the first, or with that of another agent',
    'core 4, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const other = await tenant.other()
      const path = `/v1/agents/${agent.id}`
      succeeded(await agent.get(path), 200)
      const rows: Record<string, string>[] = [
        { 'x-api-key': agent.key },
        { 'x-agent-id': agent.id },
        { 'x-api-key': agent.key, 'x-agent-id': other.id },
        { 'x-api-key': agent.key, 'x-agent-id': '' },
        { authorization: `Bearer ${agent.key}`, 'x-agent-id': other.id },
      ]
      for (const headers of rows) refused(await t.anyone.get(path, headers), 'UNAUTHORIZED')
    },
  ],
  'api-key-alone': [
    'Under /api an agent key or the admin key is taken in x-api-key, without x-agent-id; when sent, it must match',
    'edge 5, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const path = '/api/webhook'
      for (const key of [agent.key, tenant.admin.key]) {
        succeeded(await t.anyone.get(path, { 'x-api-key': key }), 200)
        succeeded(await t.anyone.get(path, { authorization: `Bearer ${key}` }), 200)
      }
      const other = await tenant.other()
      const headers = { 'x-api-key': agent.key, 'x-agent-id': other.id }
      refused(await t.anyone.get(path, headers), 'UNAUTHORIZED')
    },
  ],
  'unauthorized-bytes': [
    '401 UNAUTHORIZED has the same bytes for each reason: no credential, unknown, revoked or rotated key, another agent’s id',
    'decisions 1',
    async (t) => {
      const answers = await Promise.all(
        (await unusable(t)).map((headers) => t.anyone.get('/v1/agents', headers)),
      )
      const texts = new Set(answers.map(bytesOf))
      equal([...texts], [bytesOf(answers[0]!)], 'the different answers to unusable credentials')
    },
  ],
  'cron-secret-elsewhere': [
    'The cron secret opens POST /tick only; elsewhere it is 401',
    'core 5, decisions 2',
    async (t) => {
      const headers = t.world.cron_headers ?? t.notRun('needs the cron secret: give --cron-secret')
      for (const path of ['/v1/agents', '/v1/audit', '/api/webhook'])
        refused(await t.anyone.get(path, headers), 'UNAUTHORIZED')
    },
  ],
})

/** The callers of an operation, each in its forms: its own header, and Bearer. */
async function callersOf(tenant: Tenant, kind: Kind): Promise<Actor[]> {
  const actor = await tenant.actor(kind)
  return [actor, actor.asBearer()]
}

/** A tenant on which the operation may do what it does. */
async function ownerFor(t: Trial, { changes_tenant }: Operation): Promise<Tenant> {
  return changes_tenant ? t.newTenant() : t.tenant()
}

function answers(operation: Operation): Made {
  const callers = operation.callers as readonly Kind[]
  return {
    name: `answers ${operation.name}`,
    sentence: `${operation.name} answers ${operation.status} with its fields to each kind of key that it is for`,
    section: 'core 2, core 4, decisions 5',
    passes_seconds: null,
    run: async (t) => {
      for (const kind of callers) {
        for (const form of [0, 1]) {
          const tenant = await ownerFor(t, operation)
          const { path, body } = await ready(operation, tenant)
          const actor = (await callersOf(tenant, kind))[form]!
          const answer = await actor.call(operation.method, path, body)
          const data = succeeded(answer, operation.status)
          if (operation.shape) hasShape(data, operation.shape, `${operation.name} for an ${kind} key`)
          equal(
            answer.headers['x-ignored-fields'],
            undefined,
            'X-Ignored-Fields of a body without unknown fields',
          )
        }
      }
    },
  }
}

/** Headers of credentials that name nobody. */
async function unusable(t: Trial): Promise<Record<string, string>[]> {
  const tenant = await t.tenant()
  const agent = await tenant.agent()
  const dead = await t.world.once('dead keys', () => deadKeys(tenant))
  const agent_id = { 'x-agent-id': agent.id }
  return [
    {},
    { authorization: 'Bearer' },
    { authorization: 'Bearer garbage' },
    { authorization: agent.key },
    { authorization: `Basic ${Buffer.from(`${agent.id}:${agent.key}`).toString('base64')}` },
    { 'x-admin-key': 'garbage' },
    { 'x-admin-key': spoiled(tenant.admin.key) },
    { 'x-approval-key': spoiled((await tenant.actor('approval')).key) },
    { ...agent_id, 'x-api-key': 'garbage' },
    { ...agent_id, 'x-api-key': spoiled(agent.key) },
    { ...agent_id, 'x-api-key': agent.key.slice(0, -1) },
    { authorization: `Bearer ${key_prefixes.agent}${'0'.repeat(38)}` },
    ...dead.map((key) => ({ authorization: `Bearer ${key}` })),
  ]
}

/** A rotated agent key, that of a removed agent, and a revoked approval key. */
async function deadKeys(tenant: Tenant): Promise<string[]> {
  const { admin } = tenant
  const rotated = succeeded(await admin.post('/v1/agents', { name: `rotated-${unique()}` }), 201)
  succeeded(await admin.post(`/v1/agents/${rotated.agent_id}/rotate-key`), 200)
  const removed = succeeded(await admin.post('/v1/agents', { name: `removed-${unique()}` }), 201)
  succeeded(await admin.delete(`/v1/agents/${removed.agent_id}`), 204)
  const revoked = await tenant.approver()
  succeeded(await admin.delete(`/v1/approval-keys/${revoked.id}`), 204)
  return [rotated.api_key, removed.api_key, revoked.key]
}

/** Another last character: the same form, another checksum. */
function spoiled(key: string): string {
  return key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a')
}

function noKey(operation: Operation): Made {
  const sentence = `${operation.name}: without a valid key it answers 401 UNAUTHORIZED`
  return {
    name: `no-key ${operation.name}`,
    sentence,
    section: 'core 5, decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const path = `${filled(operation.path, {})}${operation.query}`
      for (const headers of await unusable(t))
        refused(
          await t.anyone.call(operation.method, path, operation.body?.(t.world), headers),
          'UNAUTHORIZED',
        )
    },
  }
}

function wrongKind(operation: Operation): Made {
  const sentence = `${operation.name}: a valid key of a kind that it is not for answers 403 FORBIDDEN`
  return {
    name: `wrong-kind ${operation.name}`,
    sentence,
    section: 'core 4, decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      // The object is there, so that nothing but the key is wrong.
      const path = operation.changes_tenant
        ? filled(operation.path, { tenant_id: tenant.id })
        : (await ready(operation, tenant)).path
      for (const kind of kinds.filter((one) => !operation.callers.includes(one))) {
        for (const actor of await callersOf(tenant, kind))
          refused(await actor.call(operation.method, path, operation.body?.(t.world)), 'FORBIDDEN')
      }
    },
  }
}

function twoKeys(operation: Operation): Made {
  const sentence = `${operation.name}: two different keys on one request answer 400`
  return {
    name: `two-keys ${operation.name}`,
    sentence,
    section: 'decisions 2',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      const path = `${filled(operation.path, {})}${operation.query}`
      const agent = await tenant.agent()
      const approver = await tenant.actor('approval')
      const pairs = [
        { ...tenant.admin.headers, ...agent.headers },
        { ...agent.headers, ...approver.headers },
        { ...tenant.admin.headers, authorization: `Bearer ${agent.key}` },
      ]
      for (const headers of pairs)
        refused(
          await t.anyone.call(operation.method, path, operation.body?.(t.world), headers),
          'VALIDATION_FAILED',
        )
    },
  }
}

function isPublic(operation: Operation): Made {
  const sentence = `${operation.name} is public: it reads no credentials, not even two different ones`
  return {
    name: `public ${operation.name}`,
    sentence,
    section: 'core 5.2, edge 5, decisions 2',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const rows = [{}, { authorization: 'Bearer garbage' }, { ...tenant.admin.headers, ...agent.headers }]
      for (const headers of rows) {
        if (operation.object === null && t.world.options.tenants.length > 0) t.notRun('needs sign-up')
        const { path, body } = await ready(operation, tenant)
        const answer = await t.anyone.call(operation.method, path, body, headers)
        const data = succeeded(answer, operation.status)
        if (operation.shape) hasShape(data, operation.shape, operation.name)
      }
    },
  }
}
