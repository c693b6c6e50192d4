import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import type { BunRequest } from 'bun'
import { Type } from 'typebox'
import { TestClock } from '../../test/support/clock.ts'
import { forEachRacedService, TestService } from '../../test/support/service.ts'
import { ApiError, type ErrorCode, errors } from '../base/errors.ts'
import { MemoryBudget, memory_bytes_default } from '../base/memory.ts'
import { Overload } from '../base/overload.ts'
import { v1 } from '../contract/group.ts'
import { Reply, type Route, route } from '../contract/route.ts'
import { DbError, type DbErrorKind } from '../db/errors.ts'
import { Drain } from './drain.ts'
import type { ServerOptions } from './exchange.ts'
import { requestHandlers } from './handlers.ts'
import type { Page } from './pages.ts'
import { requests_max, requests_of_address_max, uncounted_max } from './under-way.ts'

forEachRacedService('Every answer', (service) => {
  service.over_http = true
  describe('carries X-Request-Id', () => {
    test.each(['12345678', 'x'.repeat(64), 'A.z_0-9-', '........'])("the caller's own %s", async (id) => {
      const seen = []
      for (const path of ['/livez', '/v1/agents', '/nowhere']) {
        const { headers, body } = await service.ask('GET', path, { headers: { 'x-request-id': id } })
        seen.push([headers.get('x-request-id'), body.error?.request_id])
      }
      expect(seen).toEqual([
        [id, undefined],
        [id, id],
        [id, id],
      ])
    })

    test.each(['1234567', 'x'.repeat(65), 'with space', 'semi;colon', 'slash/slash', 'é1234567', ''])(
      'a new one in place of "%s"',
      async (id) => {
        for (const path of ['/livez', '/v1/agents', '/nowhere']) {
          const answer = await service.ask('GET', path, { headers: { 'x-request-id': id } })
          expect(answer.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/)
        }
      },
    )

    test('two requests get two', async () => {
      const ids = new Set<string | null>()
      for (let i = 0; i < 20; i++) ids.add((await service.ask('GET', '/livez')).headers.get('x-request-id'))
      expect(ids.size).toBe(20)
    })
  })

  describe('names the body fields that were ignored', () => {
    const put = async (fields: string) => {
      const { api_key } = await service.signUp()
      const answer = await service.ask('PUT', '/v1/kv/a/b', { key: api_key, body: `{"value": 1${fields}}` })
      return [answer.status, answer.headers.get('x-ignored-fields')]
    }

    test.each([
      ['', null],
      [', "ttl_second": 5', 'ttl_second'],
      [', "b": {}, "a": [1]', 'b, a'],
      [', "tenant_id": "ten_1", "Value": 2', 'tenant_id, Value'],
      [', "\\u0074tl": 5', 'ttl'],
      [', "a": 1, "a": 2', 'a'],
      [', "with space": 1, "comma,": 2, "line\\nbreak": 3, "": 4, "é": 5', null],
      [', "with space": 1, "ok": 2', 'ok'],
      [`, "${'x'.repeat(64)}": 1`, 'x'.repeat(64)],
      [`, "${'x'.repeat(65)}": 1`, null],
    ] as [string, string | null][])('%s', async (fields, expected) => {
      expect(await put(fields)).toEqual([200, expected])
    })

    test('at most 20 of them', async () => {
      const names = Array.from({ length: 25 }, (_, i) => `field-${i}`)
      const fields = names.map((name) => `, "${name}": 1`).join('')
      expect(await put(fields)).toEqual([200, names.slice(0, 20).join(', ')])
    })
  })

  test('the log says route, status and request id, and never a key, a path, a query or a body', async () => {
    const { tenant_id, admin_key, signing_secret, api_key } = await service.signUp()
    service.logged.length = 0
    const headers = { 'x-request-id': 'request-0001' }
    const secret = 'a-value-nobody-may-read'
    const body = { value: secret, [`unknown_${secret}`]: 1 }
    await service.ask('PUT', `/v1/kv/space/${secret}`, { key: api_key, headers, body })
    await service.ask('GET', `/v1/kv/space?prefix=${secret}`, { key: api_key, headers })
    await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key, headers })
    await service.ask('GET', '/v1/agents', { key: `${admin_key}x`, headers })
    expect(service.logged).toEqual(
      (
        [
          ['PUT', '/v1/kv/:namespace/:key', 200],
          ['GET', '/v1/kv/:namespace', 200],
          ['GET', '/v1/tenants/:tenant_id', 200],
          ['GET', '/v1/agents', 401],
        ] as const
      ).map(([method, pattern, status]) => ({
        level: 'debug',
        message: 'request',
        fields: { request_id: 'request-0001', method, route: pattern, status, duration_ms: 0 },
      })),
    )
    for (const hidden of [secret, tenant_id, admin_key, signing_secret, api_key]) {
      expect(JSON.stringify(service.logged)).not.toContain(hidden)
    }
  })
})

describe('A route', () => {
  const closing: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const close of closing) await close()
  })

  describe('with a body', () => {
    const memory = new MemoryBudget(new TestClock(), memory_bytes_default)
    let counted = 0
    const taking = route({
      group: v1,
      ...{ method: 'POST', path: '/v1/take', tag: '', summary: '', auth: [], errors: [] },
      body: Type.Object({ text: Type.Optional(Type.String()) }),
      replies: { 200: { body: Type.Object({}) } },
      handle: () => {
        counted = memory.bytes
        return {}
      },
    })

    test.each([
      ['small', `{"text":"${'x'.repeat(1_000)}"}`, 200, 1_011],
      ['large', `{"text":"${'x'.repeat(100_000)}"}`, 200, 100_011],
      ['broken', `{"text":${'x'.repeat(100_000)}"}`, 400, 0],
    ])('that is %s counts it until it has answered', async (_, body, status, bytes) => {
      const { ask } = served([taking], { shared: { memory } })
      counted = 0
      const response = await ask('POST', '/v1/take', body)
      expect([response.status, counted, memory.bytes, memory.owners]).toEqual([status, bytes, 0, 0])
    })
  })

  test('that was held for a wait is idle as long as any other once it is answered', async () => {
    const waiting = route({
      group: v1,
      ...{ method: 'GET', path: '/v1/wait', tag: '', summary: '', auth: [], errors: [] },
      replies: { 200: { body: Type.Object({}) } },
      handle: ({ extendTimeout }) => {
        extendTimeout(50_000)
        return {}
      },
    })
    const page: Page = {
      path: '/page',
      methods: ['GET'],
      answer: (_, { extendTimeout }) => {
        extendTimeout(50_000)
        return new Response('')
      },
    }
    const options = {
      ...{
        clock: new TestClock(),
        dependencies: {},
        trusted_proxies: [],
        cors_origins: [],
        drain: new Drain(),
        overload: new Overload(),
      },
    } as unknown as ServerOptions
    const { routes } = requestHandlers([{ name: 'wait', route: waiting }], options, [page])
    const seconds: number[] = []
    const timeout = (_: Request, set: number) => seconds.push(set)
    const connection = { pendingRequests: 0, requestIP: () => null, timeout }
    for (const path of ['/v1/wait', '/page']) {
      const request = new Request(`http://127.0.0.1${path}`) as BunRequest
      expect((await routes[path]!.GET!(request, connection as never)).status).toBe(200)
    }
    expect(seconds).toEqual([60, 10, 60, 10])
  })

  /** These routes alone, served on a free port, with everything that was logged. */
  function served(routes: Route[], dependencies = {}) {
    const logged: [string, Record<string, unknown>, string][] = []
    const record = (level: string) => (fields: object, message: string) => {
      logged.push([level, fields as Record<string, unknown>, message])
    }
    const options = {
      clock: new TestClock(),
      dependencies: { urls: {}, shared: {}, ...dependencies },
      log: { debug: record('debug'), info: record('info'), error: record('error') },
      log_requests: false,
      trusted_proxies: [],
      drain: new Drain(),
      overload: new Overload(),
      cors_origins: [],
      limits: null,
    } as unknown as ServerOptions
    const handlers = requestHandlers(
      routes.map((route, i) => ({ name: `route${i}`, route })),
      options,
    )
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      routes: handlers.routes as never,
      fetch: handlers.fetch as never,
    })
    closing.push(() => server.stop(true))
    /** As if so many requests were under way. */
    const askBeside = (pendingRequests: number, path: string, address = '192.0.2.1') =>
      handlers.routes[path]!.GET!(new Request(`http://a${path}`) as BunRequest, {
        pendingRequests,
        requestIP: () => ({ address, family: 'IPv4', port: 1 }),
        timeout() {},
      })
    const ask = (method: string, path: string, body: string | null = null) =>
      fetch(`${server.url.origin}${path}`, { method, headers: { 'x-request-id': 'request-0001' }, body })
    return { ask, askBeside, logged }
  }

  function thatThrows(error: unknown): Route {
    return route({
      group: v1,
      method: 'GET',
      path: '/broken',
      tag: 'Test',
      summary: 'Throws',
      auth: [],
      replies: { 200: { body: null } },
      errors: [],
      handle: () => {
        throw error
      },
    })
  }

  test.each([
    ['an Error', new Error('the password is hunter2')],
    ['a text', 'the password is hunter2'],
    ['undefined', undefined],
    ['what a unique index refused', new DbError('unique', 'the password is hunter2')],
  ])('that throws %s answers 500 INTERNAL: logged with the request id, nothing leaks', async (_, error) => {
    const { ask, logged } = served([thatThrows(error)])
    const response = await ask('GET', '/broken')
    expect([response.status, await response.json()]).toEqual([
      500,
      {
        error: {
          code: 'INTERNAL',
          message: errors.INTERNAL.message,
          request_id: 'request-0001',
        },
      },
    ])
    expect(logged).toEqual([
      [
        'error',
        {
          request_id: 'request-0001',
          route: 'GET /broken',
          error: expect.stringContaining(String(error).slice(-7)),
        },
        'request failed',
      ],
    ])
  })

  test.each([
    ['busy', 503, 'UNAVAILABLE', /^[123]$/],
    ['lost', 503, 'UNAVAILABLE', /^1$/],
    ['outcome_unknown', 503, 'OUTCOME_UNKNOWN', /^1$/],
    ['full', 507, 'STORAGE_FULL', /^1$/],
  ] as [DbErrorKind, number, ErrorCode, RegExp][])(
    'whose database is %s answers %d %s with Retry-After, and tells nothing of it',
    async (kind, status, code, seconds) => {
      const { ask, logged } = served([thatThrows(new DbError(kind, 'disk /dev/sda1'))])
      const response = await ask('GET', '/broken')
      expect(response.status).toBe(status)
      expect(response.headers.get('retry-after')).toMatch(seconds)
      expect(await response.json()).toEqual({
        error: { code, message: errors[code].message, request_id: 'request-0001' },
      })
      expect(logged).toEqual([])
    },
  )

  test.each(Object.entries(errors).map(([code, { status }]) => [code as ErrorCode, status] as const))(
    'that refuses with %s answers %d',
    async (code, status) => {
      const { ask } = served([thatThrows(new ApiError(code, { details: { why: 'a test' } }))])
      const response = await ask('GET', '/broken')
      expect([response.status, await response.json()]).toEqual([
        status,
        {
          error: {
            code,
            message: errors[code].message,
            details: { why: 'a test' },
            request_id: 'request-0001',
          },
        },
      ])
    },
  )

  test('VERSION_MISMATCH has two statuses', async () => {
    const { ask } = served([thatThrows(new ApiError('VERSION_MISMATCH', { precondition: true }))])
    expect((await ask('GET', '/broken')).status).toBe(412)
  })

  test('past 16,384 requests under way refuses the next with UNAVAILABLE, and closes its connection', async () => {
    const { askBeside } = served([thatThrows(new ApiError('FORBIDDEN'))])
    expect((await askBeside(requests_max, '/broken')).status).toBe(403)
    const refused = await askBeside(requests_max + 1, '/broken')
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
      503,
      '1',
      'close',
    ])
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe('UNAVAILABLE')
  })

  test('that is never refused is answered however many requests are under way', async () => {
    const { askBeside } = served([{ ...thatThrows(new ApiError('FORBIDDEN')), shed: 'never' }])
    expect((await askBeside(requests_max + 1, '/broken')).status).toBe(403)
  })

  test('that is refused last has room for 1,024 more', async () => {
    const { askBeside } = served([{ ...thatThrows(new ApiError('FORBIDDEN')), shed: 'last' }])
    expect((await askBeside(requests_max + 1_024, '/broken')).status).toBe(403)
    expect((await askBeside(requests_max + 1_025, '/broken')).status).toBe(503)
  })

  test('that is refused last has room for 256 more of one client address, and others still have theirs', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const handle = async () => {
      await promise
      throw new ApiError('FORBIDDEN')
    }
    const { askBeside } = served([{ ...thatThrows(new ApiError('FORBIDDEN')), handle, shed: 'last' }])
    const waiting = Array.from({ length: 256 }, () => askBeside(uncounted_max + 1, '/broken'))
    expect((await askBeside(uncounted_max + 1, '/broken')).status).toBe(503)
    waiting.push(askBeside(uncounted_max + 1, '/broken', '192.0.2.2'))
    resolve()
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([403]))
    expect((await askBeside(uncounted_max + 1, '/broken')).status).toBe(403)
  })

  test('past 2,048 under way a client address may have 8,192 more, and others still have room', async () => {
    expect([uncounted_max, requests_of_address_max]).toEqual([2_048, 8_192])
    const { promise, resolve } = Promise.withResolvers<void>()
    const handle = async () => {
      await promise
      throw new ApiError('FORBIDDEN')
    }
    const { askBeside } = served([{ ...thatThrows(null), handle }])
    const many = uncounted_max + 1
    const waiting = Array.from({ length: requests_of_address_max }, () => askBeside(many, '/broken'))
    const refused = await askBeside(many, '/broken')
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
      503,
      '1',
      'close',
    ])
    waiting.push(askBeside(many, '/broken', '192.0.2.2'), askBeside(uncounted_max, '/broken'))
    resolve()
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([403]))
    expect((await askBeside(many, '/broken')).status).toBe(403)
  })

  test('answers its first reply, or a Reply of its own, or nothing', async () => {
    const of = (path: string, result: unknown) =>
      route({
        group: v1,
        method: 'POST',
        path,
        tag: 'Test',
        summary: 'Answers',
        auth: [],
        body: Type.Object({}),
        replies: { 202: { body: Type.Object({}) }, 418: { body: null } },
        errors: [],
        handle: () => result,
      })
    const { ask } = served([
      of('/plain', { list: [1, 'two', null, { three: true }], none: null }),
      of('/nothing', undefined),
      of('/own', new Reply(418, null, { 'x-version': '7' })),
      of('/both', new Reply(418, { a: 1 }, { 'x-version': '8' })),
    ])
    const answers = []
    for (const path of ['/plain', '/nothing', '/own', '/both']) {
      const response = await ask('POST', path)
      const { headers } = response
      answers.push([
        response.status,
        await response.text(),
        headers.get('content-type'),
        headers.get('x-version'),
        headers.get('x-request-id'),
      ])
    }
    const json = 'application/json'
    expect(answers).toEqual([
      [202, '{"list":[1,"two",null,{"three":true}],"none":null}', json, null, 'request-0001'],
      [202, '', null, null, 'request-0001'],
      [418, '', null, '7', 'request-0001'],
      [418, '{"a":1}', json, '8', 'request-0001'],
    ])
  })
})

test('Bun closes a connection that is idle or slow for 10 s; the limit of a body is ours', async () => {
  const serve = spyOn(Bun, 'serve')
  const service = new TestService()
  try {
    await service.start('sqlite::memory:')
    const options = serve.mock.calls[0]![0] as unknown as Record<string, unknown>
    expect(options).toMatchObject({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 10,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
    })
  } finally {
    serve.mockRestore()
    await service.stop()
  }
})
