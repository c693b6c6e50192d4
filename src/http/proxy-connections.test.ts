import { describe, expect, spyOn, test } from 'bun:test'
import type { BunRequest } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { TestService } from '../../test/support/service.ts'
import { parseRanges } from './address.ts'
import type { Asked } from './delivery.ts'
import { Drain } from './drain.ts'
import { type Connection, Exchange, type Running } from './exchange.ts'
import { respond, type Served } from './frame.ts'
import { LargeAnswer, type Outgoing } from './outgoing.ts'

describe('The connection of a peer', () => {
  test.each([
    ['in TRUST_PROXY is kept longer than proxies keep theirs, whatever it asked for', '127.0.0.1, ::1', 250],
    ['outside TRUST_PROXY is idle as long as any other', '192.0.2.1', null],
  ])('%s', async (_, TRUST_PROXY, seconds) => {
    const serve = spyOn(Bun, 'serve')
    const service = new TestService({ TRUST_PROXY })
    try {
      await service.start('sqlite::memory:')
      const timeout = spyOn(serve.mock.results[0]!.value as Bun.Server<undefined>, 'timeout')
      /** The last time that was set for the connection by the end of the answer. */
      const kept = async (method: string, path: string, body: string | null = null) => {
        timeout.mockClear()
        const response = await fetch(`${service.url}${path}`, { method, body })
        await response.arrayBuffer()
        return [method, path, response.status, timeout.mock.lastCall?.[1] ?? null]
      }
      const answers = [
        await kept('GET', '/livez'),
        await kept('POST', '/v1/tenants', '{}'),
        await kept('GET', '/v1/agents'),
        await kept('GET', '/nothing'),
        await kept('OPTIONS', '/v1/agents'),
        await kept('GET', '/console'),
        await kept('GET', '/openapi.json'),
      ]
      expect(answers).toEqual([
        ['GET', '/livez', 200, seconds],
        ['POST', '/v1/tenants', 400, seconds],
        ['GET', '/v1/agents', 401, seconds],
        ['GET', '/nothing', 404, seconds],
        ['OPTIONS', '/v1/agents', 204, seconds],
        ['GET', '/console', 200, seconds],
        ['GET', '/openapi.json', 200, seconds],
      ])
    } finally {
      serve.mockRestore()
      await service.stop()
    }
  })

  test('in TRUST_PROXY is kept once an answer in pieces was sent, and not while it takes none of them', async () => {
    const { answered, seconds, asked } = framed()
    await answered((exchange) => {
      exchange.extendTimeout(50_000)
      return new LargeAnswer(200, new Headers(), new Blob(['']).stream() as never)
    })
    expect(seconds).toEqual([60, 10])
    asked[0]!.onEnd()
    expect(seconds).toEqual([60, 10, 250])
  })

  test('in TRUST_PROXY is kept after the answer to a HEAD that has waited, whose pieces nobody is sent', async () => {
    const { answered, seconds, asked } = framed()
    await answered((exchange) => {
      exchange.extendTimeout(50_000)
      const { deliveries } = exchange.options
      deliveries.send = (_, by) => {
        asked.push(by)
        by.onEnd()
        return new Response('')
      }
      return new LargeAnswer(200, new Headers(), new Blob(['']).stream() as never)
    })
    expect(asked).toHaveLength(1)
    expect(seconds.at(-1)).toBe(250)
  })

  test('in TRUST_PROXY is left to the request that has called another in process', async () => {
    const { answered, seconds } = framed()
    await answered(async (outer) => {
      await answered(() => new Response(''), outer)
      expect(seconds).toEqual([])
      return new Response('')
    })
    expect(seconds).toEqual([250])
  })
})

/** The frame around answers to a proxy, with the times that are set for its connection. */
function framed() {
  const seconds: number[] = []
  const asked: Asked[] = []
  const options = {
    ...{ clock: new TestClock(), drain: new Drain(), cors_origins: [] },
    trusted_proxies: parseRanges('192.0.2.0/24'),
    deliveries: {
      send(_: unknown, by: Asked) {
        asked.push(by)
        return new Response('')
      },
    },
  } as unknown as Running
  const connection: Connection = {
    requestIP: () => ({ address: '::ffff:192.0.2.7', family: 'IPv6', port: 1 }),
    timeout: (_, set) => seconds.push(set),
    pendingRequests: 0,
  }
  const answered = (answer: (exchange: Exchange) => Outgoing | Promise<Outgoing>, outer?: Exchange) => {
    const served: Served = {
      ...{ method: 'GET', path: '/', group: null, measures: null, finish() {} },
      answer: async (exchange) => answer(exchange),
    }
    const server = outer ? { ...connection, outer } : connection
    return respond(served, new Exchange(options, new Request('http://a/') as BunRequest, server))
  }
  return { answered, seconds, asked }
}
