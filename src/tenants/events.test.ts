// The events of what an operator changes, and of changes that change nothing.

import { expect, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as tenants from './service.ts'

const EVENTS = unnamedAcrossTenants<{ type: string; actor: string; data: string }>(
  'test.events',
  `select type, actor, data from events where tenant_id = :tenant_id and type > 'tenant' and type < 'tenanu'
    order by position`,
)

forEachService('The events of a tenant', (service) => {
  async function newTenant() {
    const tenant = await service.signUp()
    const { tenant_id } = tenant
    const seen = async () =>
      (await service.app.db.all(EVENTS, { tenant_id })).map(({ type, actor, data }) => [
        type,
        actor,
        JSON.parse(data),
      ])
    const signed_up = ['tenant.created', 'anonymous', { plan: 'free' }]
    return { ...tenant, seen, signed_up }
  }

  test('name the operator for a plan and for what it may store, once for each change', async () => {
    const { tenant_id, seen, signed_up } = await newTenant()
    const { db } = service.app
    for (const plan of ['free', 'pro', 'pro', 'free']) await tenants.setPlan(db, tenant_id, plan)
    for (const bytes of [null, 10_000, 10_000, null]) await tenants.setStorage(db, tenant_id, bytes)
    expect(await seen()).toEqual([
      signed_up,
      ['tenant.plan_changed', 'operator', { plan: 'pro' }],
      ['tenant.plan_changed', 'operator', { plan: 'free' }],
      ['tenant.storage_changed', 'operator', { storage_bytes_max: 10_000 }],
      ['tenant.storage_changed', 'operator', { storage_bytes_max: null }],
    ])
  })

  test('come once for a deletion that is repeated, and for its restoration', async () => {
    const { tenant_id, admin_key, seen, signed_up } = await newTenant()
    const path = `/v1/tenants/${tenant_id}`
    const asked = { key: admin_key, body: { confirm: 'DELETE ALL DATA' } }
    const { purge_at } = (await service.ask('DELETE', path, asked)).body
    service.clock.advance(1_000)
    expect((await service.ask('DELETE', path, asked)).body.purge_at).toBe(purge_at)
    const statuses = []
    for (let i = 0; i < 2; i++)
      statuses.push((await service.ask('POST', `${path}/restore`, { key: admin_key })).status)
    expect(statuses).toEqual([200, 409])
    expect(await seen()).toEqual([
      signed_up,
      ['tenant.deleted', 'admin', { purge_at }],
      ['tenant.restored', 'admin', {}],
    ])
  })

  test('have neither keys nor secrets in them', async () => {
    const { tenant_id, admin_key, signing_secret, api_key } = await newTenant()
    const path = `/v1/tenants/${tenant_id}`
    const secret = await service.ask('POST', `${path}/rotate-signing-secret`, { key: admin_key })
    const key = await service.ask('POST', `${path}/rotate-key`, { key: admin_key })
    const all = unnamedAcrossTenants<object>(
      'test.all_events',
      'select * from events where tenant_id = :tenant_id',
    )
    const text = JSON.stringify(await service.app.db.all(all, { tenant_id }))
    const secrets = [admin_key, signing_secret, api_key, secret.body.signing_secret, key.body.admin_key]
    expect(secrets.filter((one) => text.includes(one) || text.includes(one.slice(-20)))).toEqual([])
    expect(text).toContain('tenant.key_rotated')
  })
})
