import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from 'bun:test'
import { connect } from 'node:net'
import { TestService } from '../../test/support/service.ts'
import { nextTurn } from '../base/next-turn.ts'
import { parseRanges } from './address.ts'
import { body_bytes_max, chunks_a_turn_max, receive_ms_max } from './body-stream.ts'
import { Drain } from './drain.ts'
import type { Connection } from './exchange.ts'
import { draining_max, draining_of_address_max, unreadBody } from './unread-body.ts'
import { drained_bytes_max, small_bytes_max } from './upload.ts'

const bytes = 200_000

function head(start: string, length: string): string {
  return `${start} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${length}\r\n\r\n`
}

const sized = `content-length: ${bytes}`
const chunked = 'transfer-encoding: chunked'

describe('A large body that is refused unread', () => {
  describe('from a proxy', () => {
    const { open, asked } = serving({ TRUST_PROXY: '127.0.0.1' })

    test.each([
      ['no route takes it', 'POST /nothing', '404'],
      ['its path has other methods', 'POST /livez', '405'],
      ['it has no key', 'POST /v1/agents', '401'],
      ['its route has no body', 'POST /v1/tick', '401'],
    ])('is answered once it is there, and its connection goes on: %s', async (_, start, status) => {
      const connection = open()
      connection.send(head(start, sized) + 'x'.repeat(bytes / 2))
      for (let i = 0; i < 3; i++) await asked()
      expect(connection.received()).toBe('')
      connection.send('x'.repeat(bytes / 2))
      expect(await connection.statuses(1)).toEqual([status])
      connection.send(head('GET /livez', 'connection: close'))
      expect(await connection.statuses(2)).toEqual([status, '200'])
    })

    test('of unknown length is answered once it is there', async () => {
      const connection = open()
      connection.send(`${head('POST /nothing', chunked)}${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`)
      for (let i = 0; i < 3; i++) await asked()
      expect(connection.received()).toBe('')
      connection.send('0\r\n\r\n')
      expect(await connection.statuses(1)).toEqual(['404'])
    })

    test('too long to be read to its end closes the connection', async () => {
      const connection = open()
      connection.send(head('POST /nothing', `content-length: ${drained_bytes_max + 1}`))
      expect(await connection.statuses(1)).toEqual(['404'])
      expect(connection.received().toLowerCase()).toContain('\r\nconnection: close\r\n')
    })

    test('of unknown length that does not end closes the connection', async () => {
      const connection = open()
      connection.send(head('POST /nothing', chunked))
      const chunk = `${body_bytes_max.toString(16)}\r\n${'x'.repeat(body_bytes_max)}\r\n`
      for (let sent = 0; sent < drained_bytes_max; sent += body_bytes_max) connection.send(chunk)
      // No more than is read: what comes after the end of a connection takes its answer away.
      connection.send('1\r\nx\r\n')
      expect(await connection.statuses(1)).toEqual(['404'])
      expect(connection.received().toLowerCase()).toContain('\r\nconnection: close\r\n')
    })
  })

  describe('from anybody else', () => {
    const { open } = serving({ TRUST_PROXY: '192.0.2.1' })

    test('is answered at once', async () => {
      const connection = open()
      connection.send(head('POST /nothing', sized))
      expect(await connection.statuses(1)).toEqual(['404'])
    })
  })
})

describe('The rest of a body from a proxy', () => {
  afterEach(() => {
    jest.useRealTimers()
  })

  test('is waited for when it is more than a small one, and not when it is longer than is read', async () => {
    expect(refused({ length: small_bytes_max }).waited).toBeNull()
    for (const length of [small_bytes_max + 1, drained_bytes_max]) {
      const { waited, end, closes } = refused({ length })
      end()
      await waited
      expect([length, closes()]).toEqual([length, false])
    }
    const { waited, closes } = refused({ length: drained_bytes_max + 1 })
    await waited
    expect(closes()).toBe(true)
  })

  test('is read in turns of the event loop, however small its chunks are', async () => {
    let pulled = 0
    const { waited, fail } = refused({
      pull(controller) {
        pulled += 1
        if (pulled === 10 * chunks_a_turn_max) controller.close()
        else controller.enqueue(new Uint8Array(1))
      },
    })
    await nextTurn()
    expect(pulled).toBeLessThan(3 * chunks_a_turn_max)
    fail()
    await waited
  })

  test('closes the connection when its sender leaves', async () => {
    const { waited, fail, closes } = refused({})
    fail()
    await waited
    expect(closes()).toBe(true)
  })

  test('closes the connection when it has not come in 30 s', async () => {
    jest.useFakeTimers()
    const { waited, end, closes } = refused({})
    jest.advanceTimersByTime(receive_ms_max - 1)
    end()
    await waited
    expect(closes()).toBe(false)
    const late = refused({})
    jest.advanceTimersByTime(receive_ms_max)
    await late.waited
    expect(late.closes()).toBe(true)
  })

  test('is waited for in the places of its client and of the process, and past them the connection is closed', async () => {
    const waiting = (client: number) =>
      Array.from({ length: draining_of_address_max }, () => refused({ client: `198.51.100.${client}` }))
    const all = waiting(1)
    const past = refused({ client: '198.51.100.1' })
    expect(past.closes()).toBe(true)
    for (let client = 2; all.length < draining_max; client++) all.push(...waiting(client))
    const another = refused({ client: '198.51.100.250' })
    expect(another.closes()).toBe(true)

    for (const { end } of all) end()
    for (const { waited, closes } of all) {
      await waited
      expect(closes()).toBe(false)
    }
    const after = refused({ client: '198.51.100.1' })
    after.end()
    await after.waited
    expect(after.closes()).toBe(false)
  })
})

/** A body that a proxy sends, of this length or of none, whose answer is there. */
function refused(sent: {
  length?: number
  client?: string
  pull?(controller: ReadableStreamDefaultController<Uint8Array>): void
}) {
  const { length, client = '198.51.100.7', pull = () => {} } = sent
  let controller!: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({
    start(made) {
      controller = made
    },
    pull,
  })
  const headers = new Headers({ 'x-forwarded-for': client })
  if (length !== undefined) headers.set('content-length', String(length))
  const connection: Connection = {
    requestIP: () => ({ address: '192.0.2.7', family: 'IPv4', port: 1 }),
    timeout() {},
    pendingRequests: 0,
  }
  const options = { trusted_proxies: parseRanges('192.0.2.0/24'), drain: new Drain() }
  const response = new Response(null, { status: 404 })
  const request = new Request('http://a/', { method: 'POST', headers, body })
  const waited = unreadBody(options, request, connection, response)
  const end = () => controller.close()
  const fail = () => controller.error(new Error('its sender has left'))
  return { waited, end, fail, closes: () => response.headers.get('connection') === 'close' }
}

/** A service for the tests of a block, and its connections. */
function serving(settings: Record<string, string>) {
  const service = new TestService(settings)
  const sockets: ReturnType<typeof connect>[] = []
  beforeAll(() => service.start('sqlite::memory:'))
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    await service.stop()
  })
  const open = () => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    sockets.push(socket)
    let received = ''
    let wake = () => {}
    socket.on('data', (part) => {
      received += part.toString('latin1')
      wake()
    })
    socket.on('error', () => {})
    socket.on('close', () => wake())
    /** The statuses of its answers, once there are so many. */
    const statuses = async (count: number): Promise<string[]> => {
      for (;;) {
        const found = [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status!)
        if (found.length >= count) return found
        if (socket.destroyed) throw new Error(`closed after ${JSON.stringify(received)}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
    return { send: (text: string) => socket.write(text), received: () => received, statuses }
  }
  /** Another connection was served meanwhile. */
  const asked = async () => expect((await fetch(`${service.url}/livez`)).status).toBe(200)
  return { open, asked }
}
