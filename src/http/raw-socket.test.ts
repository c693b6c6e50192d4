// Requests that a client library would not send, and answers that it would not show: bytes on a socket.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forEachDatabase } from '../../test/support/databases.ts'
import { forEachRacedService, TestService, type TestTenant } from '../../test/support/service.ts'
import { openDb } from '../db/open.ts'
import { body_bytes_max } from './body-stream.ts'

interface RawAnswer {
  status: string
  headers: Record<string, string>
  text: string
}

/** One TCP connection. Answers are taken off it in the order in which they come. */
class Connection {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #ended = false
  /** Why it failed, e.g. ECONNREFUSED. */
  error: string | undefined
  #wake: () => void = () => {}

  constructor(service: TestService) {
    const { hostname, port } = new URL(service.url)
    this.#socket = connect(Number(port), hostname)
    this.#socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#wake()
    })
    this.#socket.on('error', (error: Error & { code?: string }) => {
      this.error = error.code
    })
    this.#socket.on('close', () => {
      this.#ended = true
      this.#wake()
    })
  }

  send(bytes: string | Uint8Array): this {
    this.#socket.write(bytes)
    return this
  }

  async #taken<T>(take: () => T | null): Promise<T> {
    for (;;) {
      const taken = take()
      if (taken !== null) return taken
      if (this.#ended) throw new Error(`closed after ${JSON.stringify(this.#received.toString('latin1'))}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The head of an answer, without its body: `HTTP/1.1 100 Continue`. */
  async head(): Promise<string> {
    return this.#taken(() => {
      const end = this.#received.indexOf('\r\n\r\n')
      if (end === -1) return null
      const head = this.#received.toString('latin1', 0, end)
      this.#received = this.#received.subarray(end + 4)
      return head
    })
  }

  /** A whole answer with a content-length. */
  async answer(): Promise<RawAnswer> {
    const [status, ...lines] = (await this.head()).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    )
    const length = Number(headers['content-length'] ?? 0)
    const text = await this.#taken(() => {
      if (this.#received.length < length) return null
      const body = this.#received.toString('utf8', 0, length)
      this.#received = this.#received.subarray(length)
      return body
    })
    return { status: status!, headers, text }
  }

  /** Everything that comes until the other side closes. */
  async rest(): Promise<string> {
    while (!this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#received.toString('latin1')
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** Sends one request and takes one answer. */
async function exchange(service: TestService, request: string | Uint8Array): Promise<RawAnswer> {
  const connection = new Connection(service).send(request)
  try {
    return await connection.answer()
  } finally {
    connection.close()
  }
}

function codeOf({ text }: RawAnswer): unknown {
  return JSON.parse(text).error?.code
}

const put_body = '{"value": 10}'

/** While everything is loopback, only loopback names are served; here Host is x. */
const public_environment = { PUBLIC_URL: 'http://x' }

forEachRacedService(
  'On the wire',
  (service) => {
    service.over_http = true
    let tenant: TestTenant
    let authorization = ''
    beforeAll(async () => {
      tenant = await service.signUp()
      authorization = `Authorization: Bearer ${tenant.api_key}\r\n`
    })

    describe('Bun itself answers, or just closes, before a route is reached: without X-Request-Id', () => {
      const too_large = 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n'
      const bad_request = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
      const bad_version = 'HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n'
      test.each([
        [
          'a header block that is too long',
          `GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`,
          too_large,
        ],
        [
          'a request line that is too long',
          `GET /livez?${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
          too_large,
        ],
        ['250 header fields', `GET /livez HTTP/1.1\r\nHost: x\r\n${'X-A: 1\r\n'.repeat(249)}\r\n`, too_large],
        ['one word for a request line', 'GARBAGE\r\n\r\n', bad_request],
        ['a path that does not begin with a slash', 'GET livez HTTP/1.1\r\nHost: x\r\n\r\n', bad_request],
        ['HTTP/1.1 without Host', 'GET /livez HTTP/1.1\r\n\r\n', bad_request],
        ['a header name with a space', 'GET /livez HTTP/1.1\r\nHost: x\r\nbad name: 1\r\n\r\n', bad_request],
        [
          'content-length -1',
          'PUT /v1/kv/a/b HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
          bad_request,
        ],
        [
          'content-length abc',
          'PUT /v1/kv/a/b HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n',
          bad_request,
        ],
        [
          'two content-lengths',
          'PUT /v1/kv/a/b HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\nContent-Length: ${put_body.length}\r\n\r\n',
          bad_request,
        ],
        [
          'content-length beside chunks, which is how requests are smuggled',
          'PUT /v1/kv/a/b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n',
          bad_request,
        ],
        ['HTTP/2.0', 'GET /livez HTTP/2.0\r\nHost: x\r\n\r\n', bad_version],
        ['no version', 'GET /livez\r\n\r\n', bad_version],
        ['a space in the path', 'GET /v1/kv/a/b c HTTP/1.1\r\nHost: x\r\n\r\n', bad_version],
        ['a method that Bun does not know', 'BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n', ''],
        ['a method in lower case', 'get /livez HTTP/1.1\r\nHost: x\r\n\r\n', ''],
      ])('%s', async (_, request, expected) => {
        expect(await new Connection(service).send(request).rest()).toBe(expected)
      })

      test.each([
        ['a header block of nearly 16 KiB', `X-Long: ${'a'.repeat(16_000)}\r\n`],
        ['190 header fields', 'X-A: 1\r\n'.repeat(189)],
      ])('but not to %s', async (_, headers) => {
        const answer = await exchange(service, `GET /livez HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
        expect(answer.status).toBe('HTTP/1.1 200 OK')
      })
    })

    describe('Bodies', () => {
      const put = (headers: string) =>
        `PUT /v1/kv/raw/key HTTP/1.1\r\nHost: x\r\n${authorization}${headers}\r\n`

      const too_large = (request_id: string) => ({
        error: {
          code: 'PAYLOAD_TOO_LARGE',
          message: 'The body, or a value in it, is too large.',
          request_id,
        },
      })

      test('of more than 1 MiB by their content-length get our own 413 before they are read', async () => {
        const answer = await exchange(
          service,
          `${put(`X-Request-Id: request-0001\r\nContent-Length: ${body_bytes_max + 1}\r\n`)}{`,
        )
        expect(answer.status).toBe('HTTP/1.1 413 Payload Too Large')
        expect(answer.headers['x-request-id']).toBe('request-0001')
        expect(JSON.parse(answer.text)).toEqual(too_large('request-0001'))
      })

      test('that are too large are thrown away, and the connection goes on with the next request', async () => {
        const connection = new Connection(service).send(
          `${put(`Content-Length: ${body_bytes_max + 1}\r\n`)}${' '.repeat(body_bytes_max + 1)}`,
        )
        expect(codeOf(await connection.answer())).toBe('PAYLOAD_TOO_LARGE')
        const next = await connection.send('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n').answer()
        connection.close()
        expect(next.text).toBe('{"status":"alive"}')
      })

      test('of more than 16 MiB are not waited for: the connection is closed', async () => {
        const most = 16 * body_bytes_max
        const kept = await exchange(service, `${put(`Content-Length: ${most}\r\n`)}{`)
        expect([codeOf(kept), kept.headers.connection]).toEqual(['PAYLOAD_TOO_LARGE', undefined])
        const connection = new Connection(service).send(`${put(`Content-Length: ${most + 1}\r\n`)}{`)
        const closed = await connection.answer()
        expect([codeOf(closed), closed.headers.connection]).toEqual(['PAYLOAD_TOO_LARGE', 'close'])
        expect(await connection.rest()).toBe('')
      })

      test('of more than 1 MiB in chunks get the same, and the connection is closed', async () => {
        const size = body_bytes_max + 1
        const connection = new Connection(service).send(
          `${put('Transfer-Encoding: chunked\r\n')}${size.toString(16)}\r\n${' '.repeat(size)}\r\n0\r\n\r\n`,
        )
        const answer = await connection.answer()
        expect(answer.status).toBe('HTTP/1.1 413 Payload Too Large')
        expect(answer.headers.connection).toBe('close')
        expect(JSON.parse(answer.text)).toEqual(too_large(answer.headers['x-request-id']!))
        expect(await connection.rest()).toBe('')
      })

      test('of exactly 1 MiB are read, in either form', async () => {
        const padded = put_body.padEnd(body_bytes_max, ' ')
        for (const request of [
          `${put(`Content-Length: ${body_bytes_max}\r\n`)}${padded}`,
          `${put('Transfer-Encoding: chunked\r\n')}${body_bytes_max.toString(16)}\r\n${padded}\r\n0\r\n\r\n`,
        ]) {
          expect((await exchange(service, request)).status).toBe('HTTP/1.1 200 OK')
        }
      })

      test('in chunks are put together', async () => {
        const answer = await exchange(
          service,
          `${put('Transfer-Encoding: chunked\r\n')}5\r\n{"val\r\n8\r\nue": 10}\r\n0\r\n\r\n`,
        )
        expect(answer.status).toBe('HTTP/1.1 200 OK')
        const got = await service.ask('GET', '/v1/kv/raw/key', { key: tenant.api_key })
        expect(got.body.value).toBe(10)
      })

      test('in a broken chunk get the 400 of Bun, and write nothing', async () => {
        const broken = put('Transfer-Encoding: chunked\r\n').replace('/raw/key', '/raw/broken')
        const answer = await new Connection(service).send(`${broken}d\r\n${put_body}\r\nZZ\r\n`).rest()
        expect(answer).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
        const got = await service.ask('GET', '/v1/kv/raw/broken', { key: tenant.api_key })
        expect(got.status).toBe(404)
      })

      test('that wait for 100 Continue get it', async () => {
        const connection = new Connection(service).send(
          put(`Expect: 100-continue\r\nContent-Length: ${put_body.length}\r\n`),
        )
        expect(await connection.head()).toBe('HTTP/1.1 100 Continue')
        const answer = await connection.send(put_body).answer()
        connection.close()
        expect([answer.status, JSON.parse(answer.text).key]).toEqual(['HTTP/1.1 200 OK', 'key'])
      })
    })

    describe('What Bun refuses after it has handed on the request has no effect', () => {
      const bad_request = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
      const put = (key: string, headers = '') =>
        `PUT /v1/kv/raw/${key} HTTP/1.1\r\nHost: x\r\n${authorization}${headers}\r\n`
      const sized = (key: string) => `${put(key, `Content-Length: ${put_body.length}\r\n`)}${put_body}`
      const chunked = (key: string, headers = '') =>
        `${put(key, `Transfer-Encoding: chunked\r\n${headers}`)}d\r\n${put_body}\r\n`
      const stored = async (...keys: string[]) => {
        const statuses = keys.map((key) => service.ask('GET', `/v1/kv/raw/${key}`, { key: tenant.api_key }))
        return (await Promise.all(statuses)).map(({ status }) => status)
      }

      test('a chunked body with trailers', async () => {
        const at_once = new Connection(service).send(`${chunked('trailer-1')}0\r\nX-Sum: 1\r\n\r\n`)
        expect(await at_once.rest()).toBe(bad_request)
        const later = new Connection(service).send(chunked('trailer-2'))
        await exchange(service, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
        expect(await later.send('0\r\nX-Sum: 1\r\n\r\n').rest()).toBe(bad_request)
        expect(await stored('trailer-1', 'trailer-2')).toEqual([404, 404])
      })

      test('a message to an inbox with trailers', async () => {
        const { body } = await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: {} })
        const head = `POST /hook/${body.data.token} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
        expect(await new Connection(service).send(`${head}1\r\na\r\n0\r\nA: b\r\n\r\n`).rest()).toBe(
          bad_request,
        )
        const inbox = await service.ask('GET', `/api/webhook/${body.data.id}`, { key: tenant.api_key })
        expect(inbox.body.data.messages).toEqual([])
      })

      test('trailers that are announced get our own answer before the body is read', async () => {
        const answer = await exchange(
          service,
          put('trailer-3', 'Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n'),
        )
        expect([answer.status, codeOf(answer)]).toEqual(['HTTP/1.1 400 Bad Request', 'VALIDATION_FAILED'])
        expect(JSON.parse(answer.text).error.details.issues).toEqual([
          { path: 'header.Trailer', message: 'announces trailers, which are not accepted' },
        ])
      })

      test.each([
        ['two puts', () => sized('pipe-1') + sized('pipe-2'), ['pipe-1', 'pipe-2']],
        ['a put and a get', () => `${sized('pipe-3')}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`, ['pipe-3']],
        [
          'a chunked put and a put',
          () => `${chunked('pipe-4')}0\r\n\r\n${sized('pipe-5')}`,
          ['pipe-4', 'pipe-5'],
        ],
      ])('%s that are sent at once', async (_, requests, keys) => {
        expect(await new Connection(service).send(requests()).rest()).toBe('')
        expect(await stored(...keys)).toEqual(keys.map(() => 404))
      })

      test('but one request after the answer of the other has', async () => {
        const connection = new Connection(service)
        const statuses = []
        for (const key of ['one-1', 'one-2']) {
          statuses.push((await connection.send(sized(key)).answer()).status)
          statuses.push((await connection.send(`${chunked(key)}0\r\n\r\n`).answer()).status)
        }
        connection.close()
        expect(statuses).toEqual(Array.from({ length: 4 }, () => 'HTTP/1.1 200 OK'))
        expect(await stored('one-1', 'one-2')).toEqual([200, 200])
      })
    })

    describe('A body is not waited for', () => {
      const announced = (path: string, bytes: number, headers = '') =>
        exchange(service, `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${bytes}\r\n\r\na`)

      test.each([
        [10, '/hook/no-token', 'INBOX_NOT_FOUND'],
        [1_048_576, '/hook/no-token', 'INBOX_NOT_FOUND'],
        [1_048_576, '/hook/no-token/below', 'INBOX_NOT_FOUND'],
        [1_048_576, '/v1/audit', 'UNAUTHORIZED'],
        [10, '/v1/audit', 'UNAUTHORIZED'],
        [1_048_576, '/mcp', 'UNAUTHORIZED'],
      ])('of %d bytes for %s: %s', async (bytes, path, code) => {
        expect(codeOf(await announced(path, bytes))).toBe(code)
      })

      test('when it is large and no inbox has the token, or its inbox has expired', async () => {
        const made = await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: { ttl: 60 } })
        const { token } = made.body.data
        const other = `${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`
        expect(codeOf(await announced(`/hook/${other}`, 16_385))).toBe('INBOX_NOT_FOUND')
        service.clock.advance(61_000)
        expect(codeOf(await announced(`/hook/${token}`, 16_385))).toBe('INBOX_EXPIRED')
      })
    })

    describe('Connections', () => {
      const livez = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'

      test('serve one request after another, each with its own id', async () => {
        const connection = new Connection(service)
        const first = await connection.send(livez).answer()
        const second = await connection.send(livez).answer()
        connection.close()
        expect([first.text, second.text]).toEqual(['{"status":"alive"}', '{"status":"alive"}'])
        expect(first.headers['x-request-id']).not.toBe(second.headers['x-request-id'])
      })

      test('serve requests that were sent at once, in their order', async () => {
        const connection = new Connection(service).send(
          `${livez}GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n${livez}`,
        )
        const statuses = []
        for (let i = 0; i < 3; i++) statuses.push((await connection.answer()).status)
        connection.close()
        expect(statuses).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 200 OK'])
      })

      test.each([
        ['Connection: close', 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
        ['HTTP/1.0', 'GET /livez HTTP/1.0\r\nHost: x\r\n\r\n'],
        ['HTTP/1.0 without Host', 'GET /livez HTTP/1.0\r\n\r\n'],
      ])('end with the answer to %s', async (_, request) => {
        const connection = new Connection(service).send(request)
        const answer = await connection.answer()
        expect([answer.status, answer.text]).toEqual(['HTTP/1.1 200 OK', '{"status":"alive"}'])
        expect(answer.headers['x-request-id']).toMatch(/^req_/)
        expect(await connection.rest()).toBe('')
      })

      test('end with a large answer to HTTP/1.0, which knows no chunks', async () => {
        const connection = new Connection(service).send('GET /openapi.json HTTP/1.0\r\n\r\n')
        const { status, headers } = await connection.answer()
        expect([status, headers['transfer-encoding']]).toEqual(['HTTP/1.1 200 OK', undefined])
        const document = JSON.parse(await connection.rest())
        expect(Object.keys(document.paths)).toContain('/v1/kv/{namespace}/{key}')
      })

      test('skip a body that a GET brings along', async () => {
        const connection = new Connection(service).send(
          `GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello${livez}`,
        )
        const answers = [await connection.answer(), await connection.answer()]
        connection.close()
        expect(answers.map(({ text }) => text)).toEqual(['{"status":"alive"}', '{"status":"alive"}'])
      })
    })

    describe('Paths', () => {
      const ask = (path: string, host = 'x') =>
        exchange(service, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n`)

      test('in absolute form are those of their origin form', async () => {
        expect((await ask('http://example.com/livez')).text).toBe('{"status":"alive"}')
        expect(codeOf(await ask('http://example.com/v1/kv/state/none'))).toBe('KEY_NOT_FOUND')
        expect(codeOf(await ask('http://example.com/nowhere'))).toBe('ROUTE_NOT_FOUND')
      })

      test.each([
        '//livez',
        '/livez/',
        '/v1//agents/agent-one',
        '/v1/agents/agent-one/',
        '/v1/agents/',
        '/v1/kv/state/',
        '/v1/kv//key',
        '/v1/kv/a/b/c',
        '/v1/kv/../agents/agent-one',
        '/v1/./agents/agent-one',
        '/V1/agents/agent-one',
        '/v1/agents%2Fagent-one',
        '/',
      ])('%s is none of ours', async (path) => {
        const answer = await ask(path)
        expect([answer.status, codeOf(answer)]).toEqual(['HTTP/1.1 404 Not Found', 'ROUTE_NOT_FOUND'])
        expect(answer.headers['x-request-id']).toMatch(/^req_/)
      })

      test.each(['.', '..', '%2E', '%2e%2E', '.%2e'])(
        'a key that is the dot segment %s is refused',
        async (key) => {
          const answer = await ask(`/v1/kv/state/${key}`)
          expect([answer.status, codeOf(answer)]).toEqual(['HTTP/1.1 400 Bad Request', 'VALIDATION_FAILED'])
          expect(JSON.parse(answer.text).error.details.issues[0].path).toBe('path.key')
        },
      )

      test.each([
        ['path.key', '/v1/kv/state/%E9'],
        ['query.prefix', '/v1/kv/state?prefix=%E9'],
      ])('an encoded byte that is not UTF-8 is refused in %s', async (path, target) => {
        const answer = await ask(target)
        expect([answer.status, codeOf(answer)]).toEqual(['HTTP/1.1 400 Bad Request', 'VALIDATION_FAILED'])
        expect(JSON.parse(answer.text).error.details.issues[0].path).toBe(path)
      })

      test('a byte that is not UTF-8, and is not encoded, is U+FFFD', async () => {
        const put = `PUT /v1/kv/raw-bytes/\xe9 HTTP/1.1\r\nHost: x\r\n${authorization}Content-Length: ${put_body.length}\r\n\r\n${put_body}`
        expect(JSON.parse((await exchange(service, Buffer.from(put, 'latin1'))).text).key).toBe('\ufffd')
      })

      test('a Host that is none does no harm', async () => {
        for (const host of ['', 'a b', '[', 'x:99999']) {
          expect((await ask('/v1/agents/agent-one', host)).status).toBe('HTTP/1.1 200 OK')
        }
      })
    })

    describe('Headers', () => {
      test.each([
        ['two hosts', 'Host: x\r\nHost: y\r\n'],
        ['one host twice', 'Host: x\r\nHost: x\r\n'],
        ['a host and an empty one', 'Host: x\r\nHost: \r\n'],
        ['an empty host and one', 'Host: \r\nHost: x\r\n'],
      ])('%s are refused', async (_, hosts) => {
        const seen = []
        for (const path of ['/livez', '/v1/kv/state', '/hook/x', '/docs', '/nowhere']) {
          const answer = await exchange(service, `GET ${path} HTTP/1.1\r\n${hosts}${authorization}\r\n`)
          seen.push([answer.status, JSON.parse(answer.text).error.details?.issues])
        }
        const issues = [{ path: 'header.Host', message: 'was sent more than once' }]
        expect(seen).toEqual(seen.map(() => ['HTTP/1.1 400 Bad Request', issues]))
      })

      test('a key that is sent twice is none', async () => {
        const key = `X-Api-Key: ${tenant.api_key}\r\n`
        const answer = await exchange(
          service,
          `GET /v1/kv/state HTTP/1.1\r\nHost: x\r\nX-Agent-Id: agent-one\r\n${key}${key}\r\n`,
        )
        expect([answer.status, codeOf(answer)]).toEqual(['HTTP/1.1 401 Unauthorized', 'UNAUTHORIZED'])
      })

      test('names are taken in any case', async () => {
        const key = `X-API-KEY: ${tenant.api_key}\r\n`
        const answer = await exchange(
          service,
          `GET /v1/kv/state HTTP/1.1\r\nHOST: x\r\nx-agent-ID: agent-one\r\n${key}\r\n`,
        )
        expect(answer.status).toBe('HTTP/1.1 200 OK')
      })

      test('If-Match in several lines is one list', async () => {
        await service.ask('PUT', '/v1/kv/state/listed', { key: tenant.api_key, body: { value: 1 } })
        const get = (lines: string) =>
          exchange(service, `GET /v1/kv/state/listed HTTP/1.1\r\nHost: x\r\n${authorization}${lines}\r\n`)
        expect((await get('If-Match: "7"\r\nIf-Match: "1"\r\n')).status).toBe('HTTP/1.1 200 OK')
        expect((await get('If-Match: "7"\r\nIf-Match: "8"\r\n')).status).toBe(
          'HTTP/1.1 412 Precondition Failed',
        )
      })
    })
  },
  public_environment,
)

forEachDatabase('A drain', (databases) => {
  let service: TestService
  afterAll(() => service.stop())

  test('lets requests finish, refuses new connections, and leaves a database that opens', async () => {
    service = await new TestService(public_environment).start(await databases.newUrl())
    const tenant = await service.signUp()
    const put_headers = [
      'Host: x',
      `Authorization: Bearer ${tenant.api_key}`,
      'Expect: 100-continue',
      `Content-Length: ${put_body.length}`,
    ].join('\r\n')
    const put = (key: string) => `PUT /v1/kv/drain/${key} HTTP/1.1\r\n${put_headers}\r\n\r\n`
    // First on its connection, and not all there yet; the round trips that follow make sure it was read.
    const asking = new Connection(service).send('GET /readyz HTTP/1.1\r\nHost: x\r\n')
    const idle = new Connection(service).send('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await idle.answer()
    const [one, other] = [
      new Connection(service).send(put('one')),
      new Connection(service).send(put('other')),
    ]
    expect([await one.head(), await other.head()]).toEqual(['HTTP/1.1 100 Continue', 'HTTP/1.1 100 Continue'])

    let stopped = false
    const stopping = service.app.stop().then(() => {
      stopped = true
    })
    expect(await idle.rest()).toBe('')
    const refused = new Connection(service)
    expect([await refused.rest(), refused.error]).toEqual(['', 'ECONNREFUSED'])

    const readiness = await asking.send('\r\n').answer()
    expect(readiness.status).toBe('HTTP/1.1 503 Service Unavailable')
    expect(readiness.headers['retry-after']).toBe('1')
    expect(JSON.parse(readiness.text).error).toMatchObject({
      code: 'UNAVAILABLE',
      details: { reason: 'draining' },
    })

    const first = await one.send(put_body).answer()
    expect([first.status, stopped]).toEqual(['HTTP/1.1 200 OK', false])
    const second = await other.send(put_body).answer()
    expect(second.status).toBe('HTTP/1.1 200 OK')
    await stopping
    expect([await one.rest(), await other.rest()]).toEqual(['', ''])

    const again = await openDb(service.database_url, {
      clock: service.clock,
      exclusive: true,
      onFatal: (error) => {
        throw error
      },
    })
    await again.close()
    const reopened = await new TestService({
      ...public_environment,
      SECRET_KEY: service.app.secret_key.value,
    }).start(service.database_url)
    const list = await reopened.ask('GET', '/v1/kv/drain', { key: tenant.api_key })
    await reopened.stop()
    expect(list.body.items.map(({ key }: { key: string }) => key)).toEqual(['one', 'other'])
  })
})

describe('A drain (sqlite)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-drain-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('checkpoints the database file: the -wal is gone, and the file alone holds everything', async () => {
    const file = join(folder, 'test.db')
    const service = await new TestService(public_environment).start(`sqlite:${file}`)
    const { api_key } = await service.signUp()
    await service.ask('PUT', '/v1/kv/a/b', { key: api_key, body: { value: 'kept' } })
    expect(existsSync(`${file}-wal`)).toBe(true)
    await service.stop()
    expect([existsSync(`${file}-wal`), existsSync(`${file}-shm`)]).toEqual([false, false])
    const copy = join(folder, 'copy.db')
    copyFileSync(file, copy)
    const db = new Database(copy, { readonly: true })
    expect(db.query('select value from kv_entries').values()).toEqual([['"kept"']])
    db.close()
  })
})
