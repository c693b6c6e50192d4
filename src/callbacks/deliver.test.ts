import { afterEach, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { TestClock } from '../../test/support/clock.ts'
import { certificate_pem, type Receiver, startRawServer, startReceiver } from '../../test/support/receiver.ts'
import type { FailureClass, Outcome } from './attempt.ts'
import { Sender, type SenderOptions } from './deliver.ts'
import { openConnection } from './dial.ts'
import type { EgressPolicy } from './guard.ts'
import { parseAllow } from './ranges.ts'

const kib = 1_024
/** The largest chunk that the runtime may hand over; a limit is only noticed at the end of a chunk. */
const chunk_bytes_max = 512 * kib

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function receiverFor(options: { secure?: boolean } = {}): Promise<Receiver> {
  const receiver = await startReceiver(options)
  cleanups.push(receiver.stop)
  return receiver
}

async function rawServer(onConnection: (socket: Socket) => void) {
  const server = await startRawServer(onConnection)
  cleanups.push(server.stop)
  return server
}

/** Loopback is allowed; every name leads to 127.0.0.1. */
function senderFor(options: SenderOptions & Partial<EgressPolicy> = {}): Sender & { clock: TestClock } {
  const { allow, https_only, public_url, resolve, ...rest } = options
  const clock = new TestClock()
  const policy = {
    allow: allow ?? parseAllow('127.0.0.0/8'),
    https_only: https_only ?? false,
    public_url: public_url ?? 'http://self.example.com',
    resolve: resolve ?? (async () => ['127.0.0.1']),
    listening: null,
    interfaces: () => [],
  }
  const sender = Object.assign(new Sender(policy, clock, rest), { clock })
  cleanups.push(() => sender.close())
  return sender
}

function post(url: string, body: string | Uint8Array = '{}') {
  return { method: 'POST', url, headers: { 'content-type': 'application/json' }, body }
}

function success(status: number): Outcome {
  return { ok: true, status, error: null, duration_ms: 0 }
}

function failure(error: FailureClass): Outcome {
  return { ok: false, status: null, error, duration_ms: 0 }
}

describe('a request', () => {
  test('arrives as it was given, with host and length', async () => {
    const receiver = await receiverFor()
    const outcome = await senderFor().send('ten_1', {
      method: 'POST',
      url: `${receiver.url}/a%20b/?x=1&y=%2F#fragment`,
      headers: { 'content-type': 'application/json', 'webhook-id': 'evt_1', 'X-Odd': 'a b' },
      body: '{"größe": 1}',
    })
    expect(outcome).toEqual(success(204))
    expect(receiver.requests).toEqual([
      {
        method: 'POST',
        target: '/a%20b/?x=1&y=%2F',
        headers: {
          host: `127.0.0.1:${receiver.port}`,
          'content-type': 'application/json',
          'webhook-id': 'evt_1',
          'x-odd': 'a b',
          'content-length': '14',
          connection: 'keep-alive',
        },
        body: '{"größe": 1}',
      },
    ])
  })

  test('carries the name of the URL in Host, not the address', async () => {
    const receiver = await receiverFor()
    await senderFor().send('ten_1', post(`http://Receiver.Example.com:${receiver.port}/`))
    expect(receiver.requests[0]?.headers.host).toBe(`receiver.example.com:${receiver.port}`)
  })

  test('cannot be given the headers that belong to the connection', async () => {
    const receiver = await receiverFor()
    const headers = {
      Host: 'evil.example.com',
      'Content-Length': '9999',
      'Transfer-Encoding': 'chunked',
      Trailer: 'x',
      TE: 'trailers',
      Expect: '100-continue',
      Connection: 'upgrade',
      'Keep-Alive': 'timeout=999',
      'Proxy-Connection': 'keep-alive',
      Upgrade: 'websocket',
    }
    const outcome = await senderFor().send('ten_1', {
      method: 'POST',
      url: `${receiver.url}/`,
      headers,
      body: 'abc',
    })
    expect(outcome).toEqual(success(204))
    expect(receiver.requests[0]).toEqual({
      method: 'POST',
      target: '/',
      headers: { host: `127.0.0.1:${receiver.port}`, 'content-length': '3', connection: 'keep-alive' },
      body: 'abc',
    })
  })

  test.each([
    ['GET', '', undefined],
    ['DELETE', '', undefined],
    ['POST', '', '0'],
    ['PUT', '', '0'],
    ['PATCH', 'ab', '2'],
    ['GET', 'ab', '2'],
    ['REPORT', 'ab', '2'],
  ])('of method %s with the body %p has the length %p', async (method, body, length) => {
    const receiver = await receiverFor()
    const outcome = await senderFor().send('ten_1', { method, url: `${receiver.url}/`, headers: {}, body })
    expect(outcome).toEqual(success(204))
    expect(receiver.requests[0]?.method).toBe(method)
    expect(receiver.requests[0]?.headers['content-length']).toBe(length as string)
    expect(receiver.requests[0]?.body).toBe(body)
  })

  test('sends bytes as they are', async () => {
    const { promise, resolve } = Promise.withResolvers<Buffer | string>()
    const server = await rawServer((socket) => {
      socket.once('data', (bytes) => {
        resolve(bytes)
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
    })
    const body = Uint8Array.from([0, 255, 13, 10, 128])
    const headers = { 'x-latin': 'caf\u00e9' }
    expect(await senderFor().send('ten_1', { method: 'PUT', url: `${server.url}/`, headers, body })).toEqual(
      success(200),
    )
    const sent = Buffer.from(await promise)
    expect(sent.includes(Buffer.from('x-latin: caf\u00e9\r\n', 'latin1'))).toBe(true)
    expect(sent.subarray(-5)).toEqual(Buffer.from(body))
  })

  const unwritable: [string, Record<string, string>, string][] = [
    ['a header value with a line break', { 'x-a': 'b\r\nx-injected: 1' }, 'POST'],
    ['a header name with a line break', { 'x-a\r\nx-injected': '1' }, 'POST'],
    ['an empty header name', { '': '1' }, 'POST'],
    ['a header value beyond Latin-1', { 'x-a': '€' }, 'POST'],
    ['a method with a space', {}, 'GET / HTTP/1.1\r\nx:'],
    ['the method CONNECT', {}, 'CONNECT'],
    ['the method connect', {}, 'connect'],
  ]

  test.each(unwritable)('with %s is blocked, and no connection is made', async (_, headers, method) => {
    const receiver = await receiverFor()
    const outcome = await senderFor().send('ten_1', {
      method,
      url: `${receiver.url}/`,
      headers,
      body: '',
    })
    expect(outcome).toEqual(failure('blocked'))
    expect(receiver.accepted()).toBe(0)
  })

  test('goes to no proxy of the environment', async () => {
    const names = [
      'HTTP_PROXY',
      'http_proxy',
      'HTTPS_PROXY',
      'https_proxy',
      'ALL_PROXY',
      'NODE_USE_ENV_PROXY',
    ]
    const before = names.map((name) => process.env[name])
    const [receiver, proxy] = [await receiverFor(), await receiverFor()]
    try {
      for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy.url
      expect(await senderFor().send('ten_1', post(`http://receiver.example.com:${receiver.port}/`))).toEqual(
        success(204),
      )
    } finally {
      names.forEach((name, index) => {
        if (before[index] === undefined) delete process.env[name]
        else process.env[name] = before[index]
      })
    }
    expect([receiver.requests.length, proxy.accepted()]).toEqual([1, 0])
  })

  test('never rejects, whatever it is made of', async () => {
    const receiver = await receiverFor()
    const sender = senderFor()
    const text = fc.string({ unit: 'binary', maxLength: 8 })
    const outgoing = fc.record({
      method: fc.oneof(fc.constantFrom('GET', 'POST'), text),
      url: fc.oneof(
        text,
        text.map((path) => `${receiver.url}/${path}`),
        text.map((host) => `http://${host}/`),
      ),
      headers: fc.dictionary(text, text, { maxKeys: 2 }),
      body: text,
    })
    for (const each of fc.sample(outgoing, { numRuns: 300, seed: 20_260_101 })) {
      const { ok, status, error } = await sender.send('ten_1', each)
      expect([ok, status === 204, error === null]).toEqual(ok ? [true, true, true] : [false, false, false])
    }
    expect(receiver.requests.length).toBeGreaterThan(10)
  })
})

describe('the status', () => {
  test.each([200, 201, 202, 204, 206, 299])('%i is success', async (status) => {
    const receiver = await receiverFor()
    receiver.answer = () => ({ status })
    expect(await senderFor().send('ten_1', post(receiver.url))).toEqual(success(status))
  })

  test.each([300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599, 600, 999])(
    '%i is a failure',
    async (status) => {
      const receiver = await receiverFor()
      receiver.answer = () => ({ status })
      const expected = { ok: false, status, error: 'status', duration_ms: 0 } as const
      expect(await senderFor().send('ten_1', post(receiver.url))).toEqual(expected)
    },
  )

  test('101 is a failure, and its connection is closed', async () => {
    const server = await rawServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 Hi\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'))
    })
    const { sender, sockets } = watchedSender()
    const outcome = await sender.send('ten_1', post(server.url))
    expect(outcome).toEqual({ ok: false, status: 101, error: 'status', duration_ms: 0 })
    await closed(sockets[0]!)
  })

  test('a redirect is not followed, not even to the same host', async () => {
    const [receiver, other] = [await receiverFor(), await receiverFor()]
    for (const location of [other.url, '/ok', 'http://169.254.169.254/', 'file:///etc/passwd']) {
      receiver.answer = () => ({ status: 302, headers: { location } })
      const outcome = await senderFor().send('ten_1', post(receiver.url))
      expect(outcome).toEqual({ ok: false, status: 302, error: 'status', duration_ms: 0 })
    }
    expect([receiver.requests.length, other.accepted()]).toEqual([4, 0])
  })

  test('no cookie is kept', async () => {
    const receiver = await receiverFor()
    receiver.answer = () => ({ headers: { 'set-cookie': 'a=b' } })
    const sender = senderFor()
    await sender.send('ten_1', post(receiver.url))
    await sender.send('ten_1', post(receiver.url))
    expect(receiver.requests[1]?.headers.cookie).toBeUndefined()
  })

  test('the duration is the time of the clock until the header block was in', async () => {
    const receiver = await receiverFor()
    const sender = senderFor()
    receiver.answer = () => {
      sender.clock.advance(1_234)
      return {}
    }
    expect(await sender.send('ten_1', post(receiver.url))).toEqual({ ...success(204), duration_ms: 1_234 })
  })
})

interface Watched {
  sender: Sender
  sockets: Socket[]
  clock: TestClock
}

/** Keeps the sockets it opens. */
function watchedSender(options: SenderOptions = {}): Watched {
  const sockets: Socket[] = []
  const sender = senderFor({
    connect: (peer) => {
      const socket = openConnection(peer)
      sockets.push(socket)
      return socket
    },
    ...options,
  })
  return { sender, sockets, clock: sender.clock }
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, 'close')
}

describe('connections', () => {
  test('one is used again and again', async () => {
    const receiver = await receiverFor()
    receiver.answer = () => ({ status: 200, body: 'thanks' })
    const sender = senderFor()
    for (let sent = 0; sent < 50; sent++)
      expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(200))
    expect([receiver.requests.length, receiver.accepted()]).toEqual([50, 1])
  })

  test('each name, and each set of checked addresses, has its own', async () => {
    const receiver = await receiverFor()
    let addresses = ['127.0.0.1']
    const sender = senderFor({ resolve: async () => addresses })
    const accepted: number[] = []
    const sendTo = async (name: string) => {
      await sender.send('ten_1', post(`http://${name}:${receiver.port}/`))
      accepted.push(receiver.accepted())
    }
    await sendTo('a.example.com')
    await sendTo('a.example.com')
    await sendTo('b.example.com')
    addresses = ['127.0.0.1', '127.0.0.3']
    await sendTo('a.example.com')
    addresses = ['127.0.0.3', '127.0.0.1']
    await sendTo('b.example.com')
    expect(accepted.slice(0, 4)).toEqual([1, 1, 2, 3])
  })

  test('a kept one is not used once the name leads to a forbidden address', async () => {
    const receiver = await receiverFor()
    let address = '127.0.0.1'
    const sender = senderFor({ resolve: async () => [address] })
    const url = `http://a.example.com:${receiver.port}/`
    expect(await sender.send('ten_1', post(url))).toEqual(success(204))
    address = '10.0.0.5'
    expect(await sender.send('ten_1', post(url))).toEqual(failure('blocked'))
    expect(receiver.requests.length).toBe(1)
  })

  test('an idle one is closed after a while', async () => {
    const receiver = await receiverFor()
    const { sender, sockets } = watchedSender({ idle_ms: 20 })
    expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(204))
    await closed(sockets[0]!)
    expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(204))
    expect(receiver.accepted()).toBe(2)
    expect(receiver.requests.map(({ headers }) => headers.connection)).toEqual(['keep-alive', 'keep-alive'])
  })

  test('none is kept for longer than the receiver says it will', async () => {
    const receiver = await receiverFor()
    receiver.answer = () => ({ headers: { 'keep-alive': 'timeout=1' } })
    const { sender, sockets } = watchedSender()
    expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(204))
    await closed(sockets[0]!)
  })

  test('on which something comes unasked is closed', async () => {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    const server = await rawServer((socket) => {
      socket.once('data', () => socket.write(ok_answer, () => resolve(socket)))
    })
    const { sender, sockets } = watchedSender()
    expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
    const far_end = await promise
    far_end.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    await closed(sockets[0]!)
  })

  /** Answers until it is told to close; the far ends of its connections, in the order of the first requests. */
  async function closingReceiver() {
    const far_ends: Socket[] = []
    const requests: number[] = []
    /** The header `connection` of each request. */
    const said: (string | undefined)[] = []
    const server = await rawServer((socket) => {
      const connection = far_ends.push(socket)
      socket.on('data', (bytes) => {
        requests.push(connection)
        said.push(/\r\nconnection: (.*)\r\n/i.exec(String(bytes))?.[1])
        socket.write(ok_answer)
      })
    })
    return { url: server.url, far_ends, requests, said }
  }

  test.each([
    ['closed', (far_end: Socket) => far_end.end()],
    ['reset', (far_end: Socket) => far_end.resetAndDestroy()],
  ])('a kept one that the receiver has %s is not used, though nobody has seen it yet', async (_, close) => {
    const { url, far_ends, requests } = await closingReceiver()
    const { sender, sockets } = watchedSender()
    expect(await sender.send('ten_1', post(url))).toEqual(success(200))
    close(far_ends[0]!)
    expect(await sender.send('ten_1', post(url))).toEqual(success(200))
    await closed(sockets[0]!)
    expect(requests).toEqual([1, 2])
  })

  test('of a receiver that closes one unannounced no other is used, and none is kept for ten minutes', async () => {
    const { url, far_ends, requests, said } = await closingReceiver()
    const { sender, sockets, clock } = watchedSender()
    await Promise.all([1, 2, 3].map(() => sender.send('ten_1', post(url))))
    expect(said).toEqual(Array(3).fill('keep-alive'))
    far_ends[2]!.end()
    for (let sent = 0; sent < 2; sent++) expect(await sender.send('ten_1', post(url))).toEqual(success(200))
    await Promise.all(sockets.map(closed))
    expect([requests.slice(3), said.slice(3)]).toEqual([
      [4, 5],
      ['close', 'close'],
    ])
    clock.advance(600_000)
    for (let sent = 0; sent < 2; sent++) expect(await sender.send('ten_1', post(url))).toEqual(success(200))
    expect(requests.slice(5)).toEqual([6, 6])
  })

  test('nor of one that has closed one under a request', async () => {
    const { url, far_ends, requests } = await closingReceiver()
    const sender = senderFor()
    await Promise.all([1, 2].map(() => sender.send('ten_1', post(url))))
    for (const far_end of far_ends) far_end.removeAllListeners('data').once('data', () => far_end.destroy())
    expect(await sender.send('ten_1', post(url))).toEqual(failure('refused'))
    for (let sent = 0; sent < 2; sent++) expect(await sender.send('ten_1', post(url))).toEqual(success(200))
    expect(requests.slice(2)).toEqual([3, 4])
  })

  test.each([
    ['closed', (far_end: Socket) => far_end.end()],
    ['reset', (far_end: Socket) => far_end.resetAndDestroy()],
  ])(
    'a request on a kept one that is %s after it arrived has failed, and is not sent again',
    async (_, close) => {
      let requests = 0
      const server = await rawServer((socket) => {
        socket.on('data', () => {
          requests += 1
          if (requests === 2) close(socket)
          else socket.write(ok_answer)
        })
      })
      const { sender, sockets } = watchedSender()
      expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
      expect(await sender.send('ten_1', post(server.url))).toEqual(failure('refused'))
      await closed(sockets[0]!)
      expect([requests, server.accepted()]).toEqual([2, 1])
      expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
    },
  )

  test('nor is one whose answer had begun', async () => {
    let requests = 0
    const server = await rawServer((socket) => {
      socket.on('data', () => {
        requests += 1
        if (requests === 1) socket.write(ok_answer)
        else socket.end(head_only)
      })
    })
    const sender = senderFor()
    expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
    expect(await sender.send('ten_1', post(server.url))).toEqual(failure('refused'))
    expect(requests).toBe(2)
  })

  test('above their number none is kept', async () => {
    const asked: Socket[] = []
    const server = await rawServer((socket) => {
      socket.on('data', () => {
        asked.push(socket)
        if (asked.length === 2) for (const each of asked) each.write(ok_answer)
      })
    })
    const { sender, sockets } = watchedSender({ connections_kept_max: 1, idle_ms: 600_000 })
    const outcomes = await Promise.all([
      sender.send('ten_1', post(server.url)),
      sender.send('ten_1', post(server.url)),
    ])
    expect(outcomes).toEqual([success(200), success(200)])
    await Promise.race(sockets.map(closed))
  })

  test('above their number no body is waited for', async () => {
    const server = await rawServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'))
    })
    const { sender, sockets } = watchedSender({ connections_kept_max: 2 })
    for (let sent = 0; sent < 5; sent++)
      expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
    await Promise.all(sockets.slice(2).map(closed))
    expect(sockets.map((socket) => socket.closed)).toEqual([false, false, true, true, true])
  })

  test('a socket that leads elsewhere than asked is closed before a byte is written', async () => {
    const elsewhere = await receiverFor()
    let bytes = 0
    const sender = senderFor({
      resolve: async () => ['93.184.216.34'],
      connect: (peer) => {
        expect(peer.address).toBe('93.184.216.34')
        const socket = openConnection({ ...peer, address: '127.0.0.1' })
        socket.on('close', () => {
          bytes = socket.bytesWritten
        })
        return socket
      },
    })
    const outcome = await sender.send('ten_1', post(`http://example.com:${elsewhere.port}/`))
    expect(outcome).toEqual(failure('blocked'))
    expect([elsewhere.requests.length, bytes]).toEqual([0, 0])
  })

  test('the next address of a name is tried when one refuses or is silent', async () => {
    const receiver = await receiverFor()
    const tried: string[] = []
    const sender = senderFor({
      deadline_ms: 2_000, // of which the silent one has a quarter
      allow: parseAllow('127.0.0.0/8,::/0'),
      resolve: async () => ['fd00::1', 'fd00::2', '127.0.0.2', '127.0.0.3', '127.0.0.4', 'fd00::3'],
      connect: (peer) => {
        tried.push(peer.address)
        if (peer.address === '127.0.0.3') return new Socket()
        if (peer.address === '127.0.0.2') return openConnection({ ...peer, port: 1 })
        const socket = openConnection({ ...peer, address: '127.0.0.1' })
        Object.defineProperty(socket, 'remoteAddress', { value: peer.address })
        return socket
      },
    })
    const outcome = await sender.send('ten_1', post(`http://example.com:${receiver.port}/`))
    expect(outcome).toEqual(success(204))
    expect(tried).toEqual(['127.0.0.2', '127.0.0.3', 'fd00::1'])
  })

  test('closing the sender ends what is under way, and nothing new begins', async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
    let requests = 0
    const server = await rawServer((socket) => {
      socket.on('data', () => {
        requests += 1
        if (requests === 1) socket.write(ok_answer)
        else arrive()
      })
    })
    const { sender, sockets } = watchedSender()
    expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
    const on_a_kept_connection = sender.send('ten_1', post(server.url))
    await arrived
    sender.close()
    expect(await on_a_kept_connection).toEqual(failure('refused'))
    expect(await sender.send('ten_1', post(server.url))).toEqual(failure('refused'))
    expect(sockets.length).toBe(1)
  })

  test('closing the sender gives up connections that are still being made', async () => {
    const sockets: Socket[] = []
    const connected = Promise.withResolvers<void>()
    const sender = senderFor({
      connect: () => {
        const socket = new Socket()
        sockets.push(socket)
        connected.resolve()
        return socket
      },
    })
    const outcome = sender.send('ten_1', post('http://127.0.0.1:9999/'))
    await connected.promise
    sender.close()
    expect(await outcome).toEqual(failure('refused'))
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true])
  })
})

const ok_answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

describe('TLS', () => {
  test('the certificate must be trusted and must name the host', async () => {
    const receiver = await receiverFor({ secure: true })
    const trusting = senderFor({ connect: (peer) => openConnection(peer, { ca: certificate_pem }) })
    const strict = senderFor()
    const urlOf = (host: string) => `https://${host}:${receiver.port}/`
    expect(await trusting.send('ten_1', post(urlOf('receiver.test')))).toEqual(success(204))
    expect(await trusting.send('ten_1', post(urlOf('receiver.test.')))).toEqual(success(204))
    expect(await trusting.send('ten_1', post(urlOf('127.0.0.1')))).toEqual(success(204))
    expect(await trusting.send('ten_1', post(urlOf('other.test')))).toEqual(failure('tls'))
    expect(await trusting.send('ten_1', post(urlOf('127.0.0.2')))).toEqual(failure('refused'))
    expect(await strict.send('ten_1', post(urlOf('receiver.test')))).toEqual(failure('tls'))
    expect(receiver.requests.map(({ headers }) => headers.host)).toEqual([
      `receiver.test:${receiver.port}`,
      `receiver.test.:${receiver.port}`,
      `127.0.0.1:${receiver.port}`,
    ])
  })

  test('the environment cannot turn verification off', async () => {
    const receiver = await receiverFor({ secure: true })
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED
    try {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
      expect(await senderFor().send('ten_1', post(`https://receiver.test:${receiver.port}/`))).toEqual(
        failure('tls'),
      )
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before
    }
  })

  test('connections are kept', async () => {
    const receiver = await receiverFor({ secure: true })
    const sender = senderFor({ connect: (peer) => openConnection(peer, { ca: certificate_pem }) })
    for (let sent = 0; sent < 5; sent++) {
      expect(await sender.send('ten_1', post(`https://receiver.test:${receiver.port}/`))).toEqual(
        success(204),
      )
    }
    expect(receiver.accepted()).toBe(1)
  })

  test.each([
    ['speaks plain HTTP', (socket: Socket) => socket.once('data', () => socket.end(ok_answer)), 'tls'],
    ['closes in the handshake', (socket: Socket) => socket.once('data', () => socket.destroy()), 'tls'],
    ['never answers the handshake', (socket: Socket) => socket.resume(), 'timeout'],
  ] as const)('a receiver that %s', async (_, onConnection, expected) => {
    const server = await rawServer(onConnection)
    const deadline_ms = expected === 'timeout' ? 300 : 10_000
    const outcome = await senderFor({ deadline_ms }).send(
      'ten_1',
      post(`https://receiver.test:${server.port}/`),
    )
    expect(outcome).toEqual(failure(expected))
  })
})

/** Answers the first bytes of each connection. */
function answering(answer: (socket: Socket) => void): (socket: Socket) => void {
  return (socket) => socket.once('data', () => answer(socket))
}

/** Writes the same for ever, as fast as it is read. */
function endlessly(piece: string): (socket: Socket) => void {
  const pieces = piece.repeat(Math.ceil((16 * kib) / piece.length))
  return (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(pieces));
    }
    socket.on('drain', write)
    write()
  }
}

function bytewise(text: string): (socket: Socket) => void {
  return (socket) => {
    let index = 0
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer)
      else socket.write(text[index++ % text.length]!)
    }, 5)
  }
}

const head_only = 'HTTP/1.1 200 OK\r\n'

/** A whole header block of this many bytes. */
function headerBlock(bytes: number): string {
  const rest = `${head_only}Content-Length: 2\r\nX-A: \r\n\r\n`
  return `${head_only}Content-Length: 2\r\nX-A: ${'a'.repeat(bytes - rest.length)}\r\n\r\n`
}

describe('a hostile receiver', () => {
  /** Far from any answer, also on a busy machine. */
  const deadline_ms = 10_000
  /** For those whose body it cuts: their header block has to come before. */
  const short_deadline_ms = 1_500
  const are_cut = ['sends a body a byte at a time', 'never sends its body']
  const gibibyte = 2 ** 30
  const bomb = gzipSync(Buffer.alloc(8 * kib * kib))

  const failing: [string, (socket: Socket) => void, FailureClass][] = [
    ['closes at once', (socket) => socket.end(), 'refused'],
    ['closes after the request', answering((socket) => socket.end()), 'refused'],
    ['resets after the request', answering((socket) => socket.resetAndDestroy()), 'refused'],
    ['closes in its header block', answering((socket) => socket.end(`${head_only}X-A: b`)), 'refused'],
    ['speaks something else', answering((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n')), 'refused'],
    ['sends a status of two digits', answering((socket) => socket.end('HTTP/1.1 20 OK\r\n\r\n')), 'refused'],
    ['never answers', (socket) => socket.resume(), 'timeout'],
    ['answers a byte at a time', answering(bytewise(`${head_only}X-A: ${'a'.repeat(500)}`)), 'timeout'],
    ['sends 100 Continue for ever, slowly', answering(bytewise('HTTP/1.1 100 Continue\r\n\r\n')), 'timeout'],
    ['sends 103 for ever', answering(endlessly('HTTP/1.1 103 Early Hints\r\n\r\n')), 'too_large'],
    ['sends 100 for ever', answering(endlessly('HTTP/1.1 100 Continue\r\n\r\n')), 'too_large'],
    [
      'sends headers for ever',
      answering((socket) => {
        socket.write(head_only)
        endlessly(`X-A: ${'a'.repeat(1_000)}\r\n`)(socket)
      }),
      'too_large',
    ],
    [
      'sends one header for ever',
      answering((socket) => {
        socket.write(`${head_only}X-A: `)
        endlessly('a'.repeat(1_000))(socket)
      }),
      'too_large',
    ],
    [
      'sends a header block over 64 KiB',
      answering((socket) => socket.write(headerBlock(64 * kib + 100))),
      'too_large',
    ],
  ]

  test.each(failing)('that %s fails', async (_, onConnection, expected) => {
    const server = await rawServer(onConnection)
    const { sender, sockets } = watchedSender({ deadline_ms: expected === 'timeout' ? 300 : 10_000 })
    expect(await sender.send('ten_1', post(server.url))).toEqual(failure(expected))
    await closed(sockets[0]!)
    expect(sockets[0]!.bytesRead).toBeLessThanOrEqual(64 * kib + chunk_bytes_max)
    expect(server.accepted()).toBe(1)
  })

  const succeeding: [string, (socket: Socket) => void][] = [
    ['sends a header block of 64 KiB', answering((socket) => socket.end(`${headerBlock(64 * kib)}ok`))],
    [
      'sends interim answers first',
      answering((socket) =>
        socket.end(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n${ok_answer}`),
      ),
    ],
    ['closes in its body', answering((socket) => socket.end(`${head_only}Content-Length: 100\r\n\r\nabc`))],
    ['sends a body a byte at a time', answering(bytewise(`${head_only}\r\n`.padEnd(10_000, 'a')))],
    ['never sends its body', answering((socket) => socket.write(`${head_only}Content-Length: 5\r\n\r\n`))],
    [
      'sends a body of 1 GiB',
      answering((socket) => {
        socket.write(`${head_only}Content-Length: ${gibibyte}\r\n\r\n`)
        endlessly('a'.repeat(64 * kib))(socket)
      }),
    ],
    [
      'sends chunks for ever',
      answering((socket) => {
        socket.write(`${head_only}Transfer-Encoding: chunked\r\n\r\n`)
        endlessly(`1000\r\n${'a'.repeat(4_096)}\r\n`)(socket)
      }),
    ],
    [
      'sends a chunk extension for ever',
      answering((socket) => {
        socket.write(`${head_only}Transfer-Encoding: chunked\r\n\r\n1;`)
        endlessly('a'.repeat(1_000))(socket)
      }),
    ],
    [
      'sends trailers for ever',
      answering((socket) => {
        socket.write(`${head_only}Transfer-Encoding: chunked\r\n\r\n0\r\n`)
        endlessly('X-A: b\r\n')(socket)
      }),
    ],
    [
      'sends broken chunks',
      answering((socket) => socket.write(`${head_only}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)),
    ],
    [
      'sends a gzip bomb',
      answering((socket) => {
        socket.write(`${head_only}Content-Encoding: gzip\r\nContent-Length: ${bomb.length * 100}\r\n\r\n`)
        for (let copy = 0; copy < 100; copy++) socket.write(bomb)
      }),
    ],
    ['answers twice', answering((socket) => socket.write(ok_answer + ok_answer))],
  ]

  test.each(succeeding)(
    'that %s has still answered 2xx, and its connection is closed',
    async (name, onConnection) => {
      const server = await rawServer(onConnection)
      const { sender, sockets } = watchedSender({
        deadline_ms: are_cut.includes(name) ? short_deadline_ms : deadline_ms,
      })
      expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
      await closed(sockets[0]!)
      expect(sockets[0]!.bytesRead).toBeLessThanOrEqual(64 * kib + chunk_bytes_max)
    },
  )

  test('that answers before it is asked has answered', async () => {
    const server = await rawServer((socket) => {
      socket.write(ok_answer)
      socket.resume()
    })
    const { error, status } = await senderFor({ deadline_ms }).send('ten_1', post(server.url))
    expect([error, status]).toEqual([null, 200])
  })

  test('a compressed answer is not decompressed', async () => {
    const body = gzipSync(Buffer.alloc(8 * kib * kib))
    const receiver = await receiverFor()
    receiver.answer = () => ({ status: 200, headers: { 'content-encoding': 'gzip' }, body })
    const { sender, sockets } = watchedSender({ deadline_ms })
    expect(body.length).toBeLessThan(32 * kib)
    expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(200))
    expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(200))
    expect(receiver.accepted()).toBe(1)
    expect(sockets[0]!.bytesRead).toBeLessThan(2 * body.length + 2 * kib)
  })

  test('a body of 63 KiB is read to its end, and the connection kept; one of 65 KiB ends the connection', async () => {
    const receiver = await receiverFor()
    for (const [size, connections] of [
      [63 * kib, 1],
      [65 * kib, 2],
    ] as const) {
      receiver.answer = () => ({ status: 200, body: 'a'.repeat(size) })
      const { sender } = watchedSender({ deadline_ms })
      const before = receiver.accepted()
      expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(200))
      expect(await sender.send('ten_1', post(receiver.url))).toEqual(success(200))
      expect([size, receiver.accepted() - before]).toEqual([size, connections])
    }
  })

  test('a header block and a body in one piece are told apart on a kept connection too', async () => {
    const server = await rawServer((socket) => {
      socket.on('data', () =>
        socket.write(`${head_only}Content-Length: ${200 * kib}\r\n\r\n${'a'.repeat(200 * kib)}`),
      )
    })
    const sender = senderFor({ deadline_ms })
    for (let sent = 0; sent < 3; sent++)
      expect(await sender.send('ten_1', post(server.url))).toEqual(success(200))
  })
})

describe('the deadline', () => {
  test('covers the look-up', async () => {
    const sender = senderFor({ deadline_ms: 20, resolve: () => new Promise(() => {}) })
    expect(await sender.send('ten_1', post('http://example.com/'))).toEqual(failure('timeout'))
  })

  test('covers the connection, which is given up', async () => {
    const sockets: Socket[] = []
    const sender = senderFor({
      deadline_ms: 20,
      connect: () => {
        const socket = new Socket()
        sockets.push(socket)
        return socket
      },
    })
    expect(await sender.send('ten_1', post('http://127.0.0.1:9999/'))).toEqual(failure('timeout'))
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true])
  })

  test('nobody listens: refused; no such name: dns', async () => {
    const server = await rawServer(() => {})
    await server.stop()
    expect(await senderFor().send('ten_1', post(server.url))).toEqual(failure('refused'))
    const nowhere = senderFor({ resolve: async () => [] })
    expect(await nowhere.send('ten_1', post('http://example.com/'))).toEqual(failure('dns'))
  })
})
