// A tenant whose rows the sweep cannot change, as while its server of a distributed database is away.

import { afterEach, expect, test } from 'bun:test'
import { day_ms, second_ms } from '../src/base/clock.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { DueLists } from '../src/db/sweep-tenants.ts'
import { expire as expireKeys } from '../src/kv/sweep.ts'
import { failStatementsOf } from './support/away.ts'
import { rowsOf } from './support/job-bench.ts'
import { sweep } from './support/maintenance.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const cron_secret = 'a-secret-for-ticks-alone'

const PLANT_KEYS = unnamedAcrossTenants(
  'test.plant_keys',
  `insert into kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)
   with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
   select :tenant_id, 'state', 'k' || n, '1', 1, 1, 1, :expires_at, 0 from numbers`,
)
const COUNT_KEYS = unnamedAcrossTenants(
  'test.count_keys',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'kv_keys', :count, 0)
   on conflict (tenant_id, quota) do update set used = quota_usage.used + excluded.used`,
)

forEachService(
  'The sweep beside a tenant that fails',
  (service) => {
    let fails: { mockRestore(): void } | undefined
    afterEach(() => fails?.mockRestore())

    const ask = async (method: string, path: string, key: string, body?: object) => {
      const answer = await service.ask(method, path, { key, body })
      expect([method, path, answer.status < 300]).toEqual([method, path, true])
      return answer.body
    }

    async function plant({ admin_key, api_key }: TestTenant): Promise<void> {
      await ask('PUT', '/v1/kv/state/expires', api_key, { value: 1, ttl_seconds: 1 })
      await ask('PUT', '/v1/kv/state/deleted', api_key, { value: 1 })
      await ask('DELETE', '/v1/kv/state/deleted', api_key)
      const { data } = await ask('POST', '/api/webhook', api_key)
      await ask('DELETE', `/api/webhook/${data.id}`, api_key)
      await ask('POST', '/api/webhook', api_key)
      const effect = await ask('POST', '/v1/effects', api_key, { type: 't', key: 'k', payload: 1 })
      const { lease_token } = effect
      await ask('POST', `/v1/effects/${effect.id}/succeed`, api_key, { lease_token, result: 2 })
      const item = await ask('POST', '/v1/dlq', api_key, { payload: 1, error: 'declined' })
      await ask('POST', `/v1/dlq/${item.id}/resolve`, api_key)
      await ask('POST', '/v1/dlq/discard', api_key, { filter: {} })
      await ask('GET', '/v1/tenants/me/usage', admin_key) // writes what was counted
    }

    const left = async ({ tenant_id }: TestTenant) => {
      const count = async (text: string) => {
        const where = `from ${text} and tenant_id = :tenant_id`
        const [row] = await rowsOf<{ n: number }>(service.app.db, `select count(*) as n ${where}`, {
          tenant_id,
        })
        return Number(row!.n)
      }
      return {
        expired_keys: await count(`kv_entries where key = 'expires' and value is not null`),
        tombstones: await count(`kv_entries where key = 'deleted'`),
        inboxes: await count('inboxes where 1 = 1'),
        payloads: await count('effects where payload is not null'),
        dead_letters: await count('dlq_items where 1 = 1'),
        operations: await count('dlq_operations where 1 = 1'),
        usage: Math.sign(await count('usage_hours where 1 = 1')),
      }
    }
    const all = {
      expired_keys: 1,
      tombstones: 1,
      inboxes: 2,
      payloads: 1,
      dead_letters: 1,
      operations: 1,
      usage: 1,
    }
    const none = {
      expired_keys: 0,
      tombstones: 0,
      inboxes: 0,
      payloads: 0,
      dead_letters: 0,
      operations: 0,
      usage: 0,
    }

    // Whichever comes first in the order of a sweep.
    test.each([0, 1, 2])(
      'gives each of the others its turn, and that one later: tenant %i',
      async (failing_at) => {
        const tenants = [await service.signUp(), await service.signUp(), await service.signUp()]
        for (const tenant of tenants) await plant(tenant)
        service.clock.advance(91 * day_ms)
        const step = () => sweep(service.app.db, service.clock)
        fails = failStatementsOf(service.app.db, tenants[failing_at]!.tenant_id)
        for (let n = 0; n < 3; n++) await expect(step()).rejects.toThrow('its server is away')
        fails.mockRestore()
        const expected = tenants.map((_, i) => (i === failing_at ? all : none))
        expect(await Promise.all(tenants.map(left))).toEqual(expected)
        while ((await step()).more);
        service.clock.advance(day_ms + second_ms)
        while ((await step()).more);
        expect(await Promise.all(tenants.map(left))).toEqual([none, none, none])
      },
    )

    async function plantKeys({ tenant_id }: TestTenant, count: number, expires_at: number): Promise<void> {
      await service.app.db.write(async (tx) => {
        await tx.run(PLANT_KEYS, { tenant_id, count, expires_at })
        await tx.run(COUNT_KEYS, { tenant_id, count })
      })
    }

    const expiredOf = async ({ tenant_id }: TestTenant) => {
      const text = 'select count(*) as n from kv_entries where tenant_id = :tenant_id and counted = 1'
      const [row] = await rowsOf<{ n: number }>(service.app.db, text, { tenant_id })
      return Number(row!.n)
    }

    test('goes on at full pace for the others, behind any number of rows of that one, and a tick answers 200', async () => {
      const tenants = [await service.signUp('pro'), await service.signUp('pro')]
      const [stuck, other] = tenants as [TestTenant, TestTenant]
      const now = service.clock.now()
      // Those that expired first fill each step.
      await plantKeys(stuck, 1_100, now)
      await plantKeys(other, 1_300, now + second_ms)
      service.clock.advance(2 * second_ms)
      const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
      fails = failStatementsOf(service.app.db, stuck.tenant_id)
      const behind = await tick()
      expect([behind.status, behind.body.expired?.kv_keys]).toEqual([200, 1_300])
      expect(await Promise.all(tenants.map(expiredOf))).toEqual([1_100, 0])
      fails.mockRestore()
      expect((await tick()).body.expired.kv_keys).toBe(0)
      service.clock.advance(5 * second_ms)
      expect((await tick()).body.expired.kv_keys).toBe(1_100)
      expect(await Promise.all(tenants.map(expiredOf))).toEqual([0, 0])
      // Its keys have failed once, and its journal.
      const failed = service.logged.filter(({ message }) => message === 'background work failed')
      expect(failed.map(({ fields }) => fields.error)).toEqual(Array(2).fill('Error: its server is away'))
    })

    test.each([0, 1, 2])(
      'keys of namespaces with events expire for each of the others: not for tenant %i',
      async (failing_at) => {
        const tenants = [await service.signUp(), await service.signUp(), await service.signUp()]
        for (const { api_key, admin_key } of tenants) {
          await ask('PUT', '/v1/namespaces/state', admin_key, { events: true })
          await ask('PUT', '/v1/kv/state/expires', api_key, { value: 1, ttl_seconds: 1 })
        }
        service.clock.advance(2 * second_ms)
        const errors: unknown[] = []
        const lists = new DueLists(service.clock, (error) => errors.push(error))
        const look = () => expireKeys(service.app.db, service.clock.now(), lists)
        fails = failStatementsOf(service.app.db, tenants[failing_at]!.tenant_id)
        expect([(await look()).expired, errors]).toEqual([2, [new Error('its server is away')]])
        const expired = async () => {
          const kept = await Promise.all(tenants.map(left))
          return kept.map(({ expired_keys }) => 1 - expired_keys)
        }
        expect(await expired()).toEqual(tenants.map((_, i) => (i === failing_at ? 0 : 1)))
        fails.mockRestore()
        service.clock.advance(5 * second_ms)
        expect((await look()).expired).toBe(1)
        expect(await expired()).toEqual([1, 1, 1])
      },
    )
  },
  { CRON_SECRET: cron_secret },
  { background: false },
)
