import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Answer,
  connectInThisBlock,
  forEachRacedService,
  type TestService,
} from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { default_plans } from '../features.ts'
import * as kv from './sweep.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body?.error?.details?.issues ?? []
  return [status, body?.error?.code, ...issues.map(({ path }) => path)]
}

const absent = [404, 'KEY_NOT_FOUND', undefined]
const forbidden = [403, 'NAMESPACE_FORBIDDEN', undefined]

/** One agent's view of the store. */
function storeOf(service: TestService, api_key: string) {
  const path = (name: string) => `/v1/kv/${name}`
  return {
    get: (name: string, headers: Record<string, string> = {}) =>
      service.ask('GET', path(name), { key: api_key, headers }),
    put: (name: string, body: unknown = { value: 1 }, headers: Record<string, string> = {}) =>
      service.ask('PUT', path(name), { key: api_key, headers, body }),
    delete: (name: string, headers: Record<string, string> = {}) =>
      service.ask('DELETE', path(name), { key: api_key, headers }),
    list: (query: string) => service.ask('GET', path(query), { key: api_key }),
  }
}

async function newStore(service: TestService) {
  return storeOf(service, (await service.signUp()).api_key)
}

function keysOf({ body }: Answer): string[] {
  return body.items.map(({ key }: { key: string }) => key)
}

forEachRacedService('KV', (service) => {
  const sweep = () => kv.sweep(service.app.db, service.clock.now())

  describe('PUT and GET', () => {
    test('a put answers namespace, key, version and expires_at, and X-Version', async () => {
      const store = await newStore(service)
      const put = await store.put('state/last-run', { value: { a: 1 } })
      expect(put.status).toBe(200)
      expect(put.body).toEqual({ namespace: 'state', key: 'last-run', version: 1, expires_at: null })
      expect(put.headers.get('x-version')).toBe('1')
    })

    test('a get answers namespace, key, value, version and times, with X-Version and ETag', async () => {
      const store = await newStore(service)
      const created_at = service.clock.now()
      await store.put('state/last-run', { value: 'old' })
      service.clock.advance(5)
      await store.put('state/last-run', { value: { a: 1 }, ttl_seconds: 60 })
      service.clock.advance(10)
      const got = await store.get('state/last-run')
      expect(got.status).toBe(200)
      expect(got.body).toEqual({
        namespace: 'state',
        key: 'last-run',
        value: { a: 1 },
        version: 2,
        expires_at: iso(created_at + 5 + 60_000),
        updated_at: iso(created_at + 5),
      })
      expect(got.headers.get('x-version')).toBe('2')
      expect(got.headers.get('etag')).toBe('"2"')
      expect(got.headers.get('cache-control')).toBe('no-store')
    })

    test('a delete answers 204 without a body; then the key is absent', async () => {
      const store = await newStore(service)
      await store.put('state/gone')
      const deleted = await store.delete('state/gone')
      expect([deleted.status, deleted.text]).toEqual([204, ''])
      expect(refusal(await store.get('state/gone'))).toEqual(absent)
      expect(refusal(await store.delete('state/gone'))).toEqual(absent)
    })

    test('a namespace is shared by the agents of the tenant, and by nobody else', async () => {
      const tenant = await service.signUp()
      const one = storeOf(service, tenant.api_key)
      const two = storeOf(service, (await service.addAgent(tenant.admin_key, 'agent-two')).api_key)
      const stranger = await newStore(service)
      await one.put('common/key', { value: 'one' })
      expect((await two.get('common/key')).body.value).toBe('one')
      expect((await two.put('common/key', { value: 'two' })).body.version).toBe(2)
      expect((await one.get('common/key')).body.value).toBe('two')
      expect(refusal(await stranger.get('common/key'))).toEqual(absent)
      expect(refusal(await stranger.delete('common/key'))).toEqual(absent)
      expect((await stranger.put('common/key')).body.version).toBe(1)
      expect(keysOf(await stranger.list('common'))).toEqual(['key'])
      expect((await one.get('common/key')).body.version).toBe(2)
    })

    test('the same key in two namespaces is two keys', async () => {
      const store = await newStore(service)
      await store.put('one/key', { value: 1 })
      await store.put('two/key', { value: 2 })
      await store.delete('one/key')
      expect((await store.get('one/key')).status).toBe(404)
      expect((await store.get('two/key')).body.value).toBe(2)
    })
  })

  describe('Values', () => {
    test.each([
      'null',
      'true',
      'false',
      '0',
      '-0',
      '""',
      '[]',
      '{}',
      '1e400',
      '123456789012345678901234567890',
      '0.1000000000000000055511151231257827',
      '{"b":1,"a":2,"b":3}',
      '{ "z" : [ 1 ,\t2 ],\n "a" : { } }',
      '{"__proto__":{"x":1},"constructor":null}',
      '"\\u0000 \\ud800 \\/ \\u00e9"',
      '"é \u{1f600}"',
    ])('%s comes back as the exact text that came in', async (text) => {
      const store = await newStore(service)
      expect((await store.put('v/k', `{ "value" :  ${text}  , "ttl_seconds" : null }`)).status).toBe(200)
      const got = await store.get('v/k')
      expect(got.text).toStartWith(`{"namespace":"v","key":"k","value":${text},"version":1,`)
    })

    test('value null is a value, and no value is 400', async () => {
      const store = await newStore(service)
      await store.put('v/null', { value: null })
      expect((await store.get('v/null')).body.value).toBeNull()
      expect(broken(await store.put('v/none', {}))).toEqual([400, 'VALIDATION_FAILED', '/value'])
      expect(refusal(await store.get('v/none'))).toEqual(absent)
    })

    test.each([
      ['256 KiB', `"${'x'.repeat(262_142)}"`, 200],
      ['one byte more', `"${'x'.repeat(262_143)}"`, 413],
      ['256 KiB of two-byte characters', `"${'é'.repeat(131_071)}"`, 200],
      ['one byte more of these', `"${'é'.repeat(131_071)}x"`, 413],
      ['256 KiB with white space around', `    "${'x'.repeat(262_142)}"    `, 200],
    ])('a value of %s answers its status', async (_, text, status) => {
      const store = await newStore(service)
      const answer = await store.put('v/large', `{"value":${text}}`)
      expect([answer.status, answer.body.error?.code]).toEqual([
        status,
        status === 200 ? undefined : 'PAYLOAD_TOO_LARGE',
      ])
      const got = await store.get('v/large')
      expect(got.body.value?.length).toBe(status === 200 ? JSON.parse(text).length : undefined)
    })

    test('a body nests at most 64 levels, itself the first', async () => {
      const store = await newStore(service)
      const nested = (levels: number) => `{"value":${'['.repeat(levels)}${']'.repeat(levels)}}`
      expect((await store.put('v/deep', nested(63))).status).toBe(200)
      expect(broken(await store.put('v/deep', nested(64)))).toEqual([400, 'VALIDATION_FAILED', ''])
      expect((await store.get('v/deep')).body.version).toBe(1)
    })
  })

  describe('Names', () => {
    connectInThisBlock(service) // Bun's server decodes them
    test.each([
      ['a', 'a'],
      ['_a', '_a'],
      ['st%61te', 'state'],
      [`a${'x'.repeat(63)}`, `a${'x'.repeat(63)}`],
      ['a.b:c-d_e', 'a.b:c-d_e'],
      ['a%3Ab', 'a:b'],
    ])('namespace %s is taken', async (sent, namespace) => {
      const store = await newStore(service)
      expect((await store.put(`${sent}/k`)).body.namespace).toBe(namespace)
      expect(keysOf(await store.list(namespace))).toEqual(['k'])
    })

    test.each(['-a', '.a', ':a', 'a%20b', 'a%2Fb', '%C3%A4', 'a%00', '%FF', '%ZZ', `a${'x'.repeat(64)}`])(
      'namespace %s is refused by every verb',
      async (namespace) => {
        const store = await newStore(service)
        const answers = [
          await store.get(`${namespace}/k`),
          await store.put(`${namespace}/k`),
          await store.delete(`${namespace}/k`),
          await store.list(namespace),
        ]
        expect(answers.map(broken)).toEqual(Array(4).fill([400, 'VALIDATION_FAILED', 'path.namespace']))
      },
    )

    test.each([
      ['one byte', 'k', 'k'],
      ['an escaped slash', 'a%2Fb', 'a/b'],
      ['an escaped percent sign, decoded once', 'a%252Fb', 'a%2Fb'],
      ['a plus sign, which is not a space', 'a+b', 'a+b'],
      ['a space', 'a%20b', 'a b'],
      ['a question mark and a number sign', 'a%3Fb%23c', 'a?b#c'],
      ['quotes and a backslash', '%22%27%5C', '"\'\\'],
      ['U+FFFD that was really sent', 'a%EF%BF%BDb', 'a\ufffdb'],
      ['three dots', '...', '...'],
      ['512 bytes', 'x'.repeat(512), 'x'.repeat(512)],
      ['512 bytes of two-byte characters', '%C3%A9'.repeat(256), 'é'.repeat(256)],
      ['512 bytes of four-byte characters', '%F0%9F%98%80'.repeat(128), '\u{1f600}'.repeat(128)],
    ])('a key of %s is kept after one percent-decoding', async (_, sent, key) => {
      const store = await newStore(service)
      const put = await store.put(`k/${sent}`, { value: key })
      expect([put.status, put.body.key]).toEqual([200, key])
      const got = await store.get(`k/${sent}`)
      expect([got.body.key, got.body.value]).toEqual([key, key])
      expect(keysOf(await store.list('k'))).toEqual([key])
      expect((await store.delete(`k/${sent}`)).status).toBe(204)
    })

    test.each([
      ['513 bytes', 'x'.repeat(513)],
      ['513 bytes, 257 characters', `${'%C3%A9'.repeat(256)}a`],
      ['516 bytes, 129 characters', '%F0%9F%98%80'.repeat(129)],
      ['NUL', '%00'],
      ['a tab', 'a%09b'],
      ['DEL', '%7F'],
      ['U+0085', '%C2%85'],
      ['half an escape', 'a%2'],
      ['an escape of no hexadecimal digits', '%ZZ'],
      ['a byte that is not UTF-8', '%FF'],
      ['half a character', '%C3'],
      ['an overlong form', '%C0%80'],
      ['a surrogate', '%ED%A0%80'],
      ['past U+10FFFF', '%F4%90%80%80'],
      ['a broken byte beside a real U+FFFD', '%FF%EF%BF%BD'],
    ])('a key of %s is refused by every verb', async (_, key) => {
      const store = await newStore(service)
      const answers = [
        await store.get(`k/${key}`),
        await store.put(`k/${key}`),
        await store.delete(`k/${key}`),
      ]
      expect(answers.map(broken)).toEqual(Array(3).fill([400, 'VALIDATION_FAILED', 'path.key']))
      expect(keysOf(await store.list('k'))).toEqual([])
    })

    test('keys are bytes: composed and decomposed accents, and cases, are different keys', async () => {
      const store = await newStore(service)
      const keys = ['\u00e9', 'e\u0301', '\u00c9', 'e']
      for (const key of keys) await store.put(`k/${encodeURIComponent(key)}`, { value: key })
      for (const key of keys) {
        const got = await store.get(`k/${encodeURIComponent(key)}`)
        expect([got.body.key, got.body.value, got.body.version]).toEqual([key, key, 1])
      }
    })
  })

  describe('Reserved names', () => {
    test.each(['__', '__x', '__agent', '__agent.', '__agent.agent-two', '__agent.agent-one.x', '__rl'])(
      'namespace %s answers 403 NAMESPACE_FORBIDDEN, on reads and deletes too',
      async (namespace) => {
        const tenant = await service.signUp()
        await service.addAgent(tenant.admin_key, 'agent-two')
        const store = storeOf(service, tenant.api_key)
        const answers = [
          await store.get(`${namespace}/k`),
          await store.put(`${namespace}/k`),
          await store.delete(`${namespace}/k`),
          await store.list(namespace),
          await store.list(`${namespace}?prefix=k`),
        ]
        expect(answers.map(refusal)).toEqual(Array(5).fill(forbidden))
      },
    )

    test('__agent.<agent_id> is private to that agent', async () => {
      const tenant = await service.signUp()
      const one = storeOf(service, tenant.api_key)
      const two = storeOf(service, (await service.addAgent(tenant.admin_key, 'agent-two')).api_key)
      expect((await one.put('__agent.agent-one/secret', { value: 7 })).status).toBe(200)
      expect((await one.get('__agent.agent-one/secret')).body.value).toBe(7)
      expect(keysOf(await one.list('__agent.agent-one'))).toEqual(['secret'])
      expect(refusal(await two.get('__agent.agent-one/secret'))).toEqual(forbidden)
      expect(refusal(await two.delete('__agent.agent-one/secret'))).toEqual(forbidden)
      expect(refusal(await two.list('__agent.agent-one'))).toEqual(forbidden)
      expect((await two.put('__agent.agent-two/secret')).status).toBe(200)
      expect((await one.delete('__agent.agent-one/secret')).status).toBe(204)
    })

    test.each(['state', '__agent.agent-one'])(
      'keys that start with __rl: are reserved in %s',
      async (namespace) => {
        const store = await newStore(service)
        const answers = [
          await store.get(`${namespace}/__rl:a`),
          await store.put(`${namespace}/__rl%3Aa`),
          await store.delete(`${namespace}/__rl:`),
          await store.list(`${namespace}?prefix=__rl:`),
          await store.list(`${namespace}?prefix=__rl%3Aabc`),
        ]
        expect(answers.map(refusal)).toEqual(Array(5).fill(forbidden))
      },
    )

    test('their neighbours are not', async () => {
      const store = await newStore(service)
      const neighbours = ['__rl', '__rl;', '__rk:a', '__rm', 'x__rl:']
      for (const key of neighbours) expect((await store.put(`state/${key}`)).status).toBe(200)
      expect(keysOf(await store.list('state')).toSorted()).toEqual(neighbours.toSorted())
      expect(keysOf(await store.list('state?prefix=__rl'))).toEqual(['__rl', '__rl;'])
    })
  })

  describe('If-Match', () => {
    const naming = ['3', '"3"', '*', '1, 3', '"1", "3"']
    const not_naming = ['2', '"2"', '33', 'W/"3"', '1, 2', 'garbage', '""', '"*"', '3.0']

    async function thirdVersion() {
      const store = await newStore(service)
      for (const value of [1, 2, 3]) await store.put('m/k', { value })
      return store
    }

    test.each(naming)('%s names version 3: get, put and delete go on', async (header) => {
      const headers = { 'if-match': header }
      const store = await thirdVersion()
      expect((await store.get('m/k', headers)).body.value).toBe(3)
      const put = await store.put('m/k', { value: 4 }, headers)
      expect([put.status, put.body.version]).toEqual([200, 4])
      const other = await thirdVersion()
      expect((await other.delete('m/k', headers)).status).toBe(204)
      expect((await other.get('m/k')).status).toBe(404)
    })

    test.each(not_naming)(
      '%s does not: 412 VERSION_MISMATCH for all three, and nothing changes',
      async (header) => {
        const headers = { 'if-match': header }
        const store = await thirdVersion()
        const answers = [
          await store.get('m/k', headers),
          await store.put('m/k', { value: 4 }, headers),
          await store.delete('m/k', headers),
        ]
        expect(answers.map(refusal)).toEqual(Array(3).fill([412, 'VERSION_MISMATCH', { current_version: 3 }]))
        expect((await store.get('m/k')).body.version).toBe(3)
      },
    )

    test.each(['*', '1', '"1"', '0', 'garbage'])(
      'of an absent key (%s): get and delete answer 404 first, put 412',
      async (header) => {
        const headers = { 'if-match': header }
        const store = await newStore(service)
        expect(refusal(await store.get('m/k', headers))).toEqual(absent)
        expect(refusal(await store.delete('m/k', headers))).toEqual(absent)
        expect(refusal(await store.put('m/k', { value: 1 }, headers))).toEqual([
          412,
          'VERSION_MISMATCH',
          { current_version: null },
        ])
        expect(refusal(await store.get('m/k'))).toEqual(absent)
      },
    )

    test('a deleted or expired key is absent to it, whatever version it had', async () => {
      const store = await newStore(service)
      await store.put('m/deleted')
      await store.delete('m/deleted')
      await store.put('m/expired', { value: 1, ttl_seconds: 1 })
      service.clock.advance(1_000)
      for (const name of ['m/deleted', 'm/expired']) {
        for (const header of ['1', '*']) {
          const put = await store.put(name, { value: 2 }, { 'if-match': header })
          expect(refusal(put)).toEqual([412, 'VERSION_MISMATCH', { current_version: null }])
          expect(refusal(await store.delete(name, { 'if-match': header }))).toEqual(absent)
        }
      }
    })
  })

  describe('If-None-Match', () => {
    test.each(['"2"', '2', 'W/"2"', '*', '"1", W/"2"'])(
      '%s names version 2: 304 with the headers of the 200, without a body',
      async (header) => {
        const store = await newStore(service)
        await store.put('n/k')
        await store.put('n/k')
        const unchanged = await store.get('n/k', { 'if-none-match': header })
        expect([unchanged.status, unchanged.text]).toEqual([304, ''])
        expect(unchanged.headers.get('x-version')).toBe('2')
        expect(unchanged.headers.get('etag')).toBe('"2"')
        expect(unchanged.headers.get('x-request-id')).toMatch(/^req_/)
      },
    )

    test('a 304 says of caching what the 200 would (RFC 9110 section 15.4.5)', async () => {
      const store = await newStore(service)
      await store.put('n/k')
      const unchanged = await store.get('n/k', { 'if-none-match': '*' })
      expect([unchanged.status, unchanged.headers.get('cache-control')]).toEqual([304, 'no-store'])
    })

    test.each(['"1"', '1', 'W/"1"', '"22"', 'garbage', '""'])('%s does not: 200', async (header) => {
      const store = await newStore(service)
      await store.put('n/k')
      await store.put('n/k', { value: 'second' })
      const got = await store.get('n/k', { 'if-none-match': header })
      expect([got.status, got.body.value]).toEqual([200, 'second'])
    })

    test('an absent key is 404, and If-Match is judged first', async () => {
      const store = await newStore(service)
      expect(refusal(await store.get('n/none', { 'if-none-match': '*' }))).toEqual(absent)
      await store.put('n/k')
      const both = await store.get('n/k', { 'if-match': '7', 'if-none-match': '"1"' })
      expect(refusal(both)).toEqual([412, 'VERSION_MISMATCH', { current_version: 1 }])
    })
  })

  describe('cas_version', () => {
    test('of the stored version writes; any other is 409 with current_version and no change', async () => {
      const store = await newStore(service)
      await store.put('c/k', { value: 'one' })
      const won = await store.put('c/k', { value: 'two', cas_version: 1 })
      expect([won.status, won.body.version, won.headers.get('x-version')]).toEqual([200, 2, '2'])
      for (const cas_version of [0, 1, 3, 9_007_199_254_740_991]) {
        const lost = await store.put('c/k', { value: 'three', cas_version })
        expect(refusal(lost)).toEqual([409, 'VERSION_MISMATCH', { current_version: 2 }])
      }
      expect((await store.get('c/k')).body).toMatchObject({ value: 'two', version: 2 })
      expect((await store.put('c/k', '{"value": 3, "cas_version": 2.0}')).body.version).toBe(3)
    })

    test('0 means only if absent: never made, deleted, expired, swept', async () => {
      const store = await newStore(service)
      expect((await store.put('c/k', { value: 1, cas_version: 0 })).body.version).toBe(1)
      await store.delete('c/k')
      expect((await store.put('c/k', { value: 1, cas_version: 0, ttl_seconds: 1 })).body.version).toBe(2)
      service.clock.advance(1_000)
      expect((await store.put('c/k', { value: 1, cas_version: 0, ttl_seconds: 1 })).body.version).toBe(3)
      service.clock.advance(1_000)
      await sweep()
      expect((await store.put('c/k', { value: 1, cas_version: 0 })).body.version).toBe(4)
      const present = await store.put('c/k', { value: 1, cas_version: 0 })
      expect(refusal(present)).toEqual([409, 'VERSION_MISMATCH', { current_version: 4 }])
    })

    test('of an absent key: 409 with current_version null, also when it had that version', async () => {
      const store = await newStore(service)
      const never = await store.put('c/k', { value: 1, cas_version: 1 })
      expect(refusal(never)).toEqual([409, 'VERSION_MISMATCH', { current_version: null }])
      await store.put('c/k', { value: 1 })
      await store.delete('c/k')
      const deleted = await store.put('c/k', { value: 1, cas_version: 1 })
      expect(refusal(deleted)).toEqual([409, 'VERSION_MISMATCH', { current_version: null }])
    })

    test.each(['-1', '1.5', '"1"', 'true', '[]', '1e400'])('%s is not a version', async (text) => {
      const store = await newStore(service)
      const answer = await store.put('c/k', `{"value": 1, "cas_version": ${text}}`)
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/cas_version'])
    })

    test('null counts as absent', async () => {
      const store = await newStore(service)
      await store.put('c/k')
      expect((await store.put('c/k', { value: 2, cas_version: null })).body.version).toBe(2)
    })

    test.each([
      ['*', 2, [200, undefined, undefined]],
      ['2', 2, [200, undefined, undefined]],
      ['*', 1, [409, 'VERSION_MISMATCH', { current_version: 2 }]],
      ['1, 2', 0, [409, 'VERSION_MISMATCH', { current_version: 2 }]],
      ['1', 2, [412, 'VERSION_MISMATCH', { current_version: 2 }]],
      ['1', 1, [412, 'VERSION_MISMATCH', { current_version: 2 }]],
    ] as [string, number, unknown[]][])(
      'together with If-Match both must hold: %s and %d',
      async (header, cas_version, expected) => {
        const store = await newStore(service)
        await store.put('c/k')
        await store.put('c/k')
        const answer = await store.put('c/k', { value: 3, cas_version }, { 'if-match': header })
        expect(refusal(answer)).toEqual(expected)
        expect((await store.get('c/k')).body.version).toBe(expected[0] === 200 ? 3 : 2)
      },
    )
  })

  describe('ttl_seconds', () => {
    test('an expired key is absent at once, everywhere, to the millisecond', async () => {
      const tenant = await service.signUp()
      const store = storeOf(service, tenant.api_key)
      await store.put('t/kept')
      await store.put('t/short', { value: 'x', ttl_seconds: 1 })
      const used = async () =>
        (await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })).body.quota
          .kv_keys.used
      service.clock.advance(999)
      expect((await store.get('t/short')).body.value).toBe('x')
      expect(keysOf(await store.list('t'))).toEqual(['kept', 'short'])
      expect(await used()).toBe(2)
      service.clock.advance(1)
      expect(refusal(await store.get('t/short'))).toEqual(absent)
      expect(refusal(await store.delete('t/short'))).toEqual(absent)
      expect(keysOf(await store.list('t'))).toEqual(['kept'])
      expect(await used()).toBe(1)
    })

    test.each([
      ['1', 1],
      ['60.0', 60],
      ['31536000', 31_536_000],
    ])('%s seconds', async (text, seconds) => {
      const store = await newStore(service)
      const put = await store.put('t/k', `{"value": 1, "ttl_seconds": ${text}}`)
      expect([put.status, put.body.expires_at]).toEqual([200, iso(service.clock.now() + seconds * 1_000)])
      expect((await store.get('t/k')).body.expires_at).toBe(put.body.expires_at)
    })

    test.each(['999999999999', '9007199254740991', '1e300'])(
      'a life of %s seconds ends with the last instant that can be written',
      async (text) => {
        const store = await newStore(service)
        const put = await store.put('t/k', `{"value": 1, "ttl_seconds": ${text}}`)
        expect([put.status, put.body.expires_at]).toEqual([200, '9999-12-31T23:59:59.999Z'])
        expect((await store.get('t/k')).body.expires_at).toBe('9999-12-31T23:59:59.999Z')
      },
    )

    test.each(['0', '-1', '1.5', '"60"', 'true', '{}', '1e400'])('%s is refused', async (text) => {
      const store = await newStore(service)
      const answer = await store.put('t/k', `{"value": 1, "ttl_seconds": ${text}}`)
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/ttl_seconds'])
      expect(refusal(await store.get('t/k'))).toEqual(absent)
    })

    test('a put without it takes the end away; a put with it sets a new one', async () => {
      const store = await newStore(service)
      await store.put('t/k', { value: 1, ttl_seconds: 10 })
      expect((await store.put('t/k', { value: 2 })).body.expires_at).toBeNull()
      service.clock.advance(10_000)
      expect((await store.get('t/k')).body.expires_at).toBeNull()
      const ends = iso(service.clock.now() + 5_000)
      expect((await store.put('t/k', { value: 3, ttl_seconds: 5, cas_version: 2 })).body.expires_at).toBe(
        ends,
      )
      expect((await store.get('t/k')).body.expires_at).toBe(ends)
    })
  })

  describe('Versions', () => {
    test('start at 1, rise by 1 and never repeat, also after delete, expiry and sweep', async () => {
      const store = await newStore(service)
      const version = async (body: object = {}) =>
        (await store.put('v/k', { value: 1, ...body })).body.version
      expect([await version(), await version(), await version({ cas_version: 2 })]).toEqual([1, 2, 3])
      await store.delete('v/k')
      expect(await version({ ttl_seconds: 1 })).toBe(4)
      service.clock.advance(1_000)
      expect(await version({ ttl_seconds: 1 })).toBe(5)
      service.clock.advance(1_000)
      await sweep()
      expect(await version({ ttl_seconds: 1 })).toBe(6)
      service.clock.advance(1_000 + day_ms)
      expect(await version()).toBe(7)
      await store.delete('v/k')
      await sweep()
      service.clock.advance(day_ms - 1)
      await sweep()
      expect(await version()).toBe(8)
      expect((await store.get('v/k')).headers.get('x-version')).toBe('8')
    })

    test('a key created again 24 h later starts above the highest version swept in its tenant', async () => {
      const tenant = await service.signUp()
      const store = storeOf(service, tenant.api_key)
      const stranger = await newStore(service)
      const version = async (name: string) => (await store.put(name)).body.version
      for (const [name, times] of [
        ['v/often', 7],
        ['v/seldom', 3],
        ['v/kept', 2],
      ] as const) {
        for (let i = 0; i < times; i++) await store.put(name)
      }
      await store.delete('v/often')
      await store.delete('v/seldom')
      service.clock.advance(day_ms)
      await sweep()
      expect(await version('v/often')).toBe(8)
      expect(await version('v/seldom')).toBe(8)
      expect(await version('v/new')).toBe(8)
      expect(await version('other/new')).toBe(8)
      expect(await version('v/new')).toBe(9)
      expect(await version('v/kept')).toBe(3)
      expect((await stranger.put('v/often')).body.version).toBe(1)
      const got = await store.get('v/often')
      expect([got.body.version, got.headers.get('x-version'), got.headers.get('etag')]).toEqual([
        8,
        '8',
        '"8"',
      ])
      expect((await store.put('v/often', { value: 1, cas_version: 8 })).body.version).toBe(9)
    })

    test('an expired key leaves its version behind in the same way', async () => {
      const store = await newStore(service)
      for (let i = 0; i < 4; i++) await store.put('v/k', { value: i, ttl_seconds: 1 })
      service.clock.advance(1_000)
      await sweep()
      service.clock.advance(day_ms)
      await sweep()
      expect((await store.put('v/k', { value: 1, cas_version: 0 })).body.version).toBe(5)
    })

    test('a later sweep of lower versions does not lower it', async () => {
      const store = await newStore(service)
      for (let i = 0; i < 5; i++) await store.put('v/high')
      await store.put('v/low')
      await store.delete('v/high')
      service.clock.advance(1)
      await store.delete('v/low')
      service.clock.advance(day_ms - 1)
      await sweep()
      service.clock.advance(1)
      await sweep()
      expect((await store.put('v/next')).body.version).toBe(6)
    })
  })

  describe('List', () => {
    test('answers key, version, expires_at and updated_at in key order, without the expired', async () => {
      const store = await newStore(service)
      const now = service.clock.now()
      await store.put('l/b', { value: 1, ttl_seconds: 60 })
      await store.put('l/gone', { value: 1, ttl_seconds: 1 })
      await store.put('l/a')
      await store.put('l/deleted')
      await store.delete('l/deleted')
      await store.put('other/c')
      service.clock.advance(1_000)
      await store.put('l/a')
      const list = await store.list('l')
      expect(list.status).toBe(200)
      expect(list.body).toEqual({
        items: [
          { key: 'a', version: 2, expires_at: null, updated_at: iso(now + 1_000) },
          { key: 'b', version: 1, expires_at: iso(now + 60_000), updated_at: iso(now) },
        ],
        next_cursor: null,
      })
    })

    test('a namespace without keys is an empty list', async () => {
      const store = await newStore(service)
      expect((await store.list('nothing')).body).toEqual({ items: [], next_cursor: null })
    })

    // In the order of their bytes, which is neither that of UTF-16 units nor an alphabet's.
    const ordered = [
      ' ',
      '-',
      'A',
      'Z',
      'a',
      'a\u{10ffff}',
      'b',
      'x\u007e',
      'x\u07ff',
      'x\u0800',
      'x\ud7ff',
      'x\ud7ffy',
      'x\ue000',
      'x\uffee',
      'x\u{10000}',
      'x\u{10ffff}',
      'x\u{10ffff}\u{10ffff}',
      'y',
      'é',
      '\u{10ffff}',
      '\u{10ffff}z',
    ]

    async function orderedStore() {
      const store = await newStore(service)
      for (const key of ordered.toReversed()) await store.put(`l/${encodeURIComponent(key)}`)
      return store
    }

    test('is in bytewise order, whatever the page', async () => {
      const store = await orderedStore()
      expect(keysOf(await store.list('l'))).toEqual(ordered)
      for (const limit of [1, 4, 20, 21, 22]) {
        const seen: string[] = []
        let cursor: string | null = null
        do {
          const query: string = cursor === null ? '' : `&cursor=${cursor}`
          const page = await store.list(`l?limit=${limit}${query}`)
          expect(page.body.items.length).toBe(Math.min(limit, ordered.length - seen.length))
          seen.push(...keysOf(page))
          cursor = page.body.next_cursor
        } while (cursor !== null)
        expect(seen).toEqual(ordered)
      }
    })

    test.each([
      '',
      'a',
      'x',
      'x\ud7ff',
      'x\u{10ffff}',
      '\u{10ffff}',
      'x\u007e',
      'x\u007f',
      'é',
      'nothing',
      'A',
      ' ',
    ])('by prefix %j gives the keys that start with it, and no other', async (prefix) => {
      const store = await orderedStore()
      const expected = ordered.filter((key) => key.startsWith(prefix))
      const query = `l?prefix=${encodeURIComponent(prefix)}`
      expect(keysOf(await store.list(query))).toEqual(expected)
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const page: Answer = await store.list(`${query}&limit=2${cursor === null ? '' : `&cursor=${cursor}`}`)
        seen.push(...keysOf(page))
        cursor = page.body.next_cursor
      } while (cursor !== null)
      expect(seen).toEqual(expected)
    })

    test.each(['%00', '%FF', '%ZZ', 'a%00'])('prefix %s is not a text', async (prefix) => {
      const store = await newStore(service)
      expect(broken(await store.list(`l?prefix=${prefix}`))).toEqual([
        400,
        'VALIDATION_FAILED',
        'query.prefix',
      ])
    })

    test('a page holds 50 by default, and at most 200', async () => {
      const store = await newStore(service)
      const keys = Array.from({ length: 201 }, (_, i) => String(i).padStart(3, '0'))
      await Promise.all(keys.map((key) => store.put(`l/${key}`)))
      for (const [query, size] of [
        ['', 50],
        ['?limit=200', 200],
        ['?limit=201', 200],
        ['?limit=100000', 200],
      ] as const) {
        const page = await store.list(`l${query}`)
        expect(keysOf(page)).toEqual(keys.slice(0, size))
        const rest = await store.list(`l?limit=200&cursor=${page.body.next_cursor}`)
        expect(keysOf(rest)).toEqual(keys.slice(size, size + 200))
      }
    })

    test('a cursor goes on where its page ended, though its last key is gone', async () => {
      const store = await newStore(service)
      for (const key of ['a', 'b', 'c']) await store.put(`l/${key}`)
      const { next_cursor } = (await store.list('l?limit=2')).body
      await store.delete('l/b')
      await store.put('l/bb')
      expect(keysOf(await store.list(`l?cursor=${next_cursor}`))).toEqual(['bb', 'c'])
    })

    test('a cursor holds even the longest key', async () => {
      const store = await newStore(service)
      for (const key of ['%22'.repeat(512), '%5C'.repeat(512), '%F4%8F%BF%BF'.repeat(128)]) {
        await store.put(`l/${key}`)
      }
      const seen: string[] = []
      let cursor = ''
      for (let page = 0; page < 3; page++) {
        const { body } = await store.list(`l?limit=1${cursor}`)
        seen.push(...body.items.map(({ key }: { key: string }) => key))
        cursor = `&cursor=${body.next_cursor}`
      }
      expect(seen).toEqual(['"'.repeat(512), '\\'.repeat(512), '\u{10ffff}'.repeat(128)])
    })

    test('a cursor is bound to its tenant and its namespace', async () => {
      const tenant = await service.signUp()
      const store = storeOf(service, tenant.api_key)
      const stranger = await newStore(service)
      const two = storeOf(service, (await service.addAgent(tenant.admin_key, 'agent-two')).api_key)
      for (const name of ['one/a', 'one/b', 'two/a', 'two/b']) await store.put(name)
      const { next_cursor } = (await store.list('one?limit=1')).body
      const refused = [400, 'VALIDATION_FAILED', 'query.cursor']
      expect(broken(await store.list(`two?cursor=${next_cursor}`))).toEqual(refused)
      expect(broken(await stranger.list(`one?cursor=${next_cursor}`))).toEqual(refused)
      expect(keysOf(await two.list(`%6Fne?cursor=${next_cursor}`))).toEqual(['b'])
    })
  })
})

const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
const plans_file = join(folder, 'plans.json')
writeFileSync(
  plans_file,
  JSON.stringify({
    free: { ...default_plans.free, kv_keys: 3 },
    pro: { ...default_plans.pro, kv_keys: null },
  }),
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

forEachRacedService(
  'The quota kv_keys',
  (service) => {
    async function limited(plan: 'free' | 'pro' = 'free') {
      const tenant = await service.signUp(plan)
      const path = `/v1/tenants/${tenant.tenant_id}`
      return {
        ...storeOf(service, tenant.api_key),
        quota: async () => (await service.ask('GET', path, { key: tenant.admin_key })).body.quota.kv_keys,
      }
    }
    const exceeded = [402, 'QUOTA_EXCEEDED', { quota: 'kv_keys', used: 3, limit: 3 }]

    test('is exact: the key over the limit answers 402 and leaves no trace', async () => {
      const store = await limited()
      for (const key of ['a', 'b', 'c']) expect((await store.put(`q/${key}`)).status).toBe(200)
      expect(refusal(await store.put('q/d'))).toEqual(exceeded)
      expect(refusal(await store.put('other/d', { value: 1, cas_version: 0 }))).toEqual(exceeded)
      expect(refusal(await store.get('q/d'))).toEqual(absent)
      expect(await store.quota()).toEqual({ used: 3, limit: 3 })
      await store.delete('q/a')
      expect(await store.quota()).toEqual({ used: 2, limit: 3 })
      expect((await store.put('q/d')).body.version).toBe(1)
      expect(refusal(await store.put('q/a'))).toEqual(exceeded)
    })

    test('a key that is there already takes no more of it', async () => {
      const store = await limited()
      for (const key of ['a', 'b', 'c', 'a', 'b', 'c']) await store.put(`q/${key}`)
      expect((await store.put('q/a', { value: 1, cas_version: 2 })).body.version).toBe(3)
      expect((await store.put('q/a', { value: 1 }, { 'if-match': '*' })).body.version).toBe(4)
      expect(await store.quota()).toEqual({ used: 3, limit: 3 })
    })

    test('a deleted key gives its place back once, and takes it again', async () => {
      const store = await limited()
      await store.put('q/a')
      await store.delete('q/a')
      await store.delete('q/a')
      expect(await store.quota()).toEqual({ used: 0, limit: 3 })
      for (const key of ['a', 'b', 'c']) await store.put(`q/${key}`)
      expect(await store.quota()).toEqual({ used: 3, limit: 3 })
      expect(refusal(await store.put('q/d'))).toEqual(exceeded)
    })

    test('what has expired never fills it, swept or not', async () => {
      const store = await limited()
      for (const key of ['a', 'b', 'c']) await store.put(`q/${key}`, { value: 1, ttl_seconds: 1 })
      service.clock.advance(999)
      expect(refusal(await store.put('q/d'))).toEqual(exceeded)
      service.clock.advance(1)
      expect(await store.quota()).toEqual({ used: 0, limit: 3 })
      for (const key of ['d', 'e', 'f']) expect((await store.put(`q/${key}`)).status).toBe(200)
      expect(refusal(await store.put('q/g'))).toEqual(exceeded)
      await kv.sweep(service.app.db, service.clock.now())
      expect(await store.quota()).toEqual({ used: 3, limit: 3 })
    })

    test('an expired key that is written again counts once', async () => {
      const store = await limited()
      for (const key of ['a', 'b']) await store.put(`q/${key}`)
      for (const body of [{ value: 1 }, { value: 1, cas_version: 0 }]) {
        await store.put('q/c', { value: 1, ttl_seconds: 1 })
        service.clock.advance(1_000)
        expect(await store.quota()).toEqual({ used: 2, limit: 3 })
        expect((await store.put('q/c', body)).status).toBe(200)
        expect(await store.quota()).toEqual({ used: 3, limit: 3 })
        expect(refusal(await store.put('q/d'))).toEqual(exceeded)
        await store.delete('q/c')
      }
      await kv.sweep(service.app.db, service.clock.now())
      expect(await store.quota()).toEqual({ used: 2, limit: 3 })
    })

    test('a delete of an expired key gives nothing back twice', async () => {
      const store = await limited()
      await store.put('q/a')
      await store.put('q/b', { value: 1, ttl_seconds: 1 })
      service.clock.advance(1_000)
      expect((await store.delete('q/b')).status).toBe(404)
      await kv.sweep(service.app.db, service.clock.now())
      expect((await store.delete('q/b')).status).toBe(404)
      expect(await store.quota()).toEqual({ used: 1, limit: 3 })
    })

    test('a version that does not match is told before the quota', async () => {
      const store = await limited()
      for (const key of ['a', 'b', 'c']) await store.put(`q/${key}`)
      const cas = await store.put('q/d', { value: 1, cas_version: 5 })
      expect(refusal(cas)).toEqual([409, 'VERSION_MISMATCH', { current_version: null }])
      const matched = await store.put('q/d', { value: 1 }, { 'if-match': '*' })
      expect(refusal(matched)).toEqual([412, 'VERSION_MISMATCH', { current_version: null }])
    })

    test('limit null is unlimited', async () => {
      const store = await limited('pro')
      for (const key of ['a', 'b', 'c', 'd']) expect((await store.put(`q/${key}`)).status).toBe(200)
      expect(await store.quota()).toEqual({ used: 4, limit: null })
    })
  },
  { PLANS_FILE: plans_file },
)
