// Attempts of subscriptions that are made late: while they were due, nothing was sent at all.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachService, type TestTenant } from '../../test/support/service.ts'
import { happen, shown, subscribed, tick, tickUntil } from '../../test/support/subscriptions.ts'
import { day_ms, hour_ms, minute_ms, second_ms } from '../base/clock.ts'

forEachService('A subscription whose next attempt is late', (service) => {
  let receiver: Receiver
  let tenant: TestTenant
  beforeEach(async () => {
    receiver = await startReceiver()
    tenant = await service.signUp()
  })
  afterEach(() => receiver.stop())

  async function tried(): Promise<string> {
    receiver.answer = () => ({ status: 503 })
    const id = await subscribed(service, tenant, { url: receiver.url })
    await happen(service, tenant, 1)
    await tickUntil(service, () => receiver.requests.length === 1)
    await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
    return id
  }

  const late: [string, () => Promise<unknown>][] = [
    ['because the service was stopped', async () => service.clock.advance(4 * day_ms)],
    [
      'because its tenant waited for deletion',
      async () => {
        const path = `/v1/tenants/${tenant.tenant_id}`
        const by_admin = { key: tenant.admin_key }
        const confirmed = { ...by_admin, body: { confirm: 'DELETE ALL DATA' } }
        expect((await service.ask('DELETE', path, confirmed)).status).toBe(202)
        service.clock.advance(4 * day_ms)
        await tick(service)
        expect((await service.ask('POST', `${path}/restore`, by_admin)).status).toBe(200)
      },
    ],
  ]
  test.each(late)('%s has the pauses between those that follow', async (_, passes) => {
    const id = await tried()
    await passes()
    await tickUntil(service, async () => (await shown(service, tenant, id)).attempts >= 2)
    for (let n = 0; n < 5; n++) await tick(service)
    const pauses_ms = [295 * second_ms, 30 * minute_ms, 115 * minute_ms, 5 * hour_ms]
    for (const [n, pause_ms] of pauses_ms.entries()) {
      expect(receiver.requests).toHaveLength(n + 2)
      const { next_attempt_at, status } = await shown(service, tenant, id)
      expect([status, next_attempt_at]).toEqual([
        'active',
        new Date(service.clock.now() + pause_ms).toISOString(),
      ])
      service.clock.advance(pause_ms)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === n + 3)
    }
  })
})
