// A client that disconnects while its call changes something: the request ends with the call, and as the call ended.

import { expect, test } from 'bun:test'
import type { BunRequest } from 'bun'
import { ApiError } from '../src/base/errors.ts'
import { mcpPage } from '../src/site/mcp.ts'

const prefix = 'io.modelcontextprotocol'
const envelope = { [`${prefix}/protocolVersion`]: '2026-07-28', [`${prefix}/clientCapabilities`]: {} }
const standard = {
  ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'kv_put' },
}
const written = { namespace: 'a', key: 'b', version: 1, expires_at: null }

const refused = (code: string) => ({ error: { code, message: 'm' } })

test.each([
  ['2025-11-25', 200, written],
  ['2026-07-28', 200, written],
  ['2025-11-25', 409, refused('VERSION_MISMATCH')],
  ['2026-07-28', 409, refused('VERSION_MISMATCH')],
  ['2025-11-25', 408, refused('REQUEST_TIMEOUT')],
  ['2026-07-28', 408, refused('REQUEST_TIMEOUT')],
])('revision %s: a client has gone when its call ends with %d', async (revision, status, body) => {
  const is_new = revision === '2026-07-28'
  const message = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: {
      ...{ name: 'kv_put', arguments: { namespace: 'a', key: 'b', value: 1 } },
      ...(is_new && { _meta: envelope }),
    },
  }
  const gone = new AbortController()
  const request = new Request('http://in.process/mcp', {
    ...{ method: 'POST', signal: gone.signal },
    headers: { 'content-type': 'application/json', ...(is_new && standard) },
  })
  const [began, write] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const order: string[] = []
  const page = mcpPage({ public_url: () => 'http://in.process', cors_origins: [] })
  const answer = Promise.resolve(
    page.answer(request as BunRequest, {
      ...{ request_id: 'req_00000000', now: 0 },
      ...{ requireKey: async () => {}, turn: async () => {}, reserve() {}, extendTimeout() {} },
      bytes: async () => Buffer.from(JSON.stringify(message)),
      async api() {
        began.resolve()
        await write.promise
        order.push('the call')
        return Response.json(body, { status })
      },
    }),
  )
  const ended = answer
    .then((of) => of.status)
    .catch((error) => (error instanceof ApiError ? error.status : Promise.reject(error)))
    .finally(() => order.push('the request'))
  await began.promise
  gone.abort()
  // Longer than the library takes to see that the client has gone.
  await new Promise((resolve) => setImmediate(resolve))
  write.resolve()
  // A refused call is a result of the protocol; what was given up with the client has none.
  expect([await ended, order]).toEqual([status === 408 ? 408 : 200, ['the call', 'the request']])
})
