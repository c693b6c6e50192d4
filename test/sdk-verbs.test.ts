// The verbs of the SDK that are more than one call: update, waitFor, work.

import { expect, test } from 'bun:test'
import {
  type ClaimedDeadLetter,
  GiveUp,
  RawJson,
  Waystation,
  WaystationNetworkError,
  type WorkOptions,
  type WorkSummary,
} from '../sdk/src/index.ts'
import { all, clientsOf, failureOf, TestPlatform } from './support/sdk.ts'
import { forEachService } from './support/service.ts'

const callback_url = 'http://127.0.0.1:9/'
const nothing: WorkSummary = { resolved: 0, released: 0, failed: 0, lost: 0 }

/** Resolves at the first sleep of this many ms; that sleep goes on until `wake`, all others are over at once. */
function sleepOf(platform: TestPlatform, ms: number) {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  platform.onSleep = (asked_ms) => {
    if (asked_ms !== ms) return
    begun.resolve()
    return ended.promise
  }
  return { begun: begun.promise, wake: () => ended.resolve() }
}

forEachService('kv.update', (service) => {
  test('makes an absent key, and changes one that is there', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const add = (n: number | undefined) => (n ?? 0) + 1
    expect(await agent.kv.update<number>('state', 'n', add)).toMatchObject({ key: 'n', version: 1 })
    expect(await agent.kv.update<number>('state', 'n', async (n) => add(n))).toMatchObject({ version: 2 })
    expect(await agent.kv.get<number>('state', 'n')).toMatchObject({ value: 2, version: 2 })
  })

  test('loses no change of twenty at once', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const add = () => agent.kv.update<number>('state', 'n', (n = 0) => n + 1, { tries: 100 })
    await Promise.all(Array.from({ length: 20 }, add))
    expect(await agent.kv.get<number>('state', 'n')).toMatchObject({ value: 20, version: 20 })
  })

  test('asks again with what somebody else has written, and gives up after as many tries as it may', async () => {
    const { agent, platform } = await clientsOf(service, await service.signUp())
    const seen: (number | undefined)[] = []
    const beaten = async (n: number | undefined) => {
      seen.push(n)
      await agent.kv.put('state', 'n', seen.length)
      return 100
    }
    const error = await failureOf(agent.kv.update('state', 'n', beaten, { tries: 3 }))
    expect(error).toMatchObject({ code: 'VERSION_MISMATCH', status: 409 })
    expect([seen, platform.slept]).toEqual([
      [undefined, 1, 2],
      [50, 100],
    ])
    const stubborn = agent.kv.update('state', 'n', beaten, { tries: 8 })
    expect(await failureOf(stubborn)).toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(platform.slept.slice(2)).toEqual([50, 100, 200, 400, 800, 1_500, 1_500])
  })

  test('writes nothing when there is nothing to write', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    expect(await agent.kv.update('state', 'n', () => undefined)).toBeNull()
    await agent.kv.put('state', 'n', 1)
    expect(await agent.kv.update('state', 'n', () => undefined)).toMatchObject({ value: 1, version: 1 })
    expect(await agent.kv.get('state', 'n')).toMatchObject({ version: 1 })
  })

  test('loses no digit with a parser that keeps them in objects of JSON.rawJSON', async () => {
    const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }
    const parse_json = (text: string): unknown =>
      JSON.parse(text, (_, value, context?: { source: string }) =>
        typeof value === 'number' && String(value) !== context!.source ? rawJSON(context!.source) : value,
      )
    const { agent } = await clientsOf(service, await service.signUp(), service.url, { parse_json })
    await agent.kv.put('state', 'k', new RawJson('{"id":12345678901234567890,"all":[1.10,1e400],"n":1}'))
    await agent.kv.update('state', 'k', (value: object = {}) => ({ ...value, n: 2 }))
    const { value } = await agent.kv.getText('state', 'k')
    expect(value).toBe('{"id":12345678901234567890,"all":[1.10,1e400],"n":2}')
  })

  test('sets the time to live that it is given', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const put = await agent.kv.update('state', 'n', () => 1, { ttl_seconds: 60 })
    expect(Date.parse(put!.expires_at!)).toBe(service.clock.now() + 60_000)
  })
})

forEachService('checkpoints.ask', (service) => {
  test('asks, waits and answers the decision, which is sent nowhere', async () => {
    const { agent, admin, platform } = await clientsOf(service, await service.signUp())
    platform.onSleep = async () => {
      const [asked] = (await admin.checkpoints.list().page()).items
      await admin.checkpoints.approve(asked!.id, { reason: 'fine' })
    }
    const decided = await agent.checkpoints.ask(
      { title: 'Refund?', callback_payload: { order: 7 } },
      { wait_seconds: 0 },
    )
    expect(decided).toMatchObject({
      ...{ title: 'Refund?', status: 'approved', reason: 'fine', callback_url: null },
      callback: { status: 'none' },
    })
    expect((await admin.dlq.list().page()).items).toEqual([])
  })

  test.each([-1, 56, Number.NaN])(
    'asks nobody with wait_seconds %d, which no wait takes',
    async (wait_seconds) => {
      const { agent, platform } = await clientsOf(service, await service.signUp())
      const waits = [
        async () => agent.checkpoints.ask({ title: 'Refund?' }, { wait_seconds }),
        async () => agent.checkpoints.waitFor('chk_1', { wait_seconds }),
        async () => agent.effects.waitFor('eff_1', { wait_seconds }),
        async () => agent.inboxes.messages('inb_1', { follow: true, wait_seconds }).page(),
      ]
      for (const wait of waits) {
        const error = (await failureOf(wait())) as TypeError
        expect([error.name, error.message]).toEqual(['TypeError', 'wait_seconds must be from 0 to 55'])
      }
      expect((await agent.checkpoints.list().page()).items).toEqual([])
      expect(platform.slept).toEqual([])
    },
  )

  test('with a key of its own waits for the same question again, and sends it where it is told to', async () => {
    const { agent, admin } = await clientsOf(service, await service.signUp())
    const question = { title: 'Refund?', callback_url }
    const ask = () => agent.checkpoints.ask(question, { idempotency_key: 'refund-7' })
    const first = ask()
    const again = ask()
    const [asked] = await untilThere(async () => (await admin.checkpoints.list().page()).items)
    await admin.checkpoints.reject(asked!.id)
    expect([await first, await again]).toMatchObject([
      { id: asked!.id, status: 'rejected', callback_url },
      { id: asked!.id, status: 'rejected', callback_url },
    ])
    expect((await admin.checkpoints.list().page()).items).toHaveLength(1)
  })

  async function untilThere<T>(look: () => Promise<T[]>): Promise<T[]> {
    for (;;) {
      const found = await look()
      if (found.length > 0) return found
    }
  }
})

forEachService('checkpoints.waitFor', (service) => {
  test('answers once a human has decided', async () => {
    const { agent, admin } = await clientsOf(service, await service.signUp())
    const { id } = await agent.checkpoints.create({ title: 'Refund?', callback_url })
    const waiting = agent.checkpoints.waitFor(id)
    await admin.checkpoints.approve(id, { reason: 'fine' })
    expect(await waiting).toMatchObject({ id, status: 'approved', reason: 'fine' })
  })

  test('asks again, at most about once a second, when the service does not let it wait', async () => {
    const { agent, admin, platform } = await clientsOf(service, await service.signUp())
    const { id } = await agent.checkpoints.create({ title: 'Refund?', callback_url })
    platform.onSleep = async () => {
      if (platform.slept.length === 3) await admin.checkpoints.reject(id)
    }
    expect(await agent.checkpoints.waitFor(id, { wait_seconds: 0 })).toMatchObject({ status: 'rejected' })
    expect(platform.slept).toEqual([1_500, 1_500, 1_500])
  })

  test('outlives a service that is away for a minute, and does not ask again for longer than retries says', async () => {
    let failing = 20
    const { agent, admin, platform } = await clientsOf(service, await service.signUp(), service.url, {
      fetch: (url, init) =>
        init.method === 'GET' && failing-- > 0 ? Promise.reject(new Error('gone')) : fetch(url, init),
    })
    const { id } = await agent.checkpoints.create({ title: 'Refund?', callback_url })
    await admin.checkpoints.approve(id)
    expect(await agent.checkpoints.waitFor(id)).toMatchObject({ status: 'approved' })
    expect(platform.slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(60_000)
    failing = 3
    expect(await failureOf(agent.checkpoints.waitFor(id, { retries: 2 }))).toBeInstanceOf(
      WaystationNetworkError,
    )
  })

  test('ends with its signal', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const { id } = await agent.checkpoints.create({ title: 'Refund?', callback_url })
    const controller = new AbortController()
    const waiting = failureOf(agent.checkpoints.waitFor(id, { signal: controller.signal }))
    controller.abort('no more time')
    expect(await waiting).toBe('no more time')
  })

  test('tells of a checkpoint that is not there', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    expect(await failureOf(agent.checkpoints.waitFor('chk_none'))).toMatchObject({
      code: 'CHECKPOINT_NOT_FOUND',
    })
  })
})

forEachService('dlq.work', (service) => {
  /** A tenant with this many items, and a worker that ends when nothing is left. */
  async function world(count: number, lock_seconds = 60) {
    const tenant = await service.signUp()
    const clients = await clientsOf(service, tenant)
    const ids: string[] = []
    for (let n = 1; n <= count; n++) {
      service.clock.advance(1)
      ids.push((await clients.agent.dlq.create({ payload: n, error: 'e', lock_seconds })).id)
    }
    const errors: unknown[] = []
    const options: WorkOptions = { stop_when_empty: true, on_error: (error) => errors.push(error) }
    const { dlq } = clients.agent
    // A keep-alive that would be over at once would ask without end.
    clients.platform.onSleep = (ms) => (ms === lock_seconds * 500 ? new Promise(() => {}) : undefined)
    return { ...clients, tenant, dlq, ids, errors, options }
  }

  test('takes the oldest first and resolves what its handler has done', async () => {
    const { dlq, ids, options, errors } = await world(3)
    const handled: [string, unknown, string][] = []
    const summary = await dlq.work((item) => {
      handled.push([item.id, item.payload, item.status])
    }, options)
    expect(handled).toEqual(ids.map((id, at) => [id, at + 1, 'claimed']))
    expect([summary, errors]).toEqual([{ ...nothing, resolved: 3 }, []])
    expect((await all(dlq.list())).map(({ status }) => status)).toEqual(['resolved', 'resolved', 'resolved'])
  })

  test('releases what its handler fails on, pauses, and tries it again', async () => {
    const { dlq, platform, options, errors } = await world(1)
    const boom = new Error('boom')
    const claims: number[] = []
    const summary = await dlq.work((item) => {
      claims.push(item.claims)
      if (item.claims < 3) throw boom
    }, options)
    expect(claims).toEqual([1, 2, 3])
    expect([summary, errors]).toEqual([{ ...nothing, resolved: 1, released: 2 }, [boom, boom]])
    expect(platform.slept.filter((ms) => ms !== 30_000)).toEqual([500, 1_000])
  })

  test('goes on after a freeze of the tenant, and after a pause of its agent', async () => {
    const { dlq, ids, options, errors, admin, tenant, platform } = await world(2)
    const { tenant_id, agent_id } = tenant
    const stops = [
      () => admin.agents.pause(agent_id, { reason: 'look' }),
      () => admin.tenants.freeze(tenant_id, { reason: 'runs wild' }),
    ]
    const resume = async () => {
      await admin.agents.resume(agent_id)
      const { frozen_at } = await admin.tenants.get(tenant_id)
      if (frozen_at !== null) await admin.tenants.resume(tenant_id, { frozen_at })
    }
    platform.onSleep = (ms) => (ms === 30_000 ? new Promise(() => {}) : resume())
    await stops.pop()!()
    const handled: string[] = []
    const summary = await dlq.work(async (item) => {
      handled.push(item.id)
      await stops.pop()?.()
    }, options)
    expect([handled, summary]).toEqual([ids, { ...nothing, resolved: 2 }])
    expect(errors).toMatchObject([{ code: 'TENANT_FROZEN' }, { code: 'AGENT_PAUSED' }])
  })

  test.each([
    ['a page with 404', () => new Response('<h1>No such backend</h1>', { status: 404 })],
    ['a redirect', () => new Response(null, { status: 302, headers: { location: '/login' } })],
    ['JSON with 200', () => Response.json({ ok: true })],
  ])('goes on when something before the service answers a claim: %s', async (_, page) => {
    const { tenant, platform, options, errors } = await world(1)
    const pages = [page, page]
    const behind = new Waystation({
      ...{ url: service.url, key: tenant.api_key, platform },
      fetch: async (url, init) => pages.pop()?.() ?? fetch(url, init),
    })
    expect(await behind.dlq.work(() => {}, options)).toEqual({ ...nothing, resolved: 1 })
    expect(errors).toMatchObject([{ code: 'UNEXPECTED_ANSWER' }, { code: 'UNEXPECTED_ANSWER' }])
    expect(platform.slept.filter((ms) => ms !== 30_000)).toEqual([500, 1_000])
  })

  test('gives up what was claimed claims_max times, and at once what its handler gives up', async () => {
    const { dlq, ids, options } = await world(2)
    const seen: string[] = []
    const handler = async (item: ClaimedDeadLetter) => {
      seen.push(`${ids.indexOf(item.id)}:${item.claims}`)
      throw item.id === ids[0] ? new Error('boom') : new GiveUp('hopeless')
    }
    expect(await dlq.work(handler, { ...options, claims_max: 2 })).toEqual({
      ...nothing,
      released: 1,
      failed: 2,
    })
    expect(seen).toEqual(['0:1', '0:2', '1:1'])
    expect((await all(dlq.list())).map(({ status }) => status)).toEqual(['archived', 'archived'])
  })

  test('keeps the lock alive while its handler works', async () => {
    const { dlq, platform, ids, options } = await world(1, 10)
    const sleep = sleepOf(platform, 5_000)
    const extended = Promise.withResolvers<void>()
    let locked_until: string | null = null
    const working = dlq.work(async (item) => {
      await sleep.begun
      service.clock.advance(9_000)
      platform.onSleep = () => {
        extended.resolve()
        return new Promise(() => {})
      }
      sleep.wake()
      await extended.promise
      service.clock.advance(9_000)
      locked_until = (await dlq.get(item.id)).locked_until
    }, options)
    expect(await working).toEqual({ ...nothing, resolved: 1 })
    expect(Date.parse(locked_until!)).toBe(service.clock.now() + 1_000)
    expect(await dlq.get(ids[0]!)).toMatchObject({ status: 'resolved', claims: 1 })
  })

  test('tells its handler that the lock was lost, and leaves the item to its holder', async () => {
    const { dlq, platform, ids, tenant, options, errors } = await world(1, 10)
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    const sleep = sleepOf(platform, 5_000)
    let lost: unknown
    const working = dlq.work(async (item, { signal }) => {
      await sleep.begun
      service.clock.advance(10_000)
      await service.ask('POST', `/v1/dlq/${item.id}/claim`, { key: other.api_key })
      const told = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))
      sleep.wake()
      lost = await told
    }, options)
    expect(await working).toEqual({ ...nothing, lost: 1 })
    expect(lost).toMatchObject({ code: 'LOCK_NOT_HELD' })
    expect(errors).toEqual([lost])
    expect(await dlq.get(ids[0]!)).toMatchObject({ status: 'claimed', locked_by: 'agent-two' })
  })

  test('works on as many at a time as concurrency says', async () => {
    const { dlq, options } = await world(5)
    let [now, most] = [0, 0]
    const three = Promise.withResolvers<void>()
    const summary = await dlq.work(
      async () => {
        now += 1
        most = Math.max(most, now)
        if (now === 3) three.resolve()
        await three.promise
        now -= 1
      },
      { ...options, concurrency: 3 },
    )
    expect([summary.resolved, most]).toEqual([5, 3])
  })

  test.each([0, 1.5, 101])('concurrency may not be %d', async (concurrency) => {
    const { dlq, options } = await world(0)
    expect(await failureOf(dlq.work(() => {}, { ...options, concurrency }))).toBeInstanceOf(TypeError)
  })

  test.each([1, 100])('concurrency may be %d', async (concurrency) => {
    const { dlq, options } = await world(1)
    expect(await dlq.work(() => {}, { ...options, concurrency })).toEqual({ ...nothing, resolved: 1 })
  })

  test('waits longer and longer while there is nothing, and is there when something comes', async () => {
    const { dlq, platform } = await world(0)
    const stop = new AbortController()
    platform.onSleep = async () => {
      if (platform.slept.length === 7) await dlq.create({ payload: 1, error: 'e' })
    }
    const summary = await dlq.work(() => stop.abort(), { signal: stop.signal })
    expect(platform.slept.slice(0, 7)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000])
    expect(summary).toEqual({ ...nothing, resolved: 1 })
  })

  test('ends with its signal once what was begun is settled: nothing stays locked', async () => {
    const { dlq, ids, errors } = await world(2)
    const stop = new AbortController()
    const summary = await dlq.work(
      (_, { signal }) => {
        stop.abort('closing')
        expect(signal.reason).toBe('closing')
        throw new Error('interrupted')
      },
      { signal: stop.signal, on_error: (error) => errors.push(error) },
    )
    expect([summary, errors.length]).toEqual([{ ...nothing, released: 1 }, 1])
    expect(await dlq.get(ids[0]!)).toMatchObject({ status: 'failed', claims: 1 })
    expect(await dlq.get(ids[1]!)).toMatchObject({ status: 'failed', claims: 0 })
    expect(await dlq.work(() => {}, { signal: stop.signal })).toEqual(nothing)
  })

  test('survives a service that is away for a while, and a listener that throws', async () => {
    const { tenant } = await world(1)
    let answers = 0
    const { agent, platform } = await clientsOf(service, tenant, service.url, {
      retries: 0,
      fetch: (url, init) => {
        answers += 1
        return answers <= 2 ? Promise.reject(new TypeError('gone')) : fetch(url, init)
      },
    })
    platform.onSleep = (ms) => (ms === 30_000 ? new Promise(() => {}) : undefined)
    const told: unknown[] = []
    const on_error = (error: unknown) => {
      told.push(error)
      throw new Error('the listener, too')
    }
    const summary = await agent.dlq.work(() => {}, { stop_when_empty: true, on_error })
    expect([summary.resolved, told.length]).toEqual([1, 2])
  })

  test('tells its handler in time when the lock cannot be kept because nobody answers', async () => {
    const { tenant, ids } = await world(1, 10)
    let away = false
    const extending = Promise.withResolvers<void>()
    const { agent, platform } = await clientsOf(service, tenant, service.url, {
      fetch: (url, init) => {
        if (!away) return fetch(url, init)
        extending.resolve()
        return new Promise((_, reject) =>
          init.signal!.addEventListener('abort', () => reject(new Error('gone'))),
        )
      },
    })
    const told: unknown[] = []
    const working = agent.dlq.work(
      async (_, { signal }) => {
        away = true
        const lost = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))
        await extending.promise
        const ends = [...platform.timers.values()].filter(({ ms }) => ms === 10_000)
        expect(ends).toHaveLength(1)
        ends[0]!.fire()
        told.push(await lost)
        away = false
      },
      { stop_when_empty: true, on_error: (error) => told.push(error) },
    )
    platform.onSleep = (ms) => (ms === 5_000 || ms === 500 ? undefined : new Promise(() => {}))
    expect(await working).toEqual({ ...nothing, lost: 1 })
    expect(told[0]).toMatchObject({ name: 'WaystationTimeoutError', waited_ms: 10_000 })
    expect(platform.timers.size).toBe(0)
    expect(ids).toHaveLength(1)
  })

  /** A claim that is answered so much later by our clock. The handlers that began are what was asked before each. */
  async function claimedLate(late_ms: number, onAnswer: (path: string, id: string) => unknown = () => {}) {
    const { tenant, ids } = await world(1, 10)
    const asked: string[] = []
    const begun: string[][] = []
    const errors: unknown[] = []
    let now = service.clock.now()
    const platform = new TestPlatform(() => now)
    platform.onSleep = (ms) => (ms >= 2_000 ? new Promise(() => {}) : undefined)
    const { agent } = await clientsOf(service, tenant, service.url, {
      platform,
      fetch: async (url, init) => {
        const answer = await fetch(url, init)
        const verb = url.split('/').at(-1)!
        asked.push(verb)
        if (asked.length === 1) now += late_ms
        await onAnswer(verb, ids[0]!)
        return answer
      },
    })
    const work = (signal?: AbortSignal) =>
      agent.dlq.work(() => void begun.push([...asked]), {
        ...{ stop_when_empty: true, signal },
        on_error: (error) => errors.push(error),
      })
    return { work, begun, errors, platform, item: () => agent.dlq.get(ids[0]!), tenant }
  }

  test('extends a lock whose claim was answered late before its handler begins', async () => {
    const { work, begun } = await claimedLate(5_000)
    expect([await work(), begun]).toEqual([{ ...nothing, resolved: 1 }, [['claim', 'extend']]])
  })

  test('counts the time that a lock had left when it came', async () => {
    const { work, begun, platform } = await claimedLate(4_999)
    expect([await work(), begun]).toEqual([{ ...nothing, resolved: 1 }, [['claim']]])
    expect(platform.slept).toEqual([1])
  })

  test('calls no handler when the lock was over before the answer of its claim', async () => {
    const { work, begun, errors, platform, item } = await claimedLate(10_000)
    expect([await work(), begun]).toEqual([{ ...nothing, lost: 1 }, []])
    expect(errors).toMatchObject([{ name: 'WaystationTimeoutError', waited_ms: 10_000 }])
    expect([platform.slept, (await item()).status]).toEqual([[500], 'claimed'])
  })

  test('calls no handler when the extension of a lock that came late is refused', async () => {
    let claims = 0
    const { work, begun, errors, tenant } = await claimedLate(5_000, async (verb, id) => {
      if (verb !== 'claim' || ++claims > 1) return
      service.clock.advance(10_000)
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      await service.ask('POST', `/v1/dlq/${id}/claim`, { key: other.api_key })
    })
    expect([await work(), begun]).toEqual([{ ...nothing, lost: 1 }, []])
    expect(errors).toMatchObject([{ name: 'WaystationError', status: 409 }])
  })

  test('releases an item whose lock is being extended when the work is to end', async () => {
    const stop = new AbortController()
    const { work, begun, item } = await claimedLate(
      5_000,
      (verb) => verb === 'extend' && stop.abort('closing'),
    )
    expect([await work(stop.signal), begun]).toEqual([{ ...nothing, released: 1 }, []])
    expect(await item()).toMatchObject({ status: 'failed', locked_by: null })
  })

  test('extends again soon after nobody answered', async () => {
    const { tenant } = await world(1, 10)
    let failing = 0
    const { agent, platform } = await clientsOf(service, tenant, service.url, {
      fetch: (url, init) => (failing-- > 0 ? Promise.reject(new Error('gone')) : fetch(url, init)),
    })
    const kept = Promise.withResolvers<void>()
    platform.onSleep = () => {
      if (platform.slept.length < 4) return
      kept.resolve()
      return new Promise(() => {})
    }
    const work = agent.dlq.work(
      async () => {
        failing = 2
        await kept.promise
      },
      { stop_when_empty: true },
    )
    expect(await work).toEqual({ ...nothing, resolved: 1 })
    expect(platform.slept).toEqual([5_000, 1_000, 1_000, 5_000])
  })

  test('leaves nothing locked that was being claimed when it was to end', async () => {
    const { tenant, ids } = await world(1)
    const stop = new AbortController()
    const { agent } = await clientsOf(service, tenant, service.url, {
      fetch: async (url, init) => {
        const answer = await fetch(url, init)
        if (url.endsWith('/claim')) stop.abort('closing')
        return answer
      },
    })
    let handled = 0
    const handler = () => {
      handled += 1
    }
    const summary = await agent.dlq.work(handler, { signal: stop.signal })
    expect([summary, handled]).toEqual([{ ...nothing, released: 1 }, 0])
    expect(await agent.dlq.get(ids[0]!)).toMatchObject({ status: 'failed', claims: 1, locked_by: null })
  })

  test('does not wait for ever for a claim when it is to end', async () => {
    const { tenant } = await world(0)
    const stop = new AbortController()
    const { agent, platform } = await clientsOf(service, tenant, service.url, {
      fetch: (_, init) => {
        stop.abort('closing')
        for (const { ms, fire } of platform.timers.values()) if (ms === 5_000) queueMicrotask(fire)
        return new Promise((_, reject) =>
          init.signal!.addEventListener('abort', () => reject(new Error('gone'))),
        )
      },
    })
    expect(await agent.dlq.work(() => {}, { signal: stop.signal })).toEqual(nothing)
    expect(platform.timers.size).toBe(0)
  })

  test('waits before the next claim for as long as it was told to', async () => {
    const { tenant } = await world(0)
    const body = JSON.stringify({ error: { code: 'UNAVAILABLE', message: 'm' } })
    let asked = 0
    const { agent, platform } = await clientsOf(service, tenant, service.url, {
      fetch: (url, init) => {
        asked += 1
        if (asked > 1) return fetch(url, init)
        return Promise.resolve(new Response(body, { status: 503, headers: { 'retry-after': '300' } }))
      },
    })
    expect(await agent.dlq.work(() => {}, { stop_when_empty: true })).toEqual(nothing)
    expect([asked, platform.slept]).toEqual([2, [300_500]])
  })

  test('survives a listener that rejects later', async () => {
    const { dlq, options } = await world(1)
    const unhandled: unknown[] = []
    const listen = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', listen)
    try {
      const on_error = async () => {
        throw new Error('the listener')
      }
      const handler = () => {
        throw new GiveUp('hopeless')
      }
      expect(await dlq.work(handler, { ...options, on_error })).toEqual({ ...nothing, failed: 1 })
    } finally {
      process.off('unhandledRejection', listen)
    }
    expect(unhandled).toEqual([])
  })

  test.each([
    { claims_max: 0 },
    { claims_max: Number.NaN },
    { idle_ms_max: -1 },
    { idle_ms_max: Number.NaN },
  ])('refuses what would never end or never rest: %p', async (wrong) => {
    const { dlq, options } = await world(0)
    expect(await failureOf(dlq.work(() => {}, { ...options, ...wrong }))).toBeInstanceOf(TypeError)
  })

  test('ends in the error when the key is not accepted any more', async () => {
    const { admin, dlq, tenant } = await world(0)
    await admin.agents.rotateKey(tenant.agent_id)
    expect(await failureOf(dlq.work(() => {}, { concurrency: 3 }))).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  test('ends in the error of a parse_json that cannot read what it claimed', async () => {
    const { tenant } = await world(2)
    let parsed = 0
    const { agent } = await clientsOf(service, tenant, service.url, {
      parse_json: () => {
        parsed += 1
        throw new RangeError('too large')
      },
    })
    expect(await failureOf(agent.dlq.work(() => {}, { stop_when_empty: true }))).toEqual(
      new RangeError('too large'),
    )
    expect(parsed).toBe(1) // the second item stays free
  })
})
