import { expect, test } from 'bun:test'
import { eventsOf } from '../../test/support/events.ts'
import { tick } from '../../test/support/inbox.ts'
import { receiversOfFile } from '../../test/support/receivers.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'

const receiverOf = receiversOfFile()

forEachRacedService('Events of inboxes', (service) => {
  async function create(tenant: TestTenant, body: object = {}) {
    const answer = await service.ask('POST', '/api/webhook', {
      ...{ key: tenant.api_key, body: { workflowId: 'flow', ...body } },
    })
    expect(answer.status).toBe(201)
    return { ...answer.body.data, request_id: answer.headers.get('x-request-id') }
  }

  const left = (tenant: TestTenant) => eventsOf(service, tenant.tenant_id, 'inbox')

  async function latest(tenant: TestTenant, id: string) {
    const answer = await service.ask('GET', `/api/webhook/${id}`, { key: tenant.api_key })
    return answer.body.data.messages[0]
  }

  test('an inbox that is created and deleted leaves one of each', async () => {
    const tenant = await service.signUp('pro')
    const { id, expiresAt, request_id } = await create(tenant)
    const path = `/api/webhook/${id}`
    const deleted = await service.ask('DELETE', path, { key: tenant.admin_key })
    expect((await service.ask('DELETE', path, { key: tenant.admin_key })).status).toBe(404)
    const about = { subject: `inbox ${id}`, workflow_id: 'flow' }
    expect(await left(tenant)).toEqual([
      {
        ...{ type: 'inbox.created', ...about, actor: 'agent-one', agent_id: 'agent-one', request_id },
        data: { expires_at: expiresAt },
      },
      {
        ...{ type: 'inbox.deleted', ...about, actor: 'admin', agent_id: null },
        ...{ request_id: deleted.headers.get('x-request-id'), data: { expired: false } },
      },
    ])
  })

  test('a message leaves one in the workflow of its inbox, of an unknown sender, whatever headers it has', async () => {
    const tenant = await service.signUp('pro')
    const { id, token } = await create(tenant)
    const headers = { 'x-workflow-id': 'other', 'x-waystation-workflow': 'other' }
    const sent = await service.ask('POST', `/hook/${token}/path`, { headers, body: { secret: 1 } })
    expect((await service.ask('HEAD', `/hook/${token}`)).status).toBe(200)
    expect((await left(tenant)).slice(1)).toEqual([
      {
        ...{ type: 'message.received', subject: `inbox ${id}`, workflow_id: 'flow' },
        ...{ actor: 'anonymous', agent_id: null, request_id: sent.headers.get('x-request-id') },
        data: {
          message_id: (await latest(tenant, id)).id,
          ...{ message_seq: 1, method: 'POST', forward: null },
        },
      },
    ])
  })

  test('fifty messages at once leave one each, with the number that each has', async () => {
    const tenant = await service.signUp('pro')
    const { token } = await create(tenant)
    const sent = Array.from({ length: 50 }, (_, n) => service.ask('POST', `/hook/${token}`, { body: { n } }))
    expect((await Promise.all(sent)).every(({ status }) => status === 200)).toBe(true)
    const seqs = (await left(tenant)).slice(1).map(({ data }) => data.message_seq as number)
    expect(seqs.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1))
  })

  test('a message that nobody takes leaves none', async () => {
    const tenant = await service.signUp('pro')
    const { id, token } = await create(tenant)
    await service.ask('DELETE', `/api/webhook/${id}`, { key: tenant.api_key })
    expect((await service.ask('POST', `/hook/${token}`, { body: {} })).status).toBe(404)
    expect((await left(tenant)).map(({ type }) => type)).toEqual(['inbox.created', 'inbox.deleted'])
  })

  test('a forward leaves one when it ends, and its replay another', async () => {
    const tenant = await service.signUp('pro')
    const receiver = await receiverOf(503, 204)
    const { id, token } = await create(tenant, { forwardUrl: receiver.url })
    await service.ask('POST', `/hook/${token}`, { body: {} })
    await receiver.received(1)
    await tick(service)
    const message = await latest(tenant, id)
    const path = `/api/webhook/${id}/messages/${message.id}/replay`
    const replayed = await service.ask('POST', path, { key: tenant.api_key })
    expect(replayed.status).toBe(200)
    await receiver.received(2)
    await tick(service)
    const of_message = { message_id: message.id, message_seq: 1 }
    const about = { subject: `inbox ${id}`, workflow_id: 'flow' }
    const of_service = { actor: 'service', agent_id: null, request_id: null }
    expect((await left(tenant)).slice(1)).toMatchObject([
      { type: 'message.received', ...about, data: { ...of_message, method: 'POST', forward: 'pending' } },
      {
        ...{ type: 'message.forward_failed', ...about, ...of_service },
        data: { ...of_message, status_code: 503, error: 'status' },
      },
      {
        ...{ type: 'message.replayed', ...about, actor: 'agent-one' },
        ...{ request_id: replayed.headers.get('x-request-id'), data: of_message },
      },
      { type: 'message.forwarded', ...about, ...of_service, data: { ...of_message, status_code: 204 } },
    ])
  })

  test('a message that came through too many forwards says so when it comes', async () => {
    const tenant = await service.signUp('pro')
    const { token } = await create(tenant, { forwardUrl: 'http://127.0.0.1:9/' })
    await service.ask('POST', `/hook/${token}`, { headers: { 'x-waystation-hops': '3' }, body: {} })
    expect((await left(tenant)).at(-1)).toMatchObject({
      type: 'message.received',
      data: { forward: 'failed' },
    })
  })
})
