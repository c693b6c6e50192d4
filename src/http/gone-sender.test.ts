// A sender that leaves in the middle of a body: no fault of the service, whatever read the body.

import { beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { newInbox } from '../../test/support/inbox.ts'
import { until } from '../../test/support/patience.ts'
import { forEachService, type TestService } from '../../test/support/service.ts'
import { small_bytes_max } from './upload.ts'

/** Sends half of a body and closes. Bun sees the request first: its bytes come before the end. */
async function leaveWithin(service: TestService, path: string, headers: string[]): Promise<void> {
  const { hostname, port, host } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  const head = [`POST ${path} HTTP/1.1`, `host: ${host}`, 'content-type: application/json', ...headers]
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(`${head.join('\r\n')}\r\n\r\n5\r\n{"a":`, () => socket.destroy())
  await closed
}

const bodies: [name: string, header: string][] = [
  ['a small body', 'content-length: 100'],
  ['a large body', `content-length: ${small_bytes_max + 1}`],
  ['a body without a length', 'transfer-encoding: chunked'],
]

function describeSenders(name: string, environment: Record<string, string>): void {
  forEachService(
    name,
    (service) => {
      service.over_http = true
      let routes: Record<string, { path: string; headers: string[] }>
      beforeAll(async () => {
        const tenant = await service.signUp()
        const authorization = [`authorization: Bearer ${tenant.api_key}`]
        routes = {
          '/v1/tenants': { path: '/v1/tenants', headers: [] },
          '/v1/dlq': { path: '/v1/dlq', headers: authorization },
          '/mcp': {
            path: '/mcp',
            headers: [...authorization, 'accept: application/json, text/event-stream'],
          },
          '/hook/:token': { path: (await newInbox(service, tenant)).path, headers: [] },
        }
      })

      describe.each(['/v1/tenants', '/v1/dlq', '/mcp', '/hook/:token'])('%s', (route) => {
        test.each(bodies)(
          'answers 408 to a sender that leaves within %s, and logs no error',
          async (_, length) => {
            service.logged.length = 0
            const { path, headers } = routes[route]!
            await leaveWithin(service, path, [...headers, length])
            const answered = () =>
              service.logged.flatMap(({ fields }) => (fields.route === route ? [fields.status] : []))
            await until(() => answered().length > 0)
            expect(answered()).toEqual([408])
            expect(service.logged.filter(({ level }) => level !== 'debug')).toEqual([])
          },
        )
      })
    },
    environment,
  )
}

describeSenders('A sender that leaves', {})
describeSenders('A sender that leaves behind a trusted proxy', { TRUST_PROXY: '127.0.0.1' })
