// When the timer searches for due jobs: the test runs its timers, so that nothing is sent by the poll unless it says so.

import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { type HeldTimer, withTimersHeld } from '../../test/support/held-results.ts'
import { Bench, type TestNode } from '../../test/support/job-bench.ts'
import { schedule } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { apart_ms_min, backlog_poll_ms, poll_ms } from './timer.ts'

forEachDatabase('the timer of due jobs', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  /** A timer of its own, whose searches for due jobs are counted and run when the test says so. */
  async function withHeldTimer(
    work: (timer: TestNode['timer'], timers: readonly HeldTimer[], looks: () => number) => Promise<void>,
  ): Promise<void> {
    let looks = 0
    bench.db.onRead = (name) => {
      if (name === 'jobs.due') looks += 1
    }
    const { timer } = bench.node({ internal: true })
    const isHeld = (ms: number) => (ms > 0 && ms <= apart_ms_min) || ms === backlog_poll_ms || ms === poll_ms
    await withTimersHeld(isHeld, async (timers) => {
      timer.start()
      await becomes(() => times(timers), [poll_ms])
      await work(timer, timers, () => looks)
      await timer.stop()
    })
  }
  const times = (timers: readonly HeldTimer[]) => timers.map(({ ms }) => ms)

  test('looks once for all that woke it within 10 ms of a look, 10 ms after that', async () => {
    await withHeldTimer(async (timer, timers, looks) => {
      bench.clock.advance(4)
      for (let woken = 0; woken < 3; woken++) timer.wake(bench.clock.now())
      expect([looks(), times(timers)]).toEqual([1, [apart_ms_min - 4]])
      bench.clock.advance(apart_ms_min - 4)
      timers[0]!.run()
      await becomes(() => [looks(), times(timers)], [2, [poll_ms]])
    })
  })

  test('looks again when it is woken while it looks', async () => {
    await withHeldTimer(async (timer, timers, looks) => {
      bench.clock.advance(poll_ms)
      bench.db.onRead = (name) => {
        if (name !== 'jobs.due') return
        bench.db.onRead = () => {}
        timer.wake(bench.clock.now())
      }
      timers[0]!.run()
      await becomes(() => times(timers), [apart_ms_min])
      let again = 0
      bench.db.onRead = (name) => {
        if (name === 'jobs.due') again += 1
      }
      timers[0]!.run()
      await becomes(() => again, 1)
      expect(looks()).toBe(1)
    })
  })

  test('sends what is enqueued after a look that found all, without the poll', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller, { callback_url: 'http://first.test/' })
    await withHeldTimer(async (timer, timers) => {
      await until(() => bench.network.sent.length === 1)
      await schedule(bench, caller, { callback_url: 'http://second.test/' })
      timer.wake(bench.woken.at(-1)!)
      expect(times(timers)).toEqual([apart_ms_min])
      timers[0]!.run()
      await until(() => bench.network.sent.length === 2)
      await becomes(() => times(timers), [poll_ms])
    })
  })

  test("looks for what fell due after the time that the database's clock has gone back to", async () => {
    await withHeldTimer(async (_, timers) => {
      await schedule(bench, await bench.tenant(), { fire_at: bench.clock.now() + poll_ms })
      bench.clock.advance(poll_ms)
      bench.db.onRead = (name) => {
        if (name !== 'jobs.due') return
        bench.db.onRead = () => {}
        bench.clock.jump(-5)
      }
      timers[0]!.run()
      await becomes(() => times(timers), [apart_ms_min])
      expect(bench.network.sent).toEqual([])
      bench.clock.advance(apart_ms_min)
      timers[0]!.run()
      await until(() => bench.network.sent.length === 1)
    })
  })

  if (databases.engine === 'postgres')
    test('looks again 100 ms later for what was left out because its row is locked', async () => {
      const { id } = await schedule(bench, await bench.tenant(), { fire_at: bench.clock.now() + poll_ms })
      await withHeldTimer(async (_, timers) => {
        const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        const holding = bench.db.write(upkeep, async (tx) => {
          const lock = 'update jobs set event_id = event_id where source_id = :id'
          await tx.run(unnamedAcrossTenants('test.lock', lock), { id })
          locked.resolve()
          await released.promise
        })
        await locked.promise
        bench.clock.advance(poll_ms)
        timers[0]!.run()
        await becomes(() => times(timers), [backlog_poll_ms])
        released.resolve()
        await holding
        expect(bench.network.sent).toEqual([])
        bench.clock.advance(backlog_poll_ms)
        timers[0]!.run()
        await until(() => bench.network.sent.length === 1)
      })
    })
})
