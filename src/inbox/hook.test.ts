import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import {
  type Answer,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { iso } from '../base/clock.ts'
import { sequenceOf } from '../base/ids.ts'

const mib = 1_048_576
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

async function inboxOf(service: TestService, tenant: TestTenant) {
  const answer = await service.ask('POST', '/api/webhook', { key: tenant.api_key })
  expect(answer.status).toBe(201)
  return answer.body.data as { id: string; token: string }
}

/** All, oldest first. */
async function messagesOf(service: TestService, { api_key }: TestTenant, { id }: { id: string }) {
  const answer = await service.ask('GET', `/api/webhook/${id}/messages?limit=100`, { key: api_key })
  expect(answer.status).toBe(200)
  return { items: answer.body.data.items, text: answer.text }
}

function expectReceived(answer: Answer): void {
  expect([answer.status, answer.text]).toEqual([200, '{"received":true}'])
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
}

function base64(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64')
}

/** Sends these bytes as they are, which no HTTP client would send; returns the status line. */
async function sent(service: TestService, text: string | Uint8Array): Promise<string> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.on('data', (data) => resolve(data.toString().split('\r\n', 1)[0]!))
  socket.on('error', reject)
  socket.write(text)
  try {
    return await promise
  } finally {
    socket.destroy()
  }
}

/** The status and the body of what is answered to a request that ends its connection. */
async function answered(service: TestService, text: string): Promise<[status: string, body: string]> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let received = ''
  socket.on('data', (data) => {
    received += data.toString()
  })
  socket.on('error', reject)
  socket.on('close', () => resolve())
  socket.write(text)
  await promise.finally(() => socket.destroy())
  const [head = '', body = ''] = received.split('\r\n\r\n')
  return [head.split('\r\n', 1)[0]!, body]
}

forEachRacedService('The URL of an inbox', (service) => {
  service.over_http = true
  let tenant: TestTenant
  const fresh = async () => {
    tenant ??= await service.signUp('pro')
    const inbox = await inboxOf(service, tenant)
    return { inbox, path: `/hook/${inbox.token}`, messages: () => messagesOf(service, tenant, inbox) }
  }

  test.each(methods)('takes %s, and stores every field', async (method) => {
    const { path, messages } = await fresh()
    const body = method === 'GET' ? undefined : '{"n":1}'
    const headers = { 'x-sender': 'me', 'content-type': 'application/json', 'user-agent': 'sender/1' }
    expectReceived(await service.ask(method, `${path}?a=1`, { headers, ...(body && { body }) }))
    const { items } = await messages()
    expect(items).toEqual([
      {
        id: expect.stringMatching(/^msg_[0-9a-hjkmnp-tv-z]{26}$/),
        method,
        path: '',
        headers: expect.objectContaining({ ...headers, host: new URL(service.url).host }),
        query: { a: '1' },
        body: body ? { n: 1 } : '',
        bodyBase64: base64(body ?? ''),
        preview: body ?? null,
        contentType: 'application/json',
        sourceIp: '127.0.0.1',
        createdAt: iso(service.clock.now()),
        forward: null,
      },
    ])
  })

  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const latin1 = Buffer.from('caf\u00e9', 'latin1')
  const binary = Uint8Array.from({ length: 256 }, (_, i) => i)
  const bodies: [what: string, type: string, body: string | Uint8Array, shown: string][] = [
    ['JSON', 'application/json', '{"a":1}', '{"a":1}'],
    ['JSON of a subtype', 'application/vnd.x+json; charset=utf-8', ' [1] ', ' [1] '],
    [
      'JSON that JSON.parse would change',
      'application/json',
      '{"n":1e400,"n":123456789012345678901234567890}',
      '{"n":1e400,"n":123456789012345678901234567890}',
    ],
    ['a JSON scalar', 'application/json', '7', '7'],
    ['JSON null', 'application/json', 'null', 'null'],
    ['a JSON object without a type', '', '{"a":1}', '{"a":1}'],
    ['a JSON array called text', 'text/plain', '[1,2]', '[1,2]'],
    ['a number called text', 'text/plain', '7', '"7"'],
    ['broken JSON', 'application/json', '{"a":', '"{\\"a\\":"'],
    ['JSON after a byte order mark', 'application/json', '\ufeff{}', '"\ufeff{}"'],
    ['an array of 64 levels', 'application/json', deep(64), deep(64)],
    ['an array of 65 levels', 'application/json', deep(65), JSON.stringify(deep(65))],
    ['an object of 65 levels', 'application/json', `{"a":${deep(64)}}`, JSON.stringify(`{"a":${deep(64)}}`)],
    ['brackets in strings', 'application/json', `["${'['.repeat(99)}\\""]`, `["${'['.repeat(99)}\\""]`],
    ['lone surrogates', 'application/json', '{"a":"\\ud800\\u0000"}', '{"a":"\\ud800\\u0000"}'],
    ['a form', 'application/x-www-form-urlencoded', 'a=1&b=%C3%A9', '"a=1&b=%C3%A9"'],
    [
      'multipart',
      'multipart/form-data; boundary=x',
      '--x\r\n\r\na\r\n--x--\r\n',
      '"--x\\r\\n\\r\\na\\r\\n--x--\\r\\n"',
    ],
    ['text', 'text/plain', 'grüße 😀', '"grüße 😀"'],
    ['text with NUL', 'text/plain', 'a\0b', '"a\\u0000b"'],
    ['latin-1', 'text/plain; charset=iso-8859-1', latin1, 'null'],
    ['binary', 'application/octet-stream', binary, 'null'],
    ['gzip-encoded JSON', 'application/json', Bun.gzipSync('{"a":1}'), 'null'],
    [
      'invalid UTF-8 in JSON',
      'application/json',
      Buffer.concat([Buffer.from('{"a":"'), latin1, Buffer.from('"}')]),
      'null',
    ],
    ['nothing', '', '', '""'],
    ['1 MiB', 'text/plain', 'x'.repeat(mib), JSON.stringify('x'.repeat(mib))],
    ['1 MiB of binary', 'application/octet-stream', Buffer.alloc(mib, 0xff), 'null'],
  ]
  test.each(bodies)('keeps %s byte for byte', async (_, type, body, shown) => {
    const { path, messages } = await fresh()
    const headers = {
      ...(type && { 'content-type': type }),
      ...(body instanceof Uint8Array && { 'content-encoding': 'gzip' }),
    }
    expectReceived(await service.ask('POST', path, { body: Buffer.from(body as string), headers }))
    const { items, text } = await messages()
    expect(items[0].bodyBase64).toBe(base64(body))
    expect(items[0].contentType).toBe(type)
    expect(text).toContain(`,"body":${shown},"bodyBase64":`)
  })

  test('takes a body in chunks, without a length', async () => {
    const { path, messages } = await fresh()
    const text = `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`
    expect(await sent(service, text)).toBe('HTTP/1.1 200 OK')
    expect((await messages()).items[0]).toMatchObject({ body: 'abcde', bodyBase64: base64('abcde') })
  })

  const announced: [what: string, lines: string, header: string][] = [
    ['a length', 'Content-Length: 3\r\n\r\nabc', 'Content-Length'],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n', 'Transfer-Encoding'],
  ]
  test.each(announced)('refuses a GET with a body of %s, and stores nothing', async (_, lines, header) => {
    const { path, messages } = await fresh()
    for (const below of ['', '/sub?a=1']) {
      const request = `GET ${path}${below} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}`
      const [status, body] = await answered(service, request)
      expect(status).toBe('HTTP/1.1 400 Bad Request')
      expect(JSON.parse(body)).toEqual({
        success: false,
        error: {
          code: 'VALIDATION_FAILED',
          message: expect.any(String),
          details: { issues: [{ path: `header.${header}`, message: expect.any(String) }] },
          request_id: expect.stringMatching(/^req_/),
        },
      })
    }
    expect((await messages()).items).toEqual([])
  })

  test('takes a GET that says that its body is empty', async () => {
    const { path, messages } = await fresh()
    const lines = 'Host: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'
    expect(await answered(service, `GET ${path} HTTP/1.1\r\n${lines}`)).toEqual([
      'HTTP/1.1 200 OK',
      '{"received":true}',
    ])
    expect((await messages()).items).toHaveLength(1)
  })

  test('refuses a body over 1 MiB with 413, and stores nothing', async () => {
    const { path, messages } = await fresh()
    const answer = await service.ask('POST', path, { body: 'x'.repeat(mib + 1) })
    expect(answer.status).toBe(413)
    expect(answer.body).toMatchObject({ success: false, error: { code: 'PAYLOAD_TOO_LARGE' } })
    expect((await messages()).items).toEqual([])
  })

  const paths: [suffix: string, path: string, query: object][] = [
    ['', '', {}],
    ['/', '/', {}],
    ['/any/sub/path', '/any/sub/path', {}],
    ['/a%2Fb/%C3%A9//', '/a%2Fb/%C3%A9//', {}],
    ['?', '', {}],
    ['/x?a=1&b=2&a=3', '/x', { a: ['1', '3'], b: '2' }],
    ['??a&b=&=c&?d', '', { '?a': '', b: '', '': 'c', '?d': '' }],
    ['?a=%C3%A9+%F0%9F%98%80', '', { a: 'é 😀' }],
    ['?a=%zz&b=%ff&c=%00', '', { a: '%zz', b: '\ufffd', c: '\0' }],
    ['?/hook/x/y', '', { '/hook/x/y': '' }],
  ]
  test.each(paths)('keeps path and query of …%s', async (suffix, path, query) => {
    const hook = await fresh()
    expectReceived(await service.ask('GET', hook.path + suffix))
    const { items } = await hook.messages()
    expect([items[0].path, items[0].query]).toEqual([path, query])
  })

  test('takes __proto__ and the like for names as any other', async () => {
    const { path, messages } = await fresh()
    expectReceived(await service.ask('GET', `${path}?__proto__=a&constructor=b&__proto__=c`))
    expect(await sent(service, `GET ${path} HTTP/1.1\r\nHost: x\r\n__proto__: h\r\n\r\n`)).toBe(
      'HTTP/1.1 200 OK',
    )
    const { text } = await messages()
    expect(text).toContain('"query":{"__proto__":["a","c"],"constructor":"b"}')
    expect(text).toContain('"__proto__":"h"')
  })

  test('keeps headers in lower case, repeats joined by a comma, all but proxy-authorization', async () => {
    const { path, messages } = await fresh()
    const lines = [
      ...[
        'Host: x',
        'X-A: 1',
        'x-a: 2',
        'X-Empty:',
        'Authorization: Basic s',
        'Proxy-Authorization: Basic p',
      ],
      ...['Set-Cookie: a=1', 'Set-Cookie: b=2', 'X-Quote: "\\', 'Content-Length: 0'],
    ]
    const head = Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n`)
    const latin1 = Buffer.from('X-Latin: caf\u00e9\r\n\r\n', 'latin1')
    expect(await sent(service, Buffer.concat([head, latin1]))).toBe('HTTP/1.1 200 OK')
    expect((await messages()).items[0].headers).toEqual({
      ...{ host: 'x', 'x-a': '1, 2', 'x-empty': '', authorization: 'Basic s', 'set-cookie': 'a=1, b=2' },
      ...{ 'x-quote': '"\\', 'content-length': '0', 'x-latin': 'caf\u00e9' },
    })
  })

  test('answers HEAD as GET and OPTIONS with the methods, and stores nothing', async () => {
    const { inbox, path, messages } = await fresh()
    for (const below of ['', '/sub?a=1']) {
      const head = await service.ask('HEAD', path + below)
      expect([head.status, head.text]).toEqual([200, ''])
      const options = await service.ask('OPTIONS', path + below)
      expect([options.status, options.text]).toEqual([204, ''])
      expect(options.headers.get('allow')).toBe('DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT')
    }
    expect((await messages()).items).toEqual([])
    const detail = await service.ask('GET', `/api/webhook/${inbox.id}`, { key: tenant.api_key })
    expect(detail.body.data.inbox.messageCount).toBe(0)
  })

  test.each(['x', '0'.repeat(32), '0'.repeat(33), '%00', `${'a'.repeat(31)}%C3%A9`])(
    'with the token %s is 404, whatever is sent',
    async (token) => {
      for (const method of [...methods, 'HEAD']) {
        const answer = await service.ask(method, `/hook/${token}/sub`)
        expect(answer.status).toBe(404)
        if (method !== 'HEAD') {
          expect(answer.body).toEqual({
            success: false,
            error: {
              code: 'INBOX_NOT_FOUND',
              message: 'There is no such inbox.',
              request_id: answer.headers.get('x-request-id'),
            },
          })
        }
      }
    },
  )

  test('reads no credentials: whatever is sent as such is kept and not looked at', async () => {
    const { path, messages } = await fresh()
    const headers = {
      'x-api-key': tenant.api_key,
      'x-admin-key': 'svc_adm_x',
      authorization: 'Bearer svc_agt_x',
    }
    expectReceived(await service.ask('POST', path, { headers }))
    expect((await messages()).items[0].headers).toMatchObject(headers)
  })

  test('counts no call of the month', async () => {
    const free = await service.signUp('free')
    const inbox = await inboxOf(service, free)
    for (let n = 0; n < 3; n++) expectReceived(await service.ask('POST', `/hook/${inbox.token}`))
    const view = await service.ask('GET', `/v1/tenants/${free.tenant_id}`, { key: free.admin_key })
    expect(view.body.quota.api_calls_per_month).toEqual({ used: 1, limit: 500 })
  })

  describe('under a flood', () => {
    test('of 10,000 messages keeps the number of the plan: the newest, in order, without a gap', async () => {
      const free = await service.signUp('free')
      const inbox = await inboxOf(service, free)
      const total = 10_000
      let next = 0
      const sender = async () => {
        for (let n = next++; n < total; n = next++) {
          expectReceived(await service.ask('POST', `/hook/${inbox.token}`, { body: { n } }))
        }
      }
      await Promise.all(Array.from({ length: 32 }, sender))
      const detail = await service.ask('GET', `/api/webhook/${inbox.id}`, { key: free.api_key })
      expect(detail.body.data.inbox.messageCount).toBe(100)
      const { items } = await messagesOf(service, free, inbox)
      expect(items).toHaveLength(100)
      const numbers = Array.from({ length: 100 }, (_, i) => total - 99 + i)
      expect(items.map(({ id }: { id: string }) => sequenceOf('msg', id))).toEqual(numbers)
      const kept: number[] = items.map(({ body }: { body: { n: number } }) => body.n)
      expect(new Set(kept).size).toBe(100)
    })
  })
})

const forwarded_for = { 'x-forwarded-for': '203.0.113.9, 192.0.2.7' }

async function sourceIpOf(service: TestService): Promise<string> {
  const tenant = await service.signUp()
  const inbox = await inboxOf(service, tenant)
  expectReceived(await service.ask('POST', `/hook/${inbox.token}`, { headers: forwarded_for }))
  const { items } = await messagesOf(service, tenant, inbox)
  expect(items[0].headers).toMatchObject(forwarded_for)
  return items[0].sourceIp
}

forEachRacedService(
  'The statements of a message',
  (service) => {
    test('costs 3 statements while nothing is dropped, 4 from then on, and 1 where it is refused', async () => {
      const free = await service.signUp('free')
      const inbox = await inboxOf(service, free)
      const counted = async (path: string) => {
        const names: string[] = []
        service.app.db.onStatement((name) => {
          if (name !== 'stored.add') names.push(name) // of the commit, not of the request
        })
        await service.ask('POST', path).finally(() => service.app.db.onStatement(null))
        return names
      }
      for (let n = 1; n < 100; n++) await service.ask('POST', `/hook/${inbox.token}`)
      expect(await counted(`/hook/${inbox.token}`)).toEqual(['inbox.receive', 'inbox.add', 'journal.insert'])
      expect(await counted(`/hook/${inbox.token}`)).toEqual([
        ...['inbox.receive', 'inbox.add', 'journal.insert', 'inbox.drop'],
      ])
      expect(await counted(`/hook/${'0'.repeat(32)}`)).toEqual(['lookups.find'])
      expect(await counted('/hook/0')).toEqual([])
    })
  },
  {},
  { background: false },
)

forEachRacedService('sourceIp', (service) => {
  service.over_http = true
  test('is the peer, whatever x-forwarded-for says', async () => {
    expect(await sourceIpOf(service)).toBe('127.0.0.1')
  })
})

forEachRacedService(
  'sourceIp behind a trusted proxy',
  (service) => {
    service.over_http = true
    test('is what the proxy says', async () => {
      expect(await sourceIpOf(service)).toBe('192.0.2.7')
    })
  },
  { TRUST_PROXY: '127.0.0.1' },
)
