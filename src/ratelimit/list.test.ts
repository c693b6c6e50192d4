import { expect, test } from 'bun:test'
import { type Answer, forEachService, type TestService } from '../../test/support/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import { unnamedAcrossTenants, upkeep } from '../db/db.ts'

async function newLimiter(service: TestService) {
  const tenant = await service.signUp('pro')
  const ask = (method: string, path: string, body?: object) =>
    service.ask(method, `/api/rate-limit${path}`, { key: tenant.admin_key, body })
  return {
    tenant,
    list: (query = '') => ask('GET', query),
    check: (key: string, more: object = {}) =>
      ask('POST', '/check', { key, limit: 3, windowSeconds: 60, ...more }),
    reset: (key: string) => ask('POST', '/reset', { key }),
  }
}

function keysOf({ body }: Answer): string[] {
  return body.data.items.map(({ key }: { key: string }) => key)
}

forEachService('GET /api/rate-limit', (service) => {
  test('lists what runs, what ends first at the top, a sliding counter by its second bucket, as their status says', async () => {
    const { list, check, tenant } = await newLimiter(service)
    const now = service.clock.now()
    await check('mail', { windowSeconds: 120, cost: 2 })
    for (let i = 0; i < 4; i++) await check('calls')
    await check('steady', { limit: 2.5, windowSeconds: 90, algorithm: 'sliding-window' })
    const seen = await list()
    expect([seen.status, seen.body]).toEqual([
      200,
      {
        success: true,
        data: {
          items: [
            {
              key: 'calls',
              algorithm: 'fixed_window',
              limit: 3,
              count: 4,
              remaining: 0,
              resetAt: iso(now + 60 * second_ms),
              windowSeconds: 60,
            },
            {
              key: 'mail',
              algorithm: 'fixed_window',
              limit: 3,
              count: 2,
              remaining: 1,
              resetAt: iso(now + 120 * second_ms),
              windowSeconds: 120,
            },
            {
              key: 'steady',
              algorithm: 'sliding_window',
              limit: 2.5,
              count: 1,
              remaining: 1,
              resetAt: iso(now + 90 * second_ms),
              windowSeconds: 90,
            },
          ],
          total: 3,
        },
      },
    ])
    expect(seen.headers.get('ratelimit')).toBeNull()
    for (const item of seen.body.data.items) {
      const status = await service.ask('GET', `/api/rate-limit/${item.key}`, { key: tenant.api_key })
      const { algorithm: _, windowSeconds: __, ...shared } = item
      expect(status.body.data).toEqual({ ...shared, windowExpired: false })
    }
  })

  test('leaves out what is over, reset, of another tenant, and keys of the store', async () => {
    const { list, check, reset, tenant } = await newLimiter(service)
    await (await newLimiter(service)).check('foreign')
    await service.ask('PUT', '/v1/kv/state/x', { key: tenant.api_key, body: { value: 1, ttl_seconds: 60 } })
    for (const key of ['kept', 'gone']) await check(key)
    await check('short', { windowSeconds: 1 })
    await reset('gone')
    service.clock.advance(second_ms)
    const { body } = await list()
    expect([body.data.items.map(({ key }: { key: string }) => key), body.data.total]).toEqual([['kept'], 1])
  })

  test('has limit, offset and prefix; total does not change with the page', async () => {
    const { list, check } = await newLimiter(service)
    for (const [at, key] of ['b:1', 'a:1', 'b:2', 'b:3', 'a:2'].entries())
      await check(key, { windowSeconds: 60 + at })
    const pages: [query: string, keys: string[], total: number][] = [
      ['', ['b:1', 'a:1', 'b:2', 'b:3', 'a:2'], 5],
      ['?limit=2', ['b:1', 'a:1'], 5],
      ['?limit=2&offset=2', ['b:2', 'b:3'], 5],
      ['?offset=5', [], 5],
      ['?prefix=b:', ['b:1', 'b:2', 'b:3'], 3],
      ['?prefix=b:&limit=1&offset=1', ['b:2'], 3],
      ['?prefix=c', [], 0],
      ['?limit=101', ['b:1', 'a:1', 'b:2', 'b:3', 'a:2'], 5],
    ]
    for (const [query, keys, total] of pages) {
      const page = await list(query)
      expect([query, keysOf(page), page.body.data.total]).toEqual([query, keys, total])
    }
  })

  test.each([
    ['limit=0', 'query.limit'],
    ['limit=x', 'query.limit'],
    ['offset=-1', 'query.offset'],
    ['offset=10001', 'query.offset'],
  ])('%s is refused', async (query, path) => {
    const { list } = await newLimiter(service)
    const { status, body } = await list(`?${query}`)
    expect([status, body.success, body.error.details.issues[0].path]).toEqual([400, false, path])
  })

  /** Writes running counters k0, k1, … as checks would, k0 ending first. */
  async function fill(tenant_id: string, counters: number) {
    const INSERT = unnamedAcrossTenants(
      'test.counter',
      `insert into kv_entries
         (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at,
          rl_window_ms, rl_limit, rl_hits, rl_previous, rl_taken)
       values (:tenant_id, '__rl', :key, '{}', 1, 1, 1, :expires_at, 0, 60000, '3', 1, null, 1)`,
    )
    const first_at = service.clock.now() + 60 * second_ms
    await service.app.db.write(upkeep, async (tx) => {
      for (let n = 0; n < counters; n++) {
        await tx.run(INSERT, { tenant_id, key: `__rl:k${n}`, expires_at: first_at + n })
      }
    })
  }

  test('a page holds 100 counters at most; total counts, and a prefix is looked for, to 10,000', async () => {
    const { list, tenant } = await newLimiter(service)
    await fill(tenant.tenant_id, 10_001)
    const { body } = await list('?limit=500')
    expect([body.data.items.length, body.data.total]).toEqual([100, 10_000])
    expect((await list('?offset=10000')).body.data.items).toHaveLength(1)
    expect(keysOf(await list('?prefix=k9999'))).toEqual(['k9999'])
    expect((await list('?prefix=k10000')).body.data).toEqual({ items: [], total: 0 })
  })
})
