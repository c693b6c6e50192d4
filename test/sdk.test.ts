// The SDK: types and methods against openapi.json, and every resource against the service.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Document } from '../mcp/schema.ts'
import { hasBodyArgument, methodOf, operationsOf, resourceOf } from '../scripts/clients/model.ts'
import { clientFiles } from '../scripts/clients.ts'
import {
  hasCode,
  NotDone,
  type Pages,
  RawJson,
  Waystation,
  WaystationError,
  WaystationNetworkError,
} from '../sdk/src/index.ts'
import { encodeJson, memberText } from '../sdk/src/json.ts'
import { type Operations, operations } from '../sdk/src/types.ts'
import { leastAnswer } from './support/least-answers.ts'
import { all, clientsOf, failureOf, TestPlatform } from './support/sdk.ts'
import { forEachService } from './support/service.ts'

type Operation = keyof Operations

const openapi = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')) as Document
const operation_ids = Object.values(openapi.paths).flatMap((methods) =>
  Object.values(methods).map(({ operationId }) => operationId),
)

/** How each operation is reached. */
const methods: Record<string, (client: Waystation) => unknown> = {
  createTenant: (c) => c.tenants.create({ name: 'acme', owner_email: 'a@example.com' }),
  getUsage: (c) => c.tenants.usage('t', { step: 'day' }),
  getTenant: (c) => c.tenants.get('t'),
  deleteTenant: (c) => c.tenants.delete('t', { confirm: 'DELETE ALL DATA' }),
  restoreTenant: (c) => c.tenants.restore('t'),
  rotateTenantKey: (c) => c.tenants.rotateKey('t', { grace_seconds: 60 }),
  rotateSigningSecret: (c) => c.tenants.rotateSigningSecret('t'),
  createAgent: (c) => c.agents.create({ name: 'worker' }),
  listAgents: (c) => c.agents.list().page(),
  getAgent: (c) => c.agents.get('a'),
  deleteAgent: (c) => c.agents.delete('a'),
  rotateAgentKey: (c) => c.agents.rotateKey('a'),
  createApprovalKey: (c) => c.approvalKeys.create({ label: 'on call' }),
  listApprovalKeys: (c) => c.approvalKeys.list().page(),
  deleteApprovalKey: (c) => c.approvalKeys.delete('k'),
  getApproval: (c) => c.approvals.get('c', { wait: 1 }),
  listNamespaces: (c) => c.namespaces.list().page(),
  getNamespace: (c) => c.namespaces.settings('n'),
  updateNamespace: (c) => c.namespaces.update('n', { events: true }),
  listNamespaceKeys: (c) => c.namespaces.keys('n').page(),
  getNamespaceKey: (c) => c.namespaces.get('n', 'k'),
  getValue: (c) => c.kv.get('n', 'k'),
  putValue: (c) => c.kv.put('n', 'k', 1),
  deleteValue: (c) => c.kv.delete('n', 'k'),
  listKeys: (c) => c.kv.list('n').page(),
  appendEntry: (c) => c.audit.append({ action: 'a' }),
  listEntries: (c) => c.audit.list().page(),
  getEntry: (c) => c.audit.get('e'),
  captureItem: (c) => c.dlq.create({ payload: 1, error: 'e' }),
  listItems: (c) => c.dlq.list().page(),
  getItem: (c) => c.dlq.get('d'),
  deleteItem: (c) => c.dlq.delete('d'),
  claimItem: (c) => c.dlq.claim('d'),
  claimOldestItem: (c) => c.dlq.claimOldest(),
  extendItem: (c) => c.dlq.extend('d'),
  releaseItem: (c) => c.dlq.release('d'),
  failItem: (c) => c.dlq.fail('d'),
  resolveItem: (c) => c.dlq.resolve('d'),
  createSchedule: (c) => c.schedules.create({ callback_url: '/', callback_payload: 1, fire_at: 'x' }),
  listSchedules: (c) => c.schedules.list().page(),
  getSchedule: (c) => c.schedules.get('s'),
  updateSchedule: (c) => c.schedules.update('s', { dlq_on_failure: true }),
  cancelSchedule: (c) => c.schedules.cancel('s'),
  listScheduleAttempts: (c) => c.schedules.attempts('s').page(),
  createCheckpoint: (c) => c.checkpoints.create({ title: 't', callback_url: '/' }),
  listCheckpoints: (c) => c.checkpoints.list().page(),
  getCheckpoint: (c) => c.checkpoints.get('c'),
  approveCheckpoint: (c) => c.checkpoints.approve('c'),
  rejectCheckpoint: (c) => c.checkpoints.reject('c'),
  cancelCheckpoint: (c) => c.checkpoints.cancel('c'),
  listCheckpointAttempts: (c) => c.checkpoints.attempts('c').page(),
  createInbox: (c) => c.inboxes.create(),
  listInboxes: (c) => c.inboxes.list().page(),
  getInbox: (c) => c.inboxes.get('i'),
  deleteInbox: (c) => c.inboxes.delete('i'),
  listMessages: (c) => c.inboxes.messages('i').page(),
  searchMessages: (c) => c.inboxes.search('i', { q: 'x' }),
  listRateLimits: (c) => c.rateLimit.list().page(),
  checkRateLimit: (c) => c.rateLimit.check('k', { limit: 1, windowSeconds: 1 }),
  getRateLimit: (c) => c.rateLimit.status('k'),
  getRateLimitNamedReset: (c) => c.rateLimit.status('reset'),
  resetRateLimit: (c) => c.rateLimit.reset('k'),
  tick: (c) => c.tick(),
  livez: (c) => c.health.live(),
  readyz: (c) => c.health.ready(),
  openapi: (c) => c.openapi(),
}

const hook = 'anybody may send to an inbox, with any client'
const without_method: Record<string, string> = {
  confirmMail: 'called by the page of a link in an email, which alone has its token',
  unsubscribeMail: 'called by the page of a link in an email, which alone has its token',
  checkRateLimitByQuery: 'the same check; a GET that counts would be repeated by anything on its way',
  ...Object.fromEntries(
    ['Delete', 'Get', 'Patch', 'Post', 'Put'].flatMap((verb) => [
      [`receive${verb}`, hook],
      [`receive${verb}Below`, hook],
    ]),
  ),
}

/** Made of the methods above. */
const verbs = [
  'checkpoints.ask',
  'checkpoints.waitFor',
  'dlq.waitForOperation',
  'dlq.work',
  'effects.once',
  'effects.waitFor',
  'events.follow',
  'events.position',
  'inWorkflow',
  'kv.find',
  'kv.getIfChanged',
  'kv.getText',
  'kv.update',
  'namespaces.getText',
  'rateLimit.wait',
]

/** Own and inherited ones. */
function methodsOf(of: object): string[] {
  const prototype = Object.getPrototypeOf(of) as object
  if (prototype === Object.prototype) return []
  const own = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')
  return [...new Set([...own, ...methodsOf(prototype)])]
}

/** A method for each operation that the contract names: with texts for its arguments, and nothing else. */
const generated = operationsOf(openapi).filter(({ sdk, id }) => sdk && !(id in methods))
for (const operation of generated) {
  const { id, path_fields, sdk } = operation
  const texts = [...path_fields, ...(sdk!.arguments ?? [])].map(() => 'x')
  const needs_query = operation.query_fields.some(({ required }) => required)
  const rest = hasBodyArgument(operation) || needs_query ? [{}] : []
  methods[id] = async (client) => {
    const owner = (resourceOf(operation) ? client[resourceOf(operation) as 'kv'] : client) as object
    const method = Reflect.get(owner, methodOf(operation)) as (...given: unknown[]) => object
    const result = method.call(owner, ...texts, ...rest)
    return 'page' in result ? (result as Pages<unknown>).page() : result
  }
}

/** A client whose requests end here, and what it asked for. */
function recording(answer: { status?: number; body?: string; headers?: Record<string, string> } = {}) {
  const list = { items: [], next_cursor: null, nextAfter: null, total: 0 }
  const wait = { event: { seq: 1 }, after: 1 }
  const { status = 200, body, headers = {} } = answer
  const asked: { url: string; init: RequestInit & { headers: Record<string, string> } }[] = []
  const client = new Waystation({
    url: 'http://service.test/base/',
    key: 'svc_agt_x',
    platform: new TestPlatform(),
    fetch: async (url, init) => {
      asked.push({ url, init: init as (typeof asked)[number]['init'] })
      if (body !== undefined) return new Response(body, { status, headers })
      return leastAnswer(init.method!, url.slice('http://service.test/base'.length), { ...list, ...wait })
    },
  })
  return { client, asked }
}

describe('The SDK and openapi.json', () => {
  test.each(Object.entries(clientFiles()))(
    '%s is what openapi.json says; after a change run: npm run clients',
    (file, text) => {
      expect(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).toBe(text)
    },
  )

  test('every operation has its method, or a reason to have none', () => {
    const covered = [...Object.keys(methods), ...Object.keys(without_method)]
    expect(covered.toSorted()).toEqual(operation_ids.toSorted())
  })

  test('every method is one of those, or a verb made of them', async () => {
    const { client } = recording()
    const used = new Set<string>()
    const watched = (target: object, path: string): object =>
      new Proxy(target, {
        get(_, name) {
          const found = Reflect.get(target, name)
          if (typeof found === 'function') used.add(`${path}${String(name)}`)
          if (typeof found === 'function') return found.bind(target)
          return watched(found, `${path}${String(name)}.`)
        },
      })
    for (const call of Object.values(methods)) await call(watched(client, '') as Waystation)
    const nouns = Object.keys(client) as (keyof Waystation)[]
    const known = [
      ...methodsOf(client),
      ...nouns.flatMap((noun) => methodsOf(client[noun]).map((name) => `${noun}.${name}`)),
    ]
    expect(known.length).toBeGreaterThan(50)
    expect(known.filter((name) => !used.has(name)).toSorted()).toEqual(verbs)
  })

  test.each(Object.entries(methods))('%s asks with its method at its path', async (operation_id, call) => {
    const { client, asked } = recording()
    await call(client)
    const { method, path, creates } = operations[operation_id as Operation]
    const form = new RegExp(`^http://service\\.test/base${path.replace(/\{\w+\}/g, '[^/]+')}(\\?.*)?$`)
    expect(asked).toHaveLength(1)
    expect([asked[0]!.init.method, asked[0]!.url]).toEqual([method, expect.stringMatching(form)])
    expect(asked[0]!.init.headers['idempotency-key'] !== undefined).toBe(creates === true)
    expect(asked[0]!.init.headers.authorization).toBe('Bearer svc_agt_x')
  })
})

describe('A request of the SDK', () => {
  test('carries names with any characters, encoded once', async () => {
    const { client, asked } = recording()
    await client.kv.get('state', 'a/b?c#d%20 ü')
    expect(asked[0]!.url).toBe('http://service.test/base/v1/kv/state/a%2Fb%3Fc%23d%2520%20%C3%BC')
    await client.audit.list({ workflow_id: 'a&b=c', limit: 7 }).page()
    expect(asked[1]!.url).toBe('http://service.test/base/v1/audit?workflow_id=a%26b%3Dc&limit=7')
  })

  test.each(['', '.', '..'])('refuses %j as a name, which would change the path', async (key) => {
    const { client, asked } = recording()
    expect(await failureOf(client.kv.get('state', key))).toBeInstanceOf(TypeError)
    expect(asked).toEqual([])
  })

  test.each(['ftp://x', 'x', 'http://x/?a=1', 'http://x/#a'])('is not made to the address %s', (url) => {
    expect(() => new Waystation({ url })).toThrow(TypeError)
  })

  test('carries the workflow of the client, and another one in inWorkflow', async () => {
    const asked: (string | undefined)[] = []
    const fetch = async (_: string, init: RequestInit) => {
      asked.push((init.headers as Record<string, string>)['x-workflow-id'])
      return new Response('{"status":"alive"}')
    }
    const client = new Waystation({ url: 'http://x', workflow_id: 'order-7', fetch })
    for (const each of [client, client.inWorkflow('Größe'), new Waystation({ url: 'http://x', fetch })])
      await each.health.live()
    expect(asked).toEqual(['order-7', Buffer.from('Größe').toString('latin1'), undefined])
    for (const text of ['', ' a', 'a\n', 'a\0', '\ud800', '😀'.repeat(257)])
      expect(() => client.inWorkflow(text)).toThrow('workflow_id must be 1 to 256 characters on one line')
    client.inWorkflow('😀'.repeat(256))
  })

  test('carries agent_id and request_id when they are given, no key when there is none', async () => {
    const asked: Record<string, string>[] = []
    const fetch = async (_: string, init: RequestInit) => {
      asked.push(init.headers as Record<string, string>)
      return new Response('{"agent_id":"a","status":"alive"}')
    }
    const client = new Waystation({ url: 'http://x', key: 'k', agent_id: 'worker', fetch })
    await client.agents.get('a', { request_id: 'my-request' })
    await new Waystation({ url: 'http://x', fetch }).health.live()
    expect(asked).toEqual([
      {
        accept: 'application/json',
        authorization: 'Bearer k',
        'x-agent-id': 'worker',
        'x-request-id': 'my-request',
      },
      { accept: 'application/json' },
    ])
  })

  test('shows its key to nobody who prints the client', () => {
    const client = new Waystation({ url: 'http://x', key: 'svc_agt_secret' })
    expect(Bun.inspect(client, { depth: 10 })).not.toContain('secret')
    expect(JSON.stringify(client)).not.toContain('secret')
  })

  test.each([
    ['a page of a proxy', 502, '<html>', 'UNEXPECTED_ANSWER'],
    ['a success that is not JSON', 200, 'ok', 'UNEXPECTED_ANSWER'],
    ['a redirect', 302, '', 'UNEXPECTED_ANSWER'],
    ['an error of the service', 404, '{"error":{"code":"KEY_NOT_FOUND","message":"m"}}', 'KEY_NOT_FOUND'],
  ])('that gets %s fails with status and code', async (_, status, body, code) => {
    const { client } = recording({ status, body, headers: { 'x-request-id': 'req_of_it' } })
    const error = (await failureOf(client.kv.get('n', 'k', { retries: 0 }))) as WaystationError
    expect(error).toBeInstanceOf(WaystationError)
    expect([error.code, error.status, error.request_id] as unknown[]).toEqual([code, status, 'req_of_it'])
  })
})

describe('JSON as text', () => {
  test.each([
    [{ a: new RawJson('1e400'), b: [new RawJson('{"x": 1.0}')] }, '{"a":1e400,"b":[{"x": 1.0}]}'],
    [123456789012345678901234567890n, '123456789012345678901234567890'],
    [{ a: undefined, b: () => 1, c: [undefined] }, '{"c":[null]}'],
    [
      { at: new Date(0), n: Number.NaN, s: 'é"\u2028' },
      '{"at":"1970-01-01T00:00:00.000Z","n":null,"s":"é\\"\u2028"}',
    ],
    [[null, true, '', Object('boxed')], '[null,true,"","boxed"]'],
  ])('%p is written as %s', (value, text) => {
    expect(encodeJson(value)).toBe(text)
  })

  test('asks toJSON once, with the name of the member, as JSON.stringify does', () => {
    class Order {
      id = 7
      toJSON = () => ({ ...this })
    }
    const itself = { a: 1, toJSON: () => itself }
    const named = { toJSON: (name: string) => name }
    const value = { order: new Order(), itself, list: [named], named }
    expect(encodeJson(value)).toBe(JSON.stringify(value))
    expect(encodeJson(named)).toBe('""')
    expect(encodeJson({ toJSON: () => [1n, new RawJson('1e400')] })).toBe('[1,1e400]')
    expect(encodeJson({ toJSON: () => new RawJson('1e400') })).toBe('1e400')
  })

  test('that is none is refused', () => {
    expect(() => new RawJson('{')).toThrow(SyntaxError)
    expect(() => encodeJson(undefined)).toThrow(TypeError)
  })

  test.each([
    ['{"value":1}', '1'],
    ['{"a":{"value":2},"value": 1.50 ,"z":0}', '1.50'],
    ['{"a":"\\"value\\":3,}]","value":"x\\\\","b":[{}]}', '"x\\\\"'],
    [' { "v\\u0061lue" : [ 1,{"b":"]"} ] } ', '[ 1,{"b":"]"} ]'],
    ['{"value":1,"value":{}}', '{}'],
    ['{}', undefined],
  ])('of a member of %s is %p', (object, text) => {
    expect(memberText(object, 'value')).toBe(text as string)
  })
})

forEachService('The SDK', (service) => {
  test('signs up, makes an agent, puts, gets, lists and deletes', async () => {
    const { nobody, platform } = await clientsOf(service, await service.signUp())
    const name = `sdk-${crypto.randomUUID().slice(0, 13)}`
    const tenant = await nobody.tenants.create({ name, owner_email: 'owner@example.com' })
    const admin = new Waystation({ url: service.url, key: tenant.admin_key, platform })
    const { api_key, agent_id } = await admin.agents.create({ name: 'worker' })
    const agent = new Waystation({ url: service.url, key: api_key, agent_id, platform })

    expect(await agent.kv.put('state', 'run', { rows: 42 }, { ttl_seconds: 60 })).toMatchObject({
      version: 1,
    })
    const entry = await agent.kv.get<{ rows: number }>('state', 'run')
    expect(entry).toMatchObject({ namespace: 'state', key: 'run', value: { rows: 42 }, version: 1 })
    expect(await agent.kv.get('state', 'run', { if_version: 1 })).toEqual(entry)
    expect(await agent.kv.getIfChanged('state', 'run', 1)).toBeNull()
    expect(await agent.kv.getIfChanged('state', 'run', 7)).toEqual(entry)
    expect(await agent.kv.find('state', 'absent')).toBeNull()
    expect(await all(agent.kv.list('state', { prefix: 'r' }))).toMatchObject([{ key: 'run', version: 1 }])
    expect(await failureOf(agent.kv.delete('state', 'run', { if_version: 2 }))).toMatchObject({
      code: 'VERSION_MISMATCH',
      status: 412,
    })
    expect(await agent.kv.delete('state', 'run')).toBeUndefined()
    expect((await admin.tenants.get(tenant.tenant_id)).quota.kv_keys.used).toBe(0)
  })

  test('shows a human what to decide, and the operator what there is', async () => {
    const tenant = await service.signUp('pro')
    const { admin, agent, platform } = await clientsOf(service, tenant)
    const { id: checkpoint_id } = await agent.checkpoints.create({
      title: 'Go?',
      callback_url: 'http://127.0.0.1:9/',
    })
    const { approval_key, approval_url } = await admin.approvalKeys.create({ checkpoint_id })
    expect(approval_url).toBe(`${service.url}/approve/${checkpoint_id}#${approval_key}`)
    const approval = new Waystation({ url: service.url, key: approval_key, platform })
    expect(await approval.approvals.get(checkpoint_id)).toMatchObject({ title: 'Go?', status: 'pending' })

    await agent.kv.put('state', 'a', new RawJson('1e400'))
    await agent.kv.put('__agent.agent-one', 'b', { mine: true })
    expect(await all(admin.namespaces.list({ limit: 1 }))).toEqual([
      { namespace: '__agent.agent-one', agent_id: 'agent-one', events: false },
      { namespace: 'state', agent_id: null, events: false },
    ])
    expect(await all(admin.namespaces.keys('state', { prefix: 'a' }))).toMatchObject([
      { key: 'a', version: 1 },
    ])
    expect((await admin.namespaces.get<{ mine: boolean }>('__agent.agent-one', 'b')).value.mine).toBe(true)
    expect((await admin.namespaces.getText('state', 'a')).value).toBe('1e400')

    for (const key of ['x', 'y', 'z']) await agent.rateLimit.check(key, { limit: 1, windowSeconds: 60 })
    expect((await all(admin.rateLimit.list({ limit: 2 }))).map(({ key }) => key)).toEqual(['x', 'y', 'z'])
    const to = new Date(service.clock.now() + 3_600_000).toISOString()
    const { items } = await admin.tenants.usage('me', { to, step: 'day' })
    expect(items.at(-1)!.features).toContainEqual({ feature: 'rate_limits', calls: 3, failures: 0 })
  })

  test.each([
    ['30 digits', '123456789012345678901234567890'],
    ['an exponent', '1e400'],
    ['white space and repeats', '{ "a": 1.0, "a":\n2 }'],
    ['a text', '"\\u00fc"'],
  ])('writes and reads raw text: %s', async (_, text) => {
    const tenant = await service.signUp()
    const { agent } = await clientsOf(service, tenant)
    await agent.kv.put('state', 'raw', new RawJson(text))
    expect(await agent.kv.getText('state', 'raw')).toMatchObject({ key: 'raw', value: text, version: 1 })
    expect(await agent.kv.getText('state', 'raw', { if_version: 1 })).toMatchObject({ value: text })
    const other = await failureOf(agent.kv.getText('state', 'raw', { if_version: 2 }))
    expect(hasCode(other, 'VERSION_MISMATCH')).toBe(true)
    const item = await agent.dlq.create({ payload: { id: new RawJson(text) }, error: 'e' })
    const answer = await service.ask('GET', `/v1/dlq/${item.id}`, { key: tenant.api_key })
    expect(answer.text).toContain(`"payload":{"id":${text}}`)
  })

  test('reads with a parser of the caller', async () => {
    const tenant = await service.signUp()
    const parse_json = (text: string) => JSON.parse(text.replace(/:(\d{17,})/g, ':"$1"'))
    const { agent } = await clientsOf(service, tenant, service.url, { parse_json })
    const { id } = await agent.dlq.create({ payload: { order: 12345678901234567890n }, error: 'e' })
    expect((await agent.dlq.get(id)).payload).toEqual({ order: '12345678901234567890' })
  })

  test('refusals are errors with code, status, details and request id', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    await agent.kv.put('state', 'x', 1)
    const error = await failureOf(agent.kv.put('state', 'x', 2, { cas_version: 7 }))
    expect(hasCode(error, 'VERSION_MISMATCH')).toBe(true)
    expect(hasCode(error, 'KEY_NOT_FOUND')).toBe(false)
    expect(error).toMatchObject({
      name: 'WaystationError',
      code: 'VERSION_MISMATCH',
      status: 409,
      details: { current_version: 1 },
      request_id: expect.stringMatching(/^req_/),
      message: 'VERSION_MISMATCH: The stored version is a different one.',
    })
  })

  test('errors are JSON with their message, also inside a value', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    await agent.kv.put('state', 'x', 1)
    const error = await failureOf(agent.kv.put('state', 'x', 2, { cas_version: 7 }))
    const as_json = {
      name: 'WaystationError',
      message: 'VERSION_MISMATCH: The stored version is a different one.',
      code: 'VERSION_MISMATCH',
      status: 409,
      details: { current_version: 1 },
      request_id: (error as WaystationError).request_id,
      next: expect.stringMatching(/^Read the /),
    }
    expect(JSON.parse(JSON.stringify(error))).toEqual(as_json)
    const { id } = await agent.dlq.create({ payload: { cause: error }, error: 'e' })
    expect((await agent.dlq.get(id)).payload).toEqual({ cause: as_json })
    expect(JSON.parse(JSON.stringify(new NotDone('no funds', { retry: false })))).toMatchObject({
      name: 'NotDone',
      message: 'no funds',
    })
    const unheard = new WaystationNetworkError(new Error('refused'), false, 'http://127.0.0.1:1')
    expect(JSON.parse(JSON.stringify(unheard))).toEqual({
      name: 'WaystationNetworkError',
      message: unheard.message,
      may_have_arrived: false,
      url: 'http://127.0.0.1:1',
    })
  })

  test('lists go over all pages, and over none before they are read', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    for (let n = 1; n <= 5; n++) await agent.audit.append({ action: 'step', metadata: { n } })
    const list = agent.audit.list({ action: 'step', limit: 2 })
    expect((await all(list)).map(({ seq }) => seq)).toEqual([5, 4, 3, 2, 1])
    expect((await all(list.pages())).map(({ items }) => items.length)).toEqual([2, 2, 1])
    const first = await list.page()
    expect(first.items.map(({ seq }) => seq)).toEqual([5, 4])
    const rest = agent.audit.list({ limit: 200, cursor: first.next_cursor! })
    expect((await all(rest)).map(({ seq }) => seq)).toEqual([3, 2, 1])
  })

  test('walks through agents, approval keys, schedules, checkpoints, dead letters, tenants and health', async () => {
    const tenant = await service.signUp()
    const { admin, agent, approval, cron } = await clientsOf(service, tenant)
    await admin.agents.create({ name: 'helper', description: 'helps' })
    expect((await all(admin.agents.list())).map(({ agent_id }) => agent_id).toSorted()).toEqual([
      'agent-one',
      'helper',
    ])
    expect(
      (await admin.agents.rotateKey('helper', { grace_seconds: 60 })).previous_key_expires_at,
    ).toBeString()
    expect(await admin.agents.delete('helper')).toBeUndefined()
    const { approval_key_id } = await admin.approvalKeys.create({ label: 'ada' })
    expect(await all(admin.approvalKeys.list())).toHaveLength(2)
    await admin.approvalKeys.delete(approval_key_id)

    const callback_url = 'http://127.0.0.1:9/'
    const schedule = await agent.schedules.create({
      callback_url,
      callback_payload: 1,
      fire_at: '2030-01-01T00:00:00Z',
    })
    expect(
      (await agent.schedules.update(schedule.id, { callback_payload: null })).callback_payload,
    ).toBeNull()
    expect(await all(agent.schedules.attempts(schedule.id))).toEqual([])
    await agent.schedules.cancel(schedule.id)
    expect((await all(agent.schedules.list({ status: 'cancelled' })))[0]).toMatchObject({ id: schedule.id })

    const asked = await agent.checkpoints.create({ title: 'Refund?', callback_url, timeout_seconds: 3600 })
    const approved = await approval.checkpoints.approve(asked.id, { reason: 'fine' })
    expect(approved).toMatchObject({ status: 'approved', reason: 'fine' })
    expect(await agent.checkpoints.waitFor(asked.id)).toMatchObject({ status: 'approved' })
    const other = await agent.checkpoints.create({ title: 'Ship?', callback_url })
    expect(await admin.checkpoints.reject(other.id)).toMatchObject({
      status: 'rejected',
      resolved_by: 'admin',
    })
    const third = await agent.checkpoints.create({ title: 'Or not?', callback_url })
    expect(await agent.checkpoints.cancel(third.id)).toBeUndefined()

    const letter = await agent.dlq.create({ payload: [1], error: 'boom', lock_seconds: 60 })
    const claimed = await agent.dlq.claim(letter.id)
    const { lock_token } = claimed
    expect(claimed).toMatchObject({ status: 'claimed', payload: [1] })
    expect((await agent.dlq.extend(letter.id, { lock_token, lock_seconds: 90 })).lock_token).toBe(lock_token)
    expect(await agent.dlq.claimOldest()).toBeNull()
    expect(await agent.dlq.fail(letter.id, { lock_token })).toMatchObject({ status: 'archived' })
    expect(await all(agent.dlq.list({ status: 'archived' }))).toHaveLength(1)
    expect(await agent.dlq.delete(letter.id)).toBeUndefined()

    expect(await cron.tick()).toMatchObject({ tenants_purged: 0 })
    expect(await admin.health.live()).toEqual({ status: 'alive' })
    expect(await admin.health.ready({ verbose: true })).toMatchObject({
      status: 'ready',
      engine: service.engine,
    })
    expect(await admin.openapi()).toEqual({ ...openapi, servers: [{ url: service.url }] })
    expect(await admin.tenants.delete(tenant.tenant_id, { confirm: 'DELETE ALL DATA' })).toMatchObject({
      status: 'pending_deletion',
    })
    expect(await admin.tenants.restore(tenant.tenant_id)).toMatchObject({ status: 'active' })
    expect((await admin.tenants.rotateSigningSecret(tenant.tenant_id)).signing_secret).toStartWith('whsec_')
    expect((await admin.tenants.rotateKey(tenant.tenant_id)).admin_key).toStartWith('svc_adm_')
  })
})
