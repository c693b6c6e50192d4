import { expect, test } from 'bun:test'
import { forEachDatabase, type TestDatabases } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { day_ms, hour_ms, minute_ms } from '../base/clock.ts'
import { declareEvents, service_cause } from '../contract/event.ts'
import type { Follows } from '../contract/feature.ts'
import * as tenants from '../tenants/service.ts'
import { JournalKeeper } from './keeper.ts'
import { Removal } from './removal.ts'
import { removeOld } from './retention.ts'
import * as journal from './service.ts'

const types = declareEvents({
  'thing.made': { about: 'A thing was made.', subject: 'thing', data: {}, waiting: 1 },
  'thing.gone': { about: 'A thing is gone.', subject: 'thing', data: {}, waiting: -1 },
})

const onError = (error: unknown) => {
  throw error
}

/** Of the plan free. */
const kept_ms = 7 * day_ms

const emitted_max = 250

async function benchOf(databases: TestDatabases) {
  const bench = await Bench.open(databases)
  const { tenant_id } = await bench.tenant('free')
  const { db, clock, dependencies } = bench
  const happen = async (workflow_id: string | null, name: keyof typeof types = 'thing.made', count = 1) => {
    const about = { tenant_id, cause: service_cause, subject_id: 't', workflow_id, data: {} }
    const emitNext = (most: number) =>
      db.write(tenant_id, async (tx) => {
        for (let n = 0; n < most; n++) await journal.emit(tx, types[name], about)
      })
    // On a busy machine a transaction of all of them might take longer than one may.
    for (let left = count; left > 0; left -= emitted_max) await emitNext(Math.min(left, emitted_max))
  }
  const number = () => dependencies.journal.number(tenant_id)
  const seqs = async () =>
    (await journal.page(db, tenant_id, {}, { after: 0, rows_max: 5_000 })).map(({ seq }) => seq)
  const workflows = () =>
    bench.rows(
      `select workflow_id, events, gone, waiting from workflows where tenant_id = '${tenant_id}' order by workflow_id`,
    )
  const sweep = async (follows: readonly Follows[] = []) => {
    let removed = 0
    for (let more = true; more; ) {
      const { plans } = dependencies
      const step = await removeOld({ db, plans, follows, onError })
      removed += step.removed
      more = step.more
    }
    return removed
  }
  const workflowSeqs = async (workflow_id: string) =>
    (await journal.page(db, tenant_id, { workflow_id }, { after: 0, rows_max: 100 })).map(
      ({ workflow_seq }) => workflow_seq,
    )
  return { bench, clock, tenant_id, happen, number, seqs, workflows, workflowSeqs, sweep }
}

forEachDatabase('Old events', (databases) => {
  test('go once they are as old as the plan says, from the oldest on, and not a millisecond before', async () => {
    const { clock, happen, number, seqs, sweep } = await benchOf(databases)
    await happen(null)
    await number()
    clock.advance(day_ms)
    await happen(null)
    await number()
    clock.advance(kept_ms - day_ms - 1)
    expect(await sweep()).toBe(0)
    expect(await seqs()).toEqual([1, 2])
    clock.advance(hour_ms)
    expect(await sweep()).toBe(1)
    expect(await seqs()).toEqual([2])
    clock.advance(day_ms)
    expect(await sweep()).toBe(1)
    expect(await seqs()).toEqual([])
  })

  test('go in steps of 500, and their numbers are never given again', async () => {
    const { clock, happen, number, seqs, sweep } = await benchOf(databases)
    await happen(null, 'thing.made', 1_200)
    await number()
    clock.advance(kept_ms + day_ms)
    expect(await sweep()).toBe(1_200)
    await happen(null)
    await number()
    expect(await seqs()).toEqual([1_201])
    clock.advance(kept_ms + day_ms)
    expect(await sweep()).toBe(1)
  })

  test('stay while they have no number, and while something that follows the journal needs them', async () => {
    const { clock, happen, number, seqs, sweep } = await benchOf(databases)
    await happen(null, 'thing.made', 3)
    await number()
    clock.advance(kept_ms + day_ms)
    await happen(null)
    expect(await sweep([{ usedUpTo: () => 0 }])).toBe(0)
    clock.advance(day_ms)
    expect(await sweep([{ usedUpTo: () => 2 }, {}])).toBe(2)
    expect(await seqs()).toEqual([3])
    clock.advance(kept_ms + day_ms)
    expect(await sweep()).toBe(1)
    await number()
    expect(await seqs()).toEqual([4])
    clock.advance(day_ms)
    expect(await sweep()).toBe(1)
  })

  test('stay for ever where the plan has no limit, and go within a day of a change of the plan', async () => {
    const { bench, clock, tenant_id, happen, number, seqs } = await benchOf(databases)
    await happen(null)
    await number()
    clock.advance(400 * day_ms)
    const plans = { ...bench.dependencies.plans, free: { event_days: null } }
    expect((await removeOld({ db: bench.db, plans, follows: [], onError })).removed).toBe(0)
    await tenants.setPlan(bench.db, tenant_id, 'pro')
    clock.advance(day_ms)
    expect((await removeOld({ db: bench.db, plans, follows: [], onError })).removed).toBe(1)
    expect(await seqs()).toEqual([])
  })

  test('go once the plan allows no more of them, from the oldest on, however young', async () => {
    const { bench, happen, number, seqs } = await benchOf(databases)
    const { db } = bench
    const sweepWith = async (events_kept: number | null) => {
      const plans = { ...bench.dependencies.plans, free: { event_days: 7, events_kept } }
      return (await removeOld({ db, plans, follows: [], onError })).removed
    }
    await happen(null, 'thing.made', 999)
    await number()
    expect(await sweepWith(2)).toBe(0)
    // The thousandth makes the tenant due at once, though it was to be looked at in an hour.
    await happen(null)
    await number()
    expect(await sweepWith(1_000)).toBe(0)
    await happen(null, 'thing.made', 1_000)
    await number()
    expect(await sweepWith(1_999)).toBe(1)
    expect((await seqs())[0]).toBe(2)
    await happen(null, 'thing.made', 1_000)
    await number()
    expect(await sweepWith(null)).toBe(0)
    await happen(null, 'thing.made', 1_000)
    await number()
    for (const removed of [500, 500, 500, 500, 500, 500, 499, 0])
      expect([removed, await sweepWith(500)]).toEqual([removed, removed])
    expect(await seqs()).toEqual(Array.from({ length: 500 }, (_, n) => 3_501 + n))
  })

  test('beyond what the plan allows stay while something that follows the journal needs them', async () => {
    const { bench, clock, happen, number, seqs } = await benchOf(databases)
    const plans = { ...bench.dependencies.plans, free: { event_days: 7, events_kept: 10 } }
    await happen(null, 'thing.made', 1_000)
    await number()
    const removing = { db: bench.db, plans, follows: [{ usedUpTo: () => 2 }], onError }
    expect((await removeOld(removing)).removed).toBe(2)
    expect((await seqs())[0]).toBe(3)
    // It is looked at again soon, not as one that has no more to remove.
    clock.advance(minute_ms - 1)
    expect((await removeOld({ ...removing, follows: [] })).removed).toBe(0)
    clock.advance(1)
    expect((await removeOld({ ...removing, follows: [] })).removed).toBe(500)
  })

  test('leave the counts of their workflow, whose row stays when all are gone: the next event goes on from it', async () => {
    const { clock, happen, number, workflows, workflowSeqs, sweep } = await benchOf(databases)
    await happen('short')
    await happen('long', 'thing.made', 2)
    await number()
    clock.advance(2 * day_ms)
    await happen('long', 'thing.gone')
    await number()
    clock.advance(kept_ms - day_ms)
    expect(await sweep()).toBe(3)
    const short = { workflow_id: 'short', events: 1, gone: 1, waiting: 1 }
    expect(await workflows()).toEqual([{ workflow_id: 'long', events: 3, gone: 2, waiting: 1 }, short])
    clock.advance(2 * day_ms)
    await sweep()
    expect(await workflows()).toEqual([{ workflow_id: 'long', events: 3, gone: 3, waiting: 1 }, short])
    await happen('short', 'thing.gone')
    await number()
    expect(await workflows()).toContainEqual({ workflow_id: 'short', events: 2, gone: 1, waiting: 0 })
    expect(await workflowSeqs('short')).toEqual([2])
    clock.advance(kept_ms + 2 * day_ms)
    await sweep()
    await happen('short')
    await number()
    expect(await workflows()).toContainEqual({ workflow_id: 'short', events: 3, gone: 2, waiting: 1 })
    expect(await workflowSeqs('short')).toEqual([3])
  })

  test('are looked for once an hour, a tenant, and not at all while there are none', async () => {
    const { bench, clock, tenant_id, happen, number, sweep } = await benchOf(databases)
    const look = async () =>
      (await bench.rows(`select look_at from event_heads where tenant_id = '${tenant_id}'`))[0]
    await happen(null)
    await number()
    const first = clock.now() + hour_ms
    expect(await look()).toEqual({ look_at: first })
    clock.advance(hour_ms)
    await sweep()
    expect(await look()).toEqual({ look_at: clock.now() + day_ms })
    clock.advance(kept_ms)
    expect(await sweep()).toBe(1)
    expect(await look()).toEqual({ look_at: null })
  })

  test('of a tenant that has more of them wait behind those of others', async () => {
    const { bench, clock, tenant_id, happen, number } = await benchOf(databases)
    await happen(null, 'thing.made', 501)
    await number()
    clock.advance(kept_ms + day_ms)
    const { db, dependencies } = bench
    const removing = { db, plans: dependencies.plans, follows: [], onError }
    expect(await removeOld(removing)).toEqual({ removed: 500, more: true })
    expect(await bench.rows(`select look_at from event_heads where tenant_id = '${tenant_id}'`)).toEqual([
      { look_at: clock.now() },
    ])
    expect(await removeOld(removing)).toEqual({ removed: 1, more: false })
  })

  test('go though those of as many tenants as one step has cannot be removed', async () => {
    const bench = await Bench.open(databases)
    const { db, clock, dependencies } = bench
    const tenant_ids: string[] = []
    for (let n = 0; n < 17; n++) {
      const { tenant_id } = await bench.tenant('free')
      await db.write(tenant_id, (tx) =>
        journal.emit(tx, types['thing.made'], {
          ...{ tenant_id, cause: service_cause, subject_id: 't', data: {} },
        }),
      )
      await dependencies.journal.number(tenant_id)
      tenant_ids.push(tenant_id)
      clock.advance(1)
    }
    clock.advance(kept_ms + day_ms)
    const last = tenant_ids.at(-1)!
    const fails: Follows = {
      usedUpTo(_tx, tenant_id) {
        if (tenant_id !== last) throw new Error(tenant_id)
        return Number.MAX_SAFE_INTEGER
      },
    }
    const failed: string[] = []
    const removing = {
      ...{ db, plans: dependencies.plans, follows: [fails] },
      onError: (error: unknown) => failed.push((error as Error).message),
    }
    expect(await removeOld(removing)).toEqual({ removed: 0, more: false })
    expect(failed).toEqual(tenant_ids.slice(0, 16))
    clock.advance(1)
    expect((await removeOld(removing)).removed).toBe(1)
    clock.advance(1)
    expect((await removeOld({ ...removing, follows: [], onError })).removed).toBe(16)
  })

  test('go in many steps of one turn, until it has to end', async () => {
    const { bench, clock, happen, number, seqs } = await benchOf(databases)
    await happen(null, 'thing.made', 1_600)
    await number()
    clock.advance(kept_ms + day_ms)
    const options = { db: bench.db, follows: [], held: () => false, onError }
    const removal = new Removal(options, () => bench.dependencies.plans)
    await removal.turn(() => false)
    expect((await seqs()).length).toBe(1_100)
    await removal.turn(() => true)
    expect(await seqs()).toEqual([])
  })

  test('stay while the database is in quarantine, however old, and what happens gets its number; then they go', async () => {
    const { bench, clock, happen, number, seqs } = await benchOf(databases)
    await happen('w', 'thing.made', 3)
    await number()
    clock.advance(kept_ms + day_ms)
    let in_quarantine = true
    const options = { db: bench.db, follows: [], internal: false, held: () => in_quarantine, onError }
    const keeper = new JournalKeeper(options)
    keeper.connect(bench.dependencies)
    await happen('w')
    await keeper.tick(Number.POSITIVE_INFINITY)
    expect(await seqs()).toEqual([1, 2, 3, 4])
    in_quarantine = false
    await keeper.tick(Number.POSITIVE_INFINITY)
    expect(await seqs()).toEqual([4])
    await keeper.stop()
  })
})
