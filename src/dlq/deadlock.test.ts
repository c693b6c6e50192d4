// Operations on dead letters beside the jobs that leave dead letters, on an engine with locks of rows.

import { expect, test } from 'bun:test'
import { receivers, usedOf } from '../../test/support/again.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { countingDeadlocks } from '../../test/support/deadlocks.ts'
import { cron_secret, type TestTenant } from '../../test/support/service.ts'

const receiverOf = receivers()

onPostgres('On PostgreSQL no deadlock comes of', () => {
  const { service, deadlocks } = countingDeadlocks()

  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
  const ask = async (method: string, path: string, key: string, body?: object) =>
    (await service.ask(method, path, { key, ...(body && { body }) })).body

  /** Letters of both kinds in turn, so that a step has some of each. */
  async function plant(tenant: TestTenant, count: number): Promise<void> {
    const callback_url = (await receiverOf(410)).url
    for (let i = 0; i < count; i++) {
      service.clock.advance(1)
      await ask('POST', '/v1/schedules', tenant.api_key, {
        ...{ callback_url, callback_payload: i, fire_at: '2020-01-01T00:00:00Z', dlq_on_failure: true },
      })
      const { id } = await ask('POST', '/v1/checkpoints', tenant.api_key, { title: 'May I?', callback_url })
      await ask('POST', `/v1/checkpoints/${id}/approve`, tenant.admin_key)
      if (i % 4 === 0) await tick()
    }
    while ((await usedOf(service, tenant)).dlq_items < 2 * count) await tick()
  }

  test('redrives of schedules and decisions while those that were sent again fail', async () => {
    const tenant = await service.signUp('pro')
    await plant(tenant, 30)
    let done = false
    const ticking = (async () => {
      while (!done) await tick()
    })()
    for (let round = 0; round < 3; round++) {
      service.clock.advance(1_000)
      const { id } = await ask('POST', '/v1/dlq/redrive', tenant.admin_key, { filter: {} })
      while ((await ask('GET', `/v1/dlq/operations/${id}`, tenant.api_key)).status === 'running')
        await Bun.sleep(2)
    }
    done = true
    await ticking
    while ((await usedOf(service, tenant)).active_schedules > 0) await tick()
    expect(await deadlocks()).toBe(0)
  }, 300_000)
})
