import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/work-engine.ts'
import { idBound } from '../base/ids.ts'
import { type Tx, unnamed } from '../db/db.ts'
import { type Batch, type Candidate, Candidates } from './candidates.ts'
import type { WorkKind } from './job.ts'
import * as outbox from './service.ts'
import { destination_max, type Lane, lane_max, node_max, quick_ms, reserve, Slots } from './slots.ts'

const window_rows_max = 1_000
const window_fresh_ms = 100

const any = () => true

const NAME_TENANT = unnamed(
  'test.name_tenant',
  `insert into tenants (tenant_id, name, name_key, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, :tenant_id, :tenant_id, 'owner@example.com', 'free', 'active', '', 0)
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
    kind?: WorkKind
    count?: number
  }

  const now = () => bench.clock.now()

  /** Tenants are little more than names here. */
  function plan(work: Work): Promise<void> {
    return bench.db.write(async (tx) => {
      await tx.run(NAME_TENANT, { tenant_id: work.tenant_id })
      for (let i = 0; i < (work.count ?? 1); i++) await insert(tx, work)
    })
  }

  function insert(tx: Tx, { tenant_id, destination, due_for = 0, kind = 'schedule' }: Work): Promise<void> {
    const source_id = idBound('sch', ++made)
    const work = { tenant_id, kind, source_id, destination, next_at: now() - due_for }
    return outbox.plan(tx, { wake() {} }, { ...work, event_id: `evt_${made}` })
  }

  /** As the engine goes on: rounds until nothing more is to be had. Nothing ends meanwhile. */
  async function chooseAll(candidates: Candidates, slots: Slots): Promise<Candidate[]> {
    const chosen: Candidate[] = []
    for (;;) {
      const batches = await candidates.choose(slots, any)
      if (batches.length === 0) return chosen
      for (const { items } of batches) chosen.push(...items)
      await lease(batches)
    }
  }

  /** What the engine does with a batch: it is nobody else's for now. */
  async function lease(batches: Batch[]): Promise<void> {
    for (const { source_id } of batches.flatMap(({ items }) => items)) {
      await bench.write('update outbox set lease_until = :until where source_id = :source_id', {
        until: now() + 30_000,
        source_id,
      })
    }
  }

  const newCandidates = () => new Candidates(bench.db, bench.clock)

  function answer(slots: Slots, lane: Lane): void {
    expect(slots.turn(lane)).toBe(true)
    slots.end(lane, { answered: true, duration_ms: quick_ms + 1 })
  }

  /** A slot table in which this lane has shown that it is answered. */
  function provenSlots(...lanes: { tenant_id: string; destination: string }[]): Slots {
    const slots = new Slots()
    for (const lane of lanes) {
      for (let i = 1; i < lane_max; i++) {
        slots.take(lane)
        answer(slots, lane)
      }
    }
    return slots
  }

  const a = { tenant_id: 'ten_a', destination: 'http://a.test' }
  const b = { tenant_id: 'ten_b', destination: 'http://b.test' }

  test('nothing when nothing is due', async () => {
    await plan({ ...a, due_for: -1 })
    const candidates = newCandidates()
    expect(await candidates.choose(new Slots(), any)).toEqual([])
    expect(candidates.waiting).toBe(0)
  })

  test('what has waited longest comes first', async () => {
    for (const due_for of [1, 3, 2]) await plan({ ...a, due_for, kind: 'timeout', destination: '' })
    const [batch] = await newCandidates().choose(new Slots(), any)
    const ids = (
      await bench.rows<{ source_id: string }>('select source_id from outbox order by next_at')
    ).map(({ source_id }) => source_id)
    expect(batch!.items.map(({ source_id }) => source_id)).toEqual(ids)
  })

  describe('places', () => {
    test('are dealt out tenant by tenant, not by age', async () => {
      const shared = 'http://shared.test'
      const one = { tenant_id: 'ten_a', destination: shared }
      const two = { tenant_id: 'ten_b', destination: shared }
      await plan({ ...one, due_for: 50, count: 40 })
      await plan({ ...two, due_for: 1, count: 40 })
      const chosen = (await newCandidates().choose(provenSlots(one, two), any)).flatMap(({ items }) => items)
      expect(chosen.filter(({ tenant_id }) => tenant_id === 'ten_a')).toHaveLength(8)
      expect(chosen.filter(({ tenant_id }) => tenant_id === 'ten_b')).toHaveLength(8)
    })

    test('on a full node go to every tenant that waits, however much one of them has', async () => {
      const lanes = Array.from({ length: 30 }, (_, i) => ({ ...a, destination: `http://a-${i}.test` }))
      for (const lane of lanes) await plan({ ...lane, due_for: 50, count: 20 })
      const others = Array.from({ length: 40 }, (_, i) => ({ ...b, tenant_id: `ten_b${i}` }))
      const own = others.map((lane, i) => ({ ...lane, destination: `http://b-${i}.test` }))
      for (const lane of own) await plan({ ...lane, due_for: 1 })
      const chosen = (await newCandidates().choose(provenSlots(...lanes), any)).flatMap(({ items }) => items)
      expect(chosen).toHaveLength(node_max - reserve)
      expect(new Set(chosen.map(({ tenant_id }) => tenant_id)).size).toBe(41)
    })

    test('one by one, as they become free at one receiver, go to the tenants in turn', async () => {
      const shared = 'http://shared.test'
      const one = { tenant_id: 'ten_a', destination: shared }
      const two = { tenant_id: 'ten_b', destination: shared }
      await plan({ ...one, due_for: 50, count: 60 })
      await plan({ ...two, due_for: 1, count: 60 })
      const slots = provenSlots(one, two)
      const candidates = newCandidates()
      for (let i = 1; i < destination_max; i++) slots.take(one)
      const served: string[] = []
      for (let i = 0; i < 20; i++) {
        const [batch] = await candidates.choose(slots, any)
        served.push(batch!.tenant_id)
        answer(slots, batch!.items[0]!)
      }
      expect(served.filter((tenant_id) => tenant_id === 'ten_b').length).toBeGreaterThanOrEqual(8)
    })

    test('are not taken where there are none: 12 of one tenant for one destination, the rest waits', async () => {
      await plan({ ...a, count: 40 })
      const candidates = newCandidates()
      expect(await chooseAll(candidates, provenSlots(a))).toHaveLength(12)
      expect(candidates.waiting).toBe(28)
    })

    test('are not taken by work that is not wanted now', async () => {
      await plan({ ...a })
      await plan({ ...b })
      const slots = new Slots()
      const batches = await newCandidates().choose(slots, ({ tenant_id }) => tenant_id === 'ten_b')
      expect(batches.map(({ tenant_id }) => tenant_id)).toEqual(['ten_b'])
      expect(slots.free).toBe(node_max - 1)
    })

    test('are all taken: nothing is read at all', async () => {
      await plan({ ...b })
      const slots = new Slots()
      while (slots.free > 0) slots.take({ tenant_id: 'ten_a', destination: '' })
      const read: string[] = []
      bench.db.onRead = (name) => read.push(name)
      expect(await newCandidates().choose(slots, any)).toEqual([])
      expect(read).toEqual([])
    })
  })

  test('a batch is of one tenant and kind, and of 16 items at most', async () => {
    await plan({ ...a, destination: '', kind: 'timeout', count: 40 })
    await plan({ ...a, count: 1 })
    await plan({ ...b, destination: '', kind: 'timeout', count: 3 })
    const batches = await newCandidates().choose(new Slots(), any)
    const sizes = batches.map(({ tenant_id, kind, items }) => `${tenant_id} ${kind} ${items.length}`)
    expect(sizes.toSorted()).toEqual([
      ...['ten_a schedule 1', 'ten_a timeout 16', 'ten_a timeout 16', 'ten_a timeout 8', 'ten_b timeout 3'],
    ])
    for (const { tenant_id, kind, items } of batches) {
      expect(items.every((item) => item.tenant_id === tenant_id && item.kind === kind)).toBe(true)
    }
  })

  describe('behind a window full of older work', () => {
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
      const slots = new Slots()
      for (const each of dead) if (slots.isFree(each)) slots.take(each)
      const chosen = await chooseAll(newCandidates(), slots)
      expect(chosen.map(({ tenant_id, destination }) => ({ tenant_id, destination }))).toEqual([
        { tenant_id: work.tenant_id, destination: work.destination },
      ])
    })
  })

  describe('however many tenants and receivers there are', () => {
    const dead = { tenant_id: 'ten_dead', destination: 'http://dead.test' }
    const tomorrow = -86_400_000

    /** One tenant whose due work fills the window, at a receiver that never answers. */
    async function fillWindow(): Promise<Slots> {
      await plan({ ...dead, due_for: 9_000, count: window_rows_max + 100 })
      const slots = new Slots()
      slots.take(dead)
      return slots
    }

    /** How many looks it takes until all of these have been started; each has its own bound. */
    async function looksUntil(slots: Slots, tenants: string[], looks_max: number): Promise<number> {
      const candidates = newCandidates()
      const missing = new Set(tenants)
      for (let look = 1; look <= looks_max; look++) {
        const reads: string[] = []
        bench.db.onRead = (name) => reads.push(name)
        for (const item of await chooseAll(candidates, slots)) {
          missing.delete(item.tenant_id)
          answer(slots, item)
        }
        const read = (name: string) => reads.filter((other) => other === name).length
        expect(read('outbox.due_of_tenant')).toBeLessThanOrEqual(64 * read('outbox.due'))
        expect(read('outbox.due_in_lane')).toBeLessThanOrEqual(32 * read('outbox.due'))
        if (missing.size === 0) return look
        bench.clock.advance(window_fresh_ms)
      }
      return Number.POSITIVE_INFINITY
    }

    test("another tenant's work is found at once beside 5,000 receivers of work to come", async () => {
      const slots = await fillWindow()
      await bench.db.write(async (tx) => {
        for (let i = 0; i < 5_000; i++)
          await insert(tx, { ...dead, destination: `http://far-${i}.test`, due_for: tomorrow })
      })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      expect(await looksUntil(slots, ['ten_z'], 3)).toBe(1)
    })

    test("and the same tenant's own at another receiver after a lap of 500 receivers a look", async () => {
      const slots = await fillWindow()
      await bench.db.write(async (tx) => {
        for (let i = 0; i < 1_100; i++)
          await insert(tx, { ...dead, destination: `http://far-${i}.test`, due_for: tomorrow })
      })
      await plan({ tenant_id: 'ten_dead', destination: 'http://z.test' })
      expect(await looksUntil(slots, ['ten_dead'], 9)).toBe(3)
    })

    // 1,000 tenants a look.
    const far: [count: number, looks: number][] = [
      [998, 1],
      [999, 2],
      [1_500, 2],
    ]
    test.each(far)('beside %d tenants with work to come: looks %d', async (count, looks) => {
      const slots = await fillWindow()
      await bench.db.write(async (tx) => {
        for (let i = 0; i < count; i++) {
          const tenant_id = `ten_far${String(i).padStart(4, '0')}`
          await tx.run(NAME_TENANT, { tenant_id })
          await insert(tx, { tenant_id, destination: `http://far-${i}.test`, due_for: tomorrow })
        }
      })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      expect(await looksUntil(slots, ['ten_z'], 5)).toBe(looks)
    })

    test('everybody with due work has a turn, and nobody waits 100 ms while others are served', async () => {
      const slots = await fillWindow()
      const tenants = Array.from({ length: 450 }, (_, i) => `ten_b${i}`)
      for (const tenant_id of tenants) await plan({ tenant_id, destination: `http://${tenant_id}.test` })
      // 255 places: the rest once these are free again.
      expect(await looksUntil(slots, tenants, 9)).toBe(2)
    })

    test('a tenant with 200 dead receivers keeps none of its own from a turn', async () => {
      const lanes = Array.from({ length: 200 }, (_, i) => ({ ...dead, destination: `http://dead-${i}.test` }))
      for (const lane of lanes) await plan({ ...lane, due_for: 9_000, count: 6 })
      const own = Array.from({ length: 150 }, (_, i) => `http://own-${i}.test`)
      for (const destination of own) await plan({ ...dead, destination })
      const slots = new Slots()
      for (const lane of lanes) slots.take(lane)
      const candidates = newCandidates()
      const served = new Set<string>()
      for (let look = 0; look < 4; look++) {
        for (const item of await chooseAll(candidates, slots)) {
          served.add(item.destination)
          answer(slots, item)
        }
        bench.clock.advance(window_fresh_ms)
      }
      expect([...served].toSorted()).toEqual(own.toSorted())
    })

    test('40 tenants that fill it at a dead receiver have a turn for their own second one', async () => {
      const tenants = Array.from({ length: 40 }, (_, i) => `ten_a${i}`)
      const slots = new Slots()
      for (const tenant_id of tenants) {
        const lane = { ...dead, tenant_id, destination: `http://dead-${tenant_id}.test` }
        await plan({ ...lane, due_for: 9_000, count: 30 })
        slots.take(lane)
        await plan({ tenant_id, destination: `http://own-${tenant_id}.test` })
      }
      expect(await looksUntil(slots, tenants, 5)).toBe(1)
    })

    test('work of a tenant that waits for deletion fills no look, and is told', async () => {
      await plan({ ...dead, due_for: 9_000, count: window_rows_max + 100 })
      await plan({ tenant_id: 'ten_z', destination: 'http://z.test' })
      await bench.write(`update tenants set status = 'pending_deletion' where tenant_id = 'ten_dead'`)
      try {
        const candidates = newCandidates()
        const reads: string[] = []
        bench.db.onRead = (name) => reads.push(name)
        const chosen = await chooseAll(candidates, new Slots())
        expect(chosen.map(({ tenant_id }) => tenant_id)).toEqual(['ten_z'])
        expect(candidates.takeLate()).toEqual(['ten_dead'])
        expect(candidates.takeLate()).toEqual([])
        expect([candidates.waiting, candidates.hasBacklog]).toEqual([0, true])
        expect(reads).not.toContain('outbox.due_in_lane')
      } finally {
        await bench.write(`update tenants set status = 'active' where tenant_id = 'ten_dead'`)
      }
    })
  })

  describe('the window', () => {
    const reads = () => {
      const names: string[] = []
      bench.db.onRead = (name) => names.push(name)
      return names
    }

    test('serves rounds without another look, while it has what can be started', async () => {
      await plan({ ...a, count: 40 })
      const candidates = newCandidates()
      const slots = provenSlots(a)
      const names = reads()
      for (let i = 0; i < 40; i++) {
        const batches = await candidates.choose(slots, any)
        for (const { items } of batches) for (const item of items) answer(slots, item)
        await lease(batches)
        if (candidates.waiting === 0) break
      }
      expect(names).toEqual(['outbox.due'])
    })

    test('that holds nothing to start is read anew after 100 ms, not before', async () => {
      await plan({ ...a, count: 3 })
      const candidates = newCandidates()
      const slots = new Slots()
      await chooseAll(candidates, slots)
      await plan({ ...b })
      const names = reads()
      bench.clock.advance(window_fresh_ms - 1)
      expect(await candidates.choose(slots, any)).toEqual([])
      expect(names).toEqual([])
      bench.clock.advance(1)
      expect((await candidates.choose(slots, any)).map(({ tenant_id }) => tenant_id)).toEqual(['ten_b'])
      expect(names).toEqual(['outbox.due'])
    })

    test('that is empty is read at once', async () => {
      const candidates = newCandidates()
      expect(await candidates.choose(new Slots(), any)).toEqual([])
      await plan({ ...a })
      expect(await candidates.choose(new Slots(), any)).toHaveLength(1)
    })
  })
})
