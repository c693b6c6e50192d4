// The signed callback of a decision. Those of schedules are in their own chapter.

import { equal, matches, sameText, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, minute, timestamp } from '../contract.ts'
import { isSignedCallback, signaturesOf } from '../receiver.ts'
import type { Tenant } from '../tenant.ts'
import type { Trial } from '../trial.ts'
import { lettersOf } from './attempts.ts'
import { rotatedSecret } from './tenants.ts'

export const callbacks = chapter('callbacks', {
  approved: [
    'A decision fires a signed callback at once: type, timestamp and data with the decision and callback_payload, byte for byte',
    'core 3, core 6, decisions 5 Callbacks',
    (t) => callsBack(t, 'approve', 'approved'),
  ],
  rejected: [
    'So does a rejection',
    'core 3, core 6, decisions 5 Callbacks',
    (t) => callsBack(t, 'reject', 'rejected'),
  ],
  gone: [
    'An answer of 410 ends the attempts: the callback becomes a DLQ item of source checkpoint, the decision stays',
    'decisions 5 Callbacks',
    async (t) => {
      const tenant = await t.tenant()
      const { agent, hook, id } = await approved(t, tenant, 410)
      await t.until(async () => (await lettersOf(tenant, id)).length === 1, 'the dead letter of the callback')
      const shown = succeeded(await agent.get(`/v1/checkpoints/${id}`), 200)
      equal(
        [shown.status, shown.callback.attempts, hook.received.length],
        ['approved', 1, 1],
        'status and attempts',
      )
    },
  ],
  'no-callback': [
    'With callback_url null a decision sends nothing, and leaves no DLQ item for its want',
    'decisions 8',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const { id } = succeeded(await agent.post('/v1/checkpoints', { title: 'x', callback_url: null }), 201)
      succeeded(await tenant.admin.post(`/v1/checkpoints/${id}/reject`), 200)
      await t.settled()
      equal(await lettersOf(tenant, id), [], 'dead letters')
    },
  ],
  'cancel-silent': [
    'A cancelled checkpoint sends no callback and leaves no DLQ item',
    'decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const hook = await t.hook()
      const agent = await tenant.agent()
      const body = { title: 'x', callback_url: hook.url, timeout_action: 'dlq' }
      const { id } = succeeded(await agent.post('/v1/checkpoints', body), 201)
      succeeded(await agent.delete(`/v1/checkpoints/${id}`), 204)
      await t.settled()
      equal([hook.received.length, await lettersOf(tenant, id)], [0, []], 'callbacks and dead letters')
    },
  ],
  'both-secrets-sign': [
    'After rotate-signing-secret both secrets sign for 24 h',
    'decisions 5 Tenants, decisions 5 Callbacks',
    async (t) => {
      const tenant = await t.newTenant()
      const signing_secret = await rotatedSecret(tenant)
      const { hook } = await approved(t, tenant, 204)
      await t.until(() => hook.received.length === 1, 'the callback')
      for (const secret of [tenant.keys.signing_secret!, signing_secret]) {
        const { sent, right } = signaturesOf(hook.received[0]!, secret)
        equal(
          [sent.length, right.length],
          [2, 1],
          'signatures sent, and those that are right under one secret',
        )
      }
    },
  ],
  'old-secret-ends': timed(
    day + 2 * minute,
    'More than 24 h after rotate-signing-secret only the new secret signs',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const signing_secret = await rotatedSecret(tenant)
      await t.time.wait(day + minute)
      const { hook } = await approved(t, tenant, 204)
      await t.until(() => hook.received.length === 1, 'the callback')
      const { sent, right } = signaturesOf(hook.received[0]!, signing_secret)
      equal(right, sent, 'signatures that are right under the new secret')
    },
  ),
  retries: timed(
    2 * minute,
    'A callback has 3 attempts, now, +30 s and +90 s, then a DLQ item: the decision stays',
    'decisions 5 Callbacks',
    async (t) => {
      const tenant = await t.tenant()
      const { agent, hook, id } = await approved(t, tenant, 500)
      for (const [count, wait] of [
        [1, 31],
        [2, 60],
        [3, 0],
      ] as const) {
        await t.until(() => hook.received.length >= count, `attempt ${count} of the callback`)
        equal(hook.received.length, count, 'attempts so far')
        if (wait > 0) await t.time.wait(wait)
      }
      await t.until(async () => (await lettersOf(tenant, id)).length === 1, 'the dead letter of the callback')
      const shown = succeeded(await agent.get(`/v1/checkpoints/${id}`), 200)
      equal([shown.status, shown.callback.attempts], ['approved', 3], 'status and callback.attempts')
      for (const [i, request] of hook.received.entries())
        isSignedCallback(request, tenant.keys.signing_secret, 'checkpoint.approved', i + 1)
      equal(
        new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size,
        1,
        'different webhook-ids',
      )
      equal(new Set(hook.received.map(({ body }) => body)).size, 1, 'different bodies of the attempts')
    },
  ),
})

/** A checkpoint that was approved; its callback is answered with this status. */
async function approved(t: Trial, tenant: Tenant, status: number) {
  const agent = await tenant.agent()
  const hook = await t.hook()
  hook.answer = () => ({ status })
  const body = { title: 'x', callback_url: hook.url }
  const { id } = succeeded(await agent.post('/v1/checkpoints', body), 201)
  succeeded(await tenant.admin.post(`/v1/checkpoints/${id}/approve`), 200)
  return { agent, hook, id: id as string }
}

async function callsBack(t: Trial, verb: string, status: string): Promise<void> {
  const tenant = await t.tenant()
  const agent = await tenant.agent()
  const hook = await t.hook()
  const text = '{"b":1e400,"a":123456789012345678901234567890,"b":-0.10}'
  const create = `{"title":"x","callback_url":"${hook.url}","callback_payload":${text}}`
  const { id } = succeeded(await agent.post('/v1/checkpoints', create), 201)
  equal(hook.received.length, 0, 'callbacks before the decision')
  const settled = succeeded(
    await tenant.admin.post(`/v1/checkpoints/${id}/${verb}`, { reason: 'Because.' }),
    200,
  )
  await t.happens(() => hook.received.length === 1, 'the callback of the decision, without a tick')
  const [request] = hook.received
  isSignedCallback(request!, tenant.keys.signing_secret, `checkpoint.${status}`, 1)
  const sent = JSON.parse(request!.body)
  equal(sent.type, `checkpoint.${status}`, 'type')
  matches(sent.timestamp, timestamp, 'timestamp')
  equal([sent.data.checkpoint_id, sent.data.status, sent.data.reason], [id, status, 'Because.'], 'data')
  equal(
    [sent.data.resolved_by, sent.data.resolved_at],
    ['admin', settled.resolved_at],
    'resolved_by and resolved_at',
  )
  sameText(request!.body, text, 'data', 'callback_payload')
  await t.until(
    async () => succeeded(await agent.get(`/v1/checkpoints/${id}`), 200).callback.attempts === 1,
    'the attempt is counted',
  )
}
