import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { cron_secret, forEachService, type TestService } from '../../test/support/service.ts'
import { KnownHosts } from './host.ts'

describe('A service that only this machine can reach', () => {
  const known = (host: string, public_url = 'http://127.0.0.1:8420') =>
    new KnownHosts(public_url).isKnown(new Headers({ host }))

  test.each([
    ...['localhost', 'localhost:8420', 'LOCALHOST:1', 'localhost.', 'app.localhost', 'a.b-c.localhost:99'],
    ...['127.0.0.1', '127.0.0.1:8420', '127.9.8.7', '127.255.255.255:65535', '[::1]', '[::1]:8420'],
  ])('is known as %s', (host) => {
    expect(known(host)).toBe(true)
  })

  test.each([
    ...[
      'evil.example',
      'localhost.evil.example',
      'evillocalhost',
      '.localhost',
      'a..localhost',
      'a b.localhost',
    ],
    ...['127.0.0.1.evil.example', '127.0.0.256', '127.1', '128.0.0.1', '0.0.0.0', '2130706433', '0x7f.0.0.1'],
    ...['[::]', '[::2]', '::1', '[::1', '[::1]x', 'localhost:x', 'localhost:1:2', 'localhost, evil.example'],
    ...['user@localhost', 'x', '[', '192.168.0.1'],
  ])('is not known as %s', (host) => {
    expect(known(host)).toBe(false)
  })

  test('is known by the host of PUBLIC_URL, with any port', () => {
    expect(known('127.0.0.1:1', 'http://127.0.0.1:8420')).toBe(true)
    expect(known('[::1]', 'http://[::1]:8420')).toBe(true)
  })

  test('judges each Host on its own, whatever came before', () => {
    const hosts = new KnownHosts('http://127.0.0.1:8420')
    const seen = ['localhost', 'evil.example', 'localhost', 'evil.example', 'evil.example', '127.0.0.1']
    expect(seen.map((host) => hosts.isKnown(new Headers({ host })))).toEqual([
      ...[true, false, true, false, false, true],
    ])
  })
})

/** The status line and the body. fetch would not send another Host. */
async function exchange(service: TestService, request: string): Promise<[status: string, body: string]> {
  const { port } = new URL(service.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(request)
  let text = ''
  for await (const chunk of socket) text += chunk
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return [head.split('\r\n', 1)[0]!.replace('HTTP/1.1 ', ''), body]
}

const ask = (service: TestService, method: string, path: string, host: string, headers = '', body = '') =>
  exchange(
    service,
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nX-Request-Id: request-0001\r\n${headers}` +
      `${body ? `Content-Length: ${body.length}\r\n` : ''}\r\n${body}`,
  )

const issues = [
  {
    path: 'header.Host',
    message: 'is not a name of this machine; while HOST and PUBLIC_URL are loopback, no other name is served',
  },
]
const message = 'This credential may not do that.'
const error = { code: 'FORBIDDEN', message, details: { issues }, request_id: 'request-0001' }

forEachService('While everything is loopback', (service) => {
  service.over_http = true
  test.each([
    ['GET', '/livez'],
    ['GET', '/readyz'],
    ['GET', '/openapi.json'],
    ['POST', '/v1/tenants'],
    ['GET', '/v1/kv/a/b'],
    ['POST', '/v1/tick'],
    ['POST', '/mcp'],
    ['GET', '/docs'],
    ['GET', '/console'],
    ['GET', '/llms.txt'],
    ['PATCH', '/livez'],
    ['OPTIONS', '/v1/tenants'],
    ['GET', '/nowhere'],
    ['GET', '/hookx'],
  ])('%s %s to another Host is 403 FORBIDDEN, before anything else', async (method, path) => {
    const headers = `Authorization: Bearer ${cron_secret}\r\n`
    const [status, body] = await ask(service, method, path, 'evil.example', headers)
    expect([status, JSON.parse(body)]).toEqual(['403 Forbidden', { error }])
  })

  test('under /api the refusal has the envelope of /api', async () => {
    const [status, body] = await ask(service, 'GET', '/api/webhook', 'evil.example')
    expect([status, JSON.parse(body)]).toEqual(['403 Forbidden', { success: false, error }])
  })

  test('a sign-up to another Host makes no tenant', async () => {
    const body = JSON.stringify({ name: 'rebound', owner_email: 'a@example.com' })
    const headers = 'Content-Type: text/plain\r\n'
    const sign_up = (host: string) => ask(service, 'POST', '/v1/tenants', host, headers, body)
    expect((await sign_up('evil.example:8420'))[0]).toBe('403 Forbidden')
    expect((await sign_up('localhost:8420'))[0]).toBe('201 Created')
  })

  test('/hook takes whatever Host its sender names', async () => {
    const { api_key: key } = await service.signUp()
    const inbox = (await service.ask('POST', '/api/webhook', { key })).body.data
    const path = new URL(inbox.url).pathname
    const headers = 'Origin: https://evil.example\r\n'
    expect((await ask(service, 'POST', path, 'hooks.example', headers, '{}'))[0]).toBe('200 OK')
    expect((await ask(service, 'POST', `${path}/sub`, 'hooks.example', headers, '{}'))[0]).toBe('200 OK')
    expect((await ask(service, 'BIND', path, 'hooks.example'))[0]).not.toBe('403 Forbidden')
  })

  test('a request without a Host is served', async () => {
    const [status, body] = await exchange(service, 'GET /livez HTTP/1.0\r\n\r\n')
    expect([status.slice(-6), body]).toEqual(['200 OK', '{"status":"alive"}'])
  })

  // Bun then passes a bare path, or a URL that cannot be parsed.
  test.each([
    ['/', '404 Not Found'],
    ['/assets/nowhere.js', '404 Not Found'],
    ['/console', '200 OK'],
    ['/docs/kv.md', '200 OK'],
    ['/docs/kv.md?a=1', '200 OK'],
    ['/docs/nowhere', '404 Not Found'],
    ['/examples/nowhere', '404 Not Found'],
    ['/llms.txt', '200 OK'],
    ['/nowhere', '404 Not Found'],
  ])(
    '%s is answered %s, with a Host, without one, and with a port that none can have',
    async (path, status) => {
      const heads = ['HTTP/1.1\r\nHost: localhost', 'HTTP/1.0', 'HTTP/1.1\r\nHost: localhost:99999']
      for (const head of heads) {
        const answer = await exchange(service, `GET ${path} ${head}\r\nConnection: close\r\n\r\n`)
        expect([head, answer[0]]).toEqual([head, status])
      }
    },
  )
})

describe.each([
  ['PUBLIC_URL is not loopback', { PUBLIC_URL: 'https://api.example.com' }],
  ['TRUST_PROXY is set', { TRUST_PROXY: '127.0.0.1' }],
])('Once %s', (_, environment: Record<string, string>) => {
  forEachService(
    'any Host is served',
    (service) => {
      service.over_http = true
      test('as a proxy may send it', async () => {
        expect((await ask(service, 'GET', '/livez', 'evil.example'))[0]).toBe('200 OK')
      })
    },
    environment,
  )
})
