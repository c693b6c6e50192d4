// Namespaces that leave events: one for each change of a key, in its transaction, and none without a change.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { beforeCommitOf } from '../../test/support/held.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { randomFrom } from '../../test/support/random.ts'
import {
  type Answer,
  cron_secret,
  forEachRacedService,
  TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { hour_ms, second_ms, systemClock } from '../base/clock.ts'
import { type Db, type Tx, unnamedAcrossTenants } from '../db/db.ts'
import { namespaces_max } from './namespace-service.ts'
import { expire, sweep, tombstone } from './sweep.ts'

interface Event {
  type: string
  subject_kind: string
  subject_id: string
  private_to: string | null
  agent_id: string | null
  actor: string
  request_id: string | null
  at: number
  data: string
}

const EVENTS = unnamedAcrossTenants<Event>(
  'test.kv_events',
  `select type, subject_kind, subject_id, private_to, agent_id, actor, request_id, at, data from events
    where tenant_id = :tenant_id and type >= 'kv.' and type < 'kv/' order by position`,
)

const INSERT_KEY = unnamedAcrossTenants(
  'test.many_keys',
  `insert into kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)
   values (:tenant_id, :namespace, :key, '1', 1, 1, 1, :expires_at, 0)`,
)

/** Keys that expire now, the rows of one write. */
function insertKeys(db: Db, { tenant_id }: TestTenant, namespace: string, count: number) {
  return db.write({ key: tenant_id, ms_max: null }, async (tx) => {
    for (let n = 0; n < count; n++)
      await tx.run(INSERT_KEY, { tenant_id, namespace, key: `n${n}`, expires_at: tx.now })
  })
}

async function eventsOf(db: Db, { tenant_id }: { tenant_id: string }) {
  return (await db.all(EVENTS, { tenant_id })).map((event) => ({ ...event, data: JSON.parse(event.data) }))
}

/** As texts: `put state/a 1`. */
async function changesOf(service: TestService, tenant: TestTenant): Promise<string[]> {
  const events = await eventsOf(service.app.db, tenant)
  return events.map(({ type, subject_id, data }) =>
    [type.replace('kv.', ''), subject_id, data.version].filter((part) => part !== undefined).join(' '),
  )
}

function callsOf(service: TestService, { admin_key, api_key }: TestTenant) {
  return {
    set: (namespace: string, events: unknown) =>
      service.ask('PUT', `/v1/namespaces/${namespace}`, { key: admin_key, body: { events } }),
    read: (namespace: string, key = admin_key) => service.ask('GET', `/v1/namespaces/${namespace}`, { key }),
    put: (path: string, body: object = {}, headers: Record<string, string> = {}, key = api_key) =>
      service.ask('PUT', `/v1/kv/${path}`, { key, headers, body: { value: 1, ...body } }),
    remove: (path: string, headers: Record<string, string> = {}) =>
      service.ask('DELETE', `/v1/kv/${path}`, { key: api_key, headers }),
  }
}

const forbidden = [403, 'NAMESPACE_FORBIDDEN']
const codeOf = ({ status, body }: Answer) => [status, body?.error?.code]

forEachRacedService('PUT /v1/namespaces/{namespace}', (service) => {
  test('turns events on and off, and GET and the list say so, also without a key', async () => {
    const tenant = await service.signUp()
    const { set, read } = callsOf(service, tenant)
    const shown = (events: boolean) => ({ namespace: 'state', agent_id: null, events })
    const list = async (query = '') =>
      (await service.ask('GET', `/v1/namespaces${query}`, { key: tenant.admin_key })).body.items
    expect((await read('state')).body).toEqual(shown(false))
    expect(await list()).toEqual([])
    for (const events of [true, true, false]) {
      const answer = await set('state', events)
      expect([answer.status, answer.body]).toEqual([200, shown(events)])
      expect((await read('state')).body).toEqual(shown(events))
      expect((await read('state', tenant.api_key)).body).toEqual(shown(events))
      expect(await list()).toEqual(events ? [shown(true)] : [])
    }
    expect(await changesOf(service, tenant)).toEqual(['events_enabled state', 'events_disabled state'])
    const query = '?type=kv.events_disabled'
    const { items: left } = (await service.ask('GET', `/v1/events${query}`, { key: tenant.admin_key })).body
    expect(left.map(({ type, data }: { type: string; data: object }) => [type, data])).toEqual([
      ['kv.events_disabled', { namespace: 'state' }],
    ])
  })

  test('is not for agents, needs the setting, and keeps to reserved names', async () => {
    const tenant = await service.signUp()
    const { set, read } = callsOf(service, tenant)
    const as_agent = await service.ask('PUT', '/v1/namespaces/state', {
      key: tenant.api_key,
      body: { events: true },
    })
    expect(codeOf(as_agent)).toEqual([403, 'FORBIDDEN'])
    for (const events of [undefined, null, 1, 'true'])
      expect(codeOf(await set('state', events))).toEqual([400, 'VALIDATION_FAILED'])
    for (const name of ['__rl', '__system', '__'])
      expect([codeOf(await set(name, true)), codeOf(await read(name))]).toEqual([forbidden, forbidden])
    expect(codeOf(await read('__agent.agent-two', tenant.api_key))).toEqual(forbidden)
    expect((await read('__agent.agent-one', tenant.api_key)).body).toEqual({
      namespace: '__agent.agent-one',
      agent_id: 'agent-one',
      events: false,
    })
    expect(await changesOf(service, tenant)).toEqual([])
  })

  test('a hundred may leave events; one more is TOO_MANY_NAMESPACES, until another leaves none', async () => {
    const tenant = await service.signUp()
    const { set } = callsOf(service, tenant)
    const insert = unnamedAcrossTenants(
      'test.fill_namespaces',
      'insert into kv_namespaces (tenant_id, namespace, created_at) values (:tenant_id, :namespace, 0)',
    )
    const count = unnamedAcrossTenants(
      'test.count',
      'update tenants set kv_events = :count where tenant_id = :tenant_id',
    )
    const { tenant_id } = tenant
    await service.app.db.write(async (tx) => {
      for (let n = 1; n < namespaces_max; n++) await tx.run(insert, { tenant_id, namespace: `n${1_000 + n}` })
      await tx.run(count, { tenant_id, count: namespaces_max - 1 })
    })
    expect((await set('last', true)).status).toBe(200)
    expect(codeOf(await set('over', true))).toEqual([409, 'TOO_MANY_NAMESPACES'])
    expect((await set('last', true)).status).toBe(200)
    expect((await set('n1001', false)).status).toBe(200)
    expect((await set('over', true)).status).toBe(200)
    expect(codeOf(await set('and-one', true))).toEqual([409, 'TOO_MANY_NAMESPACES'])
  })

  test('at once by many counts each namespace once', async () => {
    const tenant = await service.signUp()
    const { set } = callsOf(service, tenant)
    const many = (events: boolean) =>
      Promise.all(Array.from({ length: 12 }, (_, i) => set(`n${i % 3}`, events)))
    const counted = unnamedAcrossTenants<{ kv_events: number }>(
      'test.counted',
      'select kv_events from tenants where tenant_id = :tenant_id',
    )
    const count = async () => (await service.app.db.one(counted, { tenant_id: tenant.tenant_id }))!.kv_events
    expect((await many(true)).map(({ status }) => status)).toEqual(Array(12).fill(200))
    expect(await count()).toBe(3)
    await many(false)
    expect(await count()).toBe(0)
    expect((await changesOf(service, tenant)).length).toBe(6)
  })

  test('the list of namespaces has those that leave events in their place, page by page', async () => {
    const tenant = await service.signUp()
    const { set, put } = callsOf(service, tenant)
    for (const name of ['a', 'c', 'e', '__agent.agent-one']) await put(`${name}/k`)
    await Promise.all(['b', 'c', 'f', '__agent.agent-two'].map((name) => set(name, true)))
    const paged = async (limit: number, key: string) => {
      const names: string[] = []
      for (let cursor = ''; ; ) {
        const { body } = await service.ask('GET', `/v1/namespaces?limit=${limit}${cursor}`, { key })
        expect(body.items.length).toBeLessThanOrEqual(limit)
        for (const { namespace, events } of body.items) names.push(`${namespace}${events ? '!' : ''}`)
        if (body.next_cursor === null) return names
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    for (const limit of [1, 2, 3, 50]) {
      expect(await paged(limit, tenant.admin_key)).toEqual([
        ...['__agent.agent-one', '__agent.agent-two!', 'a', 'b!', 'c!', 'e', 'f!'],
      ])
      expect(await paged(limit, tenant.api_key)).toEqual(['__agent.agent-one', 'a', 'b!', 'c!', 'e', 'f!'])
    }
  })
})

forEachRacedService('A namespace that leaves events', (service) => {
  async function watched(...names: string[]) {
    const tenant = await service.signUp()
    const calls = callsOf(service, tenant)
    for (const name of names) await calls.set(name, true) // one after the other: their events have an order
    const settings = names.length
    return { tenant, ...calls, changes: async () => (await changesOf(service, tenant)).slice(settings) }
  }
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

  test('has one event for each put and delete, whole, and none for what changes nothing', async () => {
    const { tenant, put, remove } = await watched('state')
    const made = await put('state/a%2Fb', { ttl_seconds: 60 })
    await put('state/a%2Fb', { cas_version: 1 })
    expect((await put('state/a%2Fb', { cas_version: 1 })).status).toBe(409)
    expect((await put('state/a%2Fb', {}, { 'if-match': '7' })).status).toBe(412)
    expect((await put('state/a%2Fb', {}, { 'if-none-match': '*' })).status).toBe(412)
    expect((await remove('state/a%2Fb', { 'if-match': '7' })).status).toBe(412)
    await remove('state/a%2Fb', { 'if-match': '2' })
    expect((await remove('state/a%2Fb')).status).toBe(404)
    await put('other/k')
    await service.ask('POST', '/api/rate-limit/check', {
      key: tenant.api_key,
      body: { key: 'k', limit: 1, window: '1s' },
    })
    service.clock.advance(2 * second_ms)
    await tick()
    const [, first, ...others] = await eventsOf(service.app.db, tenant)
    expect(first).toEqual({
      ...{ type: 'kv.put', subject_kind: 'kv_key', subject_id: 'state/a/b', private_to: null },
      ...{ agent_id: 'agent-one', actor: 'agent-one', request_id: made.headers.get('x-request-id') },
      at: service.clock.now() - 2 * second_ms,
      data: { namespace: 'state', key: 'a/b', version: 1, expires_at: made.body.expires_at },
    })
    expect(others.map(({ type, data }) => ({ type, data }))).toEqual([
      { type: 'kv.put', data: { namespace: 'state', key: 'a/b', version: 2, expires_at: null } },
      { type: 'kv.deleted', data: { namespace: 'state', key: 'a/b', version: 2 } },
    ])
  })

  test('has one event for a key whose time is over, at the next tick, of the service', async () => {
    const { tenant, put } = await watched('state')
    const { body } = await put('state/k', { ttl_seconds: 1 })
    await put('other/k', { ttl_seconds: 1 })
    service.clock.advance(999)
    await tick()
    expect(await changesOf(service, tenant)).toEqual(['events_enabled state', 'put state/k 1'])
    service.clock.advance(301)
    await tick()
    await tick()
    const events = await eventsOf(service.app.db, tenant)
    expect(events.slice(2)).toEqual([
      {
        ...{ type: 'kv.expired', subject_kind: 'kv_key', subject_id: 'state/k', private_to: null },
        ...{ agent_id: null, actor: 'service', request_id: null, at: service.clock.now() },
        data: { namespace: 'state', key: 'k', version: 1, expired_at: body.expires_at },
      },
    ])
  })

  const overs: [how: string, body: object, headers: Record<string, string>][] = [
    ['without a condition', {}, {}],
    ['with cas_version 0', { cas_version: 0 }, {}],
    ['with If-None-Match *', {}, { 'if-none-match': '*' }],
  ]
  test.each(overs)('a put %s over a key that has expired leaves its end first', async (_, body, headers) => {
    const { put, changes } = await watched('state')
    await put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    expect((await put('state/k', { cas_version: 1 })).status).toBe(409)
    expect((await put('state/k', {}, { 'if-match': '1' })).status).toBe(412)
    const again = await put('state/k', body, headers)
    expect([again.status, again.body.version]).toEqual([200, 2])
    await tick()
    expect(await changes()).toEqual(['put state/k 1', 'expired state/k 1', 'put state/k 2'])
    const tenant = await service.signUp()
    expect(await changesOf(service, tenant)).toEqual([])
  })

  test('counts a key that a put has ended once, and its bytes', async () => {
    const { tenant, put, remove } = await watched('state')
    const quota = async () => {
      const path = `/v1/tenants/${tenant.tenant_id}`
      const { body } = await service.ask('GET', path, { key: tenant.admin_key })
      return [body.quota.kv_keys.used, body.quota.storage_bytes.used]
    }
    await put('state/k', { value: 'four' })
    await service.app.db.maintain()
    const before = await quota()
    await put('state/k', { value: 'a longer one', ttl_seconds: 1 })
    service.clock.advance(second_ms)
    await put('state/k', { value: 'four' })
    await service.app.db.maintain()
    expect(await quota()).toEqual(before)
    await remove('state/k')
    expect((await quota())[0]).toBe(before[0] - 1)
  })

  test('a delete of a key that has expired is 404, and leaves its end to the tick', async () => {
    const { put, remove, changes } = await watched('state')
    await put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    expect((await remove('state/k')).status).toBe(404)
    expect(await changes()).toEqual(['put state/k 1'])
    await tick()
    expect(await changes()).toEqual(['put state/k 1', 'expired state/k 1'])
  })

  test('that belongs to an agent shows its events to that agent: each is private to it', async () => {
    const { tenant, put, remove } = await watched('__agent.agent-one', 'state')
    await put('__agent.agent-one/k')
    await remove('__agent.agent-one/k')
    await put('__agent.agent-one/k', { ttl_seconds: 1 })
    await put('state/k')
    service.clock.advance(second_ms)
    await tick()
    const events = await eventsOf(service.app.db, tenant)
    expect(events.map(({ type, private_to }) => [type, private_to])).toEqual([
      ['kv.events_enabled', 'agent-one'],
      ['kv.events_enabled', null],
      ['kv.put', 'agent-one'],
      ['kv.deleted', 'agent-one'],
      ['kv.put', 'agent-one'],
      ['kv.put', null],
      ['kv.expired', 'agent-one'],
    ])
  })

  test('leaves none any more once they are turned off, and again when they are turned on', async () => {
    const { put, set, changes } = await watched('state', 'kept')
    await put('state/k', { ttl_seconds: 1 })
    await set('state', false)
    await put('state/quiet')
    await put('kept/k')
    service.clock.advance(second_ms)
    await tick()
    await set('state', true)
    await put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    await tick()
    expect(await changes()).toEqual([
      ...['put state/k 1', 'events_disabled state', 'put kept/k 1'],
      ...['events_enabled state', 'put state/k 2', 'expired state/k 2'],
    ])
  })

  test('has the end of a key that was put before it was turned on', async () => {
    const { tenant, put, set } = await watched()
    await put('state/k', { ttl_seconds: 2 })
    await set('state', true)
    service.clock.advance(2 * second_ms)
    await tick()
    expect(await changesOf(service, tenant)).toEqual(['events_enabled state', 'expired state/k 1'])
  })

  test('has the ends of many keys in the order of their times, in bounded steps, beside rate counters', async () => {
    const { tenant, put, changes } = await watched('state')
    const { db } = service.app
    for (let n = 0; n < 5; n++) {
      await put(`state/k${n}`, { ttl_seconds: 9 - n })
      await put(`other/k${n}`, { ttl_seconds: 9 - n })
    }
    await db.write(async (tx) => {
      for (let n = 0; n < 100; n++)
        await tx.run(INSERT_KEY, {
          ...{ tenant_id: tenant.tenant_id, namespace: 'state' },
          key: `n${n}`,
          expires_at: tx.now + 60_000 + n,
        })
    })
    service.clock.advance(10 * second_ms)
    expect(await expire(db, service.clock.now())).toEqual({ expired: 10, more: false })
    expect((await changes()).slice(5)).toEqual([4, 3, 2, 1, 0].map((n) => `expired state/k${n} 1`))
    service.clock.advance(60 * second_ms)
    expect(await expire(db, service.clock.now())).toEqual({ expired: 100, more: false })
    expect(await expire(db, service.clock.now())).toEqual({ expired: 0, more: false })
    expect((await changes()).slice(10)).toEqual(
      Array.from({ length: 100 }, (_, n) => `expired state/n${n} 1`),
    )
  })

  test('costs one statement while nothing has expired, however many tenants ask', async () => {
    await watched('state')
    await watched('state')
    const { db } = service.app
    const names: string[] = []
    const all: Db['all'] = (statement, params) => {
      names.push(statement.name)
      return db.all(statement, params)
    }
    expect(await expire({ all } as Db, service.clock.now() - hour_ms)).toEqual({
      expired: 0,
      more: false,
    })
    expect(names).toEqual(['kv.tenants_due'])
  })

  test('has the end of a key behind a backlog of other tenants that the sweep has not reached', async () => {
    const asking = await watched('state')
    const other = await watched()
    const { db } = service.app
    await insertKeys(db, other.tenant, 'state', 500)
    await asking.put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    expect((await expire(db, service.clock.now())).expired).toBe(1)
    expect(await asking.changes()).toEqual(['put state/k 1', 'expired state/k 1'])
    while ((await sweep(db, service.clock.now())).more);
  })

  test('has the end of a key behind many of the same tenant that leave no events, within one look', async () => {
    const { tenant, put, changes } = await watched('state')
    const { db } = service.app
    await insertKeys(db, tenant, 'cache', 5_000)
    service.clock.advance(1)
    await put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    expect(await expire(db, service.clock.now())).toEqual({ expired: 5_001, more: false })
    expect(await changes()).toEqual(['put state/k 1', 'expired state/k 1'])
  })

  test('leaves at most 100 events of ended keys in a transaction, and ends others beside them, 500 keys in all', async () => {
    const { tenant, changes } = await watched('state')
    const { db } = service.app
    await insertKeys(db, tenant, 'cache', 730)
    await insertKeys(db, tenant, 'state', 230)
    service.clock.advance(1)
    const steps: [keys: number, events: number][] = []
    for (let before = 0; steps.at(-1)?.[0] !== 0; before = (await changes()).length) {
      const keys = await db.write(tenant.tenant_id, (tx) => tombstone(tx, tenant.tenant_id))
      steps.push([keys, (await changes()).length - before])
    }
    expect(Math.max(...steps.map(([keys]) => keys))).toBe(500)
    expect(Math.max(...steps.map(([, events]) => events))).toBe(100)
    expect(steps.reduce(([keys, events], step) => [keys + step[0], events + step[1]])).toEqual([960, 230])
  })

  test('ends its look after a while, and has more to do, when a backlog is long', async () => {
    const { tenant } = await watched('state')
    const { app, clock } = service
    await insertKeys(app.db, tenant, 'cache', 1_500)
    clock.advance(1)
    const all = app.db.all.bind(app.db)
    const write = (key: string, work: (tx: Tx) => Promise<number>) => {
      clock.advance(150)
      return app.db.write(key, work)
    }
    const slow = { all, clock, write } as unknown as Db
    expect(await expire(slow, clock.now())).toEqual({ expired: 1_000, more: true })
    expect(await expire(app.db, clock.now())).toEqual({ expired: 500, more: false })
  })

  test('of one tenant does not affect another: its expired keys wait for the sweep', async () => {
    const asking = await watched('state')
    const other = await watched()
    for (const { put } of [asking, other]) await put('state/k', { ttl_seconds: 1 })
    service.clock.advance(second_ms)
    expect((await expire(service.app.db, service.clock.now())).expired).toBe(1)
    expect((await sweep(service.app.db, service.clock.now())).expired).toBe(1)
    expect(await changesOf(service, other.tenant)).toEqual([])
  })

  test('races of puts, deletes, ends and sweeps leave each change exactly once, in the order of the versions', async () => {
    const { tenant, put, remove } = await watched('state')
    const random = randomFrom(7)
    const answered: string[] = []
    const keys = ['a', 'b', 'c']
    const step = async () => {
      const key = keys[random(keys.length)]!
      const dice = random(100)
      if (dice < 15) return void (await expire(service.app.db, service.clock.now()))
      if (dice < 20) return void (await sweep(service.app.db, service.clock.now()))
      if (dice < 40) return service.clock.advance(random(700))
      if (dice < 60) {
        const { status } = await remove(`state/${key}`)
        if (status === 204) answered.push(`deleted ${key}`)
        return
      }
      const how = [{}, { ttl_seconds: 1 }, { ttl_seconds: 1 }, { cas_version: 0 }, { cas_version: 2 }]
      const { status, body } = await put(`state/${key}`, how[random(how.length)]!)
      if (status === 200) answered.push(`put ${key} ${body.version}`)
    }
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        for (let n = 0; n < 25; n++) await step()
      }),
    )
    service.clock.advance(2 * second_ms)
    while ((await expire(service.app.db, service.clock.now())).more);
    const events = (await eventsOf(service.app.db, tenant)).slice(1)
    const seen = events.map(({ type, data: { key, version } }) =>
      type === 'kv.put' ? `put ${key} ${version}` : `${type.slice(3)} ${key}`,
    )
    expect(seen.filter((change) => !change.startsWith('expired')).toSorted()).toEqual(answered.toSorted())
    for (const key of keys) {
      const { version, is_live } = replayed(events.filter(({ data }) => data.key === key))
      const now = await service.ask('GET', `/v1/kv/state/${key}`, { key: tenant.api_key })
      expect([key, is_live]).toEqual([key, now.status === 200])
      if (is_live) expect(now.body.version).toBe(version)
    }
  }, 300_000)

  /** The state of a key as a follower knows it. Throws where an event cannot follow the one before. */
  function replayed(events: Awaited<ReturnType<typeof eventsOf>>) {
    let version = 0
    let is_live = false
    for (const { type, data } of events) {
      const is_put = type === 'kv.put'
      expect([type, data.version, is_put || is_live]).toEqual([type, is_put ? version + 1 : version, true])
      version = data.version
      is_live = is_put
    }
    return { version, is_live }
  }
})

forEachRacedService(
  'A service that ticks by itself',
  (service) => {
    test('leaves the event of a key whose time is over without being asked', async () => {
      const tenant = await service.signUp()
      const { set, put } = callsOf(service, tenant)
      await set('state', true)
      await put('state/k', { ttl_seconds: 1 })
      service.clock.advance(second_ms)
      const changes = ['events_enabled state', 'put state/k 1', 'expired state/k 1']
      await until(async () => (await changesOf(service, tenant)).length === changes.length)
      expect(await changesOf(service, tenant)).toEqual(changes)
    })
  },
  { TICK: 'internal' },
)

forEachRacedService(
  'A namespace that two calls set at once',
  (service) => {
    test.each([true, false])('is as the one asked that came last: %p', async (events) => {
      const tenant = await service.signUp()
      const { set } = callsOf(service, tenant)
      if (events) await set('state', true)
      const answers = await beforeCommitOf(
        service.app.db,
        () => set('state', !events),
        () => set('state', events),
      )
      expect(answers.map(({ status, body }) => [status, body.events])).toEqual([
        [200, !events],
        [200, events],
      ])
      const path = '/v1/namespaces/state'
      expect((await service.ask('GET', path, { key: tenant.admin_key })).body.events).toBe(events)
    })
  },
  {},
  { background: false },
)

/** Runs as the machine's does: keys are remembered for a real second. */
class RealClock extends TestClock {
  override now(): number {
    return systemClock.now()
  }
  override monotonic(): number {
    return systemClock.monotonic()
  }
}

onPostgres('Two nodes of one PostgreSQL', () => {
  let database_url: string
  let elsewhere: string
  const nodes: TestService[] = []
  beforeAll(async () => {
    database_url = await newPostgresDatabase()
    elsewhere = await newPostgresDatabase() // signals are sent there and heard by nobody
    for (const environment of [{}, { DATABASE_LISTEN_URL: elsewhere }]) {
      const node = new TestService({ SECRET_KEY: 'the key that both nodes have', ...environment })
      node.clock = new RealClock()
      nodes.push(await node.start(database_url))
    }
  })
  afterAll(async () => {
    for (const node of nodes) await node.stop()
    for (const url of [database_url, elsewhere]) await dropPostgresDatabase(url)
  })

  test('a put on one that hears no signals, right after the other has answered, leaves its event, and none once it is off', async () => {
    const [here, there] = nodes as [TestService, TestService]
    const tenant = await here.signUp()
    const { set } = callsOf(here, tenant)
    const { put } = callsOf(there, tenant)
    for (const events of [true, false]) {
      let answered = false
      const setting = set('state', events).then(() => (answered = true))
      while (!answered) await put('state/meanwhile') // the node remembers the key of the agent all the time
      await setting
      expect((await put(`state/after-${events}`)).status).toBe(200)
    }
    const changes = await changesOf(here, tenant)
    expect(changes).toContain('put state/after-true 1')
    expect(changes).not.toContain('put state/after-false 1')
    expect(changes.indexOf('events_enabled state')).toBe(0)
  })
})
