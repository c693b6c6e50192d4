import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type Asked, RateModel } from '../../test/support/rate-model.ts'
import { type Answer, forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { default_plans } from '../features.ts'
import * as kv from '../kv/sweep.ts'
import * as limiter from './service.ts'

const max = Number.MAX_SAFE_INTEGER

const folder = mkdtempSync(join(tmpdir(), 'waystation-rate-limit-'))
const plans_file = join(folder, 'plans.json')
const { free, pro } = default_plans
writeFileSync(plans_file, JSON.stringify({ free, pro: { ...pro, kv_keys: 2 } }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** One key's view of the limiter. The tenant is on a plan that does not count its calls. */
async function newLimiter(service: TestService) {
  const tenant = await service.signUp('pro')
  return { tenant, ...limiterOf(service, tenant.api_key) }
}

function limiterOf(service: TestService, api_key: string) {
  const headers = { 'x-api-key': api_key }
  const ask = (method: string, path: string, body?: unknown) =>
    service.ask(method, `/api/rate-limit/${path}`, { headers, ...(body === undefined ? {} : { body }) })
  return {
    check: (input: object) => ask('POST', 'check', { key: 'k', limit: 3, windowSeconds: 60, ...input }),
    post: (body: unknown) => ask('POST', 'check', body),
    get: (query: string) => ask('GET', `check?${query}`),
    status: (path: string) => ask('GET', path),
    reset: (key: string) => ask('POST', 'reset', { key }),
  }
}

/** The status and the headers of an answer. */
function told({ status, headers }: Answer) {
  return [status, headers.get('ratelimit'), headers.get('ratelimit-policy'), headers.get('retry-after')]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body.error?.details?.issues ?? []
  return [status, body.error?.code, ...issues.map(({ path }) => path)]
}

const invalid = (...paths: string[]) => [400, 'VALIDATION_FAILED', ...paths]
const outcome = ({ status, body }: Answer) => [status, body.data?.count, body.data?.remaining]

async function kvKeysUsed(service: TestService, { tenant_id, admin_key }: TestTenant): Promise<number> {
  return (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body.quota.kv_keys.used
}

forEachService('the rate limiter', (service) => {
  const sweep = () => kv.sweep(service.app.db, service.clock.now())

  describe('a check', () => {
    test('answers allowed, count, remaining, resetAt and limit; past the limit 429 with retryAfter', async () => {
      const { check } = await newLimiter(service)
      const resetAt = iso(service.clock.now() + 60_000)
      for (const [count, remaining] of [
        [1, 1],
        [2, 0],
      ]) {
        const answer = await check({ limit: 2 })
        expect(answer.text).toBe(
          `{"success":true,"data":{"allowed":true,"count":${count},"remaining":${remaining},"resetAt":"${resetAt}","limit":2}}`,
        )
        expect(told(answer)).toEqual([200, `"default";r=${remaining};t=60`, '"default";q=2;w=60', null])
      }
      service.clock.advance(1_001)
      const blocked = await check({ limit: 2 })
      expect(blocked.text).toBe(
        `{"success":false,"data":{"allowed":false,"count":3,"remaining":0,"resetAt":"${resetAt}","retryAfter":59,"limit":2}}`,
      )
      expect(told(blocked)).toEqual([429, '"default";r=0;t=59', '"default";q=2;w=60', '59'])
    })

    test('by GET is the same check on the same counter, and is not kept by caches', async () => {
      const { check, get } = await newLimiter(service)
      const resetAt = iso(service.clock.now() + 60_000)
      expect(outcome(await check({ key: 'a b/é', limit: 2 }))).toEqual([200, 1, 1])
      const second = await get(`key=${encodeURIComponent('a b/é')}&limit=2&window=60`)
      expect(second.body).toEqual({
        success: true,
        data: { allowed: true, count: 2, remaining: 0, resetAt, limit: 2 },
      })
      expect(second.headers.get('cache-control')).toBe('no-store')
      const third = await get('key=a+b%2F%C3%A9&limit=2&windowSeconds=60&algorithm=fixed-window&cost=1')
      expect(third.body).toEqual({
        success: false,
        data: { allowed: false, count: 3, remaining: 0, resetAt, retryAfter: 60, limit: 2 },
      })
      expect(told(third)).toEqual([429, '"default";r=0;t=60', '"default";q=2;w=60', '60'])
      expect(third.headers.get('cache-control')).toBe('no-store')
      expect(outcome(await check({ key: 'a b/é', limit: 2 }))).toEqual([429, 4, 0])
    })

    test('by HEAD counts, too: it is a GET whose body nobody reads', async () => {
      const { tenant, status } = await newLimiter(service)
      const headers = { 'x-api-key': tenant.api_key }
      const path = '/api/rate-limit/check?key=k&limit=1&window=60'
      const ask = () => service.overHttp(() => service.ask('HEAD', path, { headers }))
      const answers = [await ask(), await ask()]
      expect(answers.map((answer) => [answer.text, ...told(answer)])).toEqual([
        ['', 200, '"default";r=0;t=60', '"default";q=1;w=60', null],
        ['', 429, '"default";r=0;t=60', '"default";q=1;w=60', '60'],
      ])
      expect((await status('k')).body.data.count).toBe(2)
    })

    test('is for agents and admins of the tenant, who share its counters; other tenants have their own', async () => {
      const one = await newLimiter(service)
      const as_admin = limiterOf(service, one.tenant.admin_key)
      const two = limiterOf(service, (await service.addAgent(one.tenant.admin_key, 'agent-two')).api_key)
      const stranger = await newLimiter(service)
      expect(outcome(await one.check({}))).toEqual([200, 1, 2])
      expect(outcome(await two.check({}))).toEqual([200, 2, 1])
      expect(outcome(await as_admin.check({}))).toEqual([200, 3, 0])
      expect(outcome(await one.check({}))).toEqual([429, 4, 0])
      const nothing = { key: 'k', count: 0, remaining: 0, windowExpired: true, limit: 0 }
      const resetAt = iso(service.clock.now())
      expect((await stranger.status('k')).body.data).toEqual({ ...nothing, resetAt })
      expect((await stranger.reset('k')).body.data).toEqual({ key: 'k', reset: false })
      expect(outcome(await stranger.check({}))).toEqual([200, 1, 2])
      expect((await as_admin.status('k')).body.data.count).toBe(4)
    })

    const window = { windowSeconds: 60 }
    test.each([
      ['limit 1', { limit: 1 }, 1],
      ['limit 2.5, which allows 2', { limit: 2.5 }, 2],
      ['limit 1e300', { limit: 1e300 }, max],
      ['a second', { windowSeconds: 1 }, 3],
      ['365 days', { windowSeconds: 31_536_000 }, 3],
      ['a second and a half', { windowSeconds: 1.5 }, 3],
      ['window for windowSeconds', { windowSeconds: null, window: 60 }, 3],
      ['both when they agree', { window: 60, ...window }, 3],
      ['a cost of all of limit', { cost: 3 }, 3],
      ['a cost within 2.5', { cost: 2, limit: 2.5 }, 2],
      ['a key of a byte', { key: '.' }, 3],
      ['a key of 256 bytes', { key: 'k'.repeat(256) }, 3],
      ['a key of 256 bytes in 128 characters', { key: 'é'.repeat(128) }, 3],
      ['a key with control characters', { key: 'a\u0001\n' }, 3],
      ...['fixed_window', 'fixed-window', 'sliding_window', 'sliding-window'].map(
        (algorithm): [string, object, number] => [algorithm, { algorithm }, 3],
      ),
    ] as [string, { limit?: number; cost?: number }, number][])('takes %s', async (_, input, ceiling) => {
      const { check } = await newLimiter(service)
      const cost = input.cost ?? 1
      const answer = await check(input)
      expect(outcome(answer)).toEqual([200, cost, ceiling - cost])
      expect(answer.body.data.limit).toBe(input.limit ?? 3)
    })

    test.each([
      ['limit 0.99', { limit: 0.99 }, ['limit']],
      ['limit 0', { limit: 0 }, ['limit']],
      ['limit as text', { limit: 'three' }, ['limit']],
      ['less than a second', { windowSeconds: 0.999 }, ['windowSeconds']],
      ['more than 365 days', { windowSeconds: 31_536_000.001 }, ['windowSeconds']],
      ['window 0', { windowSeconds: null, window: 0 }, ['window']],
      ['window of more than 365 days', { windowSeconds: null, window: 31_536_001 }, ['window']],
      ['two windows', { window: 61 }, ['window']],
      ['no window', { windowSeconds: null }, ['windowSeconds']],
      ['cost 0', { cost: 0 }, ['cost']],
      ['half a cost', { cost: 1.5 }, ['cost']],
      ['a cost above limit', { cost: 4 }, ['cost']],
      ['a cost that the floor of limit does not allow', { cost: 3, limit: 2.5 }, ['cost']],
      ['a cost that no count can hold', { cost: max + 1, limit: 1e300 }, ['cost']],
      ['no key', { key: null }, ['key']],
      ['an empty key', { key: '' }, ['key']],
      ['a key of 257 bytes', { key: 'k'.repeat(257) }, ['key']],
      ['a key of 257 bytes in 129 characters', { key: `${'é'.repeat(128)}x` }, ['key']],
      ['another algorithm', { algorithm: 'token_bucket' }, ['algorithm']],
      [
        'several faults',
        { key: 'é'.repeat(129), windowSeconds: null, cost: 4 },
        ['key', 'windowSeconds', 'cost'],
      ],
    ] as [string, Record<string, string | number | null>, string[]][])(
      'refuses %s with 400 in both forms, and counts nothing',
      async (_, input, names) => {
        const { check, get, status } = await newLimiter(service)
        expect(broken(await check(input))).toEqual(invalid(...names.map((name) => `/${name}`)))
        const all = Object.entries({ key: 'k', limit: 3, windowSeconds: 60, ...input })
        const query = new URLSearchParams()
        for (const [name, value] of all) if (value !== null) query.set(name, String(value))
        expect(broken(await get(String(query)))).toEqual(invalid(...names.map((name) => `query.${name}`)))
        expect((await status('k')).body.data.count).toBe(0)
      },
    )

    test('refuses a limit that is not a number any more', async () => {
      const { post, get } = await newLimiter(service)
      expect(broken(await post('{"key":"k","limit":1e400,"windowSeconds":60}'))).toEqual(invalid('/limit'))
      expect(broken(await get('key=k&limit=1e400&window=60'))).toEqual(invalid('query.limit'))
    })

    test('by GET without its parameters is 400, whatever a counter is called', async () => {
      const { check, get, status } = await newLimiter(service)
      await check({ key: 'check' })
      expect(broken(await get(''))).toEqual(invalid('query.key', 'query.limit'))
      expect(broken(await get('key=k&limit=3'))).toEqual(invalid('query.windowSeconds'))
      expect(broken(await status('check'))).toEqual(invalid('query.key', 'query.limit'))
    })
  })

  describe('a fixed window', () => {
    test('starts at the first hit, and ends a window later to the millisecond', async () => {
      const { check } = await newLimiter(service)
      service.clock.advance(777)
      const ends_at = service.clock.now() + 1_500
      const first = await check({ limit: 1, windowSeconds: 1.5 })
      expect([first.status, first.body.data.resetAt]).toEqual([200, iso(ends_at)])
      service.clock.advance(1_499)
      const last = await check({ limit: 1, windowSeconds: 1.5 })
      expect([last.status, last.body.data.resetAt, last.body.data.retryAfter]).toEqual([429, iso(ends_at), 1])
      service.clock.advance(1)
      const next = await check({ limit: 1, windowSeconds: 1.5 })
      expect([next.status, next.body.data.count, next.body.data.resetAt]).toEqual([
        200,
        1,
        iso(ends_at + 1_500),
      ])
    })

    test('counts blocked checks, too', async () => {
      const { check } = await newLimiter(service)
      const counts = []
      for (let i = 0; i < 5; i++) counts.push(outcome(await check({ limit: 2 })))
      expect(counts).toEqual([
        [200, 1, 1],
        [200, 2, 0],
        [429, 3, 0],
        [429, 4, 0],
        [429, 5, 0],
      ])
    })

    test('holds each check against its own limit', async () => {
      const { check } = await newLimiter(service)
      for (let i = 0; i < 3; i++) await check({ limit: 2 })
      expect(outcome(await check({ limit: 4 }))).toEqual([200, 4, 0])
      expect(outcome(await check({ limit: 10 }))).toEqual([200, 5, 5])
      expect(outcome(await check({ limit: 5.5 }))).toEqual([429, 6, 0])
    })

    test('takes the cost of each check', async () => {
      const { check } = await newLimiter(service)
      expect(outcome(await check({ limit: 10, cost: 4 }))).toEqual([200, 4, 6])
      expect(outcome(await check({ limit: 10, cost: 6 }))).toEqual([200, 10, 0])
      expect(outcome(await check({ limit: 10, cost: 10 }))).toEqual([429, 20, 0])
    })

    test.each([
      ['another length', { windowSeconds: 61 }],
      ['another algorithm', { algorithm: 'sliding_window' }],
    ])('gives way to a new one with %s, and back again', async (_, change) => {
      const { check, tenant } = await newLimiter(service)
      for (let i = 0; i < 4; i++) await check({})
      expect(outcome(await check(change))).toEqual([200, 1, 2])
      expect(outcome(await check({}))).toEqual([200, 1, 2])
      expect(await kvKeysUsed(service, tenant)).toBe(1)
    })

    test('is the same in milliseconds, whatever name it has', async () => {
      const { check } = await newLimiter(service)
      await check({ windowSeconds: 1.0004 })
      expect(outcome(await check({ windowSeconds: 1 }))).toEqual([200, 2, 1])
      expect(outcome(await check({ windowSeconds: null, window: 1, algorithm: 'fixed-window' }))).toEqual([
        200, 3, 0,
      ])
      expect(outcome(await check({ windowSeconds: 1.0005 }))).toEqual([200, 1, 2])
    })

    test('never counts past 2^53, where every check is blocked', async () => {
      const { check } = await newLimiter(service)
      expect(outcome(await check({ limit: max, cost: max }))).toEqual([200, max, 0])
      for (let i = 0; i < 3; i++) {
        expect(outcome(await check({ limit: 1e300, cost: max }))).toEqual([429, max + 1, 0])
      }
    })
  })

  describe('a sliding window', () => {
    const algorithm = 'sliding_window'

    test('weighs the bucket before by how much of it is in the last window', async () => {
      const { check } = await newLimiter(service)
      const slide = () => check({ algorithm, limit: 10, windowSeconds: 10 })
      const began = service.clock.now()
      for (let i = 1; i <= 8; i++) expect(outcome(await slide())).toEqual([200, i, 10 - i])
      service.clock.advance(12_500)
      const answer = await slide()
      // 8 × 3/4, and this one.
      expect(answer.body.data).toEqual({
        allowed: true,
        count: 7,
        remaining: 3,
        resetAt: iso(began + 20_000),
        limit: 10,
      })
    })

    test('is over two windows after its last bucket began', async () => {
      const { check } = await newLimiter(service)
      const slide = () => check({ algorithm, limit: 3, windowSeconds: 10 })
      for (let i = 0; i < 3; i++) await slide()
      service.clock.advance(19_999)
      expect(outcome(await slide())).toEqual([200, 1, 2])
      const began = service.clock.now() - 9_999
      service.clock.advance(20_000)
      const fresh = await slide()
      expect(outcome(fresh)).toEqual([200, 1, 2])
      expect(fresh.body.data.resetAt).not.toBe(iso(began + 30_000))
      expect(fresh.body.data.resetAt).toBe(iso(service.clock.now() + 10_000))
    })

    test.each([
      ['within the bucket', 3, [2], 1],
      ['in the next one', 3, [3], 1],
      ['with a cost', 10, [4, 4], 7],
      ['with all of the limit', 4, [1], 4],
    ])('tells when the same check would pass: %s', async (_, limit, costs, cost) => {
      const { check } = await newLimiter(service)
      const slide = (paid: number) => check({ algorithm, limit, windowSeconds: 7, cost: paid })
      for (const paid of costs) await slide(paid)
      service.clock.advance(7_100)
      let blocked = await slide(cost)
      for (let i = 0; i < limit && blocked.status === 200; i++) blocked = await slide(cost)
      expect(blocked.status).toBe(429)
      const { resetAt, retryAfter, count } = blocked.body.data
      const ms = Date.parse(resetAt) - service.clock.now()
      expect(retryAfter).toBe(Math.ceil(ms / 1_000))
      expect(count).toBeGreaterThan(limit)
      service.clock.advance(ms - 1)
      expect((await slide(cost)).status).toBe(429)
      service.clock.advance(1)
      expect((await slide(cost)).status).toBe(200)
    })

    test('lets a client that never stops asking have its limit in every window', async () => {
      const { check } = await newLimiter(service)
      const windows = 6
      let allowed = 0
      for (let i = 0; i < windows * 40; i++) {
        const answer = await check({ algorithm, limit: 4, windowSeconds: 10 })
        if (answer.status === 200) allowed += 1
        else expect(answer.body.data.count).toBe(5)
        service.clock.advance(250)
      }
      expect(allowed).toBeGreaterThanOrEqual(4 * (windows - 1))
      expect(allowed).toBeLessThanOrEqual(4 * (windows + 1))
    })

    test('lets a client with limit 1 pass again, though it polls', async () => {
      const { check } = await newLimiter(service)
      const passed = []
      for (let at = 0; at <= 60_000; at += 500) {
        if ((await check({ algorithm, limit: 1, windowSeconds: 10 })).status === 200) passed.push(at)
        service.clock.advance(500)
      }
      expect(passed).toEqual([0, 10_500, 20_500, 30_500, 40_500, 50_500])
    })

    test('holds each check against its own limit, up to the largest', async () => {
      const { check } = await newLimiter(service)
      expect(outcome(await check({ algorithm, limit: max, cost: max }))).toEqual([200, max, 0])
      expect((await check({ algorithm, limit: 1e300, cost: max })).status).toBe(429)
      expect((await check({ algorithm, limit: 5 })).status).toBe(429)
      service.clock.advance(60_000 + 30_000)
      expect((await check({ algorithm, limit: max, cost: 2 ** 52 - 1 })).status).toBe(200)
    })
  })

  describe('the status', () => {
    const nothing = { key: 'k', count: 0, remaining: 0, windowExpired: true, limit: 0 }

    test('of a counter that never was: nothing, as of now', async () => {
      const { status } = await newLimiter(service)
      const answer = await status('k')
      expect(answer.text).toBe(
        `{"success":true,"data":{"key":"k","count":0,"remaining":0,"resetAt":"${iso(service.clock.now())}","windowExpired":true,"limit":0}}`,
      )
      expect(told(answer)).toEqual([200, '"default";r=0;t=0', '"default";q=0', null])
    })

    test.each(['fixed_window', 'sliding_window'])(
      'counts nothing, and shows what a check left (%s)',
      async (algorithm) => {
        const { check, status } = await newLimiter(service)
        await check({ limit: 3.5, algorithm })
        const resetAt = iso(service.clock.now() + 60_000)
        service.clock.advance(10_000)
        const data = { key: 'k', count: 1, remaining: 2, resetAt, windowExpired: false, limit: 3.5 }
        for (let i = 0; i < 2; i++) {
          const answer = await status('k')
          expect(answer.body).toEqual({ success: true, data })
          expect(told(answer)).toEqual([200, '"default";r=2;t=50', '"default";q=3;w=60', null])
        }
      },
    )

    test.each([
      ['fixed_window', 60_000],
      ['sliding_window', 120_000],
    ])(
      'of a counter that has elapsed is the same before and after it was swept (%s)',
      async (algorithm, ms) => {
        const { check, status } = await newLimiter(service)
        const ended_at = service.clock.now() + ms
        await check({ algorithm })
        service.clock.advance(ms - 1)
        expect((await status('k')).body.data.windowExpired).toBe(false)
        const known = { ...nothing, remaining: 3, resetAt: iso(ended_at), limit: 3 }
        service.clock.advance(1)
        for (const wait_ms of [0, day_ms - 1]) {
          service.clock.advance(wait_ms)
          const unswept = await status('k')
          expect(unswept.body.data).toEqual(known)
          expect(told(unswept)).toEqual([200, '"default";r=3;t=0', '"default";q=3;w=60', null])
        }
        await sweep()
        expect((await status('k')).body.data).toEqual(known)
        service.clock.advance(1)
        const forgotten = { ...nothing, resetAt: iso(service.clock.now()) }
        expect((await status('k')).body.data).toEqual(forgotten)
        await sweep()
        expect((await status('k')).body.data).toEqual(forgotten)
      },
    )

    test.each([
      ['a/b', 'a%2Fb'],
      ['a%2Fb', 'a%252Fb'],
      ['a b', 'a%20b'],
      ['a+b', 'a+b'],
      ['über 😀', '%C3%BCber%20%F0%9F%98%80'],
      ['é'.repeat(128), '%C3%A9'.repeat(128)],
      ['__rl:k', '__rl:k'],
    ])('of the key %j is at %s: percent-decoded once', async (key, path) => {
      const { check, status } = await newLimiter(service)
      await check({ key })
      const { data } = (await service.overHttp(() => status(path))).body
      expect([data.key, data.count]).toEqual([key, 1])
    })

    test.each(['%FF', '%', '%00', 'k'.repeat(257), `${'%C3%A9'.repeat(128)}x`])(
      'of %s is 400: no key',
      async (path) => {
        const { status } = await newLimiter(service)
        expect(broken(await service.overHttp(() => status(path)))).toEqual(invalid('path.key'))
      },
    )

    test('of a counter named reset is at /reset, though POST there ends windows', async () => {
      const { check, status, reset } = await newLimiter(service)
      await check({ key: 'reset' })
      const { data } = (await status('reset')).body
      expect([data.key, data.count, data.windowExpired]).toEqual(['reset', 1, false])
      expect((await reset('reset')).body.data).toEqual({ key: 'reset', reset: true })
      expect((await status('reset')).body.data.windowExpired).toBe(true)
    })
  })

  describe('a reset', () => {
    test('ends the window: the next check is the first, and until then the status tells of the end', async () => {
      const { check, status, reset, tenant } = await newLimiter(service)
      for (let i = 0; i < 4; i++) await check({})
      service.clock.advance(1_000)
      const ended = await reset('k')
      expect(ended.text).toBe('{"success":true,"data":{"key":"k","reset":true}}')
      expect(told(ended)).toEqual([200, '"default";r=3;t=0', '"default";q=3;w=60', null])
      expect(await kvKeysUsed(service, tenant)).toBe(0)
      const resetAt = iso(service.clock.now())
      service.clock.advance(5)
      const known = { key: 'k', count: 0, remaining: 3, resetAt, windowExpired: true, limit: 3 }
      expect((await status('k')).body.data).toEqual(known)
      const again = await reset('k')
      expect(again.text).toBe('{"success":true,"data":{"key":"k","reset":false}}')
      expect(told(again)).toEqual([200, '"default";r=3;t=0', '"default";q=3;w=60', null])
      expect((await status('k')).body.data).toEqual(known)
      expect(outcome(await check({}))).toEqual([200, 1, 2])
      expect(await kvKeysUsed(service, tenant)).toBe(1)
    })

    test('of what never was, or has elapsed, says that nothing was reset', async () => {
      const { check, reset, tenant } = await newLimiter(service)
      const never = await reset('k')
      expect(never.text).toBe('{"success":true,"data":{"key":"k","reset":false}}')
      expect(told(never)).toEqual([200, '"default";r=0;t=0', '"default";q=0', null])
      await check({})
      service.clock.advance(60_000)
      expect((await reset('k')).body.data.reset).toBe(false)
      await sweep()
      expect(await kvKeysUsed(service, tenant)).toBe(0)
    })

    test.each([
      ['k'.repeat(256), 200],
      ['k'.repeat(257), 400],
      [`${'é'.repeat(127)}xx`, 200],
      [`${'é'.repeat(128)}x`, 400],
      ['', 400],
    ])('takes a key of 1 to 256 bytes: %s', async (key, status) => {
      const { reset } = await newLimiter(service)
      expect((await reset(key)).status).toBe(status)
    })
  })

  describe('a counter', () => {
    test('is one of the KV keys of the plan from its first check until its window ends', async () => {
      const { check, tenant } = await newLimiter(service)
      for (let i = 0; i < 3; i++) await check({})
      await check({ key: 'other', algorithm: 'sliding_window' })
      expect(await kvKeysUsed(service, tenant)).toBe(2)
      service.clock.advance(59_999)
      expect(await kvKeysUsed(service, tenant)).toBe(2)
      service.clock.advance(1)
      expect(await kvKeysUsed(service, tenant)).toBe(1)
      await sweep()
      expect(await kvKeysUsed(service, tenant)).toBe(1)
      service.clock.advance(60_000)
      await sweep()
      expect(await kvKeysUsed(service, tenant)).toBe(0)
    })

    test('is hidden from the routes of the key-value store', async () => {
      const { check, tenant } = await newLimiter(service)
      await check({})
      const ask = (method: string, path: string) =>
        service.ask(method, `/v1/kv/${path}`, {
          key: tenant.api_key,
          ...(method === 'PUT' ? { body: { value: 1 } } : {}),
        })
      for (const path of ['__rl/__rl:k', '__rl/k', 'state/__rl:k']) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          const answer = await ask(method, path)
          expect([method, path, answer.status, answer.body.error.code]).toEqual([
            method,
            path,
            403,
            'NAMESPACE_FORBIDDEN',
          ])
        }
      }
      expect((await ask('GET', '__rl')).status).toBe(403)
      expect((await ask('GET', 'state')).body.items).toEqual([])
    })
  })

  test('what comes of random checks is what the plain model says', async () => {
    const { db } = service.app
    let made = 0
    const asked = fc.record({
      algorithm: fc.constantFrom('fixed_window' as const, 'sliding_window' as const),
      window_ms: fc.constantFrom(1_000, 1_000, 1_337),
      limit: fc.constantFrom(1, 2, 3.5, 5),
      cost: fc.constantFrom(1, 1, 2, 3),
      wait_ms: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 1, max: 400 }),
        fc.integer({ min: 900, max: 2_700 }),
      ),
    })
    const caller = {
      tenant_id: (await service.signUp('pro')).tenant_id,
      plan: 'pro',
      status: 'active',
    } as const
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 5, maxLength: 40 }), async (checks) => {
        const model = new RateModel()
        const key = `random-${made++}`
        for (const { wait_ms, cost, ...rest } of checks) {
          service.clock.advance(wait_ms)
          const check: Asked = { ...rest, cost: Math.min(cost, Math.floor(rest.limit)) }
          const before = model.passesAt(check, service.clock.now())
          const { allowed, count, remaining, reset_at, now } = await limiter.check(
            db,
            caller,
            { plans: default_plans, shared: { semaphore: new KeyedSemaphore(service.clock) } },
            {
              key,
              ...check,
            },
          )
          expect({ allowed, count, remaining }).toEqual(model.check(check, now))
          if (!allowed && check.algorithm === 'sliding_window') expect(reset_at).toBe(before)
        }
      }),
      { numRuns: 40, seed: 4 },
    )
  })

  test('a fixed window never allows more than its limit, whatever comes in it', async () => {
    const { db } = service.app
    const caller = {
      tenant_id: (await service.signUp('pro')).tenant_id,
      plan: 'pro',
      status: 'active',
    } as const
    const traffic = fc.array(fc.tuple(fc.integer({ min: 0, max: 700 }), fc.integer({ min: 1, max: 4 })), {
      minLength: 20,
      maxLength: 60,
    })
    let made = 0
    await fc.assert(
      fc.asyncProperty(traffic, async (checks) => {
        const key = `window-${made++}`
        const allowed_until = new Map<number, number>()
        for (const [wait_ms, cost] of checks) {
          service.clock.advance(wait_ms)
          const asked = { key, limit: 5, window_ms: 2_000, algorithm: 'fixed_window', cost } as const
          const { allowed, reset_at, now } = await limiter.check(
            db,
            caller,
            { plans: default_plans, shared: { semaphore: new KeyedSemaphore(service.clock) } },
            asked,
          )
          expect(reset_at).toBeGreaterThan(now)
          expect(reset_at).toBeLessThanOrEqual(now + 2_000)
          if (allowed) allowed_until.set(reset_at, (allowed_until.get(reset_at) ?? 0) + cost)
        }
        const ends = [...allowed_until.keys()]
        for (const used of allowed_until.values()) expect(used).toBeLessThanOrEqual(5)
        for (let i = 1; i < ends.length; i++) expect(ends[i]! - ends[i - 1]!).toBeGreaterThanOrEqual(2_000)
      }),
      { numRuns: 30, seed: 5 },
    )
  })
})

forEachService(
  'the quota of rate counters',
  (service) => {
    const over = [402, 'QUOTA_EXCEEDED', { quota: 'kv_keys', used: 2, limit: 2 }]
    const refusal = ({ status, body }: Answer) => [status, body.error?.code, body.error?.details]

    test.each(['fixed_window', 'sliding_window'])(
      'is that of KV keys: the first check of one too many is 402 and leaves nothing, the others go on (%s)',
      async (algorithm) => {
        const { check, status, tenant } = await newLimiter(service)
        const put = (key: string) =>
          service.ask('PUT', `/v1/kv/state/${key}`, { key: tenant.api_key, body: { value: 1 } })
        expect((await check({ key: 'one', algorithm })).status).toBe(200)
        expect((await put('two')).status).toBe(200)
        expect(refusal(await check({ key: 'three', algorithm }))).toEqual(over)
        expect(refusal(await put('three'))).toEqual(over)
        expect((await status('three')).body.data.limit).toBe(0)
        expect(outcome(await check({ key: 'one', algorithm }))).toEqual([200, 2, 1])
        expect(outcome(await check({ key: 'one', algorithm, windowSeconds: 30 }))).toEqual([200, 1, 2])
        expect(await kvKeysUsed(service, tenant)).toBe(2)
      },
    )

    test('is never filled by what has elapsed, and a reset makes room', async () => {
      const { check, reset, tenant } = await newLimiter(service)
      await check({ key: 'one' })
      await check({ key: 'two' })
      service.clock.advance(60_000)
      expect((await check({ key: 'three' })).status).toBe(200)
      expect((await check({ key: 'one' })).status).toBe(200)
      expect(refusal(await check({ key: 'two' }))).toEqual(over)
      await reset('one')
      expect((await check({ key: 'two' })).status).toBe(200)
      expect(refusal(await check({ key: 'one' }))).toEqual(over)
      expect(await kvKeysUsed(service, tenant)).toBe(2)
    })
  },
  { PLANS_FILE: plans_file },
)
