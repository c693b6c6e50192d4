// effects.once of the SDK: claims, waits, starts, extends, records; and agents that are killed at every step of it, ONCE_ROUNDS
// times each.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  EffectFailedError,
  EffectInFlightError,
  EffectRejectedError,
  EffectUnknownError,
  EffectUnrecordedError,
  hasCode,
  NotDone,
  type OnceEffect,
  Waystation,
} from '../sdk/src/index.ts'
import { hashOf } from '../src/base/keys.ts'
import { eventsOf, runOut } from './support/effects.ts'
import {
  type Clients,
  clientsOf,
  failureOf,
  type LossyProxy,
  startProxy,
  TestPlatform,
} from './support/sdk.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const rounds = Number(process.env.ONCE_ROUNDS ?? 1)

forEachService('effects.once', (service) => {
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
    // The waits between two extensions never end by themselves.
    clients.platform.onSleep = (ms) => (ms === lease_ms / 3 ? new Promise(() => {}) : undefined)
  })

  const lease_ms = 60_000
  const payload = { order: 7, amount: 30 }
  const newEffect = (more: Partial<OnceEffect> = {}): OnceEffect => {
    count += 1
    return { type: 'refund', key: `order-${count}`, payload, ...more }
  }
  const only = async ({ type, key }: OnceEffect) => {
    const { items } = await clients.admin.effects.list({ type, key }).page()
    return clients.admin.effects.get(items[0]!.id)
  }
  const approval = { title: 'Refund 30 EUR?', editable: true }
  /** Decides each approval as soon as it is waited for. */
  const decided = (verb: 'approve' | 'reject', body = {}) => ({
    approval,
    on_waiting: ({ id }: { id: string }) => clients.admin.checkpoints[verb](id, body),
  })

  describe('does it', () => {
    test('once, and answers the recorded result from then on', async () => {
      const effect = newEffect()
      let calls = 0
      const work = () => {
        calls += 1
        return { receipt: calls, at: new Date(0), left_out: undefined }
      }
      const recorded = { receipt: 1, at: '1970-01-01T00:00:00.000Z' }
      expect(await clients.agent.effects.once(effect, work)).toEqual(recorded as never)
      expect(await clients.agent.effects.once(effect, work)).toEqual(recorded as never)
      expect(calls).toBe(1)
      expect(await only(effect)).toMatchObject({ status: 'succeeded', fence: 1, result: recorded })
    })

    test('with null as the result of work that returns nothing', async () => {
      const effect = newEffect()
      expect(await clients.agent.effects.once<unknown>(effect, () => {})).toBeNull()
    })

    test('with a permit that names the effect, its bytes and its fence', async () => {
      const effect = newEffect()
      const seen = await clients.agent.effects.once(effect, ({ signal, effect: _, ...permit }) => ({
        ...permit,
        aborted: signal.aborted,
      }))
      const { id } = await only(effect)
      const payload_hash = hashOf(JSON.stringify(payload))
      expect(seen).toEqual({ id, payload, payload_hash, fence: 1, aborted: false })
    })

    test('after its approval, with exactly the bytes that were approved', async () => {
      const other = { order: 7, amount: 20 }
      const shown: string[] = []
      const effect = newEffect({
        approval,
        async on_waiting({ id, approval_url }) {
          shown.push(approval_url)
          await clients.approval.checkpoints.approve(id, { effective_payload: other })
        },
      })
      const seen = await clients.agent.effects.once(effect, ({ payload, payload_hash }) => [
        payload,
        payload_hash,
      ])
      expect(seen).toEqual([other, hashOf(JSON.stringify(other))])
      expect(shown).toEqual([expect.stringContaining('/approve/')])
      expect(await only(effect)).toMatchObject({ status: 'succeeded', payload, effective_payload: other })
    })

    test('for one of several callers at once, and all get its result', async () => {
      const effect = newEffect()
      let calls = 0
      const work = async () => {
        calls += 1
        await Bun.sleep(20)
        return calls
      }
      const all = Array.from({ length: 5 }, () => clients.agent.effects.once(effect, work))
      expect(await Promise.all(all)).toEqual([1, 1, 1, 1, 1])
    })

    test('for the bytes that it had when it was called', async () => {
      const mine = { amount: 30 }
      const effect = newEffect({ payload: mine, ...decided('approve') })
      const running = clients.agent.effects.once(effect, ({ payload }) => payload)
      mine.amount = 31
      expect(await running).toEqual({ amount: 30 })
      expect(hasCode(await failureOf(clients.agent.effects.once(effect, () => 1)), 'EFFECT_KEY_REUSED')).toBe(
        true,
      )
    })

    test.each(['lose_answer', 'lose_request'] as const)('once when the claim meets %s', async (fate) => {
      const effect = newEffect()
      proxy.next = [fate]
      expect(await clients.agent.effects.once(effect, () => 'done')).toBe('done')
      expect(await only(effect)).toMatchObject({ status: 'succeeded', fence: 1 })
    })

    test('once when the answers to start and report are lost', async () => {
      const effect = newEffect()
      const { id, checkpoint } = await clients.agent.effects.claim({ ...effect, approval })
      await clients.admin.checkpoints.approve(checkpoint!.id)
      const from = proxy.seen.length
      const ask = proxy.next
      let calls = 0
      const lossy = new Waystation({
        ...{ url: proxy.url, key: tenant.api_key, platform: clients.platform },
        fetch(url, init) {
          if (
            /\/(start|succeed)$/.test(url) &&
            !proxy.seen.slice(from).some(({ path }) => url.endsWith(path))
          )
            ask.push('lose_answer')
          return fetch(url, init)
        },
      })
      expect(await lossy.effects.once({ ...effect, approval }, () => (calls += 1))).toBe(1)
      const paths = proxy.seen.slice(from).map(({ path }) => path)
      expect(paths).toEqual([
        '/v1/effects',
        ...Array(2).fill(`/v1/effects/${id}/start`),
        ...Array(2).fill(`/v1/effects/${id}/succeed`),
      ])
    })
  })

  describe('throws', () => {
    test('EffectRejectedError for an approval that was refused, at once and ever after', async () => {
      const effect = newEffect(decided('reject', { reason: 'no' }))
      for (const _ of [1, 2]) {
        const error = await failureOf(clients.agent.effects.once(effect, () => 1))
        expect(error).toBeInstanceOf(EffectRejectedError)
        const { id, checkpoint_id } = await only(effect)
        expect(error).toMatchObject({ status: 'rejected', effect_id: id, checkpoint_id, key: effect.key })
        expect(hasCode((error as Error).cause, 'EFFECT_REJECTED')).toBe(true)
      }
    })

    test('what the work throws; a NotDone is recorded, and EffectFailedError from then on', async () => {
      const effect = newEffect()
      const declined = new NotDone('card declined\0 \ud800')
      expect(await failureOf(clients.agent.effects.once(effect, () => Promise.reject(declined)))).toBe(
        declined,
      )
      const error = await failureOf(clients.agent.effects.once(effect, () => 1))
      expect(error).toBeInstanceOf(EffectFailedError)
      expect((error as EffectFailedError).reason).toBe('card declined\ufffd \ufffd')
      expect((error as Error).message).toBe(
        `The effect refund "${effect.key}" has failed: card declined\ufffd \ufffd`,
      )
    })

    test('EffectInFlightError with if_in_flight throw', async () => {
      const held = newEffect({ if_in_flight: 'throw' })
      const { lease_until } = await clients.agent.effects.claim({ type: 'refund', key: held.key, payload })
      const refused = await failureOf(clients.agent.effects.once(held, () => 1))
      expect(refused).toBeInstanceOf(EffectInFlightError)
      expect(refused).toMatchObject({ agent_id: tenant.agent_id, lease_until, retry_after_seconds: 60 })
    })

    test('EffectUnknownError once a lease has run out without a report', async () => {
      const effect = newEffect({ on_unknown: 'ask' })
      await clients.agent.effects.claim({ type: 'refund', key: effect.key, payload, on_unknown: 'ask' })
      await runOut(service)
      const error = await failureOf(clients.agent.effects.once(effect, () => 1))
      expect(error).toBeInstanceOf(EffectUnknownError)
      const { question_id } = await only(effect)
      expect((error as EffectUnknownError).checkpoint_id).toBe(question_id)
    })

    test('EffectUnrecordedError when somebody else has decided meanwhile, with what the work returned', async () => {
      const effect = newEffect()
      const error = await failureOf(
        clients.agent.effects.once(effect, async ({ id }) => {
          await runOut(service)
          await clients.admin.effects.resolve(id, { outcome: 'failed' })
          return 'paid'
        }),
      )
      expect(error).toBeInstanceOf(EffectUnrecordedError)
      expect(error).toMatchObject({ result: 'paid', has_succeeded: false })
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({ result: 'paid' })
      expect(hasCode((error as Error).cause, 'EFFECT_NOT_HELD')).toBe(true)
    })

    test('EffectUnrecordedError for a result that is not JSON; that it has happened is recorded', async () => {
      const effect = newEffect()
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      const error = await failureOf(clients.agent.effects.once(effect, () => cyclic))
      expect(error).toMatchObject({ name: 'EffectUnrecordedError', has_succeeded: true })
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({
        key: effect.key,
        result: expect.stringMatching(/^TypeError: .*cyclic/),
      })
      expect(await clients.agent.effects.once<unknown>(effect, () => 2)).toBeNull()
    })

    test('for a result whose own toJSON throws in the same way', async () => {
      const effect = newEffect()
      const toJSON = () => {
        throw new Error('The receipt is closed.')
      }
      const error = await failureOf(clients.agent.effects.once(effect, () => ({ toJSON })))
      expect(error).toMatchObject({ name: 'EffectUnrecordedError', has_succeeded: true })
      expect((await only(effect)).status).toBe('succeeded')
    })

    test('for a result that is too large in the same way', async () => {
      const effect = newEffect()
      const error = await failureOf(clients.agent.effects.once(effect, () => 'x'.repeat(262_145)))
      expect(error).toMatchObject({ name: 'EffectUnrecordedError', has_succeeded: true })
      expect((await only(effect)).status).toBe('succeeded')
    })

    test('for a status of a newer service, and does not take it for done', async () => {
      proxy.next = [{ status: 200, body: '{"id":"eff_1","status":"withdrawn","result":null}' }]
      const error = await failureOf(clients.agent.effects.once(newEffect(), () => 1))
      expect(hasCode(error, 'UNEXPECTED_ANSWER')).toBe(true)
    })

    test('TypeError without a payload, and asks nothing', async () => {
      const from = proxy.seen.length
      const error = await failureOf(clients.agent.effects.once(newEffect({ payload: undefined }), () => 1))
      expect(error).toBeInstanceOf(TypeError)
      expect(proxy.seen.length).toBe(from)
    })
  })

  describe('work that throws', () => {
    test('may be started again with on_throw retry', async () => {
      const effect = newEffect({ on_throw: 'retry' })
      const failed = new Error('no connection')
      expect(await failureOf(clients.agent.effects.once(effect, () => Promise.reject(failed)))).toBe(failed)
      expect(await clients.agent.effects.once(effect, ({ fence }) => fence)).toBe(2)
    })

    test('is judged by a function', async () => {
      const effect = newEffect({
        on_throw: (error) => ((error as Error).message === 'declined' ? 'failed' : 'unknown'),
      })
      const run = (message: string) =>
        failureOf(clients.agent.effects.once(effect, () => Promise.reject(new Error(message))))
      await run('timed out')
      expect((await only(effect)).status).toBe('running')
      await runOut(service)
      await clients.admin.effects.resolve((await only(effect)).id, { outcome: 'retry' })
      await run('declined')
      expect(await only(effect)).toMatchObject({ status: 'failed', error: 'declined', fence: 2 })
    })

    test('may have happened: it is unknown within a second, and on_unknown decides', async () => {
      const effect = newEffect({ on_unknown: 'ask' })
      let paid = 0
      const lost = new TypeError('fetch failed')
      const error = await failureOf(
        clients.agent.effects.once(effect, () => {
          paid += 1
          throw lost
        }),
      )
      expect(error).toBe(lost)
      await runOut(service, 1)
      const { status, question_id, error: said } = await only(effect)
      expect([paid, status, question_id, said]).toEqual([1, 'unknown', expect.any(String), null])
      expect(await failureOf(clients.agent.effects.once(effect, () => (paid += 1)))).toBeInstanceOf(
        EffectUnknownError,
      )
      expect(paid).toBe(1)
    })

    test('surely did nothing with a NotDone: final, or with retry free again', async () => {
      const refused = newEffect({ on_throw: 'unknown' })
      const throwing = (effect: OnceEffect, error: unknown) =>
        failureOf(clients.agent.effects.once(effect, () => Promise.reject(error)))
      await throwing(refused, new NotDone('declined'))
      expect(await only(refused)).toMatchObject({ status: 'failed', error: 'declined' })
      const busy = newEffect()
      const not_done = new NotDone('the bank is closed', { retry: true, cause: 503 })
      expect(await throwing(busy, not_done)).toBe(not_done)
      expect(not_done).toMatchObject({ name: 'NotDone', retry: true, cause: 503 })
      expect(await only(busy)).toMatchObject({ status: 'ready', error: 'the bank is closed' })
      expect(await clients.agent.effects.once(busy, ({ fence }) => fence)).toBe(2)
    })

    test.each([
      ['without a form as a text', Object.create(null)],
      ['empty', ''],
      ['undefined', undefined],
    ])('a value that is %s: it is recorded and thrown', async (_, value) => {
      const effect = newEffect({ on_throw: 'failed' })
      const thrown = await failureOf(clients.agent.effects.once(effect, () => Promise.reject(value)))
      expect(Object.is(thrown, value)).toBe(true)
      const { status, error } = await only(effect)
      expect([status, error]).toEqual([
        'failed',
        value === undefined ? 'undefined' : 'It threw an error without a text.',
      ])
    })

    test('is unknown when on_throw itself throws', async () => {
      const effect = newEffect({
        on_throw() {
          throw new Error('a mistake')
        },
      })
      const failed = new Error('no connection')
      expect(await failureOf(clients.agent.effects.once(effect, () => Promise.reject(failed)))).toBe(failed)
      await runOut(service, 1)
      expect((await only(effect)).status).toBe('unknown')
    })

    test('reports nothing once it was told to stop: nobody knows', async () => {
      const stop = new AbortController()
      const effect = newEffect({ signal: stop.signal })
      const stopped = clients.agent.effects.once(effect, async ({ signal }) => {
        stop.abort(new Error('Ctrl-C'))
        signal.throwIfAborted()
      })
      expect(((await failureOf(stopped)) as Error).message).toBe('Ctrl-C')
      expect((await only(effect)).status).toBe('running')
    })
  })

  describe('the lease', () => {
    test('is extended at every third of its time while the work runs, and no longer', async () => {
      const effect = newEffect()
      const thirds: (() => void)[] = []
      clients.platform.onSleep = (ms) =>
        ms === lease_ms / 3 ? new Promise<void>((resolve) => thirds.push(resolve)) : undefined
      await clients.agent.effects.once(effect, async ({ id }) => {
        for (let i = 1; i <= 4; i++) {
          service.clock.advance(lease_ms / 3)
          thirds.shift()!()
          while (thirds.length === 0) await Bun.sleep(1)
          expect((await clients.admin.effects.get(id)).status).toBe('running')
        }
      })
      const { id } = await only(effect)
      const types = (await eventsOf(service, tenant, id)).map(({ type }: { type: string }) => type)
      expect(types).toEqual(['effect.claimed', ...Array(4).fill('effect.extended'), 'effect.succeeded'])
      expect(clients.platform.timers.size).toBe(0)
    })

    test('that is lost aborts the signal of the work, and its report still counts', async () => {
      const effect = newEffect()
      let wake = () => {}
      clients.platform.onSleep = (ms) =>
        ms === lease_ms / 3
          ? new Promise<void>((resolve) => {
              wake = resolve
            })
          : undefined
      const done = await clients.agent.effects.once(effect, async ({ signal }) => {
        await runOut(service)
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
        wake()
        await aborted
        return hasCode(signal.reason, 'EFFECT_NOT_HELD')
      })
      expect(done).toBe(true)
      expect((await only(effect)).status).toBe('succeeded')
    })

    test.each([
      ['a page with 404', () => new Response('<h1>No such backend</h1>', { status: 404 })],
      ['JSON with 200', () => Response.json({ ok: true })],
    ])('is not lost when something before the service answers its extension: %s', async (_, page) => {
      const effect = newEffect()
      const thirds: (() => void)[] = []
      clients.platform.onSleep = (ms) =>
        ms === lease_ms / 3 ? new Promise<void>((resolve) => thirds.push(resolve)) : undefined
      const asked: string[] = []
      const behind = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        fetch: async (url, init) => {
          const verb = url.split('/').at(-1)!
          asked.push(verb)
          return verb === 'extend' && asked.indexOf(verb) === asked.length - 1 ? page() : fetch(url, init)
        },
      })
      const aborted = await behind.effects.once(effect, async ({ signal }) => {
        service.clock.advance(lease_ms / 3)
        thirds.shift()!()
        while (thirds.length === 0 && !signal.aborted) await Bun.sleep(1)
        return signal.aborted
      })
      expect([aborted, asked]).toEqual([false, ['effects', 'extend', 'extend', 'succeed']])
    })

    test('whose answer came late is extended before the work begins', async () => {
      const effect = newEffect()
      const late = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        async fetch(url, init) {
          const answer = await fetch(url, init)
          if (url.endsWith('/v1/effects')) service.clock.advance(lease_ms / 2)
          return answer
        },
      })
      await late.effects.once(effect, () => 1)
      const types = (await eventsOf(service, tenant, (await only(effect)).id)).map(
        ({ type }: { type: string }) => type,
      )
      expect(types).toEqual(['effect.claimed', 'effect.extended', 'effect.succeeded'])
    })

    test('is not used when its extension came too late: another may have it', async () => {
      const effect = newEffect()
      let stalls = true
      let other: { fence: number } | undefined
      const late = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        async fetch(url, init) {
          const answer = await fetch(url, init)
          const text = await answer.text()
          if (url.endsWith('/v1/effects') && other === undefined) service.clock.advance(25_000)
          if (stalls && url.endsWith('/extend')) {
            stalls = false
            await runOut(service, 70)
            await clients.admin.effects.resolve((await only(effect)).id, { outcome: 'retry' })
            const held = await clients.agent.effects.claim({ type: 'refund', key: effect.key, payload })
            other = held
            void clients.agent.effects.succeed(held.id, { lease_token: held.lease_token!, result: 'other' })
          }
          return new Response(text, answer)
        },
      })
      let calls = 0
      expect(await late.effects.once<unknown>(effect, () => (calls += 1))).toBe('other')
      expect([calls, other?.fence]).toEqual([0, 2])
    })

    test('that is short for a slow service is extended at most three times, and asked for again after pauses', async () => {
      const effect = newEffect({ lease_seconds: 1 })
      const slow = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        async fetch(url, init) {
          const answer = await fetch(url, init)
          service.clock.advance(400)
          return answer
        },
      })
      clients.platform.slept = []
      let calls = 0
      const error = await failureOf(slow.effects.once(effect, () => (calls += 1)))
      expect([calls, (error as Error).name]).toEqual([0, 'WaystationTimeoutError'])
      expect((error as Error).message).toContain('ask for a longer one with lease_seconds')
      expect(clients.platform.slept).toEqual([500, 1_000, 2_000, 4_000, 8_000])
      const { id, status, fence } = await only(effect)
      expect([status, fence]).toEqual(['ready', 6])
      const types = (await eventsOf(service, tenant, id)).map(({ type }: { type: string }) => type)
      expect(types.filter((type: string) => type === 'effect.extended')).toHaveLength(18)
    })

    test('is as long as this caller asked for, whatever the claim before said', async () => {
      const effect = newEffect({ lease_seconds: 9 })
      const before = { type: 'refund', key: effect.key, payload, lease_seconds: 120 }
      const { id, lease_token } = await clients.agent.effects.claim(before)
      await clients.agent.effects.fail(id, { lease_token: lease_token!, error: 'later', retry: true })
      const thirds: (() => void)[] = []
      clients.platform.onSleep = (ms) =>
        ms === 3_000 ? new Promise<void>((resolve) => thirds.push(resolve)) : new Promise(() => {})
      await clients.agent.effects.once(effect, async () => {
        service.clock.advance(3_000)
        const until = service.clock.now() + 9_000
        thirds.shift()!()
        while (thirds.length === 0) await Bun.sleep(1)
        expect(Date.parse((await clients.admin.effects.get(id)).lease_until!)).toBe(until)
      })
      expect(clients.platform.slept).toContain(3_000)
    })

    test.each([undefined, approval])(
      'is free again when its caller stopped before the answer came, approval: %p',
      async (approval) => {
        const stop = new AbortController()
        const effect = newEffect({ signal: stop.signal, approval })
        if (approval) {
          const { checkpoint } = await clients.agent.effects.claim({
            ...{ type: 'refund', key: effect.key, payload, approval },
          })
          await clients.admin.checkpoints.approve(checkpoint!.id)
        }
        const gives = approval ? '/start' : '/v1/effects'
        const stopping = new Waystation({
          ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
          async fetch(url, init) {
            const answer = await fetch(url, { ...init, signal: null })
            if (!url.endsWith(gives) || stop.signal.aborted) return answer
            await answer.text()
            stop.abort(new Error('Ctrl-C'))
            throw new Error('the request was cut off')
          },
        })
        let calls = 0
        const error = await failureOf(stopping.effects.once(effect, () => (calls += 1)))
        expect([calls, (error as Error).message]).toEqual([0, 'Ctrl-C'])
        expect(await only(effect)).toMatchObject({ status: approval ? 'approved' : 'ready', fence: 1 })
      },
    )

    test('whose answer came too late is released: nothing was begun, and the next one is used', async () => {
      const effect = newEffect()
      let first = true
      const late = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        async fetch(url, init) {
          const answer = await fetch(url, init)
          if (first && url.endsWith('/v1/effects')) {
            first = false
            await runOut(service)
          }
          return answer
        },
      })
      expect(await late.effects.once(effect, ({ fence }) => fence)).toBe(2)
    })

    test('is not used by a caller that has stopped meanwhile, and is free again', async () => {
      const stop = new AbortController()
      const effect = newEffect({ signal: stop.signal })
      const stopping = new Waystation({
        ...{ url: service.url, key: tenant.api_key, platform: clients.platform },
        async fetch(url, init) {
          const answer = await fetch(url, { ...init, signal: null })
          const text = await answer.text()
          stop.abort(new Error('Ctrl-C'))
          return new Response(text, answer)
        },
      })
      let calls = 0
      await failureOf(stopping.effects.once(effect, () => (calls += 1)))
      expect([calls, (await only(effect)).status]).toEqual([0, 'ready'])
    })
  })

  test('with if_unknown wait it goes on once a person has said what became of it', async () => {
    const effect = newEffect({ if_unknown: 'wait' })
    const { id } = await clients.agent.effects.claim({ type: 'refund', key: effect.key, payload })
    await runOut(service)
    const from = proxy.seen.length
    const done = clients.agent.effects.once(effect, ({ fence }) => fence)
    while (proxy.seen.slice(from).filter(({ path }) => path === '/v1/wait').length < 2) await Bun.sleep(1)
    await clients.admin.effects.resolve(id, { outcome: 'retry' })
    expect(await done).toBe(2)
  })

  describe('killed before or after any of its requests', () => {
    class Killed extends Error {}

    /** An agent whose process ends at its nth request: before it is sent, or once the service has answered. */
    function mortal(dies_at: number, before: boolean) {
      const life = { requests: 0, dead: false }
      const client = new Waystation({
        ...{ url: service.url, key: tenant.api_key, retries: 0 },
        platform: new TestPlatform(() => service.clock.now()),
        async fetch(url, init) {
          life.requests += 1
          if (life.requests >= dies_at) {
            if (life.requests === dies_at && !before) await (await fetch(url, init)).text()
            life.dead = true
            throw new Killed()
          }
          return fetch(url, init)
        },
      })
      ;(client.effects as unknown as { transport: { platform: TestPlatform } }).transport.platform.onSleep = (
        ms,
      ) => (ms === lease_ms / 3 ? new Promise(() => {}) : undefined)
      return { client, life }
    }

    const deaths = [1, 2, 3, 4, 5, 6].flatMap((at) => [[at, true] as const, [at, false] as const])
    test.each(deaths)('the %ith, before: %p, it is done exactly once', async (dies_at, before) => {
      for (const asks of Array.from({ length: 2 * rounds }, (_, i) => i % 2 === 1)) {
        const target: string[] = []
        const effect = newEffect({
          retries: 0,
          ...(asks && { approval }),
        })
        const live = async (dies_at: number) => {
          const { client, life } = mortal(dies_at, before)
          const work = ({ id }: { id: string }) => {
            if (!life.dead) target.push(id)
            return 'paid'
          }
          return client.effects.once(effect, work).catch((error) => error)
        }
        const found = async () =>
          (await clients.admin.effects.list({ type: 'refund', key: effect.key }).page()).items[0]
        /** A person approves whatever is asked while the agent lives. */
        const approving = async <T>(life: Promise<T>): Promise<T> => {
          let is_over = false
          const ended = life.finally(() => {
            is_over = true
          })
          while (!is_over) {
            const { status, checkpoint_id } = (await found()) ?? {}
            if (status === 'awaiting_approval') await clients.admin.checkpoints.approve(checkpoint_id!)
            await Bun.sleep(2)
          }
          return ended
        }
        await approving(live(dies_at))
        if ((await found())?.status === 'running') await runOut(service)
        const { id, status } = (await found()) ?? {}
        // A person looks at the target.
        const outcome = target.length > 0 ? 'succeeded' : 'retry'
        if (status === 'unknown') await clients.admin.effects.resolve(id!, { outcome, result: 'paid' })
        const second = approving(live(1_000))
        expect(await second).toBe('paid')
        expect(target).toHaveLength(1)
      }
    })
  })
})
