import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { withoutPatience } from '../../test/support/held-results.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { hook, manySchedules } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import type { AgentCaller } from '../contract/caller.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'
import { lane_max } from './concurrency.ts'
import { lease_ms } from './job.ts'
import { JobMeasures } from './measures.ts'
import { prefetch_max, quick_ms } from './prefetch.ts'
import type { JobWorker } from './worker.ts'

forEachDatabase('jobs that are prefetched', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(async () => {
    bench.db.onStatement(null)
    await bench.clear()
  })

  /** A tenant whose one receiver has shown that it is quick, and holds 12 of `count` requests now. */
  async function quickLane(
    count: number,
  ): Promise<{ caller: AgentCaller; worker: JobWorker; measures: JobMeasures }> {
    const caller = await bench.tenant()
    const measures = new JobMeasures()
    const worker = bench.worker({ measures })
    bench.network.answer = () => 204
    await manySchedules(bench, caller, lane_max)
    await bench.dispatch(worker)
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
    bench.network.answer = () => null
    bench.network.sent.length = 0
    await manySchedules(bench, caller, count)
    await worker.dispatchNew()
    await bench.db.quiet()
    expect(bench.network.held).toHaveLength(lane_max)
    return { caller, worker, measures }
  }

  const isLeased = ({ lease_until }: { lease_until: number }) => lease_until > bench.clock.now()
  const isUntried = ({ lease_until, attempts, first_attempt_at }: Waiting) =>
    lease_until === 0 && attempts === 0 && first_attempt_at === null
  type Waiting = Awaited<ReturnType<Bench['jobs']>>[number]

  const idsOf = () => bench.network.sent.map(({ headers }) => headers['webhook-id']!)

  /** LeasedJob, and not sent. */
  async function waiting(caller: AgentCaller): Promise<Waiting[]> {
    const sent = new Set(idsOf())
    return (await bench.jobs(caller.tenant_id)).filter((row) => isLeased(row) && !sent.has(row.event_id))
  }

  async function fired({ tenant_id }: AgentCaller): Promise<number> {
    const text = "select id from schedules where tenant_id = :tenant_id and status = 'fired'"
    return (await bench.rows(text, { tenant_id })).length
  }

  test('is 72 at most, and follows what ends without another lease', async () => {
    const { caller } = await quickLane(100)
    expect(await waiting(caller)).toHaveLength(prefetch_max)
    const statements: string[] = []
    bench.db.onStatement((name) => statements.push(name))
    await bench.settle(204, bench.network.held.slice(0, 5))
    expect(bench.network.held).toHaveLength(lane_max)
    expect(bench.network.sent).toHaveLength(lane_max + 5)
    expect(statements).not.toContain('jobs.lease')
  })

  if (databases.engine === 'postgres') {
    test('has its results written at once, because none shares a commit', async () => {
      const { caller } = await quickLane(100)
      await withoutPatience(async (timers) => {
        await bench.settle(204, bench.network.held.slice(0, 5))
        await becomes(() => fired(caller), lane_max + 5)
        expect(timers).toEqual([])
      })
    })
  } else {
    test('has its results written together, 25 ms later at most', async () => {
      const { caller } = await quickLane(100)
      await withoutPatience(async (timers) => {
        await bench.settle(204, bench.network.held.slice(0, 5))
        expect([await fired(caller), timers.length]).toEqual([lane_max, 1])
        timers[0]!.run()
        await becomes(() => fired(caller), lane_max + 5)
      })
    })
  }

  test('has its results written, and more leased, when as many wait as there are permits', async () => {
    const { caller } = await quickLane(200)
    const until_few_wait = prefetch_max - lane_max
    await withoutPatience(async () => {
      for (let sent = 0; sent < until_few_wait; sent += lane_max) {
        if (databases.engine === 'sqlite') expect(await fired(caller)).toBe(lane_max)
        await bench.settle(204)
      }
      await becomes(() => fired(caller), lane_max + until_few_wait)
      await becomes(async () => (await waiting(caller)).length, prefetch_max)
    })
  })

  test('leaves no result unwritten while nothing else ends', async () => {
    const { caller } = await quickLane(100)
    await bench.settle(204, bench.network.held.slice(0, 5))
    await becomes(() => fired(caller), lane_max + 5)
    expect(await waiting(caller)).toHaveLength(prefetch_max - 5)
  })

  test('is sent once, each, to the last', async () => {
    const { caller, worker } = await quickLane(500)
    bench.network.answer = () => 204
    await bench.drain()
    while ((await fired(caller)) < lane_max + 500) {
      bench.clock.advance(100)
      await bench.dispatch(worker)
    }
    expect(new Set(idsOf()).size).toBe(500)
    expect(bench.network.sent).toHaveLength(500)
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  test.each([
    ['is slow', 204, quick_ms + 1],
    ['does not come', 'timeout', quick_ms],
  ] as const)('is released when an answer %s, without an attempt', async (_, verdict, duration_ms) => {
    const { caller } = await quickLane(84)
    const ids = (await waiting(caller)).map(({ source_id }) => source_id)
    bench.network.duration_ms = duration_ms
    await bench.settle(verdict, bench.network.held.slice(0, 1))
    const rows = (await bench.jobs(caller.tenant_id)).filter(({ source_id }) => ids.includes(source_id))
    expect(rows).toHaveLength(prefetch_max)
    // After a slow answer the next follows it; one that did not come leaves eleven in flight, and one place.
    expect(rows.filter(isUntried)).toHaveLength(verdict === 204 ? prefetch_max - 1 : prefetch_max)
  })

  test('has begun, for the metrics, when it was sent', async () => {
    const { caller, measures } = await quickLane(84)
    const begun = measures.start_delay_seconds.of('schedule')
    expect(begun.count).toBe(lane_max)
    bench.clock.advance(5_000)
    await bench.settle(204, bench.network.held.slice(0, lane_max))
    expect([begun.count, begun.sum]).toEqual([2 * lane_max, 0])
    bench.network.duration_ms = quick_ms + 1 // most of the others are released, and leased again as there is room
    await bench.settle(204, bench.network.held.slice(0, lane_max))
    expect([begun.count, begun.sum]).toEqual([3 * lane_max, 5 * lane_max])
    await bench.drain()
    await becomes(() => fired(caller), lane_max + 84)
    expect(begun.count).toBe(lane_max + 84)
  })

  test('is not sent when it is cancelled meanwhile', async () => {
    const { caller } = await quickLane(84)
    const [row] = await waiting(caller)
    await schedules.cancel(bench.db, caller, row!.source_id)
    await bench.drain()
    await becomes(() => fired(caller), lane_max + 83)
    expect(bench.network.sent).toHaveLength(83)
    expect(idsOf()).not.toContain(row!.event_id)
  })

  test('goes to another receiver when it is given one meanwhile, and there only', async () => {
    const { caller, worker } = await quickLane(84)
    const [row] = await waiting(caller)
    const callback_url = 'http://new.test/x'
    await schedules.update(bench.db, caller, bench.dependencies, row!.source_id, { callback_url })
    bench.network.answer = () => 204
    await bench.drain()
    while ((await fired(caller)) < lane_max + 84) {
      bench.clock.advance(lease_ms)
      await bench.dispatch(worker)
    }
    const urls = bench.network.sent.map(({ url }) => url)
    expect(urls.filter((url) => url === callback_url)).toHaveLength(1)
    expect(urls.filter((url) => url === `${hook}/path`)).toHaveLength(83)
  })

  test('is released when the node stops, without an attempt', async () => {
    const { caller, worker } = await quickLane(84)
    const stopped = worker.stop()
    await bench.db.quiet()
    expect((await bench.jobs(caller.tenant_id)).filter(isUntried)).toHaveLength(prefetch_max)
    await bench.drain()
    await stopped
    expect(bench.network.sent).toHaveLength(lane_max)
  })

  test('is released later when the database refuses for a moment, without an attempt', async () => {
    const { caller } = await quickLane(84)
    const ids = (await waiting(caller)).map(({ source_id }) => source_id)
    const untried = async () =>
      (await bench.jobs(caller.tenant_id)).filter((row) => ids.includes(row.source_id) && isUntried(row))
    bench.db.failing.add('jobs.release')
    await bench.settle('timeout', bench.network.held.slice(0, 1))
    expect(await untried()).toEqual([])
    bench.db.failing.clear()
    await until(async () => (await untried()).length === prefetch_max)
    expect(bench.errors).toEqual([])
  })

  test('is released when the database refuses to say what to send, except the one that asked', async () => {
    const { caller, worker } = await quickLane(84)
    bench.db.onRead = (name) => {
      if (name !== 'schedules.deliverable') return
      bench.db.onRead = () => {}
      throw new Error('the database is away')
    }
    await bench.settle(204, bench.network.held.slice(0, 1))
    expect(bench.errors.map(String)).toEqual(['Error: the database is away'])
    // All of 72 but two: the one that asked, and one that was released and leased again.
    expect((await bench.jobs(caller.tenant_id)).filter(isUntried)).toHaveLength(prefetch_max - 2)
    bench.network.answer = () => 204
    await bench.drain()
    while ((await fired(caller)) < lane_max + 83) await bench.dispatch(worker)
    expect((await bench.jobs(caller.tenant_id)).map(({ attempts }) => attempts)).toEqual([1])
  })

  test('is signed with the secrets of the time when it is sent', async () => {
    const { caller } = await quickLane(84)
    const admin = { ...caller, kind: 'admin' as const }
    await tenants.rotateSigningSecret(bench.db, bench.dependencies, admin, caller.tenant_id)
    await bench.drain()
    const signatures = bench.network.sent.map(
      ({ headers }) => headers['webhook-signature']!.split(' ').length,
    )
    expect(signatures).toEqual([...Array<number>(lane_max).fill(1), ...Array<number>(prefetch_max).fill(2)])
  })

  test('is not sent when its tenant is deleted meanwhile, and was no attempt', async () => {
    const { caller, worker } = await quickLane(84)
    const admin = { ...caller, kind: 'admin' as const }
    await tenants.remove(bench.db, bench.dependencies, admin, caller.tenant_id)
    await bench.drain()
    await becomes(() => fired(caller), 2 * lane_max)
    expect(bench.network.sent).toHaveLength(lane_max)
    expect((await bench.jobs(caller.tenant_id)).filter(isUntried)).toHaveLength(prefetch_max)
    await tenants.restore(bench.db, bench.dependencies, admin, caller.tenant_id)
    bench.network.answer = () => 204
    bench.clock.advance(1_000)
    await bench.dispatch(worker)
    await becomes(() => fired(caller), lane_max + 84)
    expect(new Set(idsOf()).size).toBe(84)
  })
})
