// effects.once of the SDK: the lease that it has is the one that the service gave, and one that it may have without knowing is
// released.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { EffectInFlightError, EffectUnknownError, type OnceEffect, Waystation } from '../sdk/src/index.ts'
import { runOut } from './support/effects.ts'
import { type Clients, clientsOf, failureOf, type LossyProxy, startProxy } from './support/sdk.ts'
import { forEachService, type TestTenant } from './support/service.ts'

forEachService('The leases of effects.once', (service) => {
  let tenant: TestTenant
  let proxy: LossyProxy
  let clients: Clients
  let count = 0

  beforeAll(async () => {
    tenant = await service.signUp('pro')
    proxy = await startProxy(service.url)
  })
  afterAll(() => proxy.stop())
  beforeEach(async () => {
    clients = await clientsOf(service, tenant, proxy.url)
    clients.platform.slept = []
  })

  const payload = { order: 7 }
  const newEffect = (more: Partial<OnceEffect> = {}): OnceEffect => {
    count += 1
    return { type: 'refund', key: `order-${count}`, payload, ...more }
  }
  const only = async ({ type, key }: OnceEffect) => {
    const { items } = await clients.admin.effects.list({ type, key }).page()
    return clients.admin.effects.get(items[0]!.id)
  }
  /** Its requests go through `fetched`. */
  const through = (fetched: (url: string, init: RequestInit) => Promise<Response>) =>
    new Waystation({
      ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
      fetch: (url, init) => fetched(url, init as RequestInit),
    })
  /** The waits between two extensions: those of `ms` end at once, and others never. */
  const sleepOnly = (ms: number) => {
    clients.platform.onSleep = (asked) => (asked === ms ? undefined : new Promise(() => {}))
  }

  test('an extension that gets no answer is ended with the work, whose report is sent at once', async () => {
    sleepOnly(20_000)
    const bodies: unknown[] = []
    const begun = Promise.withResolvers<void>()
    const stalling = through(async (url, init) => {
      if (!url.endsWith('/extend')) return fetch(url, init)
      bodies.push(JSON.parse(init.body as string))
      begun.resolve()
      return new Promise((_, reject) =>
        init.signal!.addEventListener('abort', () => reject(init.signal!.reason)),
      )
    })
    const effect = newEffect()
    expect(await stalling.effects.once(effect, () => begun.promise.then(() => 'paid'))).toBe('paid')
    expect((await only(effect)).status).toBe('succeeded')
    expect(bodies[0]).toEqual({ lease_token: expect.any(String), lease_seconds: 60 })
  })

  test('a signal that is aborted as the work begins is passed on to it, however close', async () => {
    clients.platform.onSleep = () => new Promise(() => {})
    for (let steps = 0; steps < 40; steps++) {
      const controller = new AbortController()
      const afterSteps = async () => {
        for (let step = 0; step < steps; step++) await null
        controller.abort('stop')
      }
      const made = { ...newEffect(), id: 'eff_1', status: 'running', fence: 1, lease_seconds: 60 }
      const aborting = through(async (url) => {
        if (url.endsWith('/v1/effects')) void afterSteps()
        return Response.json({ ...made, effective_hash: null, result: null })
      })
      let begun: AbortSignal | undefined
      const work = async ({ signal }: { signal: AbortSignal }) => {
        begun = signal
        await new Promise(setImmediate)
      }
      await aborting.effects.once({ ...newEffect(), signal: controller.signal }, work).catch(() => {})
      expect([steps, begun?.aborted ?? true]).toEqual([steps, true])
    }
  })

  test('a lease that a policy has cut is extended, and lost, by the time that the service gave', async () => {
    await clients.admin.effectPolicies.set('short', { approval: 'optional', lease_seconds_max: 9 })
    const effect = newEffect({ type: 'short', lease_seconds: 600 })
    let first = true
    const late = through(async (url, init) => {
      const answer = await fetch(url, init)
      if (first && url.endsWith('/v1/effects')) await runOut(service, 10)
      first = false
      return answer
    })
    clients.platform.onSleep = (ms) => (ms === 3_000 ? new Promise(() => {}) : undefined)
    let calls = 0
    const done = late.effects.once(effect, ({ fence }) => {
      calls += 1
      return fence
    })
    expect([await done, calls]).toEqual([2, 1])
    expect(clients.platform.slept).toContain(3_000)
  })

  test('a lease that ran out before its lost answer was asked for again is free: nothing was begun', async () => {
    const effect = newEffect()
    let first = true
    const losing = through(async (url, init) => {
      const answer = await fetch(url, init)
      if (!first || !url.endsWith('/v1/effects')) return answer
      first = false
      await answer.text()
      await runOut(service)
      throw new TypeError('the connection broke')
    })
    expect(await losing.effects.once(effect, ({ fence }) => fence)).toBe(2)
  })

  test('a lease whose answer Cloudflare did not wait for is asked for again, not left to run out', async () => {
    let first = true
    const hasty = through(async (url, init) => {
      const answer = await fetch(url, init)
      if (!first || !url.endsWith('/v1/effects')) return answer
      first = false
      await answer.text()
      return new Response('<html>error code: 524', { status: 524 })
    })
    const effect = newEffect()
    expect(await hasty.effects.once(effect, ({ fence }) => fence)).toBe(1)
    expect((await only(effect)).status).toBe('succeeded')
  })

  test.each(['claim', 'start'])(
    'a lease of a %s whose answer was lost is released although a freeze refuses its repeat',
    async (verb) => {
      const { tenant_id } = tenant
      let first = true
      const losing = through(async (url, init) => {
        const answer = await fetch(url, init)
        if (!first || !url.endsWith(verb === 'claim' ? '/v1/effects' : '/start')) return answer
        first = false
        await answer.text()
        await clients.admin.tenants.freeze(tenant_id, { reason: 'runs wild' })
        throw new TypeError('the connection broke')
      })
      const effect = newEffect({
        ...{ approval: verb === 'start' ? { title: 'Refund?' } : undefined, on_unknown: 'ask' },
        on_waiting: ({ id }) => void clients.admin.checkpoints.approve(id),
      })
      let calls = 0
      const error = await failureOf(losing.effects.once(effect, () => ++calls))
      expect(error).toMatchObject({ may_have_arrived: true, cause: { code: 'TENANT_FROZEN' } })
      const { frozen_at } = await clients.admin.tenants.get(tenant_id)
      await clients.admin.tenants.resume(tenant_id, { frozen_at: frozen_at! })
      const status = verb === 'claim' ? 'ready' : 'approved'
      expect([calls, (await only(effect)).status]).toEqual([0, status])
    },
  )

  test('a lease that another got before the repeat of a claim that was lost is in flight', async () => {
    const effect = newEffect({ if_in_flight: 'throw' })
    let first = true
    const losing = through(async (url, init) => {
      if (!first || !url.endsWith('/v1/effects')) return fetch(url, init)
      first = false
      await clients.agent.effects.claim({ type: effect.type, key: effect.key, payload })
      throw new TypeError('the connection broke')
    })
    expect(await failureOf(losing.effects.once(effect, () => 1))).toBeInstanceOf(EffectInFlightError)
  })

  test('an effect of another of which nobody knows is left as it is', async () => {
    const effect = newEffect()
    await clients.agent.effects.claim({ type: effect.type, key: effect.key, payload })
    await runOut(service)
    const error = await failureOf(clients.agent.effects.once(effect, () => 1))
    expect(error).toBeInstanceOf(EffectUnknownError)
    expect((await only(effect)).status).toBe('unknown')
  })

  test('a claim that surely did not arrive is not sent again to give it back', async () => {
    let asked = 0
    const refused = through(() => {
      asked += 1
      return Promise.reject(Object.assign(new TypeError('no connection'), { code: 'ECONNREFUSED' }))
    })
    await failureOf(refused.effects.once(newEffect({ retries: 0 }), () => 1))
    expect(asked).toBe(1)
  })

  test.each([() => undefined, async () => 'failed', 'nothing'])(
    'an error is unknown when on_throw says nothing that it knows: %p',
    async (on_throw) => {
      const effect = newEffect({ on_throw: on_throw as OnceEffect['on_throw'] })
      await failureOf(clients.agent.effects.once(effect, () => Promise.reject(new Error('socket closed'))))
      await runOut(service)
      expect(await only(effect)).toMatchObject({ status: 'unknown', error: null })
    },
  )
})
