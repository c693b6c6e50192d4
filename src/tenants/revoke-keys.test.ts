// The end of all keys of a tenant, by its operator.

import { expect, test } from 'bun:test'
import { until } from '../../test/support/patience.ts'
import { count_lock_waits } from '../../test/support/postgres.ts'
import { forEachRacedService } from '../../test/support/service.ts'
import * as approvalKeys from '../approval-keys/service.ts'
import { unnamed, unnamedAcrossTenants } from '../db/db.ts'
import * as tenants from './service.ts'

const WAITING = unnamedAcrossTenants<{ n: number }>('test.waiting', count_lock_waits)
// The role of the service is not shown what the connections of its login wait for.
const LOGIN = unnamedAcrossTenants('test.login', 'set local role none')
const useOf = (table: string) =>
  unnamed('test.use', `update ${table} set last_used_at = :now where tenant_id = :tenant_id`)

forEachRacedService('all keys of a tenant', (service) => {
  /** Their use, in a transaction that ends once another one waits for it. */
  async function held(tenant_id: string, table: string): Promise<{ end(): Promise<void> }> {
    const { db } = service.app
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const using = db.write(async (tx) => {
      await tx.run(useOf(table), { tenant_id, now: tx.now })
      begun.resolve()
      await released.promise
    })
    await begun.promise
    const waits = () =>
      db.read(async (q) => (await q.all(LOGIN, {})) && Number((await q.one(WAITING, {}))!.n) > 0)
    return {
      async end() {
        if (service.engine === 'postgres') await until(waits)
        released.resolve()
        await using
      },
    }
  }

  test.each([
    ['credentials', 0],
    ['approval_keys', 3],
  ])('end although their %s are being used at that moment', async (table, count) => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    const keys = [admin_key, api_key]
    for (let n = 0; n < count; n++)
      keys.push((await service.ask('POST', '/v1/approval-keys', { key: admin_key, body: {} })).body.key)
    const { db } = service.app
    const use = await held(tenant_id, table)
    const revoking = tenants.revokeKeys(db, (tx, id) => approvalKeys.endSome(tx, id, 2), tenant_id)
    await use.end()
    expect(await revoking).toBe(keys.length)
    service.clock.advance(2_000) // nodes remember a key for a second
    for (const key of keys) {
      const { status } = await service.ask('GET', '/v1/tenants/me', { key })
      expect(status).toBe(401)
    }
  })

  test('of approvals end in one step with one that is being used', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    for (let n = 0; n < 3; n++) await service.ask('POST', '/v1/approval-keys', { key: admin_key, body: {} })
    const { db } = service.app
    const use = await held(tenant_id, 'approval_keys')
    const ending = db.write(tenant_id, (tx) => approvalKeys.endSome(tx, tenant_id, 500))
    await use.end()
    expect(await ending).toBe(3)
  })
})
