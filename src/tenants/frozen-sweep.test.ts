// The sweeps of what runs out while its tenant is frozen, and while a resume moves it.

import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { withChangesBetween } from '../../test/support/between.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { hour_ms, type Millis, minute_ms, second_ms } from '../base/clock.ts'
import { limits } from '../base/limit.ts'
import type { AgentCaller } from '../contract/caller.ts'
import type { Db } from '../db/db.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import { expire } from '../dlq/sweep.ts'
import { runOut } from '../effects/sweep.ts'
import * as tenants from './service.ts'

const move_rows_max = limits.get('tenants.move_rows')!.value
const lease_ms = 5 * minute_ms
const numbers =
  'with recursive numbers (n) as (select 10000 union all select n + 1 from numbers where n < 9999 + :count)'

interface Kind {
  what: string
  table: string
  /** Begins the ids, which end with a number from 10000 on. */
  id: string
  going: string
  over: string
  rows_max: number
  insert: string
  sweep(db: Db, now: Millis, lists?: DueLists): Promise<{ ended: number; more: boolean }>
}

const kinds: Kind[] = [
  {
    ...{ what: 'locks of dead letters', table: 'dlq_items', id: 'dlq_', going: 'claimed', over: 'failed' },
    rows_max: limits.get('dlq.sweep_rows')!.value,
    insert: `insert into dlq_items (tenant_id, id, status, source, agent_id, lock_seconds, locked_by, locked_until,
                                    lock_token_hash, claims, created_at, updated_at, cause, error, payload)
             select :tenant_id, 'dlq_' || n, 'claimed', 'agent', 'agent-one', 300, 'agent-one', :ends_at + n,
                    'hash', 1, 0, 0, '', '', :payload from numbers`,
    async sweep(db, now, lists) {
      const { counts, more } = await expire(db, now, lists)
      return { ended: counts!['dlq.locks_released']!, more }
    },
  },
  {
    ...{ what: 'leases of effects', table: 'effects', id: 'eff_', going: 'running', over: 'unknown' },
    rows_max: limits.get('effects.sweep_rows')!.value,
    insert: `insert into effects (tenant_id, id, status, type, key, agent_id, on_unknown, lease_ms, payload_hash, fence,
                                  lease_token_hash, lease_until, held_by, kept_bytes, created_at, updated_at, payload)
             select :tenant_id, 'eff_' || n, 'running', 'refund', 'k' || n, 'agent-one', 'hold', 300000, 'hash', 1,
                    'hash', :ends_at + n, 'agent-one', 0, 0, 0, :payload from numbers`,
    async sweep(db, now, lists) {
      const { counts, more } = await runOut(db, now, lists)
      return { ended: counts!['effects.ran_out']!, more }
    },
  },
]

forEachDatabase('While a tenant is frozen, the sweep of', (databases) => {
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

  describe.each(kinds.map((kind) => [kind.what, kind] as const))('%s', (_, kind) => {
    const { rows_max } = kind

    /** Those of five minutes, which end a millisecond one after the other. */
    async function plant({ tenant_id }: AgentCaller, count: number, payload = '{}'): Promise<void> {
      const ends_at = now() + lease_ms - 10_000
      await bench.write(`${numbers} ${kind.insert}`, { tenant_id, count, ends_at, payload })
    }

    async function counts({ tenant_id }: AgentCaller): Promise<[over: number, going: number, held: number]> {
      const rows = await bench.rows<{ status: string; held: number; count: number }>(
        `select status, held, count(*) as count from ${kind.table} where tenant_id = :tenant_id group by status, held`,
        { tenant_id },
      )
      const of = (status: string, held: number) =>
        Number(rows.find((row) => row.status === status && Number(row.held) === held)?.count ?? 0)
      expect(of(kind.over, 1)).toBe(0)
      return [of(kind.over, 0), of(kind.going, 0) + of(kind.going, 1), of(kind.going, 1)]
    }

    async function sweepAll(): Promise<number> {
      let ended = 0
      for (let steps = 1; ; steps++) {
        const step = await kind.sweep(bench.db, now())
        ended += step.ended
        if (!step.more) return ended
        expect(steps).toBeLessThan(100)
      }
    }

    test('ends those that had run out before, also when they are more, or larger, than one step takes', async () => {
      const many = await bench.tenant()
      const large = await bench.tenant()
      await plant(many, rows_max + 100)
      await plant(large, 40, JSON.stringify('x'.repeat(250_000)))
      bench.clock.advance(hour_ms)
      for (const caller of [many, large]) await freeze(caller)
      bench.clock.advance(minute_ms)
      expect(await sweepAll()).toBe(rows_max + 140)
      expect(await counts(many)).toEqual([rows_max + 100, 0, 0])
      expect(await counts(large)).toEqual([40, 0, 0])
    })

    test('keeps no other tenant from its turn by one that fails, which is reported', async () => {
      const callers = [await bench.tenant(), await bench.tenant(), await bench.tenant()]
      for (const caller of callers) await plant(caller, 3)
      bench.clock.advance(hour_ms)
      for (const caller of callers) await freeze(caller)
      const fails = { name: 'tenants.lock_freeze', change: () => Promise.reject(new Error('no answer')) }
      const errors: unknown[] = []
      const lists = new DueLists(bench.clock, (error) => errors.push(error))
      await withChangesBetween(bench.db, [fails], async () => {
        expect(await kind.sweep(bench.db, now(), lists)).toEqual({ ended: 6, more: false })
      })
      expect(errors).toEqual([new Error('no answer')])
      const ended = await Promise.all(callers.map(async (caller) => (await counts(caller))[0]))
      expect(ended.toSorted()).toEqual([0, 3, 3])
      expect(await sweepAll()).toBe(3)
    })

    test('holds those that would run out meanwhile until they have been moved', async () => {
      const caller = await bench.tenant()
      await plant(caller, 200)
      bench.clock.advance(lease_ms + 99) // one hundred have ended
      await freeze(caller)
      bench.clock.advance(hour_ms)
      expect(await sweepAll()).toBe(100)
      expect(await counts(caller)).toEqual([100, 100, 100])
      expect(await kind.sweep(bench.db, now())).toEqual({ ended: 0, more: false })
      await resume(caller)
      await moveAll()
      expect(await counts(caller)).toEqual([100, 100, 0])
      expect(await sweepAll()).toBe(0)
      bench.clock.advance(100)
      expect(await sweepAll()).toBe(100)
    })

    test('is kept from no other tenant by those that a resume has not moved yet, and ends those that it has moved', async () => {
      const caller = await bench.tenant()
      const moved = move_rows_max // by the answer to the resume
      const count = moved + rows_max + 100
      await plant(caller, count)
      bench.clock.advance(second_ms)
      await freeze(caller)
      bench.clock.advance(second_ms)
      await resume(caller)
      expect(await placeOf(caller)).toBe(`${kind.table} ${kind.id}${9_999 + moved}`)
      const other = await bench.tenant()
      await plant(other, 1)
      bench.clock.advance(2 * lease_ms)
      expect(await sweepAll()).toBe(moved + 1)
      expect(await counts(other)).toEqual([1, 0, 0])
      expect(await counts(caller)).toEqual([moved, count - moved, count - moved])
      await moveAll()
      expect(await sweepAll()).toBe(count - moved)
    })

    test('holds those that were moved and would run out after a freeze during the resume', async () => {
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
      bench.clock.advance(lease_ms)
      expect(await sweepAll()).toBe(count)
    })
  })
})
