// Checkpoints: decisions, cancellation, timeouts, and the callback of a decision.

import { equal, holds, invalid, matches, refused, sameText, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { isSignedCallback } from '../receiver.ts'
import { agree, checkpoint as checkpointShape, hasShape } from '../shapes.ts'
import type { Actor } from '../tenant.ts'
import type { Trial } from '../trial.ts'
import { lettersOf } from './attempts.ts'

const timeout_seconds_max = 315_360_000
const payload_bytes_max = 256 * 1_024
const prompt_bytes_max = 32 * 1_024

export const checkpoints = chapter('checkpoints', {
  create: [
    'POST /checkpoints answers 201 with a checkpoint that is pending; timeout_action defaults to auto_reject',
    'core 2, core 4, decisions 5 Checkpoints',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const made = succeeded(await agent.post('/v1/checkpoints', objects.checkpointBody(t.world)), 201)
      hasShape(made, checkpointShape, 'POST /v1/checkpoints')
      equal(
        [made.status, made.timeout_action, made.agent_id],
        ['pending', 'auto_reject', agent.id],
        'the new checkpoint',
      )
      equal(
        [made.prompt, made.reason, made.resolved_by, made.resolved_at],
        [null, null, null, null],
        'fields without a value',
      )
      equal([made.callback.attempts, made.callback.last_error], [0, null], 'callback of a pending checkpoint')
      const shown = succeeded(await agent.get(`/v1/checkpoints/${made.id}`), 200)
      agree(shown, made, checkpointShape, 'the checkpoint as it is read')
    },
  ],
  'null-callback': [
    'callback_url null, given explicitly, means no callback',
    'decisions 8',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const made = succeeded(await agent.post('/v1/checkpoints', { title: 'x', callback_url: null }), 201)
      equal(made.callback_url, null, 'callback_url')
    },
  ],
  payload: [
    'callback_payload is any JSON, kept as the exact text, and has 256 KiB at most; without one it is null',
    'core 2, decisions 1, decisions 5 Checkpoints',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const create = (text: string) =>
        agent.post(
          '/v1/checkpoints',
          `{"title":"x","callback_url":"${t.world.idle_url}","callback_payload":${text}}`,
        )
      for (const text of ['null', '"x"', '{"b":1e400,"a":123456789012345678901234567890,"b":-0.10}']) {
        const { id } = succeeded(await create(text), 201)
        sameText((await agent.get(`/v1/checkpoints/${id}`)).text, text, 'callback_payload')
      }
      succeeded(await create(`"${'x'.repeat(payload_bytes_max - 2)}"`), 201)
      refused(await create(`"${'x'.repeat(payload_bytes_max - 1)}"`), 'PAYLOAD_TOO_LARGE')
      const bare = { title: 'x', callback_url: t.world.idle_url }
      equal(
        succeeded(await agent.post('/v1/checkpoints', bare), 201).callback_payload,
        null,
        'callback_payload',
      )
    },
  ],
  'callback-url': [
    'callback_url is required, and a URI of 2,048 characters at most that may be called',
    'core 2, decisions 1, decisions 5 Addresses',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      invalid(await agent.post('/v1/checkpoints', { title: 'x' }), '/callback_url')
      const long = `${t.world.idle_url}/${'x'.repeat(2_048)}`
      for (const callback_url of ['not a url', 'ftp://example.com/', 'http://10.0.0.1/', long, 7])
        invalid(await agent.post('/v1/checkpoints', { title: 'x', callback_url }), '/callback_url')
    },
  ],
  limits: [
    'title has 256 characters at most, prompt 32 KiB, reason 4,096 characters; timeout_seconds is 60 to 315360000',
    'core 2, core 8, decisions 1, decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const create = (rest: object) =>
        agent.post('/v1/checkpoints', { title: 'x', callback_url: t.world.idle_url, ...rest })
      succeeded(await create({ title: 'x'.repeat(256), prompt: 'x'.repeat(prompt_bytes_max) }), 201)
      invalid(await create({ title: 'x'.repeat(257) }), '/title')
      refused(await create({ prompt: 'x'.repeat(prompt_bytes_max + 1) }), 'PAYLOAD_TOO_LARGE')
      for (const timeout_seconds of [minute, timeout_seconds_max])
        succeeded(await create({ timeout_seconds }), 201)
      for (const timeout_seconds of [0, 59, timeout_seconds_max + 1, 60.5, '60'])
        invalid(await create({ timeout_seconds }), '/timeout_seconds')
      for (const timeout_action of ['approve', '', 1])
        invalid(await create({ timeout_action }), '/timeout_action')
      const { id } = await objects.checkpoint(tenant)
      invalid(
        await tenant.admin.post(`/v1/checkpoints/${id}/approve`, { reason: 'x'.repeat(4_097) }),
        '/reason',
      )
      succeeded(await tenant.admin.post(`/v1/checkpoints/${id}/approve`, { reason: 'x'.repeat(4_096) }), 200)
    },
  ],
  'approval-url': [
    'A checkpoint has an approval_url, without a key',
    'decisions 8',
    async (t) => {
      const { id } = await objects.checkpoint(await t.tenant())
      const { approval_url } = succeeded(await (await t.tenant()).admin.get(`/v1/checkpoints/${id}`), 200)
      matches(approval_url, /^https?:\/\/.+/, 'approval_url')
      holds(!approval_url.includes('svc_apr_'), 'approval_url holds a key')
    },
  ],
  'expires-at': [
    'A checkpoint without a timeout expires after 24 h; of timeout_seconds and expires_at the earlier counts',
    'decisions 5 Checkpoints',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const secondsOf = async (rest: object) => {
        const now = await t.time.now()
        const made = succeeded(
          await agent.post('/v1/checkpoints', { title: 'x', callback_url: t.world.idle_url, ...rest }),
          201,
        )
        return (Date.parse(made.expires_at) - now) / 1_000
      }
      const at = async (seconds: number) => new Date((await t.time.now()) + seconds * 1_000).toISOString()
      const rows: [object, number][] = [
        [{}, day],
        [{ timeout_seconds: 600 }, 600],
        [{ expires_at: await at(900) }, 900],
        [{ timeout_seconds: 600, expires_at: await at(900) }, 600],
        [{ timeout_seconds: 900, expires_at: await at(600) }, 600],
      ]
      for (const [rest, expected] of rows) {
        const seconds = await secondsOf(rest)
        holds(Math.abs(seconds - expected) < 30, `expires_at is in ${seconds} s with ${JSON.stringify(rest)}`)
      }
      invalid(
        await agent.post('/v1/checkpoints', {
          title: 'x',
          callback_url: t.world.idle_url,
          expires_at: 'soon',
        }),
        '/expires_at',
      )
    },
  ],
  approve: [
    'pending → approved, by the admin key or an approval key, with reason, resolved_by and resolved_at',
    'core 3, core 4, decisions 5 Checkpoints',
    (t) => decided(t, 'approve', 'approved'),
  ],
  reject: [
    'pending → rejected, by the admin key or an approval key, with reason, resolved_by and resolved_at',
    'core 3, core 4, decisions 5 Checkpoints',
    (t) => decided(t, 'reject', 'rejected'),
  ],
  'agents-may-not': [
    'Agent keys may not approve or reject: 403 FORBIDDEN',
    'decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const { id } = await objects.checkpoint(tenant)
      for (const verb of ['approve', 'reject'])
        refused(await agent.post(`/v1/checkpoints/${id}/${verb}`), 'FORBIDDEN')
      equal(succeeded(await agent.get(`/v1/checkpoints/${id}`), 200).status, 'pending', 'status')
    },
  ],
  'already-resolved': [
    'Approve, reject and cancel of a checkpoint that is not pending are 409 CHECKPOINT_ALREADY_RESOLVED with details.status',
    'decisions 1',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const moves = { approved: 'approve', rejected: 'reject', cancelled: null }
      for (const [status, verb] of Object.entries(moves)) {
        const { id } = await objects.checkpoint(tenant)
        const path = `/v1/checkpoints/${id}`
        if (verb) succeeded(await tenant.admin.post(`${path}/${verb}`), 200)
        else succeeded(await agent.delete(path), 204)
        const before = succeeded(await agent.get(path), 200)
        for (const other of ['approve', 'reject'])
          refused(await tenant.admin.post(`${path}/${other}`), 'CHECKPOINT_ALREADY_RESOLVED', { status })
        refused(await agent.delete(path), 'CHECKPOINT_ALREADY_RESOLVED', { status })
        const { callback: _sent_meanwhile, updated_at: _then, ...decision } = checkpointShape
        agree(succeeded(await agent.get(path), 200), before, decision, 'the checkpoint after the refusals')
      }
    },
  ],
  cancel: [
    'pending → cancelled by the agent that created it: 204; by another agent 403 FORBIDDEN',
    'core 3, core 4, core 5.6, decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const [agent, other] = [await tenant.agent(), await tenant.other()]
      const { id } = await objects.checkpoint(tenant)
      refused(await other.delete(`/v1/checkpoints/${id}`), 'FORBIDDEN')
      equal(
        succeeded(await other.get(`/v1/checkpoints/${id}`), 200).status,
        'pending',
        'status after the refusal',
      )
      succeeded(await agent.delete(`/v1/checkpoints/${id}`), 204)
      const shown = succeeded(await agent.get(`/v1/checkpoints/${id}`), 200)
      equal([shown.status, shown.resolved_by], ['cancelled', `agent:${agent.id}`], 'status and resolved_by')
    },
  ],
  race: [
    'Racing approve, reject and cancel settle exactly once',
    'decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const { id } = await objects.checkpoint(tenant)
      const path = `/v1/checkpoints/${id}`
      const { admin } = tenant
      const answers = await Promise.all([
        admin.post(`${path}/approve`),
        admin.post(`${path}/reject`),
        agent.delete(path),
        admin.post(`${path}/approve`),
        admin.post(`${path}/reject`),
      ])
      equal(answers.filter(({ status }) => status < 300).length, 1, 'calls that settled it')
      for (const answer of answers.filter(({ status }) => status >= 300))
        refused(answer, 'CHECKPOINT_ALREADY_RESOLVED')
      const winner = answers.find(({ status }) => status < 300)!
      const status = winner.status === 204 ? 'cancelled' : winner.json.status
      equal(succeeded(await agent.get(path), 200).status, status, 'status beside that of the call that won')
    },
  ],
  list: [
    'GET /checkpoints narrows by status',
    'core 4',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const ids: Record<string, string> = {}
      for (const status of ['pending', 'approved', 'rejected', 'cancelled'])
        ids[status] = (await objects.checkpoint(tenant)).id!
      succeeded(await tenant.admin.post(`/v1/checkpoints/${ids.approved}/approve`), 200)
      succeeded(await tenant.admin.post(`/v1/checkpoints/${ids.rejected}/reject`), 200)
      succeeded(await agent.delete(`/v1/checkpoints/${ids.cancelled}`), 204)
      for (const [status, id] of Object.entries(ids)) {
        const { items } = succeeded(await tenant.admin.get(`/v1/checkpoints?status=${status}`), 200)
        equal(
          items.map((one: { id: string }) => one.id),
          [id],
          `checkpoints with status=${status}`,
        )
      }
      equal(
        succeeded(await agent.get('/v1/checkpoints?status=expired'), 200).items,
        [],
        'expired checkpoints',
      )
      invalid(await agent.get('/v1/checkpoints?status=unknown'), 'query.status')
    },
  ],
  'reject-dead-letters': [
    'A reject with timeout_action dlq sends the callback and leaves a DLQ item; with auto_reject it leaves none',
    'core 3, core 6, decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      for (const [timeout_action, letters] of [
        ['dlq', 1],
        ['auto_reject', 0],
      ] as const) {
        const hook = await t.hook()
        const body = { title: 'x', callback_url: hook.url, timeout_action }
        const { id } = succeeded(await agent.post('/v1/checkpoints', body), 201)
        succeeded(await tenant.admin.post(`/v1/checkpoints/${id}/reject`), 200)
        const items = await lettersOf(tenant, id)
        equal(items.length, letters, `dead letters with timeout_action ${timeout_action}`)
        for (const { source, status } of items)
          equal([source, status], ['checkpoint', 'failed'], 'source and status')
        await t.until(() => hook.received.length === 1, 'the callback of the rejection')
      }
    },
  ],
  'approve-no-letter': [
    'An approval leaves no DLQ item, whatever timeout_action says',
    'core 3',
    async (t) => {
      const tenant = await t.tenant()
      const body = { title: 'x', callback_url: t.world.idle_url, timeout_action: 'dlq' }
      const { id } = succeeded(await (await tenant.agent()).post('/v1/checkpoints', body), 201)
      succeeded(await tenant.admin.post(`/v1/checkpoints/${id}/approve`), 200)
      equal(await lettersOf(tenant, id), [], 'dead letters')
    },
  ],
  'auto-rejects': timed(
    2 * minute,
    'Timeout with auto_reject: rejected, resolved_by timeout, and the callback is sent; not a moment before',
    'core 3, decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const hook = await t.hook()
      const { agent, id } = await timingOut(t, { callback_url: hook.url })
      await t.time.wait(minute - 5)
      await t.settled()
      equal(
        succeeded(await agent.get(`/v1/checkpoints/${id}`), 200).status,
        'pending',
        'status before the timeout',
      )
      await t.time.wait(10)
      await t.until(() => hook.received.length === 1, 'the callback of the timeout')
      const shown = succeeded(await agent.get(`/v1/checkpoints/${id}`), 200)
      equal([shown.status, shown.resolved_by], ['rejected', 'timeout'], 'status and resolved_by')
      isSignedCallback(hook.received[0]!, tenant.keys.signing_secret, 'checkpoint.rejected', 1)
      equal(await lettersOf(tenant, id), [], 'dead letters')
    },
  ),
  'times-out-to-dlq': timed(
    2 * minute,
    'Timeout with dlq: expired and a DLQ item of source checkpoint, no callback',
    'core 3, decisions 5 Checkpoints',
    async (t) => {
      const tenant = await t.tenant()
      const hook = await t.hook()
      const { agent, id } = await timingOut(t, { callback_url: hook.url, timeout_action: 'dlq' })
      await t.time.wait(minute + 5)
      const path = `/v1/checkpoints/${id}`
      await t.until(
        async () => succeeded(await agent.get(path), 200).status === 'expired',
        'the checkpoint is expired',
      )
      equal(succeeded(await agent.get(path), 200).resolved_by, 'timeout', 'resolved_by')
      const items = await lettersOf(tenant, id)
      equal(
        items.map((one: { source: string; status: string }) => [one.source, one.status]),
        [['checkpoint', 'failed']],
        'dead letters',
      )
      await t.settled()
      equal(hook.received.length, 0, 'callbacks')
      refused(await tenant.admin.post(`${path}/approve`), 'CHECKPOINT_ALREADY_RESOLVED', {
        status: 'expired',
      })
    },
  ),
  'all-agents': [
    'All of the tenant’s agents and the admin see all checkpoints',
    'core 4, decisions 5 DLQ',
    async (t) => {
      const tenant = await t.tenant()
      const { id } = await objects.checkpoint(tenant)
      for (const actor of [tenant.admin, await tenant.other()])
        succeeded(await actor.get(`/v1/checkpoints/${id}`), 200)
    },
  ],
})

async function decided(t: Trial, verb: string, status: string): Promise<void> {
  const tenant = await t.tenant()
  const approver = await tenant.approver()
  const rows: [Actor, string][] = [
    [tenant.admin, 'admin'],
    [approver, `approval_key:${approver.id}`],
  ]
  for (const [actor, resolved_by] of rows) {
    const { id } = await objects.checkpoint(tenant)
    const shown = succeeded(await actor.post(`/v1/checkpoints/${id}/${verb}`, { reason: 'Because.' }), 200)
    hasShape(shown, checkpointShape, `POST /v1/checkpoints/{id}/${verb}`)
    equal(
      [shown.status, shown.reason, shown.resolved_by],
      [status, 'Because.', resolved_by],
      'the settled checkpoint',
    )
    holds(shown.resolved_at !== null, 'resolved_at is null')
    equal(
      succeeded(await tenant.admin.get(`/v1/checkpoints/${id}`), 200).status,
      status,
      'status as it is read',
    )
    const { id: bare } = await objects.checkpoint(tenant)
    equal(
      succeeded(await actor.post(`/v1/checkpoints/${bare}/${verb}`), 200).reason,
      null,
      'reason without a body',
    )
  }
}

async function timingOut(t: Trial, rest: object): Promise<{ agent: Actor; id: string }> {
  const agent = await (await t.tenant()).agent()
  const body = { title: 'x', timeout_seconds: minute, ...rest }
  return { agent, id: succeeded(await agent.post('/v1/checkpoints', body), 201).id }
}
