// The callback of an approval when the payload that was approved is no longer kept.

import { expect, test } from 'bun:test'
import { ask, proposed, tick } from '../../test/support/effects.ts'
import { receiversOfFile } from '../../test/support/receivers.ts'
import { forEachService } from '../../test/support/service.ts'
import { day_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'

const receiverOf = receiversOfFile()

forEachService('The callback of an approval that is sent again after the payload was removed', (service) => {
  test.each([
    ['names the hash of an edit', { effective_payload: { amount: 20 } }, { amount: 20 }],
    ['says nothing of an edit that there was not', {}, null],
  ])('%s', async (_, decision, edited) => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(410, 204)
    const approval = { title: 'Refund?', editable: true, callback_url: receiver.url }
    const { id, checkpoint_id } = await proposed(service, tenant, { approval })
    const key = tenant.admin_key
    await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, { key, body: decision })
    await tick(service)
    const { lease_token } = (await ask(service, tenant.api_key, id, 'start')).body
    expect((await ask(service, tenant.api_key, id, 'succeed', { lease_token })).status).toBe(200)
    service.clock.advance(7 * day_ms)
    await tick(service)
    const kept = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key })
    expect(kept.body).toMatchObject({ payload: null, payload_hash: null, effective_payload: null })
    const redriven = await service.ask('POST', `/v1/dlq/${kept.body.callback.dead_letter_id}/redrive`, {
      key,
    })
    expect(redriven.status).toBe(200)
    await tick(service)
    const [first, again] = receiver.requests.map((request) => JSON.parse(request.body).data)
    const { effective_payload, ...data } = first
    expect(effective_payload).toEqual(edited ?? undefined)
    const hash = edited && { effective_payload: null, effective_hash: hashOf(JSON.stringify(edited)) }
    expect(again).toEqual({ ...data, ...hash })
  })
})
