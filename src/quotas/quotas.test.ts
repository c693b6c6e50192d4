import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forEachDatabase } from '../../test/support/databases.ts'
import { rowsOf } from '../../test/support/job-bench.ts'
import { forEachRacedService, TestService } from '../../test/support/service.ts'
import { ApiError } from '../base/errors.ts'
import { service_cause } from '../contract/event.ts'
import { type Db, unnamedAcrossTenants } from '../db/db.ts'
import { counted_quotas, default_plans } from '../features.ts'
import { secretsUnder } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import * as quotas from './service.ts'

const dependencies = {
  plans: default_plans,
  keys: { secrets: secretsUnder('the secret of these tests') },
  counts: { quotas: counted_quotas },
}
const plans = { free: { ...default_plans.free, places: 3, none: 0 } }
const remedy = 'Remove some, or ask the operator to change the table of plans, PLANS_FILE.'

async function newTenant(db: Db) {
  const input = { name: crypto.randomUUID().slice(0, 20), owner_email: 'owner@example.com', plan: 'free' }
  const { tenant } = await db.write((tx) => tenants.create(tx, dependencies, input, service_cause))
  return { tenant_id: tenant.tenant_id, plan: 'free', status: 'active' } as const
}

const countersOf = (db: Db, tenant_id: string) =>
  rowsOf<{ quota: string; used: number }>(
    db,
    `select quota, used from quota_usage where tenant_id = :tenant_id and quota <> 'storage_bytes' order by quota`,
    { tenant_id },
  )

forEachDatabase('a counter', (databases) => {
  test('is made when the quota is first used, and a tenant without it has used none', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    expect(await countersOf(db, tenant.tenant_id)).toEqual([])
    const shown = await quotas.usage(
      db,
      tenant,
      { calls: 0, storedBytes: () => 0 },
      { plans: default_plans, quotas: counted_quotas },
    )
    expect(shown.agents).toEqual({ used: 0, limit: 25 })
    expect(await quotas.usedOf(db, tenant.tenant_id, 'places')).toBe(0)
    const take = () => db.write(tenant.tenant_id, (tx) => quotas.reserve(tx, tenant, plans, 'places'))
    for (const used of [1, 2, 3]) {
      await take()
      expect([...(await countersOf(db, tenant.tenant_id))]).toEqual([{ quota: 'places', used }])
    }
    await expect(take()).rejects.toThrow(
      new ApiError('QUOTA_EXCEEDED', {
        message: `The plan free allows 3 places, and 3 are used. ${remedy}`,
        details: { quota: 'places', used: 3, limit: 3 },
      }),
    )
  })

  test('is exact when many use a quota first at the same time', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    const taken = await Promise.allSettled(
      Array.from({ length: 12 }, () =>
        db.write(tenant.tenant_id, (tx) => quotas.reserve(tx, tenant, plans, 'places')),
      ),
    )
    expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    expect([...(await countersOf(db, tenant.tenant_id))]).toEqual([{ quota: 'places', used: 3 }])
  })

  test('of keys tells from which version a new one counts, and how many tombstones there are', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    const { tenant_id } = tenant
    const none = async () => {}
    const take = (revived: number) =>
      db.write(tenant_id, (tx) => quotas.reserveKey(tx, tenant, default_plans, 'kv_keys', none, revived))
    expect(await take(0)).toEqual({ version_floor: 0, tombstones: 0 })
    await db.write(tenant_id, (tx) => quotas.release(tx, tenant_id, 'kv_keys', 1, 3))
    await db.write(tenant_id, (tx) => quotas.raiseFloor(tx, tenant_id, 'kv_keys', 7, 1))
    expect(await take(1)).toEqual({ version_floor: 7, tombstones: 1 })
    expect([...(await countersOf(db, tenant_id))]).toEqual([{ quota: 'kv_keys', used: 1 }])
  })

  test('is not made by a plan whose limit is 0', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    const take = db.write(tenant.tenant_id, (tx) => quotas.reserve(tx, tenant, plans, 'none'))
    await expect(take).rejects.toThrow(
      new ApiError('QUOTA_EXCEEDED', {
        message: `The plan free allows 0 none, and 0 are used. ${remedy}`,
        details: { quota: 'none', used: 0, limit: 0 },
      }),
    )
    expect(await countersOf(db, tenant.tenant_id)).toEqual([])
  })

  test('is made by what the service itself adds, and released as any other', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    const { tenant_id } = tenant
    await db.write(tenant_id, (tx) => quotas.add(tx, tenant_id, 'places', 2))
    await db.write(tenant_id, (tx) => quotas.add(tx, tenant_id, 'places', 2))
    expect([...(await countersOf(db, tenant_id))]).toEqual([{ quota: 'places', used: 4 }])
    await db.write(tenant_id, (tx) => quotas.release(tx, tenant_id, 'places', 3))
    expect([...(await countersOf(db, tenant_id))]).toEqual([{ quota: 'places', used: 1 }])
  })

  test('stays at 0 when rows are released that are older than their quota', async () => {
    const { db } = await databases.open()
    const tenant = await newTenant(db)
    const { tenant_id } = tenant
    const release = (count: number) =>
      db.write(tenant_id, (tx) => quotas.release(tx, tenant_id, 'places', count))
    await release(1)
    expect(await countersOf(db, tenant_id)).toEqual([])
    await db.write(tenant_id, (tx) => quotas.reserve(tx, tenant, plans, 'places'))
    for (const used of [0, 0]) {
      await release(2)
      expect([...(await countersOf(db, tenant_id))]).toEqual([{ quota: 'places', used }])
    }
    await db.write(tenant_id, (tx) => quotas.reserve(tx, tenant, plans, 'places'))
    expect([...(await countersOf(db, tenant_id))]).toEqual([{ quota: 'places', used: 1 }])
  })
})

test('a limit that is in no plan is a fault of the code, and no quota', () => {
  expect(() => quotas.limitOf(default_plans, 'free', 'places')).toThrow('places is not a limit of plans')
})

forEachRacedService('a tenant whose counters are gone', (service) => {
  test('goes on as if it had used none', async () => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    const text = 'delete from quota_usage where tenant_id = :tenant_id'
    await service.app.db.write((tx) => tx.run(unnamedAcrossTenants('test.forget', text), { tenant_id }))
    const read = () => service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
    expect((await read()).body.quota.agents).toEqual({ used: 0, limit: 25 })
    const put = await service.ask('PUT', '/v1/kv/state/x', { key: api_key, body: { value: 1 } })
    const captured = await service.ask('POST', '/v1/dlq', { key: api_key, body: { payload: {}, error: 'x' } })
    expect([put.status, captured.status]).toEqual([200, 201])
    const { kv_keys, dlq_items } = (await read()).body.quota
    expect([kv_keys.used, dlq_items.used]).toEqual([1, 1])
  })
})

describe('a PLANS_FILE from before a quota was there', () => {
  forEachDatabase('on', (databases) => {
    test('starts the service, and the quota has the default that its feature declares', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
      const PLANS_FILE = join(folder, 'plans.json')
      const { active_schedules: _schedules, inboxes: _inboxes, ...before } = default_plans.free!
      writeFileSync(PLANS_FILE, JSON.stringify({ free: { ...before, agents: 7 }, pro: before }))
      const service = await new TestService({ PLANS_FILE }).start(await databases.newUrl())
      try {
        const { tenant_id, admin_key, api_key } = await service.signUp()
        const inbox = await service.ask('POST', '/api/webhook', { key: api_key, body: {} })
        const { quota } = (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body
        expect([inbox.status, quota.agents, quota.inboxes, quota.active_schedules]).toEqual([
          201,
          { used: 1, limit: 7 },
          { used: 1, limit: 3 },
          { used: 0, limit: 100 },
        ])
      } finally {
        await service.stop()
        rmSync(folder, { recursive: true })
      }
    })
  })
})
