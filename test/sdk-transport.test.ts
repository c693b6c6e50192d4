// A call of the SDK: what it reports and keeps when its tries end in different ways, and what it reads from its runtime.

import { describe, expect, spyOn, test } from 'bun:test'
import { runInNewContext } from 'node:vm'
import type { Document } from '../mcp/schema.ts'
import openapi from '../openapi.json' with { type: 'json' }
import { methodOf, operationsOf, resourceOf } from '../scripts/clients/model.ts'
import { onAbort } from '../sdk/src/abort.ts'
import {
  Waystation,
  type WaystationError,
  WaystationNetworkError,
  type WaystationOptions,
  WaystationTimeoutError,
} from '../sdk/src/index.ts'
import { encodeJson } from '../sdk/src/json.ts'
import { NoFetch, platform } from '../sdk/src/platform.ts'
import { Transport } from '../sdk/src/transport.ts'
import { type Operations, operations } from '../sdk/src/types.ts'
import { leastAnswer } from './support/least-answers.ts'
import { until } from './support/patience.ts'
import { failureOf, TestPlatform } from './support/sdk.ts'

const sdk_operations = operationsOf(openapi as unknown as Document)

const error_of = (code: string) => JSON.stringify({ error: { code, message: 'm', request_id: 'req_1' } })
const unavailable = () => new Response(error_of('UNAVAILABLE'), { status: 503 })
const refused = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
const lost = () => Promise.reject(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))

/** A client to which these answers come in this order, the last one from then on. */
function answered(answers: (() => Response | Promise<Response>)[], options: Partial<WaystationOptions> = {}) {
  const asked: RequestInit[] = []
  const test_platform = new TestPlatform()
  const client = new Waystation({
    url: 'http://service.test',
    key: 'svc_agt_x',
    platform: test_platform,
    fetch: async (_, init) => {
      asked.push(init)
      return answers[Math.min(asked.length, answers.length) - 1]!()
    },
    ...options,
  })
  return { client, asked, slept: test_platform.slept }
}

describe('A call whose fetch minds no signal', () => {
  const never = () => new Promise<never>(() => {})
  const endless = async () => new Response(new ReadableStream())

  test.each([
    ['answer', never],
    ['end of its body', endless],
  ])('ends in time, and with its own signal, without an %s', async (_, fetch) => {
    const client = new Waystation({ url: 'http://service.test', fetch, timeout_ms: 1, retries: 0 })
    expect(await failureOf(client.kv.get('n', 'k'))).toBeInstanceOf(WaystationTimeoutError)
    const stop = new AbortController()
    const stopped = failureOf(client.kv.get('n', 'k', { timeout_ms: 60_000, signal: stop.signal }))
    const reason = new Error('The caller has what it wants.')
    stop.abort(reason)
    expect(await stopped).toBe(reason)
  })
})

describe('A call whose first try was lost', () => {
  test.each([
    ['the service is gone afterwards', refused],
    ['the service has no time afterwards', unavailable],
  ])('does not claim that nothing happened when %s', async (_, afterwards) => {
    const { client, asked } = answered([lost, afterwards])
    const error = (await failureOf(client.audit.append({ action: 'a' }))) as WaystationNetworkError
    expect(error).toBeInstanceOf(WaystationNetworkError)
    expect([error.may_have_arrived, (error.cause as Error).message]).toEqual([true, 'lost'])
    expect(asked).toHaveLength(5)
    expect([error.url, error.message]).toEqual([
      'http://service.test',
      'No answer from http://service.test: it could not be reached, or the connection was lost before its answer.',
    ])
  })

  test('ends in its last error when it only reads', async () => {
    const { client } = answered([lost, unavailable])
    expect(await failureOf(client.kv.get('n', 'k'))).toMatchObject({ code: 'UNAVAILABLE' })
  })

  const refusals = [
    ['a key that was revoked', 401, 'UNAUTHORIZED'],
    ['a freeze', 403, 'TENANT_FROZEN'],
    ['another state', 409, 'INVALID_STATE'],
    ['another body', 422, 'IDEMPOTENCY_KEY_REUSED'],
  ] as const
  const refusing = (status: number, code: string) => () => new Response(error_of(code), { status })

  test.each(refusals)(
    'may have had its effect although its repeat is refused: %s',
    async (_, status, code) => {
      const { client, asked } = answered([lost, refusing(status, code)])
      const error = (await failureOf(client.audit.append({ action: 'a' }))) as WaystationNetworkError
      expect(error).toBeInstanceOf(WaystationNetworkError)
      expect([error.may_have_arrived, asked.length]).toEqual([true, 2])
      expect(error.cause).toMatchObject({ name: 'WaystationError', code, status })
    },
  )

  test('ends in the error of the service that does not know its outcome, whatever refuses the repeat', async () => {
    const unknown = refusing(503, 'OUTCOME_UNKNOWN')
    const { client } = answered([unknown, refusing(403, 'TENANT_FROZEN')])
    const error = (await failureOf(client.kv.put('n', 'k', 1))) as WaystationError
    expect([error.code, (error.cause as WaystationError).code]).toEqual(['OUTCOME_UNKNOWN', 'TENANT_FROZEN'])
  })

  test('ends in the refusal when it only reads', async () => {
    const { client } = answered([lost, refusing(401, 'UNAUTHORIZED')])
    expect(await failureOf(client.kv.get('n', 'k'))).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  test('may have had its effect although what came of it cannot be read', async () => {
    const details = { status: 'archived' }
    const archived = () =>
      Response.json({ error: { code: 'INVALID_STATE', message: 'm', details } }, { status: 409 })
    const { client } = answered([lost, archived, refused])
    const error = await failureOf(client.dlq.fail('dlq_1', { lock_token: 't' }))
    expect(error).toMatchObject({ name: 'WaystationNetworkError', may_have_arrived: true })
  })
})

describe('A quarantine', () => {
  const quarantined = () => new Response(error_of('QUARANTINED'), { status: 503 })
  const effect = { type: 't', key: 'k', payload: 1 }

  test('is a refusal: nothing happened, and no try follows', async () => {
    const one = answered([quarantined])
    expect(await failureOf(one.client.effects.claim(effect))).toMatchObject({ code: 'QUARANTINED' })
    const once = answered([quarantined])
    expect(await failureOf(once.client.effects.once(effect, () => 1))).toMatchObject({ code: 'QUARANTINED' })
    expect([one.asked.length, once.asked.length, one.slept, once.slept]).toEqual([1, 1, [], []])
  })

  test('is the cause of the error of a try whose answer was lost', async () => {
    const { client } = answered([lost, quarantined])
    const error = await failureOf(client.effects.claim({ ...effect, lease_token: 'a'.repeat(16) }))
    expect(error).toMatchObject({ may_have_arrived: true, cause: { code: 'QUARANTINED' } })
  })
})

describe('An error of a gateway in JSON', () => {
  const gateway =
    (status: number, code = 'UPSTREAM_TIMEOUT') =>
    () =>
      new Response(error_of(code), { status })

  test.each([502, 503, 504, 520, 524, 530])(
    '%d may have had its effect: creating calls are sent again, claims not',
    async (status) => {
      const created = answered([gateway(status), () => new Response('{"id":"log_1"}')])
      expect(await created.client.audit.append({ action: 'a' })).toMatchObject({ id: 'log_1' })
      const claimed = answered([gateway(status)])
      expect(await failureOf(claimed.client.dlq.claimOldest())).toMatchObject({ status })
      expect(claimed.asked).toHaveLength(1)
    },
  )

  test.each([502, 504, 524])(
    '%d UNAVAILABLE is not the 503 of the service: claims are not sent again',
    async (status) => {
      const { client, asked } = answered([gateway(status, 'UNAVAILABLE')])
      expect(await failureOf(client.dlq.claimOldest())).toMatchObject({ status })
      expect(asked).toHaveLength(1)
    },
  )

  test.each([501, 505, 507, 519, 531])(
    '%d does not say that the service is away: nothing is sent again',
    async (status) => {
      const { client, asked } = answered([gateway(status)])
      expect(await failureOf(client.kv.get('a', 'b'))).toMatchObject({ status })
      expect(asked).toHaveLength(1)
    },
  )

  test('429 had none: claims are sent again', async () => {
    const { client } = answered([gateway(429), () => new Response(null, { status: 204 })])
    expect(await client.dlq.claimOldest()).toBeNull()
  })

  test('with a member "data" is not a success', async () => {
    const { client } = answered([() => new Response('{"data":{}}', { status: 403 })])
    expect(await failureOf(client.inboxes.get('i'))).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 403 })
  })
})

describe('Retry-After as a date', () => {
  test.each([
    [
      'of the answer’s own clock',
      'Wed, 21 Oct 2026 07:28:00 GMT',
      'Wed, 21 Oct 2026 07:28:07 GMT',
      [7_125],
      7,
    ],
    ['of ours without one', null, 'Thu, 01 Jan 2026 00:00:09 GMT', [9_125], 9],
    ['that is past', null, 'Wed, 31 Dec 2025 23:00:00 GMT', [125], 0],
    ['too far away', null, 'Thu, 01 Jan 2026 00:01:01 GMT', [], 61],
    ['that is none', null, 'soon', [125], undefined],
  ])('%s is kept', async (_, date, retry_after, waits, seconds) => {
    const headers = { 'retry-after': retry_after, ...(date && { date }) }
    const { client, slept } = answered(
      [() => new Response(error_of('UNAVAILABLE'), { status: 503, headers })],
      {
        retries: 1,
      },
    )
    const error = (await failureOf(client.kv.get('n', 'k'))) as WaystationError
    expect([slept, error.retry_after_seconds]).toEqual([waits, seconds])
  })
})

describe('What the client takes from its surroundings', () => {
  test('is called as it would be there: a fetch of a browser minds whose method it is', async () => {
    const client = new Waystation({
      url: 'http://x',
      retries: 0,
      async fetch(this: unknown) {
        if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation')
        return new Response('{"status":"alive"}')
      },
    })
    expect(await client.health.live()).toEqual({ status: 'alive' })
  })

  test('may reject with anything', async () => {
    const { client } = answered([() => Promise.reject(undefined)], { retries: 0 })
    expect(await failureOf(client.health.live())).toBeInstanceOf(WaystationNetworkError)
  })

  test('may lack a fetch: that is said at once, not as a lost connection', async () => {
    const { fetch } = globalThis
    const test_platform = new TestPlatform()
    const client = new Waystation({ url: 'http://service.test', platform: test_platform })
    try {
      Reflect.deleteProperty(globalThis, 'fetch')
      const error = (await failureOf(client.kv.get('state', 'run'))) as NoFetch
      expect([error.constructor, test_platform.slept]).toEqual([NoFetch, []])
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message).toContain('new Waystation({ fetch')
    } finally {
      globalThis.fetch = fetch
    }
  })

  test('may have an AbortController whose signal its fetch refuses: that is said at once, too', async () => {
    const { AbortController } = globalThis
    const test_platform = new TestPlatform()
    const client = new Waystation({ url: 'http://127.0.0.1:1', platform: test_platform })
    globalThis.AbortController = class {
      signal = Object.assign(new EventTarget(), { aborted: false })
      abort() {}
    } as unknown as typeof AbortController
    try {
      const error = (await failureOf(client.kv.get('state', 'run'))) as NoFetch
      expect([error.constructor, test_platform.slept]).toEqual([NoFetch, []])
      expect(error.message).toContain('does not take the AbortSignal')
      expect(String(error.cause)).toContain('AbortSignal')
    } finally {
      globalThis.AbortController = AbortController
    }
  })

  test.each([
    'RequestInit: Expected signal ("AbortSignal {}") to be an instance of AbortSignal.',
    "Failed to read the 'signal' property from 'RequestInit': Failed to convert value to 'AbortSignal'.",
    "Window.fetch: 'signal' member of RequestInit does not implement interface AbortSignal.",
    'Expected signal to be an instanceof AbortSignal',
    'signal is not of type AbortSignal.',
  ])('knows such a refusal of another realm: %s', async (message) => {
    const refusal = runInNewContext('new TypeError(message)', { message })
    const { client, slept } = answered([() => Promise.reject(refusal)])
    const error = (await failureOf(client.kv.get('state', 'run'))) as NoFetch
    expect([error.constructor, error.cause, slept]).toEqual([NoFetch, refusal, []])
  })

  test.each([
    'AbortSignal.any is not a function',
    "AbortSignal.any is not a function. (In 'AbortSignal.any([init.signal, own])', 'AbortSignal.any' is undefined)",
  ])('takes no other mistake of a fetch for one: the request may have been sent: %s', async (message) => {
    const mistake = () => Promise.reject(new TypeError(message))
    const { client, asked } = answered([mistake], { retries: 1 })
    const error = (await failureOf(client.kv.put('state', 'run', 1))) as WaystationNetworkError
    expect(error).toBeInstanceOf(WaystationNetworkError)
    expect([error.may_have_arrived, asked.length]).toEqual([true, 2])
  })

  test('may have signals without reason and method, as those of React Native: calls and waits end by them', async () => {
    const bare = () => Object.assign(new EventTarget(), { aborted: false }) as unknown as AbortSignal
    const abort = (signal: AbortSignal) => {
      Object.assign(signal, { aborted: true })
      signal.dispatchEvent(new Event('abort'))
    }
    const [before, meanwhile, in_a_wait] = [bare(), bare(), bare()]
    const in_a_claim = bare()
    const { client } = answered([
      async () => {
        abort(meanwhile)
        throw new TypeError('aborted')
      },
      async () => {
        abort(in_a_claim)
        return Response.json({ id: 'eff_1', status: 'running', lease_token: 't', lease_seconds: 60 })
      },
    ])
    const unknown = bare()
    const code = { error: { code: 'EFFECT_UNKNOWN', message: 'Unknown.', details: { effect_id: 'eff_1' } } }
    const held = answered([
      () => {
        abort(unknown)
        return Response.json(code, { status: 409 })
      },
    ]).client
    const once = (signal: AbortSignal, by = client) =>
      by.effects.once({ type: 'mail', key: '1', payload: 1, if_unknown: 'wait', signal }, () =>
        expect.unreachable(),
      )
    abort(before)
    const waiting = platform.sleep(60_000, in_a_wait)
    abort(in_a_wait)
    const errors = [
      await failureOf(client.kv.get('state', 'run', { signal: before })),
      await failureOf(client.kv.get('state', 'run', { signal: meanwhile })),
      await failureOf(waiting),
      await failureOf(once(before)),
      await failureOf(once(in_a_claim)),
      await failureOf(once(unknown, held)),
    ]
    expect(errors.map((error) => [error instanceof Error, (error as Error).name])).toEqual(
      errors.map(() => [true, 'AbortError']),
    )
  })

  test('may lack a TextEncoder: a workflow is sent without it', async () => {
    const { TextEncoder } = globalThis
    const sent: unknown[] = []
    try {
      Reflect.deleteProperty(globalThis, 'TextEncoder')
      const client = new Waystation({
        url: 'http://x',
        workflow_id: 'Nacht %41 ü 🌙',
        fetch: async (_, { headers }) => {
          sent.push((headers as Record<string, string>)['x-workflow-id'])
          return new Response('{"status":"alive"}')
        },
      })
      await client.health.live()
    } finally {
      globalThis.TextEncoder = TextEncoder
    }
    expect(sent).toEqual([Buffer.from('Nacht %41 ü 🌙').toString('latin1')])
  })

  test('sleeps for longer than a timer can', async () => {
    const set: number[] = []
    const timers = spyOn(globalThis, 'setTimeout').mockImplementation(((ring: () => void, ms: number) => {
      set.push(ms)
      queueMicrotask(ring)
    }) as unknown as typeof setTimeout)
    try {
      await platform.sleep(2 ** 31 + 1_000)
    } finally {
      timers.mockRestore()
    }
    expect(set).toEqual([2 ** 31 - 1, 1_001])
  })

  test('a time-out never is longer than timers can be', async () => {
    const ms: number[] = []
    const test_platform = new TestPlatform()
    const { client } = answered([() => new Response('{"id":"chk_1","status":"approved"}')], {
      platform: {
        timer: (wait_ms, fire) => {
          ms.push(wait_ms)
          return test_platform.timer(wait_ms, fire)
        },
      },
    })
    await client.checkpoints.get('chk_1', { wait: 50, timeout_ms: 2 ** 31 - 1 })
    expect(ms).toEqual([2 ** 31 - 1])
  })
})

describe('The answer of a cache', () => {
  const answer = () => new Response('{"id":"log_1"}')

  test.each([{ digest: 'DYNAMIC_SERVER_USAGE' }, { code: 'NEXT_STATIC_GEN_BAILOUT' }])(
    'is not asked for, which Next.js may answer by ending the render: its error is thrown as it is: %p',
    async (mark) => {
      const ending = Object.assign(new Error('Dynamic server usage'), mark)
      const { client, asked } = answered([() => Promise.reject(ending)])
      expect(await failureOf(client.audit.get('log_1'))).toBe(ending)
      expect(asked).toHaveLength(1)
    },
  )

  test('is not asked for, as the fetch of Next.js 14 would by itself', async () => {
    const { client, asked } = answered([answer])
    await client.audit.get('log_1')
    expect(asked[0]).toMatchObject({ cache: 'no-store' })
  })

  test.each([
    [
      'refuses the option',
      () => {
        throw new TypeError('The cache field is not implemented.')
      },
    ],
    ['has no requests', undefined],
  ])('is left to a runtime that %s', async (_, made) => {
    const { Request } = globalThis
    Object.assign(globalThis, { Request: made })
    const { client, asked } = answered([answer])
    Object.assign(globalThis, { Request })
    await client.audit.get('log_1')
    expect(asked[0]).not.toHaveProperty('cache')
  })
})

describe('What stands before the service', () => {
  const answering = sdk_operations.filter(({ id, sdk }) => sdk && id !== 'openapi')
  test.each(answering.map(({ id }) => id as keyof Operations))(
    'does not answer %s by JSON of its own, or by nothing',
    async (name) => {
      const bodies = [{}, { success: true }, { success: true, data: {} }]
      const answers = bodies.map((body) => () => Response.json(body))
      answers.push(() => new Response(null, { status: 304 }))
      if (!operations[name].empty) answers.push(() => new Response(null, { status: 204 }))
      for (const answer of answers) {
        const transport = new Transport({
          ...{ url: 'http://service.test', key: 'k', agent_id: undefined, workflow_id: undefined },
          ...{ timeout_ms: 1_000, retries: 0, parse_json: JSON.parse },
          platform: { ...platform, fetch: async () => answer() },
        })
        const params = new Proxy({}, { get: () => 'x' })
        const error = await failureOf(transport.call(name, { params } as never))
        expect(error).toMatchObject({ code: 'UNEXPECTED_ANSWER', exit: 'unexpected' })
      }
    },
  )
})

describe('A header that cannot be sent', () => {
  const secret = 'svc_agt_sesame'
  test.each([
    ['a key with a line in it', { key: `${secret}\nsvc_agt_other` }],
    ['a key with a character that headers lack', { key: `${secret}…` }],
    ['an empty key', { key: ' \n' }],
    ['an agent_id with a line in it', { agent_id: 'a\r\nb' }],
  ])('is refused at once, and not shown: %s', (_, options) => {
    let thrown: unknown
    try {
      new Waystation({ url: 'http://x', ...options })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(TypeError)
    expect((thrown as Error).message).not.toContain('sesame')
  })

  test('a key read from a file may end with its line', async () => {
    const { client, asked } = answered([() => new Response('{"agent_id":"a"}')], { key: `${secret}\n` })
    await client.agents.get('a')
    expect(asked[0]!.headers).toMatchObject({ authorization: `Bearer ${secret}` })
  })

  test.each([
    { idempotency_key: 'a\nb' },
    { idempotency_key: '' },
    { idempotency_key: 'ü' },
    { idempotency_key: 'x'.repeat(256) },
    { request_id: 'a\nbcdefgh' },
  ])('is not a network error: %p', async (options) => {
    const { client, asked, slept } = answered([lost])
    expect(await failureOf(client.audit.append({ action: 'a' }, options))).toBeInstanceOf(TypeError)
    expect([asked, slept]).toEqual([[], []])
  })

  test('an Idempotency-Key of 255 characters can', async () => {
    const { client, asked } = answered([() => new Response('{"id":"log_1"}')])
    const idempotency_key = 'x'.repeat(255)
    await client.audit.append({ action: 'a' }, { idempotency_key })
    expect(asked[0]!.headers).toMatchObject({ 'idempotency-key': idempotency_key })
  })

  test.each(['http://user:password@x', 'http://user@x'])(
    'an address with a password is refused: %s',
    (url) => {
      expect(() => new Waystation({ url })).toThrow(TypeError)
    },
  )
})

describe('The signal of a caller', () => {
  test('has one listener for all its calls, of which Node 18 and 20 would warn from the eleventh on', async () => {
    const controller = new AbortController()
    const { signal } = controller
    const held: RequestInit[] = []
    const { client } = answered([], {
      fetch: (_, init) => {
        held.push(init)
        return new Promise((__, reject) => {
          init.signal!.addEventListener('abort', () => reject(init.signal!.reason))
        })
      },
    })
    const added = spyOn(signal, 'addEventListener')
    const calls = Array.from({ length: 20 }, () => failureOf(client.kv.get('n', 'k', { signal })))
    await until(() => held.length === 20)
    expect(added).toHaveBeenCalledTimes(1)
    controller.abort(new Error('enough'))
    for (const call of calls) expect(await call).toBe(signal.reason)
  })

  test('that was let go by one call still ends the others, and one that was aborted calls nobody back', () => {
    const controller = new AbortController()
    const called: string[] = []
    const stop = onAbort(controller.signal, () => called.push('first'))
    onAbort(controller.signal, () => {
      called.push('second')
      stopThird()
    })
    const stopThird = onAbort(controller.signal, () => called.push('third'))
    stop()
    stop()
    controller.abort()
    onAbort(controller.signal, () => called.push('late'))()
    expect(called).toEqual(['second'])
  })

  test('is left without listeners, and no timer stays, however a call ends', async () => {
    const { signal } = new AbortController()
    const answers = [
      unavailable,
      lost,
      () => new Response(error_of('KEY_NOT_FOUND'), { status: 404 }),
      () => new Response('{"namespace":"n","value":1,"version":1}'),
      () => new Response(null, { status: 204 }),
    ]
    const { client } = answered(answers, { platform: { ...platform, random: () => 0 } })
    const added = spyOn(signal, 'addEventListener')
    const removed = spyOn(signal, 'removeEventListener')
    const set = spyOn(globalThis, 'setTimeout')
    const cleared = spyOn(globalThis, 'clearTimeout')
    try {
      expect(await failureOf(client.kv.get('n', 'k', { signal }))).toMatchObject({ code: 'KEY_NOT_FOUND' })
      await client.kv.get('n', 'k', { signal })
      expect(await client.dlq.work(() => {}, { stop_when_empty: true, signal })).toMatchObject({ lost: 0 })
      expect(added.mock.calls.length).toBe(7)
      const listeners = (calls: unknown[][]) => new Set(calls.map(([, listener]) => listener))
      expect(listeners(removed.mock.calls)).toEqual(listeners(added.mock.calls))
      const timers = set.mock.results.map(({ value }) => value)
      const ended: Set<unknown> = new Set(cleared.mock.calls.map(([timer]) => timer))
      // Two of them were the waits between the tries, which rang.
      expect(timers.filter((timer) => !ended.has(timer))).toHaveLength(2)
    } finally {
      for (const spy of [added, removed, set, cleared]) spy.mockRestore()
    }
  })
})

describe('A value', () => {
  test('with holes in a list is written as JSON.stringify does', () => {
    const holes = new Array(3)
    holes[1] = 1
    expect(encodeJson({ holes })).toBe('{"holes":[null,1,null]}')
  })

  test('that is undefined is refused as a promise, as everything is', async () => {
    const { client } = answered([lost])
    expect(await failureOf(client.kv.put('n', 'k', undefined))).toBeInstanceOf(TypeError)
  })

  const with_number: [string, (client: Waystation, n: number) => Promise<unknown>][] = [
    ['a version', (c, n) => c.kv.put('n', 'k', 1, { cas_version: n })],
    ['a time to live', (c, n) => c.kv.put('n', 'k', 1, { ttl_seconds: n })],
    ['the cost of a hit', (c, n) => c.rateLimit.check('k', { limit: 1, windowSeconds: 1, cost: n })],
    [
      'the length of a lease',
      (c, n) => c.effects.claim({ type: 't', key: 'k', payload: 1, lease_seconds: n }),
    ],
    ['the payload of effects.once', (c, n) => c.effects.once({ type: 't', key: 'k', payload: n }, () => 1)],
    ['what kv.update made', (c, n) => c.kv.update('n', 'k', () => n)],
    ['an argument of a query', (c, n) => c.checkpoints.get('chk_1', { wait: n })],
  ]
  test.each(with_number)(
    'that is NaN or infinite is refused, not left out or sent as null: %s',
    async (_, call) => {
      for (const number of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const { client, asked } = answered([() => Response.json({ namespace: 'n', version: 1, value: 1 })])
        const error = (await failureOf(call(client, number))) as TypeError
        expect([error.name, error.message]).toEqual([
          'TypeError',
          expect.stringMatching(/^\w+ must be a finite number$|^-?\w+ is not a JSON value$/),
        ])
        expect(asked.filter(({ method }) => method !== 'GET')).toEqual([])
      }
    },
  )

  const with_arguments = sdk_operations.filter(({ sdk }) => sdk?.arguments)
  test.each(with_arguments.map((operation) => [operation.sdk!.name, operation] as const))(
    'that is an argument of %s wins over a field of the same name beside it',
    async (_, operation) => {
      const { client, asked } = answered([() => leastAnswer(operation.method, operation.path)])
      const names = operation.sdk!.arguments!
      const stale = Object.fromEntries(names.map((name) => [name, 'stale']))
      const owner = Reflect.get(client, resourceOf(operation)) as object
      const method = Reflect.get(owner, methodOf(operation)) as (...given: unknown[]) => Promise<unknown>
      const path = operation.path_fields.map(({ name }) => name)
      await method.call(owner, ...path, ...names.map((name) => `new ${name}`), { ...stale, limit: 5 })
      expect(JSON.parse(String(asked[0]!.body))).toMatchObject(
        Object.fromEntries(names.map((name) => [name, `new ${name}`])),
      )
    },
  )

  test('put with the fields of an entry is the new one, under the version that was read', async () => {
    const { client, asked } = answered([() => Response.json({ namespace: 'n', version: 8 })])
    const entry = { value: 'old', version: 7, ttl_seconds: 60 }
    const { version: cas_version, ...rest } = entry
    await client.kv.put('n', 'k', 'new', { ...rest, cas_version })
    expect(JSON.parse(String(asked[0]!.body))).toEqual({ value: 'new', ttl_seconds: 60, cas_version: 7 })
  })

  test.each([0, Number.NaN, -1])('is not updated with %d tries', async (tries) => {
    const { client, asked } = answered([lost])
    expect(await failureOf(client.kv.update('n', 'k', () => 1, { tries }))).toBeInstanceOf(TypeError)
    expect(asked).toEqual([])
  })
})
