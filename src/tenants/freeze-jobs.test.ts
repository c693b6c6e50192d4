import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf, type TestNode } from '../../test/support/job-bench.ts'
import { approve, checkpoint, hook, schedule } from '../../test/support/job-features.ts'
import { hour_ms } from '../base/clock.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { SendingKind } from '../jobs/kind.ts'
import * as tenants from './service.ts'

forEachDatabase('the jobs of a tenant that is frozen', (databases) => {
  let bench: Bench
  const nodes: TestNode[] = []
  beforeAll(async () => {
    bench = await Bench.open(databases)
    bench.network.answer = () => 204
  })
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop()
    await bench.clear()
    bench.network.answer = () => 204
  })

  const adminOf = (caller: AgentCaller) => ({ ...caller, kind: 'admin' as const })
  const freeze = (caller: AgentCaller) =>
    tenants.freeze(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id, null)
  const resume = (caller: AgentCaller) =>
    tenants.resume(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)

  async function pauseAll(): Promise<void> {
    for (let after: string | null = ''; after !== null; )
      after = await tenants.pauseOrResumeStep(bench.db, bench.dependencies, after)
  }

  /** A tick of a node, and what it has started to pause. */
  async function tick(): Promise<void> {
    const node = bench.node({ internal: false })
    nodes.push(node)
    await node.tick()
    await pauseAll()
  }

  const paused = async ({ tenant_id }: AgentCaller) =>
    Object.fromEntries((await bench.jobs(tenant_id)).map(({ kind, paused }) => [kind, paused]))

  /** A job that is idle, as a subscription has it. */
  function plant({ tenant_id }: AgentCaller, kind: string, goes_on: 0 | 1, next_at: number) {
    return bench.write(
      `insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused,
                         goes_on)
       values (:tenant_id, :kind, 'planted/1', 'evt_planted', '', :next_at, 0, 0, 0, 0, :goes_on)`,
      { tenant_id, kind, goes_on, next_at },
    )
  }
  const idle_at = () => bench.clock.now() + hour_ms

  test('are paused with the freeze, but for those that go on', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller, { fire_at: idle_at() })
    await checkpoint(bench, caller)
    await plant(caller, 'subscription', 1, idle_at())
    await freeze(caller)
    expect(await paused(caller)).toEqual({ schedule: 1, timeout: 1, subscription: 0 })
    await resume(caller)
    expect(await paused(caller)).toEqual({ schedule: 0, timeout: 0, subscription: 0 })
  })

  test('are all paused by a deletion, and those that go on are resumed with the restoration alone', async () => {
    const caller = await bench.tenant()
    await schedule(bench, caller, { fire_at: idle_at() })
    await plant(caller, 'subscription', 1, idle_at())
    await freeze(caller)
    await tenants.remove(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
    expect(await paused(caller)).toEqual({ schedule: 1, subscription: 1 })
    await tenants.restore(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
    expect(await paused(caller)).toEqual({ schedule: 1, subscription: 0 })
    await resume(caller)
    expect(await paused(caller)).toEqual({ schedule: 0, subscription: 0 })
  })

  test('that were enqueued afterwards are not leased, and are paused when they are found', async () => {
    const caller = await bench.tenant()
    await freeze(caller)
    await schedule(bench, caller)
    expect(await paused(caller)).toEqual({ schedule: 0 })
    await tick()
    expect([bench.network.sent, await paused(caller)]).toEqual([[], { schedule: 1 }])
    await resume(caller)
    await tick()
    expect([bench.network.sent.length, await paused(caller)]).toEqual([1, {}])
  })

  test('that were enqueued afterwards and not found run when it is resumed', async () => {
    const caller = await bench.tenant()
    await freeze(caller)
    await schedule(bench, caller)
    await resume(caller)
    await tick()
    expect(bench.network.sent.length).toBe(1)
  })

  test('that were leased before and not attempted yet are not attempted', async () => {
    const caller = await bench.tenant()
    const { tenant_id } = caller
    const { id } = await checkpoint(bench, caller)
    await approve(bench, caller, id)
    await schedule(bench, caller)
    const rows = await bench.jobs(tenant_id)
    const leased = await Promise.all(
      rows.map(
        async ({ kind, source_id }) => (await bench.lease({ tenant_id, kind, source_id }, 30_000))[0]!,
      ),
    )
    expect(leased.map(({ kind }) => kind).toSorted()).toEqual(['callback', 'schedule'])
    await freeze(caller)
    const { db, dependencies, clock } = bench
    const context = { db, dependencies, started_at: clock.now() }
    for (const job of leased)
      expect(await (kindOf(job.kind) as SendingKind).message(context, job)).toBe('paused')
    await resume(caller)
    for (const job of leased)
      expect(await (kindOf(job.kind) as SendingKind).message(context, job)).toMatchObject({
        url: expect.stringContaining(hook),
      })
  })

  test('cannot be leased by any node', async () => {
    const caller = await bench.tenant()
    const { tenant_id } = caller
    const { id: source_id } = await schedule(bench, caller)
    await freeze(caller)
    await bench.write('update jobs set paused = 0 where tenant_id = :tenant_id', { tenant_id })
    expect(await bench.lease({ tenant_id, kind: 'schedule', source_id }, 30_000)).toEqual([])
    await resume(caller)
    expect(await bench.lease({ tenant_id, kind: 'schedule', source_id }, 30_000)).toHaveLength(1)
  })
})
