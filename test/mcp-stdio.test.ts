// `waystation mcp` as a process: what it says when it cannot serve, and how it ends.

import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { newKey } from '../src/base/keys.ts'
import { finished } from './support/finished.ts'
import { connect } from './support/mcp.ts'
import { forEachService } from './support/service.ts'

const main = join(import.meta.dir, '../cli/main.ts')

async function run(environment: Record<string, string>, args: string[], input = '') {
  const child = Bun.spawn([process.execPath, main, 'mcp', ...args], {
    env: environment,
    stdin: new TextEncoder().encode(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return finished(child)
}

const help = 'Next: waystation mcp --help shows how.\n'
const refusals: [why: string, environment: Record<string, string>, args: string[], said: string][] = [
  [
    'no key',
    { WAYSTATION_URL: 'http://127.0.0.1:1' },
    [],
    'waystation: USAGE: There is no key. Next: Use a profile of an agent, or WAYSTATION_KEY.\n',
  ],
  [
    'an address that is none',
    { WAYSTATION_KEY: 'k', WAYSTATION_URL: 'here' },
    [],
    `waystation: USAGE: The address must be an http or https URL, such as http://127.0.0.1:8420. ${help}`,
  ],
  [
    'an option that is misspelled',
    { WAYSTATION_KEY: 'k' },
    ['--readonly'],
    `waystation: USAGE: unknown option '--readonly' (Did you mean --read-only?) ${help}`,
  ],
]
test.each(refusals)('%s: one line on stderr, nothing on stdout, exit code 2', async (_, env, args, said) => {
  expect(await run(env, args)).toEqual({ exit_code: 2, stdout: '', stderr: said })
})

test('a workflow that no header holds is refused before a call', async () => {
  const environment = { WAYSTATION_KEY: 'k', WAYSTATION_WORKFLOW: 'a\nb' }
  const { exit_code, stdout, stderr } = await run(environment, [])
  expect([exit_code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('workflow_id must be 1 to 256 characters on one line')
})

const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
const lines_that_are_none: [line: string, code: number][] = [
  ['garbage', -32_700],
  ['{"jsonrpc":"2.0","id":1', -32_700],
  ['', -32_700],
  [JSON.stringify([ping]), -32_600],
  ['{"id":1,"method":"ping"}', -32_600],
  ['null', -32_600],
]
test.each(lines_that_are_none)(
  'the line %j is answered with the error %d, and the next one is read',
  async (line, code) => {
    const environment = { WAYSTATION_URL: 'http://127.0.0.1:1', WAYSTATION_KEY: 'k' }
    const { exit_code, stdout, stderr } = await run(environment, [], `${line}\n${JSON.stringify(ping)}\n`)
    expect([exit_code, stderr]).toEqual([0, ''])
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((answer) => JSON.parse(answer))
    expect(answers.toSorted((a, b) => Number(a.id) - Number(b.id))).toEqual([
      { jsonrpc: '2.0', id: null, error: { code, message: expect.any(String) } },
      { jsonrpc: '2.0', id: 7, result: {} },
    ])
  },
)

test('an input that cannot be read is told, and nothing is waited for', async () => {
  const folder = openSync(import.meta.dir, 'r')
  const child = Bun.spawn([process.execPath, main, 'mcp'], {
    env: { WAYSTATION_URL: 'http://127.0.0.1:1', WAYSTATION_KEY: 'k' },
    ...{ stdin: folder, stdout: 'pipe', stderr: 'pipe' },
  })
  const { exit_code, stdout, stderr } = await finished(child)
  closeSync(folder)
  expect([exit_code, stdout]).toEqual([1, ''])
  expect(stderr).toStartWith('waystation: UNEXPECTED: EISDIR')
})

test('a message longer than 10 MiB ends the server, also while its input is open', async () => {
  const child = Bun.spawn([process.execPath, main, 'mcp'], {
    env: { WAYSTATION_URL: 'http://127.0.0.1:1', WAYSTATION_KEY: 'k' },
    ...{ stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' },
  })
  child.stdin.write(JSON.stringify({ ...ping, params: { x: 'x'.repeat(10 * 1_048_576) } }))
  await Promise.resolve(child.stdin.flush()).catch(() => {})
  expect(await finished(child)).toEqual({
    ...{ exit_code: 2, stdout: '' },
    stderr:
      'waystation: PAYLOAD_TOO_LARGE: A message from the client is longer than 10 MiB. Next: Start it again, and send less at once.\n',
  })
})

test('a service that is away is told as an error of the call, with what to do next', async () => {
  const closed = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const url = closed.url.origin
  await closed.stop(true)
  const agent = await connect('stdio', url, 'svc_agt_any')
  const said = (next_step: string) => ({
    is_error: true,
    data: {
      ...{ code: 'UNREACHABLE', message: 'The service did not answer.' },
      next_step: expect.stringContaining(next_step),
    },
  })
  const change = await agent.call('kv_put', { namespace: 'a', key: 'b', value: 1 })
  expect(change).toMatchObject(said('may or may not have happened'))
  const read = await agent.call('kv_list', { namespace: 'a' })
  expect(read).toMatchObject(said('Nothing was changed. Wait a moment and repeat the call.'))
  await agent.close()
})

test.each([
  ['a page', 200, '<h1>Hello</h1>'],
  ['JSON that is not an answer of the API', 502, '{"message": "bad gateway"}'],
  ['a list', 200, '[]'],
  ['another service that speaks JSON', 200, '{"status": "ok"}'],
])('%s in place of the service is not an answer', async (_, status, body) => {
  const proxy = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(body, { status }) })
  const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
  const { is_error, data } = await agent.call('kv_list', { namespace: 'a' })
  expect([is_error, data.code]).toEqual([true, 'UNEXPECTED_ANSWER'])
  await agent.close()
  await proxy.stop(true)
})

test('messages are read, and calls made, while a client does not read the answers', async () => {
  const called = Promise.withResolvers<void>()
  const proxy = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch() {
      called.resolve()
      return Response.json({ items: [], next_cursor: null })
    },
  })
  const prefix = 'io.modelcontextprotocol'
  const asking = (id: number, revision: string) => ({
    ...{ jsonrpc: '2.0', id, method: 'tools/call' },
    params: {
      ...{ name: 'kv_list', arguments: { namespace: 'a' } },
      _meta: { [`${prefix}/protocolVersion`]: revision, [`${prefix}/clientCapabilities`]: {} },
    },
  })
  // More answers than a pipe holds, before the first call that is served.
  const refused = Array.from({ length: 400 }, (_, id) => asking(id, `2999-01-01${'x'.repeat(1_000)}`))
  const child = spawn(process.execPath, [main, 'mcp'], {
    env: { WAYSTATION_URL: proxy.url.origin, WAYSTATION_KEY: 'svc_agt_any' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const messages = [...refused, asking(400, '2026-07-28')]
  child.stdin.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''))
  await called.promise
  const answers = (await text(child.stdout)).trimEnd().split('\n')
  expect(answers.map((answer) => JSON.parse(answer).id)).toEqual(messages.map(({ id }) => id))
  await proxy.stop(true)
})

test('a redirect in place of the service is named as such, and is not followed', async () => {
  const paths: string[] = []
  const proxy = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: (request) => {
      paths.push(new URL(request.url).pathname)
      return new Response(null, { status: 302, headers: { location: '/login' } })
    },
  })
  const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
  const { is_error, data } = await agent.call('kv_delete', { namespace: 'a', key: 'b' })
  expect([is_error, data.code, data.message, paths]).toEqual([
    ...[true, 'UNEXPECTED_ANSWER', 'What answered was not the service. Its status is 302.'],
    ['/v1/kv/a/b'],
  ])
  await agent.close()
  await proxy.stop(true)
})

test('the trace that a call names goes with its request', async () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const got: (string | null)[] = []
  const proxy = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch({ headers }) {
      got.push(headers.get('traceparent'))
      return Response.json({ items: [], next_cursor: null })
    },
  })
  const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
  const list = { name: 'kv_list', arguments: { namespace: 'a' } }
  await agent.client.callTool({ ...list, _meta: { traceparent } })
  await agent.client.callTool(list)
  // Longer than a header may be: the service would refuse the call.
  await agent.client.callTool({ ...list, _meta: { traceparent: 'a'.repeat(20_000) } })
  expect(got).toEqual([traceparent, null, null])
  await agent.close()
  await proxy.stop(true)
})

const gateway_error = (code: string) => JSON.stringify({ error: { code, message: 'm' } })

test.each([
  ...[502, 503, 504, 520, 524, 530].map((status) => [status, '<h1>Bad gateway</h1>', 'UNEXPECTED_ANSWER']),
  ...[503, 524].map((status) => [status, gateway_error('UPSTREAM_TIMEOUT'), 'UPSTREAM_TIMEOUT']),
  ...[502, 524].map((status) => [status, gateway_error('UNAVAILABLE'), 'UNAVAILABLE']),
] as [number, string, string][])(
  'a gateway that answers %d %s may have passed the call on, and is worth another look',
  async (status, body, code) => {
    const proxy = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      fetch: () => new Response(body, { status }),
    })
    const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
    const { data } = await agent.call('audit_append', { action: 'a', idempotency_key: 'a-1' })
    expect([data.code, data.next_step]).toEqual([
      code,
      expect.stringContaining('may or may not have happened. Wait a moment and look, or repeat'),
    ])
    await agent.close()
    await proxy.stop(true)
  },
)

test.each(['<h1>Too many requests</h1>', gateway_error('TOO_MANY_REQUESTS')])(
  'a gateway that answers 429 %s is called again later',
  async (body) => {
    const proxy = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      fetch: () => new Response(body, { status: 429, headers: { 'retry-after': '7' } }),
    })
    const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
    const { data } = await agent.call('kv_put', { namespace: 'a', key: 'b', value: 1 })
    expect(data).toMatchObject({
      next_step: 'Wait for retry_after_seconds, or a second without it, then repeat the call.',
      retry_after_seconds: 7,
    })
    await agent.close()
    await proxy.stop(true)
  },
)

test.each([
  ['120', 120],
  ['Fri, 31 Dec 1999 23:59:59 GMT', 59],
  ['Fri, 31 Dec 1999 23:00:00 GMT', 0],
  ['later', undefined],
])(
  'a Retry-After of %s is retry_after_seconds of %p, by the clock of what answered',
  async (after, seconds) => {
    const error = { code: 'UNAVAILABLE', message: 'It is replaced.' }
    const headers = { 'retry-after': after, date: 'Fri, 31 Dec 1999 23:59:00 GMT' }
    const proxy = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      fetch: () => Response.json({ error }, { status: 503, headers }),
    })
    const agent = await connect('stdio', proxy.url.origin, 'svc_agt_any')
    const { data } = await agent.call('kv_list', { namespace: 'a' })
    expect(data).toEqual({
      ...error,
      next_step: expect.stringContaining('or a second without it'),
      ...(seconds !== undefined && { retry_after_seconds: seconds }),
    })
    await agent.close()
    await proxy.stop(true)
  },
)

forEachService('MCP over stdio', (service) => {
  const initialize = {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
  }
  const call = (id: number, name: string, args: object) => ({
    ...{ jsonrpc: '2.0', id, method: 'tools/call' },
    params: { name, arguments: args },
  })
  const lines = (messages: object[]) => messages.map((message) => `${JSON.stringify(message)}\n`).join('')

  test('what was asked before the input ended is answered, and stdout holds nothing but the protocol', async () => {
    const { api_key } = await service.signUp()
    const input = lines([
      initialize,
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      call(2, 'kv_put', { namespace: 'a', key: 'b', value: 1 }),
    ])
    const environment = { WAYSTATION_URL: `${service.url}/`, WAYSTATION_KEY: api_key }
    const { exit_code, stdout, stderr } = await run(environment, [], input)
    expect([exit_code, stderr]).toEqual([0, ''])
    const answers = stdout.trimEnd().split('\n')
    expect(answers.map((line) => JSON.parse(line))).toMatchObject([
      { id: 1, result: { protocolVersion: '2025-11-25', serverInfo: { name: 'waystation' } } },
      { id: 2, result: { structuredContent: { version: 1 } } },
    ])
  })

  test('large answers that nobody has read yet leave nothing on standard error', async () => {
    const { api_key } = await service.signUp()
    const value = 'x'.repeat(50_000)
    const body = { namespace: 'a', key: 'b', value }
    await service.ask('PUT', '/v1/kv/a/b', { key: api_key, body: { value } })
    const reads = Array.from({ length: 30 }, (_, n) => call(n + 2, 'kv_get', { namespace: 'a', key: 'b' }))
    const environment = { WAYSTATION_URL: service.url, WAYSTATION_KEY: api_key }
    const { exit_code, stdout, stderr } = await run(environment, [], lines([initialize, ...reads]))
    expect([exit_code, stderr]).toEqual([0, ''])
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(answers.slice(1).map(({ result }) => result.structuredContent)).toEqual(
      reads.map(() => expect.objectContaining(body)),
    )
  })

  test('a wait does not outlast the input', async () => {
    const { api_key } = await service.signUp()
    const { id } = (await service.ask('POST', '/api/webhook', { key: api_key })).body.data
    const input = lines([initialize, call(2, 'inbox_wait', { id })])
    const environment = { WAYSTATION_URL: service.url, WAYSTATION_KEY: api_key }
    const { exit_code, stdout } = await run(environment, [], input)
    expect([exit_code, JSON.parse(stdout.trimEnd().split('\n')[1]!).id]).toEqual([0, 2])
  })

  test('a wrong key, and a key of another kind, are told at the first call', async () => {
    const { admin_key } = await service.signUp()
    for (const [key, code] of [
      ['svc_agt_wrong', 'UNAUTHORIZED'],
      [admin_key, 'FORBIDDEN'],
    ] as const) {
      const agent = await connect('stdio', service.url, key)
      const { is_error, data } = await agent.call('kv_list', { namespace: 'a' })
      expect([is_error, data.code]).toEqual([true, code])
      expect(data.next_step).toEndWith('Stop and ask the operator; trying again will not help.')
      await agent.close()
    }
  })

  test('calls belong to the workflow of the environment', async () => {
    const { api_key } = await service.signUp()
    const workflow_id = 'Größe 7: 日本'
    const environment = {
      WAYSTATION_URL: service.url,
      WAYSTATION_KEY: api_key,
      WAYSTATION_WORKFLOW: workflow_id,
    }
    const input = lines([initialize, call(2, 'audit_append', { action: 'a' })])
    const { stdout } = await run(environment, [], input)
    const [, answer] = stdout.trim().split('\n')
    expect(JSON.parse(answer!).result.structuredContent).toMatchObject({ action: 'a', workflow_id })
  })
})

test('an id that nests without end is refused and what follows is answered', async () => {
  const deep = `${'['.repeat(520_000)}${']'.repeat(520_000)}`
  const server = Bun.spawn([process.execPath, main, 'mcp'], {
    env: { WAYSTATION_URL: 'http://127.0.0.1:1', WAYSTATION_KEY: newKey('agent') },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const messages = [
    `{"jsonrpc":"2.0","id":${deep},"method":"tools/list"}`,
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${deep}}}`,
    '{"jsonrpc":"2.0","id":7,"method":"ping"}',
  ]
  server.stdin.write(`${messages.join('\n')}\n`)
  server.stdin.end()
  const told = (await new Response(server.stdout).text()).trimEnd().split('\n')
  const refusal = { code: -32_600, message: 'Send one JSON-RPC message per line, as an object.' }
  expect(told.map((line) => JSON.parse(line))).toEqual([
    { jsonrpc: '2.0', id: null, error: refusal },
    { jsonrpc: '2.0', id: 7, result: {} },
  ])
  expect(await server.exited).toBe(0)
})
