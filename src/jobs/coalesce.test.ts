import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { withoutPatience } from '../../test/support/held-results.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { schedule } from '../../test/support/job-features.ts'
import * as schedules from '../schedules/service.ts'

forEachDatabase('work that falls due one after the other', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(async () => {
    bench.db.onStatement(null)
    await bench.clear()
  })

  const statements = () => {
    const names: string[] = []
    bench.db.onStatement((name) => names.push(name))
    return names
  }

  test('is not looked for at the end of an attempt, where the last look found all', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller)
    await bench.dispatch(bench.worker())
    const names = statements()
    await bench.settle(204)
    expect(names).toContain('schedules.fired')
    expect(names).not.toContain('jobs.due')
  })

  test('is looked for at the end of an attempt, where some of it waits', async () => {
    const caller = await bench.tenant()
    for (let i = 0; i < 3; i++) await schedule(bench, caller)
    await bench.dispatch(bench.worker())
    expect(bench.network.held).toHaveLength(1)
    await bench.drain()
    expect(bench.network.sent).toHaveLength(3)
  })

  test('is leased before the result of the work before it is settled, which waits for that', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    await bench.dispatch(worker)
    worker.expectDispatch(bench.clock.now() + 10)
    const names = statements()
    await withoutPatience(async () => {
      await bench.settle(204)
      await schedule(bench, caller)
      await worker.dispatchNew()
    })
    while ((await schedules.read(bench.db, caller.tenant_id, id)).status !== 'fired') await bench.db.quiet()
    expect(names.indexOf('jobs.lease')).toBeLessThan(names.indexOf('schedules.fired'))
  })

  test('does not keep a result waiting when it is not expected', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    await bench.dispatch(worker)
    worker.expectDispatch(bench.clock.now() + 25)
    await bench.settle(204)
    expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
  })

  test('does not keep a result waiting for long when none comes after all', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    const worker = bench.worker()
    await bench.dispatch(worker)
    worker.expectDispatch(bench.clock.now() + 10)
    await bench.settle(204)
    while ((await schedules.read(bench.db, caller.tenant_id, id)).status !== 'fired') await bench.db.quiet()
  })
})
