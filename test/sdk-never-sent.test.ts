// A request of the SDK that was certainly never sent: every call is tried again, and its error says that nothing has arrived.

import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Waystation, type WaystationNetworkError, type WaystationOptions } from '../sdk/src/index.ts'
import { certificate } from './support/receiver.ts'
import { failureOf, TestPlatform } from './support/sdk.ts'

/** The message of Deno for a request that failed. */
const deno = (kind: string, why: string) =>
  `error sending request for url (http://service.test/v1/dlq/claim): client error (${kind}): ${why}`

/** Node's error of a name with two addresses, of which neither took the connection. */
const at_addresses = (...codes: string[]) =>
  Object.assign(new AggregateError(codes.map((code) => ({ code, syscall: 'connect' }))), { code: codes[0] })

/** Node's error of a request by a proxy. */
const by_proxy = (message: string) => ({
  message: 'Request was cancelled.',
  cause: { code: 'UND_ERR_ABORTED', message },
})

/** The error of a claim, which is not sent again while its outcome is unknown, and after how many tries. */
async function claim(options: Partial<WaystationOptions>) {
  const platform = new TestPlatform()
  const client = new Waystation({ url: 'https://service.example', key: 'svc_agt_x', platform, ...options })
  const error = (await failureOf(client.dlq.claim('itm_1'))) as WaystationNetworkError
  return { error, tries: platform.slept.length + 1 }
}

describe('A request', () => {
  test.each([
    ['Node', 'fetch failed', { code: 'ECONNREFUSED' }, false],
    ['Node, without a route', 'fetch failed', { code: 'ENETUNREACH', syscall: 'connect' }, false],
    ['Node, at each address', 'fetch failed', at_addresses('ETIMEDOUT', 'ENETUNREACH'), false],
    ['Node, where it was sent', 'fetch failed', { code: 'ETIMEDOUT', syscall: 'read' }, true],
    [
      'several errors, of which one is not known',
      'failed',
      { errors: [{ code: 'ECONNREFUSED' }, null] },
      true,
    ],
    ['no errors', 'failed', { errors: [] }, true],
    ['Node, of another name', 'fetch failed', { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, false],
    ['Node, past its end', 'fetch failed', { code: 'CERT_HAS_EXPIRED' }, false],
    ['Node, of TLS afterwards', 'fetch failed', { code: 'ERR_SSL_BAD_RECORD_TYPE' }, true],
    [
      'Node, by a proxy that refuses',
      'fetch failed',
      by_proxy('Proxy response (503) !== 200 when HTTP Tunneling'),
      false,
    ],
    ['Node, where it was given up', 'fetch failed', by_proxy('The operation was aborted'), true],
    ['Deno', 'fetch failed', { message: deno('Connect', 'tcp connect error: refused') }, false],
    ['an older Deno', deno('Connect', 'dns error'), undefined, false],
    ['Deno, where it was sent', 'fetch failed', { message: deno('SendRequest', 'closed') }, true],
    ['an error of which nothing is known', 'Load failed', undefined, true],
  ])(
    'may have arrived unless no connection was made, which each runtime says in its way: %s',
    async (_, message, cause, arrived) => {
      const { error, tries } = await claim({ fetch: () => Promise.reject(new TypeError(message, { cause })) })
      expect([error.may_have_arrived, tries]).toEqual([arrived, arrived ? 1 : 5])
    },
  )

  test('has not arrived where a proxy refuses the tunnel', async () => {
    let asked = 0
    const proxy = createServer().on('connect', (_, socket) => {
      asked += 1
      socket.end('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n')
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const { error } = await claim({ fetch: (url, init) => fetch(url, { ...init, proxy: address }) })
    proxy.close()
    expect([error.name, error.may_have_arrived, asked]).toEqual(['WaystationNetworkError', false, 5])
  })

  test('has not arrived where the certificate is not taken', async () => {
    let asked = 0
    const server = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0, tls: certificate() },
      fetch: () => {
        asked += 1
        return new Response()
      },
    })
    const { error, tries } = await claim({ url: `https://127.0.0.1:${server.port}` })
    await server.stop(true)
    expect([error.name, error.may_have_arrived, tries, asked]).toEqual([
      'WaystationNetworkError',
      false,
      5,
      0,
    ])
  })
})
