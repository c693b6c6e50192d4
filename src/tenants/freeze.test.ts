import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sendInTwo } from '../../test/support/late-body.ts'
import { until } from '../../test/support/patience.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { type Answer, cron_secret, forEachService, type TestTenant } from '../../test/support/service.ts'
import { subscribed } from '../../test/support/subscriptions.ts'
import { day_ms, hour_ms, iso, minute_ms, second_ms } from '../base/clock.ts'

const confirm = 'DELETE ALL DATA'
const lock_seconds = 300
const timeout_seconds = 600

forEachService('a tenant that is frozen', (service) => {
  let receiver: Receiver
  beforeAll(async () => {
    receiver = await startReceiver()
  })
  afterAll(() => receiver.stop())

  const now = () => service.clock.now()
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
  const verb = (tenant: TestTenant, name: string, body?: unknown) =>
    service.ask('POST', `/v1/tenants/${tenant.tenant_id}/${name}`, { key: tenant.admin_key, body })
  const freeze = (tenant: TestTenant, reason?: string) => verb(tenant, 'freeze', { reason })
  const resume = (tenant: TestTenant) => verb(tenant, 'resume')
  const ask = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    service.ask(method, path, { key: tenant.api_key, body })
  const refusal = ({ status, body }: Answer) => [status, body.error?.code, body.error?.details]

  /** A dead letter that agent-one has claimed, with the token of its lock. */
  async function claimed(tenant: TestTenant): Promise<{ id: string; lock_token: string }> {
    const made = await ask(tenant, 'POST', '/v1/dlq', { payload: {}, error: 'failed' })
    const { body } = await ask(tenant, 'POST', `/v1/dlq/${made.body.id}/claim`, { lock_seconds })
    return { id: body.id, lock_token: body.lock_token }
  }
  const item = async (tenant: TestTenant, id: string) => {
    const { body } = await ask(tenant, 'GET', `/v1/dlq/${id}`)
    return [body.status, body.locked_until]
  }
  async function asked(tenant: TestTenant, callback_url: string | null = null): Promise<string> {
    const body = { title: 'May I?', callback_url, timeout_seconds }
    return (await ask(tenant, 'POST', '/v1/checkpoints', body)).body.id
  }
  const checkpoint = async (tenant: TestTenant, id: string) => {
    const { body } = await ask(tenant, 'GET', `/v1/checkpoints/${id}`)
    return [body.status, body.expires_at]
  }
  const calls = (path: string) => receiver.requests.filter(({ target }) => target === path)
  const eventsOf = async (tenant: TestTenant, type: string) => {
    const { body } = await service.ask('GET', `/v1/events?type=${type}`, { key: tenant.admin_key })
    return body.items.map(({ data }: { data: unknown }) => data)
  }

  describe('answers', () => {
    test('since when and why; a second freeze changes nothing, nor does a second resume', async () => {
      const tenant = await service.signUp()
      const frozen_at = iso(now())
      const first = await freeze(tenant, 'runs wild')
      const shown = { frozen_at, frozen_reason: 'runs wild', resumed_at: null, status: 'active' }
      expect([first.status, first.body]).toMatchObject([200, shown])
      service.clock.advance(minute_ms)
      const second = await freeze(tenant, 'another reason')
      expect([second.status, second.text]).toEqual([200, first.text])
      const resumed = await resume(tenant)
      const runs = { frozen_at: null, frozen_reason: null, resumed_at: null }
      expect([resumed.status, resumed.body]).toMatchObject([200, runs])
      service.clock.advance(minute_ms)
      const again = await resume(tenant)
      expect([again.status, again.text]).toEqual([200, resumed.text])
      expect(await eventsOf(tenant, 'tenant.frozen')).toEqual([{ reason: 'runs wild' }])
      expect(await eventsOf(tenant, 'tenant.resumed')).toEqual([{ frozen_ms: minute_ms }])
    })

    test('a resume that names its freeze ends no other one, and a repeat changes nothing', async () => {
      const tenant = await service.signUp()
      const first = (await freeze(tenant)).body.frozen_at
      service.clock.advance(minute_ms)
      const other = await verb(tenant, 'resume', { frozen_at: iso(now()) })
      expect(refusal(other)).toEqual([409, 'INVALID_STATE', { frozen_at: first }])
      expect((await verb(tenant, 'resume', { frozen_at: first })).body.frozen_at).toBeNull()
      expect((await verb(tenant, 'resume', { frozen_at: first })).status).toBe(200)
      service.clock.advance(minute_ms)
      const second = (await freeze(tenant)).body.frozen_at
      const late = await verb(tenant, 'resume', { frozen_at: first })
      expect(refusal(late)).toEqual([409, 'INVALID_STATE', { frozen_at: second }])
      expect(refusal(await ask(tenant, 'POST', '/v1/dlq', { payload: {}, error: 'x' }))[1]).toBe(
        'TENANT_FROZEN',
      )
      expect((await verb(tenant, 'resume', { frozen_at: second })).body.frozen_at).toBeNull()
    })

    test.each([
      ['a reason of 500 characters', { reason: 'x'.repeat(500) }, 200],
      ['a reason of 501', { reason: 'x'.repeat(501) }, 400],
      ['no reason', {}, 200],
      ['no body', undefined, 200],
      ['a number', { reason: 7 }, 400],
    ])('%s', async (_, body, status) => {
      const tenant = await service.signUp()
      expect((await verb(tenant, 'freeze', body)).status).toBe(status)
    })

    test('403 TENANT_FROZEN to every change of its agents, with the reason', async () => {
      const tenant = await service.signUp()
      const since = iso(now())
      await freeze(tenant, 'runs wild')
      const put = await ask(tenant, 'PUT', '/v1/kv/a/b', { value: 1 })
      expect(refusal(put)).toEqual([403, 'TENANT_FROZEN', { since, reason: 'runs wild' }])
      expect((await ask(tenant, 'GET', '/v1/kv/a')).status).toBe(200)
      await resume(tenant)
      expect((await ask(tenant, 'PUT', '/v1/kv/a/b', { value: 1 })).status).toBe(200)
    })

    test('403 to a change whose body was still on its way', async () => {
      const tenant = await service.signUp()
      const put = {
        ...{ method: 'PUT', path: '/v1/kv/a/late', key: tenant.api_key, body: { value: 'x'.repeat(1_000) } },
      }
      const answer = await sendInTwo(service, put, async () => {
        await freeze(tenant)
        service.clock.advance(second_ms)
      })
      expect(answer).toStartWith('HTTP/1.1 403 ')
      expect(answer).toContain('TENANT_FROZEN')
      expect((await ask(tenant, 'GET', '/v1/kv/a/late')).status).toBe(404)
    })

    test('what its admin asks: decisions, keys, agents, deletion', async () => {
      const tenant = await service.signUp()
      const id = await asked(tenant)
      await freeze(tenant)
      const key = tenant.admin_key
      const admin = (method: string, path: string, body?: unknown) => service.ask(method, path, { key, body })
      expect((await admin('POST', `/v1/checkpoints/${id}/approve`)).body.status).toBe('approved')
      expect((await admin('POST', '/v1/agents/agent-one/rotate-key')).status).toBe(200)
      expect((await admin('POST', '/v1/approval-keys')).status).toBe(201)
      expect((await admin('DELETE', '/v1/agents/agent-one')).status).toBe(204)
      expect((await verb(tenant, 'rotate-signing-secret')).status).toBe(200)
      const rotated = await verb(tenant, 'rotate-key')
      expect(rotated.status).toBe(200)
      const path = `/v1/tenants/${tenant.tenant_id}`
      const deleted = await service.ask('DELETE', path, { key: rotated.body.admin_key, body: { confirm } })
      expect(deleted.status).toBe(202)
    })
  })

  describe('keeps what comes in', () => {
    test('messages arrive, and are forwarded when it is resumed', async () => {
      const tenant = await service.signUp()
      const forwardUrl = `${receiver.url}/forwarded`
      const inbox = (await ask(tenant, 'POST', '/api/webhook', { forwardUrl })).body.data
      await freeze(tenant)
      expect((await service.ask('POST', new URL(inbox.url).pathname, { body: { n: 1 } })).status).toBe(200)
      await tick()
      expect(calls('/forwarded')).toEqual([])
      const kept = await ask(tenant, 'GET', `/api/webhook/${inbox.id}/messages`)
      expect(kept.body.data.items).toHaveLength(1)
      await resume(tenant)
      await tick()
      expect(calls('/forwarded')).toHaveLength(1)
    })

    test('a decision counts at once, and its callback is sent when it is resumed', async () => {
      const tenant = await service.signUp()
      const id = await asked(tenant, `${receiver.url}/decided`)
      await freeze(tenant)
      await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
      await tick()
      expect((await checkpoint(tenant, id))[0]).toBe('approved')
      expect(calls('/decided')).toEqual([])
      await resume(tenant)
      await tick()
      expect(calls('/decided')).toHaveLength(1)
    })

    test('a subscription still reports, the freeze itself first', async () => {
      const tenant = await service.signUp()
      await subscribed(service, tenant, { url: `${receiver.url}/told`, types: ['tenant.frozen'] })
      await freeze(tenant, 'runs wild')
      await until(async () => {
        await tick()
        return calls('/told').length > 0
      })
      const [told] = calls('/told')
      expect(JSON.parse(told!.body)).toMatchObject({ type: 'tenant.frozen', data: { reason: 'runs wild' } })
    })
  })

  describe('sends nothing that is due', () => {
    test('a schedule that fell due is sent when it is resumed; its fire_at stays', async () => {
      const tenant = await service.signUp()
      const fire_at = iso(now() + minute_ms)
      const body = { callback_url: `${receiver.url}/fired`, fire_at, callback_payload: {} }
      const { id } = (await ask(tenant, 'POST', '/v1/schedules', body)).body
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await tick()
      const waits = (await ask(tenant, 'GET', `/v1/schedules/${id}`)).body
      expect([waits.status, waits.fire_at, calls('/fired').length]).toEqual(['pending', fire_at, 0])
      await resume(tenant)
      await tick()
      const fired = (await ask(tenant, 'GET', `/v1/schedules/${id}`)).body
      expect([fired.status, fired.fire_at, calls('/fired').length]).toEqual(['fired', fire_at, 1])
    })

    test('one that is not due yet keeps its time, too', async () => {
      const tenant = await service.signUp()
      const fire_at = iso(now() + 2 * hour_ms)
      const body = { callback_url: `${receiver.url}/later`, fire_at, callback_payload: {} }
      const { id } = (await ask(tenant, 'POST', '/v1/schedules', body)).body
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await resume(tenant)
      service.clock.advance(hour_ms - 1)
      await tick()
      expect(calls('/later')).toEqual([])
      service.clock.advance(1)
      await tick()
      expect([
        (await ask(tenant, 'GET', `/v1/schedules/${id}`)).body.fire_at,
        calls('/later').length,
      ]).toEqual([fire_at, 1])
    })
  })

  describe('does not run out', () => {
    test('a timeout is moved by exactly the frozen time', async () => {
      const tenant = await service.signUp()
      const expires_at = now() + timeout_seconds * second_ms
      const id = await asked(tenant)
      service.clock.advance(minute_ms)
      await freeze(tenant)
      service.clock.advance(day_ms + 17)
      await tick()
      expect(await checkpoint(tenant, id)).toEqual(['pending', iso(expires_at)])
      await resume(tenant)
      const moved = expires_at + day_ms + 17
      expect(await checkpoint(tenant, id)).toEqual(['pending', iso(moved)])
      service.clock.advance(moved - now() - 1)
      await tick()
      expect(await checkpoint(tenant, id)).toEqual(['pending', iso(moved)])
      service.clock.advance(1)
      await tick()
      expect(await checkpoint(tenant, id)).toEqual(['rejected', iso(moved)])
    })

    test('the last time there is stays the last', async () => {
      const tenant = await service.signUp()
      const expires_at = '9999-12-31T23:59:59.999Z'
      const body = { title: 'May I?', callback_url: null, expires_at }
      const { id } = (await ask(tenant, 'POST', '/v1/checkpoints', body)).body
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await resume(tenant)
      expect(await checkpoint(tenant, id)).toEqual(['pending', expires_at])
    })

    test('a lock is moved by exactly the frozen time, and shown as held meanwhile', async () => {
      const tenant = await service.signUp()
      const locked_until = now() + lock_seconds * second_ms
      const { id } = await claimed(tenant)
      service.clock.advance(second_ms)
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await tick()
      await tick()
      expect(await item(tenant, id)).toEqual(['claimed', iso(locked_until)])
      const listed = await ask(tenant, 'GET', '/v1/dlq?status=claimed')
      expect(listed.body.items.map((one: { id: string }) => one.id)).toEqual([id])
      const redrive = await service.ask('POST', `/v1/dlq/${id}/redrive`, { key: tenant.admin_key })
      expect(refusal(redrive)).toEqual([409, 'ALREADY_CLAIMED', undefined])
      await resume(tenant)
      const moved = locked_until + hour_ms
      expect(await item(tenant, id)).toEqual(['claimed', iso(moved)])
      service.clock.advance(moved - now())
      expect(await item(tenant, id)).toEqual(['failed', null])
      await tick()
      expect(await eventsOf(tenant, 'dlq.lock_expired')).toEqual([{ locked_until: iso(moved) }])
      expect((await ask(tenant, 'POST', '/v1/dlq/claim', {})).body.id).toBe(id)
    })

    test('what had run out before stays so', async () => {
      const tenant = await service.signUp()
      const { id } = await claimed(tenant)
      const asking = await asked(tenant)
      service.clock.advance(timeout_seconds * second_ms)
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await tick()
      expect(await item(tenant, id)).toEqual(['failed', null])
      expect((await checkpoint(tenant, asking))[0]).toBe('pending')
      await resume(tenant)
      await tick()
      expect(await item(tenant, id)).toEqual(['failed', null])
      expect((await checkpoint(tenant, asking))[0]).toBe('rejected')
    })

    test('frozen twice, it is moved by both times', async () => {
      const tenant = await service.signUp()
      const locked_until = now() + lock_seconds * second_ms
      const expires_at = now() + timeout_seconds * second_ms
      const { id } = await claimed(tenant)
      const asking = await asked(tenant)
      for (const ms of [hour_ms, 3 * hour_ms]) {
        await freeze(tenant)
        service.clock.advance(ms)
        await tick()
        await resume(tenant)
        service.clock.advance(second_ms)
      }
      expect(await item(tenant, id)).toEqual(['claimed', iso(locked_until + 4 * hour_ms)])
      expect(await checkpoint(tenant, asking)).toEqual(['pending', iso(expires_at + 4 * hour_ms)])
    })

    test('deleted and restored while it is frozen, it stays frozen, and is moved by all of that time', async () => {
      const tenant = await service.signUp()
      const expires_at = now() + timeout_seconds * second_ms
      const id = await asked(tenant)
      await freeze(tenant)
      service.clock.advance(hour_ms)
      const path = `/v1/tenants/${tenant.tenant_id}`
      await service.ask('DELETE', path, { key: tenant.admin_key, body: { confirm } })
      for (const name of ['freeze', 'resume'])
        expect(refusal(await verb(tenant, name))).toEqual([403, 'TENANT_PENDING_DELETION', undefined])
      service.clock.advance(day_ms)
      await verb(tenant, 'restore')
      await tick()
      expect(refusal(await ask(tenant, 'PUT', '/v1/kv/a/b', { value: 1 }))[1]).toBe('TENANT_FROZEN')
      expect(await checkpoint(tenant, id)).toEqual(['pending', iso(expires_at)])
      service.clock.advance(hour_ms)
      await resume(tenant)
      expect(await checkpoint(tenant, id)).toEqual(['pending', iso(expires_at + day_ms + 2 * hour_ms)])
      await tick()
      expect((await checkpoint(tenant, id))[0]).toBe('pending')
    })
  })

  describe('lets the holder of a lock report', () => {
    test.each(['extend', 'release', 'fail', 'resolve'])('%s goes on under the token alone', async (end) => {
      const tenant = await service.signUp()
      const { id, lock_token } = await claimed(tenant)
      const since = iso(now())
      await freeze(tenant)
      service.clock.advance(hour_ms)
      const path = `/v1/dlq/${id}/${end}`
      expect(refusal(await ask(tenant, 'POST', path, {}))).toEqual([
        ...[403, 'TENANT_FROZEN'],
        { since, reason: null },
      ])
      const other = await ask(tenant, 'POST', path, { lock_token: 'lck_00000000000000000000000000' })
      expect(refusal(other)[1]).toBe('LOCK_NOT_HELD')
      const reported = await ask(tenant, 'POST', path, { lock_token })
      const status = { extend: 'claimed', release: 'failed', fail: 'archived', resolve: 'resolved' }[end]
      expect([reported.status, reported.body.status]).toEqual([200, status])
    })

    test('an extended lock ends lock_seconds after the resume', async () => {
      const tenant = await service.signUp()
      const { id, lock_token } = await claimed(tenant)
      await freeze(tenant)
      service.clock.advance(hour_ms)
      await ask(tenant, 'POST', `/v1/dlq/${id}/extend`, { lock_token, lock_seconds: 60 })
      service.clock.advance(hour_ms)
      await resume(tenant)
      expect(await item(tenant, id)).toEqual(['claimed', iso(now() + minute_ms)])
    })
  })
})
