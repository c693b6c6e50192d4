import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { messagesIn, newInbox, type TestInbox, tick } from '../../test/support/inbox.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { freePort } from '../../test/support/ports.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachService, type TestService } from '../../test/support/service.ts'
import { ssrf_urls, strictPolicy, strictSender, told_at_delivery } from '../../test/support/ssrf.ts'
import { iso } from '../base/clock.ts'
import type { Outgoing } from '../callbacks/attempt.ts'
import { refusalAtCreation } from '../callbacks/guard.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { lease_ms } from '../jobs/job.ts'
import { JobWorker } from '../jobs/worker.ts'
import { type Forwardable, forwardRequest } from './forward.ts'
import { forward_job } from './jobs.ts'
import { receive } from './receive.ts'
import { createInbox } from './routes.ts'
import * as inboxes from './service.ts'
import { sweep } from './sweep.ts'

const receivers: Receiver[] = []
afterAll(async () => {
  for (const receiver of receivers) await receiver.stop()
})

async function newReceiver(): Promise<Receiver> {
  const receiver = await startReceiver()
  receivers.push(receiver)
  return receiver
}

async function received(service: TestService, { path }: TestInbox, options: object = {}): Promise<void> {
  const answer = await service.ask('POST', path, options)
  expect([answer.status, answer.text]).toEqual([200, '{"received":true}'])
}

forEachService('Forwarding', (service) => {
  const forwarding = async (forwardUrl: string, plan: 'free' | 'pro' = 'free') => {
    const tenant = await service.signUp(plan)
    const inbox = await newInbox(service, tenant, { forwardUrl })
    return { tenant, inbox, messages: () => messagesIn(service, tenant, inbox) }
  }

  const binary = Uint8Array.from({ length: 256 }, (_, i) => i)
  const sent: [method: string, body: Uint8Array | undefined][] = [
    ['GET', undefined],
    ['POST', Buffer.from('{"n": 1.0}\n')],
    ['PUT', binary],
    ['PATCH', Buffer.alloc(1_048_576, 0xff)],
    ['DELETE', Buffer.from('x')],
  ]
  test.each(sent)('sends %s on with the same bytes and headers, at once', async (method, body) => {
    const receiver = await newReceiver()
    const { inbox, messages } = await forwarding(`${receiver.url}/here?mine=1`)
    const headers = {
      ...{ 'content-type': 'application/x-odd; a="b"', authorization: 'Basic s', 'x-latin': 'caf\u00e9' },
      ...{ 'x-hub-signature-256': 'sha256=00', 'user-agent': 'sender/1', 'x-forwarded-for': '192.0.2.7' },
      ...{ accept: 'a/b', 'accept-encoding': 'br', 'accept-language': 'eo' },
    }
    const path = `${inbox.path}/sub/path?theirs=1`
    const answer = await service.overHttp(() => service.ask(method, path, { headers, body }))
    expect(answer.text).toBe('{"received":true}')
    await receiver.received(1)
    const [request] = receiver.requests
    expect(request).toMatchObject({ method, target: '/here?mine=1' })
    expect(receiver.bodies[0]!.equals(body ?? Buffer.alloc(0))).toBe(true)
    const { connection: _, ...arrived } = request!.headers
    expect(arrived).toEqual({
      ...headers,
      ...{ host: new URL(receiver.url).host, 'x-waystation-inbox': inbox.id, 'x-waystation-hops': '1' },
      ...(body && { 'content-length': String(body.length) }),
    })
    await tick(service)
    expect((await messages())[0].forward).toEqual({
      ...{ status: 'delivered', statusCode: 204, error: null, durationMs: expect.any(Number) },
      attemptedAt: iso(service.clock.now()),
    })
  })

  const outcomes: [what: string, status: number, expected: object][] = [
    ['200', 200, { status: 'delivered', statusCode: 200, error: null }],
    ['299', 299, { status: 'delivered', statusCode: 299, error: null }],
    ['a redirect, which is not followed,', 302, { status: 'failed', statusCode: 302, error: 'status' }],
    ['410', 410, { status: 'failed', statusCode: 410, error: 'status' }],
    ['503', 503, { status: 'failed', statusCode: 503, error: 'status' }],
  ]
  test.each(outcomes)('keeps %s on the message, and tries once', async (_, status, expected) => {
    const receiver = await newReceiver()
    receiver.answer = () => ({ status, headers: { location: receiver.url } })
    const { inbox, messages } = await forwarding(receiver.url)
    await received(service, inbox)
    await tick(service)
    service.clock.advance(90_000)
    await tick(service)
    expect((await messages())[0].forward).toMatchObject(expected)
    expect(receiver.requests).toHaveLength(1)
  })

  test('to nobody is failed, once', async () => {
    const { inbox, messages } = await forwarding(`http://127.0.0.1:${freePort()}/`)
    await received(service, inbox)
    await tick(service)
    expect((await messages())[0].forward).toMatchObject({
      status: 'failed',
      statusCode: null,
      error: 'refused',
    })
  })

  test('to a receiver that does not answer keeps no sender waiting', async () => {
    const receiver = await newReceiver()
    const held = Promise.withResolvers<object>()
    receiver.answer = () => held.promise
    const { inbox, messages } = await forwarding(receiver.url)
    await received(service, inbox)
    await receiver.received(1)
    for (let n = 0; n < 20; n++) await received(service, inbox)
    const statuses = (await messages()).map(({ forward }: { forward: { status: string } }) => forward.status)
    expect(statuses).toEqual(Array.from({ length: 21 }, () => 'pending'))
    held.resolve({ status: 200 })
    await tick(service)
    for (const { forward } of await messages()) expect(forward.status).toBe('delivered')
    expect(receiver.requests).toHaveLength(21)
  })

  const hops: [sent: string | undefined, next: string | null][] = [
    [undefined, '1'],
    ['0', '1'],
    ['2', '3'],
    ['3', null],
    ['4', null],
    ['999999999', null],
    ['99999999999', null],
    ['1, 99999999999', null],
    ['1, 3', null],
    ['-3', '1'],
    ['three', '1'],
  ]
  test.each(hops)('of what came with x-waystation-hops %p has %p', async (hop, next) => {
    const receiver = await newReceiver()
    const { inbox, messages } = await forwarding(receiver.url)
    await received(service, inbox, { headers: hop === undefined ? {} : { 'x-waystation-hops': hop } })
    await tick(service)
    const arrived = receiver.requests.map(({ headers }) => headers['x-waystation-hops'])
    expect(arrived).toEqual(next === null ? [] : [next])
    const none = { statusCode: null, durationMs: null, attemptedAt: null }
    expect((await messages())[0].forward).toMatchObject(
      next === null ? { ...none, status: 'failed', error: 'loop' } : { status: 'delivered', error: null },
    )
  })

  test('in a circle of two inboxes ends at the third hop', async () => {
    const { tenant, inbox: first } = await forwarding('http://127.0.0.1:9/', 'pro')
    const second = await newInbox(service, tenant, { forwardUrl: service.url + first.path })
    await service.app.db.write((tx) =>
      tx.run(unnamedAcrossTenants('test.circle', 'update inboxes set forward_url = :url where id = :id'), {
        url: service.url + second.path,
        id: first.id,
      }),
    )
    await received(service, first, { body: 'round' })
    for (let round = 0; round < 4; round++) await tick(service)
    const shown = async (inbox: TestInbox) =>
      (await messagesIn(service, tenant, inbox)).map(
        (message: { body: string; headers: Record<string, string>; forward: object }) => ({
          hops: message.headers['x-waystation-hops'],
          body: message.body,
          forward: message.forward,
        }),
      )
    const delivered = expect.objectContaining({ status: 'delivered', statusCode: 200 })
    expect(await shown(first)).toEqual([
      { hops: undefined, body: 'round', forward: delivered },
      { hops: '2', body: 'round', forward: delivered },
    ])
    expect(await shown(second)).toEqual([
      { hops: '1', body: 'round', forward: delivered },
      { hops: '3', body: 'round', forward: expect.objectContaining({ status: 'failed', error: 'loop' }) },
    ])
  })

  test('is not needed by an agent without a URL: its schedule comes to its inbox, signed', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const scheduled = await service.ask('POST', '/v1/schedules', {
      key: tenant.api_key,
      body: {
        callback_url: service.url + inbox.path,
        callback_payload: { wake: 'up' },
        fire_at: '2020-01-01T00:00:00Z',
      },
    })
    expect(scheduled.status).toBe(201)
    await tick(service)
    const [message] = await messagesIn(service, tenant, inbox)
    expect(message).toMatchObject({ method: 'POST', body: { wake: 'up' }, contentType: 'application/json' })
    expect(message.headers).toMatchObject({
      'x-waystation-event': 'schedule.fired',
      'webhook-signature': expect.stringMatching(/^v1,/),
    })
  })

  test('waits while the tenant waits for deletion, and goes on after restore', async () => {
    const receiver = await newReceiver()
    const held = Promise.withResolvers<object>()
    receiver.answer = () => held.promise
    const { tenant, inbox, messages } = await forwarding(receiver.url)
    for (let n = 0; n < 2; n++) await received(service, inbox)
    await receiver.received(1)
    const [path, key] = [`/v1/tenants/${tenant.tenant_id}`, tenant.admin_key]
    await service.ask('DELETE', path, { key, body: { confirm: 'DELETE ALL DATA' } })
    held.resolve({})
    await tick(service)
    expect(receiver.requests).toHaveLength(1)
    expect((await service.ask('POST', `${path}/restore`, { key })).status).toBe(200)
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
    for (const { forward } of await messages()) expect(forward.status).toBe('delivered')
  })
})

forEachDatabase('A forward as work', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const request = {
    ...{ method: 'POST', headers: new Headers(), bytes: Buffer.from('x'), url: 'http://x/hook/t' },
    request_id: 'req_of_a_test',
    address: '192.0.2.1',
  }

  async function inboxOf(plan: string, forward_url = 'http://receiver.test/') {
    const caller = await bench.tenant(plan)
    const inbox = await bench.db.write((tx) =>
      inboxes.create(tx, caller, bench.dependencies, {
        ...{ label: '', forward_url, workflow_id: null, ttl_seconds: 86_400 },
      }),
    )
    return {
      caller,
      inbox,
      receive: () => receive(bench.db, bench.dependencies, inbox.token, request),
    }
  }

  async function messagesOf(caller: AgentCaller, id: string) {
    const read = await inboxes.read(bench.db, caller, bench.dependencies, bench.clock.now(), id)
    return 'messages' in read ? read.messages : []
  }

  async function forwards(caller: AgentCaller, { id }: { id: string }) {
    const messages = await messagesOf(caller, id)
    return messages.map(({ forward_status, forward_error }) => [forward_status, forward_error])
  }

  test('whose node died is interrupted, and never sent again', async () => {
    const { caller, inbox, receive } = await inboxOf('free')
    await receive()
    const [dying, living] = [bench.worker(), bench.worker()]
    await bench.dispatch(dying)
    expect(bench.network.held).toHaveLength(1)
    bench.clock.advance(lease_ms - 1)
    await bench.dispatch(living)
    expect(await forwards(caller, inbox)).toEqual([['pending', null]])
    bench.clock.advance(1)
    await bench.dispatch(living)
    expect(await forwards(caller, inbox)).toEqual([['failed', 'interrupted']])
    expect(bench.network.sent).toHaveLength(1)
    await bench.settle(204) // too late: the lease was lost
    expect(await forwards(caller, inbox)).toEqual([['failed', 'interrupted']])
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  test.each([
    ['busy', 'pending'],
    ['lost', 'pending'],
    ['damaged', 'failed'],
  ] as const)('whose message the database did not give (%s) is %s after its lease', async (kind, status) => {
    const { caller, inbox, receive } = await inboxOf('free')
    await receive()
    bench.db.onRead = (name) => {
      if (name === 'inbox.forwardable') throw new DbError(kind, 'not now')
    }
    const worker = bench.worker()
    await bench.dispatch(worker)
    bench.db.onRead = () => {}
    bench.clock.advance(lease_ms)
    await worker.dispatchNew()
    await bench.db.quiet()
    const is_pending = status === 'pending'
    expect(bench.network.held).toHaveLength(is_pending ? 1 : 0)
    expect(await forwards(caller, inbox)).toEqual([[status, is_pending ? null : 'interrupted']])
    await bench.drain()
    expect(await forwards(caller, inbox)).toEqual(
      is_pending ? [['delivered', null]] : [['failed', 'interrupted']],
    )
  })

  test('that was interrupted tells when it was tried, not when that was found', async () => {
    const { caller, inbox, receive } = await inboxOf('free')
    bench.clock.advance(7)
    const tried_at = bench.clock.now()
    await receive()
    await bench.dispatch(bench.worker())
    bench.clock.advance(3_600_000)
    await bench.dispatch(bench.worker())
    const messages = await messagesOf(caller, inbox.id)
    const shown = messages.map(({ forward_error, forward_attempted_at }) => ({
      forward_error,
      forward_attempted_at,
    }))
    expect(shown).toEqual([{ forward_error: 'interrupted', forward_attempted_at: tried_at }])
  })

  test('is wanted at once where schedules wait for a tick, and only the first time', async () => {
    const { caller, inbox, receive } = await inboxOf('free')
    await receive()
    const [dying, living] = [bench.worker({ internal: false }), bench.worker({ internal: false })]
    await bench.dispatch(dying)
    expect(bench.network.held).toHaveLength(1)
    bench.clock.advance(lease_ms)
    await bench.dispatch(living)
    expect(await forwards(caller, inbox)).toEqual([['pending', null]])
    await living.tick(1_000)
    expect(await forwards(caller, inbox)).toEqual([['failed', 'interrupted']])
  })

  test('goes with its message: work that waits is never more than messages that are kept', async () => {
    const { caller, inbox, receive } = await inboxOf('free')
    for (let n = 0; n < 100; n++) await receive()
    expect(await bench.jobs(caller.tenant_id)).toHaveLength(100)
    for (let n = 0; n < 5; n++) await receive()
    const waiting = (await bench.jobs(caller.tenant_id)).map(({ source_id }) =>
      Number(source_id.split('/')[1]),
    )
    expect(waiting.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i + 6))
    const worker = bench.worker()
    await bench.dispatch(worker)
    await bench.drain()
    expect(new Set((await forwards(caller, inbox)).flat())).toEqual(new Set(['delivered', null]))
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  const gone: [what: string, remove: (made: Awaited<ReturnType<typeof inboxOf>>) => Promise<unknown>][] = [
    [
      'was dropped',
      async ({ receive }) => {
        for (let n = 0; n < 100; n++) await receive()
      },
    ],
    [
      'was deleted with its inbox',
      ({ caller, inbox }) => inboxes.remove(bench.db, caller, bench.dependencies, inbox.id),
    ],
    [
      'was swept',
      async () => {
        bench.clock.advance(3 * 86_400_000)
        await sweep(bench.db, bench.clock.now())
      },
    ],
  ]
  test.each(gone)('whose message %s meanwhile ends, and leaves nothing', async (_, remove) => {
    const made = await inboxOf('free')
    await made.receive()
    const worker = bench.worker()
    await bench.dispatch(worker)
    expect(bench.network.held).toHaveLength(1)
    await remove(made)
    await bench.drain()
    await bench.dispatch(worker)
    await bench.drain()
    expect(await bench.jobs(made.caller.tenant_id)).toEqual([])
    expect(bench.errors).toEqual([])
  })

  test('of a message that is gone sends nothing', async () => {
    const { caller, inbox, receive } = await inboxOf('free')
    await receive()
    await inboxes.remove(bench.db, caller, bench.dependencies, inbox.id)
    await bench.dispatch(bench.worker())
    expect(bench.network.sent).toEqual([])
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  describe('to the published SSRF cases', () => {
    const dependencies = {
      urls: {
        callbackRefusal: (tenant_id: string, url: string) =>
          refusalAtCreation(strictPolicy(), tenant_id, url),
      },
    }
    test.each(ssrf_urls)('at creation: $name', async ({ name, url, allowed }) => {
      const input = { body: { forwardUrl: url } } as never
      const prepared = (async () =>
        createInbox.prepare!({ dependencies, caller: { tenant_id: 'ten_1' } } as never, input))()
      if (allowed || told_at_delivery.test(name)) expect(await prepared).toBeUndefined()
      else {
        await expect(prepared).rejects.toMatchObject({
          code: 'VALIDATION_FAILED',
          details: { issues: [{ path: '/forwardUrl', message: expect.stringMatching(/^(must|is not) /) }] },
        })
      }
    })

    const parsed = ssrf_urls.filter(({ url }) => URL.canParse(url))
    test('without those that do not parse as a URL', () => {
      expect([ssrf_urls.length, parsed.length]).toEqual([140, 129])
    })

    test.each(parsed)('at connect: $name', async ({ name, url, allowed }) => {
      const receiver = await newReceiver()
      receiver.answer = ({ target }) => ({ status: Number(/^\/redir\/(\d+)\?to=/.exec(target)?.[1] ?? 200) })
      const { sender, peers } = strictSender(receiver.port)
      const { db, clock, dependencies } = bench
      const worker = new JobWorker({
        ...{ db, clock, dependencies, internal: true, kinds: [forward_job] },
        onStragglers: async () => {},
        onError: (error) => bench.errors.push(error),
        send: ({ tenant_id }, request) => sender.send(tenant_id, request as Outgoing),
      })
      const { caller, inbox, receive } = await inboxOf('free', url)
      await receive()
      await worker.dispatch()
      await worker.stop()
      sender.close()
      const redirected = name.startsWith('redirect-')
      const error = /^dns-(nxdomain|empty)$/.test(name) ? 'dns' : redirected ? 'status' : 'blocked'
      expect(await forwards(caller, inbox)).toEqual([allowed ? ['delivered', null] : ['failed', error]])
      expect(peers).toHaveLength(allowed || redirected ? 1 : 0)
    })
  })
})

describe('The request that is sent on', () => {
  const row = (headers: object): Forwardable => ({
    ...{ method: 'POST', encoding: 'text', body: 'b', headers: JSON.stringify(headers) },
    ...{ forward_url: 'http://receiver.test/', workflow_id: null, frozen_at: null },
  })

  test('has nothing that belongs to the connection of the sender, nor what that names', () => {
    const dropped = {
      ...{ host: 'a', 'content-length': '1', expect: '100-continue', connection: 'close, X-Mine , te' },
      ...{ 'keep-alive': 'x', te: 'trailers', trailer: 'x', 'transfer-encoding': 'chunked', upgrade: 'h2c' },
      ...{
        'proxy-connection': 'x',
        'proxy-authenticate': 'x',
        'x-mine': 'x',
        'x-waystation-inbox': 'inb_other',
      },
    }
    const kept = { 'x-yours': '1', cookie: 'a=1', 'content-encoding': 'gzip', date: 'x', via: '1.1 x' }
    expect(forwardRequest('inb_1', row({ ...dropped, ...kept, 'x-waystation-hops': '1' })).headers).toEqual({
      ...kept,
      ...{ 'x-waystation-inbox': 'inb_1', 'x-waystation-hops': '2' },
    })
  })

  test('takes __proto__ for a name as any other', () => {
    const headers = JSON.parse('{"__proto__": "x"}')
    expect(Object.entries(forwardRequest('inb_1', row(headers)).headers)[0]).toEqual(['__proto__', 'x'])
  })
})
