// The first API document alone: dead letters, schedules and checkpoints.

import { equal, holds, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import { agentIn, approverIn, created, holdsValue, isRefused, itemsOf, statusAt } from '../documents.ts'
import { type Actor, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'
import { scheduleBody } from './core.ts'

export const core_work = chapter(
  'core-work',
  {
    claim: [
      'failed → claimed, with the full payload; a claim of a claimed item is 409 ALREADY_CLAIMED',
      'core 3, core 4, core 7',
      async (t) => {
        const { agent, at, body } = await item(t)
        equal(await statusAt(agent, at), 'failed', 'status of a captured item that can be claimed')
        const claimed = await agent.post(`${at}/claim`)
        succeeded(claimed, 200)
        holdsValue(claimed, body.payload)
        equal(await statusAt(agent, at), 'claimed', 'status')
        isRefused(await agent.post(`${at}/claim`), 409, 'ALREADY_CLAIMED')
        isRefused(
          await (await agentIn(t, await t.tenant(), 'two')).post(`${at}/claim`),
          409,
          'ALREADY_CLAIMED',
        )
      },
    ],
    'claim-race': [
      'A claim is atomic: of those at the same time one succeeds',
      'core 3',
      async (t) => {
        const { agent, at } = await item(t)
        const answers = await Promise.all(Array.from({ length: 8 }, () => agent.post(`${at}/claim`)))
        equal(answers.filter(({ status }) => status === 200).length, 1, 'claims that succeeded')
      },
    ],
    'item-moves': [
      'claimed → failed by release, → archived by fail, any → resolved by resolve; DELETE removes: 204, then 404 DLQ_NOT_FOUND',
      'core 3, core 4, core 7',
      async (t) => {
        const { agent, at } = await item(t)
        const move = async (verb: string, status: string) => {
          succeeded(await agent.post(`${at}/${verb}`), 200)
          equal(await statusAt(agent, at), status, `status after ${verb}`)
        }
        await move('claim', 'claimed')
        await move('release', 'failed')
        await move('claim', 'claimed')
        await move('fail', 'archived')
        await move('resolve', 'resolved')
        succeeded(await agent.delete(at), 204)
        isRefused(await agent.delete(at), 404, 'DLQ_NOT_FOUND')
        isRefused(await agent.get(at), 404)
      },
    ],
    'item-lists': [
      'GET /dlq narrows by status; POST /dlq needs a payload and an error',
      'core 2, core 4',
      async (t) => {
        const { agent, at, id } = await item(t)
        succeeded(await agent.post(`${at}/claim`), 200)
        await isListed(agent, '/v1/dlq', id, 'claimed', 'failed')
        isRefused(await agent.post('/v1/dlq', { error: 'x' }))
        isRefused(await agent.post('/v1/dlq', { payload: 1 }))
      },
    ],
    schedule: [
      'A schedule is created with 201 as pending, changed by PATCH with 200, cancelled by DELETE with 204; then PATCH is refused',
      'core 2, core 3, core 4',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const { at, id } = await created(agent, '/v1/schedules', scheduleBody(t))
        equal(await statusAt(agent, at), 'pending', 'status')
        await isListed(agent, '/v1/schedules', id, 'pending', 'cancelled')
        const changed = {
          ...scheduleBody(t, '2998-01-01T00:00:00Z'),
          callback_payload: { changed: unique() },
        }
        succeeded(await agent.patch(at, changed), 200)
        holdsValue(await agent.get(at), changed.callback_payload)
        succeeded(await agent.delete(at), 204)
        equal(await statusAt(agent, at), 'cancelled', 'status')
        await isListed(agent, '/v1/schedules', id, 'cancelled', 'pending')
        isRefused(await agent.patch(at, changed))
      },
    ],
    'schedule-rules': [
      'A schedule needs a callback_url that is a URI, a callback_payload, and a fire_at that is a time',
      'core 2',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const wrong = [{ callback_url: 'no url' }, { fire_at: 'tomorrow' }]
        const missing = [{ callback_url: undefined }, { callback_payload: undefined }, { fire_at: undefined }]
        for (const rest of [...wrong, ...missing])
          isRefused(await agent.post('/v1/schedules', { ...scheduleBody(t), ...rest }))
      },
    ],
    'schedule-fires': [
      'Once fire_at is due a tick sends callback_payload to callback_url',
      'core 3, core 6',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const hook = await t.hook()
        const soon = new Date(Date.now() + 1_000).toISOString()
        const body = { ...scheduleBody(t, soon), callback_url: hook.url, callback_payload: { id: unique() } }
        succeeded(await agent.post('/v1/schedules', body), 201)
        await t.until(() => hook.received.length > 0, 'the callback of the schedule')
        equal(JSON.parse(hook.received[0]!.body), body.callback_payload, 'body of the callback')
      },
    ],
    approve: [
      'pending → approved by the admin key or an approval key, and a signed callback is sent',
      'core 3, core 4, core 6',
      (t) => decided(t, 'approve', 'approved'),
    ],
    reject: [
      'pending → rejected by the admin key or an approval key, and a signed callback is sent',
      'core 3, core 4, core 6',
      (t) => decided(t, 'reject', 'rejected'),
    ],
    'scoped-approval-key': [
      'An approval key that was made with checkpoint_id decides on that checkpoint alone; unknown and foreign ones are 404',
      'core 2, core 4, core 5',
      async (t) => {
        const tenant = await t.tenant()
        const [own, other] = [await checkpoint(t), await checkpoint(t)]
        const approver = await approverIn(t, tenant, { checkpoint_id: own.id })
        isRefused(await approver.post(`${other.at}/approve`))
        equal(await statusAt(other.agent, other.at), 'pending', 'status of the other checkpoint')
        succeeded(await approver.post(`${own.at}/approve`), 200)
        const stranger = await approverIn(t, await t.stranger())
        isRefused(await stranger.post(`${other.at}/approve`), 404)
        isRefused(await tenant.admin.post(`/v1/checkpoints/none-${unique()}/approve`), 404)
      },
    ],
    cancel: [
      'Only the agent that created a checkpoint cancels it: 204, cancelled',
      'core 3, core 4, core 5.6',
      async (t) => {
        const { agent, at, id } = await checkpoint(t)
        isRefused(await (await agentIn(t, await t.tenant(), 'two')).delete(at))
        equal(await statusAt(agent, at), 'pending', 'status after the refusal')
        await isListed(agent, '/v1/checkpoints', id, 'pending', 'cancelled')
        succeeded(await agent.delete(at), 204)
        equal(await statusAt(agent, at), 'cancelled', 'status')
        await isListed(agent, '/v1/checkpoints', id, 'cancelled', 'pending')
      },
    ],
    'checkpoint-rules': [
      'A checkpoint needs a title and a callback_url; timeout_seconds is at least 60, timeout_action auto_reject or dlq',
      'core 2, core 8',
      async (t) => {
        const agent = await agentIn(t, await t.tenant())
        const wrong = [{ timeout_seconds: 59 }, { timeout_action: 'approve' }, { expires_at: 'soon' }]
        const missing = [{ title: undefined }, { callback_url: undefined }]
        for (const rest of [...wrong, ...missing])
          isRefused(
            await agent.post('/v1/checkpoints', { title: 'x', callback_url: t.world.idle_url, ...rest }),
          )
      },
    ],
    'reject-dead-letters': [
      'A rejection with timeout_action dlq leaves a DLQ item',
      'core 3, core 6',
      async (t) => {
        const tenant = await t.newTenant()
        const agent = await agentIn(t, tenant)
        const body = { title: 'x', callback_url: t.world.idle_url, timeout_action: 'dlq' }
        const { at } = await created(agent, '/v1/checkpoints', body)
        succeeded(await tenant.admin.post(`${at}/reject`), 200)
        await t.until(
          async () => itemsOf(succeeded(await agent.get('/v1/dlq'), 200)).length === 1,
          'the DLQ item of the rejection',
        )
      },
    ],
  },
  'documents',
)

async function item(t: Trial) {
  const agent = await agentIn(t, await t.tenant())
  const body = { payload: { order: unique(), lines: [1, null] }, error: 'it failed' }
  return { agent, body, ...(await created(agent, '/v1/dlq', body)) }
}

async function checkpoint(t: Trial, rest: object = {}) {
  const agent = await agentIn(t, await t.tenant())
  const body = { title: 'May I?', callback_url: t.world.idle_url, ...rest }
  return { agent, ...(await created(agent, '/v1/checkpoints', body)) }
}

/** The first page with one status has it, that with another has not. */
async function isListed(
  actor: Actor,
  path: string,
  id: string,
  status: string,
  other: string,
): Promise<void> {
  const page = async (one: string) =>
    JSON.stringify(itemsOf(succeeded(await actor.get(`${path}?status=${one}`), 200)))
  holds((await page(status)).includes(id), `${id} is not in the list with status=${status}`)
  holds(!(await page(other)).includes(id), `${id} is in the list with status=${other}`)
}

async function decided(t: Trial, verb: string, status: string): Promise<void> {
  const tenant = await t.tenant()
  for (const actor of [tenant.admin, await approverIn(t, tenant)]) {
    const hook = await t.hook()
    const { agent, at } = await checkpoint(t, { callback_url: hook.url, callback_payload: { id: unique() } })
    succeeded(await actor.post(`${at}/${verb}`, { reason: 'Because.' }), 200)
    equal(await statusAt(agent, at), status, 'status')
    await t.until(() => hook.received.length > 0, 'the callback of the decision')
    const names = Object.keys(hook.received[0]!.headers)
    holds(
      names.some((name) => name.includes('signature')),
      `no header of the callback is a signature: ${names.join(', ')}`,
    )
  }
}
