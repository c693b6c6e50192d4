import { describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { sweep } from '../../test/support/maintenance.ts'
import { forEachRacedService, forEachService, TestService } from '../../test/support/service.ts'
import { day_ms, hour_ms, iso } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import { routes } from '../features.ts'
import { sweep as sweepHours } from './service.ts'
import { rangeOf, stepsOf } from './steps.ts'
import { type Count, kept_ms, Usage } from './usage.ts'

const noon = Date.UTC(2026, 0, 15, 12)

describe('the counts of a node', () => {
  /** Refuses so many writes before it takes them. */
  function held(refusals = 0) {
    const written: Count[] = []
    let batches = 0
    const usage = new Usage(async (counts) => {
      batches += 1
      if (refusals-- > 0) throw new Error('refused')
      written.push(...counts.map((count) => ({ ...count })))
    })
    return { usage, written, batches: () => batches }
  }

  test('are one row for each tenant, hour and feature, in one order', async () => {
    const { usage, written } = held()
    usage.count('ten_b', 'kv', false, noon)
    usage.count('ten_a', 'kv', true, noon + hour_ms - 1)
    usage.count('ten_a', 'audit', false, noon + hour_ms)
    usage.count('ten_a', 'kv', false, noon)
    await usage.flush()
    expect(written).toEqual([
      { tenant_id: 'ten_a', hour: noon, feature: 'kv', calls: 2, failures: 1 },
      { tenant_id: 'ten_a', hour: noon + hour_ms, feature: 'audit', calls: 1, failures: 0 },
      { tenant_id: 'ten_b', hour: noon, feature: 'kv', calls: 1, failures: 0 },
    ])
    await usage.flush()
    expect(written).toHaveLength(3)
  })

  test('are kept when the database refuses them, and written with what came since', async () => {
    const { usage, written } = held(1)
    usage.count('ten_a', 'kv', true, noon)
    const refused = usage.flush()
    usage.count('ten_a', 'kv', false, noon)
    await expect(refused).rejects.toThrow('refused')
    expect(usage.size).toBe(1)
    await usage.flush()
    expect(written).toEqual([{ tenant_id: 'ten_a', hour: noon, feature: 'kv', calls: 2, failures: 1 }])
  })

  test('of a tenant that cannot be written now keep no others waiting', async () => {
    const written = new Set<string>()
    const usage = new Usage(async (counts) => {
      if (counts.some(({ tenant_id }) => tenant_id === 'ten_000')) throw new Error('its server is away')
      for (const { tenant_id } of counts) written.add(tenant_id)
    })
    const tenants = Array.from({ length: 150 }, (_, n) => `ten_${String(n).padStart(3, '0')}`)
    for (const tenant_id of tenants) usage.count(tenant_id, 'kv', false, noon)
    for (let n = 0; n < 3; n++) await expect(usage.flush()).rejects.toThrow('its server is away')
    expect([...written].toSorted()).toEqual(tenants.slice(1))
    expect(usage.size).toBe(1)
    usage.count('ten_000', 'kv', false, noon)
    usage.count('ten_200', 'kv', false, noon)
    await expect(usage.flush()).rejects.toThrow('its server is away')
    expect([written.has('ten_200'), usage.size]).toEqual([true, 1])
  })

  test('that come during a write are in the next one, no matter who asks for it', async () => {
    const { usage, written } = held()
    usage.count('ten_a', 'dlq', false, noon)
    const first = usage.flush()
    usage.count('ten_a', 'dlq', false, noon)
    await Promise.all([first, usage.flush(), usage.flush()])
    expect(written.map(({ calls }) => calls)).toEqual([1, 1])
    expect(usage.size).toBe(0)
  })

  test('are written a hundred at a time, and bounded while they cannot be', async () => {
    const { usage, written, batches } = held()
    for (let n = 0; n < 250; n++) usage.count(`ten_${n}`, 'kv', false, noon)
    await usage.flush()
    expect([written.length, batches()]).toEqual([250, 3])
    for (let n = 0; n < 100_001; n++) usage.count(`ten_${n}`, 'kv', false, noon)
    expect(usage.size).toBe(100_000)
  })

  test('know the feature of every route that takes a key', () => {
    // Moving a test clock does not count as usage.
    const counted = routes.filter(({ route }) => route.auth.length > 0 && !route.with_test_clock)
    const found = counted.map(({ usage }) => usage)
    const of_contract = [
      ...['tenants', 'agents', 'approval_keys', 'kv', 'audit', 'dlq', 'schedules', 'checkpoints', 'inboxes'],
      'rate_limits',
    ]
    expect(found).not.toContain(undefined)
    expect([...new Set(found)].slice(0, of_contract.length)).toEqual(of_contract)
  })
})

describe('a range', () => {
  const cases: [string, Parameters<typeof rangeOf>, ReturnType<typeof rangeOf>][] = [
    ['a day by default', ['hour', undefined, undefined, noon + 1], { from: noon - day_ms, to: noon + 1 }],
    [
      '30 days',
      ['day', undefined, undefined, noon],
      { from: noon - (noon % day_ms) - 30 * day_ms, to: noon },
    ],
    ['begins with its step', ['hour', noon + 59, noon + 60, 0], { from: noon, to: noon + 60 }],
    ['of a day, too', ['day', noon, noon + 1, 0], { from: noon - (noon % day_ms), to: noon + 1 }],
    ['35 days at most', ['hour', noon - kept_ms, noon, 0], { from: noon - kept_ms, to: noon }],
    ['and no more', ['hour', noon - kept_ms - 1, noon, 0], null],
    ['may be empty', ['hour', noon, noon, 0], { from: noon, to: noon }],
    ['or the wrong way round', ['hour', noon + hour_ms + 1, noon, 0], { from: noon + hour_ms, to: noon }],
    ['begins in 1970', ['hour', undefined, hour_ms, 0], { from: 0, to: hour_ms }],
    ['and not before', ['hour', undefined, 0, 0], { from: 0, to: 0 }],
  ]
  test.each(cases)('%s', (_, asked, range) => {
    expect(rangeOf(...asked)).toEqual(range)
  })

  test('that is empty, or the wrong way round, has no step', () => {
    for (const from of [noon, noon + hour_ms]) expect(stepsOf('hour', { from, to: noon }, [], [])).toEqual([])
  })

  test('has every step, adds hours up to days, and orders features', () => {
    const counts = [
      { hour: noon - day_ms, feature: 'audit', calls: 1, failures: 0 },
      { hour: noon - day_ms, feature: 'kv', calls: 2, failures: 1 },
      { hour: noon - day_ms + hour_ms, feature: 'audit', calls: 4, failures: 2 },
    ]
    const midnight = noon - (noon % day_ms)
    expect(stepsOf('day', { from: midnight - day_ms, to: noon }, ['kv', 'audit'], counts)).toEqual([
      {
        start_at: midnight - day_ms,
        calls: 7,
        failures: 3,
        features: [
          { feature: 'kv', calls: 2, failures: 1 },
          { feature: 'audit', calls: 5, failures: 2 },
        ],
      },
      { start_at: midnight, calls: 0, failures: 0, features: [] },
    ])
  })
})

const ROWS = unnamedAcrossTenants<{ hour: number }>(
  'test.usage_rows',
  'select hour from usage_hours where tenant_id = :tenant_id order by hour',
)

const COUNTS = unnamedAcrossTenants<{ feature: string; calls: number }>(
  'test.usage_counts',
  'select feature, calls from usage_hours where tenant_id = :tenant_id order by feature',
)

forEachRacedService('GET /v1/tenants/{id}/usage', (service) => {
  const usage = ({ tenant_id, admin_key }: { tenant_id: string; admin_key: string }, query = '') =>
    service.ask('GET', `/v1/tenants/${tenant_id}/usage${query}`, { key: admin_key })
  const zero = { calls: 0, failures: 0, features: [] }

  test('counts calls and failures of each feature by the hour, to the last call', async () => {
    const tenant = await service.signUp('pro')
    const { api_key, admin_key } = tenant
    const put = (value: unknown) => service.ask('PUT', '/v1/kv/state/x', { key: api_key, body: { value } })
    await put(1)
    await put(undefined)
    await service.ask('GET', '/v1/kv/state/none', { key: api_key })
    const check = { key: api_key, body: { key: 'k', limit: 1, window: 60 } }
    for (let i = 0; i < 2; i++) await service.ask('POST', '/api/rate-limit/check', check)
    await service.ask('POST', '/v1/agents', { key: api_key, body: { name: 'agent-two' } })
    await service.ask('POST', '/v1/audit', { key: admin_key, body: { action: 'x' } })
    const { status, body } = await usage(tenant)
    const now = service.clock.now()
    const hour = now - (now % hour_ms)
    expect([status, body.from, body.to, body.step]).toEqual([200, iso(hour - day_ms), iso(now), 'hour'])
    expect(body.items).toHaveLength(now === hour ? 24 : 25)
    expect(body.items[0]).toEqual({ start_at: iso(hour - day_ms), ...zero })
    const next = await usage(tenant, `?to=${iso(hour + hour_ms)}&from=${iso(hour)}`)
    expect(next.body.items).toEqual([
      {
        start_at: iso(hour),
        calls: 8,
        failures: 4,
        // The first call of the tenant made its agent.
        features: [
          { feature: 'agents', calls: 2, failures: 1 },
          { feature: 'kv', calls: 3, failures: 2 },
          { feature: 'audit', calls: 1, failures: 0 },
          { feature: 'rate_limits', calls: 2, failures: 1 },
        ],
      },
    ])
  })

  test('does not count who looks with the admin key, nor who has no key', async () => {
    const tenant = await service.signUp()
    const count = async () => {
      const { body } = await usage(tenant, `?to=${iso(service.clock.now() + hour_ms)}`)
      return body.items.reduce((sum: number, { calls }: { calls: number }) => sum + calls, 0)
    }
    const before = await count()
    for (const path of ['/v1/agents', '/v1/audit', '/v1/dlq', '/v1/kv/x', '/api/webhook'])
      await service.ask('GET', path, { key: tenant.admin_key })
    await service.ask('GET', '/v1/audit', { key: `${tenant.api_key.slice(0, -1)}_` })
    expect(await count()).toBe(before)
    await service.ask('HEAD', '/v1/audit', { key: tenant.api_key })
    expect(await count()).toBe(before + 1)
  })

  test('adds up to days, and an hour that passes begins a new row', async () => {
    const tenant = await service.signUp()
    const append = () => service.ask('POST', '/v1/audit', { key: tenant.api_key, body: { action: 'x' } })
    const start = service.clock.now()
    service.clock.advance(day_ms - (start % day_ms))
    const midnight = service.clock.now()
    await append()
    service.clock.advance(hour_ms)
    await append()
    await append()
    service.clock.advance(day_ms)
    await append()
    const query = `?step=day&from=${iso(midnight + 5)}&to=${iso(service.clock.now() + 1)}`
    const { body } = await usage(tenant, query)
    const of = (calls: number) => ({
      calls,
      failures: 0,
      features: [{ feature: 'audit', calls, failures: 0 }],
    })
    expect(body).toEqual({
      from: iso(midnight),
      to: iso(service.clock.now() + 1),
      step: 'day',
      items: [
        { start_at: iso(midnight), ...of(3) },
        { start_at: iso(midnight + day_ms), ...of(1) },
      ],
    })
  })

  test('me is the own tenant, here and where it is read; any other id is 403', async () => {
    const tenant = await service.signUp()
    const other = await service.signUp()
    const read = async (id: string) => {
      const answers = [`/v1/tenants/${id}`, `/v1/tenants/${id}/usage`].map((path) =>
        service.ask('GET', path, { key: tenant.admin_key }),
      )
      return (await Promise.all(answers)).map(({ status, body }) => [status, body.error?.code ?? null])
    }
    expect(await read('me')).toEqual(Array(2).fill([200, null]))
    for (const id of [other.tenant_id, 'ME', '-'])
      expect(await read(id)).toEqual(Array(2).fill([403, 'FORBIDDEN']))
    const own = await service.ask('GET', '/v1/tenants/me', { key: tenant.admin_key })
    expect(own.body.tenant_id).toBe(tenant.tenant_id)
    const rotated = await service.ask('POST', '/v1/tenants/me/rotate-key', { key: tenant.admin_key })
    expect([rotated.status, rotated.body.error.code]).toEqual([403, 'FORBIDDEN'])
  })

  test.each([
    ['step=week', 'query.step'],
    ['from=yesterday', 'query.from'],
    ['from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z', 'query.from'],
  ])('%s is refused', async (query, path) => {
    const refused = await usage(await service.signUp(), `?${query}`)
    expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([400, path])
  })

  test('counts nothing while the deletion of the tenant is pending, so that nothing outlives its purge', async () => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    await usage({ tenant_id, admin_key })
    const { status } = await service.ask('DELETE', `/v1/tenants/${tenant_id}`, {
      key: admin_key,
      body: { confirm: 'DELETE ALL DATA' },
    })
    const counts = () => service.app.db.all(COUNTS, { tenant_id })
    const before = await counts()
    const refused = await service.ask('GET', '/v1/audit', { key: api_key })
    await usage(await service.signUp())
    expect([status, refused.status, await counts()]).toEqual([202, 403, before])
  })

  test('is kept for 35 days after its day', async () => {
    const tenant = await service.signUp()
    await usage(tenant)
    const rows = () => service.app.db.all(ROWS, { tenant_id: tenant.tenant_id })
    const [first] = await rows()
    const day_ends_at = (Math.floor(first!.hour / day_ms) + 1) * day_ms
    service.clock.advance(day_ends_at + kept_ms - 1 - service.clock.now())
    await sweep(service.app.db, service.clock)
    expect(await rows()).toEqual([first!])
    service.clock.advance(1)
    await sweep(service.app.db, service.clock)
    expect(await rows()).toEqual([])
  })
})

forEachService('The longest report of days', (service) => {
  test('begins with a whole day, whether the sweep has run or not', async () => {
    const { api_key, admin_key } = await service.signUp()
    const read = () => service.ask('GET', '/v1/kv/state', { key: api_key })
    for (let i = 0; i < 3; i++) await read()
    service.clock.advance(14 * hour_ms)
    await read()
    service.clock.advance(kept_ms - hour_ms)
    const from = iso(service.clock.now() - kept_ms)
    const firstDay = async () => {
      const path = `/v1/tenants/me/usage?step=day&from=${from}`
      const [day] = (await service.ask('GET', path, { key: admin_key })).body.items
      return [day.start_at, day.calls]
    }
    const before = await firstDay()
    await sweep(service.app.db, service.clock)
    expect([before, await firstDay()]).toEqual(Array(2).fill(['2026-01-01T00:00:00.000Z', 5]))
  })
})

forEachDatabase('a step of the sweep', (databases) => {
  test('removes as many hours as it may, however many are of one time, and of all tenants in the end', async () => {
    const { db } = await databases.open()
    const INSERT = unnamedAcrossTenants(
      'test.insert',
      'insert into usage_hours (tenant_id, hour, feature, calls, failures) values (:tenant_id, :hour, :feature, 1, 0)',
    )
    const hours = ['tnt_a', 'tnt_b', 'tnt_c'].flatMap((tenant_id) =>
      ['kv', 'audit', 'dlq'].map((feature) => ({ tenant_id, feature })),
    )
    await db.write(async (tx) => {
      for (const row of hours) await tx.run(INSERT, { ...row, hour: 0 })
      await tx.run(INSERT, { tenant_id: 'tnt_a', feature: 'kv', hour: day_ms })
    })
    const removed: number[] = []
    const lists = new DueLists(db.clock)
    for (let step = 0; step < 4; step++)
      removed.push((await sweepHours(db, kept_ms + day_ms, lists, { rows_max: 4 })).touched)
    expect(removed).toEqual([4, 4, 1, 0])
    const left = unnamedAcrossTenants<{ hour: number }>('test.left', 'select hour from usage_hours')
    expect(await db.all(left, {})).toEqual([{ hour: day_ms }])
  })
})

forEachDatabase('nodes that follow each other', (databases) => {
  test('add their counts up, and a stop writes the last of them', async () => {
    const url = await databases.newUrl()
    const environment = { SECRET_KEY: 'one that outlives the node' }
    const first = await new TestService(environment).start(url)
    const { tenant_id, admin_key, api_key } = await first.signUp()
    const append = (service: TestService) =>
      service.ask('POST', '/v1/audit', { key: api_key, body: { action: 'x' } })
    for (let i = 0; i < 3; i++) await append(first)
    await first.stop()
    const second = await new TestService(environment).start(url)
    await append(second)
    const to = iso(second.clock.now() + hour_ms)
    const { body } = await second.ask('GET', `/v1/tenants/${tenant_id}/usage?to=${to}`, { key: admin_key })
    await second.stop()
    expect(body.items.flatMap((item: { features: object[] }) => item.features)).toContainEqual({
      feature: 'audit',
      calls: 4,
      failures: 0,
    })
  })
})
