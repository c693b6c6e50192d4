import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { TestService } from '../../test/support/service.ts'
import { body_bytes_max } from './body-stream.ts'
import { drained_bytes_max } from './upload.ts'

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
      for (let sent = 0; sent <= drained_bytes_max; sent += body_bytes_max) connection.send(chunk)
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
    /** The statuses of its answers, once there are so many. */
    const statuses = async (count: number): Promise<string[]> => {
      for (;;) {
        const found = [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status!)
        if (found.length >= count) return found
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
