// Events that were removed by the retention of the journal while a subscription had not delivered them.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachService, type TestTenant } from '../../test/support/service.ts'
import { happen, shown, subscribed, tick, tickUntil } from '../../test/support/subscriptions.ts'
import { day_ms, hour_ms, minute_ms, second_ms } from '../base/clock.ts'

forEachService('A subscription whose event is removed between two attempts', (service) => {
  let receiver: Receiver
  let tenant: TestTenant
  beforeEach(async () => {
    receiver = await startReceiver()
    tenant = await service.signUp()
  })
  afterEach(() => receiver.stop())

  const tried = () =>
    receiver.requests.map(({ headers, body }) => [
      JSON.parse(body).workflow_id,
      headers['x-waystation-attempt'],
    ])

  /** After these times, one attempt each. */
  async function attempts(gaps_ms: readonly number[]) {
    for (const gap_ms of gaps_ms) {
      const count = receiver.requests.length
      service.clock.advance(gap_ms - 1)
      await tick(service)
      expect(receiver.requests).toHaveLength(count)
      service.clock.advance(1)
      await tickUntil(service, () => receiver.requests.length === count + 1)
    }
  }

  test('sends the next one in its place, at the same times, and numbers its attempts from 1', async () => {
    receiver.answer = () => ({ status: 503 })
    const id = await subscribed(service, tenant, { url: receiver.url, paused: true })
    await happen(service, tenant, 1, { workflow_id: 'old' })
    service.clock.advance(6.5 * day_ms)
    await happen(service, tenant, 1, { workflow_id: 'young' })
    await service.ask('PATCH', `/v1/subscriptions/${id}`, { key: tenant.admin_key, body: { paused: false } })
    await tickUntil(service, () => receiver.requests.length === 1)
    await attempts([5 * second_ms, 295 * second_ms, 30 * minute_ms, 115 * minute_ms, 5 * hour_ms])
    service.clock.advance(9 * hour_ms)
    await tick(service) // removes the old event
    await attempts([hour_ms, 14 * hour_ms, 20 * hour_ms])
    await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 3)
    await attempts([day_ms])
    expect(tried()).toEqual([
      ...['1', '2', '3', '4', '5', '6'].map((attempt) => ['old', attempt]),
      ...['1', '2', '3', '4'].map((attempt) => ['young', attempt]),
    ])
    await tickUntil(service, async () => (await shown(service, tenant, id)).status === 'paused')
    expect(await shown(service, tenant, id)).toMatchObject({ paused_reason: 'failing', attempts: 4 })
    const logged = await service.ask('GET', `/v1/subscriptions/${id}/attempts`, { key: tenant.admin_key })
    expect(logged.body.items.map(({ attempt }: { attempt: number }) => attempt)).toEqual([
      ...[4, 3, 2, 1],
      ...[6, 5, 4, 3, 2, 1],
    ])
  })

  test('shows no attempts once nothing waits any more', async () => {
    receiver.answer = () => ({ status: 503 })
    const id = await subscribed(service, tenant, { url: receiver.url, paused: true })
    await happen(service, tenant, 1)
    service.clock.advance(6.8 * day_ms)
    await service.ask('PATCH', `/v1/subscriptions/${id}`, { key: tenant.admin_key, body: { paused: false } })
    await tickUntil(service, () => receiver.requests.length === 1)
    await attempts([5 * second_ms, 295 * second_ms, 30 * minute_ms, 115 * minute_ms])
    service.clock.advance(4 * hour_ms)
    await tick(service) // removes the event
    service.clock.advance(hour_ms)
    await tickUntil(service, async () => (await shown(service, tenant, id)).next_attempt_at === null)
    expect(receiver.requests).toHaveLength(5)
    expect(await shown(service, tenant, id)).toMatchObject({ attempts: 0, last_error: 'status 503' })
  })
})
