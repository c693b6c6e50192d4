import { afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { approve, checkpoint, schedule } from '../../test/support/job-features.ts'
import * as schedules from '../schedules/service.ts'

forEachDatabase('work whose name could not be looked up yet', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const attempts = () => bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])
  const untried_again_ms = 500

  test('is put back, was no attempt, and is due again half a second later', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    const worker = bench.worker()
    await bench.dispatch(worker)
    await bench.settle('untried')
    const again_at = bench.clock.now() + untried_again_ms
    const [row] = await bench.jobs(caller.tenant_id)
    expect([row!.attempts, row!.first_attempt_at, row!.lease_until, row!.next_at]).toEqual([
      0,
      null,
      0,
      again_at,
    ])
    expect(bench.woken).toContain(again_at)
    await bench.dispatch(worker)
    expect(attempts()).toEqual(['1'])
    bench.clock.advance(untried_again_ms)
    await worker.dispatchNew()
    await bench.db.quiet()
    await bench.drain()
    expect(attempts()).toEqual(['1', '1'])
    expect(new Set(bench.network.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  test('has its last attempt still', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    for (const verdict of [503, 503, 'untried', 204] as const) {
      bench.clock.advance(60_000)
      await worker.dispatchNew()
      await bench.db.quiet()
      await bench.settle(verdict)
    }
    expect(attempts()).toEqual(['1', '2', '3', '3'])
    expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
  })

  test('keeps the time that a PATCH gave it meanwhile', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    await bench.dispatch(bench.worker())
    const fire_at = bench.clock.now() + 3_600_000
    await schedules.update(bench.db, caller, bench.dependencies, id, { fire_at })
    await bench.settle('untried')
    const [row] = await bench.jobs(caller.tenant_id)
    expect([row!.next_at, row!.attempts]).toEqual([fire_at, 0])
  })

  test('is looked for a second later where no timer does it (TICK=external)', async () => {
    const caller = await bench.tenant()
    const { id } = await checkpoint(bench, caller)
    await approve(bench, caller, id)
    await bench.dispatch(bench.worker({ internal: false }))
    const set = spyOn(globalThis, 'setTimeout')
    try {
      await bench.settle('untried')
      const later = set.mock.calls.filter(([, ms]) => ms === 1_000).map(([callback]) => callback)
      expect(later).toHaveLength(1)
      bench.clock.advance(1_000)
      ;(later[0] as () => void)()
      await bench.db.quiet()
      expect(attempts()).toEqual(['1', '1'])
    } finally {
      set.mockRestore()
    }
  })
})
