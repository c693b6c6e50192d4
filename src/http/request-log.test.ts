import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { TestService, type TestTenant } from '../../test/support/service.ts'
import { watchWaits } from '../../test/support/waits.ts'
import { type LoggedRequests, RequestLog } from './request-log.ts'

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${trace_id}-00f067aa0ba902b7-01`

describe('LOG_REQUESTS=all', () => {
  const service = new TestService({ LOG_REQUESTS: 'all', LOG_LEVEL: 'info' })
  let tenant: TestTenant
  beforeAll(async () => {
    await service.start('sqlite::memory:')
    tenant = await service.signUp()
  })
  beforeEach(() => {
    service.logged = []
  })
  afterAll(() => service.stop())

  test('logs one line for a request, with what is known to be harmless', async () => {
    const headers = { traceparent, 'x-request-id': 'request-of-mine' }
    await service.ask('GET', '/v1/kv/plans/secret-name?x=secret', { key: tenant.api_key, headers })
    expect(service.logged).toEqual([
      {
        level: 'info',
        fields: {
          request_id: 'request-of-mine',
          method: 'GET',
          route: '/v1/kv/:namespace/:key',
          status: 404,
          duration_ms: 0,
          tenant_id: tenant.tenant_id,
          trace_id,
        },
        message: 'request',
      },
    ])
  })

  test('logs neither keys nor paths, queries and bodies', async () => {
    const body = { value: 'of the body' }
    await service.ask('PUT', '/v1/kv/plans/secret-name', { key: tenant.api_key, body })
    await service.ask('GET', '/hook/secret-token?of=query')
    await service.ask('GET', '/secret-path')
    expect(service.logged.map(({ fields }) => [fields.route, fields.status])).toEqual([
      ['/v1/kv/:namespace/:key', 200],
      ['/hook/:token', 404],
      ['unrouted', 404],
    ])
    const text = JSON.stringify(service.logged)
    for (const secret of ['secret', 'of the body', 'query', tenant.api_key])
      expect(text).not.toContain(secret)
  })

  test('has no trace for a header that is not valid, and no tenant for a wrong key', async () => {
    const headers = { traceparent: 'made up' }
    await service.ask('GET', '/v1/agents', { key: 'wrong', headers })
    expect(service.logged[0]!.fields).toMatchObject({ status: 401, trace_id: null, tenant_id: null })
  })
})

describe('LOG_REQUESTS=slow', () => {
  const service = new TestService({ LOG_REQUESTS: 'slow', LOG_LEVEL: 'info' })
  beforeAll(() => service.start('sqlite::memory:'))
  afterAll(() => service.stop())

  test.each(['/api/webhook', '/mcp'])('logs no wait that was asked for: %s', async (route) => {
    const { api_key: key } = await service.signUp()
    const { id } = (await service.ask('POST', '/api/webhook', { key })).body.data
    const call = { name: 'inbox_wait', arguments: { id } }
    const { began, restore } = watchWaits()
    const answer =
      route === '/mcp'
        ? service.ask('POST', route, {
            ...{ key, headers: { accept: 'application/json' } },
            body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
          })
        : service.ask('GET', `${route}/${id}/messages?wait=50`, { key })
    await began
    restore()
    service.logged = []
    service.clock.advance(60_000)
    const { url } = (await service.ask('GET', `/api/webhook/${id}`, { key })).body.data.inbox
    await service.ask('POST', new URL(url).pathname, { body: { n: 1 } })
    expect((await answer).text).toContain('"n')
    expect(service.logged).toEqual([])
  })
})

describe('Of requests that were answered', () => {
  function logged(
    chosen: LoggedRequests[],
    facts: { status?: number; ms?: number; waited?: boolean },
  ): number {
    let lines = 0
    const log = { debug() {}, info: () => (lines += 1), warn() {}, error() {} }
    const { status = 200, ms = 1, waited = false } = facts
    const request = { request_id: 'r', traceparent: null, method: 'GET', route: '/livez', tenant_id: null }
    new RequestLog(log, chosen).answered({ ...request, status, ms, waited })
    return lines
  }

  test('errors logs those with 400 and above', () => {
    expect([200, 304, 399].map((status) => logged(['errors'], { status }))).toEqual([0, 0, 0])
    expect([400, 404, 500].map((status) => logged(['errors'], { status }))).toEqual([1, 1, 1])
  })

  test('slow logs those of a second and longer, unless they wait because they ask to', () => {
    expect([999, 1_000].map((ms) => logged(['slow'], { ms }))).toEqual([0, 1])
    expect(logged(['slow'], { ms: 30_000, waited: true })).toBe(0)
    expect(logged(['slow'], { status: 500 })).toBe(0)
  })

  test('both may be chosen, and all logs each once', () => {
    expect(logged(['errors', 'slow'], { status: 500, ms: 2_000 })).toBe(1)
    expect(logged(['errors', 'slow'], { ms: 2_000 })).toBe(1)
    expect(logged(['errors', 'slow'], {})).toBe(0)
    expect(logged(['all'], { ms: 30_000, waited: true })).toBe(1)
  })
})
