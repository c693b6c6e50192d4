import { expect, test } from 'bun:test'
import { startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService } from '../../test/support/service.ts'
import { shown, subscribed, tickUntil } from '../../test/support/subscriptions.ts'
import { hour_ms } from '../base/clock.ts'

forEachRacedService('A message about a checkpoint of a frozen tenant', (service) => {
  test('says the time that is left after a resume: until then it stands still', async () => {
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 500 })
    const { clock } = service
    const tenant = await service.signUp()
    const types = ['checkpoint.created']
    const id = await subscribed(service, tenant, { url: receiver.url, format: 'slack', types })
    const asked = { title: 'May I?', callback_url: null, timeout_seconds: 3 * 3_600 }
    await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body: asked })
    await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
    const frozen = `/v1/tenants/${tenant.tenant_id}/freeze`
    expect((await service.ask('POST', frozen, { key: tenant.admin_key })).status).toBe(200)
    receiver.answer = () => ({ status: 200 })
    clock.advance(5 * hour_ms)
    await tickUntil(service, () => receiver.requests.length === 2)
    const left = receiver.requests.map(({ body }) => /· ([^·]*) left/.exec(JSON.parse(body).text)?.[1])
    expect(left).toEqual(['3 hours', '3 hours'])
    await receiver.stop()
  })
})
