import { describe, expect, spyOn, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { second_ms } from '../base/clock.ts'
import { limits } from '../base/limit.ts'
import { service_cause } from '../contract/event.ts'
import { counted_quotas, default_plans, recounted_tables } from '../features.ts'
import { lease_ms } from '../jobs/job.ts'
import * as jobs from '../jobs/store.ts'
import * as kv from '../kv/store.ts'
import * as quotas from '../quotas/service.ts'
import { schedule_job } from '../schedules/jobs.ts'
import { secretsUnder } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import { type Db, type Reader, type StoredCounter, type Turn, unnamedAcrossTenants } from './db.ts'
import { LateCount } from './late-count.ts'
import { recount, recountEach } from './recount.ts'
import { rowBytes, StoredBytes } from './stored.ts'

const kib = 1_024
const COUNTER = unnamedAcrossTenants<StoredCounter>(
  'test.counter',
  `select used, writes from quota_usage where tenant_id = :tenant_id and quota = 'storage_bytes'`,
)
const dependencies = {
  plans: default_plans,
  keys: { secrets: secretsUnder('the secret of these tests') },
  counts: { quotas: counted_quotas },
}

async function newTenant(db: Db): Promise<string> {
  const name = crypto.randomUUID().slice(0, 20)
  const input = { name, owner_email: 'owner@example.com', plan: 'free' }
  return (await db.write((tx) => tenants.create(tx, dependencies, input, service_cause))).tenant.tenant_id
}

async function counterOf(db: Db, tenant_id: string): Promise<number> {
  return (await counterRow(db, tenant_id)).used
}

async function counterRow(q: Reader, tenant_id: string): Promise<StoredCounter> {
  return (await q.one(COUNTER, { tenant_id }))!
}

/** The bytes that a tenant is shown to store. */
async function shown(db: Db, tenant_id: string): Promise<number> {
  const counted = {
    calls: 0,
    storedBytes: (counter: StoredCounter) => db.storedBytes(tenant_id, counter),
  }
  const viewed = { plans: default_plans, quotas: counted_quotas }
  return (await quotas.usage(db, { tenant_id, plan: 'free' }, counted, viewed)).storage_bytes!.used
}

/** The bytes that this process has not written to the counter. */
const unwritten = async (db: Db, tenant_id: string) =>
  (await shown(db, tenant_id)) - (await counterOf(db, tenant_id))

/** The stored bytes as a write sees them whose caller was looked up now. */
async function inWrite(db: Db, tenant_id: string): Promise<number> {
  const counted = await counterRow(db, tenant_id)
  return db.write(tenant_id, (tx) => tx.stored(tenant_id, counted))
}

/** How often a counter is written while the work runs. */
async function counted(db: Db, work: () => Promise<unknown>): Promise<number> {
  let times = 0
  db.onStatement((name) => {
    if (name === 'stored.add') times += 1
  })
  await work()
  db.onStatement(null)
  return times
}

test('a row counts 256 bytes and its texts in UTF-8', () => {
  expect([rowBytes(), rowBytes('abc', null, 'é'), rowBytes('\u{1f600}')]).toEqual([256, 261, 260])
})

forEachDatabase('stored bytes', (databases) => {
  test('are in the counter with the commit on SQLite, and a second later on PostgreSQL', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, 1_000))
    const at_once = databases.engine === 'sqlite'
    expect(await counterOf(db, tenant_id)).toBe(at_once ? 1_000 : 0)
    expect(await unwritten(db, tenant_id)).toBe(at_once ? 0 : 1_000)
    await db.maintain()
    expect([await counterOf(db, tenant_id), await unwritten(db, tenant_id)]).toEqual([1_000, 0])
    expect(await counted(db, () => db.maintain())).toBe(0)
  })

  test('of 50 writes at once are written once for each tenant, or not yet', async () => {
    const { db } = await databases.open()
    const two = [await newTenant(db), await newTenant(db)]
    const times = await counted(db, () =>
      Promise.all(Array.from({ length: 50 }, (_, i) => db.write((tx) => tx.stores(two[i % 2]!, 10)))),
    )
    expect(times).toBe(databases.engine === 'sqlite' ? 2 : 0)
    await db.maintain()
    expect([await counterOf(db, two[0]!), await counterOf(db, two[1]!)]).toEqual([250, 250])
  })

  test('that grow by 256 KiB are written with the transaction on PostgreSQL, and not before', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, 256 * kib - 1))
    const before = await counterOf(db, tenant_id)
    await db.write((tx) => tx.stores(tenant_id, 1))
    expect(before).toBe(databases.engine === 'sqlite' ? 256 * kib - 1 : 0)
    expect([await counterOf(db, tenant_id), await unwritten(db, tenant_id)]).toEqual([256 * kib, 0])
  })

  test('of a transaction that fails count nothing, and those of its neighbours do', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    const failing = db.write(async (tx) => {
      tx.stores(tenant_id, 512 * kib)
      await quotas.lock(tx, tenant_id, 'agents')
      throw new Error('undone')
    })
    const kept = db.write((tx) => tx.stores(tenant_id, 7))
    await expect(failing).rejects.toThrow('undone')
    await kept
    await db.maintain()
    expect(await counterOf(db, tenant_id)).toBe(7)
  })

  test('never fall below 0, and a recount puts a wrong counter right', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, -5))
    await db.maintain()
    expect(await counterOf(db, tenant_id)).toBe(0)
    await db.write((tx) => tx.stores(tenant_id, 999))
    await db.maintain()
    expect([await recount(db, recounted_tables, tenant_id), await counterOf(db, tenant_id)]).toEqual([
      -999, 0,
    ])
    expect(await recount(db, recounted_tables, tenant_id)).toBe(0)
  })

  test('are recounted for as long as that takes, and not by the tenant’s own turn', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, 999))
    await db.maintain()
    const spies = [spyOn(db, 'read'), spyOn(db, 'write')]
    await recount(db, recounted_tables, tenant_id)
    const turns = spies.flatMap(({ mock }) => mock.calls.map(([turn]) => turn as unknown as Turn))
    for (const spy of spies) spy.mockRestore()
    const looks = { sqlite: 1, postgres: 2 }[databases.engine]
    expect(turns).toEqual(Array(looks + 2).fill({ key: 'recount', ms_max: null }))
  })

  test('that are not written yet are not missing to a recount', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    const putKeys = (count: number) =>
      db.write(async (tx) => {
        for (let i = 0; i < count; i++) {
          const write = kv.writeOf({ namespace: 'state', key: `${crypto.randomUUID()}` }, '1', null)
          await kv.put(tx, tenant_id, write)
          tx.stores(tenant_id, write.bytes)
        }
      })
    await putKeys(10)
    const recounted = recount(db, recounted_tables, tenant_id)
    await Bun.sleep(1_000)
    await db.maintain()
    expect(await recounted).toBe(0)
    // It never stops to store, and a node always has some of it to write.
    const counted = await counterOf(db, tenant_id)
    let is_over = false
    const storing = (async () => {
      for (; !is_over; await Bun.sleep(100)) await putKeys(1)
    })()
    expect(await recount(db, recounted_tables, tenant_id)).toBe(0)
    is_over = true
    await storing
    await db.maintain()
    expect(await counterOf(db, tenant_id)).toBeGreaterThan(counted)
    expect(await recount(db, recounted_tables, tenant_id)).toBe(0)
  })

  test('of one tenant that cannot be recounted leave the others to be put right, and are told of', async () => {
    const { db } = await databases.open()
    const two = [{ tenant_id: await newTenant(db) }, { tenant_id: await newTenant(db) }]
    for (const { tenant_id } of two) await db.write((tx) => tx.stores(tenant_id, 999))
    await db.maintain()
    const spy = spyOn(db, 'read').mockImplementationOnce(() => Promise.reject(new Error('too slow')))
    const told: unknown[] = []
    expect(
      await recountEach(db, recounted_tables, two, (tenant, missing) => told.push([tenant, missing])),
    ).toBe(1)
    spy.mockRestore()
    expect(told).toEqual([
      [two[0], new Error('too slow')],
      [two[1], -999],
    ])
    expect([await counterOf(db, two[0]!.tenant_id), await counterOf(db, two[1]!.tenant_id)]).toEqual([999, 0])
  })

  if (databases.engine === 'postgres')
    test('of a tenant that cannot be written wait on; those of the others are written, also of the same transaction', async () => {
      const { db } = await databases.open()
      const together = limits.get('postgres.counted_tenants')!.value
      const tenant_ids: string[] = []
      for (let i = 0; i <= together; i++) tenant_ids.push(await newTenant(db))
      const run = (text: string) => db.write((tx) => tx.run(unnamedAcrossTenants('test.alter', text), {}))
      await run(
        `alter table quota_usage add constraint barred check (tenant_id <> '${tenant_ids[0]}' or used < 5)`,
      )
      for (const tenant_id of tenant_ids) await db.write((tx) => tx.stores(tenant_id, 5))
      await expect(db.maintain()).rejects.toThrow('barred')
      const counters = () => Promise.all(tenant_ids.map((tenant_id) => counterOf(db, tenant_id)))
      expect(await counters()).toEqual(tenant_ids.map((_, n) => (n === 0 ? 0 : 5)))
      await run('alter table quota_usage drop constraint barred')
      await db.maintain()
      expect(await counters()).toEqual(Array(together + 1).fill(5))
    })

  test('count an attempt once that was taken for lost, and whose result comes in the end', async () => {
    const { db, clock } = await databases.open()
    const tenant_id = await newTenant(db)
    const event = { event_id: 'evt_a', destination: 'http://127.0.0.1:9', next_at: clock.now() }
    await db.write((tx) => jobs.enqueue(tx, { tenant_id, kind: schedule_job, source_id: 'sch_a', ...event }))
    const lease = () =>
      db.write((tx) => jobs.lease(tx, tenant_id, schedule_job, ['sch_a'], tx.now + lease_ms))
    const [held] = await lease()
    clock.advance(lease_ms)
    await lease()
    const came = { status_code: 500, error: 'http_500', started_at: 7, duration_ms: 8 }
    const result = { ok: false, ...came }
    for (let i = 0; i < 2; i++) await db.write((tx) => jobs.log(tx, schedule_job, held!, result))
    expect(await jobs.attempts(db, { tenant_id, source: 'schedule', source_id: 'sch_a' }, 99, 10)).toEqual([
      { seq: 1, event_id: 'evt_a', attempt: 1, ...came },
    ])
    await db.maintain()
    expect([await counterOf(db, tenant_id), await recount(db, recounted_tables, tenant_id)]).toEqual([
      rowBytes(),
      0,
    ])
  })

  test('are known within a transaction: the counter, what waits, its neighbours and its own', async () => {
    const { db, clock } = await databases.open()
    const tenant_id = await newTenant(db)
    const told = { used: (await counterOf(db, tenant_id)) + 40, writes: 0 }
    const seen = await db.write((tx) => {
      tx.stores(tenant_id, 3)
      return tx.stored(tenant_id, told)
    })
    expect(seen).toBe(43)
    // This process knows better than what the caller was told a moment ago.
    const earlier = { used: 0, writes: 0 }
    expect(await db.write((tx) => tx.stored(tenant_id, earlier))).toBe(3)
    clock.advance(second_ms)
    await db.maintain()
    expect(await db.write((tx) => tx.stored(tenant_id, earlier))).toBe(3)
    const later = { used: 100, writes: 99 }
    expect(await db.write((tx) => tx.stored(tenant_id, later))).toBe(100)
    clock.advance(2 * second_ms)
    expect(await db.write((tx) => tx.stored(tenant_id, { used: 50, writes: 0 }))).toBe(50)
  })

  test('are shown once, and count once against the limit, while their write is committed and not yet answered', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, 1_000))
    await db.maintain()
    await db.write((tx) => tx.stores(tenant_id, 70))
    const answers: (() => void)[] = []
    const real = LateCount.prototype.committed
    const spy = spyOn(LateCount.prototype, 'committed').mockImplementation(function (this: LateCount) {
      answers.push(() => real.call(this))
    })
    await db.maintain()
    expect(await counterOf(db, tenant_id)).toBe(1_070)
    const seen = [await shown(db, tenant_id), await inWrite(db, tenant_id)]
    spy.mockRestore()
    for (const answer of answers) answer()
    expect([...seen, await shown(db, tenant_id), await inWrite(db, tenant_id)]).toEqual([
      1_070, 1_070, 1_070, 1_070,
    ])
  })

  test('are shown once when the counter was read before they were written to it', async () => {
    const { db } = await databases.open()
    const tenant_id = await newTenant(db)
    await db.write((tx) => tx.stores(tenant_id, 70))
    const counter = await counterRow(db, tenant_id)
    await db.maintain()
    await db.write((tx) => tx.stores(tenant_id, 5))
    const in_write = await db.write((tx) => tx.stored(tenant_id, counter))
    // SQLite shows the state of the look itself.
    expect([db.storedBytes(tenant_id, counter), in_write]).toEqual([
      databases.engine === 'sqlite' ? 70 : 75,
      75,
    ])
  })
})

describe('what a process knows of the counters', () => {
  const counter = (used: number, writes: number) => ({ used, writes })

  test('is what it wrote, unless a look found a later one, and what waits and is on its way', () => {
    const clock = new TestClock()
    const stored = new StoredBytes(clock)
    const told = counter(5, 7)
    expect(stored.of('a', told)).toBe(5)
    stored.keep('a', 10)
    expect([stored.of('a', told), stored.unwritten('a'), stored.waiting()]).toEqual([15, 10, ['a']])
    const flight = stored.take('a')
    stored.keep('a', 1)
    expect([flight.bytes, stored.of('a', told), stored.unwritten('a')]).toEqual([10, 16, 11])
    stored.written('a', flight, counter(1_000, 8))
    expect([stored.of('a', told), stored.of('a', counter(900, 9)), stored.unwritten('a')]).toEqual([
      1_001, 901, 1,
    ])
    clock.advance(1_999)
    expect(stored.of('a', told)).toBe(1_001)
    clock.advance(1)
    expect(stored.of('a', told)).toBe(6)
  })

  test('counts what is on its way until a look finds it in the counter', () => {
    const stored = new StoredBytes(new TestClock())
    stored.keep('a', 10)
    const flight = stored.take('a')
    expect(stored.of('a', counter(5, 8))).toBe(15) // another node's write: this one was not answered
    flight.writes = 9
    expect([stored.of('a', counter(5, 8)), stored.of('a', counter(15, 9))]).toEqual([15, 15])
  })

  test('is the later of two writes whose answers come in the other order', () => {
    const stored = new StoredBytes(new TestClock())
    const [first, second] = [stored.take('a'), stored.take('a')]
    stored.written('a', second, counter(20, 2))
    stored.written('a', first, counter(10, 1))
    expect(stored.of('a', counter(0, 0))).toBe(20)
  })

  test('keeps what could not be written, and gives up what nobody knows of', () => {
    const stored = new StoredBytes(new TestClock())
    stored.keep('a', 10)
    stored.failed('a', stored.take('a'))
    expect(stored.unwritten('a')).toBe(10)
    stored.written('a', stored.take('a'), null)
    expect([stored.unwritten('a'), stored.of('a', counter(5, 0))]).toEqual([0, 5])
  })

  test('counts what a transaction that is undone had on its way, whatever takes its number', async () => {
    const stored = new StoredBytes(new TestClock())
    stored.keep('a', 10)
    const count = new LateCount(stored)
    await count.writeWaiting({ one: async () => counter(15, 3) as never }, ['a'])
    expect(stored.of('a', counter(15, 3))).toBe(15)
    count.rollBack()
    expect(stored.of('a', counter(5, 3))).toBe(15)
    count.failed(false)
    expect(stored.of('a', counter(5, 3))).toBe(15)
  })

  test('after a commit of which nobody knows counts what was removed, and not what grew', async () => {
    const stored = new StoredBytes(new TestClock())
    const tx = { one: async () => ({ used: 5 }) as never }
    const large = 512 * kib
    for (const [tenant_id, waiting] of [
      ['grew', 10],
      ['shrank', -10],
    ] as const)
      stored.keep(tenant_id, waiting)
    const count = new LateCount(stored)
    // Of these two the counter is written, and of the others only once they waited.
    count.changes.add('grew', large)
    count.changes.add('shrank', -large)
    count.changes.add('small', 7)
    count.changes.add('smaller', -7)
    await count.write(tx)
    count.failed(true)
    const waits = ['grew', 'shrank', 'small', 'smaller'].map((tenant_id) => stored.unwritten(tenant_id))
    expect(waits).toEqual([0, -10, 0, -7])
  })

  test('after a commit that failed is what it was before', async () => {
    const stored = new StoredBytes(new TestClock())
    stored.keep('grew', 10)
    const count = new LateCount(stored)
    count.changes.add('grew', 512 * kib)
    count.changes.add('smaller', -7)
    await count.write({ one: async () => null as never })
    count.failed(false)
    expect([stored.unwritten('grew'), stored.unwritten('smaller')]).toEqual([10, 0])
  })
})
