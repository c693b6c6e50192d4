import { describe, expect, test } from 'bun:test'
import { unhurried } from '../../test/support/patience.ts'
import { type Answer, forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as kv from './sweep.ts'

const INSERT = unnamedAcrossTenants(
  'test.insert',
  `insert into kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)
   values (:tenant_id, :namespace, :key, :value, 1, 1, :counted, :expires_at, 0)`,
)

/** A key without its quota; a dead one is a tombstone. */
async function plant(
  service: TestService,
  tenant_id: string,
  keys: [namespace: string, key: string][],
  dead = false,
) {
  const row = dead ? { value: null, counted: 0, expires_at: 0 } : { value: '1', counted: 1, expires_at: null }
  await service.app.db.write(unhurried, async (tx) => {
    for (const [namespace, key] of keys) await tx.run(INSERT, { tenant_id, namespace, key, ...row })
  })
}

function viewOf(service: TestService, { admin_key, api_key }: TestTenant) {
  return {
    namespaces: (query = '') => service.ask('GET', `/v1/namespaces${query}`, { key: admin_key }),
    keys: (path: string) => service.ask('GET', `/v1/namespaces/${path}`, { key: admin_key }),
    get: (namespace: string, key: string, headers: Record<string, string> = {}) =>
      service.ask('GET', `/v1/namespaces/${namespace}/keys/${encodeURIComponent(key)}`, {
        key: admin_key,
        headers,
      }),
    put: (name: string, body: unknown = { value: 1 }, key = api_key) =>
      service.ask('PUT', `/v1/kv/${name}`, { key, body }),
  }
}

function namesOf({ body }: Answer): string[] {
  return body.items.map(({ namespace }: { namespace: string }) => namespace)
}

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code]
}

forEachService('GET /v1/namespaces', (service) => {
  /** Every name, page by page, and how many pages that took. */
  async function paged({ namespaces }: ReturnType<typeof viewOf>, limit: number) {
    const names: string[] = []
    for (let cursor: string | null = '', pages = 1; ; pages++) {
      const { body }: Answer = await namespaces(`?limit=${limit}${cursor && `&cursor=${cursor}`}`)
      names.push(...body.items.map(({ namespace }: { namespace: string }) => namespace))
      cursor = body.next_cursor
      if (cursor === null) return { names, pages }
    }
  }

  test('lists those with a key in bytewise order, private ones with their agent', async () => {
    const tenant = await service.signUp()
    const view = viewOf(service, tenant)
    const two = await service.addAgent(tenant.admin_key, 'agent-two')
    for (const name of ['state/a', 'state/b', 'State/a', '__agent.agent-one/x', 'a.b:c-d/x'])
      await view.put(name)
    await view.put('__agent.agent-two/x', { value: 1 }, two.api_key)
    const seen = await view.namespaces()
    expect([seen.status, seen.body]).toEqual([
      200,
      {
        items: [
          { namespace: 'State', agent_id: null, events: false },
          { namespace: '__agent.agent-one', agent_id: 'agent-one', events: false },
          { namespace: '__agent.agent-two', agent_id: 'agent-two', events: false },
          { namespace: 'a.b:c-d', agent_id: null, events: false },
          { namespace: 'state', agent_id: null, events: false },
        ],
        next_cursor: null,
      },
    ])
  })

  test('lists to an agent those that it may read: shared ones and its own, page by page', async () => {
    const tenant = await service.signUp()
    const names = [
      'Z',
      '__',
      '__agent.agent-nine',
      '__agent.agent-one',
      '__agent.agent-two',
      '__rl',
      '_a',
      'b',
      '~',
    ]
    const keys = names.map((name): [string, string] => [name, 'x'])
    await plant(service, tenant.tenant_id, keys)
    const as = (api_key: string) => viewOf(service, { ...tenant, admin_key: api_key })
    const readable = ['Z', '__agent.agent-one', '_a', 'b', '~']
    expect((await as(tenant.api_key).namespaces()).body).toEqual({
      items: readable.map((namespace) => ({
        namespace,
        agent_id: namespace.startsWith('__') ? 'agent-one' : null,
        events: false,
      })),
      next_cursor: null,
    })
    for (const limit of [1, 2, 5]) expect((await paged(as(tenant.api_key), limit)).names).toEqual(readable)
    const newcomer = await service.addAgent(tenant.admin_key, 'zoe')
    expect((await paged(as(newcomer.api_key), 2)).names).toEqual(['Z', '_a', 'b', '~'])
    const a_name_each = await counted(() => as(newcomer.api_key).namespaces())
    expect(a_name_each).toBe(7)
  })

  test('an agent passes the private namespaces of others in a step, however many there are', async () => {
    const tenant = await service.signUp()
    const keys = Array.from({ length: 1_200 }, (_, n): [string, string] => [`__agent.a${1_000 + n}`, 'x'])
    await plant(service, tenant.tenant_id, [...keys, ['__agent.agent-one', 'x'], ['late', 'x']])
    const view = viewOf(service, { ...tenant, admin_key: tenant.api_key })
    await view.namespaces()
    expect(
      await counted(async () => {
        const { body } = await view.namespaces()
        expect([body.items.length, body.next_cursor]).toEqual([2, null])
      }),
    ).toBe(4)
  })

  async function counted(work: () => Promise<unknown>): Promise<number> {
    let count = 0
    service.app.db.onStatement((name) => {
      if (name === 'kv.scan') count++
    })
    await work()
    service.app.db.onStatement(null)
    return count
  }

  test('of a tenant without keys is empty, whatever another one has', async () => {
    await viewOf(service, await service.signUp()).put('state/x')
    const { body } = await viewOf(service, await service.signUp()).namespaces()
    expect(body).toEqual({ items: [], next_cursor: null })
  })

  test('leaves out what is deleted, expired, swept, and the counters of the rate limiter', async () => {
    const tenant = await service.signUp()
    const view = viewOf(service, tenant)
    await view.put('deleted/x')
    await service.ask('DELETE', '/v1/kv/deleted/x', { key: tenant.api_key })
    await view.put('expired/x', { value: 1, ttl_seconds: 1 })
    await view.put('expired/y', { value: 1, ttl_seconds: 1 })
    await view.put('short/a', { value: 1, ttl_seconds: 1 })
    await view.put('short/b')
    await service.ask('POST', '/api/rate-limit/check', {
      key: tenant.api_key,
      body: { key: 'k', limit: 1, window: 60 },
    })
    expect(namesOf(await view.namespaces())).toEqual(['expired', 'short'])
    service.clock.advance(second_ms)
    expect(namesOf(await view.namespaces())).toEqual(['short'])
    await kv.sweep(service.app.db, service.clock.now())
    expect(namesOf(await view.namespaces())).toEqual(['short'])
  })

  test.each([1, 2, 3, 7, 8])('pages of %p have no repeat and no gap', async (limit) => {
    const tenant = await service.signUp()
    const names = ['a', 'a-', 'a.b', 'a0', 'aa', 'ab', 'b']
    await plant(
      service,
      tenant.tenant_id,
      names.flatMap((name): [string, string][] => [
        [name, '\u{10ffff}'],
        [name, '!'],
      ]),
    )
    const seen = await paged(viewOf(service, tenant), limit)
    expect(seen).toEqual({ names, pages: Math.max(1, Math.ceil(names.length / limit)) })
  })

  test('a page looks at a little over 500 dead keys at most, and the next one goes on behind them', async () => {
    const tenant = await service.signUp()
    const view = viewOf(service, tenant)
    const dead = Array.from({ length: 900 }, (_, n): [string, string] => ['graves', `k${n}`])
    await plant(service, tenant.tenant_id, dead, true)
    await plant(service, tenant.tenant_id, [
      ['early', 'x'],
      ['graves', 'z'],
      ['late', 'x'],
    ])
    const first = await view.namespaces()
    expect(namesOf(first)).toEqual(['early'])
    expect(first.body.next_cursor).toEqual(expect.any(String))
    const second = await view.namespaces(`?cursor=${first.body.next_cursor}`)
    expect([namesOf(second), second.body.next_cursor]).toEqual([['graves', 'late'], null])
  })

  test('costs a statement for each name and one more, however many keys they hold', async () => {
    const tenant = await service.signUp()
    const keys = Array.from({ length: 300 }, (_, n): [string, string] => [`n${n % 3}`, `k${n}`])
    await plant(service, tenant.tenant_id, keys)
    const { namespaces } = viewOf(service, tenant)
    await namespaces()
    const names: string[] = []
    service.app.db.onStatement((name) => name === 'kv.scan' && names.push(name))
    expect(namesOf(await namespaces())).toEqual(['n0', 'n1', 'n2'])
    service.app.db.onStatement(null)
    expect(names).toHaveLength(4)
  })
})

forEachService('GET /v1/namespaces/{namespace}/keys', (service) => {
  test('lists keys as /v1/kv does, and a private namespace too', async () => {
    const tenant = await service.signUp()
    const view = viewOf(service, tenant)
    for (const key of ['b/2', 'a/1', 'b/1']) await view.put(`state/${encodeURIComponent(key)}`)
    await view.put('__agent.agent-one/mine', { value: 1, ttl_seconds: 60 })
    const list = await view.keys('state/keys?prefix=b/&limit=1')
    const as_agent = await service.ask('GET', '/v1/kv/state?prefix=b/&limit=1', { key: tenant.api_key })
    expect(list.body.items).toEqual(as_agent.body.items)
    expect(list.body.items).toEqual([
      { key: 'b/1', version: 1, expires_at: null, updated_at: iso(service.clock.now()) },
    ])
    const next = await view.keys(`state/keys?prefix=b/&cursor=${list.body.next_cursor}`)
    expect(next.body.items.map(({ key }: { key: string }) => key)).toEqual(['b/2'])
    expect((await view.keys('__agent.agent-one/keys')).body.items).toEqual([
      {
        key: 'mine',
        version: 1,
        expires_at: iso(service.clock.now() + 60 * second_ms),
        updated_at: iso(service.clock.now()),
      },
    ])
    expect((await view.keys('nothing/keys')).body).toEqual({ items: [], next_cursor: null })
  })

  test('a key answers as /v1/kv does, byte for byte, with X-Version and ETag', async () => {
    const tenant = await service.signUp()
    const view = viewOf(service, tenant)
    await view.put('state/deep%2Fkey', '{"value": {"n":1e400, "a":1,"a" :2}}')
    const seen = await view.get('state', 'deep/key')
    const as_agent = await service.ask('GET', '/v1/kv/state/deep%2Fkey', { key: tenant.api_key })
    expect([seen.status, seen.text]).toEqual([200, as_agent.text])
    expect(seen.text).toContain('{"n":1e400, "a":1,"a" :2}')
    expect([seen.headers.get('etag'), seen.headers.get('x-version')]).toEqual(['"1"', '1'])
    const unchanged = await view.get('state', 'deep/key', { 'if-none-match': '"1"' })
    expect([unchanged.status, unchanged.text]).toEqual([304, ''])
    expect(refusal(await view.get('state', 'deep/key', { 'if-match': '2' }))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
    expect(refusal(await view.get('state', 'none'))).toEqual([404, 'KEY_NOT_FOUND'])
  })

  describe('is closed', () => {
    test.each(['__rl', '__', '__agent', '__system'])('to the reserved namespace %s', async (namespace) => {
      const view = viewOf(service, await service.signUp())
      const answers = [await view.keys(`${namespace}/keys`), await view.get(namespace, 'x')]
      expect(answers.map(refusal)).toEqual(Array(2).fill([403, 'NAMESPACE_FORBIDDEN']))
    })

    test('to reserved keys of any namespace', async () => {
      const view = viewOf(service, await service.signUp())
      const answers = [await view.keys('state/keys?prefix=__rl:'), await view.get('state', '__rl:x')]
      expect(answers.map(refusal)).toEqual(Array(2).fill([403, 'NAMESPACE_FORBIDDEN']))
    })

    test('to agents, as /v1/kv stays closed to the admin key', async () => {
      const tenant = await service.signUp()
      await viewOf(service, tenant).put('state/x')
      const answers = [
        await service.ask('GET', '/v1/namespaces/state/keys', { key: tenant.api_key }),
        await service.ask('GET', '/v1/namespaces/state/keys/x', { key: tenant.api_key }),
        await service.ask('GET', '/v1/kv/state', { key: tenant.admin_key }),
        await service.ask('GET', '/v1/kv/state/x', { key: tenant.admin_key }),
      ]
      expect(answers.map(refusal)).toEqual(Array(4).fill([403, 'FORBIDDEN']))
    })
  })
})
