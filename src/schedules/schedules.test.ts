import { afterAll, describe, expect, setSystemTime, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { forEachDatabase } from '../../test/support/databases.ts'
import { inTime } from '../../test/support/patience.ts'
import { freePort } from '../../test/support/ports.ts'
import { type Received, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { type Answer, forEachRacedService, TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { default_plans } from '../features.ts'
import { lease_ms } from '../jobs/job.ts'
import { lease } from '../jobs/store.ts'
import { version } from '../version.ts'
import { schedule_job } from './jobs.ts'
import { moves, type ScheduleStatus, statuses } from './schedule.ts'

const kib = 1_024
const never = '9999-12-31T23:59:59.999Z'
const long_ago = '2020-01-01T00:00:00Z'

const receivers: Receiver[] = []
afterAll(async () => {
  for (const receiver of receivers) await receiver.stop()
})

/** Answers these statuses in turn, the last one from then on. */
async function receiverOf(...answers: number[]): Promise<Receiver> {
  const receiver = await startReceiver()
  receivers.push(receiver)
  receiver.answer = () => ({ status: answers.length > 1 ? answers.shift()! : (answers[0] ?? 204) })
  return receiver
}

/** Keeps its answers back until `release` is called. */
async function heldReceiver() {
  const receiver = await receiverOf()
  let release = (_: { status: number }) => {}
  const answer = new Promise<{ status: number }>((resolve) => {
    release = resolve
  })
  receiver.answer = () => answer
  return { receiver, release }
}

/** The envelope, and nothing else. */
function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  // The sentence of a 402 also names the plan and the way on: src/quotas/quota.ts.
  const over = expect.stringMatching(
    /^The plan free allows \d+ \w+, and \d+ are used\. Remove some, or ask the operator/,
  )
  const message = code === 'QUOTA_EXCEEDED' ? over : errors[code].message
  const error = { code, message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(errors[code].status)
  expect(answer.headers.get('content-type')).toBe('application/json')
}

/** 400 with one issue at this path. */
function expectInvalid(answer: Answer, path: string): void {
  expectRefusal(answer, 'VALIDATION_FAILED', { issues: [{ path, message: expect.any(String) }] })
}

function tryCreate(service: TestService, { api_key }: { api_key: string }, body: object | string) {
  return service.ask('POST', '/v1/schedules', { key: api_key, body })
}

async function create(service: TestService, tenant: TestTenant, body: object) {
  service.clock.advance(1) // ids made in one millisecond are in no order
  const answer = await tryCreate(service, tenant, { callback_payload: { n: 1 }, fire_at: long_ago, ...body })
  expect(answer.status).toBe(201)
  return answer.body
}

async function read(service: TestService, { api_key }: { api_key: string }, id: string) {
  const answer = await service.ask('GET', `/v1/schedules/${id}`, { key: api_key })
  expect(answer.status).toBe(200)
  return answer.body
}

function patch(service: TestService, { api_key }: { api_key: string }, id: string, body?: object | string) {
  return service.ask('PATCH', `/v1/schedules/${id}`, { key: api_key, ...(body !== undefined && { body }) })
}

function cancel(service: TestService, { api_key }: { api_key: string }, id: string) {
  return service.ask('DELETE', `/v1/schedules/${id}`, { key: api_key })
}

async function attemptsOf(service: TestService, { api_key }: { api_key: string }, id: string, query = '') {
  const answer = await service.ask('GET', `/v1/schedules/${id}/attempts${query}`, { key: api_key })
  expect(answer.status).toBe(200)
  return answer.body
}

async function deadLetters(service: TestService, { api_key }: { api_key: string }) {
  const list = await service.ask('GET', '/v1/dlq', { key: api_key })
  return list.body.items
}

async function tick(service: TestService) {
  const answer = await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
  expect(answer.status).toBe(200)
  return answer.body
}

/** The payload as the official library verifies it; throws when the signature is not of this secret. */
function verified(service: TestService, { body, headers }: Received, secret: string): unknown {
  setSystemTime(service.clock.now()) // the library compares the timestamp with the time of day
  try {
    return new Webhook(secret).verify(body, headers)
  } finally {
    setSystemTime()
  }
}

forEachRacedService('Schedules', (service) => {
  describe('a new schedule', () => {
    test('is pending, with every field', async () => {
      const tenant = await service.signUp()
      const answer = await tryCreate(service, tenant, {
        callback_url: 'http://127.0.0.1:9/hook?a=1',
        callback_payload: { order: 7 },
        fire_at: '2030-06-01T12:00:00.250Z',
        dlq_on_failure: true,
      })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('content-type')).toBe('application/json')
      const created_at = iso(service.clock.now())
      expect(answer.body).toEqual({
        id: expect.stringMatching(/^sch_[0-9a-z]{26}$/),
        status: 'pending',
        name: null,
        workflow_id: null,
        callback_url: 'http://127.0.0.1:9/hook?a=1',
        callback_payload: { order: 7 },
        fire_at: '2030-06-01T12:00:00.250Z',
        dlq_on_failure: true,
        agent_id: 'agent-one',
        attempts: 0,
        next_attempt_at: '2030-06-01T12:00:00.250Z',
        last_error: null,
        last_status_code: null,
        fired_at: null,
        retry_of: null,
        redrive_of: null,
        retried_as: null,
        dead_letter_id: null,
        created_at,
        updated_at: created_at,
      })
      for (const key of [tenant.api_key, tenant.admin_key]) {
        const found = await service.ask('GET', `/v1/schedules/${answer.body.id}`, { key })
        expect([found.status, found.text]).toEqual([200, answer.text])
        const list = await service.ask('GET', '/v1/schedules', { key })
        expect(list.body).toEqual({ items: [answer.body], next_cursor: null })
      }
      expect(await attemptsOf(service, tenant, answer.body.id)).toEqual({ items: [], next_cursor: null })
    })

    test('leaves no dead letter unless asked to', async () => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', fire_at: never }
      for (const more of [{}, { dlq_on_failure: null }, { dlq_on_failure: false }]) {
        expect((await create(service, tenant, { ...body, ...more })).dlq_on_failure).toBe(false)
      }
    })

    test('has a name of at most 256 characters, which PATCH replaces, keeps when it is null, and takes off when it is empty', async () => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
      const longest = '\u{1f4e8}'.repeat(256)
      const named = await create(service, tenant, { ...body, name: longest })
      expect(named.name).toBe(longest)
      const list = await service.ask('GET', '/v1/schedules?status=pending', { key: tenant.admin_key })
      expect(list.body.items).toEqual([named])
      const names: unknown[] = []
      for (const name of ['Invoice 7', null, undefined, '']) {
        names.push((await patch(service, tenant, named.id, { name })).body.name)
      }
      expect(names).toEqual(['Invoice 7', 'Invoice 7', 'Invoice 7', null])
      expect((await read(service, tenant, named.id)).name).toBeNull()
      for (const name of [`${longest}x`, 7, 'a\u0000']) {
        expectInvalid(await tryCreate(service, tenant, { ...body, name }), '/name')
        expectInvalid(await patch(service, tenant, named.id, { name }), '/name')
      }
    })

    test('with another name is the same event', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(503, 204)
      const schedule = await create(service, tenant, { callback_url: receiver.url, name: 'one' })
      await tick(service)
      await patch(service, tenant, schedule.id, { name: 'two' })
      service.clock.advance(30_000)
      await tick(service)
      expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toHaveLength(2)
      expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      expect(await read(service, tenant, schedule.id)).toMatchObject({ status: 'fired', name: 'two' })
    })

    test('is made once for one Idempotency-Key', async () => {
      const { api_key } = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
      const ask = { key: api_key, headers: { 'idempotency-key': 'once' }, body }
      const first = await service.ask('POST', '/v1/schedules', ask)
      const second = await service.ask('POST', '/v1/schedules', ask)
      expect(second.headers.get('idempotent-replayed')).toBe('true')
      expect([second.status, second.text]).toEqual([201, first.text])
      const list = await service.ask('GET', '/v1/schedules', { key: api_key })
      expect(list.body.items).toEqual([first.body])
    })

    test.each([
      ['callback_url', '/callback_url'],
      ['callback_payload', '/callback_payload'],
      ['fire_at', '/fire_at'],
    ])('needs a %s', async (name, path) => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
      expectInvalid(await tryCreate(service, tenant, { ...body, [name]: undefined }), path)
    })

    test('takes null for a payload, and for no other field that it needs', async () => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
      expect((await create(service, tenant, { ...body, callback_payload: null })).callback_payload).toBeNull()
      for (const name of ['callback_url', 'fire_at']) {
        expectInvalid(await tryCreate(service, tenant, { ...body, [name]: null }), `/${name}`)
      }
    })
  })

  describe('fire_at', () => {
    test.each([
      ['2030-01-01T00:00:00Z', '2030-01-01T00:00:00.000Z'],
      ['2030-01-01T00:00:00+02:00', '2029-12-31T22:00:00.000Z'],
      ['2030-01-01T00:00:00-23:59', '2030-01-01T23:59:00.000Z'],
      ['2030-01-01T00:00:00-00:00', '2030-01-01T00:00:00.000Z'],
      ['2030-01-01t00:00:00z', '2030-01-01T00:00:00.000Z'],
      ['2030-01-01T00:00:00.1Z', '2030-01-01T00:00:00.100Z'],
      ['2030-01-01T00:00:00.123456789Z', '2030-01-01T00:00:00.123Z'],
      ['2028-02-29T12:00:00Z', '2028-02-29T12:00:00.000Z'],
      ['2030-12-31T23:59:60Z', '2031-01-01T00:00:00.000Z'],
      [never, never],
      ['9999-12-31T00:00:00-23:59', '9999-12-31T23:59:00.000Z'],
    ])('%s is %s', async (fire_at, expected) => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', fire_at }
      const schedule = await create(service, tenant, body)
      expect(schedule).toMatchObject({ fire_at: expected, next_attempt_at: expected })
      expect(await read(service, tenant, schedule.id)).toEqual(schedule)
    })

    test.each([
      ['2025-12-31T23:59:59Z', '2025-12-31T23:59:59.000Z'],
      ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
      ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
      ['1900-03-01T00:00:00+14:00', '1900-02-28T10:00:00.000Z'],
      ['0099-01-01T00:00:00Z', '0099-01-01T00:00:00.000Z'],
      ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
    ])('%s is past, and that means now', async (fire_at, expected) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const schedule = await create(service, tenant, { callback_url: receiver.url, fire_at })
      expect(schedule).toMatchObject({ fire_at: expected, next_attempt_at: iso(service.clock.now()) })
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      expect((await read(service, tenant, schedule.id)).status).toBe('fired')
    })

    test.each([
      '',
      'now',
      'tomorrow',
      '2030-01-01',
      '2030-01-01T00:00:00',
      '2030-01-01T00:00Z',
      '2030-1-1T00:00:00Z',
      '2030-02-30T00:00:00Z',
      '2030-02-29T00:00:00Z',
      '2030-13-01T00:00:00Z',
      '2030-00-01T00:00:00Z',
      '2030-01-01T24:00:00Z',
      '2030-01-01T00:60:00Z',
      '2030-01-01T00:00:61Z',
      '2030-01-01T00:00:00+24:00',
      '2030-01-01T00:00:00+0200',
      '2030-01-01T00:00:00.Z',
      ' 2030-01-01T00:00:00Z',
      '10000-01-01T00:00:00Z',
      '+010000-01-01T00:00:00Z',
      '-0001-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999-00:01',
      '9999-12-31T23:59:60Z',
      '0000-01-01T00:00:00+00:01',
      1_900_000_000,
      true,
    ])('%p is refused, at creation and in PATCH', async (fire_at) => {
      const tenant = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1 }
      expectInvalid(await tryCreate(service, tenant, { ...body, fire_at }), '/fire_at')
      const schedule = await create(service, tenant, { ...body, fire_at: never })
      expectInvalid(await patch(service, tenant, schedule.id, { fire_at }), '/fire_at')
      expect(await read(service, tenant, schedule.id)).toEqual(schedule)
    })
  })

  describe('callback_url', () => {
    test.each([
      ['/jobs/done?x=1', 'http://127.0.0.1:9/jobs/done?x=1'],
      ['/', 'http://127.0.0.1:9/'],
    ])('%s is resolved against the callback_base_url of the agent', async (callback_url, expected) => {
      const tenant = await service.signUp()
      const agent = await service.ask('POST', '/v1/agents', {
        key: tenant.admin_key,
        body: { name: 'based', callback_base_url: 'http://127.0.0.1:9/base' },
      })
      const based = { ...tenant, api_key: agent.body.api_key }
      const schedule = await create(service, based, { callback_url, fire_at: never })
      expect(schedule).toMatchObject({ callback_url: expected, agent_id: 'based' })
      const other = await create(service, based, { callback_url: 'http://127.0.0.1:9/x', fire_at: never })
      expect((await patch(service, based, other.id, { callback_url })).body.callback_url).toBe(expected)
    })

    test('that is a path is refused when the agent has no callback_base_url', async () => {
      const tenant = await service.signUp()
      const body = { callback_url: '/jobs', callback_payload: 1, fire_at: never }
      expectInvalid(await tryCreate(service, tenant, body), '/callback_url')
      const schedule = await create(service, tenant, { ...body, callback_url: 'http://127.0.0.1:9/' })
      expectInvalid(await patch(service, tenant, schedule.id, { callback_url: '/jobs' }), '/callback_url')
    })

    test('has at most 2,048 characters', async () => {
      const tenant = await service.signUp()
      const start = 'http://127.0.0.1:9/'
      const callback_url = start + 'a'.repeat(2_048 - start.length)
      const schedule = await create(service, tenant, { callback_url, fire_at: never })
      expect(schedule.callback_url).toBe(callback_url)
      const longer = { callback_url: `${callback_url}a`, callback_payload: 1, fire_at: never }
      expectInvalid(await tryCreate(service, tenant, longer), '/callback_url')
      expectInvalid(await patch(service, tenant, schedule.id, longer), '/callback_url')
    })

    test.each([
      'http://10.0.0.1/',
      'http://172.16.0.1/',
      'http://192.168.1.1:8080/x',
      'http://169.254.169.254/latest/meta-data',
      'http://0.0.0.0/',
      'http://[fe80::1]/',
      'http://[::ffff:10.0.0.1]/',
      'http://167772161/',
      'http://0xa000001/',
      'http://8.8.8.8:22/',
      'http://user:pass@127.0.0.1/',
      'ftp://127.0.0.1/',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'http://',
      'http://127.0.0.1/a b',
      'example.com/x',
      '',
    ])('%s is refused, at creation and in PATCH', async (callback_url) => {
      const tenant = await service.signUp()
      const body = { callback_payload: 1, fire_at: never }
      expectInvalid(await tryCreate(service, tenant, { ...body, callback_url }), '/callback_url')
      const schedule = await create(service, tenant, { ...body, callback_url: 'http://127.0.0.1:9/' })
      expectInvalid(await patch(service, tenant, schedule.id, { callback_url }), '/callback_url')
      expect(await read(service, tenant, schedule.id)).toEqual(schedule)
    })

    test('whose name does not resolve is taken, and fails at its attempt as dns', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { callback_url: 'http://receiver.invalid/' })
      await tick(service)
      expect(await read(service, tenant, id)).toMatchObject({
        status: 'pending',
        attempts: 1,
        last_error: 'dns',
        last_status_code: null,
      })
      expect((await cancel(service, tenant, id)).status).toBe(204)
    })
  })

  describe('callback_payload', () => {
    test('has at most 256 KiB, at creation and in PATCH', async () => {
      const tenant = await service.signUp()
      const largest = 'x'.repeat(256 * kib - 2) // and two quotes
      const body = { callback_url: 'http://127.0.0.1:9/', fire_at: never }
      const schedule = await create(service, tenant, { ...body, callback_payload: largest })
      expect(schedule.callback_payload).toBe(largest)
      const larger = { ...body, callback_payload: `${largest}x` }
      expectRefusal(await tryCreate(service, tenant, larger), 'PAYLOAD_TOO_LARGE')
      expectRefusal(await patch(service, tenant, schedule.id, larger), 'PAYLOAD_TOO_LARGE')
      expect((await patch(service, tenant, schedule.id, { callback_payload: largest })).status).toBe(200)
    })

    test.each([
      ['null', 'null'],
      ['false', 'false'],
      ['an empty text', '""'],
      ['30 digits', '123456789012345678901234567890'],
      ['a number beyond double precision', '1e400'],
      ['order and repeats of names', '{"b":1,"a":2,"b":3}'],
      ['white space', '{ "a" :\n[ 1,\t2 ] }'],
      ['escapes as they were', '"\\u0041\\/\\ud83d\\ude00\\u0000\\ud800"'],
      ['text beyond ASCII', '"Grüße, 世界 😀"'],
      ['256 KiB', `"${'x'.repeat(256 * kib - 2)}"`],
    ])('comes back and is sent byte for byte: %s', async (_, text) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const created = await tryCreate(
        service,
        tenant,
        `{"callback_url":"${receiver.url}","callback_payload" : ${text} ,"fire_at":"${long_ago}"}`,
      )
      const found = await service.ask('GET', `/v1/schedules/${created.body.id}`, { key: tenant.api_key })
      for (const answer of [created, found]) expect(answer.text).toContain(`"callback_payload":${text}`)
      await tick(service)
      expect(receiver.requests.map(({ body }) => body)).toEqual([text])
    })
  })

  describe('a due schedule', () => {
    test('is sent by the tick with the headers of the contract, signed', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(200)
      const schedule = await create(service, tenant, {
        callback_url: `${receiver.url}/done?id=7`,
        callback_payload: { order: 7 },
      })
      expect(receiver.requests).toHaveLength(0)
      service.clock.advance(1_999)
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      const request = receiver.requests[0]!
      expect([request.method, request.target, request.body]).toEqual(['POST', '/done?id=7', '{"order":7}'])
      const { connection: _, ...headers } = request.headers
      expect(headers).toEqual({
        host: `127.0.0.1:${receiver.port}`,
        'content-type': 'application/json',
        'content-length': '11',
        'user-agent': `Waystation/${version}`,
        'x-waystation-event': 'schedule.fired',
        'x-waystation-attempt': '1',
        'webhook-id': expect.stringMatching(/^evt_[0-9a-z]{26}$/),
        'webhook-timestamp': String(Math.floor(service.clock.now() / 1_000)),
        'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      })
      expect(verified(service, request, tenant.signing_secret)).toEqual({ order: 7 })
      const other = (await service.signUp()).signing_secret
      expect(() => verified(service, request, other)).toThrow('No matching signature')
      const tampered = { ...request, body: '{"order":8}' }
      expect(() => verified(service, tampered, tenant.signing_secret)).toThrow('No matching signature')
      const now = iso(service.clock.now())
      expect(await read(service, tenant, schedule.id)).toEqual({
        ...schedule,
        status: 'fired',
        attempts: 1,
        next_attempt_at: null,
        last_status_code: 200,
        fired_at: now,
        updated_at: now,
      })
    })

    test('is not sent a millisecond early', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const fire_at = iso(service.clock.now() + 60_001)
      const { id } = await create(service, tenant, { callback_url: receiver.url, fire_at })
      service.clock.advance(59_999)
      await tick(service)
      expect(receiver.requests).toHaveLength(0)
      expect((await read(service, tenant, id)).status).toBe('pending')
      service.clock.advance(1)
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
    })

    test('is sent once, however many ticks there are', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      for (let i = 0; i < 20; i++)
        await create(service, tenant, { callback_url: receiver.url, callback_payload: i })
      await Promise.all(Array.from({ length: 5 }, () => tick(service)))
      await tick(service)
      expect(receiver.requests.map(({ body }) => Number(body)).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, i) => i),
      )
    })

    test.each([200, 201, 202, 204, 299])('is fired by an answer of %i', async (status) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(status)
      const { id } = await create(service, tenant, { callback_url: receiver.url })
      await tick(service)
      expect(await read(service, tenant, id)).toMatchObject({
        status: 'fired',
        attempts: 1,
        next_attempt_at: null,
        last_error: null,
        last_status_code: status,
        fired_at: iso(service.clock.now()),
      })
    })

    test.each([300, 301, 302, 303, 307, 308, 400, 401, 404, 408, 409, 429, 500, 502, 503, 599])(
      'is tried again after an answer of %i',
      async (status) => {
        const tenant = await service.signUp()
        const receiver = await receiverOf()
        const headers = { location: `${receiver.url}/elsewhere`, 'retry-after': '3600' }
        receiver.answer = () => ({ status, headers })
        const { id } = await create(service, tenant, { callback_url: receiver.url })
        await tick(service)
        expect(await read(service, tenant, id)).toMatchObject({
          status: 'pending',
          attempts: 1,
          next_attempt_at: iso(service.clock.now() + 30_000),
          last_error: `status ${status}`,
          last_status_code: status,
          fired_at: null,
        })
        expect(receiver.requests.map(({ target }) => target)).toEqual(['/'])
        await cancel(service, tenant, id)
      },
    )

    test('is tried again when nobody listens', async () => {
      const tenant = await service.signUp()
      const callback_url = `http://127.0.0.1:${freePort()}/`
      const { id } = await create(service, tenant, { callback_url })
      await tick(service)
      expect(await read(service, tenant, id)).toMatchObject({
        status: 'pending',
        attempts: 1,
        next_attempt_at: iso(service.clock.now() + 30_000),
        last_error: 'refused',
        last_status_code: null,
      })
      const { items } = await attemptsOf(service, tenant, id)
      expect(items).toMatchObject([{ attempt: 1, status_code: null, error: 'refused' }])
      await cancel(service, tenant, id)
    })

    test.each([false, true])(
      'is given up at once after 410 Gone (dlq_on_failure %p)',
      async (dlq_on_failure) => {
        const tenant = await service.signUp()
        const receiver = await receiverOf(410)
        const { id } = await create(service, tenant, { callback_url: receiver.url, dlq_on_failure })
        await tick(service)
        expect(await read(service, tenant, id)).toMatchObject({
          status: 'failed',
          attempts: 1,
          next_attempt_at: null,
          last_error: 'status 410',
          last_status_code: 410,
          fired_at: null,
        })
        expect(await deadLetters(service, tenant)).toHaveLength(dlq_on_failure ? 1 : 0)
        service.clock.advance(90_000)
        await tick(service)
        expect(receiver.requests).toHaveLength(1)
      },
    )
  })

  test('is fired by a later attempt, and then has no error any more', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 204)
    const { id } = await create(service, tenant, { callback_url: receiver.url, dlq_on_failure: true })
    await tick(service)
    service.clock.advance(30_000)
    await tick(service)
    expect(await read(service, tenant, id)).toMatchObject({
      status: 'fired',
      attempts: 2,
      next_attempt_at: null,
      last_error: null,
      last_status_code: 204,
      fired_at: iso(service.clock.now()),
    })
    expect(await deadLetters(service, tenant)).toEqual([])
  })

  describe('PATCH', () => {
    test.each([
      ['callback_url', { callback_url: 'http://127.0.0.1:9/new' }, {}],
      ['callback_payload', { callback_payload: [1, 2] }, {}],
      ['callback_payload, to null', { callback_payload: null }, {}],
      [
        'fire_at',
        { fire_at: '2031-01-01T00:00:00+01:00' },
        { fire_at: '2030-12-31T23:00:00.000Z', next_attempt_at: '2030-12-31T23:00:00.000Z' },
      ],
      ['dlq_on_failure', { dlq_on_failure: true }, {}],
      [
        'all at once',
        { callback_url: 'http://127.0.0.1:9/b', callback_payload: 2, fire_at: never, dlq_on_failure: true },
        { next_attempt_at: never },
      ],
      ['nothing', {}, {}],
      [
        'nothing, with null for absent',
        { callback_url: null, fire_at: null, dlq_on_failure: null },
        'as it was',
      ],
    ])('changes %s', async (_, change, more) => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const body = { callback_url: 'http://127.0.0.1:9/old', fire_at: '2030-01-01T00:00:00Z' }
      const before = await create(service, tenant, body)
      service.clock.advance(5)
      const answer = await patch(service, other, before.id, change)
      expect(answer.status).toBe(200)
      const changed = typeof more === 'string' ? {} : { ...change, ...more }
      expect(answer.body).toEqual({ ...before, ...changed, updated_at: iso(service.clock.now()) })
      expect(await read(service, tenant, before.id)).toEqual(answer.body)
    })

    test('takes no body at all, and names what it does not know', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { callback_url: 'http://127.0.0.1:9/', fire_at: never })
      expect((await patch(service, tenant, id)).status).toBe(200)
      const answer = await patch(service, tenant, id, { fired_at: never, status: 'fired' })
      expect(answer.headers.get('x-ignored-fields')).toBe('fired_at, status')
      expect(answer.body).toMatchObject({ status: 'pending', fired_at: null })
    })

    test('of callback_url and callback_payload is what the next attempt sends, under a new webhook-id', async () => {
      const tenant = await service.signUp()
      const [first, second] = [await receiverOf(500), await receiverOf(204)]
      const { id } = await create(service, tenant, { callback_url: first.url, callback_payload: 'old' })
      await tick(service)
      const change = { callback_url: second.url, callback_payload: 'new' }
      const changed = await patch(service, tenant, id, change)
      expect(changed.body).toMatchObject({
        attempts: 1,
        next_attempt_at: iso(service.clock.now() + 30_000),
        last_error: 'status 500',
      })
      service.clock.advance(29_999)
      await tick(service)
      expect(second.requests).toHaveLength(0)
      service.clock.advance(1)
      await tick(service)
      expect(first.requests).toHaveLength(1)
      expect(second.requests).toMatchObject([{ body: '"new"', headers: { 'x-waystation-attempt': '2' } }])
      const ids = [first, second].map(({ requests }) => requests[0]!.headers['webhook-id'])
      expect(new Set(ids).size).toBe(2)
      expect((await attemptsOf(service, tenant, id)).items).toMatchObject([
        { attempt: 2, webhook_id: ids[1] },
        { attempt: 1, webhook_id: ids[0] },
      ])
      expect((await read(service, tenant, id)).status).toBe('fired')
    })

    test.each([
      ['another callback_url', { callback_url: '/other' }, true],
      ['the callback_url it has', { callback_url: '' }, false],
      ['another callback_payload', { callback_payload: { n: 2 } }, true],
      ['the same value as another text', '{"callback_payload":{"n": 1}}', true],
      ['the callback_payload it has', { callback_payload: { n: 1 } }, false],
      ['another payload beside the callback_url it has', { callback_url: '', callback_payload: null }, true],
      ['both as they are', { callback_url: '', callback_payload: { n: 1 } }, false],
      ['dlq_on_failure', { dlq_on_failure: true }, false],
      ['nothing', {}, false],
    ] as [string, { callback_url?: string } | string, boolean][])(
      'with %s: only what is sent, or where to, makes another webhook-id',
      async (_, body, is_new) => {
        const tenant = await service.signUp()
        const receiver = await receiverOf(500, 204)
        const { id } = await create(service, tenant, { callback_url: receiver.url })
        await tick(service)
        const path = typeof body === 'string' ? undefined : body.callback_url
        const change = path === undefined ? body : { ...(body as object), callback_url: receiver.url + path }
        expect((await patch(service, tenant, id, change)).status).toBe(200)
        service.clock.advance(30_000)
        await tick(service)
        const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
        expect(ids).toHaveLength(2)
        expect(ids[0] !== ids[1]).toBe(is_new)
      },
    )

    test('of fire_at starts the attempts again, under a new webhook-id', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(500)
      const { id } = await create(service, tenant, { callback_url: receiver.url })
      await tick(service)
      service.clock.advance(30_000)
      await tick(service)
      expect((await read(service, tenant, id)).attempts).toBe(2)
      const fire_at = iso(service.clock.now() + 100_000)
      const changed = await patch(service, tenant, id, { fire_at })
      expect(changed.body).toMatchObject({
        status: 'pending',
        attempts: 0,
        fire_at,
        next_attempt_at: fire_at,
        last_error: null,
        last_status_code: null,
      })
      service.clock.advance(99_999)
      await tick(service)
      expect(receiver.requests).toHaveLength(2)
      service.clock.advance(1)
      const again_at = service.clock.now()
      for (const [advance_ms, next_at] of [
        [0, again_at + 30_000],
        [30_000, again_at + 90_000],
        [60_000, null],
      ] as const) {
        service.clock.advance(advance_ms)
        await tick(service)
        const next_attempt_at = next_at === null ? null : iso(next_at)
        expect((await read(service, tenant, id)).next_attempt_at).toBe(next_attempt_at)
      }
      expect((await read(service, tenant, id)).status).toBe('failed')
      const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
      expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2], ids[2]])
      expect(ids[2]).not.toBe(ids[0])
      expect(receiver.requests.map(({ headers }) => headers['x-waystation-attempt'])).toEqual([
        '1',
        '2',
        '1',
        '2',
        '3',
      ])
    })

    test('of dlq_on_failure counts up to the last failure', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(500, 410)
      const { id } = await create(service, tenant, { callback_url: receiver.url })
      await tick(service)
      await patch(service, tenant, id, { dlq_on_failure: true })
      service.clock.advance(30_000)
      await tick(service)
      expect(await deadLetters(service, tenant)).toMatchObject([{ source: 'schedule', source_id: id }])
    })

    test('of different fields at once loses none of them', async () => {
      const tenant = await service.signUp()
      for (let round = 0; round < 10; round++) {
        const { id } = await create(service, tenant, { callback_url: 'http://127.0.0.1:9/', fire_at: never })
        const changes = [
          { callback_url: 'http://127.0.0.1:9/new' },
          { callback_payload: 'new' },
          { fire_at: '9000-01-01T00:00:00.000Z' },
          { dlq_on_failure: true },
        ]
        await Promise.all(changes.map((change) => patch(service, tenant, id, change)))
        expect(await read(service, tenant, id)).toMatchObject(Object.assign({}, ...changes))
      }
    })
  })

  describe('DELETE', () => {
    test('cancels a pending schedule, which is never sent', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const receiver = await receiverOf(204)
      const before = await create(service, tenant, { callback_url: receiver.url })
      service.clock.advance(5)
      const answer = await cancel(service, other, before.id)
      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(await read(service, tenant, before.id)).toEqual({
        ...before,
        status: 'cancelled',
        next_attempt_at: null,
        updated_at: iso(service.clock.now()),
      })
      await tick(service)
      expect(receiver.requests).toHaveLength(0)
    })

    test('between two attempts keeps what is known of them', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(503)
      const { id } = await create(service, tenant, { callback_url: receiver.url, dlq_on_failure: true })
      await tick(service)
      await cancel(service, tenant, id)
      service.clock.advance(90_000)
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      expect(await read(service, tenant, id)).toMatchObject({
        status: 'cancelled',
        attempts: 1,
        next_attempt_at: null,
        last_error: 'status 503',
        last_status_code: 503,
      })
      expect(await deadLetters(service, tenant)).toEqual([])
    })
  })

  describe('during an attempt', () => {
    test.each([204, 500, 410])(
      'DELETE succeeds, and the answer of %i that then comes is only logged',
      async (status) => {
        const tenant = await service.signUp()
        const { receiver, release } = await heldReceiver()
        const { id } = await create(service, tenant, { callback_url: receiver.url, dlq_on_failure: true })
        const ticking = tick(service)
        await inTime(receiver.received(1))
        expect((await cancel(service, tenant, id)).status).toBe(204)
        const cancelled = await read(service, tenant, id)
        expect(cancelled.status).toBe('cancelled')
        release({ status })
        await ticking
        await tick(service)
        expect(await read(service, tenant, id)).toEqual(cancelled)
        const { items } = await attemptsOf(service, tenant, id)
        expect(items).toMatchObject([{ attempt: 1, status_code: status }])
        expect(await deadLetters(service, tenant)).toEqual([])
        const usage = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
        expect(usage.body.quota.active_schedules.used).toBe(0)
      },
    )

    test.each([204, 500, 410])(
      'PATCH of fire_at succeeds, and the answer of %i that then comes is only logged',
      async (status) => {
        const tenant = await service.signUp()
        const { receiver, release } = await heldReceiver()
        const { id } = await create(service, tenant, { callback_url: receiver.url, dlq_on_failure: true })
        const ticking = tick(service)
        await inTime(receiver.received(1))
        const fire_at = iso(service.clock.now() + 60_000)
        const changed = await patch(service, tenant, id, { fire_at, callback_payload: 'new' })
        expect(changed.body).toMatchObject({ status: 'pending', attempts: 0, next_attempt_at: fire_at })
        release({ status })
        await ticking
        await tick(service)
        expect(await read(service, tenant, id)).toEqual(changed.body)
        expect(await deadLetters(service, tenant)).toEqual([])
        receiver.answer = () => ({ status: 200 })
        service.clock.advance(60_000)
        await tick(service)
        const { items } = await attemptsOf(service, tenant, id)
        expect(items).toMatchObject([
          { attempt: 1, status_code: 200 },
          { attempt: 1, status_code: status },
        ])
        expect(items[0].webhook_id).not.toBe(items[1].webhook_id)
        expect(receiver.requests.map(({ body }) => body)).toEqual(['{"n":1}', '"new"'])
        expect(await read(service, tenant, id)).toMatchObject({ status: 'fired', attempts: 1 })
      },
    )

    test('PATCH of fire_at to now calls again a second later, so that a receiver that does so is not called in a circle', async () => {
      const tenant = await service.signUp()
      const { receiver, release } = await heldReceiver()
      const { id } = await create(service, tenant, { callback_url: receiver.url })
      const ticking = tick(service)
      await inTime(receiver.received(1))
      const changed = await patch(service, tenant, id, { fire_at: iso(service.clock.now()) })
      expect(changed.body.next_attempt_at).toBe(iso(service.clock.now() + 1_000))
      release({ status: 204 })
      await ticking
      receiver.answer = () => ({ status: 204 })
      service.clock.advance(999)
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      service.clock.advance(1)
      await tick(service)
      expect(receiver.requests).toHaveLength(2)
      expect(await read(service, tenant, id)).toMatchObject({ status: 'fired', attempts: 1 })
    })

    test.each([
      ['the first attempt', []],
      ['the second attempt', [0]],
      ['the last attempt', [0, 30_000]],
    ])(
      '%s, PATCH of callback_payload succeeds: that success counts for nothing, the new payload is sent',
      async (_, failed_after_ms) => {
        const tenant = await service.signUp()
        const receiver = await receiverOf(500)
        const { id } = await create(service, tenant, { callback_url: receiver.url, callback_payload: 'old' })
        for (const wait_ms of failed_after_ms) {
          service.clock.advance(wait_ms)
          await tick(service)
        }
        const held = Promise.withResolvers<{ status: number }>()
        receiver.answer = () => held.promise
        service.clock.advance([0, 30_000, 60_000][failed_after_ms.length]!)
        const ticking = tick(service)
        await inTime(receiver.received(failed_after_ms.length + 1))
        expect((await patch(service, tenant, id, { callback_payload: 'new' })).status).toBe(200)
        receiver.answer = () => ({ status: 204 })
        const called = receiver.requests.length
        expect((await read(service, tenant, id)).next_attempt_at).toBe(iso(service.clock.now() + 1_000))
        held.resolve({ status: 204 })
        await ticking
        service.clock.advance(999)
        await tick(service)
        expect(receiver.requests).toHaveLength(called)
        service.clock.advance(1)
        await tick(service)
        expect(receiver.requests.map(({ body }) => body)).toEqual([
          ...failed_after_ms.map(() => '"old"'),
          '"old"',
          '"new"',
        ])
        const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
        expect([new Set(ids.slice(0, -1)).size, new Set(ids).size]).toEqual([1, 2])
        expect((await read(service, tenant, id)).status).toBe('fired')
        expect((await attemptsOf(service, tenant, id)).items).toHaveLength(receiver.requests.length)
      },
    )
  })

  describe('a list', () => {
    test('is newest first, by status, in pages', async () => {
      const tenant = await service.signUp()
      const [good, gone] = [await receiverOf(204), await receiverOf(410)]
      const made: Record<ScheduleStatus, string[]> = { pending: [], fired: [], cancelled: [], failed: [] }
      for (let round = 0; round < 3; round++) {
        const add = async (status: ScheduleStatus, callback_url: string, fire_at: string) => {
          made[status].unshift((await create(service, tenant, { callback_url, fire_at })).id)
        }
        await add('pending', good.url, never)
        await add('fired', good.url, long_ago)
        await add('cancelled', good.url, never)
        await add('failed', gone.url, long_ago)
        await cancel(service, tenant, made.cancelled[0]!)
      }
      await tick(service)
      const all = await service.ask('GET', '/v1/schedules', { key: tenant.admin_key })
      const ids = all.body.items.map(({ id }: { id: string }) => id)
      expect(ids).toEqual(Object.values(made).flat().toSorted().toReversed())
      expect(all.body.items[0]).toEqual(await read(service, tenant, ids[0]))
      for (const status of statuses) {
        const query = `/v1/schedules?status=${status}&limit=2`
        const page = await service.ask('GET', query, { key: tenant.api_key })
        expect(page.body.items.map(({ id }: { id: string }) => id)).toEqual(made[status].slice(0, 2))
        for (const item of page.body.items) expect(item.status).toBe(status)
        const rest = await service.ask('GET', `${query}&cursor=${page.body.next_cursor}`, {
          key: tenant.api_key,
        })
        expect(rest.body.items.map(({ id }: { id: string }) => id)).toEqual(made[status].slice(2))
        expect(rest.body.next_cursor).toBeNull()
      }
    })

    test.each([
      ['status=done', 'query.status'],
      ['limit=0', 'query.limit'],
      ['cursor=AAAA', 'query.cursor'],
    ])('with %s is refused', async (query, path) => {
      const { api_key } = await service.signUp()
      expectInvalid(await service.ask('GET', `/v1/schedules?${query}`, { key: api_key }), path)
    })
  })

  const on_one = [
    ['GET', ''],
    ['GET', '/attempts'],
    ['PATCH', ''],
    ['DELETE', ''],
  ] as const

  test.each(on_one)(
    "%s …%s of another tenant's schedule answers as of none at all",
    async (method, suffix) => {
      const [owner, stranger] = [await service.signUp(), await service.signUp()]
      const schedule = await create(service, owner, { callback_url: 'http://127.0.0.1:9/', fire_at: never })
      for (const id of [schedule.id, 'sch_01k9x3m6v2h8qa4n0r5t7w1z9c', 'x'.repeat(300), '%F0%9F%98%80']) {
        const answer = await service.ask(method, `/v1/schedules/${id}${suffix}`, { key: stranger.api_key })
        expectRefusal(answer, 'SCHEDULE_NOT_FOUND')
      }
      expect(await read(service, owner, schedule.id)).toEqual(schedule)
    },
  )

  test.each([['POST', ''], ...on_one.slice(2).map(([method]) => [method, '/id'])] as [string, string][])(
    '%s /v1/schedules%s is for agents, not for the admin key',
    async (method, path) => {
      const { admin_key } = await service.signUp()
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }
      const full_path = `/v1/schedules${path}`
      expectRefusal(await service.ask(method, full_path, { key: admin_key, body }), 'FORBIDDEN', {
        ...{ key_kind: 'admin', accepted_key_kinds: ['agent'] },
      })
      expectRefusal(await service.ask(method, full_path, { body }), 'UNAUTHORIZED')
    },
  )
})

forEachRacedService('A due schedule that is sent elsewhere', (service) => {
  test('leaves the receiver that it had open to others', async () => {
    const tenant = await service.signUp()
    const [first, second] = [await receiverOf(204), await receiverOf(204)]
    const { id } = await create(service, tenant, { callback_url: first.url })
    await patch(service, tenant, id, { callback_url: second.url })
    await tick(service)
    expect([first.requests.length, second.requests.length]).toEqual([0, 1])
    expect(service.logged.filter(({ level }) => level === 'error')).toEqual([])
    const other = await create(service, tenant, { callback_url: first.url })
    await tick(service)
    expect((await read(service, tenant, other.id)).status).toBe('fired')
  })
})

forEachRacedService('A tenant that is being deleted', (service) => {
  test('may have schedules made at that very moment: they rest as well, and keep no tick busy', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const path = `/v1/tenants/${tenant.tenant_id}`
    // Each looks its name up between the check of its key and its transaction; the deletion falls in there.
    const body = {
      callback_url: `http://localhost:${receiver.port}/`,
      callback_payload: 1,
      fire_at: long_ago,
    }
    const creating = Array.from({ length: 20 }, () => tryCreate(service, tenant, body))
    const deleted = await service.ask('DELETE', path, {
      key: tenant.admin_key,
      body: { confirm: 'DELETE ALL DATA' },
    })
    expect(deleted.status).toBe(202)
    const answers = await Promise.all(creating)
    const made = answers.filter(({ status }) => status === 201).length
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(20 - made)
    expect((await inTime(tick(service))).schedules.due).toBe(0)
    expect(receiver.requests).toHaveLength(0)
    expect((await service.ask('POST', `${path}/restore`, { key: tenant.admin_key })).status).toBe(200)
    expect((await tick(service)).schedules).toEqual({ due: made, fired: made, retrying: 0, failed: 0 })
  }, 300_000)
})

forEachDatabase('A schedule that is repeated with its Idempotency-Key', (databases) => {
  test('answers as it did, although its address may not be called any more', async () => {
    const database_url = await databases.newUrl()
    const settings = { SECRET_KEY: 'the same before and after' }
    const before = await new TestService(settings).start(database_url)
    const tenant = await before.signUp()
    const ask = {
      key: tenant.api_key,
      headers: { 'idempotency-key': 'once' },
      body: { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never },
    }
    const first = await before.ask('POST', '/v1/schedules', ask)
    await before.stop()
    const after = await new TestService({ ...settings, CALLBACK_ALLOW: '10.0.0.0/8' }).start(database_url)
    try {
      expectInvalid(await after.ask('POST', '/v1/schedules', { ...ask, headers: {} }), '/callback_url')
      const second = await after.ask('POST', '/v1/schedules', ask)
      expect([second.status, second.text]).toEqual([201, first.text])
      expect(second.headers.get('idempotent-replayed')).toBe('true')
    } finally {
      await after.stop()
    }
  })
})

forEachRacedService('Attempts', (service) => {
  test('come at 0, +30 s and +90 s from the first, then the schedule has failed and is a dead letter', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 503, 302)
    const payload = '{"n": 1e400, "n":2}'
    const created = await tryCreate(
      service,
      tenant,
      `{"callback_url":"${receiver.url}/x","callback_payload":${payload},"fire_at":"${long_ago}","dlq_on_failure":true}`,
    )
    const schedule = created.body
    service.clock.advance(7_777) // the first attempt is late: the others are counted from it
    const first_at = service.clock.now()
    const began: string[] = []
    for (const [attempt, wait_ms, status, next_at] of [
      [1, 0, 500, first_at + 30_000],
      [2, 30_000, 503, first_at + 90_000],
      [3, 60_000, 302, null],
    ] as const) {
      if (wait_ms > 0) {
        service.clock.advance(wait_ms - 1)
        expect((await tick(service)).schedules).toEqual({ due: 0, fired: 0, retrying: 0, failed: 0 })
        expect(receiver.requests).toHaveLength(attempt - 1)
        service.clock.advance(1)
      }
      began.push(iso(service.clock.now()))
      const last = next_at === null
      expect((await tick(service)).schedules).toEqual({
        due: 1,
        fired: 0,
        retrying: last ? 0 : 1,
        failed: last ? 1 : 0,
      })
      expect(receiver.requests).toHaveLength(attempt)
      expect(await read(service, tenant, schedule.id)).toEqual({
        ...schedule,
        callback_payload: JSON.parse(payload),
        status: last ? 'failed' : 'pending',
        attempts: attempt,
        next_attempt_at: last ? null : iso(next_at),
        last_error: `status ${status}`,
        last_status_code: status,
        dead_letter_id: last ? expect.stringMatching(/^dlq_/) : null,
        updated_at: iso(service.clock.now()),
      })
      const { headers } = receiver.requests[attempt - 1]!
      expect(headers['x-waystation-attempt']).toBe(String(attempt))
      expect(headers['webhook-timestamp']).toBe(String(Math.floor(service.clock.now() / 1_000)))
      verified(service, receiver.requests[attempt - 1]!, tenant.signing_secret)
    }

    const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
    expect(ids).toEqual([ids[0], ids[0], ids[0]])
    const attempts = [500, 503, 302].map((status_code, i) => ({
      attempt: i + 1,
      webhook_id: ids[0],
      started_at: began[i],
      duration_ms: 0,
      status_code,
      error: 'status',
    }))
    expect(await attemptsOf(service, tenant, schedule.id)).toEqual({
      items: attempts.toReversed(),
      next_cursor: null,
    })

    const [{ id }] = await deadLetters(service, tenant)
    expect((await read(service, tenant, schedule.id)).dead_letter_id).toBe(id)
    const letter = await service.ask('GET', `/v1/dlq/${id}`, { key: tenant.api_key })
    const now = iso(service.clock.now())
    const { payload: kept, ...fields } = letter.body
    expect(fields).toEqual({
      id: expect.stringMatching(/^dlq_/),
      status: 'failed',
      error: `the callback of schedule ${schedule.id} failed: status 302`,
      cause: 'the callback of schedule sch_… failed: status 302',
      workflow_id: null,
      source: 'schedule',
      source_id: schedule.id,
      agent_id: 'agent-one',
      lock_seconds: 300,
      locked_by: null,
      locked_until: null,
      claims: 0,
      created_at: now,
      updated_at: now,
      resolved_at: null,
      redriven_as: null,
    })
    expect(letter.text).toContain(`"callback_payload":${payload}`)
    expect(kept).toEqual({
      schedule_id: schedule.id,
      callback_url: `${receiver.url}/x`,
      callback_payload: JSON.parse(payload),
      attempts,
    })

    service.clock.advance(day_ms)
    expect((await tick(service)).schedules.due).toBe(0)
    expect(receiver.requests).toHaveLength(3)
  })

  test('count and name one whose node did not live to end it, in the list and in the dead letter', async () => {
    const tenant = await service.signUp()
    const callback_url = (await receiverOf(500)).url
    const { id } = await create(service, tenant, { callback_url, dlq_on_failure: true })
    const began = service.clock.now()
    const { tenant_id } = tenant
    await service.app.db.write((tx) => lease(tx, tenant_id, schedule_job, [id], tx.now + lease_ms))
    for (const wait_ms of [lease_ms, 60_000]) {
      service.clock.advance(wait_ms)
      await tick(service)
    }
    expect(await read(service, tenant, id)).toMatchObject({ status: 'failed', attempts: 3 })
    const { items } = await attemptsOf(service, tenant, id)
    const webhook_id = items[0].webhook_id
    const lost = { started_at: iso(began), duration_ms: 0, status_code: null, error: 'interrupted' }
    expect(items).toMatchObject([{ attempt: 3 }, { attempt: 2 }, { attempt: 1, webhook_id, ...lost }])
    const [letter] = await deadLetters(service, tenant)
    const { body } = await service.ask('GET', `/v1/dlq/${letter.id}`, { key: tenant.api_key })
    expect(body.payload.attempts).toEqual(items.toReversed())
  })

  test('leave no dead letter when none was asked for', async () => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant, { callback_url: (await receiverOf(500)).url })
    for (const wait_ms of [0, 30_000, 60_000]) {
      service.clock.advance(wait_ms)
      await tick(service)
    }
    expect(await read(service, tenant, id)).toMatchObject({ status: 'failed', attempts: 3 })
    expect(await deadLetters(service, tenant)).toEqual([])
  })

  test('that come late do not put off the ones after', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500)
    const { id } = await create(service, tenant, { callback_url: receiver.url })
    await tick(service)
    const first_at = service.clock.now()
    service.clock.advance(80_000)
    await tick(service)
    expect(await read(service, tenant, id)).toMatchObject({
      attempts: 2,
      next_attempt_at: iso(first_at + 90_000),
    })
    service.clock.advance(10_000)
    await tick(service)
    expect(await read(service, tenant, id)).toMatchObject({ status: 'failed', attempts: 3 })
  })

  test('are listed newest first, in pages', async () => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant, { callback_url: (await receiverOf(500)).url })
    for (const wait_ms of [0, 30_000, 60_000]) {
      service.clock.advance(wait_ms)
      await tick(service)
    }
    const seen: number[] = []
    for (let cursor = ''; ; ) {
      const page = await attemptsOf(service, tenant, id, `?limit=1${cursor}`)
      seen.push(...page.items.map(({ attempt }: { attempt: number }) => attempt))
      if (page.next_cursor === null) break
      cursor = `&cursor=${page.next_cursor}`
    }
    expect(seen).toEqual([3, 2, 1])
  })

  test('sign with both secrets while one rotates, for 24 hours', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const rotated = await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/rotate-signing-secret`, {
      key: tenant.admin_key,
    })
    const fresh = rotated.body.signing_secret
    const send = async () => {
      await create(service, tenant, { callback_url: receiver.url, callback_payload: 'x' })
      await tick(service)
      return receiver.requests.at(-1)!
    }
    const rotated_at = service.clock.now()
    for (const after_ms of [1, day_ms - 1]) {
      service.clock.advance(rotated_at + after_ms - service.clock.now() - 1)
      const request = await send()
      expect(service.clock.now()).toBe(rotated_at + after_ms)
      expect(request.headers['webhook-signature']!.split(' ')).toHaveLength(2)
      for (const secret of [fresh, tenant.signing_secret]) {
        expect(verified(service, request, secret)).toBe('x')
      }
    }
    const late = await send()
    expect(service.clock.now()).toBe(rotated_at + day_ms)
    expect(late.headers['webhook-signature']!.split(' ')).toHaveLength(1)
    expect(verified(service, late, fresh)).toBe('x')
    expect(() => verified(service, late, tenant.signing_secret)).toThrow('No matching signature')
  })

  test('rest while the tenant waits for deletion; after restore the next tick makes up for them', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 204)
    const retried = await create(service, tenant, { callback_url: receiver.url })
    await tick(service)
    const fire_at = iso(service.clock.now() + 1_000)
    const due = await create(service, tenant, { callback_url: receiver.url, fire_at })
    const path = `/v1/tenants/${tenant.tenant_id}`
    const body = { confirm: 'DELETE ALL DATA' }
    expect((await service.ask('DELETE', path, { key: tenant.admin_key, body })).status).toBe(202)
    service.clock.advance(30_000)
    expect((await tick(service)).schedules.due).toBe(0)
    service.clock.advance(day_ms)
    expect((await tick(service)).schedules.due).toBe(0)
    expect(receiver.requests).toHaveLength(1)
    expectRefusal(
      await service.ask('GET', `/v1/schedules/${due.id}`, { key: tenant.api_key }),
      'TENANT_PENDING_DELETION',
    )
    expect((await service.ask('POST', `${path}/restore`, { key: tenant.admin_key })).status).toBe(200)
    expect((await tick(service)).schedules).toEqual({ due: 2, fired: 2, retrying: 0, failed: 0 })
    expect(receiver.requests).toHaveLength(3)
    expect(await read(service, tenant, retried.id)).toMatchObject({ status: 'fired', attempts: 2 })
    expect(await read(service, tenant, due.id)).toMatchObject({ status: 'fired', attempts: 1, fire_at })
  })
})

forEachRacedService('The moves of a schedule', (service) => {
  type Verb = keyof typeof moves
  const walked = statuses.flatMap((status) =>
    (Object.keys(moves) as Verb[]).map((verb) => [verb, status] as const),
  )

  test('are the state diagram of docs/schedules.md', () => {
    const page = readFileSync(new URL('../../docs/schedules.md', import.meta.url), 'utf8')
    const drawn = [...page.matchAll(/^ +(\w+) --> (\w+): (\w+)$/gm)].map(([, from, to, verb]) => [
      from,
      verb,
      to,
    ])
    const moved = Object.entries(moves).flatMap(([verb, { from, to }]) =>
      from.map((status) => [status, verb, to]),
    )
    expect(drawn.toSorted()).toEqual(moved.toSorted())
  })

  async function scheduleIn(tenant: TestTenant, status: ScheduleStatus, receiver: Receiver) {
    const schedule = await create(service, tenant, { callback_url: receiver.url })
    if (status === 'cancelled') await cancel(service, tenant, schedule.id)
    if (status === 'fired' || status === 'failed') {
      receiver.answer = () => ({ status: status === 'fired' ? 204 : 410 })
      await tick(service)
    }
    const found = await read(service, tenant, schedule.id)
    expect(found.status).toBe(status)
    return found
  }

  /** Performs each verb. A tick answers nobody, so it has no refusal either. */
  const acts: Record<Verb, (tenant: TestTenant, id: string, receiver: Receiver) => Promise<Answer | null>> = {
    update: (tenant, id) => patch(service, tenant, id, { callback_payload: 'changed' }),
    cancel: (tenant, id) => cancel(service, tenant, id),
    async fire(_, __, receiver) {
      receiver.answer = () => ({ status: 204 })
      await tick(service)
      return null
    },
    async give_up(_, __, receiver) {
      receiver.answer = () => ({ status: 410 })
      await tick(service)
      return null
    },
  }

  test.each(walked)('%s of a %s schedule is allowed or refused as the table says', async (verb, status) => {
    const tenant = await service.signUp()
    const receiver = await receiverOf()
    const before = await scheduleIn(tenant, status, receiver)
    const requests = receiver.requests.length
    service.clock.advance(5)
    const answer = await acts[verb](tenant, before.id, receiver)
    const after = await read(service, tenant, before.id)
    if ((moves[verb].from as readonly ScheduleStatus[]).includes(status)) {
      expect(after.status).toBe(moves[verb].to)
      expect(answer?.status ?? 0).toBe({ update: 200, cancel: 204, fire: 0, give_up: 0 }[verb])
    } else {
      if (answer) expectRefusal(answer, 'INVALID_STATE', { status })
      else expect(receiver.requests).toHaveLength(requests)
      expect(after).toEqual(before)
    }
    await cancel(service, tenant, before.id)
  })
})

const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
const plans_file = join(folder, 'plans.json')
const free = { ...default_plans.free, active_schedules: 2 }
writeFileSync(plans_file, JSON.stringify({ ...default_plans, free }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

forEachRacedService(
  'The quota active_schedules',
  (service) => {
    const limit = 2
    const used = async ({ tenant_id, admin_key }: TestTenant) => {
      const tenant = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
      return tenant.body.quota.active_schedules
    }
    const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1, fire_at: never }

    test('counts pending ones, and refuses the next one with its details', async () => {
      const tenant = await service.signUp()
      for (let i = 0; i < limit; i++) await create(service, tenant, body)
      const refused = await tryCreate(service, tenant, body)
      expectRefusal(refused, 'QUOTA_EXCEEDED', { quota: 'active_schedules', used: limit, limit })
      expect(await used(tenant)).toEqual({ used: limit, limit })
      const list = await service.ask('GET', '/v1/schedules', { key: tenant.api_key })
      expect(list.body.items).toHaveLength(limit)
    })

    test('is exact when many ask at once', async () => {
      const tenant = await service.signUp()
      const answers = await Promise.all(Array.from({ length: 10 }, () => tryCreate(service, tenant, body)))
      const made = answers.filter(({ status }) => status === 201)
      expect(made).toHaveLength(limit)
      expect(answers.filter(({ status }) => status === 402)).toHaveLength(10 - limit)
      const cancelled = await Promise.all(
        made.flatMap((answer) => [1, 2, 3].map(() => cancel(service, tenant, answer.body.id))),
      )
      expect(cancelled.filter(({ status }) => status === 204)).toHaveLength(limit)
      expect(await used(tenant)).toEqual({ used: 0, limit })
    })

    const freeing: [string, number, number][] = [
      ['fired', 204, 0],
      ['retried', 500, 1],
      ['failed', 410, 0],
    ]

    test.each(freeing)('a schedule that is %s: an answer of %i leaves %i', async (_, status, left) => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { callback_url: (await receiverOf(status)).url })
      await tick(service)
      expect(await used(tenant)).toEqual({ used: left, limit })
      await cancel(service, tenant, id)
      expect(await used(tenant)).toEqual({ used: 0, limit })
      for (let i = 0; i < limit; i++) await create(service, tenant, body)
      expect(await used(tenant)).toEqual({ used: limit, limit })
    })
  },
  { PLANS_FILE: plans_file },
)
