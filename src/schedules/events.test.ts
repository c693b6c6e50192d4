import { describe, expect, test } from 'bun:test'
import { eventsOf, waitingOf } from '../../test/support/events.ts'
import { tick } from '../../test/support/inbox.ts'
import { receiversOfFile } from '../../test/support/receivers.ts'
import { forEachService, type TestTenant } from '../../test/support/service.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { lease_ms } from '../jobs/job.ts'
import { lease } from '../jobs/store.ts'
import { schedule_job } from './jobs.ts'

const long_ago = '2020-01-01T00:00:00.000Z'
const never = '9999-12-31T23:59:59.999Z'

const receiverOf = receiversOfFile()

const of_service = { actor: 'service', agent_id: null, request_id: null }

forEachService('Events of schedules', (service) => {
  const ask = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    service.ask(method, `/v1/schedules${path}`, {
      key: tenant.api_key,
      ...(body === undefined ? {} : { body }),
    })

  async function create(tenant: TestTenant, body: object = {}) {
    service.clock.advance(1)
    const wanted = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
    const answer = await ask(tenant, 'POST', '', { ...wanted, workflow_id: 'flow', ...body })
    expect(answer.status).toBe(201)
    return answer
  }

  /** A schedule of a new tenant that has failed and left a dead letter. */
  async function failed() {
    const tenant = await service.signUp()
    const receiver = await receiverOf(410)
    const body = { callback_url: receiver.url, fire_at: long_ago, dlq_on_failure: true }
    const id: string = (await create(tenant, body)).body.id
    await tick(service)
    const { dead_letter_id } = (await ask(tenant, 'GET', `/${id}`)).body
    service.clock.advance(1)
    return { tenant, id, dead_letter_id }
  }

  const left = (tenant: TestTenant) => eventsOf(service, tenant.tenant_id, 'schedule')
  const typesOf = async (tenant: TestTenant) => (await left(tenant)).map(({ type }) => type)

  test('a schedule that is created, changed and cancelled leaves an event of each, by the agent and its request', async () => {
    const tenant = await service.signUp()
    const made = await create(tenant)
    const { id } = made.body
    const changed = await ask(tenant, 'PATCH', `/${id}`, { name: 'one', fire_at: long_ago })
    const cancelled = await ask(tenant, 'DELETE', `/${id}`)
    const by = { subject: `schedule ${id}`, workflow_id: 'flow', actor: 'agent-one', agent_id: 'agent-one' }
    expect(await left(tenant)).toEqual([
      {
        ...{ type: 'schedule.created', ...by, request_id: made.headers.get('x-request-id') },
        data: { fire_at: never, retry_of: null, redrive_of: null },
      },
      {
        ...{ type: 'schedule.updated', ...by, request_id: changed.headers.get('x-request-id') },
        data: { changed: 'fire_at,name', fire_at: long_ago },
      },
      { type: 'schedule.cancelled', ...by, request_id: cancelled.headers.get('x-request-id'), data: {} },
    ])
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0 })
  })

  test('a call that is refused leaves none', async () => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant)).body
    await ask(tenant, 'DELETE', `/${id}`)
    expect((await ask(tenant, 'DELETE', `/${id}`)).status).toBe(409)
    expect((await ask(tenant, 'PATCH', `/${id}`, { name: 'one' })).status).toBe(409)
    expect((await ask(tenant, 'POST', `/${id}/retry`)).status).toBe(409)
    expect((await ask(tenant, 'POST', '', { callback_url: 'x' })).status).toBe(400)
    expect(await typesOf(tenant)).toEqual(['schedule.created', 'schedule.cancelled'])
  })

  test('each attempt leaves one, and so does the end; by the service, in the workflow', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(503, 204)
    const { id } = (await create(tenant, { callback_url: receiver.url, fire_at: long_ago })).body
    await tick(service)
    service.clock.advance(30_000)
    await tick(service)
    const about = { subject: `schedule ${id}`, workflow_id: 'flow', ...of_service }
    expect((await left(tenant)).slice(1)).toEqual([
      { type: 'schedule.attempted', ...about, data: { attempt: 1, status_code: 503, error: 'status' } },
      { type: 'schedule.attempted', ...about, data: { attempt: 2, status_code: 204, error: null } },
      { type: 'schedule.fired', ...about, data: { attempts: 2 } },
    ])
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0 })
  })

  test('a failure names its dead letter, and the retry both schedules', async () => {
    const { tenant, id, dead_letter_id } = await failed()
    const retried = (await ask(tenant, 'POST', `/${id}/retry`)).body
    const about = { subject: `schedule ${id}`, workflow_id: 'flow' }
    expect((await left(tenant)).slice(2)).toMatchObject([
      {
        ...{ type: 'schedule.failed', ...about, ...of_service },
        data: { attempts: 1, last_error: 'status 410', dead_letter_id },
      },
      { type: 'schedule.retried', ...about, actor: 'agent-one', data: { retried_as: retried.id } },
      {
        ...{ type: 'schedule.created', subject: `schedule ${retried.id}`, workflow_id: 'flow' },
        data: { retry_of: id, redrive_of: dead_letter_id },
      },
    ])
    expect((await waitingOf(service, tenant.tenant_id)).flow).toBe(1)
  })

  test('a redrive of its dead letter leaves the same, by the admin who asked for it', async () => {
    const { tenant, id, dead_letter_id } = await failed()
    const redriven = await service.ask('POST', `/v1/dlq/${dead_letter_id}/redrive`, { key: tenant.admin_key })
    const { redriven_as } = redriven.body
    const by = { actor: 'admin', agent_id: null, request_id: redriven.headers.get('x-request-id') }
    expect((await left(tenant)).slice(3)).toMatchObject([
      { type: 'schedule.retried', subject: `schedule ${id}`, ...by, data: { retried_as: redriven_as } },
      {
        ...{ type: 'schedule.created', subject: `schedule ${redriven_as}`, ...by },
        data: { retry_of: id, redrive_of: dead_letter_id },
      },
    ])
  })

  test('an attempt whose node died, and its late result, leave one each', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const { id } = (await create(tenant, { callback_url: receiver.url, fire_at: long_ago })).body
    const { clock } = service
    const { db } = service.app
    const { tenant_id } = tenant
    const [dead] = await db.write((tx) => lease(tx, tenant_id, schedule_job, [id], clock.now() + lease_ms))
    service.clock.advance(lease_ms + 1)
    await tick(service)
    const result = { ok: true, status_code: 200, error: null, started_at: clock.now(), duration_ms: 1 }
    const dependencies = { jobs: { wake() {} } } as unknown as Dependencies
    await db.write((tx) => schedule_job.settle(tx, dependencies, dead!, result))
    expect((await left(tenant)).slice(1).map(({ type, data }) => [type, data])).toEqual([
      ['schedule.attempted', { attempt: 1, status_code: null, error: 'interrupted' }],
      ['schedule.attempted', { attempt: 2, status_code: 204, error: null }],
      ['schedule.fired', { attempts: 2 }],
      ['schedule.attempted', { attempt: 1, status_code: 200, error: null }],
    ])
  })

  test.each([
    [503, 'schedule.attempted'],
    [204, 'schedule.attempted schedule.fired'],
    [410, 'schedule.attempted schedule.failed'],
  ])(
    'an outcome %i that is written again, since the answer to its commit was lost, leaves %s once',
    async (status_code, types) => {
      const tenant = await service.signUp()
      const { id } = (await create(tenant, { fire_at: long_ago })).body
      const { tenant_id } = tenant
      const { db, clock } = { ...service, ...service.app }
      const [held] = await db.write((tx) => lease(tx, tenant_id, schedule_job, [id], clock.now() + lease_ms))
      const ok = status_code === 204
      const outcome = {
        ok,
        status_code,
        error: ok ? null : 'status',
        started_at: clock.now(),
        duration_ms: 1,
      }
      const dependencies = { jobs: { wake() {} } } as unknown as Dependencies
      for (let times = 0; times < 3; times++)
        await db.write((tx) => schedule_job.settle(tx, dependencies, held!, outcome))
      expect((await typesOf(tenant)).slice(1).join(' ')).toBe(types)
      expect((await ask(tenant, 'GET', `/${id}/attempts`)).body.items).toHaveLength(1)
    },
  )

  describe('when PATCH moves it to another workflow', () => {
    test('the one no longer waits for it, and the other does', async () => {
      const tenant = await service.signUp()
      const { id } = (await create(tenant)).body
      await ask(tenant, 'PATCH', `/${id}`, { workflow_id: 'flow-2' })
      expect(
        (await left(tenant)).slice(1).map(({ type, workflow_id, data }) => [type, workflow_id, data]),
      ).toEqual([
        ['schedule.workflow_left', 'flow', { to: 'flow-2' }],
        ['schedule.workflow_joined', 'flow-2', { from: 'flow' }],
        ['schedule.updated', 'flow-2', { changed: 'workflow_id', fire_at: never }],
      ])
      expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0, 'flow-2': 1 })
      await ask(tenant, 'PATCH', `/${id}`, { workflow_id: '' })
      expect(await waitingOf(service, tenant.tenant_id)).toEqual({ flow: 0, 'flow-2': 0 })
    })

    test('the same one again leaves no more than the change', async () => {
      const tenant = await service.signUp()
      const { id } = (await create(tenant)).body
      await ask(tenant, 'PATCH', `/${id}`, { workflow_id: 'flow' })
      expect(await typesOf(tenant)).toEqual(['schedule.created', 'schedule.updated'])
    })
  })

  test('the header of another workflow tags what it causes, and changes nothing that this one waits for', async () => {
    const tenant = await service.signUp()
    const { id } = (await create(tenant, { workflow_id: '' })).body
    const headers = { 'x-workflow-id': 'other' }
    await service.ask('DELETE', `/v1/schedules/${id}`, { key: tenant.api_key, headers })
    expect((await left(tenant)).map(({ workflow_id }) => workflow_id)).toEqual([null, 'other'])
    expect(await waitingOf(service, tenant.tenant_id)).toEqual({ other: 0 })
  })
})
