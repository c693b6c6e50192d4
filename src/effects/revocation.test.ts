// The revocation of an approval, and the effects that have it.

import { expect, test } from 'bun:test'
import {
  approved,
  ask,
  claim,
  claimed,
  decide,
  eventsOf,
  expectRefusal,
  proposed,
  quotaOf,
  read,
  runOut,
} from '../../test/support/effects.ts'
import { forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { iso, second_ms } from '../base/clock.ts'

const revoke = (service: TestService, tenant: TestTenant, id: string) =>
  decide(service, tenant, id, 'revoke', undefined)

/** An effect with an approval that has nine uses. */
async function withUses(service: TestService, tenant: TestTenant, body: object = {}) {
  const effect = await proposed(service, tenant, body)
  const decided = await decide(service, tenant, effect.checkpoint_id, 'approve', { uses: 9 })
  expect(decided.status).toBe(200)
  return effect
}

forEachService('A revoked approval', (service) => {
  test('lets nothing start under it, and what runs finish', async () => {
    const tenant = await service.signUp()
    const { api_key } = tenant
    const { id, key, checkpoint_id } = await withUses(service, tenant)
    const approval = { checkpoint_id }
    const runs = await claimed(service, tenant, { approval })
    const freed = await claimed(service, tenant, { approval })
    const failure = { lease_token: freed.lease_token, error: 'busy', retry: true }
    expect((await ask(service, api_key, freed.id, 'fail', failure)).body.status).toBe('approved')
    const used = await quotaOf(service, tenant)
    service.clock.advance(second_ms)
    const now = iso(service.clock.now())
    const before = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: api_key })
    const revoked = await revoke(service, tenant, checkpoint_id)
    expect([revoked.status, revoked.body]).toEqual([
      200,
      { ...before.body, permit_expires_at: now, uses_left: 0, updated_at: now },
    ])

    const ended = { status: 'rejected', permit_expires_at: now, finished_at: now }
    expect(await read(service, tenant, id)).toMatchObject(ended)
    expect(await read(service, tenant, freed.id)).toMatchObject(ended)
    expect(await quotaOf(service, tenant)).toBe(used - 2)
    const details = { effect_id: id, status: 'expired', checkpoint_id }
    expectRefusal(await ask(service, api_key, id, 'start'), 'EFFECT_REJECTED', details)
    expectRefusal(await claim(service, tenant, { key, approval: { title: 'x' } }), 'EFFECT_REJECTED', details)
    const under = await claim(service, tenant, { approval })
    expectRefusal(under, 'EFFECT_REJECTED', { status: 'expired', checkpoint_id })

    expect(await read(service, tenant, runs.id)).toMatchObject({ status: 'running', permit_expires_at: now })
    const lease = { lease_token: runs.lease_token }
    expect((await ask(service, api_key, runs.id, 'extend', lease)).status).toBe(200)
    const done = await ask(service, api_key, runs.id, 'succeed', { ...lease, result: 1 })
    expect(done.body).toMatchObject({ status: 'succeeded', result: 1 })
  })

  test('leaves events by the approver who revoked it, and a repeat changes nothing', async () => {
    const tenant = await service.signUp()
    const { id, checkpoint_id } = await withUses(service, tenant)
    const key = (await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key })).body
    const by_key = () =>
      service.ask('POST', `/v1/checkpoints/${checkpoint_id}/revoke`, { key: key.approval_key })
    const first = await by_key()
    service.clock.advance(second_ms)
    const again = await revoke(service, tenant, checkpoint_id)
    expect([first.status, again.status, again.body]).toEqual([200, 200, first.body])
    const actor = `approval_key:${key.approval_key_id}`
    const [rejected] = (await eventsOf(service, tenant, id)).filter(
      (event: { type: string }) => event.type === 'effect.rejected',
    )
    expect(rejected).toMatchObject({ actor, data: { status: 'expired', checkpoint_id } })
    const revoked = (await eventsOf(service, tenant, checkpoint_id)).filter(
      (event: { type: string }) => event.type === 'checkpoint.revoked',
    )
    expect(revoked).toMatchObject([{ actor, data: {} }])
  })

  test('leaves one that ran out unknown: it is not free when a person says retry', async () => {
    const tenant = await service.signUp()
    const { id, checkpoint_id } = await approved(service, tenant)
    expect((await ask(service, tenant.api_key, id, 'start')).status).toBe(200)
    await runOut(service)
    expect((await revoke(service, tenant, checkpoint_id)).status).toBe(200)
    expect((await read(service, tenant, id)).status).toBe('unknown')
    const verdict = { outcome: 'retry', fence: 1 }
    expect((await ask(service, tenant.admin_key, id, 'resolve', verdict)).body.status).toBe('approved')
    const details = { effect_id: id, status: 'expired', checkpoint_id }
    expectRefusal(await ask(service, tenant.api_key, id, 'start'), 'EFFECT_REJECTED', details)
  })

  test('makes one unknown that was free again without a report: its holder may still report', async () => {
    const tenant = await service.signUp()
    const { id, checkpoint_id } = await approved(service, tenant, { on_unknown: 'retry' })
    const { lease_token } = (await ask(service, tenant.api_key, id, 'start')).body
    await runOut(service)
    expect((await read(service, tenant, id)).status).toBe('approved')
    expect((await revoke(service, tenant, checkpoint_id)).status).toBe(200)
    expect((await read(service, tenant, id)).status).toBe('unknown')
    const unknown = (await eventsOf(service, tenant, id)).filter(
      ({ type }: { type: string }) => type === 'effect.unknown',
    )
    expect(unknown).toMatchObject([{ actor: 'admin' }])
    const late = await ask(service, tenant.api_key, id, 'succeed', { lease_token })
    expect(late.body.status).toBe('succeeded')
  })

  test('is one of an effect: a question, and what is not approved, are INVALID_STATE, and nothing changes', async () => {
    const tenant = await service.signUp()
    const { admin_key, api_key } = tenant
    const plain = (
      await service.ask('POST', '/v1/checkpoints', {
        key: api_key,
        body: { title: 'Deploy?', callback_url: 'https://example.com/cb' },
      })
    ).body.id
    await decide(service, tenant, plain, 'approve')
    const { checkpoint_id: pending } = await proposed(service, tenant)
    const { checkpoint_id: rejected } = await proposed(service, tenant)
    await decide(service, tenant, rejected, 'reject')
    const asking = await claimed(service, tenant, { on_unknown: 'ask' })
    await runOut(service)
    const { question_id } = await read(service, tenant, asking.id)
    const answer = { answer: { outcome: 'retry' } }
    expect((await decide(service, tenant, question_id, 'approve', answer)).status).toBe(200)
    const statuses = {
      [plain]: 'approved',
      [pending]: 'pending',
      [rejected]: 'rejected',
      [question_id]: 'approved',
    }
    for (const [id, status] of Object.entries(statuses)) {
      const shown = () => service.ask('GET', `/v1/checkpoints/${id}`, { key: admin_key })
      const before = (await shown()).body
      expectRefusal(await revoke(service, tenant, id), 'INVALID_STATE', { status })
      expect((await shown()).body).toEqual(before)
    }
  })

  test('is for the admin and its approvers', async () => {
    const tenant = await service.signUp()
    const { admin_key } = tenant
    const newKey = async (body: object = {}) =>
      (await service.ask('POST', '/v1/approval-keys', { key: admin_key, body })).body
    const [named, other] = [await newKey(), await newKey()]
    const approval = { title: 'Refund?', approvers: [named.approval_key_id] }
    const { id, checkpoint_id } = await proposed(service, tenant, { approval })
    const path = `/v1/checkpoints/${checkpoint_id}`
    expect((await service.ask('POST', `${path}/approve`, { key: named.approval_key })).status).toBe(200)
    const elsewhere = await newKey({ checkpoint_id: (await proposed(service, tenant)).checkpoint_id })
    const by = (key: string) => service.ask('POST', `${path}/revoke`, { key })
    expectRefusal(await by(other.approval_key), 'NOT_AN_APPROVER')
    expectRefusal(await by(elsewhere.approval_key), 'FORBIDDEN')
    expectRefusal(await by((await service.signUp()).admin_key), 'CHECKPOINT_NOT_FOUND')
    expect((await read(service, tenant, id)).status).toBe('approved')
    expect((await by(named.approval_key)).status).toBe(200)
    expect((await read(service, tenant, id)).status).toBe('rejected')
  })

  test('is for the admin even where only others may decide, and their keys are gone', async () => {
    const tenant = await service.signUp()
    const { admin_key: key } = tenant
    const { approval_key, approval_key_id } = (await service.ask('POST', '/v1/approval-keys', { key })).body
    const approval = { title: 'Refund?', approvers: [approval_key_id] }
    const { id, checkpoint_id } = await proposed(service, tenant, { approval })
    expectRefusal(await decide(service, tenant, checkpoint_id, 'approve'), 'NOT_AN_APPROVER')
    const path = `/v1/checkpoints/${checkpoint_id}/approve`
    expect((await service.ask('POST', path, { key: approval_key })).status).toBe(200)
    await service.ask('DELETE', `/v1/approval-keys/${approval_key_id}`, { key })
    expect((await revoke(service, tenant, checkpoint_id)).status).toBe(200)
    expect(await read(service, tenant, id)).toMatchObject({ status: 'rejected', refused_as: 'expired' })
  })

  // Another node's clock may be behind, and the one of a machine may be set back.
  test('stays so for a clock that is behind its revocation', async () => {
    const tenant = await service.signUp()
    const { api_key } = tenant
    const { id, key, checkpoint_id } = await withUses(service, tenant)
    const approval = { checkpoint_id }
    const { lease_token } = (await ask(service, api_key, id, 'start')).body
    const first = await revoke(service, tenant, checkpoint_id)
    service.clock.advance(-second_ms)
    const again = await revoke(service, tenant, checkpoint_id)
    expect([again.status, again.body]).toEqual([200, first.body])
    const seen = await eventsOf(service, tenant, checkpoint_id)
    expect(seen.filter(({ type }: { type: string }) => type === 'checkpoint.revoked')).toHaveLength(1)

    const failure = { lease_token, error: 'busy', retry: true }
    expect((await ask(service, api_key, id, 'fail', failure)).body.status).toBe('approved')
    const details = { effect_id: id, status: 'expired', checkpoint_id }
    expectRefusal(await ask(service, api_key, id, 'start'), 'EFFECT_REJECTED', details)
    expectRefusal(await claim(service, tenant, { key }), 'EFFECT_REJECTED', details)
    expectRefusal(await claim(service, tenant, { approval }), 'EFFECT_REJECTED', {
      status: 'expired',
      checkpoint_id,
    })
  })

  test('is revoked in a frozen tenant, too', async () => {
    const tenant = await service.signUp()
    const { id, checkpoint_id } = await approved(service, tenant)
    const freeze = { key: tenant.admin_key, body: { reason: 'wild' } }
    expect((await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/freeze`, freeze)).status).toBe(200)
    expect((await revoke(service, tenant, checkpoint_id)).status).toBe(200)
    expect((await read(service, tenant, id)).status).toBe('rejected')
  })

  test('of any number of racers, starts none after its answer', async () => {
    const tenant = await service.signUp()
    const { id, checkpoint_id } = await withUses(service, tenant)
    const approval = { checkpoint_id }
    const starts = [
      ask(service, tenant.api_key, id, 'start'),
      ...Array.from({ length: 6 }, () => claim(service, tenant, { approval })),
    ]
    const revoked = revoke(service, tenant, checkpoint_id)
    const [answers, { status, body }] = [await Promise.all(starts), await revoked]
    expect(status).toBe(200)
    for (const { status, body } of answers)
      expect(status < 300 ? 'started' : body.error.code).toMatch(/^started$|^EFFECT_REJECTED$/)
    const { items } = (await service.ask('GET', '/v1/effects', { key: tenant.api_key })).body
    const begun = answers.filter((answer) => answer.status < 300).length
    const running = items.filter((effect: { status: string }) => effect.status === 'running')
    expect(running).toHaveLength(begun)
    for (const effect of running) expect(effect.permit_expires_at).toBe(body.permit_expires_at)
    expectRefusal(await claim(service, tenant, { approval }), 'EFFECT_REJECTED', {
      status: 'expired',
      checkpoint_id,
    })
  })
})
