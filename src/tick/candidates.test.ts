import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/work-engine.ts'
import { idBound } from '../base/ids.ts'
import { unnamed } from '../db/db.ts'
import * as outbox from '../outbox/service.ts'
import type { WorkKind } from '../outbox/work.ts'
import { type Batch, type Candidate, Candidates } from './candidates.ts'
import { destination_max, node_max, Slots } from './slots.ts'

const window_rows_max = 1_000
const lanes_a_refill_max = 200
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
  function plan({ tenant_id, destination, due_for = 0, kind = 'schedule', count = 1 }: Work): Promise<void> {
    return bench.db.write(async (tx) => {
      await tx.run(NAME_TENANT, { tenant_id })
      for (let i = 0; i < count; i++) {
        const source_id = idBound('sch', ++made)
        const next_at = now() - due_for
        await outbox.plan(
          tx,
          { wake() {} },
          {
            ...{ tenant_id, kind, source_id, destination, next_at },
            event_id: `evt_${made}`,
          },
        )
      }
    })
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

  /** A slot table in which this lane has shown that it is answered. */
  function provenSlots(...lanes: { tenant_id: string; destination: string }[]): Slots {
    const slots = new Slots()
    for (const lane of lanes) {
      for (let i = 1; i < destination_max; i++) {
        slots.take(lane)
        slots.giveBack(lane, true)
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
      expect(chosen).toHaveLength(node_max)
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
        slots.giveBack(batch!.items[0]!, true)
      }
      expect(served.filter((tenant_id) => tenant_id === 'ten_b').length).toBeGreaterThanOrEqual(8)
    })

    test('are not taken where there are none: 16 for one destination, the rest waits', async () => {
      await plan({ ...a, count: 40 })
      const candidates = newCandidates()
      expect(await chooseAll(candidates, provenSlots(a))).toHaveLength(16)
      expect(candidates.waiting).toBe(24)
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

    test('every lane is met in turn, a bounded number each time', async () => {
      await plan({ ...a, due_for: 9_000, count: window_rows_max })
      const lanes = Array.from({ length: 2 * lanes_a_refill_max + 50 }, (_, i) => ({
        ...{ tenant_id: `ten_b${i}`, destination: `http://b-${i}.test` },
      }))
      for (const lane of lanes) await plan(lane)
      const candidates = newCandidates()
      const slots = new Slots()
      slots.take(a)
      const met: string[] = []
      for (let refill = 0; refill < 4; refill++) {
        let steps = 0
        bench.db.onRead = (name) => {
          if (name === 'outbox.next_lane') steps += 1
        }
        const batches = await candidates.choose(slots, any)
        expect(steps).toBeLessThanOrEqual(lanes_a_refill_max)
        await lease(batches)
        for (const item of batches.flatMap(({ items }) => items)) {
          met.push(item.tenant_id)
          slots.giveBack(item, true)
        }
        bench.clock.advance(window_fresh_ms)
      }
      expect(met.toSorted()).toEqual(lanes.map(({ tenant_id }) => tenant_id).toSorted())
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
        for (const { items } of batches) for (const item of items) slots.giveBack(item, true)
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
