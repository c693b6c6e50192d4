import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf } from '../../test/support/job-bench.ts'
import { idBound } from '../base/ids.ts'
import { type Tx, unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { job_kinds } from '../features.ts'
import { ConcurrencyLimiter, destination_max, type Lane, lane_max, node_max, reserve } from './concurrency.ts'
import { type Batch, JobQueue, type QueuedJob } from './fairness.ts'
import { kindsOf } from './kind.ts'
import { quick_ms } from './prefetch.ts'
import * as jobs from './service.ts'

const window_rows_max = 1_000
const window_fresh_ms = 100

const any = () => true

const NAME_TENANT = unnamedAcrossTenants(
  'test.name_tenant',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, :tenant_id, 'owner@example.com', 'free', 'active', '', 0)
   on conflict do nothing`,
)

forEachDatabase('what is started next', (databases) => {
  let bench: Bench
  let made = 0
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  interface Work {
    tenant_id: string
    destination: string
    /** Milliseconds that it has been due. */
    due_for?: number
    kind?: string
    count?: number
  }

  const now = () => bench.clock.now()

  /** Tenants are little more than names here. */
  function plan(work: Work): Promise<void> {
    return bench.db.write(upkeep, async (tx) => {
      await tx.run(NAME_TENANT, { tenant_id: work.tenant_id })
      for (let i = 0; i < (work.count ?? 1); i++) await insert(tx, work)
    })
  }

  function insert(tx: Tx, { tenant_id, destination, due_for = 0, kind = 'schedule' }: Work): Promise<void> {
    const source_id = idBound('sch', ++made)
    const work = { tenant_id, kind: kindOf(kind), source_id, destination, next_at: now() - due_for }
    return jobs.enqueue(tx, { wake() {} }, { ...work, event_id: `evt_${made}` })
  }

  /** As the engine goes on: rounds until nothing more is to be had. Nothing ends meanwhile. */
  async function chooseAll(queue: JobQueue, limiter: ConcurrencyLimiter): Promise<QueuedJob[]> {
    const chosen: QueuedJob[] = []
    for (;;) {
      const batches = await queue.next(limiter, any)
      if (batches.length === 0) return chosen
      for (const { items } of batches) chosen.push(...items)
      await lease(batches)
    }
  }

  /** Leases a batch as the worker does: no other search finds it for now. */
  async function lease(batches: Batch[]): Promise<void> {
    for (const { source_id } of batches.flatMap(({ items }) => items)) {
      await bench.write('update jobs set lease_until = :until where source_id = :source_id', {
        until: now() + 30_000,
        source_id,
      })
    }
  }

  const newQueue = () =>
    new JobQueue(bench.db, bench.clock, kindsOf(job_kinds), (error) => bench.errors.push(error))

  function answer(limiter: ConcurrencyLimiter, lane: Lane): void {
    expect(limiter.start(lane)).toBe(true)
    limiter.end(lane, { answered: true, duration_ms: quick_ms + 1 })
  }

  /** A slot table in which this lane has shown that it is answered. */
  function provenLimiter(...lanes: { tenant_id: string; destination: string }[]): ConcurrencyLimiter {
    const limiter = new ConcurrencyLimiter()
    for (const lane of lanes) {
      for (let i = 1; i < lane_max; i++) {
        limiter.acquire(lane)
        answer(limiter, lane)
      }
    }
    return limiter
  }

  const a = { tenant_id: 'ten_a', destination: 'http://a.test' }
  const b = { tenant_id: 'ten_b', destination: 'http://b.test' }

  test('nothing when nothing is due', async () => {
    await plan({ ...a, due_for: -1 })
    const queue = newQueue()
    expect(await queue.next(new ConcurrencyLimiter(), any)).toEqual([])
    expect(queue.waiting).toBe(0)
  })

  test('what has waited longest comes first', async () => {
    for (const due_for of [1, 3, 2]) await plan({ ...a, due_for, kind: 'timeout', destination: '' })
    const [batch] = await newQueue().next(new ConcurrencyLimiter(), any)
    const ids = (await bench.rows<{ source_id: string }>('select source_id from jobs order by next_at')).map(
      ({ source_id }) => source_id,
    )
    expect(batch!.items.map(({ source_id }) => source_id)).toEqual(ids)
  })

  describe('permits', () => {
    test('are dealt out tenant by tenant, not by age', async () => {
      const shared = 'http://shared.test'
      const one = { tenant_id: 'ten_a', destination: shared }
      const two = { tenant_id: 'ten_b', destination: shared }
      await plan({ ...one, due_for: 50, count: 40 })
      await plan({ ...two, due_for: 1, count: 40 })
      const chosen = (await newQueue().next(provenLimiter(one, two), any)).flatMap(({ items }) => items)
      expect(chosen.filter(({ tenant_id }) => tenant_id === 'ten_a')).toHaveLength(8)
      expect(chosen.filter(({ tenant_id }) => tenant_id === 'ten_b')).toHaveLength(8)
    })

    test('on a full node go to every tenant that waits, however much one of them has', async () => {
      const lanes = Array.from({ length: 30 }, (_, i) => ({ ...a, destination: `http://a-${i}.test` }))
      for (const lane of lanes) await plan({ ...lane, due_for: 50, count: 20 })
      const others = Array.from({ length: 40 }, (_, i) => ({ ...b, tenant_id: `ten_b${i}` }))
      const own = others.map((lane, i) => ({ ...lane, destination: `http://b-${i}.test` }))
      for (const lane of own) await plan({ ...lane, due_for: 1 })
      const chosen = (await newQueue().next(provenLimiter(...lanes), any)).flatMap(({ items }) => items)
      expect(chosen).toHaveLength(node_max - reserve)
      expect(new Set(chosen.map(({ tenant_id }) => tenant_id)).size).toBe(41)
    })

    test('one by one, as they become free at one receiver, go to the tenants in turn', async () => {
      const shared = 'http://shared.test'
      const one = { tenant_id: 'ten_a', destination: shared }
      const two = { tenant_id: 'ten_b', destination: shared }
      await plan({ ...one, due_for: 50, count: 60 })
      await plan({ ...two, due_for: 1, count: 60 })
      const limiter = provenLimiter(one, two)
      const queue = newQueue()
      for (let i = 1; i < destination_max; i++) limiter.acquire(one)
      const served: string[] = []
      for (let i = 0; i < 20; i++) {
        const [batch] = await queue.next(limiter, any)
        served.push(batch!.tenant_id)
        answer(limiter, batch!.items[0]!)
      }
      expect(served.filter((tenant_id) => tenant_id === 'ten_b').length).toBeGreaterThanOrEqual(8)
    })

    test('are not taken where there are none: 12 of one tenant for one destination, the rest waits', async () => {
      await plan({ ...a, count: 40 })
      const queue = newQueue()
      expect(await chooseAll(queue, provenLimiter(a))).toHaveLength(12)
      expect(queue.waiting).toBe(28)
    })

    test('are not taken by work that is not wanted now', async () => {
      await plan({ ...a })
      await plan({ ...b })
      const limiter = new ConcurrencyLimiter()
      const batches = await newQueue().next(limiter, ({ tenant_id }) => tenant_id === 'ten_b')
      expect(batches.map(({ tenant_id }) => tenant_id)).toEqual(['ten_b'])
      expect(limiter.free).toBe(node_max - 1)
    })

    test('are all taken: nothing is read at all', async () => {
      await plan({ ...b })
      const limiter = new ConcurrencyLimiter()
      while (limiter.free > 0) limiter.acquire({ tenant_id: 'ten_a', destination: '' })
      const read: string[] = []
      bench.db.onRead = (name) => read.push(name)
      expect(await newQueue().next(limiter, any)).toEqual([])
      expect(read).toEqual([])
    })
  })

  test('a batch is of one tenant and kind, and of 16 items at most', async () => {
    await plan({ ...a, destination: '', kind: 'timeout', count: 40 })
    await plan({ ...a, count: 1 })
    await plan({ ...b, destination: '', kind: 'timeout', count: 3 })
    const batches = await newQueue().next(new ConcurrencyLimiter(), any)
    const sizes = batches.map(({ tenant_id, kind, items }) => `${tenant_id} ${kind.name} ${items.length}`)
    expect(sizes.toSorted()).toEqual([
      ...['ten_a schedule 1', 'ten_a timeout 16', 'ten_a timeout 16', 'ten_a timeout 8', 'ten_b timeout 3'],
    ])
    for (const { tenant_id, kind, items } of batches) {
      expect(items.every((item) => item.tenant_id === tenant_id && item.kind === kind)).toBe(true)
    }
  })

  describe('behind a buffer full of older work', () => {
    const fronts: [what: string, work: Work[]][] = [
      ['of one tenant at one dead receiver', [{ ...a, due_for: 9_000, count: window_rows_max + 200 }]],
      [
        'of one tenant at 60 dead receivers',
        Array.from({ length: 60 }, (_, i) => ({
          ...{ tenant_id: 'ten_a', destination: `http://dead-${i}.test` },
          ...{ due_for: 9_000, count: 20 },
        })),
      ],
      [
        'of 40 tenants at one dead receiver',
        Array.from({ length: 40 }, (_, i) => ({
          ...{ tenant_id: `ten_a${i}`, destination: 'http://dead.test' },
          ...{ due_for: 9_000, count: 30 },
        })),
      ],
    ]
    const behind: [what: string, work: Work][] = [
      ['another tenant', { tenant_id: 'ten_z', destination: 'http://z.test' }],
      ['a tenant whose id sorts first', { tenant_id: 'ten_', destination: 'http://z.test' }],
      ['another receiver of the same tenant', { tenant_id: 'ten_a0', destination: 'http://z.test' }],
      ['a timeout of the same tenant', { tenant_id: 'ten_a0', destination: '', kind: 'timeout' }],
    ]
    const cases = fronts.flatMap(([front, dead]) =>
      behind.map(([what, work]) => [what, front, dead, work] as const),
    )
    test.each(cases)('%s is found: %s', async (_what, _front, dead, work) => {
      for (const each of dead) await plan(each)
      await plan(work)
      const limiter = new ConcurrencyLimiter()
      for (const each of dead) if (limiter.mayAcquire(each)) limiter.acquire(each)
      const chosen = await chooseAll(newQueue(), limiter)
      expect(chosen.map(({ tenant_id, destination }) => ({ tenant_id, destination }))).toEqual([
        { tenant_id: work.tenant_id, destination: work.destination },
      ])
    })
  })

  test('what stands in the buffer starts also when nothing behind it can be read, which is looked for again', async () => {
    const dead = { tenant_id: 'ten_dead', destination: 'http://dead.test' }
    await plan({ ...dead, due_for: 9_000, count: window_rows_max })
    await plan({ ...b, due_for: -1 })
    bench.clock.advance(1)
    bench.db.onRead = (name) => {
      if (name === 'jobs.tenants') throw new Error('it is refused')
    }
    const queue = newQueue()
    const limiter = provenLimiter(dead)
    const chosen = await chooseAll(queue, limiter)
    expect(chosen.map(({ tenant_id }) => tenant_id)).toEqual(Array(lane_max).fill('ten_dead'))
    expect(bench.errors.map(String)).toContain('Error: it is refused')
    bench.db.onRead = () => {}
    bench.clock.advance(window_fresh_ms)
    await plan({ ...dead, due_for: 9_000, count: lane_max })
    expect((await chooseAll(queue, limiter)).map(({ tenant_id }) => tenant_id)).toEqual(['ten_b'])
  })

  test('a job behind the buffer that is not wanted keeps no turn from the next', async () => {
    const dead = { tenant_id: 'ten_dead', destination: 'http://dead.test' }
    await plan({ ...dead, due_for: 9_000, count: window_rows_max })
    const limiter = new ConcurrencyLimiter()
    limiter.acquire(dead)
    await plan(a)
    const queue = newQueue()
    const started = async () => {
      const batches = await queue.next(limiter, ({ tenant_id }) => tenant_id !== 'ten_a')
      return batches.map(({ tenant_id }) => tenant_id)
    }
    expect(await started()).toEqual([])
    await plan(b)
    bench.clock.advance(window_fresh_ms)
    expect(await started()).toEqual(['ten_b'])
  })

  describe('however many tenants and receivers there are', () => {
    const dead = { tenant_id: 'ten_dead', destination: 'http://dead.test' }
    const tomorrow = -86_400_000

    /** One tenant whose due work fills the window, at a receiver that never answers. */
    async function fillWindow(): Promise<ConcurrencyLimiter> {
      await plan({ ...dead, due_for: 9_000, count: window_rows_max + 100 })
      const limiter = new ConcurrencyLimiter()
      limiter.acquire(dead)
      return limiter
    }

    /** How many looks it takes until all of these have been started; each has its own bound. */
    async function looksUntil(
      limiter: ConcurrencyLimiter,
      tenants: string[],
      looks_max: number,
    ): Promise<number> {
      const queue = newQueue()
      const missing = new Set(tenants)
      for (let look = 1; look <= looks_max; look++) {
        const reads: string[] = []
        bench.db.onRead = (name) => reads.push(name)
        for (const item of await chooseAll(queue, limiter)) {
          missing.delete(item.tenant_id)
          answer(limiter, item)
        }
        const read = (name: string) => reads.filter((other) => other === name).length
        expect(read('jobs.due_of_tenant')).toBeLessThanOrEqual(64 * read('jobs.due'))
        expect(read('jobs.due_in_lane')).toBeLessThanOrEqual(32 * read('jobs.due'))
        if (missing.size === 0) return look
        bench.clock.advance(window_fresh_ms)
      }
      return Number.POSITIVE_INFINITY
    }

    test("another tenant's work is found at once beside 5,000 receivers of work to come", async () => {
      const limiter = await fillWindow()
      await bench.db.write(upkeep, async (tx) => {
        for (let i = 0; i < 5_000; i++)
          await insert(tx, { ...dead, destination: `http://far-${i}.test`, due_for: tomorrow })
      })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      expect(await looksUntil(limiter, ['ten_z'], 3)).toBe(1)
    })

    test("and the same tenant's own at another receiver after a cycle of 500 receivers a look", async () => {
      const limiter = await fillWindow()
      await bench.db.write(upkeep, async (tx) => {
        for (let i = 0; i < 1_100; i++)
          await insert(tx, { ...dead, destination: `http://far-${i}.test`, due_for: tomorrow })
      })
      await plan({ tenant_id: 'ten_dead', destination: 'http://z.test' })
      expect(await looksUntil(limiter, ['ten_dead'], 9)).toBe(3)
    })

    // 1,000 tenants a look.
    const far: [count: number, looks: number][] = [
      [998, 1],
      [999, 2],
      [1_500, 2],
    ]
    test.each(far)('beside %d tenants with work to come: looks %d', async (count, looks) => {
      const limiter = await fillWindow()
      await bench.db.write(upkeep, async (tx) => {
        for (let i = 0; i < count; i++) {
          const tenant_id = `ten_far${String(i).padStart(4, '0')}`
          await tx.run(NAME_TENANT, { tenant_id })
          await insert(tx, { tenant_id, destination: `http://far-${i}.test`, due_for: tomorrow })
        }
      })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      expect(await looksUntil(limiter, ['ten_z'], 5)).toBe(looks)
    })

    test('everybody with due work has a turn, and nobody waits 100 ms while others are served', async () => {
      const limiter = await fillWindow()
      const tenants = Array.from({ length: 450 }, (_, i) => `ten_b${i}`)
      for (const tenant_id of tenants) await plan({ tenant_id, destination: `http://${tenant_id}.test` })
      // 255 places: the rest once these are free again.
      expect(await looksUntil(limiter, tenants, 9)).toBe(2)
    })

    test('a tenant with 200 dead receivers keeps none of its own from a turn', async () => {
      const lanes = Array.from({ length: 200 }, (_, i) => ({ ...dead, destination: `http://dead-${i}.test` }))
      for (const lane of lanes) await plan({ ...lane, due_for: 9_000, count: 6 })
      const own = Array.from({ length: 150 }, (_, i) => `http://own-${i}.test`)
      for (const destination of own) await plan({ ...dead, destination })
      const limiter = new ConcurrencyLimiter()
      for (const lane of lanes) limiter.acquire(lane)
      const queue = newQueue()
      const served = new Set<string>()
      for (let look = 0; look < 4; look++) {
        for (const item of await chooseAll(queue, limiter)) {
          served.add(item.destination)
          answer(limiter, item)
        }
        bench.clock.advance(window_fresh_ms)
      }
      expect([...served].toSorted()).toEqual(own.toSorted())
    })

    test('40 tenants that fill it at a dead receiver have a turn for their own second one', async () => {
      const tenants = Array.from({ length: 40 }, (_, i) => `ten_a${i}`)
      const limiter = new ConcurrencyLimiter()
      for (const tenant_id of tenants) {
        const lane = { ...dead, tenant_id, destination: `http://dead-${tenant_id}.test` }
        await plan({ ...lane, due_for: 9_000, count: 30 })
        limiter.acquire(lane)
        await plan({ tenant_id, destination: `http://own-${tenant_id}.test` })
      }
      expect(await looksUntil(limiter, tenants, 5)).toBe(1)
    })

    test('work of a tenant that is pending deletion fills no read, and is reported', async () => {
      await plan({ ...dead, due_for: 9_000, count: window_rows_max + 100 })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      await bench.write(`update tenants set status = 'pending_deletion' where tenant_id = 'ten_dead'`)
      try {
        const queue = newQueue()
        const reads: string[] = []
        bench.db.onRead = (name) => reads.push(name)
        const chosen = await chooseAll(queue, new ConcurrencyLimiter())
        expect(chosen.map(({ tenant_id }) => tenant_id)).toEqual(['ten_z'])
        expect(queue.takeStragglers()).toEqual(['ten_dead'])
        expect(queue.takeStragglers()).toEqual([])
        expect([queue.waiting, queue.hasBacklog]).toEqual([0, true])
        expect(reads).not.toContain('jobs.due_in_lane')
      } finally {
        await bench.write(`update tenants set status = 'active' where tenant_id = 'ten_dead'`)
      }
    })
  })

  describe('the buffer', () => {
    const reads = () => {
      const names: string[] = []
      bench.db.onRead = (name) => names.push(name)
      return names
    }

    test('serves batches without another look, while it has what can be started', async () => {
      await plan({ ...a, count: 40 })
      const queue = newQueue()
      const limiter = provenLimiter(a)
      const names = reads()
      for (let i = 0; i < 40; i++) {
        const batches = await queue.next(limiter, any)
        for (const { items } of batches) for (const item of items) answer(limiter, item)
        await lease(batches)
        if (queue.waiting === 0) break
      }
      expect(names).toEqual(['jobs.due'])
    })

    test('that holds nothing to start is read again after 100 ms, not before', async () => {
      await plan({ ...a, count: 3 })
      const queue = newQueue()
      const limiter = new ConcurrencyLimiter()
      await chooseAll(queue, limiter)
      await plan({ ...b })
      const names = reads()
      bench.clock.advance(window_fresh_ms - 1)
      expect(await queue.next(limiter, any)).toEqual([])
      expect(names).toEqual([])
      bench.clock.advance(1)
      expect((await queue.next(limiter, any)).map(({ tenant_id }) => tenant_id)).toEqual(['ten_b'])
      expect(names).toEqual(['jobs.due'])
    })

    test('that is empty is read at once', async () => {
      const queue = newQueue()
      expect(await queue.next(new ConcurrencyLimiter(), any)).toEqual([])
      await plan({ ...a })
      expect(await queue.next(new ConcurrencyLimiter(), any)).toHaveLength(1)
    })
  })
})
