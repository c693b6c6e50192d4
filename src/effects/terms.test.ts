import { describe, expect, test } from 'bun:test'
import {
  approval,
  ask,
  claim,
  claimed,
  decide,
  eventsOf,
  expectRefusal,
  proposed,
  read,
  runOut,
} from '../../test/support/effects.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso, second_ms } from '../base/clock.ts'
import { hashKey } from '../base/keys.ts'
import * as reports from './report-store.ts'

interface Approver {
  approval_key: string
  approval_key_id: string
}

forEachRacedService('The terms of effects', (service) => {
  const keysOf = (tenant: TestTenant, count: number): Promise<Approver[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const path = '/v1/approval-keys'
        return (await service.ask('POST', path, { key: tenant.admin_key, body: {} })).body
      }),
    )
  const revoke = async (tenant: TestTenant, { approval_key_id }: Approver) => {
    const path = `/v1/approval-keys/${approval_key_id}`
    expect((await service.ask('DELETE', path, { key: tenant.admin_key })).status).toBe(204)
  }
  const set = async (tenant: TestTenant, body: object, type = 'refund') => {
    const path = `/v1/effect-policies/${type}`
    expect((await service.ask('PUT', path, { key: tenant.admin_key, body })).status).toBe(200)
  }
  const vote = (id: string, { approval_key: key }: Approver, verb = 'approve', body: object = {}) =>
    service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key, body })
  const checkpoint = async (tenant: TestTenant, id: string) =>
    (await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })).body

  describe('the question what became of an effect', () => {
    test('takes as many answers as its policy, of those whom it names', async () => {
      const tenant = await service.signUp()
      const [one, two, three] = (await keysOf(tenant, 3)) as [Approver, Approver, Approver]
      const { id } = await claimed(service, tenant, { on_unknown: 'ask' })
      const approvers = [one.approval_key_id, two.approval_key_id]
      await set(tenant, { approval: 'required', required_approvals: 2, approvers })
      await runOut(service)
      const { question_id } = await read(service, tenant, id)
      expect(await checkpoint(tenant, question_id)).toMatchObject({ required_approvals: 2, approvers })
      const answer = { answer: { outcome: 'retry' } }
      expect((await vote(question_id, three, 'approve', answer)).body.error.code).toBe('NOT_AN_APPROVER')
      expect((await vote(question_id, one, 'approve', answer)).body.status).toBe('pending')
      expect((await read(service, tenant, id)).status).toBe('unknown')
      expect((await vote(question_id, two, 'approve', answer)).body.status).toBe('approved')
      expect((await read(service, tenant, id)).status).toBe('ready')
    })

    test('and as many as the approval of the effect', async () => {
      const tenant = await service.signUp()
      const [one, two, three] = (await keysOf(tenant, 3)) as [Approver, Approver, Approver]
      const approvers = [one.approval_key_id, two.approval_key_id]
      const asked = { ...approval, required_approvals: 2, approvers }
      const { id, checkpoint_id } = await proposed(service, tenant, { on_unknown: 'ask', approval: asked })
      await vote(checkpoint_id, one)
      expect((await vote(checkpoint_id, two)).body.status).toBe('approved')
      await ask(service, tenant.api_key, id, 'start')
      await runOut(service)
      const { question_id } = await read(service, tenant, id)
      const answer = { answer: { outcome: 'retry' } }
      expect((await vote(question_id, three, 'approve', answer)).body.error.code).toBe('NOT_AN_APPROVER')
      expect((await vote(question_id, one, 'approve', answer)).body.status).toBe('pending')
    })

    test('is not asked when too few are left to answer: it waits for the admin', async () => {
      const tenant = await service.signUp()
      const [one] = (await keysOf(tenant, 1)) as [Approver]
      await set(tenant, { approval: 'optional', approvers: [one.approval_key_id] })
      const { id } = await claimed(service, tenant, { on_unknown: 'ask' })
      await revoke(tenant, one)
      await runOut(service)
      expect(await read(service, tenant, id)).toMatchObject({ status: 'unknown', question_id: null })
      const resolved = await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'failed', fence: 1 })
      expect(resolved.body.status).toBe('failed')
    })
  })

  describe('a policy', () => {
    test('holds for claims under an approval that is older', async () => {
      const tenant = await service.signUp()
      const [one, two] = (await keysOf(tenant, 2)) as [Approver, Approver]
      const { checkpoint_id } = await proposed(service, tenant)
      await vote(checkpoint_id, one, 'approve', { uses: 100 })
      const under = { approval: { checkpoint_id } }
      expect((await claim(service, tenant, under)).status).toBe(201)
      const left = (await checkpoint(tenant, checkpoint_id)).uses_left
      const named = { approvers: [two.approval_key_id] }
      for (const wanted of [{ required_approvals: 2 }, named]) {
        await set(tenant, { approval: 'required', ...wanted })
        const refused = await claim(service, tenant, under)
        expectRefusal(refused, 'EFFECT_APPROVAL_REQUIRED', { checkpoint_id })
      }
      expect((await checkpoint(tenant, checkpoint_id)).uses_left).toBe(left)
      await set(tenant, { approval: 'required', approvers: [one.approval_key_id] })
      expect((await claim(service, tenant, under)).status).toBe(201)
    })

    test('lets one rejection reject, whatever the agent asks for', async () => {
      const tenant = await service.signUp()
      const asked = { ...approval, required_rejections: 10 }
      const free = await proposed(service, tenant, { approval: asked })
      expect((await checkpoint(tenant, free.checkpoint_id)).required_rejections).toBe(10)
      const [one, two] = (await keysOf(tenant, 2)) as [Approver, Approver]
      for (const named of [{}, { approvers: [one.approval_key_id, two.approval_key_id] }]) {
        await set(tenant, { approval: 'required', ...named })
        const { id, checkpoint_id } = await proposed(service, tenant, { approval: asked })
        expect((await vote(checkpoint_id, one, 'reject')).body.status).toBe('rejected')
        expect((await read(service, tenant, id)).status).toBe('rejected')
      }
    })

    test('goes on without approvers that were revoked, and says when too few are left', async () => {
      const tenant = await service.signUp()
      const [one, two] = (await keysOf(tenant, 2)) as [Approver, Approver]
      const approvers = [one.approval_key_id, two.approval_key_id]
      await set(tenant, { approval: 'required', approvers })
      await revoke(tenant, one)
      const asked = await claim(service, tenant)
      expect(asked.status).toBe(202)
      expect((await checkpoint(tenant, asked.body.checkpoint_id)).approvers).toEqual([two.approval_key_id])
      await revoke(tenant, two)
      const refused = await claim(service, tenant)
      expectRefusal(refused, 'EFFECT_APPROVERS_GONE', { policy: 'refund', required_approvals: 1 })
      await set(tenant, { approval: 'required', approvers: ['admin'] })
      expect((await claim(service, tenant)).status).toBe(202)
    })

    test('without approvers leaves those of the agent, whose places in the body are named', async () => {
      const tenant = await service.signUp()
      const unknown = ['admin', 'apk_01m7yjrz37hxnv52px0106nehd']
      const refused = await claim(service, tenant, { approval: { ...approval, approvers: unknown } })
      expect(refused.body.error).toMatchObject({ code: 'VALIDATION_FAILED' })
      expect(refused.text).toContain('"/approval/approvers/1"')
    })

    test('counts an approver once that an agent names twice: too few are raised to those of the policy', async () => {
      const tenant = await service.signUp()
      const keys = (await keysOf(tenant, 2)).map(({ approval_key_id }) => approval_key_id)
      await set(tenant, { approval: 'required', required_approvals: 2, approvers: keys })
      for (const approvers of [keys.slice(0, 1), [keys[0], keys[0]]]) {
        const { checkpoint_id } = await proposed(service, tenant, { approval: { ...approval, approvers } })
        expect((await checkpoint(tenant, checkpoint_id)).approvers).toEqual(keys)
      }
    })

    test('makes an event that names its approvers', async () => {
      const tenant = await service.signUp()
      const [one] = (await keysOf(tenant, 1)) as [Approver]
      await set(tenant, { approval: 'required', approvers: ['admin', one.approval_key_id] })
      const { body } = await service.ask('GET', '/v1/events?type=effect_policy.updated', {
        key: tenant.admin_key,
      })
      expect(body.items.map(({ data }: { data: object }) => data)).toEqual([
        {
          ...{ approval: 'required', required_approvals: 1, lease_seconds_max: null },
          approvers: `admin ${one.approval_key_id}`,
        },
      ])
    })
  })

  describe('a permit', () => {
    test('has its uses for as long as it holds, also when the texts of the first effect were removed', async () => {
      const tenant = await service.signUp()
      const { id, checkpoint_id } = await proposed(service, tenant)
      await decide(service, tenant, checkpoint_id, 'approve', { uses: 3 })
      const { lease_token } = (await ask(service, tenant.api_key, id, 'start')).body
      await ask(service, tenant.api_key, id, 'succeed', { lease_token })
      await runOut(service, (7 * day_ms) / second_ms)
      expect((await checkpoint(tenant, checkpoint_id)).payload).toBeNull()
      const under = { approval: { checkpoint_id } }
      const other = await claim(service, tenant, { ...under, payload: { amount: 31 } })
      expectRefusal(other, 'EFFECT_KEY_REUSED', { effect_id: id })
      expect((await claim(service, tenant, under)).status).toBe(201)
    })

    test('that ends while its last lease may be reported leaves the effect unknown, and the report wins', async () => {
      const tenant = await service.signUp()
      for (const how of ['start', 'claim'] as const) {
        const { id, key, checkpoint_id } = await proposed(service, tenant, { on_unknown: 'retry' })
        const expires_at = iso(service.clock.now() + 15 * second_ms)
        await decide(service, tenant, checkpoint_id, 'approve', { expires_at })
        const { lease_token } = (await ask(service, tenant.api_key, id, 'start', { lease_seconds: 10 })).body
        await runOut(service, 10)
        expect((await read(service, tenant, id)).status).toBe('approved')
        service.clock.advance(5 * second_ms)
        const late =
          how === 'start'
            ? await ask(service, tenant.api_key, id, 'start')
            : await claim(service, tenant, { key })
        expectRefusal(late, 'EFFECT_UNKNOWN', { effect_id: id, checkpoint_id: null })
        const done = await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: 1 })
        expect(done.body).toMatchObject({ status: 'succeeded', result: 1 })
        const types = (await eventsOf(service, tenant, id)).map(({ type }: { type: string }) => type)
        expect(types).toContain('effect.unknown')
      }
    })

    test('that ends so rejects the effect once an admin has freed it', async () => {
      const tenant = await service.signUp()
      const { id, checkpoint_id } = await proposed(service, tenant, { on_unknown: 'retry' })
      const expires_at = iso(service.clock.now() + 15 * second_ms)
      await decide(service, tenant, checkpoint_id, 'approve', { expires_at })
      await ask(service, tenant.api_key, id, 'start', { lease_seconds: 10 })
      await runOut(service, 15)
      expect((await ask(service, tenant.api_key, id, 'start')).body.error.code).toBe('EFFECT_UNKNOWN')
      await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'retry', fence: 1 })
      const details = { effect_id: id, status: 'expired', checkpoint_id }
      expectRefusal(await ask(service, tenant.api_key, id, 'start'), 'EFFECT_REJECTED', details)
    })

    test('is in the events: its end and its uses, and each lease that began under it', async () => {
      const tenant = await service.signUp()
      const { id, checkpoint_id } = await proposed(service, tenant)
      const permit_expires_at = iso(service.clock.now() + day_ms)
      const terms = { uses: 2, expires_at: permit_expires_at }
      await decide(service, tenant, checkpoint_id, 'approve', terms)
      await ask(service, tenant.api_key, id, 'start')
      const other = await claimed(service, tenant, { approval: { checkpoint_id } })
      const plain = await claimed(service, tenant)
      const dataOf = async (effect: string, type: string) =>
        (await eventsOf(service, tenant, effect)).find((event: { type: string }) => event.type === type).data
      const approved = await dataOf(id, 'effect.approved')
      expect(approved).toMatchObject({ checkpoint_id, permit_expires_at, uses: 2 })
      expect((await dataOf(id, 'effect.started')).checkpoint_id).toBe(checkpoint_id)
      expect((await dataOf(other.id, 'effect.claimed')).checkpoint_id).toBe(checkpoint_id)
      expect((await dataOf(plain.id, 'effect.claimed')).checkpoint_id).toBeNull()
    })
  })

  test('of any number of claims of a free effect that needs an approval, all are answered with the same one', async () => {
    const tenant = await service.signUp()
    const { id, key, lease_token } = await claimed(service, tenant)
    await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
    await set(tenant, { approval: 'required' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => claim(service, tenant, { key })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
    expect(new Set(answers.map(({ body }) => body.checkpoint.id)).size).toBe(1)
    const { body } = await service.ask('GET', '/v1/checkpoints', { key: tenant.admin_key })
    expect(body.items).toHaveLength(1)
  })

  test('a report is for the effect as it was read: one whose lease ran out meanwhile is read again', async () => {
    const tenant = await service.signUp()
    const { tenant_id } = tenant
    const { id, lease_token } = await claimed(service, tenant)
    await runOut(service)
    const failure = { lease_token_hash: hashKey(lease_token), error: 'no' }
    const success = { lease_token_hash: hashKey(lease_token), result: null, more_bytes: 0 }
    const before = { id, status: 'running', fence: 1, error: null } as const
    const verdict = {
      status: 'failed',
      result: null,
      error: null,
      more_bytes: 0,
      resolved_by: 'admin',
    } as const
    const { db } = service.app
    const found = await db.write(tenant_id, async (tx) => [
      await reports.fail(tx, tenant_id, before, failure),
      await reports.release(tx, tenant_id, before, failure),
      await reports.succeedLate(tx, tenant_id, before, success),
      await reports.resolve(tx, tenant_id, { ...before, status: 'ready' }, verdict),
      await reports.resolveRetry(tx, tenant_id, { ...before, status: 'unknown', fence: 2 }, 'admin'),
    ])
    expect(found).toEqual([null, null, null, null, null])
    expect((await read(service, tenant, id)).status).toBe('unknown')
  })

  test('a workflow counts no failure whose lease ran out while its holder reported it', async () => {
    const tenant = await service.signUp()
    const effects = []
    for (let i = 0; i < 10; i++) effects.push(await claimed(service, tenant, { workflow_id: 'w' }))
    await Promise.all([
      runOut(service),
      ...effects.map(({ id, lease_token }) =>
        ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'no' }),
      ),
    ])
    const { body } = await service.ask('GET', '/v1/workflows/w', { key: tenant.api_key })
    expect(body.failing).toBe(0)
  })
})
