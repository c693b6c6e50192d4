// The Idempotency-Key, for every operation that creates.

import { equal, invalid, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made, timed } from '../check.ts'
import type { Answer } from '../client.ts'
import { day, type Kind } from '../contract.ts'
import { type Operation, operations } from '../operations.ts'
import { type Actor, type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const creating = operations.filter(({ creates }) => creates)
const scoped = creating.filter(({ callers }) => callers !== 'anyone')

export const idempotency = chapter('idempotency', {
  ...forEach(creating, replayed),
  ...forEach(creating, otherBody),
  ...forEach(creating, form),
  ...forEach(creating, refusedFirst),
  ...forEach(scoped, principals),
  ...forEach(scoped, once),
  ...forEach(creating, expires),
  'key-rotated': [
    'A key belongs to the principal, and outlives a rotation of the credential',
    'decisions 3',
    async (t) => {
      const tenant = await t.tenant()
      const { agent_id, api_key } = succeeded(
        await tenant.admin.post('/v1/agents', { name: `rot-${unique()}` }),
        201,
      )
      const idempotent = { 'idempotency-key': freshKey() }
      const body = { action: 'conformance.rotated' }
      const send = (key: string) =>
        t.anyone.post('/v1/audit', body, { 'x-agent-id': agent_id, 'x-api-key': key, ...idempotent })
      const first = await send(api_key)
      succeeded(first, 201)
      const rotated = succeeded(await tenant.admin.post(`/v1/agents/${agent_id}/rotate-key`), 200)
      isReplay(await send(rotated.api_key), first)
    },
  ],
  path: [
    'The scope of a key has the path in it: the same key is another one on another path',
    'decisions 3',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const headers = { 'idempotency-key': freshKey() }
      isFirst(await agent.post('/v1/audit', { action: 'conformance.path' }, headers))
      isFirst(await agent.post('/v1/dlq', { payload: 1, error: 'x' }, headers))
    },
  ],
  'sign-up-short-key': [
    'For the public POST /tenants a key under 16 characters includes the body',
    'decisions 3',
    async (t) => {
      if (t.world.options.tenants.length > 0) t.notRun('needs sign-up')
      const signUp = (key: string) => {
        const body = { name: `conformance-${unique()}`, owner_email: 'conformance@example.com' }
        return t.anyone.post('/v1/tenants', body, { 'idempotency-key': key })
      }
      const short = unique()
      const first = await signUp(short)
      succeeded(first, 201)
      const second = await signUp(short)
      succeeded(second, 201)
      equal(second.headers['idempotent-replayed'], undefined, 'Idempotent-Replayed for another body')
      const long = `${unique()}${unique()}`
      succeeded(await signUp(long), 201)
      refused(await signUp(long), 'IDEMPOTENCY_KEY_REUSED')
    },
  ],
  concurrent: [
    'Repeats at the same time have one effect: each gets the first answer, or 409 IDEMPOTENCY_IN_PROGRESS',
    'decisions 1, decisions 3',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const headers = { 'idempotency-key': freshKey() }
      const workflow_id = `wf-${unique()}`
      const body = { action: 'conformance.once', workflow_id }
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => agent.post('/v1/audit', body, headers)),
      )
      for (const answer of answers) {
        if (answer.status === 201) continue
        refused(answer, 'IDEMPOTENCY_IN_PROGRESS')
        equal(typeof answer.headers['retry-after'], 'string', 'type of Retry-After')
      }
      const { items } = succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}`), 200)
      equal(items.length, 1, 'entries after eight requests with one key')
    },
  ],
})

function freshKey(): string {
  return `conformance-${unique()}-${unique()}`
}

type Send = (key: string, body?: unknown, actor?: Actor) => Promise<Answer>

async function sender(t: Trial, operation: Operation): Promise<{ send: Send; tenant: Tenant | null }> {
  const is_open = operation.callers === 'anyone'
  if (is_open && t.world.options.tenants.length > 0) t.notRun('needs sign-up')
  const tenant = is_open ? null : await t.tenant()
  const own = tenant ? await tenant.actor(operation.callers[0] as Kind) : t.anyone
  const { method, path } = operation
  const send: Send = (key, body = operation.body!(t.world), actor = own) =>
    actor.call(method, path, body, { 'idempotency-key': key })
  return { send, tenant }
}

function isReplay(again: Answer, first: Answer): void {
  equal([again.status, again.text], [first.status, first.text], 'status and body of a repeat')
  equal(again.headers['idempotent-replayed'], 'true', 'Idempotent-Replayed of a repeat')
}

function isFirst(answer: Answer): void {
  succeeded(answer, 201)
  equal(answer.headers['idempotent-replayed'], undefined, 'Idempotent-Replayed of a first request')
}

function rule(name: string, { name: operation }: Operation, sentence: string, run: Made['run']): Made {
  return {
    name: `${name} ${operation}`,
    sentence: `${operation}: ${sentence}`,
    section: 'decisions 3',
    passes_seconds: null,
    run,
  }
}

function replayed(operation: Operation): Made {
  const sentence =
    'the same key and body get the stored status and body again, with Idempotent-Replayed: true'
  return rule('replay', operation, sentence, async (t) => {
    const { send } = await sender(t, operation)
    const key = freshKey()
    const body = operation.body!(t.world)
    const first = await send(key, body)
    isFirst(first)
    for (let i = 0; i < 2; i++) isReplay(await send(key, body), first)
  })
}

/** Counts the created records by the list on the path of the operation. */
function once(operation: Operation): Made {
  return rule('once', operation, 'a request that is repeated has exactly one effect', async (t) => {
    const tenant = await t.newTenant()
    const actor = await tenant.actor(operation.callers[0] as Kind)
    const count = async () => succeeded(await actor.get(`${operation.path}?limit=100`), 200).items.length
    const before = await count()
    const headers = { 'idempotency-key': freshKey() }
    const body = operation.body!(t.world)
    for (let i = 0; i < 3; i++) succeeded(await actor.post(operation.path, body, headers), 201)
    equal(await count(), before + 1, `items of ${operation.path} after three requests with one key`)
  })
}

function otherBody(operation: Operation): Made {
  return rule(
    'reused',
    operation,
    'the same key with another body is 422 IDEMPOTENCY_KEY_REUSED',
    async (t) => {
      const { send } = await sender(t, operation)
      const key = freshKey()
      const body = operation.body!(t.world)
      const first = await send(key, body)
      isFirst(first)
      refused(await send(key, { ...body, unknown: 1 }), 'IDEMPOTENCY_KEY_REUSED')
      isReplay(await send(key, body), first)
    },
  )
}

function form(operation: Operation): Made {
  return rule('form', operation, 'a key has 1 to 255 visible ASCII characters; another is 400', async (t) => {
    const { send } = await sender(t, operation)
    isFirst(await send(`${freshKey()}!"#$%&'()*+,-./:;<=>?@[]^_{|}~`))
    isFirst(await send(freshKey().padEnd(255, 'x')))
    for (const key of ['', 'two words', freshKey().padEnd(256, 'x')])
      invalid(await send(key), 'header.Idempotency-Key')
  })
}

function refusedFirst(operation: Operation): Made {
  return rule(
    'refused',
    operation,
    'only 2xx is stored: a refused request leaves its key unused',
    async (t) => {
      const { send } = await sender(t, operation)
      const key = freshKey()
      refused(await send(key, '[]'), 'VALIDATION_FAILED')
      isFirst(await send(key))
    },
  )
}

function principals(operation: Operation): Made {
  return rule('principal', operation, 'the key of one principal is nothing to another', async (t) => {
    const { send, tenant } = await sender(t, operation)
    const key = freshKey()
    const body = operation.body!(t.world)
    const stranger = await t.stranger()
    isFirst(await send(key, body))
    for (const kind of operation.callers as readonly Kind[]) {
      isFirst(await send(key, body, await stranger.actor(kind)))
      if (kind === 'agent') isFirst(await send(key, body, await tenant!.other()))
    }
  })
}

function expires(operation: Operation): Made {
  const sentence = `${operation.name}: a key is kept 24 hours; after that a repeat is a new request`
  const made = timed(day + 10, sentence, 'decisions 3', async (t) => {
    const { send } = await sender(t, operation)
    const key = freshKey()
    const body = operation.body!(t.world)
    const first = await send(key, body)
    isFirst(first)
    await t.time.wait(day - 10)
    isReplay(await send(key, body), first)
    await t.time.wait(20)
    const later = await send(key, body)
    equal(later.headers['idempotent-replayed'], undefined, 'Idempotent-Replayed after 24 hours')
    // A name is taken by the first request.
    if (later.status === 409)
      refused(later, operation.path === '/v1/agents' ? 'AGENT_ID_TAKEN' : 'TENANT_NAME_TAKEN')
    else succeeded(later, 201)
  })
  return { ...made, name: `expires ${operation.name}` }
}
