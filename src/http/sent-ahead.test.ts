// Requests that a client sends ahead of the answers, over one connection. Bun begins one after the other for as long as each is
// answered at once, and serves nobody else meanwhile.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { TestClock } from '../../test/support/clock.ts'
import { until } from '../../test/support/patience.ts'
import { TestService } from '../../test/support/service.ts'

/** Each look at the time shows that a millisecond has passed, as if every request took as long. */
class SteppingClock extends TestClock {
  #steps = 0

  override monotonic(): number {
    this.#steps += 1
    return super.monotonic() + this.#steps
  }
}

const sent = 1_000
/** Those that begin before the turn is looked at, and while it may go on. */
const at_once_max = 40

describe('Requests sent ahead', () => {
  const service = new TestService({ LOG_REQUESTS: 'all' })
  service.clock = new SteppingClock()
  beforeAll(() => service.start('sqlite::memory:'))
  afterAll(() => service.stop())

  test.each([
    ['of a path that never waits', 'GET /livez', ''],
    ['of an unknown path', 'GET /nowhere', ''],
    ['that ask for the methods of a path', 'OPTIONS /v1/audit', ''],
    ['without a key', 'GET /v1/audit', ''],
    ['with a key of no tenant', 'GET /v1/audit', 'authorization: Bearer svc_agt_x\r\n'],
    ['to an unknown host', 'GET /v1/audit', 'host: example.com\r\n'],
  ])('%s leave the turn to others', async (_, line, header) => {
    const host = header.startsWith('host') ? '' : `host: ${new URL(service.url).host}\r\n`
    const begun = await mostOfATurn(service, `${line} HTTP/1.1\r\n${host}${header}\r\n`)
    expect(begun).toBeGreaterThan(0)
    expect(begun).toBeLessThanOrEqual(at_once_max)
  })
})

/** The most requests that were answered in one turn of the event loop, until the connection has ended or all had an answer. */
async function mostOfATurn(service: TestService, request: string): Promise<number> {
  const counted = () =>
    service.logged.filter(({ level, message }) => level === 'info' && message === 'request').length
  const before = counted()
  let [seen, most, is_over] = [before, 0, false]
  const look = () => {
    const now = counted()
    most = Math.max(most, now - seen)
    seen = now
  }
  const lookEveryTurn = () => {
    look()
    if (!is_over) setImmediate(lookEveryTurn)
  }
  lookEveryTurn()
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.on('close', () => {
    is_over = true
  })
  socket.resume().write(request.repeat(sent))
  await until(() => is_over || counted() - before >= sent)
  is_over = true
  socket.destroy()
  look()
  return most
}
