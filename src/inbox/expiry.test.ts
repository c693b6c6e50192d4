// The end of an inbox leaves its event when its time is over.

import { expect, test } from 'bun:test'
import { rowsOf } from '../../test/support/job-bench.ts'
import { cron_secret, forEachRacedService } from '../../test/support/service.ts'
import { second_ms } from '../base/clock.ts'

forEachRacedService('An inbox whose time is over', (service) => {
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
  const eventsOf = (tenant_id: string) =>
    rowsOf<object>(
      service.app.db,
      `select subject_id, workflow_id, actor, request_id, data from events
        where tenant_id = :tenant_id and type = 'inbox.deleted' order by position`,
      { tenant_id },
    )

  test('leaves one event of the service, in its workflow, however many ticks find it', async () => {
    const tenant = await service.signUp('pro')
    const create = async (body: object) =>
      (await service.ask('POST', '/api/webhook', { key: tenant.api_key, body })).body.data.id
    const short = await create({ ttl: 60, workflowId: 'order-7' })
    await create({ ttl: 61 })
    service.clock.advance(60 * second_ms - 1)
    await tick()
    expect(await eventsOf(tenant.tenant_id)).toEqual([])
    service.clock.advance(1)
    await Promise.all([tick(), tick(), tick()])
    await tick()
    expect(await eventsOf(tenant.tenant_id)).toEqual([
      {
        ...{ subject_id: short, workflow_id: 'order-7', actor: 'service', request_id: null },
        data: '{"expired":true}',
      },
    ])
  })

  test('leaves one event, too, when it is deleted afterwards, and when it is deleted before it was found', async () => {
    const tenant = await service.signUp('pro')
    const create = async () =>
      (await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: { ttl: 60 } })).body.data.id
    const [found, unfound] = [await create(), await create()]
    const remove = async (id: string) =>
      (await service.ask('DELETE', `/api/webhook/${id}`, { key: tenant.admin_key })).status
    service.clock.advance(60 * second_ms)
    expect(await remove(unfound)).toBe(200)
    await tick()
    expect(await remove(found)).toBe(200)
    await tick()
    const of_both = { workflow_id: null, data: '{"expired":true}' }
    expect(await eventsOf(tenant.tenant_id)).toEqual([
      { ...of_both, subject_id: unfound, actor: 'admin', request_id: expect.stringMatching(/^req_/) },
      { ...of_both, subject_id: found, actor: 'service', request_id: null },
    ])
  })

  test('leaves it as well when its place is taken by a new one first', async () => {
    const tenant = await service.signUp()
    const create = () => service.ask('POST', '/api/webhook', { key: tenant.api_key, body: { ttl: 60 } })
    for (let n = 0; n < 3; n++) expect((await create()).status).toBe(201)
    service.clock.advance(60 * second_ms)
    expect((await create()).status).toBe(201)
    expect(await eventsOf(tenant.tenant_id)).toHaveLength(3)
    await tick()
    expect(await eventsOf(tenant.tenant_id)).toHaveLength(3)
  })
})
