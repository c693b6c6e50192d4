import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { requested } from '../../test/support/requested.ts'
import { forEachService } from '../../test/support/service.ts'
import { day_ms } from '../base/clock.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import { openDb } from '../db/open.ts'
import * as tenants from '../tenants/service.ts'
import { keyCache } from './cache.ts'
import * as credentials from './service.ts'

const callerOf = (tenant_id: string): AdminCaller => ({
  kind: 'admin',
  tenant_id,
  plan: 'free',
  status: 'active',
  ...requested,
})
const caller = callerOf('ten_1')

function put(cache: KeyCache, key: string, expires_at: number | null = null, of = caller): void {
  cache.put(key, cache.ask(), of, expires_at)
}

describe('A key that was valid', () => {
  test('is believed for 900 ms, with its caller and the end of its grace', () => {
    const clock = new TestClock()
    const cache = keyCache(clock)
    expect(cache.get('key')).toBeNull()
    put(cache, 'key', 123)
    expect(cache.get('key')).toMatchObject({ caller, expires_at: 123 })
    clock.advance(899)
    expect(cache.get('key')).not.toBeNull()
    clock.advance(1)
    expect(cache.get('key')).toBeNull()
  })

  test('is believed for 900 ms from when it was asked for, however long the answer took', () => {
    const clock = new TestClock()
    const cache = keyCache(clock)
    const asked = cache.ask()
    clock.advance(500) // it may have ended meanwhile
    cache.put('key', asked, caller, null)
    clock.advance(399)
    expect(cache.get('key')).not.toBeNull()
    clock.advance(1)
    expect(cache.get('key')).toBeNull()
  })

  test('is believed for no longer when the wall clock is set back', () => {
    const clock = new TestClock()
    const cache = keyCache(clock)
    put(cache, 'key')
    clock.advance(1_000)
    clock.jump(-day_ms)
    expect(cache.get('key')).toBeNull()
  })

  test('being asked for does not make it live longer', () => {
    const clock = new TestClock()
    const cache = keyCache(clock)
    put(cache, 'key')
    for (let i = 0; i < 8; i++) {
      clock.advance(100)
      expect(cache.get('key')).not.toBeNull()
    }
    clock.advance(100)
    expect(cache.get('key')).toBeNull()
  })

  test('is forgotten with all others of its tenant when any of them ends, and those of other tenants are not', () => {
    const cleared: string[] = []
    const cache = keyCache(new TestClock(), { onCleared: (tenant_id) => cleared.push(tenant_id) })
    put(cache, 'one')
    put(cache, 'other')
    put(cache, 'foreign', null, callerOf('ten_2'))
    cache.clear('ten_1')
    expect([cache.get('one'), cache.get('other')]).toEqual([null, null])
    expect(cache.get('foreign')).not.toBeNull()
    expect(cleared).toEqual(['ten_1'])
  })

  test('is forgotten when another node ended it, without a word to other nodes', () => {
    const cleared: string[] = []
    const cache = keyCache(new TestClock(), { onCleared: (tenant_id) => cleared.push(tenant_id) })
    for (const forgotten of ['ten_1', null]) {
      put(cache, 'one')
      cache.forget(forgotten)
      expect(cache.get('one')).toBeNull()
    }
    expect(cleared).toEqual([])
  })

  test.each(['ten_1', null])('is not remembered when a key of %s ended while it was looked up', (ended) => {
    const cache = keyCache(new TestClock())
    const asked = cache.ask()
    cache.forget(ended)
    cache.put('key', asked, caller, null)
    expect(cache.get('key')).toBeNull()
    put(cache, 'key')
    expect(cache.get('key')).not.toBeNull()
  })

  test('is remembered when a key of another tenant ended while it was looked up: 1,000 such tenants are known', () => {
    const cache = keyCache(new TestClock())
    const asked = cache.ask()
    for (let i = 0; i < 1_000; i++) cache.clear(`ten_other_${i}`)
    cache.put('key', asked, caller, null)
    expect(cache.get('key')).not.toBeNull()
    cache.clear('ten_other_1000')
    cache.put('another', asked, caller, null)
    expect(cache.get('another')).toBeNull()
  })

  test('is one of 10,000 at most', () => {
    const cache = keyCache(new TestClock())
    for (let i = 0; i < 10_000; i++) put(cache, `key-${i}`)
    expect(cache.get('key-0')).not.toBeNull()
    put(cache, 'one more')
    expect([cache.get('key-0'), cache.get('key-9999')]).toEqual([null, null])
    expect(cache.get('one more')).not.toBeNull()
  })
})

forEachService('Keys on several nodes', (service) => {
  /** Runs a change of another node, or of the operator's command, on the same database; this node is not notified. */
  async function elsewhere(
    action: (db: Awaited<ReturnType<typeof openDb>>) => Promise<unknown>,
  ): Promise<void> {
    const db = await openDb(service.database_url, {
      clock: service.clock,
      exclusive: false,
      onFatal: (error) => {
        throw error
      },
    })
    try {
      await action(db)
    } finally {
      await db.close()
    }
  }

  const status = async (key: string) => (await service.ask('GET', '/v1/kv/a', { key })).status

  test('a key that was rotated on another node dies here within a second', async () => {
    const { tenant_id, api_key } = await service.signUp()
    expect(await status(api_key)).toBe(200)
    let new_key = ''
    await elsewhere((db) =>
      credentials.endKeys(db, keyCache(service.clock), tenant_id, async (tx, ending) => {
        const subject = { tenant_id, kind: 'agent', subject: 'agent-one' } as const
        new_key = (await credentials.rotate(tx, ending, subject, 0)).key
      }),
    )
    expect(await status(new_key)).toBe(200)
    service.clock.advance(1_000)
    expect([await status(api_key), await status(new_key)]).toEqual([401, 200])
  })

  test('a plan that was set elsewhere holds here within a second', async () => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    expect(await status(api_key)).toBe(200)
    await elsewhere((db) => tenants.setPlan(db, tenant_id, 'pro'))
    service.clock.advance(1_000)
    const read = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
    expect([read.body.plan, read.body.quota.agents.limit]).toEqual(['pro', 500])
  })

  test('a tenant that was deleted elsewhere is refused here within a second', async () => {
    const { tenant_id, api_key } = await service.signUp()
    expect(await status(api_key)).toBe(200)
    const admin: AdminCaller = { kind: 'admin', tenant_id, plan: 'free', status: 'active', ...requested }
    await elsewhere((db) =>
      tenants.remove(
        db,
        { keys: { cache: keyCache(service.clock) }, jobs: { pauseOrResume() {} } },
        admin,
        tenant_id,
      ),
    )
    service.clock.advance(1_000)
    expect(await status(api_key)).toBe(403)
  })

  test('a key that is remembered still ends with its grace, to the millisecond', async () => {
    const { admin_key, api_key } = await service.signUp()
    await service.ask('POST', '/v1/agents/agent-one/rotate-key', {
      key: admin_key,
      body: { grace_seconds: 1 },
    })
    service.clock.advance(500)
    expect(await status(api_key)).toBe(200)
    service.clock.advance(499)
    expect(await status(api_key)).toBe(200)
    service.clock.advance(1)
    expect(await status(api_key)).toBe(401)
  })

  test('a key is looked up once a second at most', async () => {
    const { api_key } = await service.signUp()
    const seen: string[] = []
    service.app.db.onStatement((name) => seen.push(name))
    for (let i = 0; i < 5; i++) await status(api_key)
    service.clock.advance(1_000)
    await status(api_key)
    service.app.db.onStatement(null)
    expect(seen.filter((name) => name.startsWith('credentials.'))).toEqual([
      'credentials.find',
      'credentials.find',
    ])
  })
})
