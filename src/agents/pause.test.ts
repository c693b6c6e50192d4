import { expect, spyOn, test } from 'bun:test'
import { until } from '../../test/support/patience.ts'
import { count_lock_waits } from '../../test/support/postgres.ts'
import {
  type Answer,
  forEachRacedService,
  forEachService,
  type TestTenant,
} from '../../test/support/service.ts'
import { iso, minute_ms } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as store from './store.ts'

forEachService('an agent', (service) => {
  const change = (tenant: TestTenant, verb: string, body?: unknown) =>
    service.ask('POST', `/v1/agents/agent-one/${verb}`, { key: tenant.admin_key, body })
  const set = (tenant: TestTenant, mode: unknown) =>
    service.ask('PATCH', '/v1/agents/agent-one', { key: tenant.admin_key, body: { mode } })
  const put = (key: string) => service.ask('PUT', '/v1/kv/a/b', { key, body: { value: 1 } })
  const read = async (key: string) => (await service.ask('GET', '/v1/kv/a/b', { key })).status
  const refusal = ({ status, body }: Answer) => [status, body.error?.code, body.error?.details]
  const eventsOf = async (tenant: TestTenant, type: string) => {
    const { body } = await service.ask('GET', `/v1/events?type=${type}`, { key: tenant.admin_key })
    return body.items.map(({ data, subject }: { data: object; subject: object }) => [subject, data])
  }
  const subject = { kind: 'agent', id: 'agent-one' }

  test('that is paused may read, and change nothing until it is resumed: 403 AGENT_PAUSED', async () => {
    const tenant = await service.signUp()
    expect((await put(tenant.api_key)).status).toBe(200)
    const paused_at = iso(service.clock.now())
    const paused = await change(tenant, 'pause', { reason: 'asks twice' })
    const shown = { agent_id: 'agent-one', mode: 'full', paused_at, paused_reason: 'asks twice' }
    expect([paused.status, paused.body]).toMatchObject([200, shown])
    service.clock.advance(minute_ms)
    const again = await change(tenant, 'pause', { reason: 'another' })
    expect([again.status, again.text]).toEqual([200, paused.text])
    const details = { since: paused_at, reason: 'asks twice' }
    expect(refusal(await put(tenant.api_key))).toEqual([403, 'AGENT_PAUSED', details])
    expect(await read(tenant.api_key)).toBe(200)

    const resumed = await change(tenant, 'resume')
    expect([resumed.status, resumed.body]).toMatchObject([200, { paused_at: null, paused_reason: null }])
    expect((await change(tenant, 'resume')).text).toBe(resumed.text)
    expect((await put(tenant.api_key)).status).toBe(200)
    expect(await eventsOf(tenant, 'agent.paused')).toEqual([[subject, { reason: 'asks twice' }]])
    expect(await eventsOf(tenant, 'agent.resumed')).toEqual([[subject, {}]])
  })

  test('that is paused stops alone: others of the tenant go on', async () => {
    const tenant = await service.signUp()
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    await change(tenant, 'pause')
    expect((await put(other.api_key)).status).toBe(200)
    expect(refusal(await put(tenant.api_key))[1]).toBe('AGENT_PAUSED')
  })

  test('of mode read changes nothing: 403 AGENT_READ_ONLY', async () => {
    const tenant = await service.signUp()
    await put(tenant.api_key)
    const changed = await set(tenant, 'read')
    expect([changed.status, changed.body.mode]).toEqual([200, 'read'])
    expect((await set(tenant, 'read')).text).toBe(changed.text)
    expect(refusal(await put(tenant.api_key))).toEqual([403, 'AGENT_READ_ONLY', undefined])
    expect(await read(tenant.api_key)).toBe(200)
    expect((await set(tenant, 'full')).body.mode).toBe('full')
    expect((await put(tenant.api_key)).status).toBe(200)
    expect(await eventsOf(tenant, 'agent.mode_changed')).toEqual([
      [subject, { mode: 'read' }],
      [subject, { mode: 'full' }],
    ])
  })

  test('of mode propose keeps its mode, and writes as any other', async () => {
    const tenant = await service.signUp()
    expect((await set(tenant, 'propose')).body.mode).toBe('propose')
    const shown = await service.ask('GET', '/v1/agents/agent-one', { key: tenant.api_key })
    expect(shown.body.mode).toBe('propose')
    expect((await put(tenant.api_key)).status).toBe(200)
  })

  test.each(['', 'FULL', 'write', null, 7])('has no mode %j', async (mode) => {
    const tenant = await service.signUp()
    expect((await set(tenant, mode)).status).toBe(400)
  })

  test.each([
    ['a reason of 500 characters', { reason: 'x'.repeat(500) }, 200],
    ['a reason of 501', { reason: 'x'.repeat(501) }, 400],
  ])('is paused with %s: %j', async (_, body, status) => {
    const tenant = await service.signUp()
    expect((await change(tenant, 'pause', body)).status).toBe(status)
  })

  test('that is paused, of mode read, in a tenant that is frozen hears of the freeze, then of the pause', async () => {
    const tenant = await service.signUp()
    const admin = (verb: string) =>
      service.ask('POST', `/v1/tenants/${tenant.tenant_id}/${verb}`, { key: tenant.admin_key })
    await set(tenant, 'read')
    await change(tenant, 'pause')
    await admin('freeze')
    const code = async () => (await put(tenant.api_key)).body.error?.code
    expect(await code()).toBe('TENANT_FROZEN')
    await admin('resume')
    expect(await code()).toBe('AGENT_PAUSED')
    await admin('freeze')
    await change(tenant, 'resume')
    expect(await code()).toBe('TENANT_FROZEN')
    await admin('resume')
    expect(await code()).toBe('AGENT_READ_ONLY')
    await set(tenant, 'full')
    expect(await code()).toBeUndefined()
  })

  test('that is not there cannot be paused, resumed or changed: 404 AGENT_NOT_FOUND', async () => {
    const { admin_key: key } = await service.signUp()
    for (const [method, path, body] of [
      ['POST', '/v1/agents/nobody/pause', undefined],
      ['POST', '/v1/agents/nobody/resume', undefined],
      ['PATCH', '/v1/agents/nobody', { mode: 'read' }],
    ] as const)
      expect((await service.ask(method, path, { key, body })).body.error.code).toBe('AGENT_NOT_FOUND')
  })
})

forEachService('an agent that is made while a call looks for it', (service) => {
  test.each([
    ['was not paused', 'POST', '/pause', {}],
    ['was not resumed', 'POST', '/resume', undefined],
    ['did not get the mode', 'PATCH', '', { mode: 'read' }],
  ])('%s: 404', async (_, method, verb, body) => {
    const { tenant_id, admin_key: key } = await service.signUp()
    const { lock } = store
    const looking = spyOn(store, 'lock').mockImplementationOnce(async (tx, ...of) => {
      const held = await lock(tx, ...of)
      const made = { agent_id: 'agent-two', description: null, callback_base_url: null }
      expect(await store.insert(tx, tenant_id, made)).toBe(true)
      return held
    })
    const answer = await service.ask(method, `/v1/agents/agent-two${verb}`, { key, body })
    looking.mockRestore()
    expect([answer.status, answer.body.error?.code]).toEqual([404, 'AGENT_NOT_FOUND'])
  })
})

forEachRacedService('an agent that another call lets go on', (service) => {
  test.each([
    ['is paused by a pause that comes meanwhile', 'POST', '/pause', {}, 'AGENT_PAUSED'],
    ['only reads by a change that comes meanwhile', 'PATCH', '', { mode: 'read' }, 'AGENT_READ_ONLY'],
  ])('%s', async (_, method, verb, body, code) => {
    const { tenant_id, admin_key: key, api_key } = await service.signUp()
    const { db } = service.app
    const stop = () => service.ask(method, `/v1/agents/agent-one${verb}`, { key, body })
    expect((await stop()).status).toBe(200)
    const [changed, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const letting = db.write(async (tx) => {
      await store.resume(tx, tenant_id, 'agent-one')
      await store.setMode(tx, tenant_id, 'agent-one', 'full')
      changed.resolve()
      await released.promise
    })
    await changed.promise
    let is_answered = false
    const stopping = stop().finally(() => {
      is_answered = true
    })
    const waiting = unnamedAcrossTenants<{ n: number }>('test.waiting', count_lock_waits)
    // The role of the service is not shown what the connections of its login wait for.
    const login = unnamedAcrossTenants('test.login', 'set local role none')
    const waits = () =>
      db.read(async (q) => (await q.all(login, {})) && Number((await q.one(waiting, {}))!.n) > 0)
    if (service.engine === 'postgres') await until(async () => is_answered || (await waits()))
    released.resolve()
    const [answer] = await Promise.all([stopping, letting])
    expect(answer.status).toBe(200)
    const put = await service.ask('PUT', '/v1/kv/a/b', { key: api_key, body: { value: 1 } })
    expect(put.body.error?.code).toBe(code)
  })
})
