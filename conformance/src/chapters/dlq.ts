// Dead letters: every move between the states, by whom, and what an answer shows.

import { equal, holds, invalid, refused, sameText, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { agree, claimedItem, hasShape, item as itemShape, listedItem } from '../shapes.ts'
import type { Actor } from '../tenant.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const error_bytes_max = 64 * 1_024
const lock_seconds_max = 86_400

export const dlq = chapter('dlq', {
  capture: [
    'POST /dlq answers 201 with an item that is failed: payload, error, workflow_id, source agent, lock_seconds 300',
    'core 2, core 4, decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      const made = succeeded(await agent.post('/v1/dlq', { payload: [1], error: 'it failed' }), 201)
      hasShape(made, itemShape, 'POST /v1/dlq')
      equal(
        [made.status, made.source, made.source_id],
        ['failed', 'agent', null],
        'status, source and source_id',
      )
      equal(
        [made.payload, made.error, made.workflow_id],
        [[1], 'it failed', null],
        'payload, error and workflow_id',
      )
      equal(
        [made.lock_seconds, made.claims, made.agent_id],
        [300, 0, agent.id],
        'lock_seconds, claims and agent_id',
      )
      const of_workflow = { payload: 1, error: 'x', workflow_id: 'wf-1' }
      equal(succeeded(await agent.post('/v1/dlq', of_workflow), 201).workflow_id, 'wf-1', 'workflow_id')
      equal(
        [made.locked_by, made.locked_until, made.resolved_at],
        [null, null, null],
        'fields without a value',
      )
      agree(succeeded(await agent.get(`/v1/dlq/${made.id}`), 200), made, itemShape, 'the item as it is read')
    },
  ],
  'exact-json': [
    'A payload is kept as the exact JSON text, and so is null',
    'decisions 1',
    async (t) => {
      const { agent } = await callers(t)
      for (const text of ['{"b":1e400,"a":[123456789012345678901234567890],"b":-0.10}', 'null']) {
        const { id } = succeeded(await agent.post('/v1/dlq', `{"error":"x","payload":${text}}`), 201)
        for (const answer of [await agent.get(`/v1/dlq/${id}`), await agent.post(`/v1/dlq/${id}/claim`)])
          sameText(answer.text, text, 'payload')
      }
    },
  ],
  limits: [
    'lock_seconds is 1 to 86400; error has 64 KiB at most; a payload may have nearly 1 MiB',
    'core 2, decisions 1, decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      const body = { payload: 1, error: 'x' }
      for (const lock_seconds of [1, lock_seconds_max])
        equal(
          succeeded(await agent.post('/v1/dlq', { ...body, lock_seconds }), 201).lock_seconds,
          lock_seconds,
          'lock_seconds',
        )
      for (const lock_seconds of [0, -1, 1.5, lock_seconds_max + 1, '60'])
        invalid(await agent.post('/v1/dlq', { ...body, lock_seconds }), '/lock_seconds')
      succeeded(await agent.post('/v1/dlq', { payload: 1, error: 'x'.repeat(error_bytes_max) }), 201)
      refused(
        await agent.post('/v1/dlq', { payload: 1, error: 'x'.repeat(error_bytes_max + 1) }),
        'PAYLOAD_TOO_LARGE',
      )
      succeeded(await agent.post('/v1/dlq', { payload: 'x'.repeat(1_000_000), error: 'x' }), 201)
      invalid(await agent.post('/v1/dlq', { payload: 1, error: 7 }), '/error')
    },
  ],
  claim: [
    'failed → claimed: a claim answers the item with its payload and a lock_token, locked for lock_seconds',
    'core 3, core 4, decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      const claimed = succeeded(await agent.post(`/v1/dlq/${id}/claim`), 200)
      hasShape(claimed, claimedItem, 'POST /v1/dlq/{id}/claim')
      equal(
        [claimed.status, claimed.locked_by, claimed.claims],
        ['claimed', agent.id, 1],
        'status, locked_by and claims',
      )
      equal(claimed.payload, { n: 1 }, 'payload')
      const seconds = (Date.parse(claimed.locked_until) - (await t.time.now())) / 1_000
      holds(seconds > 270 && seconds <= 301, `locked_until is in ${seconds} s, with lock_seconds 300`)
      equal(succeeded(await agent.get(`/v1/dlq/${id}`), 200).status, 'claimed', 'status as it is read')
    },
  ],
  'claim-lock-seconds': [
    'A claim may carry its own lock_seconds',
    'decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      for (const lock_seconds of [0, lock_seconds_max + 1])
        invalid(await agent.post(`/v1/dlq/${id}/claim`, { lock_seconds }), '/lock_seconds')
      const { locked_until } = succeeded(
        await agent.post(`/v1/dlq/${id}/claim`, { lock_seconds: 3_600 }),
        200,
      )
      const seconds = (Date.parse(locked_until) - (await t.time.now())) / 1_000
      holds(seconds > 3_570 && seconds <= 3_601, `locked_until is in ${seconds} s, with lock_seconds 3600`)
    },
  ],
  'claim-claimed': [
    'claimed → claimed: a claim of a claimed item is 409 ALREADY_CLAIMED, for its holder too',
    'core 3, core 4, core 7',
    async (t) => {
      const { agent, other } = await callers(t)
      const { id } = await objects.claimed(await t.tenant())
      for (const actor of [agent, other]) refused(await actor.post(`/v1/dlq/${id}/claim`), 'ALREADY_CLAIMED')
    },
  ],
  'claim-race': [
    'A claim is atomic: of claims at the same time exactly one succeeds',
    'core 3',
    async (t) => {
      const { agent, other } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      const claims = Array.from({ length: 10 }, (_, i) => (i % 2 ? agent : other).post(`/v1/dlq/${id}/claim`))
      const answers = await Promise.all(claims)
      equal(answers.filter(({ status }) => status === 200).length, 1, 'claims that succeeded')
      for (const answer of answers.filter(({ status }) => status !== 200)) refused(answer, 'ALREADY_CLAIMED')
      const { locked_by } = succeeded(answers.find(({ status }) => status === 200)!, 200)
      equal(succeeded(await agent.get(`/v1/dlq/${id}`), 200).locked_by, locked_by, 'locked_by')
    },
  ],
  'claim-closed': [
    'A claim of a resolved or archived item is 409 INVALID_STATE with details.status',
    'decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      for (const [verb, status] of [
        ['resolve', 'resolved'],
        ['fail', 'archived'],
      ] as const) {
        const { id } = await objects.claimed(await t.tenant())
        succeeded(await agent.post(`/v1/dlq/${id}/${verb}`), 200)
        refused(await agent.post(`/v1/dlq/${id}/claim`), 'INVALID_STATE', { status })
      }
    },
  ],
  release: [
    'claimed → failed: after a release the item can be claimed again, and nobody holds it',
    'core 3, core 4',
    async (t) => {
      const { agent, other } = await callers(t)
      const { id } = await objects.claimed(await t.tenant())
      const released = succeeded(await agent.post(`/v1/dlq/${id}/release`), 200)
      hasShape(released, itemShape, 'POST /v1/dlq/{id}/release')
      agree(succeeded(await other.get(`/v1/dlq/${id}`), 200), released, itemShape, 'the item as it is read')
      equal(
        [released.status, released.locked_by, released.locked_until],
        ['failed', null, null],
        'the released item',
      )
      equal(succeeded(await other.post(`/v1/dlq/${id}/claim`), 200).claims, 2, 'claims')
    },
  ],
  fail: [
    'claimed → archived: after a fail the item is permanently failed',
    'core 3, core 4',
    async (t) => {
      const { agent } = await callers(t)
      const { id } = await objects.claimed(await t.tenant())
      equal(succeeded(await agent.post(`/v1/dlq/${id}/fail`), 200).status, 'archived', 'status')
      for (const verb of ['claim', 'release', 'fail'])
        refused(await agent.post(`/v1/dlq/${id}/${verb}`), 'INVALID_STATE', { status: 'archived' })
    },
  ],
  'resolve-any': [
    'any → resolved: an item of any status is resolved, with resolved_at; a repeat is 200',
    'core 3, decisions 5 DLQ',
    async (t) => {
      const { agent, other } = await callers(t)
      const tenant = await t.tenant()
      const { id: archived } = await objects.claimed(tenant)
      succeeded(await agent.post(`/v1/dlq/${archived}/fail`), 200)
      for (const id of [(await objects.item(tenant)).id, (await objects.claimed(tenant)).id, archived]) {
        const resolved = succeeded(await other.post(`/v1/dlq/${id}/resolve`), 200)
        equal([resolved.status, resolved.locked_by], ['resolved', null], 'status and locked_by')
        holds(resolved.resolved_at !== null, 'resolved_at is null')
        equal(
          succeeded(await agent.post(`/v1/dlq/${id}/resolve`), 200).resolved_at,
          resolved.resolved_at,
          'resolved_at',
        )
      }
    },
  ],
  'not-claimed': [
    'release and fail of an item that is not claimed are 409 INVALID_STATE, whatever the token',
    'decisions 1',
    async (t) => {
      const { agent } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      for (const verb of ['release', 'fail']) {
        for (const body of [{}, { lock_token: 'x' }])
          refused(await agent.post(`/v1/dlq/${id}/${verb}`, body), 'INVALID_STATE', { status: 'failed' })
      }
    },
  ],
  'holder-only': [
    'release and fail of an item that another agent holds are 409 LOCK_NOT_HELD',
    'decisions 1, decisions 5 DLQ',
    async (t) => {
      const { agent, other } = await callers(t)
      const { id } = await objects.claimed(await t.tenant())
      for (const verb of ['release', 'fail'])
        refused(await other.post(`/v1/dlq/${id}/${verb}`), 'LOCK_NOT_HELD')
      equal(succeeded(await agent.get(`/v1/dlq/${id}`), 200).locked_by, agent.id, 'locked_by')
    },
  ],
  'lock-token': [
    'lock_token is optional and checked when sent: a stale one is 409 LOCK_NOT_HELD, by resolve too',
    'decisions 1, decisions 5 DLQ',
    async (t) => {
      const { agent } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      const stale = succeeded(await agent.post(`/v1/dlq/${id}/claim`), 200).lock_token
      succeeded(await agent.post(`/v1/dlq/${id}/release`, { lock_token: stale }), 200)
      const { lock_token } = succeeded(await agent.post(`/v1/dlq/${id}/claim`), 200)
      holds(lock_token !== stale, 'the token of another claim is the same')
      for (const verb of ['release', 'fail', 'resolve'])
        refused(await agent.post(`/v1/dlq/${id}/${verb}`, { lock_token: stale }), 'LOCK_NOT_HELD')
      succeeded(await agent.post(`/v1/dlq/${id}/resolve`, { lock_token }), 200)
    },
  ],
  'lock-elapses': timed(
    minute + 5,
    'When the lock elapses the item is failed again, at once for every reader, and can be claimed',
    'decisions 5 DLQ',
    async (t) => {
      const { agent, other } = await callers(t)
      const { id } = await objects.item(await t.tenant())
      const { lock_token } = succeeded(await agent.post(`/v1/dlq/${id}/claim`, { lock_seconds: minute }), 200)
      await t.time.wait(minute - 5)
      refused(await other.post(`/v1/dlq/${id}/claim`), 'ALREADY_CLAIMED')
      await t.time.wait(10)
      const read = succeeded(await other.get(`/v1/dlq/${id}`), 200)
      equal(
        [read.status, read.locked_by, read.locked_until],
        ['failed', null, null],
        'the item after its lock',
      )
      const failed = succeeded(await other.get('/v1/dlq?status=failed&limit=200'), 200).items
      holds(
        failed.some((one: { id: string }) => one.id === id),
        'the list of failed items is without it',
      )
      for (const body of [{}, { lock_token }])
        refused(await agent.post(`/v1/dlq/${id}/release`, body), 'INVALID_STATE')
      succeeded(await other.post(`/v1/dlq/${id}/claim`), 200)
      refused(await agent.post(`/v1/dlq/${id}/fail`), 'LOCK_NOT_HELD')
    },
  ),
  'swept-after-90-days': timed(
    92 * day,
    'Resolved and archived items are swept after 90 days; a failed one stays',
    'decisions 4',
    async (t) => {
      const { agent } = await callers(t)
      const tenant = await t.tenant()
      const [failed, resolved, archived] = [
        await objects.item(tenant),
        await objects.item(tenant),
        await objects.claimed(tenant),
      ]
      succeeded(await agent.post(`/v1/dlq/${resolved.id}/resolve`), 200)
      succeeded(await agent.post(`/v1/dlq/${archived.id}/fail`), 200)
      await t.time.wait(89 * day)
      for (const { id } of [failed, resolved, archived]) succeeded(await agent.get(`/v1/dlq/${id}`), 200)
      await t.time.wait(2 * day)
      for (const { id } of [resolved, archived])
        await t.until(async () => (await agent.get(`/v1/dlq/${id}`)).status === 404, 'a closed item is swept')
      equal(succeeded(await agent.get(`/v1/dlq/${failed.id}`), 200).status, 'failed', 'status')
    },
  ),
  delete: [
    'DELETE removes an item of any status with 204; absent it is 404 DLQ_NOT_FOUND',
    'core 3, core 4, core 7',
    async (t) => {
      const { agent, other } = await callers(t)
      const tenant = await t.tenant()
      for (const verb of [null, 'claim', 'resolve', 'fail']) {
        const { id } = await (verb === 'fail' ? objects.claimed : objects.item)(tenant)
        if (verb) succeeded(await agent.post(`/v1/dlq/${id}/${verb}`), 200)
        succeeded(await other.delete(`/v1/dlq/${id}`), 204)
        refused(await agent.get(`/v1/dlq/${id}`), 'DLQ_NOT_FOUND')
        refused(await other.delete(`/v1/dlq/${id}`), 'DLQ_NOT_FOUND')
      }
    },
  ],
  list: [
    'Lists leave payload out, and narrow by status',
    'core 4, decisions 5 DLQ',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const { id } = await objects.item(tenant)
      const claimed = await objects.claimed(tenant)
      const archived = await objects.claimed(tenant)
      succeeded(await agent.post(`/v1/dlq/${archived.id}/fail`), 200)
      const resolved = await objects.item(tenant)
      succeeded(await agent.post(`/v1/dlq/${resolved.id}/resolve`), 200)
      for (const [status, own] of Object.entries({
        failed: id,
        claimed: claimed.id,
        archived: archived.id,
        resolved: resolved.id,
      })) {
        const { items } = succeeded(await tenant.admin.get(`/v1/dlq?status=${status}`), 200)
        equal(
          items.map((one: { id: string }) => one.id),
          [own],
          `items with status=${status}`,
        )
        hasShape(items[0], listedItem, 'an item of GET /v1/dlq')
        equal('payload' in items[0], false, 'payload in the list')
      }
      equal(succeeded(await agent.get('/v1/dlq'), 200).items.length, 4, 'items without a filter')
      invalid(await agent.get('/v1/dlq?status=unknown'), 'query.status')
    },
  ],
  'all-agents': [
    'All of the tenant’s agents see and move all items; the admin key reads them',
    'core 4, decisions 5 DLQ',
    async (t) => {
      const { other } = await callers(t)
      const tenant = await t.tenant()
      const { id } = await objects.item(tenant)
      succeeded(await other.get(`/v1/dlq/${id}`), 200)
      succeeded(await tenant.admin.get(`/v1/dlq/${id}`), 200)
      succeeded(await other.post(`/v1/dlq/${id}/claim`), 200)
    },
  ],
  unknown: [
    'Every verb on an item that is not there is 404 DLQ_NOT_FOUND',
    'decisions 1',
    async (t) => {
      const { agent } = await callers(t)
      for (const verb of ['claim', 'release', 'fail', 'resolve'])
        refused(await agent.post(`/v1/dlq/dlq_${unique()}/${verb}`), 'DLQ_NOT_FOUND')
    },
  ],
})

async function callers(t: Trial): Promise<{ agent: Actor; other: Actor }> {
  const tenant = await t.tenant()
  return { agent: await tenant.agent(), other: await tenant.other() }
}
