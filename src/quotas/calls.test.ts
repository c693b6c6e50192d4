import { describe, expect, test } from 'bun:test'
import { failStatementsOf } from '../../test/support/away.ts'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { type Answer, askMany, forEachRacedService, TestService } from '../../test/support/service.ts'
import { day_ms, minute_ms } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import { default_plans } from '../features.ts'
import * as tenants from '../tenants/service.ts'
import { type CallCounts, Calls } from './calls.ts'
import * as quotas from './service.ts'

const free_limit = 500
const free = { tenant_id: 'ten_free', plan: 'free', status: 'active' } as const
const pro = { tenant_id: 'ten_pro', plan: 'pro', status: 'active' } as const

/** A database that answers when it is told to. */
class Held implements CallCounts {
  stored = 0
  asked: string[] = []
  #waiting: (() => void)[] = []
  /** The outcome of the next add. */
  next: 'added' | 'refused' | 'unknown' = 'added'

  look(tenant_id: string, month: string): Promise<number> {
    return this.#held(`look ${tenant_id} ${month}`, () => this.stored)
  }

  add(tenant_id: string, month: string, count: number): Promise<number | null> {
    return this.#held(`add ${tenant_id} ${month} ${count}`, () => {
      if (this.next === 'refused') throw new Error('refused')
      this.stored += count
      return this.next === 'added' ? this.stored : null
    })
  }

  #held<T>(asked: string, answer: () => T): Promise<T> {
    this.asked.push(asked)
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(answer())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Answers what is asked, and what is asked in consequence. */
  async answer(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await settled()
      for (const release of this.#waiting.splice(0)) release()
    }
    await settled()
  }
}

/** Until everything has gone as far as it gets without an answer. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}

function heldCalls() {
  const clock = new TestClock()
  const counts = new Held()
  const calls = new Calls(clock, counts)
  const take = () => calls.count(free, default_plans, clock.now())
  return { clock, counts, calls, take }
}

/** `counted`, or the code with which a call was refused. */
async function tried(work: () => Promise<void> | undefined): Promise<string> {
  try {
    await work()
    return 'counted'
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

describe('the calls of a month', () => {
  test('are looked up once for all that wait, and then counted without asking', async () => {
    const { counts, take } = heldCalls()
    counts.stored = free_limit - 3
    const waiting = Array.from({ length: 5 }, () => tried(take))
    await counts.answer()
    expect(await Promise.all(waiting)).toEqual([
      'counted',
      'counted',
      'counted',
      'QUOTA_EXCEEDED',
      'QUOTA_EXCEEDED',
    ])
    expect(await tried(take)).toBe('QUOTA_EXCEEDED')
    expect(counts.asked).toEqual(['look ten_free 2026-01'])
  })

  test('are looked up again after a second, and no sooner', async () => {
    const { clock, counts, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    clock.advance(999)
    expect(take()).toBeUndefined()
    clock.advance(1)
    const late = take()
    await counts.answer()
    await late
    expect(counts.asked).toHaveLength(2)
  })

  test('that come while they are written are neither lost nor counted twice', async () => {
    const { clock, counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    take()
    const flushed = calls.flush()
    await settled()
    take()
    const used = calls.used(free.tenant_id, clock.now())
    clock.advance(1_000)
    const late = take()
    await counts.answer()
    await flushed
    await counts.answer()
    await late
    expect([await used, counts.stored]).toEqual([3, 2])
    const rest = calls.flush()
    await counts.answer()
    await rest
    expect(counts.stored).toBe(4)
    expect(counts.asked.filter((asked) => asked.startsWith('add'))).toEqual([
      'add ten_free 2026-01 2',
      'add ten_free 2026-01 2',
    ])
  })

  test('are kept when the database refuses them, and written the next time', async () => {
    const { counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    counts.next = 'refused'
    const refused = tried(() => calls.flush())
    await counts.answer()
    expect(await refused).toBe('Error: refused')
    counts.next = 'added'
    const again = calls.flush()
    await counts.answer()
    await again
    expect(counts.stored).toBe(1)
  })

  test('of a tenant that cannot be written now keep no others waiting for longer than one flush', async () => {
    const clock = new TestClock()
    const written: string[] = []
    const calls = new Calls(clock, {
      look: async () => 0,
      async add(tenant_id, _, count) {
        if (tenant_id === 'ten_0') throw new Error('its server is away')
        written.push(tenant_id)
        return count
      },
    })
    const tenants = Array.from({ length: 40 }, (_, n) => `ten_${n}`)
    for (const tenant_id of tenants)
      await calls.count({ ...free, tenant_id, plan: 'unlimited' }, default_plans, clock.now())
    for (let n = 0; n < 2; n++) expect(await tried(() => calls.flush())).toBe('Error: its server is away')
    expect(written.toSorted()).toEqual(tenants.slice(1).toSorted())
  })

  test('are not written twice when nobody knows whether they were: the database is asked', async () => {
    const { clock, counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    counts.next = 'unknown'
    const flushed = calls.flush()
    await counts.answer()
    await flushed
    clock.advance(1_000)
    const next = take()
    await counts.answer()
    await next
    expect([counts.stored, counts.asked]).toEqual([
      1,
      ['look ten_free 2026-01', 'add ten_free 2026-01 1', 'look ten_free 2026-01'],
    ])
  })

  test('a write that fails takes nobody along who waited for it', async () => {
    const { clock, counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    clock.advance(1_000)
    counts.next = 'refused'
    const refused = tried(() => calls.flush())
    const waiting = take()
    await counts.answer()
    expect(await refused).toBe('Error: refused')
    await counts.answer()
    await waiting
    expect(counts.asked.at(-1)).toBe('look ten_free 2026-01')
  })

  test('are all written by stop, what came during its last write included', async () => {
    const { counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    const flushed = calls.flush()
    await settled()
    take()
    const stopped = calls.stop()
    await counts.answer()
    await flushed
    await counts.answer()
    await stopped
    expect(counts.stored).toBe(2)
  })

  test('of a plan without a limit are counted without ever asking first', async () => {
    const { clock, counts, calls } = heldCalls()
    for (let i = 0; i < 3; i++) expect(calls.count(pro, default_plans, clock.now())).toBeUndefined()
    const flushed = calls.flush()
    await counts.answer()
    await flushed
    expect(counts.asked).toEqual(['add ten_pro 2026-01 3'])
  })

  test('start again from zero with the month in UTC', async () => {
    const { clock, counts, take } = heldCalls()
    counts.stored = free_limit
    clock.advance(31 * day_ms - 1)
    const refused = tried(take)
    await counts.answer()
    expect(await refused).toBe('QUOTA_EXCEEDED')
    clock.advance(1)
    counts.stored = 0
    const counted = tried(take)
    await counts.answer()
    expect(await counted).toBe('counted')
    expect(counts.asked).toEqual(['look ten_free 2026-01', 'look ten_free 2026-02'])
  })

  test('of a tenant that is silent for more than a minute are forgotten once they are written', async () => {
    const { clock, counts, calls, take } = heldCalls()
    const first = take()
    await counts.answer()
    await first
    const flush = async () => {
      const flushed = calls.flush()
      await counts.answer()
      await flushed
    }
    await flush()
    clock.advance(minute_ms)
    await flush()
    expect(calls.size).toBe(1)
    clock.advance(1)
    await flush()
    expect([calls.size, counts.stored]).toEqual([0, 1])
  })
})

forEachDatabase('the calls of two nodes', (databases) => {
  test('are known to the other one once they are written and a second has gone by', async () => {
    const { db, clock } = await databases.open()
    const [one, two] = [quotas.monthlyCalls(db, clock), quotas.monthlyCalls(db, clock)]
    const callOn = (node: Calls) => tried(() => node.count(free, default_plans, clock.now()))
    for (let i = 0; i < free_limit - 1; i++) expect(await callOn(one)).toBe('counted')
    expect(await callOn(two)).toBe('counted')
    await one.flush()
    clock.advance(999)
    expect(await callOn(two)).toBe('counted')
    clock.advance(1)
    expect(await callOn(two)).toBe('QUOTA_EXCEEDED')
    await two.flush()
    expect(await callOn(one)).toBe('QUOTA_EXCEEDED')
    expect(await one.used(free.tenant_id, clock.now())).toBe(free_limit + 1)
    expect(await two.used(free.tenant_id, clock.now())).toBe(free_limit + 1)
  })

  test('are counted to the call when many come at once, and not past the limit', async () => {
    const { db, clock } = await databases.open()
    const calls = quotas.monthlyCalls(db, clock)
    const results = await Promise.all(
      Array.from({ length: 2 * free_limit }, async (_, i) => {
        if (i % 50 === 0) void calls.flush()
        if (i % 70 === 0) await calls.used(free.tenant_id, clock.now())
        return tried(() => calls.count(free, default_plans, clock.now()))
      }),
    )
    expect(results.filter((result) => result === 'counted')).toHaveLength(free_limit)
    await calls.stop()
    expect(await quotas.monthlyCalls(db, clock).used(free.tenant_id, clock.now())).toBe(free_limit)
  })

  test('of past months are swept after a year or so', async () => {
    const { db, clock } = await databases.open()
    const calls = quotas.monthlyCalls(db, clock)
    await calls.count(pro, default_plans, clock.now())
    await calls.flush()
    const january = clock.now()
    const lists = new DueLists(clock)
    const removedBefore = async (at: number) => (await quotas.sweepCalls(db, at, lists, 10)).touched
    expect(await removedBefore(january)).toBe(0)
    expect(await removedBefore(january + 31 * day_ms)).toBe(1)
    expect(await quotas.monthlyCalls(db, clock).used(pro.tenant_id, clock.now())).toBe(0)
  })
})

forEachDatabase('The sweep of past months', (databases) => {
  const ADD = unnamedAcrossTenants(
    'test.add_calls',
    'insert into api_calls (tenant_id, month, calls) values (:tenant_id, :month, 1)',
  )
  const LEFT = unnamedAcrossTenants<{ tenant_id: string }>(
    'test.left_calls',
    'select tenant_id from api_calls order by tenant_id',
  )

  test('goes on behind those of a tenant that fails, which go later', async () => {
    const { db, clock } = await databases.open()
    await db.write(async (tx) => {
      for (const month of ['2024-01', '2024-02', '2024-03', '2024-04', '2024-05'])
        await tx.run(ADD, { tenant_id: 'tnt_away', month })
      for (const month of ['2024-06', '2024-12']) await tx.run(ADD, { tenant_id: 'tnt_other', month })
    })
    const errors: unknown[] = []
    const lists = new DueLists(clock, (error) => errors.push(error))
    const step = () => quotas.sweepCalls(db, Date.parse('2025-01'), lists, 2)
    const left = async () => (await db.all(LEFT, {})).map(({ tenant_id }) => tenant_id)
    const fails = failStatementsOf(db, 'tnt_away')
    while ((await step()).more);
    fails.mockRestore()
    expect(await left()).toEqual(Array(5).fill('tnt_away'))
    expect(errors).toHaveLength(1)
    clock.advance(5_000)
    while ((await step()).more);
    expect(await left()).toEqual([])
  })
})

forEachRacedService('the calls of /api', (service) => {
  const check = (key: string, headers: Record<string, string> = {}) =>
    service.ask('GET', '/api/rate-limit/k', { headers: { 'x-api-key': key, ...headers } })
  const usedOf = async ({ tenant_id, admin_key }: { tenant_id: string; admin_key: string }) =>
    (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body.quota.api_calls_per_month
  const refusal = ({ status, body }: Answer) => [status, body.success, body.error?.code, body.error?.details]

  test('are shown at once, by agents and admin alike; what was refused and what is under /v1 is not counted', async () => {
    const tenant = await service.signUp()
    const strange = await service.signUp()
    expect(await usedOf(tenant)).toEqual({ used: 0, limit: free_limit })
    await check(tenant.api_key)
    await check(tenant.admin_key)
    expect((await check(tenant.api_key, { 'x-agent-id': 'agent-two' })).status).toBe(401)
    const approval = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key })
    expect((await service.ask('GET', '/api/rate-limit/k', { key: approval.body.approval_key })).status).toBe(
      403,
    )
    expect((await service.ask('GET', '/api/nothing', { key: tenant.api_key })).status).toBe(404)
    expect((await service.ask('DELETE', '/api/rate-limit/k', { key: tenant.api_key })).status).toBe(405)
    await service.ask('GET', '/v1/kv/state', { key: tenant.api_key })
    expect(await usedOf(tenant)).toEqual({ used: 2, limit: free_limit })
    expect(await usedOf(strange)).toEqual({ used: 0, limit: free_limit })
  })

  test('that another quota refuses are counted as any other', async () => {
    const tenant = await service.signUp()
    const create = () => service.ask('POST', '/api/webhook', { key: tenant.api_key })
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await create()).status)
    expect(statuses).toEqual([201, 201, 201, 402])
    expect((await usedOf(tenant)).used).toBe(4)
  })

  test('past the limit of the plan are 402, to the call, and counted no further', async () => {
    const tenant = await service.signUp()
    const answers = await askMany(free_limit + 20, () => check(tenant.api_key))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(free_limit)
    const refused = answers.filter(({ status }) => status !== 200)
    const details = { quota: 'api_calls_per_month', used: free_limit, limit: free_limit }
    for (const answer of refused) expect(refusal(answer)).toEqual([402, false, 'QUOTA_EXCEEDED', details])
    expect(refused[0]!.body.error.message).toBe(
      'The plan free allows 500 calls of /api per month, and all are used; the next month begins at ' +
        '2026-02-01T00:00:00.000Z. Ask the operator, who raises it with: ' +
        `npm run admin -- set-plan ${tenant.tenant_id} builder (or pro, enterprise, unlimited)`,
    )
    expect(await usedOf(tenant)).toEqual({ used: free_limit, limit: free_limit })
    expect((await service.ask('GET', '/v1/kv/state', { key: tenant.api_key })).status).toBe(200)
    await tenants.setPlan(service.app.db, tenant.tenant_id, 'builder')
    service.clock.advance(1_001)
    expect((await check(tenant.api_key)).status).toBe(200)
    expect(await usedOf(tenant)).toEqual({ used: free_limit + 1, limit: null })
  })

  describe('that the console reads with the admin key', () => {
    const console_header = { 'x-waystation-client': 'console' }
    const newInbox = async ({ api_key }: { api_key: string }) =>
      (await service.ask('POST', '/api/webhook', { key: api_key })).body.data.id as string
    const reads = (id: string) => ['/api/webhook', `/api/webhook/${id}`, `/api/webhook/${id}/messages`]

    test('are not counted where they read inboxes, and are answered past the limit', async () => {
      const tenant = await service.signUp()
      const id = await newInbox(tenant)
      const key = tenant.admin_key
      for (const path of reads(id)) {
        const read = await service.ask('GET', path, { key, headers: console_header })
        expect([path, read.status]).toEqual([path, 200])
      }
      expect((await usedOf(tenant)).used).toBe(1)
      await askMany(free_limit, () => check(tenant.api_key))
      for (const path of reads(id)) {
        const read = await service.ask('GET', path, { key, headers: console_header })
        expect([path, read.status]).toEqual([path, 200])
        expect((await service.ask('GET', path, { key })).status).toBe(402)
      }
      expect(await usedOf(tenant)).toEqual({ used: free_limit, limit: free_limit })
    })

    test('are counted with the key of an agent, another value of the header, and on every other route', async () => {
      const tenant = await service.signUp()
      const id = await newInbox(tenant)
      const { admin_key, api_key } = tenant
      for (const path of reads(id)) {
        await service.ask('GET', path, { key: api_key, headers: console_header })
        await service.ask('GET', path, { key: admin_key, headers: { 'x-waystation-client': 'sdk' } })
      }
      const headers = console_header
      const query = 'key=k&limit=5&windowSeconds=60'
      await service.ask('GET', `/api/rate-limit/check?${query}`, { key: admin_key, headers })
      const body = { key: 'k', limit: 5, windowSeconds: 60 }
      await service.ask('POST', '/api/rate-limit/check', { key: admin_key, headers, body })
      await service.ask('GET', '/api/rate-limit/k', { key: admin_key, headers })
      await service.ask('GET', '/api/rate-limit', { key: admin_key, headers })
      await service.ask('DELETE', `/api/webhook/${id}`, { key: admin_key, headers })
      expect((await usedOf(tenant)).used).toBe(1 + 6 + 5)
    })
  })

  test('are counted where the plan has no limit, too', async () => {
    const tenant = await service.signUp('pro')
    for (let i = 0; i < 3; i++) await check(tenant.api_key)
    expect(await usedOf(tenant)).toEqual({ used: 3, limit: null })
  })
})

forEachDatabase('a stop of the service', (databases) => {
  test('writes the calls that were not written yet', async () => {
    const url = await databases.newUrl()
    const environment = { SECRET_KEY: 'one that outlives the node' }
    const first = await new TestService(environment).start(url)
    const tenant = await first.signUp()
    for (let i = 0; i < 7; i++)
      await first.ask('GET', '/api/rate-limit/k', { headers: { 'x-api-key': tenant.api_key } })
    await first.stop()
    const second = await new TestService(environment).start(url)
    const path = `/v1/tenants/${tenant.tenant_id}`
    const { quota } = (await second.ask('GET', path, { key: tenant.admin_key })).body
    await second.stop()
    expect(quota.api_calls_per_month).toEqual({ used: 7, limit: free_limit })
  })
})
