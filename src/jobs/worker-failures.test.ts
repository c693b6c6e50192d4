import { afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, known_kinds } from '../../test/support/job-bench.ts'
import { approve, checkpoint, manySchedules, schedule } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { limits } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { DbError } from '../db/errors.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'
import { ConcurrencyLimiter, node_max } from './concurrency.ts'
import { anyDue } from './due-store.ts'
import { lease_ms, stale_lease_ms } from './job.ts'

forEachDatabase('a database that fails', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const now = () => bench.clock.now()
  const read = ({ tenant_id }: AgentCaller, id: string) => schedules.read(bench.db, tenant_id, id)

  /** Stops an engine that goes round in circles: the test then says so. */
  function boundLooks(looks_max: number): { looks: () => number } {
    let looks = 0
    bench.db.onRead = (name) => {
      if (name !== 'jobs.due') return
      looks += 1
      if (looks > looks_max) throw new Error('it goes round in circles')
    }
    return { looks: () => looks }
  }

  test('under a read is reported, and ends nothing: the next dispatch goes on', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    await bench.dispatch(worker)
    bench.db.onRead = (name) => {
      if (name === 'jobs.due') throw new Error('the database is away')
    }
    await bench.dispatch(worker)
    await bench.settle(204)
    expect(await read(caller, id)).toMatchObject({ status: 'fired' })
    expect(bench.errors.map(String)).toContain('Error: the database is away')
    bench.db.onRead = () => {}
    await schedule(bench, caller)
    await bench.dispatch(worker)
    expect(bench.network.held).toHaveLength(1)
  })

  test('under every lease, as when the disk is full, is not asked again and again', async () => {
    const caller = await bench.tenant()
    await manySchedules(bench, caller, 3)
    bench.db.failing.add('jobs.lease')
    const { looks } = boundLooks(20)
    await bench.worker().dispatch()
    expect(looks()).toBeLessThan(20)
    expect(bench.errors.length).toBeGreaterThan(0)
    expect(bench.errors.length).toBeLessThan(20)
  })

  test('under every result keeps the rest from being sent: twice the permits of a node at most', async () => {
    const count = 2_000
    await manySchedules(bench, await bench.tenant(), count, (i) => ({
      callback_url: `http://many-${i % 500}.test/`,
    }))
    bench.network.answer = () => 204
    bench.db.failing.add('jobs.complete')
    const worker = bench.worker()
    await bench.dispatch(worker)
    expect(bench.network.sent.length).toBeGreaterThanOrEqual(node_max)
    expect(bench.network.sent.length).toBeLessThanOrEqual(2 * node_max)
    bench.db.failing.clear()
    const left = (where: string) => bench.rows(`select source_id from jobs where ${where} limit 1`)
    while ((await left('next_at > 0')).length > 0) {
      await becomes(() => left('lease_until > 0'), [])
      bench.clock.advance(100)
      await bench.dispatch(worker)
    }
    expect(new Set(bench.network.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(count)
    expect(bench.network.sent).toHaveLength(count)
  })

  test('under a result is asked again after delays that double up to two seconds, and then has it', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    bench.db.failing.add('jobs.complete')
    const delays = [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]
    const waited: number[] = []
    const later = setTimeout
    const set = spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) => {
      if (!delays.includes(ms)) return later(run, ms)
      waited.push(ms)
      if (waited.length === delays.length) bench.db.failing.clear()
      return later(run, 0)
    }) as typeof setTimeout)
    try {
      await bench.dispatch(bench.worker())
      await bench.settle(204)
      await until(async () => (await read(caller, id)).status === 'fired')
      expect(waited).toEqual(delays)
      expect(bench.network.sent).toHaveLength(1)
    } finally {
      set.mockRestore()
    }
  })

  test('under the read of what is to be sent makes no attempt of it, even of the last one', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    for (const verdict of [503, 503] as const) {
      await bench.dispatch(worker)
      await bench.settle(verdict)
      bench.clock.advance(60_000)
    }
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable') throw new DbError('busy', 'too many ask')
    }
    for (let refused = 0; refused < 3; refused += 1) {
      await worker.dispatchNew()
      await bench.db.quiet()
      const [job] = await bench.jobs(caller.tenant_id)
      expect([job!.attempts, job!.lease_until, job!.next_at]).toEqual([2, 0, now() + 500])
      bench.clock.advance(60_000)
    }
    const sent = () => bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])
    expect(sent()).toEqual(['1', '2'])
    expect(bench.errors.map(String)).toContain('DbError: too many ask')
    bench.db.onRead = () => {}
    await worker.dispatchNew()
    await bench.db.quiet()
    await bench.settle(204)
    expect(sent()).toEqual(['1', '2', '3'])
    expect(await read(caller, id)).toMatchObject({ status: 'fired' })
  })

  test.each([
    ['under a statement that is wrong', () => new Error('no such column')],
    ['whose file is damaged', () => new DbError('damaged', 'no such page')],
  ])('%s makes an attempt of what it does not give, so that it ends', async (_, failure) => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable') throw failure()
    }
    const worker = bench.worker()
    for (let lease = 0; lease < 4; lease += 1) {
      await worker.dispatchNew()
      await bench.db.quiet()
      bench.clock.advance(120_000)
    }
    expect(bench.network.sent).toEqual([])
    expect(await read(caller, id)).toMatchObject({ status: 'failed', last_error: 'interrupted' })
  })

  const unread_ms_max = limits.get('jobs.unread')!.value

  test('under one read for longer than it is away makes attempts of it, so that it ends', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable') throw new DbError('busy', 'it takes too long')
    }
    const worker = bench.worker()
    const look = async () => {
      await worker.dispatchNew()
      await bench.db.quiet()
      return (await bench.jobs(caller.tenant_id))[0]
    }
    const step_ms = 60_000
    for (let ms = 0; ms <= unread_ms_max; ms += step_ms) {
      expect(await look()).toMatchObject({ attempts: 0, lease_until: 0 })
      bench.clock.advance(step_ms)
    }
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await look()).toMatchObject({ attempts: attempt, lease_until: now() + lease_ms })
      bench.clock.advance(lease_ms)
    }
    expect(await look()).toBeUndefined()
    expect(bench.network.sent).toEqual([])
    expect(await read(caller, id)).toMatchObject({ status: 'failed', last_error: 'interrupted' })
  })

  test('under every second read of the same event counts no failure from before one that succeeded', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    let reads = 0
    bench.db.onRead = (name) => {
      if (name !== 'schedules.deliverable') return
      if (++reads % 2 === 0) throw new DbError('lost', 'it is away')
      bench.clock.advance(stale_lease_ms + 1) // it is released, sends nothing, and is read again
    }
    const worker = bench.worker()
    for (let ms = 0; ms <= 2 * unread_ms_max; ms += 90_000) {
      await worker.dispatchNew()
      await bench.db.quiet()
      const [job] = await bench.jobs(caller.tenant_id)
      expect(job).toMatchObject({ attempts: 0, lease_until: 0 })
      bench.clock.advance(90_000)
    }
    expect(bench.network.sent).toEqual([])
  })

  test('under a commit of what is to be sent, whose answer is lost, makes no attempt and slows its receiver once', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    let lost = 1
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable' && lost-- > 0) throw new DbError('outcome_unknown', 'no answer')
    }
    const slowing = spyOn(ConcurrencyLimiter.prototype, 'slowDown')
    const worker = bench.worker()
    await bench.dispatch(worker)
    expect(slowing).toHaveBeenCalledTimes(1)
    slowing.mockRestore()
    expect((await bench.jobs(caller.tenant_id))[0]).toMatchObject({ attempts: 0, lease_until: 0 })
    expect(bench.errors.map(String)).toEqual(['DbError: no answer'])
    bench.clock.advance(500)
    await worker.dispatchNew()
    await bench.db.quiet()
    expect(bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(['1'])
  })

  test('now and then counts no failure with those of hours before', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable') throw new DbError('lost', 'it is away')
    }
    const worker = bench.worker()
    for (let outage = 0; outage < 3; outage += 1) {
      await worker.dispatchNew()
      await bench.db.quiet()
      const [job] = await bench.jobs(caller.tenant_id)
      expect(job).toMatchObject({ attempts: 0, lease_until: 0 })
      bench.clock.advance(unread_ms_max)
    }
  })

  test('under the return of a lease holds no permit: the next job for the same receiver is sent', async () => {
    const caller = await bench.tenant()
    await manySchedules(bench, caller, 2)
    let refused = 0
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable' && refused++ === 0) throw new DbError('busy', 'too many ask')
    }
    bench.db.failing.add('jobs.release')
    await bench.dispatch(bench.worker())
    await until(() => bench.network.held.length > 0)
    expect(bench.network.sent).toHaveLength(1)
    bench.db.failing.clear()
    await becomes(
      async () => (await bench.jobs(caller.tenant_id)).map(({ attempts }) => attempts).toSorted(),
      [0, 1],
    )
  })

  test('under the return of a lease that is too old makes no attempt of it: it is released later', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    let stalls = 1
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable' && stalls-- > 0) bench.clock.advance(stale_lease_ms + 1)
    }
    bench.db.failing.add('jobs.release')
    await bench.dispatch(bench.worker())
    expect(bench.network.sent).toEqual([])
    bench.db.failing.clear()
    await until(() => bench.network.held.length > 0)
    expect(bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(['1'])
  })

  test.each([
    ['external', false, 1],
    ['internal', true, 0],
  ] as const)(
    'under every lease is asked again a second later where no timer does it (TICK=%s)',
    async (_, internal, timers) => {
      const caller = await bench.tenant()
      const { id } = await checkpoint(bench, caller)
      await approve(bench, caller, id)
      bench.db.failing.add('jobs.lease')
      const set = spyOn(globalThis, 'setTimeout')
      try {
        await bench.dispatch(bench.worker({ internal }))
        const later = set.mock.calls.filter(([, ms]) => ms === 1_000).map(([callback]) => callback)
        expect(later).toHaveLength(timers)
        expect(bench.network.sent).toEqual([])
        bench.db.failing.clear()
        for (const callback of later) (callback as () => void)()
        await bench.db.quiet()
        expect(bench.network.held).toHaveLength(timers)
      } finally {
        set.mockRestore()
      }
    },
  )

  test('may hold due work that nobody may lease: it is not asked for again and again, and keeps no tick waiting', async () => {
    const caller = await bench.tenant()
    const admin = { ...caller, kind: 'admin' as const }
    await tenants.remove(bench.db, bench.dependencies, admin, caller.tenant_id)
    // Accepted on another node just before it learnt of the deletion.
    await schedule(bench, caller)
    const other = await bench.tenant()
    const { id } = await schedule(bench, other)
    bench.network.answer = () => 204
    const { looks } = boundLooks(40)
    const worker = bench.worker()
    await worker.dispatch()
    await bench.db.quiet()
    await worker.dispatch()
    expect(looks()).toBeLessThan(40)
    expect(await read(other, id)).toMatchObject({ status: 'fired' })
    bench.db.onRead = () => {}
    expect(await anyDue(bench.db, now(), known_kinds)).toBe(false)
  })
})
