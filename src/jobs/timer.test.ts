import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, rowsOf, type TestNode } from '../../test/support/job-bench.ts'
import { approve, checkpoint, hook, manySchedules, schedule } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { type Received, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService, TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso, minute_ms, second_ms } from '../base/clock.ts'
import { openDb } from '../db/open.ts'
import * as receiving from '../inbox/receive.ts'
import * as inboxes from '../inbox/service.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'

const cron_secret = 'the cron secret of the tests'

const nothing_done = {
  schedules: { due: 0, fired: 0, retrying: 0, failed: 0 },
  checkpoints: { rejected: 0, expired: 0, callbacks: 0 },
  dlq: { locks_released: 0 },
  effects: { ran_out: 0 },
  expired: { kv_keys: 0, inboxes: 0, idempotency_keys: 0 },
  tenants_purged: 0,
  duration_ms: expect.any(Number),
}

const pathOf = ({ target }: Received) => target

function later(service: TestService, ms: number): string {
  return iso(service.clock.now() + ms)
}

async function created(service: TestService, path: string, { api_key }: TestTenant, body: object) {
  const answer = await service.ask('POST', path, { key: api_key, body })
  expect(answer.status).toBe(201)
  return answer.body
}

forEachRacedService(
  'POST /v1/tick',
  (service) => {
    let receiver: Receiver
    let tenant: TestTenant
    beforeAll(async () => {
      receiver = await startReceiver()
      tenant = await service.signUp('pro')
    })
    afterEach(() => {
      receiver.answer = () => ({})
      receiver.requests.length = 0
    })
    afterAll(() => receiver.stop())

    const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

    const newSchedule = (over: object = {}) =>
      created(service, '/v1/schedules', tenant, {
        callback_url: `${receiver.url}/schedule`,
        callback_payload: { n: 1 },
        fire_at: later(service, 0),
        ...over,
      })

    const newCheckpoint = (over: object = {}) =>
      created(service, '/v1/checkpoints', tenant, {
        title: 'May I?',
        callback_url: `${receiver.url}/decided`,
        ...over,
      })

    const approveIt = (id: string) =>
      service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })

    const read = async (path: string) => (await service.ask('GET', path, { key: tenant.api_key })).body

    describe('without the cron secret', () => {
      const refused: [what: string, headers: () => Record<string, string>][] = [
        ['no credential', () => ({})],
        ['another secret', () => ({ authorization: 'Bearer another secret, just as long' })],
        ['a part of the secret', () => ({ authorization: `Bearer ${cron_secret.slice(0, -1)}` })],
        ['more than the secret', () => ({ authorization: `Bearer ${cron_secret}x` })],
        ['an empty one', () => ({ authorization: 'Bearer ' })],
        ['another scheme', () => ({ authorization: `Basic ${cron_secret}` })],
        ['an admin key', () => ({ authorization: `Bearer ${tenant.admin_key}` })],
        ['an agent key', () => ({ authorization: `Bearer ${tenant.api_key}` })],
        ['an admin key in its own header', () => ({ 'x-admin-key': tenant.admin_key })],
        ['the secret in the header of another key', () => ({ 'x-admin-key': cron_secret })],
      ]
      test.each(refused)('answers 401: %s', async (_, headers) => {
        const answer = await service.ask('POST', '/v1/tick', { headers: headers() })
        expect(answer.status).toBe(401)
        expect(answer.body).toEqual({
          error: {
            code: 'UNAUTHORIZED',
            message: 'A valid key is required.',
            request_id: answer.headers.get('x-request-id'),
          },
        })
      })

      test('does nothing', async () => {
        const { id } = await newSchedule()
        await service.ask('POST', '/v1/tick', { key: tenant.admin_key })
        expect(receiver.requests).toEqual([])
        await tick()
        expect(await read(`/v1/schedules/${id}`)).toMatchObject({ status: 'fired' })
      })
    })

    test('looks at no other credential beside the secret', async () => {
      const headers = {
        authorization: `Bearer ${cron_secret}`,
        'x-admin-key': 'svc_adm_wrong',
        'x-api-key': '',
      }
      expect((await service.ask('POST', '/v1/tick', { headers })).status).toBe(200)
    })

    const elsewhere: [method: string, path: string][] = [
      ['GET', '/v1/schedules'],
      ['POST', '/v1/schedules'],
      ['GET', '/v1/agents'],
      ['POST', '/v1/checkpoints/chk_any/approve'],
      ['GET', '/v1/tenants/ten_any'],
      ['GET', '/v1/kv/state/key'],
    ]
    test.each(elsewhere)('is all that the secret opens: %s %s answers 401', async (method, path) => {
      const answer = await service.ask(method, path, { key: cron_secret })
      expect([answer.status, answer.body.error.code]).toEqual([401, 'UNAUTHORIZED'])
    })

    test('answers what was settled since the answer before, and nothing twice', async () => {
      expect((await tick()).status).toBe(200)
      expect((await tick()).body).toEqual(nothing_done)

      receiver.answer = ({ target }) => ({ status: { '/bad': 500, '/gone': 410 }[target] ?? 204 })
      await newSchedule()
      await newSchedule()
      const bad = await newSchedule({ callback_url: `${receiver.url}/bad` })
      await newSchedule({ callback_url: `${receiver.url}/gone` })
      await newSchedule({ fire_at: later(service, day_ms) })
      await newCheckpoint({ expires_at: later(service, 0) })
      await newCheckpoint({ expires_at: later(service, 0), timeout_action: 'dlq' })
      await newCheckpoint()
      const first = await tick()
      expect(first.body).toEqual({
        ...nothing_done,
        schedules: { due: 4, fired: 2, retrying: 1, failed: 1 },
        checkpoints: { rejected: 1, expired: 1, callbacks: 1 },
      })
      expect(Object.keys(first.body)).toEqual(Object.keys(nothing_done))
      expect(Number.isInteger(first.body.duration_ms)).toBe(true)
      expect((await tick()).body).toEqual(nothing_done)

      service.clock.advance(30 * second_ms)
      expect((await tick()).body.schedules).toEqual({ due: 1, fired: 0, retrying: 1, failed: 0 })
      service.clock.advance(60 * second_ms)
      expect((await tick()).body.schedules).toEqual({ due: 1, fired: 0, retrying: 0, failed: 1 })
      expect(await read(`/v1/schedules/${bad.id}`)).toMatchObject({ status: 'failed', attempts: 3 })
      expect((await tick()).body).toEqual(nothing_done)
    })

    test('counts the locks that ran out, the keys that expired and the Idempotency-Keys that are past', async () => {
      const dead = await created(service, '/v1/dlq', tenant, { payload: 1, error: 'x' })
      const body = { lock_seconds: 60 }
      await service.ask('POST', `/v1/dlq/${dead.id}/claim`, { key: tenant.api_key, body })
      await service.ask('PUT', '/v1/kv/state/short', {
        key: tenant.api_key,
        body: { value: 1, ttl_seconds: 60 },
      })
      await service.ask('POST', '/v1/audit', {
        ...{ key: tenant.api_key, headers: { 'idempotency-key': crypto.randomUUID() } },
        body: { action: 'x' },
      })
      await tick()
      service.clock.advance(minute_ms)
      expect((await tick()).body).toEqual({
        ...nothing_done,
        dlq: { locks_released: 1 },
        expired: { ...nothing_done.expired, kv_keys: 1 },
      })
      service.clock.advance(day_ms)
      expect((await tick()).body.expired.idempotency_keys).toBe(1)
    })

    test('answers once everything that was due at its arrival has ended its attempt', async () => {
      let release = () => {}
      const released = new Promise<void>((resolve) => {
        release = resolve
      })
      receiver.answer = async () => {
        await released
        return {}
      }
      const { id } = await newSchedule()
      let answered = false
      const ticking = tick().then((answer) => {
        answered = true
        return answer
      })
      await receiver.received(1)
      for (let i = 0; i < 20; i++) await read(`/v1/schedules/${id}`)
      expect(answered).toBe(false)
      release()
      expect((await ticking).body.schedules).toEqual({ due: 1, fired: 1, retrying: 0, failed: 0 })
      expect(await read(`/v1/schedules/${id}`)).toMatchObject({ status: 'fired' })
    })

    test('may be called any number of times at once: nothing is fired twice, each thing is counted once', async () => {
      for (let i = 0; i < 40; i++) await newSchedule({ callback_url: `${receiver.url}/${i}` })
      const answers = await Promise.all(Array.from({ length: 20 }, tick))
      expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
      expect(receiver.requests.map(pathOf).toSorted()).toEqual(
        Array.from({ length: 40 }, (_, i) => `/${i}`).toSorted(),
      )
      expect(answers.reduce((sum, { body }) => sum + body.schedules.fired, 0)).toBe(40)
    })

    describe('with TICK=external', () => {
      test('is what schedules and timeouts wait for, those too that are due when they are made', async () => {
        const due = await newSchedule()
        const timed = await newCheckpoint({ expires_at: later(service, 0) })
        for (let i = 0; i < 20; i++) await read('/v1/schedules')
        expect(receiver.requests).toEqual([])
        expect(await read(`/v1/schedules/${due.id}`)).toMatchObject({ status: 'pending', attempts: 0 })
        expect(await read(`/v1/checkpoints/${timed.id}`)).toMatchObject({ status: 'pending' })
        await tick()
        expect(await read(`/v1/schedules/${due.id}`)).toMatchObject({ status: 'fired' })
        expect(await read(`/v1/checkpoints/${timed.id}`)).toMatchObject({ status: 'rejected' })
      })

      test("is not what a decision's callback waits for, but what its retries wait for", async () => {
        receiver.answer = () => ({ status: 500 })
        const { id } = await newCheckpoint()
        await approveIt(id)
        await receiver.received(1)
        while ((await read(`/v1/checkpoints/${id}`)).callback.attempts === 0);
        service.clock.advance(30 * second_ms)
        const other = await newCheckpoint()
        receiver.answer = () => ({})
        await approveIt(other.id)
        while ((await read(`/v1/checkpoints/${other.id}`)).callback.status === 'pending');
        expect(receiver.requests).toHaveLength(2)
        expect((await tick()).body.checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 2 })
        expect(receiver.requests).toHaveLength(3)
      })
    })
  },
  { CRON_SECRET: cron_secret },
)

forEachRacedService(
  'TICK=internal',
  (service) => {
    let receiver: Receiver
    let tenant: TestTenant
    beforeAll(async () => {
      receiver = await startReceiver()
      tenant = await service.signUp('pro')
    })
    afterEach(() => {
      receiver.requests.length = 0
    })
    afterAll(() => receiver.stop())

    const read = async (path: string) => (await service.ask('GET', path, { key: tenant.api_key })).body
    const newSchedule = (path: string, fire_at: string) =>
      created(service, '/v1/schedules', tenant, {
        ...{ callback_url: receiver.url + path, callback_payload: 1, fire_at },
      })

    test('fires at the due time, and not before, without any tick', async () => {
      const { id } = await newSchedule('/later', later(service, minute_ms))
      service.clock.advance(minute_ms - 1)
      // The search that fires the second schedule would have found the first as well.
      await newSchedule('/now', later(service, 0))
      await receiver.received(1)
      expect(receiver.requests.map(pathOf)).toEqual(['/now'])
      expect(await read(`/v1/schedules/${id}`)).toMatchObject({ status: 'pending', attempts: 0 })
      service.clock.advance(1)
      await receiver.received(2)
      expect(receiver.requests.map(pathOf)).toEqual(['/now', '/later'])
      while ((await read(`/v1/schedules/${id}`)).status === 'pending');
      expect(await read(`/v1/schedules/${id}`)).toMatchObject({ status: 'fired', attempts: 1 })
    })

    test('settles a timeout and sends its callback', async () => {
      const { id } = await created(service, '/v1/checkpoints', tenant, {
        ...{ title: 'May I?', callback_url: `${receiver.url}/decided`, timeout_seconds: 60 },
      })
      service.clock.advance(minute_ms)
      await receiver.received(1)
      expect(JSON.parse(receiver.requests[0]!.body).data).toMatchObject({
        ...{ checkpoint_id: id, status: 'rejected', resolved_by: 'timeout' },
      })
    })

    test('leaves POST /v1/tick as it is', async () => {
      await newSchedule('/both', later(service, 0))
      expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
      expect(receiver.requests.map(pathOf)).toEqual(['/both'])
    })
  },
  { TICK: 'internal', CRON_SECRET: cron_secret },
)

forEachDatabase('a node that is asked to stop', (databases) => {
  test('ends its attempts, writes what came of them, and leaves no lease and no event without a number behind', async () => {
    const receiver = await startReceiver()
    const url = await databases.newUrl()
    const service = await new TestService({ TICK: 'internal' }).start(url)
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    receiver.answer = async () => {
      await released
      return {}
    }
    const tenant = await service.signUp()
    const first = { callback_url: `${receiver.url}/first`, callback_payload: 1, fire_at: later(service, 0) }
    await created(service, '/v1/schedules', tenant, first)
    await receiver.received(1)
    await created(service, '/v1/schedules', tenant, { ...first, callback_url: `${receiver.url}/second` })
    const stopping = service.stop()
    await Bun.sleep(50) // what stops without waiting for the attempt has stopped
    release()
    await stopping
    await receiver.stop()

    const db = await openDb(url, { clock: service.clock, exclusive: true, onFatal: () => {} })
    const fired = await rowsOf<{ callback_url: string }>(
      db,
      `select callback_url from schedules where status = 'fired' order by callback_url`,
    )
    const leased = await rowsOf(db, 'select source_id from jobs where lease_until > 0')
    const unnumbered = await rowsOf(db, 'select type from events where seq is null')
    await db.close()
    expect(leased).toEqual([])
    expect(unnumbered).toEqual([])
    const called = receiver.requests.map(({ target }) => receiver.url + target)
    expect(fired.map(({ callback_url }) => callback_url)).toEqual(called.toSorted())
    expect(called[0]).toBe(`${receiver.url}/first`)
  })
})

forEachDatabase('a tick', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  test('waits for what another node has leased, and calls nobody a second time', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    await bench.dispatch(bench.worker())
    let answered = false
    const ticking = bench
      .worker()
      .tick(60_000)
      .then(() => {
        answered = true
      })
    await bench.db.quiet()
    expect(answered).toBe(false)
    await bench.settle(204)
    await ticking
    expect(bench.network.sent).toHaveLength(1)
    expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
  })

  test('waits no longer than it may, though a receiver does not answer', async () => {
    await schedule(bench, await bench.tenant())
    await bench.worker().tick(0)
    await bench.db.quiet()
    expect(bench.network.held).toHaveLength(1)
  })

  test('waits no longer than it may, though there is always more to start', async () => {
    const count = 900
    await manySchedules(bench, await bench.tenant(), count, (i) => ({
      callback_url: `http://h-${i % 30}.test/`,
    }))
    // A tick that waited for all of it would not end: what comes late is not answered before it has.
    let ended = false
    bench.network.answer = () => (ended || bench.network.sent.length <= count / 2 ? 204 : null)
    await bench.worker().tick(0)
    ended = true
    await becomes(async () => {
      await bench.drain()
      return bench.network.sent.length
    }, count)
  })

  test('does not wait for what fell due after it came, nor for a retry to come', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    bench.network.answer = () => 503
    await bench.worker().tick(60_000)
    expect(bench.network.sent).toHaveLength(1)
    expect(await bench.jobs(caller.tenant_id)).toHaveLength(1)
  })

  describe('that comes from outside only (TICK=external)', () => {
    const decided = (count: number) => Array(count).fill(`${hook}/decided`)

    /** Approves one more; whether its callback is on its way. */
    async function decide(caller: Parameters<typeof approve>[1]): Promise<void> {
      const { id } = await checkpoint(bench, caller)
      await approve(bench, caller, id)
    }

    test('leaves the first attempt of a callback alone, also right after another look', async () => {
      const caller = await bench.tenant()
      await schedule(bench, caller)
      bench.network.answer = () => 204
      const worker = bench.worker({ internal: false })
      for (let i = 1; i <= 3; i++) {
        await decide(caller)
        await bench.dispatch(worker)
        expect(bench.network.sent.map(({ url }) => url)).toEqual(decided(i))
      }
    })

    const backlogs: [what: string, count: number, url: string][] = [
      ['some for the same receiver', 20, `${hook}/path`],
      ['1,050 for the same receiver', 1_050, `${hook}/path`],
      ['1,050 for another receiver', 1_050, 'http://other.test/'],
    ]
    test.each(backlogs)('keeps no callback behind schedules that wait for it: %s', async (_, count, url) => {
      const caller = await bench.tenant()
      await manySchedules(bench, caller, count, () => ({ callback_url: url }))
      bench.clock.advance(minute_ms)
      await decide(caller)
      await bench.dispatch(bench.worker({ internal: false }))
      expect(bench.network.sent.map((request) => request.url)).toEqual(decided(1))
    })

    test("keeps no other tenant's forward or callback behind 1,100 forwards to a dead receiver", async () => {
      const forwarding = async (url: string, count: number) => {
        const caller = await bench.tenant()
        const settings = { label: '', forward_url: url, workflow_id: null, ttl_seconds: 86_400 }
        const { token } = await bench.db.write((tx) =>
          inboxes.create(tx, caller, bench.dependencies, settings),
        )
        const bytes = Buffer.from('x')
        const request = {
          request_id: 'req_of_a_test',
          method: 'POST',
          headers: new Headers(),
          bytes,
          url: '/hook/t',
          address: '',
        }
        const receive = () => receiving.receive(bench.db, bench.dependencies, token, request)
        for (let n = 0; n < count; n += 50) await Promise.all(Array.from({ length: 50 }, receive))
        return receive
      }
      await forwarding('http://dead.test/', 1_100)
      const worker = bench.worker({ internal: false })
      await worker.dispatchNew()
      await bench.db.quiet()
      expect(bench.network.sent.map(({ url }) => url)).toEqual(['http://dead.test/'])
      bench.clock.advance(1)
      const receive = await forwarding('http://alive.test/', 0)
      await receive()
      await decide(await bench.tenant())
      await worker.dispatchNew()
      await bench.db.quiet()
      const started = bench.network.sent.slice(1).map(({ url }) => url)
      expect(started.toSorted()).toEqual(['http://alive.test/', ...decided(1)])
    })

    test('leaves everything else waiting, before and after it', async () => {
      const caller = await bench.tenant()
      await manySchedules(bench, caller, 3)
      const worker = bench.worker({ internal: false })
      await bench.dispatch(worker)
      expect(bench.network.sent).toEqual([])
      bench.network.answer = () => 204
      await worker.tick(60_000)
      expect(bench.network.sent).toHaveLength(3)
      await schedule(bench, caller)
      bench.clock.advance(1_000)
      await bench.dispatch(worker)
      expect(bench.network.sent).toHaveLength(3)
    })
  })

  describe('sweeps', () => {
    const rows_a_step_max = 500

    /** Idempotency-Keys that are past, each by a time of its own: a step takes all of the same time on Citus. */
    const fill = (count: number) =>
      bench.write(
        `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
         insert into idempotency_keys (tenant_id, key_hash, fingerprint, expires_at)
         select '', 'hash ' || n, '', n from numbers`,
        { count },
      )
    const left = async () => (await bench.rows('select key_hash from idempotency_keys')).length
    afterEach(() => bench.write('delete from idempotency_keys'))

    const tick = () =>
      bench.node({ internal: false }).tick() as Promise<{
        expired: { idempotency_keys: number }
        schedules: { fired: number }
      }>

    test('while it waits for an attempt, as far as there is anything, and counts it all', async () => {
      const count = 2 * rows_a_step_max + 200
      await fill(count)
      await schedule(bench, await bench.tenant())
      const ticking = tick()
      await until(async () => (await left()) === 0 && bench.network.held.length > 0)
      await bench.settle(204)
      const { expired, schedules: settled } = await ticking
      expect([expired.idempotency_keys, settled.fired]).toEqual([count, 1])
    })

    const shares: [step_ms: number, steps: number][] = [
      [1_250, 4],
      [1_249, 5],
      [5_000, 1],
      [4_999, 2],
      [60_000, 1],
    ]
    test.each(shares)(
      'for 5 s, and one step at least: of %d ms each, %d are begun',
      async (step_ms, steps) => {
        await fill(8 * rows_a_step_max)
        bench.db.onRead = (name) => {
          if (name === 'kv.tenants_expired') bench.clock.advance(step_ms)
        }
        expect((await tick()).expired.idempotency_keys).toBe(steps * rows_a_step_max)
        expect(await left()).toBe((8 - steps) * rows_a_step_max)
      },
    )

    test('and fails when the sweep does', async () => {
      bench.db.failing.add('idempotency.sweep')
      await expect(tick()).rejects.toThrow('idempotency.sweep fails')
    })
  })

  test('spends 5 s on jobs that are to be paused, and then does what is due; the others are paused beside it', async () => {
    const [deleted, other] = [await bench.tenant(), await bench.tenant()]
    await bench.write(
      `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 40000)
       insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts,
                           first_attempt_at, paused)
       select :tenant_id, 'schedule', 'sch_' || n, '', 'http://x.test', :next_at, 0, 0, 0, null, 0 from numbers`,
      { tenant_id: deleted.tenant_id, next_at: bench.clock.now() + day_ms },
    )
    await manySchedules(bench, other, 20, (i) => ({ callback_url: `http://h-${i}.test/` }))
    await tenants.remove(bench.db, bench.dependencies, { ...deleted, kind: 'admin' }, deleted.tenant_id)
    bench.network.answer = () => 204
    const began = bench.clock.monotonic()
    let looked_after: number | null = null
    bench.db.onRead = (name) => {
      if (name === 'jobs.due') looked_after ??= bench.clock.monotonic() - began
      if (name === 'tenants.pause_pending' && looked_after === null) bench.clock.advance(2_500)
    }
    const node = bench.node({ internal: false })
    const { schedules: settled } = (await node.tick()) as { schedules: { fired: number } }
    // Two steps that it waits for; the first of those that go on beside it may come before the look.
    expect<(number | null)[]>([5_000, 7_500]).toContain(looked_after as number | null)
    expect(settled.fired).toBe(20)
    const active = () =>
      bench.rows('select source_id from jobs where tenant_id = :tenant_id and paused = 0 limit 1', {
        tenant_id: deleted.tenant_id,
      })
    await becomes(active, [])
    await node.stop()
    expect(bench.errors).toEqual([])
  })

  describe('by itself (TICK=internal)', () => {
    const nodes: TestNode[] = []
    afterEach(async () => {
      for (const node of nodes.splice(0)) await node.stop()
    })

    function newNode(internal: boolean): TestNode {
      const node = bench.node({ internal })
      nodes.push(node)
      node.start()
      return node
    }

    test('goes on after a failure of the database', async () => {
      let fail = true
      bench.db.onRead = (name) => {
        if (name === 'jobs.due' && fail) throw new Error('the database is away')
      }
      const node = newNode(true)
      await until(() => bench.errors.length > 0)
      fail = false
      await schedule(bench, await bench.tenant())
      node.timer.wake(bench.clock.now())
      await until(() => bench.network.held.length > 0)
      expect(bench.errors.map(String)).toContain('Error: the database is away')
    })

    test('does nothing any more once it has stopped', async () => {
      const node = newNode(true)
      await node.stop()
      await schedule(bench, await bench.tenant())
      node.timer.wake(bench.clock.now())
      await bench.db.quiet()
      expect(bench.network.sent).toEqual([])
    })

    test('is woken for any time, the year 9999 included, also while it looks', async () => {
      const warnings: string[] = []
      const heard = (warning: Error) => warnings.push(warning.name)
      process.on('warning', heard)
      let looks = 0
      bench.db.onRead = (name) => {
        if (name !== 'jobs.due') return
        looks += 1
        node.timer.wake(Date.UTC(9999, 0, 1))
      }
      const node = newNode(true)
      await until(() => looks > 0)
      await bench.db.quiet()
      process.off('warning', heard)
      expect(warnings).toEqual([])
    })
  })
})
