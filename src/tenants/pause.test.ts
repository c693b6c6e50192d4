import { afterEach, beforeAll, describe, expect, jest, test } from 'bun:test'
import { failStatementsOf } from '../../test/support/away.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf, known_kinds, type TestNode } from '../../test/support/job-bench.ts'
import { checkpoint, manySchedules, schedule } from '../../test/support/job-features.ts'
import { purgeStep } from '../../test/support/maintenance.ts'
import { until } from '../../test/support/patience.ts'
import { count_lock_waits } from '../../test/support/postgres.ts'
import { randomFrom } from '../../test/support/random.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { anyDue } from '../jobs/due-store.ts'
import { lease_ms } from '../jobs/job.ts'
import * as store from '../jobs/store.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from './service.ts'
import { restore as restoreIn } from './store.ts'
import { purge_grace_ms } from './tenant.ts'

const pause_rows_max = 500
const step_rows_max = 8 * pause_rows_max
const tenants_a_step_max = 8

forEachDatabase('the jobs of a tenant that is pending deletion', (databases) => {
  let bench: Bench
  const nodes: TestNode[] = []
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(async () => {
    bench.network.answer = () => 204
    for (const node of nodes.splice(0)) await node.stop()
    await bench.clear()
    await bench.write(`update tenants set status = 'active', purge_at = null, pause_pending = 0`)
  })

  const now = () => bench.clock.now()
  const adminOf = (caller: AgentCaller) => ({ ...caller, kind: 'admin' as const })
  const remove = (caller: AgentCaller) =>
    tenants.remove(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
  const restore = (caller: AgentCaller) =>
    tenants.restore(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)

  /** Work that falls due one millisecond after the other, from `now` on. */
  function fill({ tenant_id }: AgentCaller, count: number): Promise<number> {
    return bench.write(
      `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
       insert into jobs
         (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused)
       select :tenant_id, 'schedule', 'sch_' || n, 'evt_' || n, 'http://h.test', :now + n, 0, 0, 0, 0
         from numbers`,
      { tenant_id, count, now: now() - 1 },
    )
  }

  interface State {
    paused: number
    active: number
    pending: number
  }

  async function stateOf({ tenant_id }: AgentCaller): Promise<State> {
    const rows = await bench.jobs(tenant_id)
    const [tenant] = await bench.rows<{ pause_pending: number }>(
      'select pause_pending from tenants where tenant_id = :tenant_id',
      { tenant_id },
    )
    const paused = rows.filter((row) => row.paused === 1).length
    return { paused, active: rows.length - paused, pending: tenant!.pause_pending }
  }

  /** Steps until nothing is left anywhere; returns how many that took. */
  async function pauseAll(): Promise<number> {
    let after: string | null = ''
    let steps = 0
    for (; after !== null; steps++)
      after = await tenants.pauseOrResumeStep(bench.db, bench.dependencies, after)
    return steps
  }

  function newNode(internal: boolean): TestNode {
    const node = bench.node({ internal })
    nodes.push(node)
    return node
  }

  const sizes: [count: number, paused: number, active: number][] = [
    [0, 0, 0],
    [pause_rows_max - 1, pause_rows_max - 1, 0],
    [pause_rows_max, pause_rows_max, 0],
    [pause_rows_max + 1, pause_rows_max, 1],
  ]
  test.each(sizes)('of %d rows: %d are paused with the deletion, %d later', async (count, paused, active) => {
    const caller = await bench.tenant()
    if (count > 0) await fill(caller, count)
    await remove(caller)
    const at_once = await stateOf(caller)
    expect({ paused: at_once.paused, active: at_once.active }).toEqual({ paused, active })
    // Exactly as many as one takes: whether there is more is seen when the next one is begun.
    const more = count >= pause_rows_max ? 1 : 0
    expect([at_once.pending, bench.pauses]).toEqual([more, more])
    await pauseAll()
    expect(await stateOf(caller)).toEqual({ paused: count, active: 0, pending: 0 })

    await restore(caller)
    expect(await stateOf(caller)).toMatchObject({ paused: active, active: paused })
    expect(bench.pauses).toBe(2 * more)
    await pauseAll()
    expect(await stateOf(caller)).toEqual({ paused: 0, active: count, pending: 0 })
  })

  test('is paused and resumed the earliest first, 4,000 rows a step', async () => {
    const caller = await bench.tenant()
    const count = pause_rows_max + step_rows_max + 1
    await fill(caller, count)
    const turned = async (paused: number) =>
      (await bench.jobs(caller.tenant_id))
        .filter((row) => row.paused === paused)
        .map(({ next_at }) => next_at - now())
        .toSorted((one, other) => one - other)
    const first = (length: number) => Array.from({ length }, (_, i) => i)
    for (const [change, paused] of [
      [remove, 1],
      [restore, 0],
    ] as const) {
      await change(caller)
      expect(await turned(paused)).toEqual(first(pause_rows_max))
      await tenants.pauseOrResumeStep(bench.db, bench.dependencies, '')
      expect(await turned(paused)).toEqual(first(pause_rows_max + step_rows_max))
      await pauseAll()
      expect(await turned(paused)).toEqual(first(count))
    }
  })

  test('takes turns with that of others: much of one does not delay little of another', async () => {
    const [much, little] = [await bench.tenant(), await bench.tenant()]
    await fill(much, 2 * step_rows_max)
    await fill(little, 2 * pause_rows_max)
    for (const caller of [much, little]) await remove(caller)
    await tenants.pauseOrResumeStep(bench.db, bench.dependencies, '')
    expect(await stateOf(little)).toEqual({ paused: 2 * pause_rows_max, active: 0, pending: 0 })
    expect((await stateOf(much)).active).toBeGreaterThan(pause_rows_max)
    await pauseAll()
    expect(await stateOf(much)).toEqual({ paused: 2 * step_rows_max, active: 0, pending: 0 })
  })

  test('is paused for any number of tenants, eight a step', async () => {
    const callers = []
    for (let i = 0; i < 2 * tenants_a_step_max + 1; i++) callers.push(await bench.tenant())
    for (const caller of callers) {
      await fill(caller, pause_rows_max + 1)
      await remove(caller)
    }
    // Two full steps, one of the rest, which ends the cycle, and one that finds nothing.
    expect(await pauseAll()).toBe(4)
    for (const caller of callers) {
      expect(await stateOf(caller)).toEqual({ paused: pause_rows_max + 1, active: 0, pending: 0 })
    }
  })

  describe('after a change of mind with half of it done', () => {
    const ways: [way: string, moves: ('remove' | 'restore' | 'step')[], paused: boolean][] = [
      ['delete, restore', ['remove', 'restore'], false],
      ['delete, step, restore', ['remove', 'step', 'restore'], false],
      ['delete, restore, delete', ['remove', 'restore', 'remove'], true],
      ['delete, step, restore, step, delete', ['remove', 'step', 'restore', 'step', 'remove'], true],
      ['delete, step, delete', ['remove', 'step', 'remove'], true],
      ['delete, step, restore, delete, restore', ['remove', 'step', 'restore', 'remove', 'restore'], false],
    ]
    test.each(ways)('follows the last word: %s', async (_, moves, paused) => {
      const caller = await bench.tenant()
      const count = pause_rows_max + step_rows_max + 200
      await fill(caller, count)
      const verbs = {
        remove,
        restore,
        step: () => tenants.pauseOrResumeStep(bench.db, bench.dependencies, ''),
      }
      for (const move of moves) await verbs[move](caller)
      expect((await stateOf(caller)).pending).toBe(1)
      await pauseAll()
      const [at_rest, active] = paused ? [count, 0] : [0, count]
      expect(await stateOf(caller)).toEqual({ paused: at_rest, active, pending: 0 })
    })

    test('and after many at once, with steps of three nodes among them, none is forgotten', async () => {
      const random = randomFrom(20_260_101)
      const callers = [await bench.tenant(), await bench.tenant()]
      for (const caller of callers) await fill(caller, 3 * pause_rows_max)
      const verbs = [
        remove,
        restore,
        () => tenants.pauseOrResumeStep(bench.db, bench.dependencies, ''),
        schedule.bind(null, bench),
      ]
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
      await Promise.all([pauseAll(), pauseAll(), pauseAll()])
      await pauseAll()
      for (const caller of callers) {
        const { paused, active, pending } = await stateOf(caller)
        expect([paused, pending]).toEqual([0, 0])
        expect(active).toBeGreaterThanOrEqual(3 * pause_rows_max)
      }
    })
  })

  describe('when the node dies half-way', () => {
    const halves: [what: string, failing: string][] = [
      ['in the middle of a chunk', 'jobs.pause'],
      ['at the end of the last', 'tenants.end_pause_pending'],
    ]
    test.each(halves)('%s, is continued by the next node', async (_, failing) => {
      const caller = await bench.tenant()
      const count = 3 * pause_rows_max + 1
      await fill(caller, count)
      await remove(caller)
      bench.db.failing.add(failing)
      await expect(pauseAll()).rejects.toThrow(`${failing} fails`)
      expect((await stateOf(caller)).pending).toBe(1)
      bench.db.failing.clear()
      await pauseAll()
      expect(await stateOf(caller)).toEqual({ paused: count, active: 0, pending: 0 })
    })

    test('after a restore, still runs at the next tick', async () => {
      const caller = await bench.tenant()
      const count = pause_rows_max + 60
      await manySchedules(bench, caller, count, (i) => ({ callback_url: `http://h-${i % 40}.test/` }))
      await remove(caller)
      await pauseAll()
      bench.clock.advance(60_000)
      await restore(caller)
      expect(await stateOf(caller)).toEqual({ paused: 60, active: pause_rows_max, pending: 1 })
      bench.network.answer = () => 204
      expect(await newNode(false).tick()).toMatchObject({ schedules: { due: count, fired: count } })
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
    })

    test('is paused at the next tick, too', async () => {
      const caller = await bench.tenant()
      await fill(caller, 3 * pause_rows_max)
      await remove(caller)
      await newNode(false).tick()
      expect(await stateOf(caller)).toEqual({ paused: 3 * pause_rows_max, active: 0, pending: 0 })
      expect(bench.network.sent).toEqual([])
    })

    test('and it fails in a tick, the tick reports it and runs the jobs of others', async () => {
      const [caller, other] = [await bench.tenant(), await bench.tenant()]
      await fill(caller, 2 * pause_rows_max)
      await remove(caller)
      const { id } = await schedule(bench, other)
      bench.network.answer = () => 204
      bench.db.failing.add('jobs.pause')
      await newNode(false).tick()
      expect(bench.errors.map(String)).toContain('Error: jobs.pause fails')
      expect(await schedules.read(bench.db, other.tenant_id, id)).toMatchObject({ status: 'fired' })
      expect(await stateOf(caller)).toMatchObject({ active: pause_rows_max, pending: 1 })
    })
  })

  test.each([
    ['internal', true],
    ['external', false],
  ])('is paused by itself once the timer is asked (TICK=%s)', async (_, internal) => {
    const caller = await bench.tenant()
    await fill(caller, 2 * step_rows_max)
    await remove(caller)
    const node = newNode(internal)
    for (let told = 0; told < 5; told++) node.timer.pauseOrResume()
    await until(async () => (await stateOf(caller)).pending === 0)
    expect(await stateOf(caller)).toEqual({ paused: 2 * step_rows_max, active: 0, pending: 0 })
    expect([bench.network.sent, bench.errors]).toEqual([[], []])
  })

  test('is continued after 5 s by a node that was not asked', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * step_rows_max)
    await remove(caller)
    jest.useFakeTimers()
    try {
      newNode(true).start()
      // Statements that run meanwhile are answered before they time out.
      for (let ms = 0; ms < 5_000; ms += 100) {
        jest.advanceTimersByTime(100)
        await bench.db.quiet()
      }
    } finally {
      jest.useRealTimers()
    }
    // A flush or a checkpoint that began by the other clock seems to take very long, until it has ended.
    await until(() => bench.db.trouble() === null)
    await until(async () => (await stateOf(caller)).pending === 0)
    expect(await stateOf(caller)).toEqual({ paused: 2 * step_rows_max, active: 0, pending: 0 })
    expect(bench.errors).toEqual([])
  })

  test('stays as it is once the timer has stopped', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * pause_rows_max)
    await remove(caller)
    const node = newNode(true)
    await node.stop()
    node.timer.pauseOrResume()
    await bench.db.quiet()
    expect(await stateOf(caller)).toEqual({ paused: pause_rows_max, active: pause_rows_max, pending: 1 })
  })

  test('is not leased while it is not paused yet, and not waited for', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * pause_rows_max)
    bench.clock.advance(60_000)
    await remove(caller)
    const ids = (await bench.jobs(caller.tenant_id))
      .filter(({ paused }) => paused === 0)
      .map(({ source_id }) => source_id)
    expect(ids).toHaveLength(pause_rows_max)
    const leased = await bench.db.write((tx) =>
      store.lease(tx, caller.tenant_id, kindOf('schedule'), ids.slice(0, 16), tx.now + lease_ms),
    )
    expect(leased).toEqual([])
    expect(await anyDue(bench.db, now(), known_kinds)).toBe(false)
  })

  // The search looks past 1,000 rows before the work of others.
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
      expect(await anyDue(bench.db, now(), known_kinds)).toBe(due)
    },
  )

  describe('that a late request puts in', () => {
    async function late(): Promise<{ caller: AgentCaller; id: string }> {
      const caller = await bench.tenant()
      await remove(caller)
      const { id } = await schedule(bench, caller)
      expect(await stateOf(caller)).toEqual({ paused: 0, active: 1, pending: 0 })
      return { caller, id }
    }

    test('is found when it is due, not sent, and paused; it runs after a restore', async () => {
      const { caller, id } = await late()
      bench.network.answer = () => 204
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect([bench.network.sent, bench.pauses]).toEqual([[], 1])
      expect(await stateOf(caller)).toEqual({ paused: 0, active: 1, pending: 1 })
      await bench.dispatch(worker)
      expect(bench.pauses).toBe(1)
      await pauseAll()
      expect(await stateOf(caller)).toEqual({ paused: 1, active: 0, pending: 0 })
      await restore(caller)
      await bench.dispatch(worker)
      expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
    })

    test('and that a restore comes before, is simply due', async () => {
      const { caller, id } = await late()
      await restore(caller)
      await tenants.pauseStragglers(bench.db, bench.dependencies, [caller.tenant_id])
      expect([bench.pauses, (await stateOf(caller)).pending]).toEqual([0, 0])
      bench.network.answer = () => 204
      await bench.dispatch(bench.worker())
      expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
    })

    test('is noted for each tenant, also behind one that fails', async () => {
      const [failing, other] = [await late(), await late()].map(({ caller }) => caller)
      const fails = failStatementsOf(bench.db, failing!.tenant_id)
      const ids = [failing!.tenant_id, other!.tenant_id]
      await expect(tenants.pauseStragglers(bench.db, bench.dependencies, ids)).rejects.toThrow('is away')
      fails.mockRestore()
      expect([(await stateOf(failing!)).pending, (await stateOf(other!)).pending]).toEqual([0, 1])
    })

    test('keeps nothing waiting when the mark cannot be written', async () => {
      await late()
      const other = await schedule(bench, await bench.tenant())
      bench.db.failing.add('tenants.mark_stragglers')
      await bench.dispatch(bench.worker())
      expect(bench.errors.map(String)).toContain('Error: tenants.mark_stragglers fails')
      expect(bench.network.held).toHaveLength(1)
      expect(other.status).toBe('pending')
    })
  })

  test('is deleted by a deletion that comes while its restore is under way', async () => {
    const caller = await bench.tenant()
    const { tenant_id } = caller
    await remove(caller)
    const [restored, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const restoring = bench.db.write(async (tx) => {
      await restoreIn(tx, tenant_id)
      restored.resolve()
      await released.promise
    })
    await restored.promise
    let is_answered = false
    const removing = remove(caller).finally(() => {
      is_answered = true
    })
    if (databases.engine === 'postgres')
      await until(async () => is_answered || (await bench.rows<{ n: number }>(count_lock_waits))[0]!.n > 0)
    released.resolve()
    const [answer] = await Promise.all([removing, restoring])
    expect([answer.status, answer.purge_at]).toEqual(['pending_deletion', now() + purge_grace_ms])
    expect((await tenants.find(bench.db, tenant_id))!.status).toBe('pending_deletion')
  })

  test('is purged in any state, and nothing of it is left', async () => {
    const caller = await bench.tenant()
    await fill(caller, 2 * pause_rows_max)
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
      await tenants.pauseOrResumeStep(bench.db, bench.dependencies, '')
    }
    expect(purged).toEqual([caller.tenant_id])
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
    expect(await pauseAll()).toBe(1)
  })
})
