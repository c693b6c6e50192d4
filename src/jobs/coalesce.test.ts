import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { withoutPatience } from '../../test/support/held-results.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { schedule } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { unnamedAcrossTenants, upkeep } from '../db/db.ts'
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

  const statusOf = async ({ tenant_id }: AgentCaller, id: string) =>
    (await schedules.read(bench.db, tenant_id, id)).status

  /** A schedule whose attempt is in flight, while more work is expected. */
  async function inFlight({ attempts_before = 0, expected_in_ms = 10 } = {}) {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller)
    await bench.write('update jobs set attempts = :attempts_before', { attempts_before })
    const worker = bench.worker()
    await bench.dispatch(worker)
    worker.expectDispatch(bench.clock.now() + expected_in_ms)
    return { caller, id, worker }
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

  const on_sqlite = databases.engine === 'sqlite'
  if (on_sqlite)
    test('is leased before the result of the work before it is settled, which waits for that', async () => {
      const { caller, id, worker } = await inFlight()
      const names = statements()
      await withoutPatience(async () => {
        await bench.settle(204)
        await schedule(bench, caller)
        await worker.dispatchNew()
      })
      await becomes(() => statusOf(caller, id), 'fired')
      expect(names.indexOf('jobs.lease')).toBeLessThan(names.indexOf('schedules.fired'))
    })

  test('does not keep a result waiting when it is not expected', async () => {
    const { caller, id } = await inFlight({ expected_in_ms: 25 })
    await bench.settle(204)
    expect(await schedules.read(bench.db, caller.tenant_id, id)).toMatchObject({ status: 'fired' })
  })

  test('does not keep a result waiting for long when none comes after all', async () => {
    const { caller, id } = await inFlight()
    await bench.settle(204)
    await becomes(() => statusOf(caller, id), 'fired')
  })

  test.each([
    ['the first of three attempts', 0, on_sqlite],
    ['the second of three attempts', 1, on_sqlite],
    ['a last attempt', 2, false],
  ])(
    'and the result of %s: it waits on SQLite, unless a crash would make a failure of it',
    async (_, attempts_before, waits) => {
      const { caller, id } = await inFlight({ attempts_before })
      await withoutPatience(async (timers) => {
        await bench.settle(204)
        expect(timers).toHaveLength(waits ? 1 : 0)
        expect(await statusOf(caller, id)).toBe(waits ? 'pending' : 'fired')
      })
      await becomes(() => statusOf(caller, id), 'fired')
    },
  )

  test('does not keep a result waiting when a look finds none', async () => {
    const { caller, id, worker } = await inFlight()
    await withoutPatience(async () => {
      await bench.settle(204)
      await worker.dispatchNew()
      await becomes(() => statusOf(caller, id), 'fired')
    })
  })

  if (!on_sqlite)
    test('and is left out by a lease, because its row is locked, is looked for when an attempt ends', async () => {
      const caller = await bench.tenant()
      const rows: { id: string }[] = []
      for (let i = 0; i < 3; i++)
        rows.push(await schedule(bench, caller, { callback_url: `http://h-${i}.test/` }))
      const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const holding = bench.db.write(upkeep, async (tx) => {
        const lock = 'update jobs set event_id = event_id where source_id = :source_id'
        await tx.run(unnamedAcrossTenants('test.lock', lock), { source_id: rows[1]!.id })
        locked.resolve()
        await released.promise
      })
      await locked.promise
      await bench.worker().dispatch()
      await until(() => bench.network.sent.length === 2)
      released.resolve()
      await holding
      await bench.settle(204, bench.network.held.slice(0, 1))
      await until(() => bench.network.sent.length === 3)
    })
})
