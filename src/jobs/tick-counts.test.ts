import { afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { manySchedules, schedule } from '../../test/support/job-features.ts'
import { until } from '../../test/support/patience.ts'
import { nextTurn } from '../../test/support/quiet-db.ts'
import { type Db, dueWork, type Params, type Statement, type Tx, turnOf } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { tick_ms_max } from '../maintenance/tick.ts'
import { stale_lease_ms } from './job.ts'

async function undone(tx: Tx, work: (tx: Tx) => unknown, failure: Error): Promise<never> {
  await work(tx)
  throw failure
}

forEachDatabase('a tick', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  test('counts an outcome that the database shows before the answer to its transaction is there', async () => {
    const caller = await bench.tenant()
    await manySchedules(bench, caller, 3)
    const node = bench.node({ internal: false })
    const answers = Promise.withResolvers<void>()
    const write: Db['write'] = bench.db.write.bind(bench.db)
    const writing = spyOn(bench.db, 'write').mockImplementation((async (owner: never, given: never) => {
      const [turn, work] = turnOf(owner, given)
      const written = await write(turn, work)
      if (turn.key === dueWork(caller.tenant_id).key && bench.network.sent.length === 3) await answers.promise
      return written
    }) as Db['write'])
    const seen_done = Promise.withResolvers<void>()
    const all: Bench['db']['all'] = bench.db.all.bind(bench.db)
    const reading = spyOn(bench.db, 'all').mockImplementation((async (
      statement: Statement,
      params: Params,
    ) => {
      const rows = await all(statement, params)
      if (statement.name === 'jobs.oldest_due' && rows.length === 0) seen_done.resolve()
      return rows
    }) as Bench['db']['all'])
    bench.network.answer = () => 204
    try {
      const ticked = node.tick()
      await seen_done.promise
      await nextTurn() // in which it would end
      answers.resolve()
      expect(await ticked).toMatchObject({ schedules: { due: 3, fired: 3, retrying: 0, failed: 0 } })
    } finally {
      answers.resolve()
      writing.mockRestore()
      reading.mockRestore()
      await node.stop()
    }
  })

  test.each([
    ['after it was written', true],
    ['and it was not written', false],
  ])('counts an outcome once when the answer to its commit is lost %s', async (_, committed) => {
    const caller = await bench.tenant()
    await manySchedules(bench, caller, 3, (i) => ({ callback_url: `http://apart-${i}.test/` }))
    const node = bench.node({ internal: false })
    const losses = 6 // two of each, the second while it is repeated
    let losing = false
    let lost = 0
    const write: Db['write'] = bench.db.write.bind(bench.db)
    const writing = spyOn(bench.db, 'write').mockImplementation((async (owner: never, given: never) => {
      const [turn, work] = turnOf(owner, given)
      const is_outcome = losing && turn.key === dueWork(caller.tenant_id).key
      if (!is_outcome || lost === losses) return write(turn, work)
      lost += 1
      const unknown = new DbError('outcome_unknown', 'the connection was lost')
      if (committed) await write(turn, work)
      else await write(turn, (tx) => undone(tx, work, unknown))
      throw unknown
    }) as Db['write'])
    try {
      const ticked = node.tick()
      await until(() => bench.network.held.length === 3)
      losing = true
      for (const request of bench.network.held) bench.network.settle(request, 204)
      expect(await ticked).toMatchObject({ schedules: { due: 3, fired: 3, retrying: 0, failed: 0 } })
      expect(lost).toBe(losses)
      expect(bench.network.sent).toHaveLength(3)
    } finally {
      writing.mockRestore()
      await node.stop()
    }
  })

  const settledBy = async (ticked: Promise<object>) =>
    ((await ticked) as { schedules: Record<string, number> }).schedules
  const settled = { due: 0, fired: 0, retrying: 0, failed: 0 }

  test('counts as begun only what was an attempt', async () => {
    await schedule(bench, await bench.tenant())
    const node = bench.node({ internal: false })
    bench.network.answer = () => 'untried'
    for (let times = 0; times < 2; times++) {
      expect(await settledBy(node.tick())).toEqual(settled)
      bench.clock.advance(1_000)
    }
    expect(bench.network.sent).toHaveLength(2)
    bench.network.answer = () => 204
    expect(await settledBy(node.tick())).toEqual({ ...settled, due: 1, fired: 1 })
    await node.stop()
  })

  test('does not count what was released before it was sent', async () => {
    await schedule(bench, await bench.tenant())
    const node = bench.node({ internal: false })
    bench.network.answer = () => 204
    let reads = 0
    bench.db.onRead = (name) => {
      if (name === 'schedules.deliverable' && ++reads === 1) bench.clock.advance(stale_lease_ms + 1)
    }
    expect(await settledBy(node.tick())).toEqual({ ...settled, due: 1, fired: 1 })
    expect(reads).toBe(2)
    await node.stop()
  })

  test('counts an attempt that is in flight at its answer, and takes it back from the next if it was none', async () => {
    const caller = await bench.tenant()
    const node = bench.node({ internal: false })
    const inFlight = async () => {
      await schedule(bench, caller)
      const ticked = settledBy(node.tick())
      await until(() => bench.network.held.length === 1)
      bench.clock.advance(tick_ms_max)
      return ticked
    }
    expect(await inFlight()).toEqual({ ...settled, due: 1 })
    await bench.settle(204)
    expect(await settledBy(node.tick())).toEqual({ ...settled, fired: 1 })

    expect(await inFlight()).toEqual({ ...settled, due: 1 })
    await bench.settle('untried')
    expect(await settledBy(node.tick())).toEqual(settled)
    bench.clock.advance(1_000)
    bench.network.answer = () => 204
    expect(await settledBy(node.tick())).toEqual({ ...settled, fired: 1 })
    await schedule(bench, caller)
    expect(await settledBy(node.tick())).toEqual({ ...settled, due: 1, fired: 1 })
    await node.stop()
  })
})
