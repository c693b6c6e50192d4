import { afterAll, expect, test } from 'bun:test'
import { Type } from 'typebox'
import { TestClock } from '../../test/support/clock.ts'
import { MemoryBudget, memory_bytes_default } from '../base/memory.ts'
import { Overload } from '../base/overload.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Drain } from './drain.ts'
import type { ServerOptions } from './exchange.ts'
import { requestHandlers } from './handlers.ts'
import type { Page } from './pages.ts'

const echo = route({
  group: v1,
  method: 'POST',
  path: '/v1/echo/:name',
  tag: 'Test',
  summary: 'Says what it heard',
  auth: [],
  params: {
    name: {
      read: (value: string) => (value === '' ? null : value),
      schema: Type.String(),
      message: 'is empty',
    },
  },
  body: Type.Object({ n: Type.Integer() }),
  replies: { 200: { body: Type.Object({ name: Type.String(), n: Type.Integer() }) } },
  errors: ['VALIDATION_FAILED'],
  handle: (_, { params, body }) => ({ name: params.name, n: body.n }),
})

const pages: Page[] = [
  { path: '/page', methods: ['GET'], answer: () => new Response('a page') },
  {
    path: '/own/*',
    methods: ['GET', 'POST'],
    answer: ({ url }) =>
      new Response(new URL(url).pathname, { headers: { 'content-security-policy': "default-src 'self'" } }),
  },
  {
    path: '/broken',
    methods: ['GET'],
    answer: () => {
      throw new Error('it is broken')
    },
  },
  {
    path: '/relay',
    methods: ['POST'],
    async answer(request, { api, request_id }) {
      const { path, method } = (await request.json()) as { path: string; method: string }
      const headers = { 'content-type': 'application/json', 'x-request-id': request_id }
      const body = method === 'POST' ? '{"n": 7}' : null
      return api(new Request(`http://any${path}`, { method, headers, body }))
    },
  },
]

const logged: string[] = []
const log = { debug() {}, info() {}, warn() {}, error: (_: object, message: string) => logged.push(message) }
const clock = new TestClock()
const memory = new MemoryBudget(clock, memory_bytes_default)
const handlers = requestHandlers(
  [{ name: 'echo', route: echo }],
  {
    ...{ clock, dependencies: { shared: { memory }, urls: {} }, log, log_requests: false, limits: null },
    ...{ trusted_proxies: [], cors_origins: [], drain: new Drain(), overload: new Overload() },
  } as unknown as ServerOptions,
  pages,
)
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: handlers.routes as never,
  fetch: handlers.fetch as never,
})
afterAll(() => server.stop(true))

const ask = (path: string, init: RequestInit = {}) =>
  fetch(`${server.url.origin}${path}`, { ...init, headers: { 'x-request-id': 'request-0001' } })

const common = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-request-id': 'request-0001',
}

test('A page has the headers of every page', async () => {
  const answer = await ask('/page')
  expect([answer.status, await answer.text()]).toEqual([200, 'a page'])
  expect(answer.headers.toJSON()).toMatchObject(common)
})

test('A page may set its own headers, and answer for all below its path', async () => {
  const answer = await ask('/own/a/b?c')
  expect(await answer.text()).toBe('/own/a/b')
  const policy = "default-src 'self'"
  expect(answer.headers.toJSON()).toMatchObject({ ...common, 'content-security-policy': policy })
})

test('A page that throws is INTERNAL, and logged', async () => {
  const answer = await ask('/broken')
  expect([answer.status, await answer.json()]).toMatchObject([500, { error: { code: 'INTERNAL' } }])
  expect(answer.headers.toJSON()).toMatchObject(common)
  expect(logged).toEqual(['request failed'])
})

test.each([
  ['POST', '/page', 405, 'GET, HEAD, OPTIONS'],
  ['DELETE', '/own/x', 405, 'GET, HEAD, OPTIONS, POST'],
  ['OPTIONS', '/relay', 204, 'OPTIONS, POST'],
])('%s %s is answered %d with Allow: %s', async (method, path, status, allow) => {
  const answer = await ask(path, { method })
  expect([answer.status, answer.headers.get('allow')]).toEqual([status, allow])
})

const calls: [method: string, path: string, status: number, body: object][] = [
  ['POST', '/v1/echo/a%2Fb', 200, { name: 'a/b', n: 7 }],
  ['POST', '/v1/echo/%ZZ', 400, { error: { code: 'VALIDATION_FAILED', request_id: 'request-0001' } }],
  ['GET', '/v1/echo/x', 405, { error: { code: 'METHOD_NOT_ALLOWED', request_id: 'request-0001' } }],
  ['GET', '/page', 404, { error: { code: 'ROUTE_NOT_FOUND', request_id: 'request-0001' } }],
]
test.each(calls)('A page calls %s %s and gets %d, as from outside', async (method, path, status, body) => {
  const answer = await ask('/relay', { method: 'POST', body: JSON.stringify({ method, path }) })
  expect([answer.status, await answer.json()]).toMatchObject([status, body])
})
