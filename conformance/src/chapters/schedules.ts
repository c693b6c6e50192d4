// Schedules: creation, changes, cancellation.

import { equal, invalid, refused, sameText, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import * as objects from '../objects.ts'
import { agree, hasShape, schedule as scheduleShape } from '../shapes.ts'

const payload_bytes_max = 256 * 1_024

export const schedules = chapter('schedules', {
  create: [
    'POST /schedules answers 201 with a schedule that is pending; dlq_on_failure defaults to false',
    'core 2, core 4, decisions 5 Schedules',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const made = succeeded(await agent.post('/v1/schedules', objects.scheduleBody(t.world)), 201)
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
      agree(
        succeeded(await agent.get(`/v1/schedules/${made.id}`), 200),
        made,
        scheduleShape,
        'the schedule as read',
      )
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
          succeeded(await agent.post('/v1/schedules', { ...objects.scheduleBody(t.world), fire_at }), 201)
            .fire_at,
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
        invalid(await agent.post('/v1/schedules', { ...objects.scheduleBody(t.world), fire_at }), '/fire_at')
    },
  ],
  'callback-url': [
    'callback_url is a URI of 2,048 characters at most; a forbidden port or address is 400, a name that does not resolve is taken',
    'core 2, decisions 1, decisions 5 Addresses',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const create = (callback_url: unknown) =>
        agent.post('/v1/schedules', { ...objects.scheduleBody(t.world), callback_url })
      succeeded(await create('http://no-such-name.invalid/x'), 201)
      // A public address, so that nothing but the port is wrong. Nothing is sent before the year 2999.
      for (const port of [80, 443, 1024, 8443]) succeeded(await create(`https://1.1.1.1:${port}/`), 201)
      const refused_ports = [5432, 3306, 6379, 11211, 27017, 22, 25, 81, 1023, 6667]
      const ports = refused_ports.map((port) => `https://1.1.1.1:${port}/`)
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
        const { callback_url, fire_at } = objects.scheduleBody(t.world)
        return agent.post(
          '/v1/schedules',
          `{"callback_url":"${callback_url}","fire_at":"${fire_at}","callback_payload":${text}}`,
        )
      }
      for (const text of ['null', '{"b":1e400,"a":123456789012345678901234567890,"b":-0.10}']) {
        const { id } = succeeded(await create(text), 201)
        sameText((await agent.get(`/v1/schedules/${id}`)).text, text, 'callback_payload')
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
      let known = succeeded(await agent.post('/v1/schedules', objects.scheduleBody(t.world)), 201)
      const changes = [
        { callback_url: `${t.world.idle_url}/other` },
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
  name: [
    'A schedule may have a name and a workflow_id',
    'decisions 8',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const body = { ...objects.scheduleBody(t.world), name: 'Remind', workflow_id: 'wf-1' }
      const made = succeeded(await agent.post('/v1/schedules', body), 201)
      equal([made.name, made.workflow_id], ['Remind', 'wf-1'], 'name and workflow_id')
    },
  ],
})
