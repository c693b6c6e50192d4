// When the timer of TICK=external searches for jobs that wait for no tick: the test runs its timers.

import { afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { type HeldTimer, withTimersHeld } from '../../test/support/held-results.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { approve, checkpoint, schedule } from '../../test/support/job-features.ts'
import { becomes } from '../../test/support/patience.ts'
import { second_ms } from '../base/clock.ts'
import type { AgentCaller } from '../contract/caller.ts'
import * as operations from '../dlq/operation-service.ts'
import * as dlq from '../dlq/service.ts'
import { idle_at } from './service.ts'
import { poll_ms } from './timer.ts'

forEachDatabase('the timer of a node with TICK=external', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  /** A timer of its own, which jobs wake as in a service. `pass` lets the time pass for which it is set. */
  async function withHeldTimer(
    work: (times: () => number[], pass: () => void) => Promise<void>,
  ): Promise<void> {
    const { timer } = bench.node({ internal: false })
    const waking = spyOn(bench.dependencies.jobs, 'wake').mockImplementation((...woken) =>
      timer.wake(...woken),
    )
    try {
      await withTimersHeld(
        (ms) => ms >= 100 && ms <= poll_ms,
        async (timers) => {
          timer.start()
          try {
            await work(
              () => timers.map(({ ms }) => ms),
              () => {
                const [{ ms, run }] = timers as [HeldTimer]
                bench.clock.advance(ms)
                run()
              },
            )
          } finally {
            await timer.stop() // or it would set timers in the tests that follow
          }
        },
      )
    } finally {
      waking.mockRestore()
    }
  }

  /** Discards so many dead letters of a cause. */
  async function discard(caller: AgentCaller, error: string, count: number, per_second: number) {
    const input = { payload: '1', error, workflow_id: null, lock_seconds: null }
    for (let i = 0; i < count; i++)
      await bench.db.write((tx) => dlq.capture(tx, caller, bench.dependencies.plans, input))
    const filter = { status: 'failed' as const, cause: error }
    const asked = { filter, ids: null, max: count }
    const matched = await operations.match(bench.db, caller.tenant_id, asked, bench.clock.now())
    const settings = { filter, ids_count: null, max: count, per_second }
    const { id } = await bench.db.write((tx) =>
      operations.start(tx, caller, bench.dependencies, 'discard', settings, matched),
    )
    return async () => (await operations.read(bench.db, caller.tenant_id, id)).done
  }

  /** A last look finds that nothing is to come. */
  async function ends(times: () => number[], pass: () => void): Promise<void> {
    await becomes(() => times().length, 1)
    pass()
    await bench.db.quiet()
    expect(times()).toEqual([])
  }

  test('makes each step of an operation at its time, and schedules wait for a tick', async () => {
    const caller = await bench.tenant()
    await withHeldTimer(async (times, pass) => {
      await schedule(bench, caller)
      await schedule(bench, caller, { fire_at: bench.clock.now() + 100 })
      expect(times()).toEqual([])
      const done = await discard(caller, 'boom', 3, 4)
      await becomes(times, [250])
      expect(await done()).toBe(1)
      pass()
      await becomes(times, [250])
      expect(await done()).toBe(2)
      pass()
      await becomes(done, 3)
      await ends(times, pass)
      expect(bench.network.sent).toEqual([])
    })
    expect(bench.errors).toEqual([])
  })

  test('goes on at its start with the steps of an operation and the callbacks of decisions, and schedules wait for a tick', async () => {
    const caller = await bench.tenant()
    const done = await discard(caller, 'boom', 2, 4)
    const before = bench.worker({ internal: false })
    await bench.dispatch(before)
    expect(await done()).toBe(1)
    await schedule(bench, caller)
    const { id } = await checkpoint(bench, caller)
    await approve(bench, caller, id)
    bench.network.answer = () => 204
    await withHeldTimer(async (times, pass) => {
      await becomes(times, [250])
      await becomes(
        () => bench.network.sent.map(({ headers }) => headers['x-waystation-event']),
        ['checkpoint.approved'],
      )
      pass()
      await becomes(done, 2)
    })
    expect(bench.errors).toEqual([])
  })

  test('is set for the earliest of them, and then for the next', async () => {
    const caller = await bench.tenant()
    await withHeldTimer(async (times, pass) => {
      const late = await discard(caller, 'late', 2, 2)
      await becomes(times, [500])
      const early = await discard(caller, 'early', 2, 4)
      await becomes(times, [250])
      pass()
      await becomes(early, 2)
      await becomes(times, [250])
      expect(await late()).toBe(1)
      pass()
      await becomes(late, 2)
    })
    expect(bench.errors).toEqual([])
  })

  test('searches once a second for one that is further away, also after a failed search', async () => {
    const caller = await bench.tenant()
    await withHeldTimer(async (times, pass) => {
      const done = await discard(caller, 'slow', 2, 0.4)
      await becomes(times, [poll_ms])
      bench.db.onRead = (name) => {
        if (name !== 'jobs.next_at_once') return
        bench.db.onRead = () => {}
        throw new Error('the database is away')
      }
      pass()
      await becomes(times, [poll_ms])
      expect(bench.errors.splice(0).map(String)).toEqual(['Error: the database is away'])
      pass()
      await becomes(times, [500])
      expect(await done()).toBe(1)
      pass()
      await becomes(done, 2)
    })
  })

  test('is set for the first attempt of a callback that was put back', async () => {
    const caller = await bench.tenant()
    await withHeldTimer(async (times, pass) => {
      bench.network.answer = () => 'untried'
      const { id } = await checkpoint(bench, caller)
      await approve(bench, caller, id)
      // The longer one is that of the worker, which looks again. It may be set first: the look of the start sets the other then.
      await becomes(() => times().toSorted((one, other) => one - other), [500, second_ms])
      bench.network.answer = () => 204
      pass()
      await becomes(() => bench.jobs(caller.tenant_id), [])
      expect(bench.network.sent).toHaveLength(2)
    })
    expect(bench.errors).toEqual([])
  })

  test('is not set for jobs that are idle', async () => {
    const caller = await bench.tenant()
    await withHeldTimer(async (times, pass) => {
      const done = await discard(caller, 'boom', 2, 1)
      await becomes(times, [second_ms])
      await bench.write(
        `insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts,
                           first_attempt_at, paused, starts_at_once)
         values (:tenant_id, 'subscription', 'sub_idle', '', '', :idle_at, 0, 0, 0, null, 0, 1)`,
        { tenant_id: caller.tenant_id, idle_at },
      )
      pass()
      await becomes(done, 2)
      await ends(times, pass)
    })
  })
})
