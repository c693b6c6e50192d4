// The sweep of locks while their tenant is frozen, and while a resume moves them.

import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { hour_ms, minute_ms, second_ms } from '../base/clock.ts'
import { limits } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import * as tenants from '../tenants/service.ts'
import { expire } from './sweep.ts'

const sweep_rows_max = limits.get('dlq.sweep_rows')!.value
const move_rows_max = limits.get('tenants.move_rows')!.value
const lock_ms = 5 * minute_ms

forEachDatabase('The locks of a tenant that is frozen', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const now = () => bench.clock.now()
  const admin = (caller: AgentCaller) => ({ ...caller, kind: 'admin' as const })
  const freeze = (caller: AgentCaller) =>
    tenants.freeze(bench.db, bench.dependencies, admin(caller), caller.tenant_id, null)
  const resume = (caller: AgentCaller) =>
    tenants.resume(bench.db, bench.dependencies, admin(caller), caller.tenant_id)

  /** Locks of five minutes, a millisecond one after the other. */
  async function plant({ tenant_id }: AgentCaller, count: number, payload = '{}'): Promise<void> {
    await bench.write(
      `with recursive numbers (n) as (select 10000 union all select n + 1 from numbers where n < 9999 + :count)
       insert into dlq_items (tenant_id, id, status, source, agent_id, lock_seconds, locked_by, locked_until, lock_token_hash,
                              claims, created_at, updated_at, cause, error, payload)
       select :tenant_id, 'dlq_' || n, 'claimed', 'agent', 'agent-one', 300, 'agent-one', :ends_at + n, 'hash', 1, 0, 0,
              '', '', :payload
         from numbers`,
      { tenant_id, count, ends_at: now() + lock_ms - 10_000, payload },
    )
  }

  /** How many are released, are locked, and are locked and held. */
  async function counts({
    tenant_id,
  }: AgentCaller): Promise<[released: number, locked: number, held: number]> {
    const rows = await bench.rows<{ status: string; held: number; count: number }>(
      'select status, held, count(*) as count from dlq_items where tenant_id = :tenant_id group by status, held',
      { tenant_id },
    )
    const of = (status: string, held: number) =>
      Number(rows.find((row) => row.status === status && Number(row.held) === held)?.count ?? 0)
    expect(of('failed', 1)).toBe(0)
    return [of('failed', 0), of('claimed', 0) + of('claimed', 1), of('claimed', 1)]
  }

  async function moveAll(): Promise<void> {
    for (let after: string | null = ''; after !== null; )
      after = await tenants.pauseOrResumeStep(bench.db, bench.dependencies, after)
  }

  async function placeOf({ tenant_id }: AgentCaller): Promise<string | null> {
    const [row] = await bench.rows<{ moved_to: string | null }>(
      'select moved_to from tenants where tenant_id = :tenant_id',
      { tenant_id },
    )
    return row!.moved_to
  }

  async function sweepAll(): Promise<number> {
    let released = 0
    for (let steps = 1; ; steps++) {
      const step = await expire(bench.db, now())
      released += step.locks_released
      if (!step.more) return released
      expect(steps).toBeLessThan(100)
    }
  }

  test('that had ended before are released, also when they are more, or larger, than one step takes', async () => {
    const many = await bench.tenant()
    const large = await bench.tenant()
    await plant(many, sweep_rows_max + 100)
    await plant(large, 40, JSON.stringify('x'.repeat(250_000)))
    bench.clock.advance(hour_ms)
    for (const caller of [many, large]) await freeze(caller)
    bench.clock.advance(minute_ms)
    expect(await sweepAll()).toBe(sweep_rows_max + 140)
    expect(await counts(many)).toEqual([sweep_rows_max + 100, 0, 0])
    expect(await counts(large)).toEqual([40, 0, 0])
  })

  test('hold when they would end meanwhile, and end once they have been moved', async () => {
    const caller = await bench.tenant()
    await plant(caller, 200)
    bench.clock.advance(lock_ms + 99) // one hundred have ended
    await freeze(caller)
    bench.clock.advance(hour_ms)
    expect(await sweepAll()).toBe(100)
    expect(await counts(caller)).toEqual([100, 100, 100])
    expect(await expire(bench.db, now())).toEqual({ locks_released: 0, more: false })
    await resume(caller)
    await moveAll()
    expect(await counts(caller)).toEqual([100, 100, 0])
    expect(await sweepAll()).toBe(0)
    bench.clock.advance(100)
    expect(await sweepAll()).toBe(100)
  })

  test('that a resume has not moved yet keep nobody else’s from ending, and those that it has moved end in time', async () => {
    const caller = await bench.tenant()
    const moved = move_rows_max // by the answer to the resume
    const count = moved + sweep_rows_max + 100
    await plant(caller, count)
    bench.clock.advance(second_ms)
    await freeze(caller)
    bench.clock.advance(second_ms)
    await resume(caller)
    expect(await placeOf(caller)).toBe(`dlq_items dlq_${9_999 + moved}`)
    const other = await bench.tenant()
    await plant(other, 1)
    bench.clock.advance(2 * lock_ms)
    expect(await sweepAll()).toBe(moved + 1)
    expect(await counts(other)).toEqual([1, 0, 0])
    expect(await counts(caller)).toEqual([moved, count - moved, count - moved])
    await moveAll()
    expect(await sweepAll()).toBe(count - moved)
  })

  test('that was frozen again during its resume hold when they were moved and would end after that', async () => {
    const caller = await bench.tenant()
    const count = 2 * move_rows_max
    await plant(caller, count)
    bench.clock.advance(second_ms)
    await freeze(caller)
    bench.clock.advance(second_ms)
    await resume(caller)
    expect(await placeOf(caller)).not.toBeNull()
    await freeze(caller)
    bench.clock.advance(hour_ms)
    expect(await sweepAll()).toBe(0)
    expect(await counts(caller)).toEqual([0, count, count])
    await moveAll()
    expect(await resume(caller)).toBeDefined()
    await moveAll()
    expect(await counts(caller)).toEqual([0, count, 0])
    bench.clock.advance(lock_ms)
    expect(await sweepAll()).toBe(count)
  })
})
