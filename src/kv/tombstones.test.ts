import { expect, test } from 'bun:test'
import { forEachRacedService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { limits } from '../base/limit.ts'
import { type Params, unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { tombstone_ms } from './entry.ts'
import * as kv from './sweep.ts'

const kept_max = limits.get('kv.tombstones')!.value
const gone_at_once = 100

async function counted(service: TestService, tenant_id: string) {
  const [kept, known] = await Promise.all(
    [
      'select count(*) as n from kv_entries where tenant_id = :tenant_id and counted = 0',
      `select tombstones as n from quota_usage where tenant_id = :tenant_id and quota = 'kv_keys'`,
    ].map((text) =>
      service.app.db.one(unnamedAcrossTenants<{ n: number }>('test.count', text), { tenant_id }),
    ),
  )
  expect(known!.n).toBe(kept!.n)
  return kept!.n
}

forEachRacedService('Tombstones', (service) => {
  const put = (tenant: TestTenant, key: string, body: object = { value: 1 }) =>
    service.ask('PUT', `/v1/kv/state/${key}`, { key: tenant.api_key, body })
  const remove = (tenant: TestTenant, key: string) =>
    service.ask('DELETE', `/v1/kv/state/${key}`, { key: tenant.api_key })
  const run = (text: string, params: Params) =>
    service.app.db.write(upkeep, (tx) => tx.run(unnamedAcrossTenants('test.run', text), params))

  /** The oldest is `k1`, each of the version of its number. */
  async function tombstone(tenant_id: string, count: number) {
    await run(
      `insert into kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)
       with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
       select :tenant_id, 'graves', 'k' || i, null, i, 1, 0, :now - ${count} + i, 0 from numbers`,
      { tenant_id, now: service.clock.now() },
    )
    await run(
      `insert into quota_usage (tenant_id, quota, used, version_floor, tombstones)
       values (:tenant_id, 'kv_keys', 0, 0, ${count})
       on conflict (tenant_id, quota) do update set tombstones = quota_usage.tombstones + excluded.tombstones`,
      { tenant_id },
    )
  }

  test('are counted, however a key dies, comes back or is forgotten', async () => {
    const tenant = await service.signUp()
    const now = () => counted(service, tenant.tenant_id)
    await put(tenant, 'a')
    await put(tenant, 'b', { value: 1, ttl_seconds: 1 })
    expect(await now()).toBe(0)
    await remove(tenant, 'a')
    expect(await now()).toBe(1)
    await put(tenant, 'a')
    expect(await now()).toBe(0)
    await service.ask('POST', '/api/rate-limit/check', {
      key: tenant.api_key,
      body: { key: 'r', limit: 1, windowSeconds: 1 },
    })
    service.clock.advance(2_000)
    await kv.sweep(service.app.db, service.clock.now())
    expect(await now()).toBe(2)
    for (const again of [false, true]) {
      const check = { key: 'r', limit: 1, windowSeconds: 100 }
      await service.ask('POST', '/api/rate-limit/check', { key: tenant.api_key, body: check })
      expect(await now()).toBe(1)
      const reset = { key: tenant.api_key, body: { key: 'r' } }
      if (!again) await service.ask('POST', '/api/rate-limit/reset', reset)
    }
    await put(tenant, 'b', { value: 1, cas_version: 0 })
    expect(await now()).toBe(0)
    for (const key of ['a', 'b']) await remove(tenant, key)
    service.clock.advance(tombstone_ms + 100_000)
    await kv.sweep(service.app.db, service.clock.now())
    expect(await now()).toBe(0)
  })

  test('of as many as the bound are all kept; of one more the oldest go with the next new key', async () => {
    const tenant = await service.signUp()
    const { tenant_id } = tenant
    await tombstone(tenant_id, kept_max)
    await put(tenant, 'one')
    expect(await counted(service, tenant_id)).toBe(kept_max)
    await remove(tenant, 'one')
    expect(await counted(service, tenant_id)).toBe(kept_max + 1)
    await put(tenant, 'two')
    expect(await counted(service, tenant_id)).toBe(kept_max + 1 - gone_at_once)
    const oldest = await service.app.db.one(
      unnamedAcrossTenants<{ version: number }>(
        'test.oldest',
        `select min(version) as version from kv_entries where tenant_id = :tenant_id and namespace = 'graves'`,
      ),
      { tenant_id },
    )
    expect(oldest!.version).toBe(gone_at_once + 1)
  })

  test('that are removed early leave their versions behind: a key created again starts above them', async () => {
    const tenant = await service.signUp()
    await tombstone(tenant.tenant_id, kept_max + 1)
    await put(tenant, 'one')
    expect((await put(tenant, 'two')).body.version).toBe(gone_at_once + 1)
  })
})
