import { expect, test } from 'bun:test'
import { eventsOf, waitingOf } from '../../test/support/events.ts'
import { tick } from '../../test/support/inbox.ts'
import { receiversOfFile } from '../../test/support/receivers.ts'
import { forEachService, type TestTenant } from '../../test/support/service.ts'
import { iso } from '../base/clock.ts'
import { shownTitle } from './events.ts'

const receiverOf = receiversOfFile()

const of_service = { actor: 'service', agent_id: null, request_id: null }

test('an event shows the first 200 characters of a title', () => {
  expect(shownTitle('Ship it?')).toBe('Ship it?')
  expect(shownTitle('😀'.repeat(200))).toBe('😀'.repeat(200))
  expect(shownTitle('😀'.repeat(201))).toBe('😀'.repeat(200))
})

forEachService('Events of checkpoints', (service) => {
  async function create(tenant: TestTenant, body: object = {}) {
    service.clock.advance(1)
    const wanted = { title: 'Ship it?', callback_url: null, workflow_id: 'flow', ...body }
    const answer = await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body: wanted })
    expect(answer.status).toBe(201)
    return answer
  }

  const decide = (key: string, id: string, verb: string, body?: object) =>
    service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key, ...(body && { body }) })
  const left = (tenant: TestTenant) => eventsOf(service, tenant.tenant_id, 'checkpoint')

  test('the question leaves one, without its prompt and payload', async () => {
    const tenant = await service.signUp()
    const body = { title: 'Refund order 7?', prompt: 'a secret', callback_payload: { secret: 1 } }
    const made = await create(tenant, body)
    expect(await left(tenant)).toEqual([
      {
        ...{ type: 'checkpoint.created', subject: `checkpoint ${made.body.id}`, workflow_id: 'flow' },
        ...{ actor: 'agent-one', agent_id: 'agent-one', request_id: made.headers.get('x-request-id') },
        data: { title: 'Refund order 7?', expires_at: made.body.expires_at },
      },
    ])
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 1 })
  })

  test.each([
    ['approve', 'checkpoint.approved'],
    ['reject', 'checkpoint.rejected'],
  ])('%s leaves %s, once, without its reason', async (verb, type) => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant)).body
    const decided = await decide(tenant.admin_key, id, verb, { reason: 'a secret' })
    expect((await decide(tenant.admin_key, id, verb)).status).toBe(409)
    expect((await left(tenant)).slice(1)).toEqual([
      {
        ...{ type, subject: `checkpoint ${id}`, workflow_id: 'flow', actor: 'admin', agent_id: null },
        ...{ request_id: decided.headers.get('x-request-id'), data: { resolved_by: 'admin' } },
      },
    ])
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0 })
  })

  test('a rejection that leaves a dead letter is the cause of it', async () => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant, { timeout_action: 'dlq' })).body
    const decided = await decide(tenant.admin_key, id, 'reject')
    expect(await eventsOf(service, tenant.tenant_id, 'dlq_item')).toMatchObject([
      {
        ...{ type: 'dlq.created', workflow_id: 'flow', actor: 'admin', agent_id: 'agent-one' },
        ...{ request_id: decided.headers.get('x-request-id'), data: { source_id: id } },
      },
    ])
    const expired = (await create(tenant, { timeout_action: 'dlq', timeout_seconds: 60 })).body.id
    service.clock.advance(60_000)
    await tick(service)
    expect((await eventsOf(service, tenant.tenant_id, 'dlq_item')).at(-1)).toMatchObject({
      ...{ ...of_service, agent_id: 'agent-one', data: { source_id: expired } },
    })
  })

  test('a decision with an approval key leaves one about the key as well', async () => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant)).body
    const key = (await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key })).body
    const { approval_key_id } = key
    await decide(key.approval_key, id, 'approve')
    const by = { workflow_id: 'flow', actor: `approval_key:${approval_key_id}`, agent_id: null }
    const used = (await eventsOf(service, tenant.tenant_id)).filter(
      ({ type }) => type === 'approval_key.used',
    )
    expect(used).toMatchObject([
      {
        subject: `approval_key ${approval_key_id}`,
        ...by,
        data: { checkpoint_id: id, decision: 'approved' },
      },
    ])
    expect((await left(tenant)).at(-1)).toMatchObject({ type: 'checkpoint.approved', ...by })
  })

  test('the agent that cancels leaves one', async () => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant)).body
    await service.ask('DELETE', `/v1/checkpoints/${id}`, { key: tenant.api_key })
    expect((await left(tenant)).at(-1)).toMatchObject({
      ...{ type: 'checkpoint.cancelled', workflow_id: 'flow', actor: 'agent-one' },
      data: { resolved_by: 'agent:agent-one' },
    })
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0 })
  })

  test.each([
    ['auto_reject', 'checkpoint.rejected'],
    ['dlq', 'checkpoint.expired'],
  ])('a timeout with %s leaves %s, by the service', async (timeout_action, type) => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant, { timeout_action, timeout_seconds: 60 })).body
    service.clock.advance(60_000)
    await tick(service)
    expect((await left(tenant)).slice(1)).toEqual([
      {
        ...{ type, subject: `checkpoint ${id}`, workflow_id: 'flow', ...of_service },
        data: { resolved_by: 'timeout' },
      },
    ])
    expect((await waitingOf(service, tenant.tenant_id)).flow).toBe(0)
  })

  test('each attempt of a callback leaves one, and so do its end and its redrive', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(410, 204)
    const { id } = (await create(tenant, { callback_url: receiver.url })).body
    await decide(tenant.admin_key, id, 'approve')
    await tick(service)
    const found = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })
    const { dead_letter_id } = found.body.callback
    const redriven = await service.ask('POST', `/v1/dlq/${dead_letter_id}/redrive`, { key: tenant.admin_key })
    expect(redriven.status).toBe(200)
    await tick(service)
    const about = { subject: `checkpoint ${id}`, workflow_id: 'flow' }
    expect((await left(tenant)).slice(2)).toMatchObject([
      {
        ...{ type: 'callback.attempted', ...about, ...of_service },
        data: { attempt: 1, status_code: 410, error: 'status' },
      },
      {
        ...{ type: 'callback.failed', ...about, ...of_service },
        data: { attempts: 1, last_error: 'status 410', dead_letter_id },
      },
      { type: 'callback.redriven', ...about, actor: 'admin', data: { redrive_of: dead_letter_id } },
      {
        ...{ type: 'callback.attempted', ...about, ...of_service },
        data: { attempt: 1, status_code: 204, error: null },
      },
      { type: 'callback.delivered', ...about, ...of_service, data: { attempts: 1 } },
    ])
  })

  test('approval_url has no key, not for anybody, and is the address of the page', async () => {
    const tenant = await service.signUp()
    const { id, approval_url, expires_at } = (await create(tenant)).body
    expect(approval_url).toBe(`${service.url}/approve/${id}`)
    expect(Date.parse(expires_at)).toBeGreaterThan(service.clock.now())
    const key = (
      await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: { checkpoint_id: id } })
    ).body
    expect(key.approval_url).toBe(`${approval_url}#${key.approval_key}`)
    const list = await service.ask('GET', '/v1/checkpoints', { key: tenant.api_key })
    expect(list.body.items.map((item: { approval_url: string }) => item.approval_url)).toEqual([approval_url])
    const decided = await decide(key.approval_key, id, 'approve')
    expect(decided.body.approval_url).toBe(approval_url)
    expect(`${list.text}${decided.text}`).not.toContain('svc_apr_')
    expect(decided.body.resolved_at).toBe(iso(service.clock.now()))
  })
})
