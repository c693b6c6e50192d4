// Large answers: in pieces, as the client takes them, and ended with it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { TestClock } from '../../test/support/clock.ts'
import { forEachRacedService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { ApiError } from '../base/errors.ts'
import { MemoryBudget, memory_bytes_min } from '../base/memory.ts'
import { InParts } from '../contract/route.ts'
import { Deliveries, sending_max, sending_of_address_max } from './deliveries.ts'
import { LargeAnswer, type Outgoing, outgoing, piece_bytes_max, undivided } from './outgoing.ts'

const kib = 1_024
const unread = {
  request: new Request('http://a/'),
  tenant_id: null,
  closeAfter() {},
  onBroken() {},
  onEnd() {},
}

class CountingClock extends TestClock {
  looks = 0

  override monotonic(): number {
    this.looks += 1
    return super.monotonic()
  }
}

/** A server of one page, in the hands of a test. */
class Site {
  readonly clock = new CountingClock()
  readonly memory = new MemoryBudget(this.clock, memory_bytes_min)
  readonly deliveries = new Deliveries(this.memory)
  readonly ended: string[] = []
  readonly closing: number[] = []
  answer: () => Outgoing = () => new Response('')
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    fetch: (request) => {
      const answer = this.answer()
      if (!(answer instanceof LargeAnswer)) return answer
      return this.deliveries.send(answer, {
        request,
        address: '192.0.2.1',
        tenant_id: 'ten_a',
        closeAfter: (seconds) => this.closing.push(seconds),
        onBroken: (error) => this.ended.push(String(error)),
        onEnd: () => this.ended.push('end'),
      })
    },
  })

  get url(): string {
    return this.#server.url.href
  }

  /** A client that sends a request and reads nothing. */
  client(method = 'GET'): Socket {
    const socket = connect(this.#server.port!, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`)
    return socket
  }

  stop(): void {
    void this.#server.stop(true)
  }
}

/** Resolves when this number has stayed the same for many turns of the event loop, each of which could have changed it. */
async function settled(number: () => number): Promise<void> {
  let seen = Number.NaN
  for (let same = 0; same < 20; same = number() === seen ? same + 1 : 0) {
    seen = number()
    await Bun.sleep(5)
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>((resolve) => setImmediate(resolve))
}

async function* iterated<T>(values: Iterable<T>): AsyncGenerator<T> {
  yield* values
}

/** Parts of an answer that is made while it is sent; counts them. */
function parts(number: number, bytes: number) {
  const counts = { made: 0, closed: 0 }
  async function* make() {
    try {
      for (; counts.made < number; counts.made++) yield 'a'.repeat(bytes)
    } finally {
      counts.closed += 1
    }
  }
  return { counts, answer: () => new LargeAnswer(200, new Headers(), make()) }
}

describe('an answer', () => {
  const site = new Site()
  afterAll(() => site.stop())

  test.each([
    ['text', 'a'.repeat(piece_bytes_max), `${'a'.repeat(piece_bytes_max)}b`],
    ['text of three bytes a character', '€'.repeat(21_845), '€'.repeat(21_846)],
    ['bytes', new Uint8Array(piece_bytes_max).fill(7), new Uint8Array(piece_bytes_max + 1).fill(7)],
  ])(
    'of %s up to 64 KiB is sent at once with its length, a larger one in pieces',
    async (_, small, large) => {
      expect(outgoing(200, {}, small)).toBeInstanceOf(Response)
      expect(outgoing(200, {}, large)).toBeInstanceOf(LargeAnswer)
      for (const body of [small, large]) {
        site.answer = () => outgoing(203, { 'x-a': 'b' }, body)
        const answer = await fetch(site.url)
        const length = body === small ? String(Buffer.byteLength(small)) : null
        expect([answer.status, answer.headers.get('x-a')]).toEqual([203, 'b'])
        expect([answer.headers.get('content-length'), answer.headers.get('transfer-encoding')]).toEqual([
          length,
          length === null ? 'chunked' : null,
        ])
        expect(Buffer.from(await answer.bytes()).equals(Buffer.from(body as string))).toBe(true)
      }
      expect(site.deliveries.size).toEqual({ sending: 0, addresses: 0 })
      expect(site.memory.bytes).toBe(0)
    },
  )

  test('comes as the same text wherever a piece ends', async () => {
    for (const before of ['', 'a', 'aa', 'aaa']) {
      const text = before + '😀é€z'.repeat(60_000)
      site.answer = () => outgoing(200, {}, text)
      expect((await (await fetch(site.url)).text()) === text).toBe(true)
      expect((await undivided(site.answer() as LargeAnswer).text()) === text).toBe(true)
    }
  })

  test('that is made in parts comes whole, and is let go of once', async () => {
    const { counts, answer } = parts(5, 300 * kib)
    site.answer = answer
    expect((await (await fetch(site.url)).text()).length).toBe(5 * 300 * kib)
    expect(counts).toEqual({ made: 5, closed: 1 })
    expect((await undivided(parts(5, 300 * kib).answer()).text()).length).toBe(5 * 300 * kib)
  })

  test.each([
    ['as a whole', '', (part: InParts) => part],
    ['in one of its parts', 'z', (part: InParts) => iterated([part, 'z'])],
  ])('whose text is made while it is sent, %s, counts as what is held for it', async (_, end, bodyOf) => {
    let made = 0
    function* texts(times: number) {
      for (; made < times; made++) yield* ['a', '\u20ac'.repeat(50 * kib), '', 'b'.repeat(100 * kib)]
    }
    const whole = `a${'\u20ac'.repeat(50 * kib)}${'b'.repeat(100 * kib)}`.repeat(3) + end
    const answerOf = (times: number) => {
      made = 0
      return new LargeAnswer(200, new Headers(), bodyOf(new InParts(1_000, texts(times))))
    }
    site.answer = () => answerOf(3)
    expect((await (await fetch(site.url)).text()) === whole).toBe(true)
    expect((await undivided(answerOf(3)).text()) === whole).toBe(true)
    site.answer = () => answerOf(1_000)
    const socket = site.client()
    await until(() => made > 0)
    await settled(() => made)
    expect(made).toBeLessThan(200)
    expect(site.memory.bytes).toBe(1_000)
    socket.destroy()
    await until(() => site.deliveries.size.sending === 0)
    expect(site.memory.bytes).toBe(0)
  })

  test('whose text is made while it is sent is refused to a GET without room for what is held', () => {
    const asked = { ...unread, address: '192.0.2.3' }
    const answer = new LargeAnswer(200, new Headers(), new InParts(memory_bytes_min, ['a'].values()))
    expect(() => site.deliveries.send(answer, asked)).toThrow(ApiError)
  })

  test('to HEAD has no body, and nothing of it is made', async () => {
    const { counts, answer } = parts(5, 300 * kib)
    for (const made of [answer, () => outgoing(200, {}, 'a'.repeat(300 * kib))]) {
      site.answer = made
      const head = await fetch(site.url, { method: 'HEAD' })
      expect([head.status, head.headers.get('transfer-encoding'), await head.text()]).toEqual([
        200,
        'chunked',
        '',
      ])
    }
    expect(counts.made).toBe(0)
    expect(site.deliveries.size.sending).toBe(0)
  })

  test('that fails on its way ends without its end', async () => {
    site.ended.length = 0
    site.answer = () =>
      new LargeAnswer(
        200,
        new Headers(),
        (async function* () {
          yield 'a'.repeat(300 * kib)
          throw new Error('the database is away')
        })(),
      )
    expect(fetch(site.url).then((answer) => answer.text())).rejects.toThrow()
    await until(() => site.ended.length === 2)
    expect(site.ended.toSorted()).toEqual(['Error: the database is away', 'end'])
    expect(site.memory.bytes).toBe(0)
  })
})

describe('a client', () => {
  const site = new Site()
  afterAll(() => site.stop())

  test('that does not read keeps little in memory, and what follows is not made', async () => {
    const { counts, answer } = parts(1_000, 100 * kib)
    site.answer = answer
    const socket = site.client()
    // As much as the operating system takes on its way, and no more.
    await until(() => counts.made > 0)
    await settled(() => counts.made)
    expect(counts.made).toBeGreaterThan(0)
    expect(counts.made).toBeLessThan(200)
    expect(site.memory.bytes).toBe(100 * kib)
    socket.destroy()
    await until(() => site.deliveries.size.sending === 0)
    expect([counts.closed, site.memory.bytes]).toEqual([1, 0])
  })

  test('of an answer that never ends keeps in memory the part that it has not taken, and nothing in between', async () => {
    const next = Promise.withResolvers<void>()
    async function* make() {
      yield 'a'.repeat(7 * 1_024 * kib)
      await next.promise
    }
    site.answer = () => new LargeAnswer(200, new Headers(), make(), true)
    const socket = site.client()
    await until(() => site.memory.bytes > 0)
    await settled(() => site.clock.looks)
    expect(site.memory.bytes).toBe(7 * 1_024 * kib)
    socket.resume()
    await until(() => site.memory.bytes === 0)
    next.resolve()
    socket.destroy()
    await settled(() => site.ended.length)
    expect(site.memory.bytes).toBe(0)
  })

  test('that goes away ends its answer, at whatever moment', async () => {
    const text = 'a'.repeat(16 * piece_bytes_max)
    let asked = 0
    site.answer = () => {
      asked += 1
      return outgoing(200, {}, text)
    }
    for (let i = 0; i < 50; i++) {
      const socket = site.client()
      await new Promise<void>((resolve) => setTimeout(resolve, i % 5))
      socket.resetAndDestroy()
    }
    // Requests may still be on their way, though their clients are gone: they come before this one.
    await (await fetch(site.url)).text()
    await settled(() => asked)
    await until(() => site.deliveries.size.sending === 0)
    expect(asked).toBeGreaterThan(1)
    expect(site.deliveries.size).toEqual({ sending: 0, addresses: 0 })
    expect(site.memory.bytes).toBe(0)
  })

  test.each([
    ['GET', 'a turn'],
    ['POST', 'room'],
  ])(
    'that goes away while the answer to its %s waits for %s leaves nothing of it in memory',
    async (method) => {
      const clock = new CountingClock()
      const memory = new MemoryBudget(clock, memory_bytes_min)
      const deliveries = new Deliveries(memory)
      if (method === 'POST')
        memory.hold({ address: '192.0.2.1', tenant_id: null }, () => {}).grow(memory_bytes_min / 2)
      const clients = new AbortController()
      const bodyFor = (address: string, signal?: AbortSignal) => {
        const body = new Uint8Array(1_024)
        const request = new Request('http://a/', { method, ...(signal ? { signal } : {}) })
        const response = deliveries.send(new LargeAnswer(200, new Headers(), body), {
          ...unread,
          request,
          address,
        })
        response.bytes().catch(() => {})
        return new WeakRef(body)
      }
      for (let i = 0; i < 100; i++) bodyFor('192.0.2.2') // before the others, in as many turns as it takes
      const bodies = Array.from({ length: 200 }, () => bodyFor('192.0.2.1', clients.signal))
      const { looks } = clock
      for (let i = 0; i < 100 && clock.looks < looks + 300; i++) await null
      clients.abort()
      await new Promise((resolve) => setImmediate(resolve))
      Bun.gc(true)
      expect(clock.looks).toBeGreaterThanOrEqual(looks + 300) // each had been asked for its first piece
      expect(deliveries.size).toEqual({ sending: expect.any(Number), addresses: 1 }) // most of the first still wait
      expect(bodies.filter((body) => body.deref() !== undefined).length).toBeLessThan(20)
    },
  )

  test('that makes no progress is cut off for others when the share of its address is used up', async () => {
    site.ended.length = 0
    site.closing.length = 0
    const text = 'a'.repeat(7 * 1_024 * kib)
    site.answer = () => outgoing(200, {}, text)
    const slow = site.client()
    await until(() => site.memory.bytes === text.length)
    const after_a_second = async () => {
      await settled(() => site.clock.looks) // each piece that is taken is progress at a time
      site.clock.advance(1_000)
      site.ended.length = 0
      const answer = await fetch(site.url)
      return [answer.status, (await answer.text()).length]
    }
    let seen = await after_a_second()
    // On a busy machine the system takes a further piece after the clock has moved. It takes only so many.
    for (let tries = 1; tries < 10 && seen[0] !== 200; tries++) seen = await after_a_second()
    expect(seen).toEqual([200, text.length])
    expect([site.ended, site.closing]).toEqual([['end', 'end'], [1]])
    slow.destroy()
    await until(() => site.deliveries.size.sending === 0)
    expect(site.memory.bytes).toBe(0)
  })
})

describe('places', () => {
  const answer = () => new LargeAnswer(200, new Headers(), new Uint8Array(piece_bytes_max + 1))
  const roomy = () => new Deliveries(new MemoryBudget(new TestClock(), 4 * sending_max * piece_bytes_max))

  test('of one address are 1,024; past them a GET is UNAVAILABLE and closes, and other addresses are served', () => {
    const deliveries = roomy()
    const from = (address: string) => deliveries.send(answer(), { ...unread, address })
    for (let i = 0; i < sending_of_address_max; i++) expect(from('192.0.2.1').status).toBe(200)
    expect(() => from('192.0.2.1')).toThrow(
      expect.objectContaining({ code: 'UNAVAILABLE', retry_after_seconds: 1, close: true }),
    )
    expect(from('192.0.2.2').status).toBe(200)
    expect(deliveries.size).toEqual({ sending: sending_of_address_max + 1, addresses: 2 })
  })

  test('are 4,096 in all', () => {
    const deliveries = roomy()
    const send = (place: number) => deliveries.send(answer(), { ...unread, address: `192.0.2.${place % 8}` })
    for (let place = 0; place < sending_max; place++) expect(send(place).status).toBe(200)
    expect(() => send(0)).toThrow(expect.objectContaining({ code: 'UNAVAILABLE' }))
  })

  const toWrite = { ...unread, address: '192.0.2.1', request: new Request('http://a/', { method: 'POST' }) }

  test('without one the answer to a write, which had its effect, waits, and then comes whole', async () => {
    const memory = new MemoryBudget(new TestClock(), memory_bytes_min)
    const deliveries = new Deliveries(memory)
    const other = memory.hold({ address: '192.0.2.1', tenant_id: null }, () => {})
    other.grow(memory_bytes_min / 2)
    const text = 'a'.repeat(2 * piece_bytes_max)
    const response = deliveries.send(new LargeAnswer(201, new Headers(), text), toWrite)
    const read = response.text()
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    expect([response.status, deliveries.size.sending]).toEqual([201, 0])
    other.release()
    expect((await read) === text).toBe(true)
    expect([deliveries.size, memory.bytes]).toEqual([{ sending: 0, addresses: 0 }, 0])
  })

  /** A write whose answer has no room until `other` is released, and a client that can leave. */
  function withoutRoom() {
    const memory = new MemoryBudget(new TestClock(), memory_bytes_min)
    const other = memory.hold({ address: '192.0.2.1', tenant_id: null }, () => {})
    other.grow(memory_bytes_min / 2)
    const gone = new AbortController()
    const request = new Request('http://a/', { method: 'POST', signal: gone.signal })
    return { memory, deliveries: new Deliveries(memory), other, gone, request }
  }

  test('nothing is taken for a client that goes away while its answer waits', async () => {
    const { memory, deliveries, other, gone, request } = withoutRoom()
    const broken: unknown[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    const onBroken = (error: unknown) => {
      broken.push(error)
      resolve()
    }
    const large = new LargeAnswer(201, new Headers(), 'a'.repeat(2 * piece_bytes_max))
    const read = deliveries.send(large, { ...toWrite, request, onBroken }).text()
    const failed = read.catch(() => 'failed')
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    gone.abort()
    other.release()
    expect(await failed).toBe('failed')
    await promise
    expect([broken.length, deliveries.size.sending, memory.bytes]).toEqual([1, 0, 0])
  })

  test('nothing is reported of a client that goes away in the moment in which its answer gets room', async () => {
    const { memory, deliveries, other, gone, request } = withoutRoom()
    const broken: unknown[] = []
    let has_room = false
    const asked = {
      ...toWrite,
      request,
      onBroken: (error: unknown) => broken.push(error),
      get address() {
        if (has_room) queueMicrotask(() => gone.abort()) // before the delivery sees that it has a place
        return '192.0.2.1'
      },
    }
    const large = new LargeAnswer(201, new Headers(), 'a'.repeat(2 * piece_bytes_max))
    const read = deliveries
      .send(large, asked)
      .text()
      .catch(() => 'failed')
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    other.release()
    has_room = true
    expect(await read).toBe('failed')
    await settled(() => broken.length)
    expect([broken, deliveries.size.sending, memory.bytes]).toEqual([[], 0, 0])
  })

  test('when there is none for long, the answer to a write is broken off', async () => {
    const deliveries = new Deliveries(new MemoryBudget(new TestClock(), memory_bytes_min), 0)
    let ended = 0
    const large = new LargeAnswer(201, new Headers(), 'a'.repeat(memory_bytes_min))
    const response = deliveries.send(large, { ...toWrite, onEnd: () => ended++ })
    expect(response.status).toBe(201)
    expect(await response.text().catch(() => 'broken off')).toBe('broken off')
    expect([ended, deliveries.size.sending]).toEqual([1, 0])
  })
})

forEachRacedService('Large answers of the service', (service: TestService) => {
  service.over_http = true
  let tenant: TestTenant
  let key = ''
  beforeAll(async () => {
    tenant = await service.signUp()
    key = tenant.api_key
  })

  test('are the stored text in chunks, to reads and to writes, on every surface', async () => {
    const payload = `"${'€'.repeat(200_000)}"`
    const made = await service.ask('POST', '/v1/dlq', {
      key,
      body: `{"payload": ${payload}, "error": "e"}`,
      headers: { 'content-type': 'application/json' },
    })
    expect([made.status, made.headers.get('transfer-encoding')]).toEqual([201, 'chunked'])
    const read = await service.ask('GET', `/v1/dlq/${made.body.id}`, { key })
    expect([read.status, read.headers.get('content-length')]).toEqual([200, null])
    expect(read.text).toBe(made.text)
    expect(read.text).toContain(payload)

    const inbox = await service.ask('POST', '/api/webhook', { key })
    await service.ask('POST', `/hook/${inbox.body.data.token}`, { body: 'y'.repeat(200_000) })
    const page = await service.ask('GET', `/api/webhook/${inbox.body.data.id}/messages`, { key })
    expect([page.headers.get('transfer-encoding'), page.body.data.items[0].body.length]).toEqual([
      'chunked',
      200_000,
    ])
  })

  test('are refusals of bodies that break thousands of rules, too', async () => {
    const body = `{"name": [${Array(10_000).fill('"\\u0000"')}], "owner_email": "owner@example.com"}`
    const refused = await service.ask('POST', '/v1/tenants', { body })
    expect([refused.status, refused.body.error.details.issues.length]).toEqual([400, 10_001])
    expect([refused.headers.get('transfer-encoding'), refused.headers.get('content-type')]).toEqual([
      'chunked',
      'application/json',
    ])
    expect(refused.body.error.request_id).toBe(refused.headers.get('x-request-id'))
  })

  test('are those of MCP as well, in both forms', async () => {
    const metadata = { m: 'x'.repeat(60_000) }
    for (let i = 0; i < 3; i++)
      await service.ask('POST', '/v1/audit', { key, body: { action: 'a', metadata } })
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'audit_list', arguments: {} },
    }
    for (const accept of ['application/json', 'text/event-stream']) {
      const answer = await service.ask('POST', '/mcp', { key, body, headers: { accept } })
      const message = JSON.parse(answer.text.replace(/^[\s\S]*?data: /, ''))
      expect([accept, answer.status, message.result.structuredContent.items.length]).toEqual([accept, 200, 3])
      expect(answer.headers.get('transfer-encoding')).toBe('chunked')
    }
  })

  test('requests that wait hold no permit of a heavy read', async () => {
    const inbox = await service.ask('POST', '/api/webhook', { key })
    const path = `/api/webhook/${inbox.body.data.id}/messages?wait=50`
    const waiting = Array.from({ length: 8 }, () => service.ask('GET', path, { key }))
    for (let i = 0; i < 8; i++) expect((await service.ask('GET', '/v1/audit', { key })).status).toBe(200)
    await service.ask('POST', `/hook/${inbox.body.data.token}`, { body: 'here' })
    for (const { status, body } of await Promise.all(waiting)) {
      expect([status, body.data.items.length]).toEqual([200, 1])
    }
  })

  test.each([
    ['GET', '/v1/audit', 200],
    ['GET', '/v1/kv/none/none', 404],
    ['GET', '/api/webhook', 200],
    ['POST', '/hook/unknown', 404],
    ['OPTIONS', '/v1/audit', 204],
    ['GET', '/nothing', 404],
    ['GET', '/openapi.json', 200],
  ])('%s %s says that its type is not to be guessed', async (method, path, status) => {
    const answer = await service.ask(method, path, { key })
    expect([answer.status, answer.headers.get('x-content-type-options')]).toEqual([status, 'nosniff'])
  })
})
