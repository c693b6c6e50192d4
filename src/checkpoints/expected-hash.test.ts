// An approval says which payload its voter has seen, so that it undoes no change unseen.

import { expect, test } from 'bun:test'
import { askForEffect } from '../../test/support/effect-checkpoints.ts'
import { forEachService } from '../../test/support/service.ts'
import { approvalsOf } from '../../test/support/steering.ts'
import { hashOf } from '../base/keys.ts'

forEachService('An approval', (service) => {
  const { ask, voter, decide, read, votesOf } = approvalsOf(service)

  test('of another payload than its `expected_hash` says is 409 VOTE_DIFFERS, and voids no vote', async () => {
    const tenant = await service.signUp()
    const [kim, lee] = [await voter(tenant), await voter(tenant)]
    const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
    const { payload_hash: proposed } = await read(tenant, id)
    const edit = (key: string, amount: number, expected_hash: string) =>
      decide(key, id, 'approve', { effective_payload: { amount }, expected_hash })
    const edited_payload_hash = hashOf('{"amount":30}')
    const first = await edit(kim.key, 30, proposed)
    expect(first.body).toMatchObject({ edited_payload: { amount: 30 }, edited_payload_hash, approvals: 1 })
    const before = [await read(tenant, id), await votesOf(tenant, id)]
    for (const amount of [20, 30]) {
      const unseen = await edit(lee.key, amount, proposed)
      expect([unseen.status, unseen.body.error.code]).toEqual([409, 'VOTE_DIFFERS'])
      expect(unseen.body.error.details).toEqual({ differs: 'payload' })
    }
    expect([await read(tenant, id), await votesOf(tenant, id)]).toEqual(before)
    const seen = await edit(lee.key, 20, edited_payload_hash)
    expect(seen.body).toMatchObject({ status: 'pending', edited_payload: { amount: 20 }, approvals: 1 })
    const { body } = await service.ask('GET', `/v1/approvals/${id}`, { key: kim.key })
    const agreed = await edit(kim.key, 20, body.edited_payload_hash)
    expect(agreed.body).toMatchObject({ status: 'approved', edited_payload_hash: null })
  })

  test('names what its voter has seen also where it changes nothing, and only of an effect', async () => {
    const tenant = await service.signUp()
    const plain = await ask(tenant)
    const expected_hash = hashOf('{"amount":40}')
    const refused = await decide(tenant.admin_key, plain.id, 'approve', { expected_hash })
    expect([refused.status, refused.body.error.details]).toEqual([
      400,
      { issues: [{ path: '/expected_hash', message: 'is only for the approval of an effect' }] },
    ])
    const { id } = await askForEffect(service, tenant, { editable: false })
    const other = await decide(tenant.admin_key, id, 'approve', { expected_hash: hashOf('1') })
    expect([other.status, other.body.error.code]).toEqual([409, 'VOTE_DIFFERS'])
    const decided = await decide(tenant.admin_key, id, 'approve', { expected_hash })
    expect(decided.body.status).toBe('approved')
  })
})
