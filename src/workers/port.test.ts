import { expect, test } from 'bun:test'
import { claimPort } from './port.ts'

const host = '127.0.0.1'

test('a port that was claimed cannot be claimed again, although nothing listens there', () => {
  const port = claimPort(host, 0)
  expect(port.number).toBeGreaterThan(0)
  expect(() => claimPort(host, port.number)).toThrow(
    expect.objectContaining({ code: 'EADDRINUSE', message: expect.stringContaining(String(port.number)) }),
  )
  port.release()
  claimPort(host, port.number).release()
})

test('a port where something listens cannot be claimed, also when it shares the port', () => {
  const server = Bun.serve({ hostname: host, port: 0, reusePort: true, fetch: () => new Response() })
  expect(() => claimPort(host, server.port!)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }))
  server.stop(true)
  claimPort(host, server.port!).release()
})
