import { afterAll, expect, test } from 'bun:test'
import { startProxy } from './support/conformance-proxy.ts'
import { startRawServer } from './support/receiver.ts'

const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

/** It closes a connection that was kept once a second request comes, as a service may that closes it at that moment. */
const service = await startRawServer((socket) => {
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
    const requests = received.split('\r\n\r\n').length - 1
    if (requests === 1) socket.write(answer)
    else if (requests > 1) socket.destroy()
  })
})
const proxy = startProxy(service.url, {})
afterAll(() => Promise.all([proxy.stop(), service.stop()]))

test('the proxy uses no connection to the service twice, which the service may close just then', async () => {
  const before = service.accepted()
  for (const method of ['GET', 'POST', 'POST', 'GET']) {
    const answered = await fetch(`${proxy.url}/v1/agents`, { method })
    expect([method, answered.status, await answered.text()]).toEqual([method, 200, 'ok'])
  }
  expect(service.accepted() - before).toBe(4)
})
