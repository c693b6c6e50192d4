import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { failStatementsOf } from '../../test/support/away.ts'
import { withChangesBetween } from '../../test/support/between.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { until } from '../../test/support/patience.ts'
import { count_lock_waits } from '../../test/support/postgres.ts'
import { hour_ms, iso, minute_ms, second_ms } from '../base/clock.ts'
import { hashKey } from '../base/keys.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { stopOf } from '../contract/stopped.ts'
import { keyCache } from '../credentials/cache.ts'
import * as credentials from '../credentials/service.ts'
import { unnamed } from '../db/db.ts'
import * as claims from '../dlq/claims.ts'
import { JobTimer } from '../jobs/timer.ts'
import * as freezes from './freeze-store.ts'
import * as tenants from './service.ts'
import { tenantOf } from './shapes.ts'

const move_rows_max = 500
const count = 2 * move_rows_max + 100
const lock_token = 'lck_planted'

forEachDatabase('the resume of a tenant with much to move', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const now = () => bench.clock.now()
  const adminOf = (caller: AgentCaller) => ({ ...caller, kind: 'admin' as const })
  const freeze = (caller: AgentCaller) =>
    tenants.freeze(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id, null)
  const resume = (caller: AgentCaller) =>
    tenants.resume(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)

  /** Locks of five minutes, leases of ten, and checkpoints with their timeouts in ten, which escalate after seven and a half. */
  async function plant({ tenant_id }: AgentCaller): Promise<void> {
    const numbers =
      'with recursive numbers (n) as (select 10000 union all select n + 1 from numbers where n < 9999 + :count)'
    const planted = { tenant_id, count, now: now() }
    await bench.write(
      `${numbers}
       insert into dlq_items (tenant_id, id, status, source, agent_id, lock_seconds, locked_by, locked_until, lock_token_hash,
                              claims, created_at, updated_at, cause, error, payload)
       select :tenant_id, 'dlq_' || n, 'claimed', 'agent', 'agent-one', 300, 'agent-one', :now + 300000, :hash, 1, :now, :now,
              '', '', '{}'
         from numbers`,
      { ...planted, hash: hashKey(lock_token) },
    )
    await bench.write(
      `${numbers}
       insert into effects (tenant_id, id, status, type, key, agent_id, on_unknown, lease_ms, payload_hash, fence,
                            lease_token_hash, lease_until, held_by, kept_bytes, created_at, updated_at, payload)
       select :tenant_id, 'eff_' || n, 'running', 'refund', 'order-' || n, 'agent-one', 'hold', 600000, '', 1, :hash,
              :now + 600000, 'agent-one', 2, :now, :now, '{}'
         from numbers`,
      { ...planted, hash: hashKey(lock_token) },
    )
    await bench.write(
      `${numbers}
       insert into checkpoints (tenant_id, id, status, title, callback_url, timeout_action, expires_at, agent_id,
                                callback_status, callback_attempts, created_at, updated_at)
       select :tenant_id, 'chk_' || n, 'pending', '', '', 'auto_reject', :now + 600000, 'agent-one', 'none', 0, :now, :now
         from numbers`,
      planted,
    )
    await bench.write(
      `${numbers}
       insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused)
       select :tenant_id, 'timeout', 'chk_' || n, 'evt_' || n, '', :now + 600000, 0, 0, 0, 0 from numbers`,
      planted,
    )
    await bench.write(
      `${numbers}
       insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused)
       select :tenant_id, 'escalation', 'chk_' || n, 'evt_e' || n, '', :now + 450000, 0, 0, 0, 0 from numbers`,
      planted,
    )
  }

  /** By how much what was planted then has been moved, and how many of it. */
  async function moved({ tenant_id }: AgentCaller, planted_at: number) {
    const of = (table: string, column: string, after_ms: number, kind = '') =>
      bench.rows<{ by_ms: number; rows: number }>(
        `select ${column} - :planted as by_ms, count(*) as rows from ${table}
          where tenant_id = :tenant_id ${kind && `and kind = '${kind}'`}
          group by ${column} order by ${column}`,
        { tenant_id, planted: planted_at + after_ms },
      )
    const shown = (rows: { by_ms: number; rows: number }[]) =>
      Object.fromEntries(rows.map(({ by_ms, rows }) => [Number(by_ms), Number(rows)]))
    return {
      locks: shown(await of('dlq_items', 'locked_until', 300_000)),
      leases: shown(await of('effects', 'lease_until', 600_000)),
      timeouts: shown(await of('checkpoints', 'expires_at', 600_000)),
      jobs: shown(await of('jobs', 'next_at', 600_000, 'timeout')),
      escalations: shown(await of('jobs', 'next_at', 450_000, 'escalation')),
    }
  }
  const all = (ms: number) => {
    const moved = { [ms]: count }
    return { locks: moved, leases: moved, timeouts: moved, jobs: moved, escalations: moved }
  }

  interface State {
    frozen_at: number | null
    resumed_at: number | null
    frozen_again_at: number | null
    pause_pending: number
  }
  const stateOf = async ({ tenant_id }: AgentCaller): Promise<State> =>
    (
      await bench.rows<State>(
        'select frozen_at, resumed_at, frozen_again_at, pause_pending from tenants where tenant_id = :tenant_id',
        { tenant_id },
      )
    )[0]!
  const runs = { frozen_at: null, resumed_at: null, frozen_again_at: null, pause_pending: 0 }

  async function moveAll(): Promise<void> {
    for (let after: string | null = ''; after !== null; )
      after = await tenants.pauseOrResumeStep(bench.db, bench.dependencies, after)
  }

  async function frozen(): Promise<{ caller: AgentCaller; planted_at: number }> {
    const caller = await bench.tenant()
    await plant(caller)
    const planted_at = now()
    bench.clock.advance(second_ms)
    await freeze(caller)
    await moveAll() // its jobs are paused
    bench.clock.advance(hour_ms)
    return { caller, planted_at }
  }

  test('moves 500 rows of a table at once, and the rest in steps; nothing runs before all is moved', async () => {
    const { caller, planted_at } = await frozen()
    const answered = await resume(caller)
    expect(answered.tenant).toMatchObject({ frozen_at: planted_at + second_ms, resumed_at: now() })
    const first = await moved(caller, planted_at)
    expect(first.timeouts).toEqual({ 0: count - move_rows_max, [hour_ms]: move_rows_max })
    expect([first.jobs, first.escalations]).toEqual([first.timeouts, first.timeouts])
    expect(first.locks).toEqual({ 0: count })
    expect((await bench.jobs(caller.tenant_id)).every(({ paused }) => paused === 1)).toBe(true)
    bench.clock.advance(minute_ms) // the steps may take long: their time does not count as frozen
    await moveAll()
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
    expect(await stateOf(caller)).toEqual(runs)
    expect((await bench.jobs(caller.tenant_id)).every(({ paused }) => paused === 0)).toBe(true)
  })

  test.each([
    'checkpoints.move',
    'jobs.move_due',
    'dlq.move',
    'effects.move',
    'tenants.set_moved',
    'tenants.end_resume',
  ])('continues where it was when a node dies at %s, and moves nothing twice', async (failing) => {
    const { caller, planted_at } = await frozen()
    await resume(caller)
    bench.db.failing.add(failing)
    await expect(moveAll()).rejects.toThrow(`${failing} fails`)
    expect((await stateOf(caller)).resumed_at).not.toBeNull()
    bench.db.failing.clear()
    await Promise.all([moveAll(), moveAll()]) // two other nodes at once
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
    expect(await stateOf(caller)).toEqual(runs)
  })

  test.each([
    ['checkpoints', 'chk_10777'],
    ['dlq_items', 'dlq_10777'],
    ['effects', 'eff_10777'],
  ])('moves a row of %s that is being changed, and those behind it', async (table, id) => {
    const { caller, planted_at } = await frozen()
    const { tenant_id } = caller
    await resume(caller)
    const change = unnamed(
      'test.change',
      `update ${table} set updated_at = :now where tenant_id = :tenant_id and id = :id`,
    )
    const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const changing = bench.db.write(async (tx) => {
      expect(await tx.run(change, { tenant_id, id, now: now() })).toBe(1)
      held.resolve()
      await released.promise
    })
    await held.promise
    const moving = moveAll()
    if (databases.engine === 'postgres')
      await until(async () => (await bench.rows<{ n: number }>(count_lock_waits))[0]!.n > 0)
    released.resolve()
    await Promise.all([changing, moving])
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
    expect(await stateOf(caller)).toEqual(runs)
  })

  test('is waited for by a freeze that comes meanwhile, which then holds', async () => {
    const caller = await bench.tenant()
    const { tenant_id } = caller
    await freeze(caller)
    bench.clock.advance(hour_ms)
    const [ended, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const resuming = bench.db.write(async (tx) => {
      await freezes.resume(tx, tenant_id, now())
      await freezes.endResume(tx, tenant_id)
      ended.resolve()
      await released.promise
    })
    await ended.promise
    let is_answered = false
    const freezing = freeze(caller).finally(() => {
      is_answered = true
    })
    if (databases.engine === 'postgres')
      await until(async () => is_answered || (await bench.rows<{ n: number }>(count_lock_waits))[0]!.n > 0)
    released.resolve()
    const [answer] = await Promise.all([freezing, resuming])
    expect([answer.tenant.frozen_at, (await stateOf(caller)).frozen_at]).toEqual([now(), now()])
  })

  test('that cannot be moved now keeps no other from its resume', async () => {
    const stuck = (await frozen()).caller
    const { caller, planted_at } = await frozen()
    for (const one of [stuck, caller]) await resume(one)
    const errors: unknown[] = []
    const fails = { name: 'tenants.lock_pause_pending', change: () => Promise.reject(new Error('no answer')) }
    await withChangesBetween(bench.db, [fails], async () => {
      const step = (after: string) =>
        tenants.pauseOrResumeStep(bench.db, bench.dependencies, after, (error) => errors.push(error))
      expect(await step('')).toBe('')
    })
    expect(errors.map(String)).toEqual(['Error: no answer'])
    expect((await moved(caller, planted_at)).timeouts).toEqual({ [hour_ms]: count })
    await moveAll()
    for (const one of [stuck, caller]) expect(await stateOf(one)).toEqual(runs)
  })

  /** Tenants whose jobs do not follow their status yet, in the order of their ids. */
  async function pending(count: number): Promise<string[]> {
    const ids: string[] = []
    for (let i = 0; i < count; i++) ids.push((await bench.tenant()).tenant_id)
    for (const tenant_id of ids)
      await bench.write('update tenants set pause_pending = 1 where tenant_id = :tenant_id', { tenant_id })
    return ids.toSorted()
  }

  test('that cannot be moved now keep no other from its resume, however many they are', async () => {
    const stuck = 8
    const ids = await pending(stuck + 1)
    const fails = { name: 'tenants.lock_pause_pending', change: () => Promise.reject(new Error('no answer')) }
    const errors: unknown[] = []
    await withChangesBetween(bench.db, new Array(stuck).fill(fails), async () => {
      await tenants.pauseOrResumeStep(bench.db, bench.dependencies, '', (error) => errors.push(error))
    })
    expect(errors).toHaveLength(stuck)
    const left = await bench.rows<{ tenant_id: string }>(
      'select tenant_id from tenants where pause_pending = 1 order by tenant_id',
      {},
    )
    expect(left.map(({ tenant_id }) => tenant_id)).toEqual(ids.slice(0, stuck))
    await moveAll()
  })

  test('that cannot be moved now ends no look in which others before it have more to do', async () => {
    const ids = await pending(2)
    bench.db.failing.add('tenants.lock_pause_pending')
    const step = (after: string) => tenants.pauseOrResumeStep(bench.db, bench.dependencies, after, () => {})
    expect([await step(ids[0]!), await step('')]).toEqual(['', null])
    bench.db.failing.clear()
    await moveAll()
  })

  test.each(['the time of a tick', 'a stop'])(
    'that cannot be moved now go no further than %s',
    async (ends) => {
      const { db, clock } = bench
      await pending(3 * 8)
      db.failing.add('tenants.lock_pause_pending')
      let failed = 0
      const onError = () => {
        failed += 1
        if (ends === 'a stop') void timer.stop()
        else clock.advance(second_ms)
      }
      const timer: JobTimer = new JobTimer({
        ...{ db, clock, onError, worker: bench.worker(), internal: false },
        pauseOrResumeStep: (after, goesOn) =>
          tenants.pauseOrResumeStep(db, bench.dependencies, after, onError, goesOn),
      })
      await timer.pauseOrResumeUntil(clock.monotonic() + second_ms)
      const failed_until_then = failed // the rest goes on in the background
      await timer.stop()
      db.failing.clear()
      expect(failed_until_then).toBe(8)
      await moveAll()
    },
  )

  test('by the operator waits for no other, also not for one that cannot be moved now', async () => {
    const [stuck, other] = [(await frozen()).caller, (await frozen()).caller]
    const { caller, planted_at } = await frozen()
    for (const one of [stuck, other]) await resume(one)
    const fails = failStatementsOf(bench.db, stuck.tenant_id)
    await tenants.resumeByOperator(bench.db, bench.dependencies, caller.tenant_id)
    fails.mockRestore()
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
    expect(await stateOf(caller)).toEqual(runs)
    expect((await stateOf(other)).pause_pending).toBe(1)
    await moveAll()
  })

  test('are tried again with the next look where none can be moved', async () => {
    const { caller } = await frozen()
    await resume(caller)
    const errors: unknown[] = []
    bench.db.failing.add('checkpoints.move')
    const step = () =>
      tenants.pauseOrResumeStep(bench.db, bench.dependencies, '', (error) => errors.push(error))
    expect(await step()).toBeNull()
    expect(errors.map(String)).toEqual(['Error: checkpoints.move fails'])
    bench.db.failing.clear()
    expect(await step()).toBe('')
  })

  test('leaves what had run out before the freeze where it was', async () => {
    const caller = await bench.tenant()
    await plant(caller)
    const planted_at = now()
    bench.clock.advance(300_000) // to the millisecond: the locks have run out, the timeouts have not
    await freeze(caller)
    bench.clock.advance(hour_ms)
    await resume(caller)
    await moveAll()
    const { locks, ...others } = await moved(caller, planted_at)
    const { locks: _, ...rest } = all(hour_ms)
    expect([locks, others]).toEqual([{ 0: count }, rest])
  })

  describe('frozen again meanwhile', () => {
    test('is frozen still when all is moved, and then moved by the second time as well', async () => {
      const { caller, planted_at } = await frozen()
      await resume(caller)
      bench.clock.advance(minute_ms)
      await freeze(caller)
      const frozen_again_at = now()
      expect(await stateOf(caller)).toMatchObject({ frozen_again_at, pause_pending: 1 })
      bench.clock.advance(minute_ms)
      await freeze(caller) // changes nothing
      await moveAll()
      expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
      expect(await stateOf(caller)).toEqual({ ...runs, frozen_at: frozen_again_at })
      expect((await bench.jobs(caller.tenant_id)).every(({ paused }) => paused === 1)).toBe(true)
      bench.clock.advance(hour_ms)
      await resume(caller)
      await moveAll()
      expect(await moved(caller, planted_at)).toEqual(all(2 * hour_ms + minute_ms))
      expect(await stateOf(caller)).toEqual(runs)
    })

    test('shows the freeze that holds, which is the one that a resume ends', async () => {
      const { caller, planted_at } = await frozen()
      await resume(caller)
      bench.clock.advance(minute_ms)
      await freeze(caller)
      const second = now()
      const asked = (frozen_at: number) =>
        tenants.resume(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id, frozen_at)
      await expect(asked(planted_at + second_ms)).rejects.toMatchObject({
        ...{ code: 'INVALID_STATE', details: { frozen_at: iso(second) } },
      })
      const { tenant } = await asked(second)
      expect(tenantOf({ tenant, quota: {} })).toMatchObject({ frozen_at: iso(second) })
      await moveAll()
      expect(await stateOf(caller)).toEqual(runs)
    })

    test('refuses its agents with the time of the freeze that holds', async () => {
      const { caller } = await frozen()
      const { tenant_id, agent_id: subject } = caller
      const key = await bench.db.write(tenant_id, (tx) =>
        credentials.issue(tx, { tenant_id, kind: 'agent', subject }),
      )
      const refused = async () => {
        const holder = await credentials.identify(bench.db, keyCache(bench.clock), key, now())
        return stopOf(holder!)
      }
      const details = (ms: number) => ({ code: 'TENANT_FROZEN', details: { since: iso(ms), reason: null } })
      expect(await refused()).toMatchObject(details(now() - hour_ms))
      await resume(caller)
      bench.clock.advance(minute_ms)
      expect(await refused()).toMatchObject(details(now() - hour_ms - minute_ms))
      await freeze(caller)
      const second = now()
      bench.clock.advance(minute_ms)
      expect(await refused()).toMatchObject(details(second))
      await moveAll()
      expect(await refused()).toMatchObject(details(second))
    })

    test('and resumed again, ends the first resume before the second', async () => {
      const { caller, planted_at } = await frozen()
      await resume(caller)
      bench.clock.advance(minute_ms)
      await freeze(caller)
      bench.clock.advance(hour_ms)
      const { tenant } = await resume(caller)
      expect(tenant.frozen_at).toBe(planted_at + second_ms + hour_ms + minute_ms)
      await moveAll()
      expect(await moved(caller, planted_at)).toEqual(all(2 * hour_ms))
      expect(await stateOf(caller)).toEqual(runs)
    })
  })

  test('a second resume meanwhile changes nothing', async () => {
    const { caller, planted_at } = await frozen()
    const { tenant } = await resume(caller)
    bench.clock.advance(minute_ms)
    expect((await resume(caller)).tenant).toEqual(tenant)
    await moveAll()
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
  })

  test('is refused for one that was deleted, also to a caller who was looked up before', async () => {
    const { caller } = await frozen()
    await tenants.remove(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
    const before = await stateOf(caller)
    await expect(resume(caller)).rejects.toMatchObject({ code: 'TENANT_PENDING_DELETION' })
    expect(await stateOf(caller)).toEqual(before)
  })

  test('deleted meanwhile, all is still moved, and jobs wait for the restoration', async () => {
    const { caller, planted_at } = await frozen()
    await resume(caller)
    await tenants.remove(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
    await moveAll()
    expect(await moved(caller, planted_at)).toEqual(all(hour_ms))
    expect((await bench.jobs(caller.tenant_id)).every(({ paused }) => paused === 1)).toBe(true)
    await tenants.restore(bench.db, bench.dependencies, adminOf(caller), caller.tenant_id)
    await moveAll()
    expect(await stateOf(caller)).toEqual(runs)
    expect((await bench.jobs(caller.tenant_id)).every(({ paused }) => paused === 0)).toBe(true)
  })

  test('a lock that its holder extends meanwhile ends lock_seconds later, moved already or not', async () => {
    const { caller, planted_at } = await frozen()
    await resume(caller)
    bench.db.failing.add('effects.move')
    await expect(moveAll()).rejects.toThrow('effects.move fails')
    bench.db.failing.clear()
    expect((await moved(caller, planted_at)).locks).toEqual({ 0: 100, [hour_ms]: count - 100 })
    bench.clock.advance(second_ms)
    const holder = { ...caller, frozen_at: planted_at + second_ms }
    const ids = ['dlq_10000', `dlq_${9_999 + count}`] // moved, and not yet
    for (const id of ids) await claims.extend(bench.db, holder, id, lock_token, 60)
    const ends_at = now() + minute_ms
    await moveAll()
    for (const id of ids) {
      const [row] = await bench.rows<{ locked_until: number }>(
        'select locked_until from dlq_items where tenant_id = :tenant_id and id = :id',
        { tenant_id: caller.tenant_id, id },
      )
      expect([id, Number(row!.locked_until)]).toEqual([id, ends_at])
    }
  })
})
