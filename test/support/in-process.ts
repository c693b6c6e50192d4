// Requests answered in process, as Bun's server would hand them over: for tests to which a connection adds nothing.
// test/in-process.test.ts shows that the answers are the same.

import { nextTurn } from '../../src/base/next-turn.ts'
import type { Connection } from '../../src/http/exchange.ts'
import type { RequestHandlers } from '../../src/http/handlers.ts'
import { routed } from '../../src/http/internal-calls.ts'
import { knownPaths, type RoutedHandlers } from '../../src/http/unrouted.ts'

export interface Sent {
  method: string
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | undefined
}

type RoutedMethod = keyof RoutedHandlers[string]

/** Every client is this machine, and no connection ever waits. */
const connection: Connection = {
  requestIP: () => ({ address: '127.0.0.1', family: 'IPv4', port: 1 }),
  timeout: () => undefined,
  pendingRequests: 0,
}

export class InProcess {
  readonly #answer: (request: Request, server: Connection) => Promise<Response>

  constructor({ routes, fetch }: RequestHandlers) {
    const served = Object.entries(routes).flatMap(([path, by_method]) =>
      Object.keys(by_method).map((method) => ({ path, method: method as RoutedMethod, group: null })),
    )
    this.#answer = routed(routes, knownPaths(served), fetch)
  }

  /** As `fetch`, to which the URL is one of this service. */
  async fetch(url: string, { method, headers, body }: Sent): Promise<Response> {
    await nextTurn() // as over a connection: whatever asks again and again leaves turns to others
    const request = new Request(url.split('#', 1)[0]!, {
      method,
      body,
      headers: sentHeaders(url, { method, headers, body }),
    })
    const response = await this.#answer(request, connection) // routed by the URL as it is sent: without dot segments, with escapes
    if (request.method === 'HEAD') return new Response(null, response)
    const zipped = response.headers.get('content-encoding') === 'gzip'
    return zipped ? new Response(Bun.gunzipSync(await response.arrayBuffer()), response) : response
  }
}

/** Headers that `fetch` adds. */
const of_client = {
  accept: '*/*',
  'accept-encoding': 'gzip, deflate, br, zstd',
  connection: 'keep-alive',
  'user-agent': `Bun/${Bun.version}`,
}

function sentHeaders(url: string, { method, headers, body }: Sent): Headers {
  const sent = new Headers(of_client)
  sent.set('host', new URL(url).host)
  if (body !== undefined || (method !== 'GET' && method !== 'HEAD'))
    sent.set('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)))
  for (const [name, value] of Object.entries(headers)) sent.set(name, value)
  return sent
}
