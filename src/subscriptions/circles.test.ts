import { beforeEach, expect, test } from 'bun:test'
import { messagesIn, newInbox, type TestInbox } from '../../test/support/inbox.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { shown, subscribe, subscribed, tick, tickUntil } from '../../test/support/subscriptions.ts'
import { second_ms } from '../base/clock.ts'
import { newToken } from '../base/keys.ts'
import { unnamedAcrossTenants } from '../db/db.ts'

const SET_TYPES = unnamedAcrossTenants('test.types', 'update subscriptions set types = :types where id = :id')

forEachRacedService('A subscription to messages', (service) => {
  let tenant: TestTenant
  let inbox: TestInbox
  beforeEach(async () => {
    tenant = await service.signUp()
    inbox = await newInbox(service, tenant)
  })
  const change = (id: string, body: object) =>
    service.ask('PATCH', `/v1/subscriptions/${id}`, { key: tenant.admin_key, body })
  const types = ['message.received']
  const others = ['schedule.failed', 'message.replayed']

  test.each(['127.0.0.1', '127.0.0.2', '127.1', 'localhost', 'LOCALHOST.', '[::1]'])(
    'cannot send to an inbox of this service at %s, at its creation and by a change of its URL or types',
    async (host) => {
      const url = `http://${host}:${new URL(service.url).port}${inbox.path}`
      const issues = [
        { path: '/url', message: 'must not be an inbox of this service where types name messages' },
      ]
      const refused = await subscribe(service, tenant, { url, types })
      expect([refused.status, refused.body.error?.details]).toEqual([400, { issues }])
      const to_inbox = await subscribed(service, tenant, { url, types: others })
      const widened = await change(to_inbox, { types: [...others, 'message.*'] })
      expect([widened.status, widened.body.error?.details]).toEqual([400, { issues }])
      const elsewhere = await subscribed(service, tenant, { url: 'http://127.0.0.1:9/hook/x', types })
      const moved = await change(elsewhere, { url })
      expect([moved.status, moved.body.error?.details]).toEqual([400, { issues }])
      expect((await change(elsewhere, { url, types: others })).status).toBe(200)
    },
  )

  test('whose address became ours later ends at the inbox after three hops, however often it is tried', async () => {
    const url = service.url + inbox.path
    const id = await subscribed(service, tenant, { url, types: others })
    await service.app.db.write((tx) => tx.run(SET_TYPES, { id, types: JSON.stringify(types) }))
    await service.ask('POST', inbox.path, { body: { round: 0 } })
    await tickUntil(service, async () => (await shown(service, tenant, id)).last_error !== null)
    service.clock.advance(5_000)
    await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 2)
    for (let n = 0; n < 3; n++) await tick(service)
    expect(await shown(service, tenant, id)).toMatchObject({
      last_error: 'status 409',
      last_status_code: 409,
    })
    const messages = await messagesIn(service, tenant, inbox)
    expect(
      messages.map(({ headers }: { headers: Record<string, string> }) => headers['x-waystation-hops']),
    ).toEqual([undefined, '1', '2', '3'])
  })

  test('says how many hops a message came with; of one that is gone, more than an inbox takes', async () => {
    const receiver = await startReceiver()
    const wanted = ['message.received', 'inbox.deleted']
    const id = await subscribed(service, tenant, { url: receiver.url, types: wanted })
    for (const hops of ['0', '2', '7', 'x'])
      await service.ask('POST', inbox.path, { body: {}, headers: { 'x-waystation-hops': hops } })
    await tickUntil(service, () => receiver.requests.length === 4)
    await change(id, { paused: true })
    await service.ask('POST', inbox.path, { body: {} })
    await service.ask('DELETE', `/api/webhook/${inbox.id}`, { key: tenant.api_key })
    await tick(service)
    await change(id, { paused: false })
    await tickUntil(service, () => receiver.requests.length === 6)
    const hops = receiver.requests.map(({ headers }) => headers['x-waystation-hops'])
    expect(hops).toEqual(['1', '3', '8', '1', '4', undefined])
    await receiver.stop()
  })
})

forEachRacedService('An inbox', (service) => {
  test.each([
    ['3', 'sub_1', 200],
    ['4', 'sub_1', 409],
    ['1, 9', 'sub_1', 409],
    ['4', undefined, 200],
  ])('answers a message with %p hops of the subscription %p with %d', async (hops, from, status) => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const headers = {
      'x-waystation-hops': hops,
      ...(from === undefined ? {} : { 'x-waystation-subscription': from }),
    }
    const answer = await service.ask('POST', inbox.path, { body: {}, headers })
    expect(answer.status).toBe(status)
    if (status !== 200)
      expect(answer.body.error).toMatchObject({ code: 'INVALID_STATE', details: { error: 'loop' } })
    expect(await messagesIn(service, tenant, inbox)).toHaveLength(status === 200 ? 1 : 0)
  })

  test('that is unknown or over answers 404 or 410, however many hops a message came with', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant, { ttl: 1 })
    const headers = { 'x-waystation-hops': '4', 'x-waystation-subscription': 'sub_1' }
    const unknown = await service.ask('POST', `/hook/${newToken()}`, { body: {}, headers })
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'INBOX_NOT_FOUND'])
    service.clock.advance(second_ms)
    const over = await service.ask('POST', inbox.path, { body: {}, headers })
    expect([over.status, over.body.error.code]).toEqual([410, 'INBOX_EXPIRED'])
  })
})
