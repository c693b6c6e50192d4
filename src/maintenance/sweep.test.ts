import { afterEach, describe, expect, jest, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { sweep } from '../../test/support/maintenance.ts'
import { unhurried } from '../../test/support/patience.ts'
import { forEachRacedService, type TestService } from '../../test/support/service.ts'
import { day_ms } from '../base/clock.ts'
import { hashKey } from '../base/keys.ts'
import type { Feature, Swept } from '../contract/feature.ts'
import { type Db, unnamedAcrossTenants } from '../db/db.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import { features } from '../features.ts'
import { expiry_idle_ms, startSweeper, sweep as sweepOf } from './sweep.ts'

const rows_max = 500

const INSERT_EXPIRED = unnamedAcrossTenants(
  'test.insert_expired',
  `insert into kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)
   values (:tenant_id, 'swept', :key, '1', :version, 1, 1, :expires_at, 0)`,
)
const USE_QUOTA = unnamedAcrossTenants(
  'test.use_quota',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'kv_keys', :count, 0)
   on conflict (tenant_id, quota) do update set used = quota_usage.used + excluded.used`,
)
const QUOTA = unnamedAcrossTenants<{ used: number; version_floor: number }>(
  'test.quota',
  `select used, version_floor from quota_usage where tenant_id = :tenant_id and quota = 'kv_keys'`,
)
const ROWS = unnamedAcrossTenants<{ key: string; value: string | null; counted: number; version: number }>(
  'test.rows',
  'select key, value, counted, version from kv_entries where tenant_id = :tenant_id order by key',
)
const CREDENTIALS = unnamedAcrossTenants<{ hash: string }>(
  'test.credentials',
  `select hash from credentials where tenant_id = :tenant_id and kind = 'agent' order by created_at, hash`,
)

/** Puts this many keys that expire now into the tenant, counted as the service counts them. */
async function fill(service: TestService, tenant_id: string, count: number): Promise<void> {
  const expires_at = service.clock.now()
  await service.app.db.write(unhurried, async (tx) => {
    for (let i = 0; i < count; i++) {
      await tx.run(INSERT_EXPIRED, { tenant_id, key: `k${i}`, version: i + 1, expires_at })
    }
    await tx.run(USE_QUOTA, { tenant_id, count })
  })
}

forEachRacedService('The sweep', (service) => {
  const step = async () => {
    const { counts, more } = await sweep(service.app.db, service.clock)
    return {
      kv_keys: counts['expired.kv_keys'],
      inboxes: counts['expired.inboxes'],
      idempotency_keys: counts['expired.idempotency_keys'],
      locks_released: counts['dlq.locks_released'],
      more,
    }
  }
  const quotaOf = (tenant_id: string) => service.app.db.one(QUOTA, { tenant_id })
  const rowsOf = (tenant_id: string) => service.app.db.all(ROWS, { tenant_id })

  test('makes a tombstone of an expired key and frees its place; 24 h later that goes too', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const put = (key: string, ttl_seconds?: number) =>
      service.ask('PUT', `/v1/kv/swept/${key}`, { key: api_key, body: { value: 'x', ttl_seconds } })
    await put('kept')
    await put('long', 86_400 * 2)
    await put('short', 1)
    await put('short', 1)
    const kept = { key: 'kept', value: '"x"', counted: 1, version: 1 }
    const long = { key: 'long', value: '"x"', counted: 1, version: 1 }
    service.clock.advance(999)
    expect(await step()).toEqual({
      kv_keys: 0,
      inboxes: 0,
      idempotency_keys: 0,
      locks_released: 0,
      more: false,
    })
    expect(await quotaOf(tenant_id)).toEqual({ used: 3, version_floor: 0 })
    service.clock.advance(1)
    expect(await step()).toEqual({
      kv_keys: 1,
      inboxes: 0,
      idempotency_keys: 0,
      locks_released: 0,
      more: false,
    })
    expect(await rowsOf(tenant_id)).toEqual([
      kept,
      long,
      { key: 'short', value: null, counted: 0, version: 2 },
    ])
    expect(await quotaOf(tenant_id)).toEqual({ used: 2, version_floor: 0 })
    service.clock.advance(day_ms - 1)
    await step()
    expect(await rowsOf(tenant_id)).toHaveLength(3)
    service.clock.advance(1)
    expect(await step()).toEqual({
      kv_keys: 0,
      inboxes: 0,
      idempotency_keys: 0,
      locks_released: 0,
      more: false,
    })
    expect(await rowsOf(tenant_id)).toEqual([kept, long])
    expect(await quotaOf(tenant_id)).toEqual({ used: 2, version_floor: 2 })
    await service.ask('DELETE', '/v1/kv/swept/long', { key: api_key })
  })

  test('removes a deleted key 24 h after its deletion', async () => {
    const { tenant_id, api_key } = await service.signUp()
    await service.ask('PUT', '/v1/kv/swept/k', { key: api_key, body: { value: 1 } })
    service.clock.advance(5_000)
    await service.ask('DELETE', '/v1/kv/swept/k', { key: api_key })
    service.clock.advance(day_ms - 1)
    await step()
    expect(await rowsOf(tenant_id)).toEqual([{ key: 'k', value: null, counted: 0, version: 1 }])
    service.clock.advance(1)
    await step()
    expect(await rowsOf(tenant_id)).toEqual([])
    expect(await quotaOf(tenant_id)).toEqual({ used: 0, version_floor: 1 })
  })

  test('goes in bounded steps, and says whether there is more', async () => {
    const { tenant_id } = await service.signUp()
    await fill(service, tenant_id, rows_max * 2 + 1)
    const steps = []
    for (let i = 0; i < 4; i++) steps.push(await step())
    expect(steps).toEqual([
      { kv_keys: rows_max, inboxes: 0, idempotency_keys: 0, locks_released: 0, more: true },
      { kv_keys: rows_max, inboxes: 0, idempotency_keys: 0, locks_released: 0, more: true },
      { kv_keys: 1, inboxes: 0, idempotency_keys: 0, locks_released: 0, more: false },
      { kv_keys: 0, inboxes: 0, idempotency_keys: 0, locks_released: 0, more: false },
    ])
    expect(await quotaOf(tenant_id)).toEqual({ used: 0, version_floor: 0 })

    service.clock.advance(day_ms)
    expect((await step()).more).toBe(true)
    expect(await rowsOf(tenant_id)).toHaveLength(rows_max + 1)
    expect((await step()).more).toBe(true)
    expect((await step()).more).toBe(false)
    expect(await rowsOf(tenant_id)).toEqual([])
    expect(await quotaOf(tenant_id)).toEqual({ used: 0, version_floor: rows_max * 2 + 1 })
  })

  test('sweeps every tenant, each for itself', async () => {
    const one = await service.signUp()
    const other = await service.signUp()
    await fill(service, one.tenant_id, 3)
    await fill(service, other.tenant_id, 4)
    expect(await step()).toEqual({
      kv_keys: 7,
      inboxes: 0,
      idempotency_keys: 0,
      locks_released: 0,
      more: false,
    })
    for (const { tenant_id } of [one, other]) expect((await quotaOf(tenant_id))?.used).toBe(0)
    service.clock.advance(day_ms)
    await step()
    expect((await quotaOf(one.tenant_id))?.version_floor).toBe(3)
    expect((await quotaOf(other.tenant_id))?.version_floor).toBe(4)
  })

  test('removes Idempotency-Keys past their 24 h', async () => {
    const { api_key } = await service.signUp()
    for (const key of ['a', 'b', 'c']) {
      await service.ask('POST', '/v1/audit', {
        key: api_key,
        headers: { 'idempotency-key': key },
        body: { action: key },
      })
    }
    service.clock.advance(day_ms - 1)
    expect((await step()).idempotency_keys).toBe(0)
    service.clock.advance(1)
    expect((await step()).idempotency_keys).toBe(3)
    expect((await step()).idempotency_keys).toBe(0)
  })

  test('counts the Idempotency-Keys that it has removed, also when nothing can be read afterwards', async () => {
    const { api_key } = await service.signUp()
    const headers = { 'idempotency-key': 'a' }
    await service.ask('POST', '/v1/audit', { key: api_key, headers, body: { action: 'a' } })
    service.clock.advance(day_ms)
    const { run } = features.find(({ name }) => name === 'idempotency')!.sweep!
    const lists = new DueLists(service.clock)
    const writing = { write: service.app.db.write.bind(service.app.db) } as Db
    const bounds = { rows_max, bytes_max: 1_000 }
    const { counts } = await run(writing, service.clock.now(), lists, bounds)
    expect(counts).toEqual({ 'expired.idempotency_keys': 1 })
  })

  test('removes keys whose grace has ended, and no other', async () => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    service.clock.advance(1)
    const rotated = await service.ask('POST', '/v1/agents/agent-one/rotate-key', {
      key: admin_key,
      body: { grace_seconds: 60 },
    })
    const hashes = async () => {
      const rows = await service.app.db.all(CREDENTIALS, { tenant_id })
      return rows.map(({ hash }) => hash)
    }
    const both = [hashKey(api_key), hashKey(rotated.body.api_key)]
    service.clock.advance(59_999)
    await step()
    expect(await hashes()).toEqual(both)
    service.clock.advance(1)
    await step()
    expect(await hashes()).toEqual(both.slice(1))
  })

  test('replaces about 4 MB by tombstones in one step, and says that there is more', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const value = 'x'.repeat(256 * 1_024 - 2) // with its quotes a sixteenth of what one step removes
    for (let i = 0; i < 17; i++) {
      const put = service.ask('PUT', `/v1/kv/large/k${i}`, {
        key: api_key,
        body: { value, ttl_seconds: 1 },
      })
      expect((await put).status).toBe(200)
    }
    service.clock.advance(1_000)
    expect(await step()).toMatchObject({ kv_keys: 16, more: true })
    expect(await quotaOf(tenant_id)).toMatchObject({ used: 1 })
    expect(await step()).toMatchObject({ kv_keys: 1, more: false })
    expect(await quotaOf(tenant_id)).toMatchObject({ used: 0 })
  })

  test('a key that is written again while it waits for the sweep is kept', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const put = (ttl_seconds?: number) =>
      service.ask('PUT', '/v1/kv/swept/k', { key: api_key, body: { value: 1, ttl_seconds } })
    await put(1)
    service.clock.advance(1_000)
    await put()
    await step()
    expect(await rowsOf(tenant_id)).toEqual([{ key: 'k', value: '1', counted: 1, version: 2 }])
    await service.ask('DELETE', '/v1/kv/swept/k', { key: api_key })
    service.clock.advance(day_ms - 1)
    await put()
    service.clock.advance(1)
    await step()
    expect(await rowsOf(tenant_id)).toEqual([{ key: 'k', value: '1', counted: 1, version: 3 }])
  })
})

describe('The sweeper', () => {
  afterEach(() => {
    jest.useRealTimers()
  })

  /** A database that counts the steps asked of it, and refuses them. */
  function refusing(): { db: Db; steps: () => number } {
    let steps = 0
    const refuse = () => {
      steps += 1
      throw new Error('away')
    }
    const db = { all: refuse, write: refuse }
    return { db: db as unknown as Db, steps: () => steps }
  }

  let under_way: Promise<unknown> = Promise.resolve()

  /** The step, whose end `settled` waits for. */
  const watched = (step: () => Promise<{ more: boolean }>) => () => {
    const begun = step()
    under_way = begun
    return begun
  }

  /** The step has ended, and the sweeper, which waited for it first, has set its next timer. */
  async function settled(): Promise<void> {
    await Promise.allSettled([under_way])
    await Promise.resolve()
  }

  test('goes on after a failed step, tells each failure, and ends when it is stopped', async () => {
    jest.useFakeTimers()
    const { db, steps } = refusing()
    const failures: string[] = []
    const swept_features = features.flatMap(({ expiries, sweep }) =>
      [expiries ?? [], sweep ?? []].flat(),
    ).length
    const sweeper = startSweeper(
      watched(() => sweep(db, new TestClock())),
      (error) => failures.push(String(error)),
    )
    jest.advanceTimersByTime(4_999)
    await settled()
    expect(steps()).toBe(0)
    for (const expected of [1, 2, 3]) {
      jest.advanceTimersByTime(5_000)
      await settled()
      expect(steps()).toBe(expected * swept_features)
    }
    expect(failures).toEqual(Array(3).fill('Error: away'))
    await sweeper.stop()
    jest.advanceTimersByTime(60_000)
    await settled()
    expect(steps()).toBe(3 * swept_features)
  })

  test('goes on with other features after one that fails, counts what they removed, and leaves that one alone for 5 s', async () => {
    const began: string[] = []
    const clock = new TestClock()
    const feature = (name: string, run: () => Swept): Feature => ({
      name,
      sweep: {
        async run() {
          began.push(name)
          return run()
        },
      },
    })
    const failing = (name: string, after_ms: number) =>
      feature(name, () => {
        clock.advance(after_ms)
        throw new Error(`${name} failed`)
      })
    const list = [
      feature('locks', () => ({ counts: { 'locks.released': 2 }, more: false })),
      failing('letters', 0),
      feature('leases', () => ({ counts: { 'locks.released': 3 }, more: true })),
      failing('notes', 3_000), // as a statement does that ends by its time-out
      feature('pages', () => ({ counts: { 'expired.pages': 1 }, more: false })),
    ]
    const counted: [string, number][] = []
    const errors: unknown[] = []
    const lists = new DueLists(clock, (error) => errors.push(error))
    const count = (...one: [string, number]) => void counted.push(one)
    const step = () => sweepOf({ db: {} as Db, clock, features: list, count, lists })
    expect(await step()).toEqual({ more: true, is_complete: false })
    expect(errors).toEqual([new Error('letters failed'), new Error('notes failed')])
    expect(began).toEqual(['locks', 'letters', 'leases', 'notes', 'pages'])
    expect(counted).toEqual([
      ['locks.released', 2],
      ['locks.released', 3],
      ['expired.pages', 1],
    ])
    const stepAfter = async (ms: number) => {
      clock.advance(ms)
      began.length = 0
      expect(await step()).toEqual({ more: true, is_complete: false })
      return [...began]
    }
    expect(await stepAfter(1_999)).toEqual(['locks', 'leases', 'pages'])
    expect(await stepAfter(1)).toEqual(['locks', 'letters', 'leases', 'pages'])
    expect(await stepAfter(2_999)).toEqual(['locks', 'leases', 'pages'])
    expect(await stepAfter(1)).toEqual(['locks', 'leases', 'notes', 'pages'])
  })

  test('pauses 50 ms while there is more, and 5 s when there is not', async () => {
    jest.useFakeTimers()
    const expired = [rows_max, rows_max, 0, 0]
    let steps = 0
    const db = {
      one: () => null,
      all: ({ name }: { name: string }) =>
        name === 'kv.tenants_expired' ? [{ tenant_id: 'ten_1', due: expired[steps], until: 0 }] : [],
      write: (_: unknown, work: (tx: unknown) => Promise<unknown>) =>
        work({
          now: 0,
          run: () => 0,
          all: ({ name }: { name: string }) => {
            if (name !== 'kv.tombstone_expired') return []
            steps += 1
            return Array(expired[steps - 1]).fill({ bytes: 0 })
          },
          stores: () => {},
          one: () => null,
        }),
    }
    const sweeper = startSweeper(
      watched(() => sweep(db as unknown as Db, new TestClock())),
      (error) => {
        throw error
      },
    )
    const seen = []
    for (const ms of [5_000, 49, 1, 50, 4_999, 1]) {
      jest.advanceTimersByTime(ms)
      await settled()
      seen.push(steps)
    }
    await sweeper.stop()
    expect(seen).toEqual([1, 1, 2, 3, 3, 4])
  })

  test('looks twice a second at what leaves an event when its time is over', async () => {
    jest.useFakeTimers()
    let steps = 0
    const step = async () => ({ more: ++steps === 2 })
    const expirer = startSweeper(
      watched(step),
      (error) => {
        throw error
      },
      expiry_idle_ms,
    )
    const seen = []
    for (const ms of [499, 1, 500, 49, 1, 499, 1]) {
      jest.advanceTimersByTime(ms)
      await settled()
      seen.push(steps)
    }
    await expirer.stop()
    expect(seen).toEqual([0, 1, 2, 2, 3, 3, 4])
  })

  test('stop waits for the step that is under way', async () => {
    jest.useFakeTimers()
    const { promise: found, resolve: finish } = Promise.withResolvers<unknown[]>()
    const db = { one: () => null, all: () => found, write: async () => 0 }
    const sweeper = startSweeper(
      () => sweep(db as unknown as Db, new TestClock()),
      (error) => {
        throw error
      },
    )
    jest.advanceTimersByTime(5_000)
    let stopped = false
    const stopping = sweeper.stop().then(() => {
      stopped = true
    })
    for (let turn = 0; turn < 60; turn++) await Promise.resolve()
    expect(stopped).toBe(false)
    finish([])
    await stopping
    expect(stopped).toBe(true)
  })
})
