import { expect, test } from 'bun:test'
import type { BunRequest } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import type { Permit } from '../base/heavy-read.ts'
import { HeavyReads } from '../base/heavy-reads.ts'
import { type Connection, Exchange, type Running } from './exchange.ts'
import { responseOf } from './frame.ts'

test('a request that asks for several in process keeps the permit of the last that had one, and no other', async () => {
  const reads = new HeavyReads()
  const request = new Request('http://a/') as BunRequest
  const options = { clock: new TestClock() } as unknown as Running
  const server: Connection = { requestIP: () => null, timeout() {}, pendingRequests: 0 }
  const outer = new Exchange(options, request, server)
  const failing = { method: 'GET', path: '/', group: null }
  const answer = (permit: Permit | null) => {
    const inner = new Exchange(options, request, { ...server, outer })
    inner.permit = permit
    return responseOf(failing, inner, new Response(''))
  }
  const [first, second] = [
    await reads.enter('ten_a', request.signal),
    await reads.enter('ten_b', request.signal),
  ]
  answer(first)
  answer(null)
  expect([outer.permit === first, reads.size.tenants]).toEqual([true, 2])
  answer(second)
  expect([outer.permit === second, reads.size.tenants]).toEqual([true, 1])
  outer.permit!.release()
  expect(reads.size.tenants).toBe(0)
})
