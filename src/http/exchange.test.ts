import { expect, test } from 'bun:test'
import type { BunRequest } from 'bun'
import { HeavyReads, type Permit } from '../base/heavy-reads.ts'
import { type Connection, newAsking, responseOf, type ServerOptions } from './exchange.ts'

test('a request that asks for several in process keeps the permit of the last that had one, and no other', async () => {
  const reads = new HeavyReads()
  const request = new Request('http://a/') as BunRequest
  const outer = { request, asking: newAsking() }
  const server = { requestIP: () => null, timeout() {}, pendingRequests: 0, outer } as Connection
  const failing = { method: 'GET', path: '/', group: null }
  const answer = (permit: Permit | null) => {
    const asking = { ...newAsking(), permit }
    return responseOf(new Response(''), {} as ServerOptions, request, server, asking, failing, 'request-0001')
  }
  const [first, second] = [
    await reads.enter('ten_a', request.signal),
    await reads.enter('ten_b', request.signal),
  ]
  answer(first)
  answer(null)
  expect([outer.asking.permit === first, reads.size.tenants]).toEqual([true, 2])
  answer(second)
  expect([outer.asking.permit === second, reads.size.tenants]).toEqual([true, 1])
  outer.asking.permit!.release()
  expect(reads.size.tenants).toBe(0)
})
