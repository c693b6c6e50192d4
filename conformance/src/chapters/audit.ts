// The audit log: what was appended, in order, for ever.

import { equal, holds, invalid, refused, sameText, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import * as objects from '../objects.ts'
import { agree, entry as entryShape, hasShape } from '../shapes.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const metadata_bytes_max = 64 * 1_024

export const audit = chapter('audit', {
  append: [
    'POST /audit answers 201 with the entry: id, seq, action, workflow_id, actor, metadata, agent_id, request_id and created_at',
    'core 2, core 4, decisions 5 Audit',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const body = { action: 'order.paid', workflow_id: 'wf-1', actor: 'eve', metadata: { n: 1 } }
      const answer = await agent.post('/v1/audit', body)
      const made = succeeded(answer, 201)
      hasShape(made, entryShape, 'POST /v1/audit')
      equal(
        [made.action, made.workflow_id, made.actor],
        [body.action, body.workflow_id, body.actor],
        'what was sent',
      )
      equal([made.metadata, made.agent_id], [body.metadata, agent.id], 'metadata and agent_id')
      equal(made.request_id, answer.headers['x-request-id'], 'request_id')
      agree(
        succeeded(await agent.get(`/v1/audit/${made.id}`), 200),
        made,
        entryShape,
        'the entry as it is read',
      )
    },
  ],
  defaults: [
    'actor defaults to the agent’s id, or to admin; other fields without a value are null',
    'decisions 1, decisions 5 Audit',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const by_agent = succeeded(await agent.post('/v1/audit', { action: 'x' }), 201)
      equal(
        [by_agent.actor, by_agent.agent_id],
        [agent.id, agent.id],
        'actor and agent_id of an agent’s entry',
      )
      equal([by_agent.workflow_id, by_agent.metadata], [null, null], 'workflow_id and metadata')
      const by_admin = succeeded(await tenant.admin.post('/v1/audit', { action: 'x' }), 201)
      equal([by_admin.actor, by_admin.agent_id], ['admin', null], 'actor and agent_id of the admin’s entry')
    },
  ],
  'server-time': [
    'Entries are timestamped by the server, whatever the request says',
    'core 2, decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const now = await t.time.now()
      const body = { action: 'x', created_at: '2000-01-01T00:00:00.000Z', seq: 0, id: 'log_00000000000000' }
      const answer = await agent.post('/v1/audit', body)
      const made = succeeded(answer, 201)
      const seconds = (Date.parse(made.created_at) - now) / 1_000
      holds(seconds >= 0 && seconds < 30, `created_at is ${seconds} s after the entry before`)
      holds(made.id !== body.id && made.seq !== 0, 'id or seq is that of the request')
    },
  ],
  limits: [
    'action has 1 to 128 characters; metadata is an object of 64 KiB at most',
    'core 2, decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      succeeded(await agent.post('/v1/audit', { action: 'x'.repeat(128) }), 201)
      for (const action of ['x'.repeat(129), 7, true])
        invalid(await agent.post('/v1/audit', { action }), '/action')
      for (const metadata of [[], 'x', 1])
        invalid(await agent.post('/v1/audit', { action: 'x', metadata }), '/metadata')
      const text = (bytes: number) => `{"action":"x","metadata":{"m":"${'x'.repeat(bytes - 8)}"}}`
      succeeded(await agent.post('/v1/audit', text(metadata_bytes_max)), 201)
      refused(await agent.post('/v1/audit', text(metadata_bytes_max + 1)), 'PAYLOAD_TOO_LARGE')
    },
  ],
  'exact-json': [
    'metadata is kept as the exact JSON text',
    'decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const text = '{"b":1e400,"a":123456789012345678901234567890,"b":-0.10}'
      const { id } = succeeded(await agent.post('/v1/audit', `{"action":"x","metadata":${text}}`), 201)
      sameText((await agent.get(`/v1/audit/${id}`)).text, text, 'metadata')
    },
  ],
  'well-formed-text': [
    'Plain text with NUL or a lone surrogate is VALIDATION_FAILED',
    'decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      for (const text of ['a\\u0000b', '\\ud800', '\\udc00x'])
        invalid(await agent.post('/v1/audit', `{"action":"${text}"}`), '/action')
      succeeded(await agent.post('/v1/audit', '{"action":"\\ud83d\\ude00"}'), 201)
    },
  ],
  seq: [
    'seq has no gaps within a tenant, also when entries are appended at the same time',
    'decisions 5 Audit',
    async (t) => {
      // Other checks of this chapter append, too: the whole log has no gaps.
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      await Promise.all(Array.from({ length: 20 }, (_, i) => agent.post('/v1/audit', { action: `n-${i}` })))
      const { items } = succeeded(await agent.get('/v1/audit?limit=200'), 200)
      const numbers = items.map(({ seq }: { seq: number }) => seq).sort((a: number, b: number) => a - b)
      equal(
        numbers,
        Array.from({ length: 20 }, (_, i) => numbers[0] + i),
        'seq of twenty entries',
      )
      const first = succeeded(await agent.post('/v1/audit', { action: 'next' }), 201)
      equal(first.seq, numbers.at(-1) + 1, 'seq of the next entry')
    },
  ],
  'only-appended': [
    'The log holds what POST /audit appended and nothing else',
    'decisions 5 Audit',
    async (t) => {
      const tenant = await t.newTenant()
      for (const make of [objects.agent, objects.value, objects.claimed, objects.checkpoint, objects.inbox])
        await make(tenant)
      equal(
        succeeded(await tenant.admin.get('/v1/audit'), 200).items,
        [],
        'entries of a tenant that appended none',
      )
    },
  ],
  immutable: [
    'No route changes or removes an entry',
    'core 2, decisions 5 Audit',
    async (t) => {
      const { admin } = await t.tenant()
      const { id } = await objects.entry(await t.tenant())
      const before = (await admin.get(`/v1/audit/${id}`)).text
      for (const method of ['PUT', 'PATCH', 'DELETE', 'POST'])
        refused(await admin.call(method, `/v1/audit/${id}`, { action: 'changed' }), 'METHOD_NOT_ALLOWED')
      equal((await admin.get(`/v1/audit/${id}`)).text, before, 'the entry afterwards')
    },
  ],
  filters: [
    'Filters: workflow_id, action, actor, from and to; they combine',
    'core 4, decisions 5 Audit',
    async (t) => {
      const { agent, workflow_id, entries } = await threeEntries(t)
      const seen = async (query: string) => {
        const { items } = succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}${query}`), 200)
        return items.map(({ action }: { action: string }) => action)
      }
      equal(await seen(''), ['c', 'b', 'a'], 'actions of the workflow, newest first')
      equal(await seen('&action=b'), ['b'], 'actions with action=b')
      equal(await seen('&actor=eve'), ['c'], 'actions with actor=eve')
      equal(await seen('&actor=eve&action=b'), [], 'actions with both')
      equal(await seen(`&from=${entries[0].created_at}`), ['c', 'b', 'a'], 'actions from the first on')
      equal(await seen('&from=2999-01-01T00:00:00Z'), [], 'actions from a far time on')
      equal(await seen('&to=2000-01-01T00:00:00Z'), [], 'actions to a time long ago')
      invalid(await agent.get('/v1/audit?from=yesterday'), 'query.from')
    },
  ],
  admin: [
    'Agent and admin both append and read',
    'core 4',
    async (t) => {
      const tenant = await t.tenant()
      const { id } = succeeded(await tenant.admin.post('/v1/audit', { action: 'by.admin' }), 201)
      succeeded(await (await tenant.agent()).get(`/v1/audit/${id}`), 200)
      const { id: other } = await objects.entry(tenant)
      succeeded(await tenant.admin.get(`/v1/audit/${other}`), 200)
    },
  ],
})

async function threeEntries(t: Trial) {
  const agent = await (await t.tenant()).agent()
  const workflow_id = `wf-${unique()}`
  const entries = []
  for (const [action, actor] of [['a'], ['b'], ['c', 'eve']]) {
    const body = actor ? { action, actor, workflow_id } : { action, workflow_id }
    entries.push(succeeded(await agent.post('/v1/audit', body), 201))
  }
  return { agent, workflow_id, entries }
}
