// Schedules: creation, changes, cancellation, and when and how they fire.

import { equal, holds, invalid, refused, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { hour, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { type Hook, isSignedCallback } from '../receiver.ts'
import { hasShape, schedule as scheduleShape } from '../shapes.ts'
import type { Actor, Tenant } from '../tenant.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const payload_bytes_max = 256 * 1_024
/** Past, and so due at once. */
const now = '2000-01-01T00:00:00Z'

export const schedules = chapter('schedules', {
  create: [
    'POST /schedules answers 201 with a schedule that is pending; dlq_on_failure defaults to false',
    'core 2, core 4, decisions 5 Schedules',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const made = succeeded(await agent.post('/v1/schedules', objects.scheduleBody()), 201)
      hasShape(made, scheduleShape, 'POST /v1/schedules')
      equal(
        [made.status, made.attempts, made.dlq_on_failure],
        ['pending', 0, false],
        'status, attempts, dlq_on_failure',
      )
      equal(
        [made.fire_at, made.next_attempt_at],
        [objects.far_time, objects.far_time],
        'fire_at and next_attempt_at',
      )
      equal([made.callback_payload, made.agent_id], [{ n: 1 }, agent.id], 'callback_payload and agent_id')
      equal(
        [made.last_error, made.last_status_code, made.fired_at],
        [null, null, null],
        'fields without a value',
      )
      equal(succeeded(await agent.get(`/v1/schedules/${made.id}`), 200), made, 'the schedule as it is read')
    },
  ],
  'fire-at': [
    'fire_at is any RFC 3339 time up to the year 9999',
    'core 2, decisions 5 Schedules',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const times = {
        '2999-01-01T00:00:00Z': '2999-01-01T00:00:00.000Z',
        '2999-01-01T01:30:00+01:30': '2999-01-01T00:00:00.000Z',
        '2999-01-01T00:00:00.123Z': '2999-01-01T00:00:00.123Z',
        '9999-12-31T23:59:59.999Z': '9999-12-31T23:59:59.999Z',
      }
      for (const [fire_at, shown] of Object.entries(times))
        equal(
          succeeded(await agent.post('/v1/schedules', { ...objects.scheduleBody(), fire_at }), 201).fire_at,
          shown,
          'fire_at',
        )
      for (const fire_at of [
        'tomorrow',
        '2999-01-01',
        '2999-01-01T00:00:00',
        '2999-13-01T00:00:00Z',
        '2999-02-30T00:00:00Z',
        7,
        '',
      ])
        invalid(await agent.post('/v1/schedules', { ...objects.scheduleBody(), fire_at }), '/fire_at')
    },
  ],
  'callback-url': [
    'callback_url is a URI of 2,048 characters at most; a forbidden port or address is 400, a name that does not resolve is taken',
    'core 2, decisions 1, decisions 5 Addresses',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const create = (callback_url: unknown) =>
        agent.post('/v1/schedules', { ...objects.scheduleBody(), callback_url })
      succeeded(await create('http://no-such-name.invalid/x'), 201)
      const ports = [5432, 3306, 6379, 11211, 27017, 22, 25, 6667].map((port) => `http://192.0.2.1:${port}/`)
      const addresses = [
        'http://10.0.0.1/',
        'http://169.254.169.254/latest/',
        'http://192.168.1.1/',
        'http://[fe80::1]/',
      ]
      const forms = [
        'not a url',
        'ftp://example.com/',
        'file:///etc/passwd',
        '',
        7,
        `http://example.com/${'x'.repeat(2_048)}`,
      ]
      for (const url of [...ports, ...addresses, ...forms]) invalid(await create(url), '/callback_url')
    },
  ],
  'exact-json': [
    'callback_payload is required, may be null, is kept as the exact JSON text, and has 256 KiB at most',
    'core 2, decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const create = (text: string) => {
        const { callback_url, fire_at } = objects.scheduleBody()
        return agent.post(
          '/v1/schedules',
          `{"callback_url":"${callback_url}","fire_at":"${fire_at}","callback_payload":${text}}`,
        )
      }
      for (const text of ['null', '{"b":1e400,"a":123456789012345678901234567890,"b":-0.10}']) {
        const { id } = succeeded(await create(text), 201)
        const shown = await agent.get(`/v1/schedules/${id}`)
        holds(
          shown.text.includes(`"callback_payload":${text}`),
          `the payload came back otherwise: ${shown.text}`,
        )
      }
      succeeded(await create(`"${'x'.repeat(payload_bytes_max - 2)}"`), 201)
      refused(await create(`"${'x'.repeat(payload_bytes_max - 1)}"`), 'PAYLOAD_TOO_LARGE')
    },
  ],
  patch: [
    'PATCH of a pending schedule changes any of callback_url, callback_payload, fire_at and dlq_on_failure, and leaves the rest',
    'core 3, core 4, decisions 5 Schedules',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      let known = succeeded(await agent.post('/v1/schedules', objects.scheduleBody()), 201)
      const changes = [
        { callback_url: 'http://127.0.0.1:9/other' },
        { callback_payload: null },
        { fire_at: '2998-01-01T00:00:00.000Z' },
        { dlq_on_failure: true },
        {},
      ]
      for (const change of changes) {
        const changed = succeeded(await agent.patch(`/v1/schedules/${known.id}`, change), 200)
        hasShape(changed, scheduleShape, 'PATCH /v1/schedules/{id}')
        for (const field of ['callback_url', 'callback_payload', 'fire_at', 'dlq_on_failure', 'status'])
          equal(changed[field], { ...known, ...change }[field], `${field} after ${JSON.stringify(change)}`)
        equal(changed.next_attempt_at, changed.fire_at, 'next_attempt_at')
        known = changed
      }
      invalid(
        await agent.patch(`/v1/schedules/${known.id}`, { fire_at: 'x', dlq_on_failure: 'x' }),
        '/fire_at',
        '/dlq_on_failure',
      )
    },
  ],
  cancel: [
    'pending → cancelled: DELETE answers 204; PATCH and DELETE of one that is not pending are 409 INVALID_STATE',
    'core 3, core 4, decisions 5 Schedules',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const { id } = await objects.schedule(tenant)
      succeeded(await agent.delete(`/v1/schedules/${id}`), 204)
      const shown = succeeded(await agent.get(`/v1/schedules/${id}`), 200)
      equal([shown.status, shown.next_attempt_at], ['cancelled', null], 'status and next_attempt_at')
      refused(await agent.delete(`/v1/schedules/${id}`), 'INVALID_STATE', { status: 'cancelled' })
      refused(await agent.patch(`/v1/schedules/${id}`, { dlq_on_failure: true }), 'INVALID_STATE', {
        status: 'cancelled',
      })
    },
  ],
  'all-agents': [
    'All of the tenant’s agents see and change all schedules; the admin key reads them',
    'core 4, decisions 5 DLQ',
    async (t) => {
      const tenant = await t.tenant()
      const other = await tenant.other()
      const { id } = await objects.schedule(tenant)
      succeeded(await tenant.admin.get(`/v1/schedules/${id}`), 200)
      succeeded(await other.patch(`/v1/schedules/${id}`, { dlq_on_failure: true }), 200)
      succeeded(await other.delete(`/v1/schedules/${id}`), 204)
    },
  ],
  list: [
    'GET /schedules narrows by status',
    'core 4',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const pending = await objects.schedule(tenant)
      const cancelled = await objects.schedule(tenant)
      succeeded(await agent.delete(`/v1/schedules/${cancelled.id}`), 204)
      for (const [status, ids] of Object.entries({
        pending: [pending.id],
        cancelled: [cancelled.id],
        fired: [],
        failed: [],
      })) {
        const { items } = succeeded(await tenant.admin.get(`/v1/schedules?status=${status}`), 200)
        equal(
          items.map(({ id }: { id: string }) => id),
          ids,
          `schedules with status=${status}`,
        )
      }
      invalid(await agent.get('/v1/schedules?status=unknown'), 'query.status')
    },
  ],
  fires: [
    'pending → fired: a schedule whose fire_at is past is sent now, signed, its payload byte for byte; 2xx makes it fired',
    'core 3, core 6, decisions 5 Schedules, decisions 5 Callbacks',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      const text = '{"b":1e400, "a":[ 123456789012345678901234567890 ],"b":-0.10}'
      const body = `{"callback_url":"${hook.url}","fire_at":"${now}","callback_payload":${text}}`
      const { id } = succeeded(await agent.post('/v1/schedules', body), 201)
      const fired = await reaches(t, agent, id, 'fired')
      equal(
        [fired.attempts, fired.last_status_code, fired.next_attempt_at],
        [1, 204, null],
        'the fired schedule',
      )
      holds(fired.fired_at !== null, 'fired_at is null')
      const [request] = hook.received
      equal(request!.body, text, 'body of the callback')
      isSignedCallback(request!, tenant.keys.signing_secret, 'schedule.fired', 1)
      refused(await agent.delete(`/v1/schedules/${id}`), 'INVALID_STATE', { status: 'fired' })
      refused(await agent.patch(`/v1/schedules/${id}`, { dlq_on_failure: true }), 'INVALID_STATE', {
        status: 'fired',
      })
      await t.settled()
      equal(hook.received.length, 1, 'calls of a schedule that has fired')
    },
  ],
  gone: [
    'An answer of 410 ends the attempts: failed, with a DLQ item when dlq_on_failure is true',
    'decisions 5 Callbacks',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 410)
      const id = await due(agent, hook, { dlq_on_failure: true })
      const failed = await reaches(t, agent, id, 'failed')
      equal(
        [failed.attempts, failed.last_status_code, failed.next_attempt_at],
        [1, 410, null],
        'the failed schedule',
      )
      const items = await lettersOf(tenant, id)
      equal(items.length, 1, 'dead letters of the schedule')
      equal(
        [items[0].source, items[0].source_id, items[0].status],
        ['schedule', id, 'failed'],
        'the dead letter',
      )
    },
  ],
  'no-letter': [
    'Without dlq_on_failure a schedule that fails leaves no DLQ item',
    'core 3, core 6',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 410)
      const id = await due(agent, hook, {})
      await reaches(t, agent, id, 'failed')
      equal(await lettersOf(tenant, id), [], 'dead letters of the schedule')
    },
  ],
  retries: timed(
    2 * minute,
    'Attempts are made at fire_at, 30 s and 90 s after the first; after the third the schedule is failed and leaves a DLQ item',
    'core 3, core 8, decisions 5 Schedules',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 500)
      const id = await due(agent, hook, { dlq_on_failure: true })
      await attempts(t, hook, 1)
      await t.until(async () => (await read(agent, id)).attempts === 1, 'the first attempt is counted')
      const pending = await read(agent, id)
      equal([pending.status, pending.last_status_code], ['pending', 500], 'the schedule after an attempt')
      await t.time.wait(27)
      await t.settled()
      equal(hook.received.length, 1, 'attempts 27 s after the first')
      await t.time.wait(4)
      await attempts(t, hook, 2)
      await t.time.wait(55)
      await t.settled()
      equal(hook.received.length, 2, 'attempts 86 s after the first')
      equal(await lettersOf(tenant, id), [], 'dead letters before the third attempt')
      await t.time.wait(6)
      await attempts(t, hook, 3)
      equal((await reaches(t, agent, id, 'failed')).attempts, 3, 'attempts of the failed schedule')
      equal((await lettersOf(tenant, id)).length, 1, 'dead letters of the schedule')
      for (const [i, request] of hook.received.entries())
        isSignedCallback(request, tenant.keys.signing_secret, 'schedule.fired', i + 1)
      equal(
        new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size,
        1,
        'different webhook-ids of the attempts',
      )
    },
  ),
  'retry-succeeds': timed(
    minute,
    'A later attempt that is answered with 2xx makes the schedule fired',
    'core 3, decisions 5 Schedules',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 503 : 200 })
      const id = await due(agent, hook, { dlq_on_failure: true })
      await attempts(t, hook, 1)
      await t.time.wait(31)
      const fired = await reaches(t, agent, id, 'fired')
      equal([fired.attempts, fired.last_error, fired.last_status_code], [2, null, 200], 'the fired schedule')
      equal(await lettersOf(tenant, id), [], 'dead letters')
    },
  ),
  'fires-in-time': timed(
    minute,
    'A schedule fires at fire_at and not before; PATCH moves it, DELETE stops it',
    'core 3, core 6, decisions 5 Schedules',
    async (t) => {
      const { agent } = await caller(t)
      const kept = await t.hook()
      const moved = await t.hook()
      const stopped = await t.hook()
      const fire_at = new Date((await t.time.now()) + 20_000).toISOString()
      const [, moved_id, stopped_id] = [
        await due(agent, kept, { fire_at }),
        await due(agent, moved, { fire_at }),
        await due(agent, stopped, { fire_at }),
      ]
      const later = new Date(Date.parse(fire_at) + 20_000).toISOString()
      succeeded(await agent.patch(`/v1/schedules/${moved_id}`, { fire_at: later }), 200)
      succeeded(await agent.delete(`/v1/schedules/${stopped_id}`), 204)
      await t.time.wait(15)
      await t.settled()
      equal(kept.received.length, 0, 'calls before fire_at')
      await t.time.wait(7)
      await attempts(t, kept, 1)
      equal(
        [moved.received.length, stopped.received.length],
        [0, 0],
        'calls of the moved and the cancelled schedule',
      )
      await t.time.wait(20)
      await attempts(t, moved, 1)
      equal([kept.received.length, stopped.received.length], [1, 0], 'calls in the end')
    },
  ),
  'patch-starts-anew': timed(
    hour,
    'A new fire_at starts the attempts again',
    'decisions 5 Schedules',
    async (t) => {
      const { agent } = await caller(t)
      const hook = await answering(t, 500)
      const id = await due(agent, hook, {})
      await attempts(t, hook, 1)
      await t.time.wait(31)
      await attempts(t, hook, 2)
      await t.until(async () => (await read(agent, id)).attempts === 2, 'the second attempt is counted')
      const fire_at = new Date((await t.time.now()) + 600_000).toISOString()
      const patched = succeeded(await agent.patch(`/v1/schedules/${id}`, { fire_at }), 200)
      equal([patched.status, patched.attempts], ['pending', 0], 'status and attempts after the PATCH')
      await t.time.wait(300)
      await t.settled()
      equal(hook.received.length, 2, 'calls before the new fire_at')
      await t.time.wait(301)
      await attempts(t, hook, 3)
      equal(
        hook.received[2]!.headers['x-waystation-attempt'],
        '1',
        'x-waystation-attempt of the first after the PATCH',
      )
    },
  ),
  'no-redirects': [
    'Redirects are not followed: they are an attempt that failed',
    'decisions 5 Callbacks',
    async (t) => {
      const { agent } = await caller(t)
      const target = await t.hook()
      const hook = await t.hook()
      hook.answer = () => ({ status: 302, headers: { location: target.url } })
      const id = await due(agent, hook, {})
      await t.until(async () => (await read(agent, id)).attempts === 1, 'the attempt is counted')
      const shown = await read(agent, id)
      equal([shown.status, shown.last_status_code], ['pending', 302], 'status and last_status_code')
      equal(target.received.length, 0, 'calls of where the redirect leads')
    },
  ],
  retry: [
    'POST /schedules/{id}/retry, by agent or admin, sends a schedule that failed once more, as a new one',
    'decisions 8',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 410 : 200 })
      const id = await due(agent, hook, {})
      await reaches(t, agent, id, 'failed')
      const again = succeeded(await tenant.admin.post(`/v1/schedules/${id}/retry`), 201)
      hasShape(again, scheduleShape, 'POST /v1/schedules/{id}/retry')
      holds(again.id !== id, 'the retry has the id of the first')
      await reaches(t, agent, again.id, 'fired')
      const { id: pending } = await objects.schedule(tenant)
      refused(await agent.post(`/v1/schedules/${pending}/retry`), 'INVALID_STATE')
    },
  ],
  redrive: [
    'POST /dlq/{id}/redrive, by agent or admin, sends again what a schedule left, and resolves the item',
    'decisions 8',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 410 : 200 })
      const id = await due(agent, hook, { dlq_on_failure: true })
      await reaches(t, agent, id, 'failed')
      const [item] = await lettersOf(tenant, id)
      equal(
        succeeded(await agent.post(`/v1/dlq/${item.id}/redrive`), 200).status,
        'resolved',
        'status of the item',
      )
      await attempts(t, hook, 2)
    },
  ],
})

async function caller(t: Trial): Promise<{ agent: Actor; tenant: Tenant }> {
  const tenant = await t.tenant()
  return { agent: await tenant.agent(), tenant }
}

async function due(agent: Actor, hook: Hook, rest: Record<string, unknown>): Promise<string> {
  const body = { callback_url: hook.url, callback_payload: { x: unique() }, fire_at: now, ...rest }
  return succeeded(await agent.post('/v1/schedules', body), 201).id
}

async function answering(t: Trial, status: number): Promise<Hook> {
  const hook = await t.hook()
  hook.answer = () => ({ status })
  return hook
}

async function attempts(t: Trial, hook: Hook, count: number): Promise<void> {
  await t.until(() => hook.received.length >= count, `attempt ${count} reaches the receiver`)
  equal(hook.received.length, count, 'attempts so far')
}

async function read(agent: Actor, id: string) {
  return succeeded(await agent.get(`/v1/schedules/${id}`), 200)
}

async function reaches(t: Trial, agent: Actor, id: string, status: string) {
  await t.until(async () => (await read(agent, id)).status === status, `the schedule is ${status}`)
  return read(agent, id)
}

/** The dead letters that this schedule or checkpoint left. */
export async function lettersOf(tenant: Tenant, source_id: string) {
  const { items } = succeeded(await tenant.admin.get('/v1/dlq?limit=200'), 200)
  return items.filter((one: { source_id: string }) => one.source_id === source_id)
}
