import { afterEach, beforeAll, describe, expect, jest, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { maintenance, purgeStep } from '../../test/support/maintenance.ts'
import { randomFrom } from '../../test/support/random.ts'
import { Bench } from '../../test/support/work-engine.ts'
import { checkpoint, manySchedules, schedule } from '../../test/support/work-features.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { lease_ms } from '../jobs/job.ts'
import * as outbox from '../jobs/service.ts'
import { Ticker } from '../jobs/timer.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from './service.ts'
import { purge_grace_ms } from './tenant.ts'

const rest_rows_max = 500
const step_rows_max = 8 * rest_rows_max
const tenants_a_step_max = 8

forEachDatabase('the work of a tenant that waits for deletion', (databases) => {
  let bench: Bench
  const tickers: Ticker[] = []
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(async () => {
    bench.network.answer = () => 204
    for (const ticker of tickers.splice(0)) await ticker.stop()
    await bench.clear()
    await bench.write(`update tenants set status = 'active', purge_at = null, rest_pending = 0`)
  })

  const now = () => bench.clock.now()
  const adminOf = (caller: AgentCaller) => ({ ...caller, kind: 'admin' as const })
  const remove = (caller: AgentCaller) =>
    tenants.remove(bench.db, bench.services, adminOf(caller), caller.tenant_id)
  const restore = (caller: AgentCaller) =>
    tenants.restore(bench.db, bench.services, adminOf(caller), caller.tenant_id)

  /** Work that falls due one millisecond after the other, from `now` on. */
  function fill({ tenant_id }: AgentCaller, count: number): Promise<number> {
    return bench.write(
      `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
       insert into outbox
         (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, resting)
       select :tenant_id, 'schedule', 'sch_' || n, 'evt_' || n, 'http://h.test', :now + n, 0, 0, 0, 0
         from numbers`,
      { tenant_id, count, now: now() - 1 },
    )
  }

  interface State {
    resting: number
    awake: number
    pending: number
  }

  async function stateOf({ tenant_id }: AgentCaller): Promise<State> {
    const rows = await bench.outbox(tenant_id)
    const [tenant] = await bench.rows<{ rest_pending: number }>(
      'select rest_pending from tenants where tenant_id = :tenant_id',
      { tenant_id },
    )
    const resting = rows.filter((row) => row.resting === 1).length
    return { resting, awake: rows.length - resting, pending: tenant!.rest_pending }
  }

  /** Steps until nothing is left anywhere; answers how many that took. */
  async function restAll(): Promise<number> {
    let after: string | null = ''
    let steps = 0
    for (; after !== null; steps++) after = await tenants.restStep(bench.db, after)
    return steps
  }

  function newTicker(internal: boolean): Ticker {
    const engine = bench.engine({ internal })
    const ticker = new Ticker({
      ...{ db: bench.db, clock: bench.clock, engine, internal },
      onError: (error) => bench.errors.push(error),
      maintenance: maintenance(bench.db),
    })
    tickers.push(ticker)
    return ticker
  }

  const sizes: [count: number, resting: number, awake: number][] = [
    [0, 0, 0],
    [rest_rows_max - 1, rest_rows_max - 1, 0],
    [rest_rows_max, rest_rows_max, 0],
    [rest_rows_max + 1, rest_rows_max, 1],
  ]
  test.each(sizes)('of %d rows: %d rest with the deletion, %d later', async (count, resting, awake) => {
    const caller = await bench.tenant()
    if (count > 0) await fill(caller, count)
    await remove(caller)
    const at_once = await stateOf(caller)
    expect({ resting: at_once.resting, awake: at_once.awake }).toEqual({ resting, awake })
    // Exactly as many as one takes: whether there is more is seen when the next one is begun.
    const more = count >= rest_rows_max ? 1 : 0
    expect([at_once.pending, bench.rests]).toEqual([more, more])
    await restAll()
    expect(await stateOf(caller)).toEqual({ resting: count, awake: 0, pending: 0 })

    await restore(caller)
    expect(await stateOf(caller)).toMatchObject({ resting: awake, awake: resting })
    expect(bench.rests).toBe(2 * more)
    await restAll()
    expect(await stateOf(caller)).toEqual({ resting: 0, awake: count, pending: 0 })
  })

  test('rests and is taken up the earliest first, 4,000 rows a step', async () => {
    const caller = await bench.tenant()
    const count = rest_rows_max + step_rows_max + 1
    await fill(caller, count)
    const turned = async (resting: number) =>
      (await bench.outbox(caller.tenant_id))
        .filter((row) => row.resting === resting)
        .map(({ next_at }) => next_at - now())
        .toSorted((one, other) => one - other)
    const first = (length: number) => Array.from({ length }, (_, i) => i)
    for (const [change, resting] of [
      [remove, 1],
      [restore, 0],
    ] as const) {
      await change(caller)
      expect(await turned(resting)).toEqual(first(rest_rows_max))
      await tenants.restStep(bench.db, '')
      expect(await turned(resting)).toEqual(first(rest_rows_max + step_rows_max))
      await restAll()
      expect(await turned(resting)).toEqual(first(count))
    }
  })

  test('takes turns with that of others: much of one does not hold up little of another', async () => {
    const [much, little] = [await bench.tenant(), await bench.tenant()]
    await fill(much, 2 * step_rows_max)
    await fill(little, 2 * rest_rows_max)
    for (const caller of [much, little]) await remove(caller)
    await tenants.restStep(bench.db, '')
    expect(await stateOf(little)).toEqual({ resting: 2 * rest_rows_max, awake: 0, pending: 0 })
    expect((await stateOf(much)).awake).toBeGreaterThan(rest_rows_max)
    await restAll()
    expect(await stateOf(much)).toEqual({ resting: 2 * step_rows_max, awake: 0, pending: 0 })
  })

  test('comes to rest for any number of tenants, eight a step', async () => {
    const callers = []
    for (let i = 0; i < 2 * tenants_a_step_max + 1; i++) callers.push(await bench.tenant())
    for (const caller of callers) {
      await fill(caller, rest_rows_max + 1)
      await remove(caller)
    }
    // Two full steps, one of what is left, which ends the lap, and one that finds nothing.
    expect(await restAll()).toBe(4)
    for (const caller of callers) {
      expect(await stateOf(caller)).toEqual({ resting: rest_rows_max + 1, awake: 0, pending: 0 })
    }
  })

  describe('after a change of mind with half of it done', () => {
    const ways: [way: string, moves: ('remove' | 'restore' | 'step')[], resting: boolean][] = [
      ['delete, restore', ['remove', 'restore'], false],
      ['delete, step, restore', ['remove', 'step', 'restore'], false],
      ['delete, restore, delete', ['remove', 'restore', 'remove'], true],
      ['delete, step, restore, step, delete', ['remove', 'step', 'restore', 'step', 'remove'], true],
      ['delete, step, delete', ['remove', 'step', 'remove'], true],
      ['delete, step, restore, delete, restore', ['remove', 'step', 'restore', 'remove', 'restore'], false],
    ]
    test.each(ways)('follows the last word: %s', async (_, moves, resting) => {
      const caller = await bench.tenant()
      const count = rest_rows_max + step_rows_max + 200
      await fill(caller, count)
      const verbs = { remove, restore, step: () => tenants.restStep(bench.db, '') }
      for (const move of moves) await verbs[move](caller)
      expect((await stateOf(caller)).pending).toBe(1)
      await restAll()
      const [at_rest, awake] = resting ? [count, 0] : [0, count]
      expect(await stateOf(caller)).toEqual({ resting: at_rest, awake, pending: 0 })
    })

    test('and after many at once, with steps of three nodes among them, none is forgotten', async () => {
      const random = randomFrom(20_260_101)
      const callers = [await bench.tenant(), await bench.tenant()]
      for (const caller of callers) await fill(caller, 3 * rest_rows_max)
      const verbs = [remove, restore, () => tenants.restStep(bench.db, ''), schedule.bind(null, bench)]
      for (let round = 0; round < 6; round++) {
        const done = await Promise.allSettled(
          Array.from({ length: 10 }, () => {
            const verb = verbs[random(verbs.length)]!
            return verb(callers[random(callers.length)]!)
          }),
        )
        const refused = done.flatMap((end) => (end.status === 'rejected' ? [end.reason.code] : []))
        expect(refused).toEqual(refused.map(() => 'INVALID_STATE')) // a restore of an active tenant
      }
      for (const caller of callers) await restore(caller).catch(() => {})
      await Promise.all([restAll(), restAll(), restAll()])
      await restAll()
      for (const caller of callers) {
        const { resting, awake, pending } = await stateOf(caller)
        expect([resting, pending]).toEqual([0, 0])
        expect(awake).toBeGreaterThanOrEqual(3 * rest_rows_max)
      }
    })
  })

  describe('when the node dies half-way', () => {
    const halves: [what: string, failing: string][] = [
      ['in the middle of a chunk', 'outbox.rest'],
      ['at the end of the last', 'tenants.end_rest'],
    ]
    test.each(halves)('%s, is gone on with by whoever comes next', async (_, failing) => {
      const caller = await bench.tenant()
      const count = 3 * rest_rows_max + 1
      await fill(caller, count)
      await remove(caller)
      bench.db.failing.add(failing)
      await expect(restAll()).rejects.toThrow(`${failing} fails`)
      expect((await stateOf(caller)).pending).toBe(1)
      bench.db.failing.clear()
      await restAll()
      expect(await stateOf(caller)).toEqual({ resting: count, awake: 0, pending: 0 })
    })

    test('after a restore, runs at the next tick all the same', async () => {
      const caller = await bench.tenant()
      const count = rest_rows_max + 60
      await manySchedules(bench, caller, count, (i) => ({ callback_url: `http://h-${i % 40}.test/` }))
      await remove(caller)
      await restAll()
      bench.clock.advance(60_000)
      await restore(caller)
      expect(await stateOf(caller)).toEqual({ resting: 60, awake: rest_rows_max, pending: 1 })
      bench.network.answer = () => 204
      expect(await newTicker(false).tick()).toMatchObject({
        counts: { 'schedules.due': count, 'schedules.fired': count },
      })
      expect(await bench.outbox(caller.tenant_id)).toEqual([])
    })

    test('comes to rest at the next tick, too', async () => {
      const caller = await bench.tenant()
      await fill(caller, 3 * rest_rows_max)
      await remove(caller)
      await newTicker(false).tick()
      expect(await stateOf(caller)).toEqual({ resting: 3 * rest_rows_max, awake: 0, pending: 0 })
      expect(bench.network.sent).toEqual([])
    })

    test('and it fails in a tick, the tick tells it and does the work of others', async () => {
      const [caller, other] = [await bench.tenant(), await bench.tenant()]
      await fill(caller, 2 * rest_rows_max)
      await remove(caller)
      const { id } = await schedule(bench, other)
      bench.network.answer = () => 204
      bench.db.failing.add('outbox.rest')
      await newTicker(false).tick()
      expect(bench.errors.map(String)).toContain('Error: outbox.rest fails')
      expect(await schedules.read(bench.db, other.tenant_id, id)).toMatchObject({ status: 'fired' })
      expect(await stateOf(caller)).toMatchObject({ awake: rest_rows_max, pending: 1 })
    })
  })

  test.each([
    ['internal', true],
    ['external', false],
  ])('comes to rest by itself once the ticker is told (TICK=%s)', async (_, internal) => {
    const caller = await bench.tenant()
    await fill(caller, 2 * step_rows_max)
    await remove(caller)
    const ticker = newTicker(internal)
    for (let told = 0; told < 5; told++) ticker.rest()
    while ((await stateOf(caller)).pending === 1) await bench.db.quiet()
    expect(await stateOf(caller)).toEqual({ resting: 2 * step_rows_max, awake: 0, pending: 0 })
    expect([bench.network.sent, bench.errors]).toEqual([[], []])
  })

  test('is gone on with after 5 s by a node that is not told of it', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * step_rows_max)
    await remove(caller)
    jest.useFakeTimers()
    try {
      newTicker(true).start()
      jest.advanceTimersByTime(5_000)
    } finally {
      jest.useRealTimers()
    }
    while ((await stateOf(caller)).pending === 1) await bench.db.quiet()
    expect(await stateOf(caller)).toEqual({ resting: 2 * step_rows_max, awake: 0, pending: 0 })
    expect(bench.errors).toEqual([])
  })

  test('stays as it is once the ticker has stopped', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * rest_rows_max)
    await remove(caller)
    const ticker = newTicker(true)
    await ticker.stop()
    ticker.rest()
    await bench.db.quiet()
    expect(await stateOf(caller)).toEqual({ resting: rest_rows_max, awake: rest_rows_max, pending: 1 })
  })

  test('is not leased while it does not rest yet, and not waited for', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * rest_rows_max)
    bench.clock.advance(60_000)
    await remove(caller)
    const ids = (await bench.outbox(caller.tenant_id))
      .filter(({ resting }) => resting === 0)
      .map(({ source_id }) => source_id)
    expect(ids).toHaveLength(rest_rows_max)
    const leased = await bench.db.write((tx) =>
      outbox.lease(tx, caller.tenant_id, 'schedule', ids.slice(0, 16), tx.now + lease_ms),
    )
    expect(leased).toEqual([])
    expect(await outbox.anyDue(bench.db, now())).toBe(false)
  })

  // What stands before others' work is looked past, 1,000 rows of it.
  const before: [standing: number, with_other: boolean, due: boolean][] = [
    [999, false, false],
    [999, true, true],
    [1_000, false, true],
    [1_000, true, true],
  ]
  test.each(before)(
    'stands before that of others: %d rows, other work is due %p, a tick waits %p',
    async (standing, with_other, due) => {
      const caller = await bench.tenant()
      await fill(caller, standing)
      bench.clock.advance(60_000)
      if (with_other) await schedule(bench, await bench.tenant())
      const { tenant_id } = caller
      await bench.write(`update tenants set status = 'pending_deletion' where tenant_id = :tenant_id`, {
        tenant_id,
      })
      expect(await outbox.anyDue(bench.db, now())).toBe(due)
    },
  )

  describe('that a late request puts in', () => {
    async function late(): Promise<{ caller: AgentCaller; id: string }> {
      const caller = await bench.tenant()
      await remove(caller)
      const { id } = await schedule(bench, caller)
      expect(await stateOf(caller)).toEqual({ resting: 0, awake: 1, pending: 0 })
      return { caller, id }
    }

    test('is found when it is due, not sent, and put to rest; it runs after a restore', async () => {
      const { caller, id } = await late()
      bench.network.answer = () => 204
      const engine = bench.engine()
      await bench.pump(engine)
      expect([bench.network.sent, bench.rests]).toEqual([[], 1])
      expect(await stateOf(caller)).toEqual({ resting: 0, awake: 1, pending: 1 })
      await bench.pump(engine)
      expect(bench.rests).toBe(1)
      await restAll()
      expect(await stateOf(caller)).toEqual({ resting: 1, awake: 0, pending: 0 })
      await restore(caller)
      await bench.pump(engine)
      expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
    })

    test('and that a restore comes before, is simply due', async () => {
      const { caller, id } = await late()
      await restore(caller)
      await tenants.restLate(bench.db, bench.services, [caller.tenant_id])
      expect([bench.rests, (await stateOf(caller)).pending]).toEqual([0, 0])
      bench.network.answer = () => 204
      await bench.pump(bench.engine())
      expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
    })

    test('keeps nothing waiting when the mark cannot be written', async () => {
      await late()
      const other = await schedule(bench, await bench.tenant())
      bench.db.failing.add('tenants.mark_late')
      await bench.pump(bench.engine())
      expect(bench.errors.map(String)).toContain('Error: tenants.mark_late fails')
      expect(bench.network.held).toHaveLength(1)
      expect(other.status).toBe('pending')
    })
  })

  test('is purged in any state, and nothing of it is left', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * rest_rows_max)
    await checkpoint(bench, caller)
    await remove(caller)
    await schedule(bench, caller)
    expect((await stateOf(caller)).pending).toBe(1)
    bench.clock.advance(purge_grace_ms)
    const purged: string[] = []
    for (let more = true; more; ) {
      const step = await purgeStep(bench.db, now())
      purged.push(...step.purged)
      more = step.more
      await tenants.restStep(bench.db, '')
    }
    expect(purged).toEqual([caller.tenant_id])
    expect(await bench.outbox(caller.tenant_id)).toEqual([])
    expect(await restAll()).toBe(1)
  })
})
