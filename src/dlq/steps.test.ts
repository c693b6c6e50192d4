// The steps of operations on many dead letters when nodes die, when several work at once, and when somebody else moves
// the same items.

import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf } from '../../test/support/job-bench.ts'
import { schedule } from '../../test/support/job-features.ts'
import { limits } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { service_cause } from '../contract/event.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { recount } from '../db/recount.ts'
import { recounted_tables } from '../features.ts'
import { lease_ms } from '../jobs/job.ts'
import type { LocalKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/store.ts'
import * as claims from './claims.ts'
import type { Filter } from './filter.ts'
import type { OperationItem, Verb } from './operation.ts'
import * as operations from './operation-service.ts'
import { redrive } from './redrive.ts'
import * as releases from './release-service.ts'
import * as dlq from './service.ts'

const step_items = limits.get('dlq.discarded_in_a_step')!.value

forEachDatabase('The steps of an operation', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const kind = kindOf('dlq_operation') as LocalKind

  async function capture(caller: AgentCaller, count: number): Promise<string[]> {
    const ids: string[] = []
    for (let i = 0; i < count; i++) {
      bench.clock.advance(1)
      const input = { payload: '1', error: 'boom', workflow_id: null, lock_seconds: null }
      const { id } = await bench.db.write((tx) => dlq.capture(tx, caller, bench.dependencies.plans, input))
      ids.push(id)
    }
    return ids
  }

  /** Schedules that have failed, and their dead letters. */
  async function failed(caller: AgentCaller, count: number): Promise<string[]> {
    bench.network.answer = () => 410
    for (let i = 0; i < count; i++) {
      bench.clock.advance(1)
      await schedule(bench, caller, { dlq_on_failure: 1 })
    }
    const worker = bench.worker()
    while ((await bench.jobs(caller.tenant_id)).length > 0) await bench.dispatch(worker)
    bench.network.answer = () => null
    const rows = await bench.rows<{ id: string }>(
      'select id from dlq_items where tenant_id = :tenant_id order by id',
      { tenant_id: caller.tenant_id },
    )
    return rows.map(({ id }) => id)
  }

  interface Settings {
    per_second?: number | null
    filter?: Filter
    ids?: string[] | null
  }

  async function start(
    caller: AgentCaller,
    verb: Verb,
    { per_second = null, filter = { status: 'failed' }, ids = null }: Settings = {},
  ) {
    const settings = { filter, ids_count: ids?.length ?? null, max: 5_000, per_second }
    const now = bench.clock.now()
    const asked = { filter, ids, max: settings.max }
    const matched = await operations.match(bench.db, caller.tenant_id, asked, now)
    return bench.db.write((tx) => operations.start(tx, caller, bench.dependencies, verb, settings, matched))
  }

  const read = (caller: AgentCaller, id: string) => operations.read(bench.db, caller.tenant_id, id)

  async function leased({ tenant_id }: AgentCaller, id: string) {
    const [job] = await bench.db.write((tx) => jobs.lease(tx, tenant_id, kind, [id], tx.now + lease_ms))
    return job!
  }

  /** Asserts the invariants that hold whenever a transaction has ended. */
  async function expectWhole(caller: AgentCaller, id: string): Promise<void> {
    const { tenant_id } = caller
    const operation = await read(caller, id)
    const { items } = await operations.items(bench.db, tenant_id, id, 0, 5_000)
    const count = (outcome: string) => items.filter((item) => item.outcome === outcome).length
    expect([count('done'), count('skipped'), count('failed')]).toEqual([
      operation.done,
      operation.skipped,
      operation.failed,
    ])
    const [{ open }] = (await bench.rows<{ open: number }>(
      `select count(*) as open from dlq_items where tenant_id = :tenant_id and status in ('failed', 'claimed')`,
      { tenant_id },
    )) as [{ open: number }]
    const [{ used }] = (await bench.rows<{ used: number }>(
      `select used from quota_usage where tenant_id = :tenant_id and quota = 'dlq_items'`,
      { tenant_id },
    )) as [{ used: number }]
    expect(Number(used)).toBe(Number(open))
    await bench.db.maintain()
    expect(await recount(bench.db, recounted_tables, tenant_id)).toBe(0)
    if (operation.verb === 'discard') {
      const done = items.filter(({ outcome }) => outcome === 'done').map((item) => item.id)
      const archived = await bench.rows<{ id: string }>(
        `select id from dlq_items where tenant_id = :tenant_id and status = 'archived' order by id`,
        { tenant_id },
      )
      expect(done).toEqual(archived.map((row) => row.id))
    }
  }

  test('whose answer from the database was lost, and that run again, take no other step', async () => {
    const caller = await bench.tenant()
    await capture(caller, 5)
    const { id } = await start(caller, 'discard', { per_second: 2 })
    const job = await leased(caller, id)
    const step = () => bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    await step()
    const before = [await read(caller, id), await bench.jobs(caller.tenant_id)] as const
    expect(before[0]).toMatchObject({ status: 'running', done: expect.any(Number) })
    bench.clock.advance(1)
    await step()
    expect([await read(caller, id), await bench.jobs(caller.tenant_id)]).toEqual([...before])
    await expectWhole(caller, id)
  })

  test('that fail anywhere leave nothing, and the next one does it all', async () => {
    const caller = await bench.tenant()
    await capture(caller, 5)
    const { id } = await start(caller, 'discard')
    const statements = [
      'dlq.find_operation',
      'jobs.repeat',
      'dlq.find_part',
      'dlq.discard',
      'quotas.release',
      'dlq.set_part',
      'dlq.advance_operation',
      'jobs.complete',
    ]
    for (const statement of statements) {
      const job = await leased(caller, id)
      bench.db.failing.add(statement)
      const step = bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
      expect(await step.then(() => 'done', String)).toContain(`${statement} fails`)
      bench.db.failing.clear()
      expect(await read(caller, id)).toMatchObject({ status: 'running', done: 0 })
      await expectWhole(caller, id)
      bench.clock.advance(lease_ms) // the node died
    }
    const job = await leased(caller, id)
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    expect(await read(caller, id)).toMatchObject({ status: 'succeeded', done: 5 })
    await expectWhole(caller, id)
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  test('of a node that was presumed dead change nothing', async () => {
    const caller = await bench.tenant()
    await capture(caller, step_items + 10)
    const { id } = await start(caller, 'discard')
    const late = await leased(caller, id)
    bench.clock.advance(lease_ms)
    const job = await leased(caller, id)
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, late))
    expect((await read(caller, id)).done).toBe(0)
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    expect((await read(caller, id)).done).toBe(step_items)
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    await expectWhole(caller, id)
    expect((await read(caller, id)).done).toBeLessThanOrEqual(step_items + 10)
  })

  test('end with their job when the tenant is gone', async () => {
    const caller = await bench.tenant()
    await capture(caller, 1)
    const { id } = await start(caller, 'redrive')
    const job = await leased(caller, id)
    await bench.db.write(async (tx) => {
      for (const table of ['credentials', 'agents', 'audit_heads', 'quota_usage', 'tenants']) {
        const gone = unnamedAcrossTenants('test.gone', `delete from ${table} where tenant_id = :tenant_id`)
        await tx.run(gone, { tenant_id: caller.tenant_id })
      }
    })
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    expect(await bench.jobs(caller.tenant_id)).toEqual([])
  })

  test('of three nodes take each item once, also when nodes die between lease and step', async () => {
    const caller = await bench.tenant()
    await capture(caller, 4 * step_items + 7)
    const { id } = await start(caller, 'discard')
    const workers = [bench.worker(), bench.worker(), bench.worker()]
    for (let round = 0; (await read(caller, id)).status === 'running'; round++) {
      if (round % 2 === 1) {
        await leased(caller, id).catch(() => null) // and dies
        bench.clock.advance(lease_ms)
      }
      await Promise.all(workers.map((worker) => worker.dispatchNew()))
      await bench.db.quiet()
      await expectWhole(caller, id)
    }
    expect(await read(caller, id)).toMatchObject({
      status: 'succeeded',
      done: 4 * step_items + 7,
      skipped: 0,
    })
    expect(bench.errors).toEqual([])
  })

  test('beside claims, resolves and removals of the same items count each once, without a deadlock', async () => {
    const caller = await bench.tenant()
    const ids = await capture(caller, 120)
    const [one, two] = [await start(caller, 'discard'), await start(caller, 'discard')]
    const workers = [bench.worker(), bench.worker()]
    const refused = () => null
    const movers = ids.toReversed().map(async (item, i) => {
      if (i % 3 === 0) await claims.claim(bench.db, caller, item, undefined).catch(refused)
      if (i % 3 === 1) await releases.resolve(bench.db, caller, item, undefined).catch(refused)
      if (i % 3 === 2) await dlq.remove(bench.db, caller, item).catch(refused)
    })
    const running = async (id: string) => (await read(caller, id)).status === 'running'
    const steps = (async () => {
      while ((await running(one.id)) || (await running(two.id)))
        await Promise.all(workers.map((worker) => worker.dispatchNew()))
    })()
    await Promise.all([...movers, steps])
    await bench.db.quiet()
    expect(bench.errors).toEqual([])
    for (const { id } of [one, two]) {
      const { done, skipped, failed, matched } = await read(caller, id)
      expect([done + skipped, failed]).toEqual([matched, 0])
    }
    const outcomes = await Promise.all(
      [one, two].map(
        async ({ id }) => (await operations.items(bench.db, caller.tenant_id, id, 0, 5_000)).items,
      ),
    )
    const done = outcomes.flat().filter(({ outcome }) => outcome === 'done')
    expect(new Set(done.map(({ id }) => id)).size).toBe(done.length)
    const [{ open }] = (await bench.rows<{ open: number }>(
      `select count(*) as open from dlq_items where tenant_id = :tenant_id and status in ('failed', 'claimed')`,
      { tenant_id: caller.tenant_id },
    )) as [{ open: number }]
    const [{ used }] = (await bench.rows<{ used: number }>(
      `select used from quota_usage where tenant_id = :tenant_id and quota = 'dlq_items'`,
      { tenant_id: caller.tenant_id },
    )) as [{ used: number }]
    expect(Number(used)).toBe(Number(open))
  }, 300_000)

  test('that send again leave exactly one successor, beside two operations and redrives of one', async () => {
    const caller = await bench.tenant()
    const letters = await failed(caller, 25)
    const [one, two] = [await start(caller, 'redrive'), await start(caller, 'redrive')]
    const workers = [bench.worker(), bench.worker(), bench.worker()]
    const singles = letters.toReversed().map((letter) =>
      bench.db
        .write(caller.tenant_id, (tx) =>
          redrive(tx, caller, bench.dependencies, { id: letter, cause: service_cause }),
        )
        .then(
          ({ redriven_as }) => redriven_as,
          () => null,
        ),
    )
    const running = async (id: string) => (await read(caller, id)).status === 'running'
    const steps = (async () => {
      while ((await running(one.id)) || (await running(two.id)))
        await Promise.all(workers.map((worker) => worker.dispatchNew()))
    })()
    const by_one = (await Promise.all(singles)).filter((made) => made !== null)
    await steps
    await bench.drain()
    expect(bench.errors).toEqual([])
    const successors = await bench.rows<{ id: string; retry_of: string; redrive_of: string }>(
      'select id, retry_of, redrive_of from schedules where tenant_id = :tenant_id and retry_of is not null',
      { tenant_id: caller.tenant_id },
    )
    expect(successors.map(({ redrive_of }) => redrive_of).toSorted()).toEqual(letters)
    const items = (
      await Promise.all(
        [one, two].map(({ id }) => operations.items(bench.db, caller.tenant_id, id, 0, 5_000)),
      )
    ).flatMap((found) => found.items)
    const by_many = items.flatMap(({ redriven_as }) => redriven_as ?? [])
    expect([...by_one, ...by_many].toSorted()).toEqual(successors.map(({ id }) => id).toSorted())
    expect(items.filter(({ outcome }) => outcome === 'waiting' || outcome === 'failed')).toEqual([])
  }, 300_000)

  test('that send again and fail anywhere leave no successor', async () => {
    const caller = await bench.tenant()
    const letters = await failed(caller, 3)
    const { id } = await start(caller, 'redrive')
    const names: string[] = []
    bench.db.onStatement((name) => names.push(name))
    const failing = [
      'dlq.lock',
      'dlq.redrive',
      'schedules.insert',
      'jobs.enqueue',
      'dlq.set_part',
      'jobs.complete',
    ]
    for (const statement of failing) {
      const job = await leased(caller, id)
      bench.db.failing.add(statement)
      const step = bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
      expect(await step.then(() => 'done', String)).toContain(`${statement} fails`)
      bench.db.failing.clear()
      bench.clock.advance(lease_ms)
    }
    bench.db.onStatement(null)
    const successors = () =>
      bench.rows<{ redrive_of: string }>(
        'select redrive_of from schedules where tenant_id = :tenant_id and retry_of is not null',
        { tenant_id: caller.tenant_id },
      )
    expect(await successors()).toEqual([])
    const job = await leased(caller, id)
    await bench.db.write((tx) => kind.settle(tx, bench.dependencies, job))
    expect(await read(caller, id)).toMatchObject({ status: 'succeeded', done: 3 })
    expect((await successors()).map(({ redrive_of }) => redrive_of).toSorted()).toEqual(letters)
  })

  const giveUp = async (caller: AgentCaller, id: string) => {
    await claims.claim(bench.db, caller, id, undefined)
    await releases.fail(bench.db, caller, id, undefined)
  }
  const reopen = (caller: AgentCaller, id: string) =>
    bench.db.write((tx) => redrive(tx, caller, bench.dependencies, { id, cause: service_cause }))
  const skipped = { outcome: 'skipped', code: 'INVALID_STATE', redriven_as: null }
  const done = { outcome: 'done', code: null, redriven_as: null }

  test.each([
    ['failed', 'archived', giveUp],
    ['archived', 'failed', reopen],
  ] as const)(
    'that send %s items again skip one that is %s at its turn, unless it was named',
    async (asked, moved_to, move) => {
      const caller = await bench.tenant()
      const ids = await capture(caller, 3)
      if (asked === 'archived') for (const id of ids) await giveUp(caller, id)
      const filtered = await start(caller, 'redrive', { per_second: 1, filter: { status: asked } })
      const worker = bench.worker()
      await bench.dispatch(worker)
      await move(caller, ids[1]!)
      const item = () => dlq.read(bench.db, caller.tenant_id, ids[1]!, bench.clock.now())
      const moved = await item()
      expect(moved.status).toBe(moved_to)
      while ((await read(caller, filtered.id)).status === 'running') {
        bench.clock.advance(1_000)
        await bench.dispatch(worker)
      }
      const outcomes = async (id: string) =>
        (await operations.items(bench.db, caller.tenant_id, id, 0, 10)).items
      expect(await outcomes(filtered.id)).toEqual([
        { id: ids[0]!, ...done },
        { id: ids[1]!, ...skipped },
        { id: ids[2]!, ...done },
      ] as OperationItem[])
      expect(await item()).toEqual(moved)
      await expectWhole(caller, filtered.id)

      const named = await start(caller, 'redrive', { filter: {}, ids: [ids[1]!] })
      await bench.dispatch(worker)
      expect(await outcomes(named.id)).toEqual([{ id: ids[1]!, ...done }] as OperationItem[])
      expect((await item()).status).toBe('failed')
    },
  )

  test('that send failed items again send nothing for one that an agent has given up meanwhile', async () => {
    const caller = await bench.tenant()
    const letters = await failed(caller, 2)
    const { id } = await start(caller, 'redrive', { per_second: 1 })
    const worker = bench.worker()
    await bench.dispatch(worker)
    await giveUp(caller, letters[1]!)
    bench.clock.advance(1_000)
    await bench.dispatch(worker)
    expect(await read(caller, id)).toMatchObject({ status: 'succeeded', done: 1, skipped: 1, failed: 0 })
    const successors = await bench.rows<{ redrive_of: string }>(
      'select redrive_of from schedules where tenant_id = :tenant_id and retry_of is not null',
      { tenant_id: caller.tenant_id },
    )
    expect(successors.map(({ redrive_of }) => redrive_of)).toEqual([letters[0]!])
    await bench.drain()
  })

  test('keep to their bounds, and let the jobs of other tenants run between two', async () => {
    const [many, other] = [await bench.tenant(), await bench.tenant()]
    await capture(many, 6 * step_items)
    const { id } = await start(many, 'discard')
    await schedule(bench, other)
    bench.network.answer = () => 204
    const worker = bench.worker()
    const done: number[] = []
    while (bench.network.sent.length === 0) {
      await worker.dispatchNew()
      done.push((await read(many, id)).done)
    }
    expect(done.at(-1)).toBeLessThan(6 * step_items)
    while ((await read(many, id)).status === 'running') await bench.dispatch(worker)
    expect((await read(many, id)).done).toBe(6 * step_items)
  })
})
