// The connection is lost while a lease is committed: it may hold in the database, and no worker knows.

import { afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf } from '../../test/support/job-bench.ts'
import { manySchedules, schedule } from '../../test/support/job-features.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { count_lock_waits } from '../../test/support/postgres.ts'
import { type Db, dueWork, type Tx, turnOf } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { type LeasedJob, lease_ms } from './job.ts'
import { Outcomes } from './outcomes.ts'
import * as store from './store.ts'
import { undoLease } from './undo-store.ts'

forEachDatabase('A lease whose commit had no answer', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  async function undone(tx: Tx, work: (tx: Tx) => unknown, failure: Error): Promise<never> {
    await work(tx)
    throw failure
  }

  /** The next transaction of due work, which is a lease, has no answer. */
  function loseAnswer(tenant_id: string, committed: boolean): void {
    const write: Db['write'] = bench.db.write.bind(bench.db)
    const writing = spyOn(bench.db, 'write').mockImplementation((async (owner: never, given: never) => {
      const [turn, work] = turnOf(owner, given)
      if (turn.key !== dueWork(tenant_id).key) return write(turn, work)
      writing.mockRestore()
      const unknown = new DbError('outcome_unknown', 'the connection was lost')
      if (committed) await write(turn, work)
      else await write(turn, (tx) => undone(tx, work, unknown))
      throw unknown
    }) as Db['write'])
  }

  const attempts = () => bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])
  const leaseOf = async (tenant_id: string) => {
    const [row] = await bench.jobs(tenant_id)
    return [row!.lease_until, row!.attempts, row!.first_attempt_at]
  }

  test.each([
    ['was committed', true],
    ['was not committed', false],
  ])('and that %s makes no attempt: the job is sent as soon as that is written', async (_, committed) => {
    const caller = await bench.tenant()
    const { tenant_id } = caller
    await schedule(bench, caller)
    loseAnswer(tenant_id, committed)
    bench.db.failing.add('jobs.undo_lease')
    let refused = 0
    bench.db.onFailing = () => {
      refused += 1
    }
    const worker = bench.worker()
    await bench.dispatch(worker)
    await until(() => refused > 1)
    await worker.dispatchNew()
    expect(attempts()).toEqual([])
    expect(await leaseOf(tenant_id)).toEqual(
      committed ? [bench.clock.now() + lease_ms, 1, bench.clock.now()] : [0, 0, null],
    )
    bench.db.failing.clear()
    await until(() => bench.network.held.length > 0)
    expect(attempts()).toEqual(['1'])
    await bench.drain()
    expect(await bench.jobs(tenant_id)).toEqual([])
    expect(bench.errors.map(String)).toContain('DbError: the connection was lost')
  })

  test('is left when it was not committed and another node has the token meanwhile', async () => {
    const caller = await bench.tenant()
    const { id: source_id } = await schedule(bench, caller)
    const { tenant_id } = caller
    loseAnswer(tenant_id, false)
    bench.db.failing.add('jobs.undo_lease')
    const worker = bench.worker()
    await bench.dispatch(worker)
    bench.clock.advance(1)
    const [other] = await bench.lease({ tenant_id, kind: 'schedule', source_id }, lease_ms)
    expect(other!.fence).toBe(1)
    const held = [bench.clock.now() + lease_ms, 1, bench.clock.now()]
    bench.db.failing.clear()
    await becomes(() => worker.running, 0)
    expect(await leaseOf(tenant_id)).toEqual(held)
  })

  test('is left when both were made in one millisecond: each node raises tokens by a step of its own', async () => {
    const caller = await bench.tenant()
    const { id: source_id } = await schedule(bench, caller)
    const { tenant_id } = caller
    loseAnswer(tenant_id, false)
    bench.db.failing.add('jobs.undo_lease')
    const worker = bench.worker({ fence_step: 7 })
    await bench.dispatch(worker)
    const [other] = await bench.lease({ tenant_id, kind: 'schedule', source_id }, lease_ms)
    expect(other!.fence).toBe(1)
    const held = [bench.clock.now() + lease_ms, 1, bench.clock.now()]
    bench.db.failing.clear()
    await becomes(() => worker.running, 0)
    expect(await leaseOf(tenant_id)).toEqual(held)
  })

  test('of several jobs is undone for all of them by one transaction', async () => {
    const caller = await bench.tenant()
    const count = 3
    await manySchedules(bench, caller, count, (i) => ({ callback_url: `http://many-${i}.test/` }))
    loseAnswer(caller.tenant_id, true)
    const writes = spyOn(Outcomes.prototype, 'undoLease')
    try {
      const worker = bench.worker()
      await bench.dispatch(worker)
      await until(() => bench.network.held.length === count)
      expect(attempts()).toEqual(['1', '1', '1'])
      expect(writes.mock.calls.map(([running]) => running.length)).toEqual([count])
    } finally {
      writes.mockRestore()
    }
  })

  if (databases.engine === 'postgres')
    test('is undone once its commit has arrived, however late', async () => {
      const caller = await bench.tenant()
      const { id: source_id } = await schedule(bench, caller)
      const { tenant_id } = caller
      const [under_way, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const lease_until = bench.clock.now() + lease_ms
      let leased: LeasedJob[] = []
      const leasing = bench.db.write(async (tx) => {
        leased = await store.lease(tx, tenant_id, kindOf('schedule'), [source_id], lease_until)
        under_way.resolve()
        await arrived.promise
      })
      await under_way.promise
      const undoing = bench.db.write((tx) => undoLease(tx, leased, lease_until))
      await until(async () => (await bench.rows<{ n: number }>(count_lock_waits))[0]!.n > 0)
      arrived.resolve()
      await Promise.all([leasing, undoing])
      expect(await leaseOf(tenant_id)).toEqual([0, 0, null])
    })
})
