// POST /mcp in revision 2026-07-28 of the protocol, message by message: what a request says of itself, and what is refused.

import { expect, test } from 'bun:test'
import { callsRunning } from '../mcp/http.ts'
import { clientOf, overHttp } from './support/mcp.ts'
import { becomes } from './support/patience.ts'
import { forEachService } from './support/service.ts'
import { watchWaits } from './support/waits.ts'

const revision = '2026-07-28'
const prefix = 'io.modelcontextprotocol'
const envelope = {
  [`${prefix}/protocolVersion`]: revision,
  [`${prefix}/clientInfo`]: { name: 'tests', version: '1.0.0' },
  [`${prefix}/clientCapabilities`]: {},
}
const identity = { [`${prefix}/serverInfo`]: { name: 'waystation', title: 'Waystation', version: '0.1.0' } }

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
const bodyOf = async (answer: Promise<Response>): Promise<any> => (await answer).json()

interface Sent {
  params?: Record<string, unknown>
  headers?: Record<string, string>
  meta?: Record<string, unknown> | null
  signal?: AbortSignal
}

forEachService('MCP 2026-07-28', (service) => {
  /** As a client sends it, with what the test changes. */
  function send(key: string, method: string, { params = {}, headers, meta = envelope, signal }: Sent = {}) {
    const message = {
      ...{ jsonrpc: '2.0', id: 5, method },
      params: { ...params, ...(meta && { _meta: meta }) },
    }
    return fetch(`${service.url}/mcp`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': revision },
        ...{ 'mcp-method': method, ...(typeof params.name === 'string' && { 'mcp-name': params.name }) },
        ...headers,
      },
      body: JSON.stringify(message),
      ...(signal && { signal }),
    })
  }
  const calling = (name: string, args: object) => ({ params: { name, arguments: args } })

  test('server/discover says the revision, the tools and who answers, and how long that may be kept', async () => {
    const { api_key } = await service.signUp()
    const answer = await send(api_key, 'server/discover')
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(await answer.json()).toEqual({
      ...{ jsonrpc: '2.0', id: 5 },
      result: {
        ...{ resultType: 'complete', supportedVersions: [revision], capabilities: { tools: {} } },
        instructions: expect.stringContaining('do what next_step says'),
        ...{ ttlMs: 300_000, cacheScope: 'private', _meta: identity },
      },
    })
  })

  test('tools/list says how long it may be kept, a call that it is complete; both say who answers', async () => {
    const { api_key } = await service.signUp()
    const { result: listed } = await bodyOf(send(api_key, 'tools/list'))
    expect(listed).toMatchObject({
      ...{ resultType: 'complete', ttlMs: 300_000, cacheScope: 'private', _meta: identity },
    })
    const put = calling('kv_put', { namespace: 'a', key: 'b', value: { n: 1 } })
    const { result } = await bodyOf(send(api_key, 'tools/call', put))
    expect(result).toEqual({
      ...{ resultType: 'complete', _meta: identity },
      content: [{ type: 'text', text: '{"namespace":"a","key":"b","version":1,"expires_at":null}' }],
      structuredContent: { namespace: 'a', key: 'b', version: 1, expires_at: null },
    })
  })

  test('a call is answered in an event stream to a client that accepts only that', async () => {
    const { api_key } = await service.signUp()
    const list = { ...calling('kv_list', { namespace: 'a' }), headers: { accept: 'text/event-stream' } }
    const answer = await send(api_key, 'tools/call', list)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    // Otherwise a proxy may hold it back.
    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    const [, data] = /^event: message\ndata: (.*)\n\n$/.exec(await answer.text())!
    expect(JSON.parse(data!).result.structuredContent).toEqual({ items: [], next_cursor: null })
  })

  const other = '2027-01-01'
  const of_other = { ...envelope, [`${prefix}/protocolVersion`]: other }
  const refusals: [what: string, method: string, sent: Sent, status: number, code: number][] = [
    ['a method of another header', 'tools/list', { headers: { 'mcp-method': 'x' } }, 400, -32_020],
    ['no Mcp-Method', 'tools/list', { headers: { 'mcp-method': '' } }, 400, -32_020],
    [
      'a tool of another header',
      'tools/call',
      { ...calling('kv_get', {}), headers: { 'mcp-name': 'x' } },
      400,
      -32_020,
    ],
    [
      'a version of another header',
      'tools/list',
      { headers: { 'mcp-protocol-version': other } },
      400,
      -32_020,
    ],
    [
      'a version that is not known',
      'tools/list',
      { headers: { 'mcp-protocol-version': other }, meta: of_other },
      400,
      -32_022,
    ],
    ['nothing that it says of itself', 'tools/list', { meta: null }, 400, -32_602],
    ['no capabilities', 'tools/list', { meta: { [`${prefix}/protocolVersion`]: revision } }, 400, -32_602],
    ['a method of earlier revisions', 'ping', {}, 404, -32_601],
    ['a method that is none', 'nothing', {}, 404, -32_601],
    ['a tool that is none', 'tools/call', calling('kv_steal', {}), 200, -32_602],
    ['arguments that are none', 'tools/call', { params: { name: 'kv_get', arguments: 'a' } }, 200, -32_602],
    ['a cursor that is none', 'tools/list', { params: { cursor: 7 } }, 200, -32_602],
    [
      'a cursor that is none, before this revision',
      'tools/list',
      { params: { cursor: 7 }, headers: { 'mcp-protocol-version': '2025-11-25' }, meta: null },
      ...([200, -32_602] as const),
    ],
    ['another type of content', 'tools/list', { headers: { 'content-type': 'text/plain' } }, 415, -32_000],
  ]
  test.each(refusals)('refused: %s', async (_, method, sent, status, code) => {
    const { api_key } = await service.signUp()
    const answer = await send(api_key, method, sent)
    const { id, error } = JSON.parse(await answer.text())
    expect([answer.status, error.code, id]).toEqual([status, code, status === 415 ? null : 5])
  })

  test('a version that is not known is answered with the one that is', async () => {
    const { api_key } = await service.signUp()
    const sent = { headers: { 'mcp-protocol-version': other }, meta: of_other }
    const { error } = await bodyOf(send(api_key, 'tools/list', sent))
    expect(error.data).toEqual({ supported: [revision], requested: other })
  })

  test.each([
    ['a tool', { params: { name: 'x'.repeat(500_000), arguments: {} }, headers: { 'mcp-name': 'kv_get' } }],
    ['a version', { meta: { ...envelope, [`${prefix}/protocolVersion`]: 'x'.repeat(500_000) } }],
  ])('a refusal does not repeat the long name of %s', async (_, sent: Sent) => {
    const { api_key } = await service.signUp()
    const answer = await send(api_key, 'tools/call', { params: { name: 'kv_get', arguments: {} }, ...sent })
    const text = await answer.text()
    const { id, error } = JSON.parse(text)
    expect([answer.status, id, error.message.length]).toEqual([400, 5, 2_001])
    expect(text.length).toBeLessThan(3 * 2_100)
  })

  test('the tools never change: a subscription is acknowledged without them, and ends', async () => {
    const { api_key } = await service.signUp()
    const answer = await send(api_key, 'subscriptions/listen', {
      params: { notifications: { toolsListChanged: true } },
    })
    const of_subscription = { [`${prefix}/subscriptionId`]: 5 }
    const [acknowledged, ended, ...more] = (await answer.text())
      .split('\n\n')
      .flatMap((event) => /data: (.*)/.exec(event)?.[1] ?? [])
      .map((data) => JSON.parse(data))
    expect(more).toEqual([])
    expect(acknowledged).toEqual({
      ...{ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' },
      params: { notifications: {}, _meta: of_subscription },
    })
    expect(ended).toEqual({
      ...{ jsonrpc: '2.0', id: 5 },
      result: { resultType: 'complete', _meta: { ...of_subscription, ...identity } },
    })
  })

  test.each(['auto', 'legacy', { pin: revision }] as const)('a client in mode %j connects', async (mode) => {
    const { api_key } = await service.signUp()
    const client = clientOf(mode)
    await client.connect(overHttp(service.url, api_key))
    const result = await client.callTool({ name: 'kv_list', arguments: { namespace: 'a' } })
    expect(result.structuredContent).toEqual({ items: [], next_cursor: null })
    expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'legacy' ? '2025-11-25' : revision)
    await client.close()
  })

  const both = 'application/json, text/event-stream'
  // An answer that is not there yet is 408, as that of any route; a stream has begun.
  test.each([
    [both, revision, 408],
    [both, '2025-11-25', 408],
    ['text/event-stream', revision, 200],
    ['text/event-stream', '2025-11-25', 200],
  ])(
    'a client that goes away waits no longer, and nothing is kept of its call (Accept: %s, revision %s)',
    async (accept, spoken, status) => {
      const { api_key: key } = await service.signUp()
      const { id } = (await service.ask('POST', '/api/webhook', { key })).body.data
      const { began, ended, restore } = watchWaits()
      const gone = new AbortController()
      const request_id = `gone-${crypto.randomUUID()}`
      const headers = { accept, 'mcp-protocol-version': spoken, 'x-request-id': request_id }
      const meta = spoken === revision ? envelope : null
      const waiting = send(key, 'tools/call', {
        ...{ ...calling('inbox_wait', { id }), headers, meta, signal: gone.signal },
      })
      waiting.then((answer) => answer.text()).catch(() => {})
      await began
      expect(callsRunning()).toBeGreaterThan(0)
      gone.abort()
      await ended
      restore()
      await becomes(callsRunning, 0)
      const logged = () => service.logged.map(({ fields }) => fields)
      const answered = () =>
        logged().find((of) => of.request_id === request_id && of.route === '/mcp')?.status
      await becomes(answered, status)
    },
  )
})
