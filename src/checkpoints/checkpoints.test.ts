import { afterAll, describe, expect, setSystemTime, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { forEachDatabase, onPostgres } from '../../test/support/databases.ts'
import { inTime } from '../../test/support/patience.ts'
import { freePort } from '../../test/support/ports.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { type Received, type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { type Answer, forEachRacedService, TestService, type TestTenant } from '../../test/support/service.ts'
import { plain_steering } from '../../test/support/steering.ts'
import { day_ms, iso } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { version } from '../version.ts'
import { type CheckpointStatus, moves, statuses } from './checkpoint.ts'

const kib = 1_024

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

/** The envelope, and nothing else. */
function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  const error = { code, message: errors[code].message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(errors[code].status)
  expect(answer.headers.get('content-type')).toBe('application/json')
}

/** 403 for a key of this kind, where those kinds are accepted. */
function expectWrongKind(answer: Answer, key_kind: string, ...accepted_key_kinds: string[]): void {
  expectRefusal(answer, 'FORBIDDEN', { key_kind, accepted_key_kinds })
}

/** 400 with one issue at this path. */
function expectInvalid(answer: Answer, path: string): void {
  expectRefusal(answer, 'VALIDATION_FAILED', { issues: [{ path, message: expect.any(String) }] })
}

const callback_url = 'http://127.0.0.1:9/'

/** Of a callback that was never sent again. */
const never_redriven = { redrive_of: null, dead_letter_id: null }
const letter_id = expect.stringMatching(/^dlq_[0-9a-z]{26}$/)
const left = { redrive_of: null, dead_letter_id: letter_id }

function tryCreate(service: TestService, { api_key }: { api_key: string }, body: object | string) {
  return service.ask('POST', '/v1/checkpoints', { key: api_key, body })
}

async function create(service: TestService, tenant: TestTenant, body: object = {}) {
  service.clock.advance(1) // ids made in one millisecond are in no order
  const answer = await tryCreate(service, tenant, { title: 'Ship it?', callback_url, ...body })
  expect(answer.status).toBe(201)
  return answer.body
}

async function read(service: TestService, { api_key }: { api_key: string }, id: string) {
  const answer = await service.ask('GET', `/v1/checkpoints/${id}`, { key: api_key })
  expect(answer.status).toBe(200)
  return answer.body
}

type Decision = 'approve' | 'reject'

function decide(service: TestService, key: string, id: string, verb: Decision, body?: object | string) {
  return service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key, ...(body !== undefined && { body }) })
}

function cancel(service: TestService, { api_key }: { api_key: string }, id: string) {
  return service.ask('DELETE', `/v1/checkpoints/${id}`, { key: api_key })
}

async function approvalKey(service: TestService, { admin_key }: TestTenant, body: object = {}) {
  const answer = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body })
  expect(answer.status).toBe(201)
  return answer.body as { approval_key: string; approval_key_id: string; checkpoint_id: string | null }
}

async function attemptsOf(service: TestService, { api_key }: { api_key: string }, id: string, query = '') {
  const answer = await service.ask('GET', `/v1/checkpoints/${id}/attempts${query}`, { key: api_key })
  expect(answer.status).toBe(200)
  return answer.body
}

/** With payloads, oldest first. */
async function deadLetters(service: TestService, { api_key }: { api_key: string }) {
  const list = await service.ask('GET', '/v1/dlq', { key: api_key })
  const letters = []
  for (const { id } of list.body.items.toReversed()) {
    letters.push((await service.ask('GET', `/v1/dlq/${id}`, { key: api_key })).body)
  }
  return letters
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

forEachRacedService('Checkpoints', (service) => {
  describe('a new checkpoint', () => {
    test('is pending, with every field', async () => {
      const tenant = await service.signUp()
      const answer = await tryCreate(service, tenant, {
        title: 'Refund order 7?',
        prompt: 'The customer asks for 30 EUR.\nSee the ticket.',
        callback_url: 'http://127.0.0.1:9/decided',
        callback_payload: { order: 7 },
        timeout_action: 'dlq',
        timeout_seconds: 3_600,
      })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('content-type')).toBe('application/json')
      const created_at = iso(service.clock.now())
      expect(answer.body).toEqual({
        id: expect.stringMatching(/^chk_[0-9a-z]{26}$/),
        status: 'pending',
        title: 'Refund order 7?',
        prompt: 'The customer asks for 30 EUR.\nSee the ticket.',
        approval_url: `${service.url}/approve/${answer.body.id}`,
        callback_url: 'http://127.0.0.1:9/decided',
        callback_payload: { order: 7 },
        timeout_action: 'dlq',
        expires_at: iso(service.clock.now() + 3_600_000),
        agent_id: 'agent-one',
        workflow_id: null,
        reason: null,
        resolved_by: null,
        resolved_at: null,
        callback: { status: 'none', attempts: 0, last_error: null, ...never_redriven },
        created_at,
        updated_at: created_at,
        ...plain_steering,
        payload: null,
        payload_hash: null,
      })
      for (const key of [tenant.api_key, tenant.admin_key]) {
        const found = await service.ask('GET', `/v1/checkpoints/${answer.body.id}`, { key })
        expect([found.status, found.text]).toEqual([200, answer.text])
        const list = await service.ask('GET', '/v1/checkpoints', { key })
        expect(list.body).toEqual({ items: [answer.body], next_cursor: null })
      }
      expect(await attemptsOf(service, tenant, answer.body.id)).toEqual({ items: [], next_cursor: null })
    })

    test('has no prompt and no payload, is rejected when its time is over, and has 24 hours', async () => {
      const tenant = await service.signUp()
      const absent = {
        prompt: null,
        callback_payload: null,
        timeout_action: null,
        timeout_seconds: null,
        expires_at: null,
      }
      for (const body of [{}, absent]) {
        expect(await create(service, tenant, body)).toMatchObject({
          prompt: null,
          callback_payload: null,
          timeout_action: 'auto_reject',
          expires_at: iso(service.clock.now() + day_ms),
        })
      }
    })

    test('is made once for one Idempotency-Key', async () => {
      const { api_key } = await service.signUp()
      const ask = { key: api_key, headers: { 'idempotency-key': 'once' }, body: { title: 't', callback_url } }
      const first = await service.ask('POST', '/v1/checkpoints', ask)
      const second = await service.ask('POST', '/v1/checkpoints', ask)
      expect(second.headers.get('idempotent-replayed')).toBe('true')
      expect([second.status, second.text]).toEqual([201, first.text])
      const list = await service.ask('GET', '/v1/checkpoints', { key: api_key })
      expect(list.body.items).toEqual([first.body])
    })

    test.each([
      ['no title', { title: undefined }, '/title'],
      ['an empty title', { title: '' }, '/title'],
      ['a title with NUL', { title: 'a\0b' }, '/title'],
      ['no callback_url', { callback_url: undefined }, '/callback_url'],
      ['an empty callback_url', { callback_url: '' }, '/callback_url'],
      ['a private callback_url', { callback_url: 'http://10.0.0.1/' }, '/callback_url'],
      ['a callback_url that is a path without a base', { callback_url: '/decided' }, '/callback_url'],
      ['a timeout_action that is none', { timeout_action: 'approve' }, '/timeout_action'],
      ['a prompt that is not a text', { prompt: { text: 'x' } }, '/prompt'],
    ])('with %s is refused', async (_, change, path) => {
      const tenant = await service.signUp()
      expectInvalid(await tryCreate(service, tenant, { title: 't', callback_url, ...change }), path)
      const list = await service.ask('GET', '/v1/checkpoints', { key: tenant.api_key })
      expect(list.body.items).toEqual([])
    })

    test('may be called back at a path of the agent, or at a name that does not resolve now', async () => {
      const tenant = await service.signUp()
      const agent = await service.ask('POST', '/v1/agents', {
        key: tenant.admin_key,
        body: { name: 'based', callback_base_url: 'http://127.0.0.1:9/base' },
      })
      const based = { ...tenant, api_key: agent.body.api_key }
      expect(await create(service, based, { callback_url: '/decided' })).toMatchObject({
        callback_url: 'http://127.0.0.1:9/decided',
        agent_id: 'based',
      })
      const unknown = { callback_url: 'http://receiver.invalid/' }
      expect(await create(service, tenant, unknown)).toMatchObject(unknown)
    })
  })

  describe('limits', () => {
    test.each(['x', 'ü', '😀'])('a title of %s has at most 256 characters', async (character) => {
      const tenant = await service.signUp()
      const title = character.repeat(256)
      expect((await create(service, tenant, { title })).title).toBe(title)
      expectInvalid(await tryCreate(service, tenant, { title: `${title}x`, callback_url }), '/title')
    })

    test.each([
      ['x', 32 * kib],
      ['ü', 16 * kib],
    ])('a prompt of %s has at most 32 KiB', async (character, count_max) => {
      const tenant = await service.signUp()
      const prompt = character.repeat(count_max)
      expect((await create(service, tenant, { prompt })).prompt).toBe(prompt)
      const larger = { title: 't', callback_url, prompt: `${prompt}x` }
      expectRefusal(await tryCreate(service, tenant, larger), 'PAYLOAD_TOO_LARGE')
    })

    test('a callback_payload has at most 256 KiB', async () => {
      const tenant = await service.signUp()
      const callback_payload = 'x'.repeat(256 * kib - 2) // and two quotes
      expect((await create(service, tenant, { callback_payload })).callback_payload).toBe(callback_payload)
      const larger = { title: 't', callback_url, callback_payload: `${callback_payload}x` }
      expectRefusal(await tryCreate(service, tenant, larger), 'PAYLOAD_TOO_LARGE')
    })

    test('a callback_url has at most 2,048 characters', async () => {
      const tenant = await service.signUp()
      const longest = callback_url + 'a'.repeat(2_048 - callback_url.length)
      expect((await create(service, tenant, { callback_url: longest })).callback_url).toBe(longest)
      const longer = { title: 't', callback_url: `${longest}a` }
      expectInvalid(await tryCreate(service, tenant, longer), '/callback_url')
    })

    test.each(['approve', 'reject'] as const)('a reason to %s has at most 4,096 characters', async (verb) => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { callback_url: (await receiverOf(204)).url })
      const reason = 'ü'.repeat(4_096)
      const longer = { reason: `${reason}x` }
      expectInvalid(await decide(service, tenant.admin_key, id, verb, longer), '/reason')
      expect((await read(service, tenant, id)).status).toBe('pending')
      expect((await decide(service, tenant.admin_key, id, verb, { reason })).body.reason).toBe(reason)
      await tick(service)
    })

    test.each([60, 315_360_000])('timeout_seconds may be %i', async (timeout_seconds) => {
      const tenant = await service.signUp()
      const expires_at = iso(service.clock.now() + 1 + timeout_seconds * 1_000)
      const checkpoint = await create(service, tenant, { timeout_seconds })
      expect(checkpoint.expires_at).toBe(expires_at)
      await cancel(service, tenant, checkpoint.id)
    })

    test.each([59, 0, -1, 60.5, 315_360_001, '60', true])(
      'timeout_seconds may not be %p',
      async (timeout_seconds) => {
        const tenant = await service.signUp()
        const body = { title: 't', callback_url, timeout_seconds }
        expectInvalid(await tryCreate(service, tenant, body), '/timeout_seconds')
      },
    )
  })

  describe('expires_at', () => {
    test.each([
      ['2030-01-01T00:00:00Z', '2030-01-01T00:00:00.000Z'],
      ['2030-01-01T00:00:00.1239+02:00', '2029-12-31T22:00:00.123Z'],
      ['2030-01-01t00:00:00z', '2030-01-01T00:00:00.000Z'],
      ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
      ['1969-12-31T23:59:59Z', '1969-12-31T23:59:59.000Z'],
      ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
    ])('%s is %s', async (expires_at, expected) => {
      const tenant = await service.signUp()
      const checkpoint = await create(service, tenant, { expires_at })
      expect(checkpoint).toMatchObject({ status: 'pending', expires_at: expected })
      expect(await read(service, tenant, checkpoint.id)).toEqual(checkpoint)
      await cancel(service, tenant, checkpoint.id)
    })

    test.each([
      '',
      'soon',
      '2030-01-01',
      '2030-01-01T00:00:00',
      '2030-02-30T00:00:00Z',
      '10000-01-01T00:00:00Z',
      7,
    ])('%p is refused', async (expires_at) => {
      const tenant = await service.signUp()
      expectInvalid(await tryCreate(service, tenant, { title: 't', callback_url, expires_at }), '/expires_at')
    })

    test.each([
      [3_600, 3_599_999, 3_599_999],
      [3_600, 3_600_000, 3_600_000],
      [3_600, 3_600_001, 3_600_000],
      [3_600, -1, -1],
    ])(
      'with timeout_seconds %i, and itself %i ms from now: the earlier counts',
      async (seconds, in_ms, expected) => {
        const tenant = await service.signUp()
        const now = service.clock.now() + 1
        const body = { timeout_seconds: seconds, expires_at: iso(now + in_ms) }
        const checkpoint = await create(service, tenant, body)
        expect(checkpoint.expires_at).toBe(iso(now + expected))
        await cancel(service, tenant, checkpoint.id)
      },
    )
  })

  describe.each([
    ['approve', 'approved'],
    ['reject', 'rejected'],
  ] as const)('%s', (verb, status) => {
    test.each([
      ['no body', undefined, null],
      ['an empty body', '', null],
      ['an empty object', {}, null],
      ['a reason', { reason: 'because' }, 'because'],
      ['an empty reason', { reason: '' }, ''],
      ['null as reason', { reason: null }, null],
    ])('takes %s', async (_, body, reason) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const before = await create(service, tenant, { callback_url: receiver.url })
      service.clock.advance(5)
      const answer = await decide(service, tenant.admin_key, before.id, verb, body)
      expect(answer.status).toBe(200)
      const now = iso(service.clock.now())
      const counts = verb === 'approve' ? { approvals: 1 } : { rejections: 1 }
      const settled = { status, reason, resolved_by: 'admin', resolved_at: now, updated_at: now, ...counts }
      const decided = { ...before, ...settled }
      expect(answer.body).toEqual({
        ...decided,
        callback: { status: 'pending', attempts: 0, last_error: null, ...never_redriven },
      })
      await tick(service)
      expect(await read(service, tenant, before.id)).toEqual({
        ...decided,
        callback: { status: 'delivered', attempts: 1, last_error: null, ...never_redriven },
      })
    })

    test('calls the agent back at once, without a tick, signed', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(200)
      const created = await tryCreate(
        service,
        tenant,
        `{"title":"t","callback_url":"${receiver.url}/decided?id=7","callback_payload" : { "n":1e400, "n":2 } }`,
      )
      const { id } = created.body
      service.clock.advance(1_500)
      const resolved_at = iso(service.clock.now())
      await decide(service, tenant.admin_key, id, verb, { reason: 'Grüße "you"' })
      await inTime(receiver.received(1))
      const request = receiver.requests[0]!
      expect([request.method, request.target]).toEqual(['POST', '/decided?id=7'])
      expect(request.body).toBe(
        `{"type":"checkpoint.${status}","timestamp":"${resolved_at}","data":{"checkpoint_id":"${id}",` +
          `"status":"${status}","reason":"Grüße \\"you\\"","resolved_by":"admin","resolved_at":"${resolved_at}",` +
          '"callback_payload":{ "n":1e400, "n":2 }}}',
      )
      const { connection: _, ...headers } = request.headers
      expect(headers).toEqual({
        host: `127.0.0.1:${receiver.port}`,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(request.body)),
        'user-agent': `Waystation/${version}`,
        'x-waystation-event': `checkpoint.${status}`,
        'x-waystation-attempt': '1',
        'webhook-id': expect.stringMatching(/^evt_[0-9a-z]{26}$/),
        'webhook-timestamp': String(Math.floor(service.clock.now() / 1_000)),
        'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      })
      expect(verified(service, request, tenant.signing_secret)).toMatchObject({ data: { checkpoint_id: id } })
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      expect((await attemptsOf(service, tenant, id)).items).toEqual([
        {
          attempt: 1,
          webhook_id: request.headers['webhook-id'],
          started_at: resolved_at,
          duration_ms: 0,
          status_code: 200,
          error: null,
        },
      ])
    })

    test('tells a payload that is null or absent as null', async () => {
      const tenant = await service.signUp()
      for (const body of [{}, { callback_payload: null }]) {
        const receiver = await receiverOf(204)
        const { id } = await create(service, tenant, { callback_url: receiver.url, ...body })
        await decide(service, tenant.admin_key, id, verb)
        await inTime(receiver.received(1))
        expect(JSON.parse(receiver.requests[0]!.body).data).toMatchObject({
          reason: null,
          callback_payload: null,
        })
        await tick(service)
      }
    })

    test('is for the admin key and for approval keys, tenant-wide or bound to the checkpoint', async () => {
      const tenant = await service.signUp()
      const { url } = await receiverOf(204)
      const wide = await approvalKey(service, tenant, { label: 'phone' })
      for (const which of ['admin', 'wide', 'bound'] as const) {
        const { id } = await create(service, tenant, { callback_url: url })
        const bound = await approvalKey(service, tenant, { checkpoint_id: id })
        const [key, resolved_by] = {
          admin: [tenant.admin_key, 'admin'],
          wide: [wide.approval_key, `approval_key:${wide.approval_key_id}`],
          bound: [bound.approval_key, `approval_key:${bound.approval_key_id}`],
        }[which] as [string, string]
        const answer = await decide(service, key, id, verb)
        expect(answer.status).toBe(200)
        expect(answer.body).toMatchObject({ status, resolved_by })
      }
      await tick(service)
    })

    test('takes an approval key in its own header', async () => {
      const tenant = await service.signUp()
      const { approval_key } = await approvalKey(service, tenant)
      const { id } = await create(service, tenant, { callback_url: (await receiverOf(204)).url })
      const answer = await service.ask('POST', `/v1/checkpoints/${id}/${verb}`, {
        headers: { 'x-approval-key': approval_key },
      })
      expect([answer.status, answer.body.status]).toEqual([200, status])
      await tick(service)
    })

    test('is refused to agents, to keys of another checkpoint and to revoked keys', async () => {
      const tenant = await service.signUp()
      const [checkpoint, other] = [await create(service, tenant), await create(service, tenant)]
      const { approval_key } = await approvalKey(service, tenant, { checkpoint_id: other.id })
      const revoked = await approvalKey(service, tenant)
      await service.ask('DELETE', `/v1/approval-keys/${revoked.approval_key_id}`, { key: tenant.admin_key })
      const kinds = { key_kind: 'agent', accepted_key_kinds: ['admin', 'approval'] }
      for (const [key, code, details] of [
        [tenant.api_key, 'FORBIDDEN', kinds],
        [approval_key, 'FORBIDDEN', undefined],
        [revoked.approval_key, 'UNAUTHORIZED', undefined],
        [undefined, 'UNAUTHORIZED', undefined],
      ] as const) {
        const answer = await service.ask(
          'POST',
          `/v1/checkpoints/${checkpoint.id}/${verb}`,
          key ? { key } : {},
        )
        expectRefusal(answer, code, details)
      }
      expect(await read(service, tenant, checkpoint.id)).toEqual(checkpoint)
    })

    test('of a checkpoint that is absent or foreign is 404, whatever key asks', async () => {
      const [tenant, stranger] = [await service.signUp(), await service.signUp()]
      const [own, foreign] = [await create(service, tenant), await create(service, stranger)]
      const keys = [
        tenant.admin_key,
        (await approvalKey(service, tenant)).approval_key,
        (await approvalKey(service, tenant, { checkpoint_id: own.id })).approval_key,
      ]
      for (const key of keys) {
        for (const id of [foreign.id, 'chk_01k9x3m6v2h8qa4n0r5t7w1z9c', 'x'.repeat(300)]) {
          expectRefusal(await decide(service, key, id, verb), 'CHECKPOINT_NOT_FOUND')
        }
      }
      expect(await read(service, stranger, foreign.id)).toEqual(foreign)
    })

    test('has one winner of many, and one callback', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const { id } = await create(service, tenant, { callback_url: receiver.url })
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => decide(service, tenant.admin_key, id, verb)),
      )
      expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1)
      expect(answers.filter(({ body }) => body.error?.code === 'CHECKPOINT_ALREADY_RESOLVED')).toHaveLength(
        19,
      )
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
    })
  })

  describe('cancel', () => {
    test('is for the agent that created it, and calls nobody back', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const receiver = await receiverOf(204)
      const body = { callback_url: receiver.url, timeout_action: 'dlq', timeout_seconds: 60 }
      const before = await create(service, tenant, body)
      service.clock.advance(5)
      expectRefusal(await cancel(service, other, before.id), 'FORBIDDEN')
      expectWrongKind(await cancel(service, { api_key: tenant.admin_key }, before.id), 'admin', 'agent')
      const { approval_key } = await approvalKey(service, tenant, { checkpoint_id: before.id })
      expectWrongKind(await cancel(service, { api_key: approval_key }, before.id), 'approval', 'agent')
      expect(await read(service, tenant, before.id)).toEqual(before)
      const answer = await cancel(service, tenant, before.id)
      expect([answer.status, answer.text]).toEqual([204, ''])
      const now = iso(service.clock.now())
      expect(await read(service, tenant, before.id)).toEqual({
        ...before,
        status: 'cancelled',
        resolved_by: 'agent:agent-one',
        resolved_at: now,
        updated_at: now,
      })
      service.clock.advance(60_000)
      expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 0 })
      expect(receiver.requests).toHaveLength(0)
      expect(await deadLetters(service, tenant)).toEqual([])
    })

    test('of one that is settled is told apart from one of another agent', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const { id } = await create(service, tenant)
      await cancel(service, tenant, id)
      expectRefusal(await cancel(service, tenant, id), 'CHECKPOINT_ALREADY_RESOLVED', { status: 'cancelled' })
      expectRefusal(await cancel(service, other, id), 'FORBIDDEN')
    })
  })

  describe('a list', () => {
    test('is newest first, by status, in pages', async () => {
      const tenant = await service.signUp()
      const { url } = await receiverOf(204)
      const made: Record<CheckpointStatus, string[]> = {
        pending: [],
        approved: [],
        rejected: [],
        expired: [],
        cancelled: [],
      }
      for (let round = 0; round < 3; round++) {
        for (const status of statuses) {
          const body = { callback_url: url, timeout_action: status === 'expired' ? 'dlq' : 'auto_reject' }
          const expiring = { ...body, expires_at: iso(service.clock.now()) }
          const { id } = await create(service, tenant, status === 'expired' ? expiring : body)
          made[status].unshift(id)
          if (status === 'approved') await decide(service, tenant.admin_key, id, 'approve')
          if (status === 'rejected') await decide(service, tenant.admin_key, id, 'reject')
          if (status === 'cancelled') await cancel(service, tenant, id)
        }
      }
      await tick(service)
      const all = await service.ask('GET', '/v1/checkpoints', { key: tenant.admin_key })
      const ids = all.body.items.map(({ id }: { id: string }) => id)
      expect(ids).toEqual(Object.values(made).flat().toSorted().toReversed())
      expect(all.body.items[0]).toEqual(await read(service, tenant, ids[0]))
      for (const status of statuses) {
        const query = `/v1/checkpoints?status=${status}&limit=2`
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
      expectInvalid(await service.ask('GET', `/v1/checkpoints?${query}`, { key: api_key }), path)
    })
  })

  test.each([
    ['GET', ''],
    ['GET', '/attempts'],
    ['GET', '?wait=55'],
    ['DELETE', ''],
  ])("%s …%s of another tenant's checkpoint answers as of none at all", async (method, suffix) => {
    const [owner, stranger] = [await service.signUp(), await service.signUp()]
    const checkpoint = await create(service, owner)
    for (const id of [checkpoint.id, 'chk_01k9x3m6v2h8qa4n0r5t7w1z9c', 'x'.repeat(300), '%F0%9F%98%80']) {
      const answer = await service.ask(method, `/v1/checkpoints/${id}${suffix}`, { key: stranger.api_key })
      expectRefusal(answer, 'CHECKPOINT_NOT_FOUND')
    }
    expect(await read(service, owner, checkpoint.id)).toEqual(checkpoint)
  })

  test('a checkpoint is asked for by agents, and shown to agents and the admin key', async () => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant)
    const { approval_key } = await approvalKey(service, tenant, { checkpoint_id: id })
    const body = { title: 't', callback_url }
    for (const [kind, key] of [
      ['admin', tenant.admin_key],
      ['approval', approval_key],
    ] as const) {
      expectWrongKind(await service.ask('POST', '/v1/checkpoints', { key, body }), kind, 'agent')
    }
    for (const path of ['/v1/checkpoints', `/v1/checkpoints/${id}`, `/v1/checkpoints/${id}/attempts`]) {
      expectWrongKind(await service.ask('GET', path, { key: approval_key }), 'approval', 'agent', 'admin')
      expectRefusal(await service.ask('GET', path), 'UNAUTHORIZED')
      expect((await service.ask('GET', path, { key: tenant.admin_key })).status).toBe(200)
    }
  })

  describe('an approval key', () => {
    test('may be bound to a checkpoint, in any status, and shows it', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant)
      expect(await approvalKey(service, tenant, { checkpoint_id: id })).toMatchObject({ checkpoint_id: id })
      await cancel(service, tenant, id)
      const { approval_key } = await approvalKey(service, tenant, { checkpoint_id: id })
      expectRefusal(await decide(service, approval_key, id, 'approve'), 'CHECKPOINT_ALREADY_RESOLVED', {
        status: 'cancelled',
      })
      const list = await service.ask('GET', '/v1/approval-keys', { key: tenant.admin_key })
      expect(list.body.items.map((key: { checkpoint_id: string }) => key.checkpoint_id)).toEqual([id, id])
    })

    test('for a checkpoint that is absent or foreign is CHECKPOINT_NOT_FOUND', async () => {
      const [tenant, stranger] = [await service.signUp(), await service.signUp()]
      const foreign = await create(service, stranger)
      for (const checkpoint_id of [foreign.id, 'chk_01k9x3m6v2h8qa4n0r5t7w1z9c', '']) {
        const answer = await service.ask('POST', '/v1/approval-keys', {
          key: tenant.admin_key,
          body: { checkpoint_id },
        })
        expectRefusal(answer, 'CHECKPOINT_NOT_FOUND')
      }
    })
  })
})

forEachRacedService('A decision', (service) => {
  test.each(['approve', 'reject'] as const)(
    'to %s is told at once although a schedule waits for its tick',
    async (verb) => {
      const tenant = await service.signUp()
      const [decided, due] = [await receiverOf(204), await receiverOf(204)]
      const schedule = { callback_url: due.url, callback_payload: 1, fire_at: iso(service.clock.now()) }
      await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body: schedule })
      for (let count = 1; count <= 3; count++) {
        const { id } = await create(service, tenant, { callback_url: decided.url })
        await decide(service, tenant.admin_key, id, verb)
        await inTime(decided.received(count))
      }
      expect(due.requests).toHaveLength(0)
      await tick(service)
      expect(due.requests).toHaveLength(1)
    },
    300_000,
  )
})

forEachRacedService('The callback of a decision', (service) => {
  test('is tried at 0, +30 s and +90 s from the first, then it is a dead letter; the decision stands', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 503, 302)
    const body = { callback_url: receiver.url, callback_payload: { n: 1 } }
    const { id } = await create(service, tenant, body)
    expect((await read(service, tenant, id)).callback).toEqual({
      ...{ status: 'none', attempts: 0, last_error: null },
      ...never_redriven,
    })
    const decided = await decide(service, tenant.admin_key, id, 'approve', { reason: 'fine' })
    expect(decided.body.callback).toEqual({
      ...{ status: 'pending', attempts: 0, last_error: null },
      ...never_redriven,
    })
    const first_at = service.clock.now()
    await inTime(receiver.received(1))
    for (const [attempt, wait_ms, status] of [
      [1, 0, 500],
      [2, 30_000, 503],
      [3, 60_000, 302],
    ] as const) {
      if (wait_ms > 0) {
        service.clock.advance(wait_ms - 1)
        expect((await tick(service)).checkpoints.callbacks).toBe(0)
        expect(receiver.requests).toHaveLength(attempt - 1)
        service.clock.advance(1)
      }
      const last = attempt === 3
      expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: last ? 1 : 0 })
      expect(receiver.requests).toHaveLength(attempt)
      expect(await read(service, tenant, id)).toEqual({
        ...decided.body,
        callback: {
          ...{ status: last ? 'failed' : 'pending', attempts: attempt, last_error: `status ${status}` },
          ...{ redrive_of: null, dead_letter_id: last ? letter_id : null },
        },
        updated_at: iso(service.clock.now()),
      })
      const { headers } = receiver.requests[attempt - 1]!
      expect(headers['x-waystation-attempt']).toBe(String(attempt))
      expect(headers['webhook-timestamp']).toBe(String(Math.floor(service.clock.now() / 1_000)))
      verified(service, receiver.requests[attempt - 1]!, tenant.signing_secret)
    }
    expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1)
    const webhook_id = receiver.requests[0]!.headers['webhook-id']
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(Array(3).fill(webhook_id))
    expect(await attemptsOf(service, tenant, id)).toEqual({
      items: [
        [3, 90_000, 302],
        [2, 30_000, 503],
        [1, 0, 500],
      ].map(([attempt, after_ms, status_code]) => ({
        attempt,
        webhook_id,
        started_at: iso(first_at + after_ms!),
        duration_ms: 0,
        status_code,
        error: 'status',
      })),
      next_cursor: null,
    })
    const now = iso(service.clock.now())
    expect(await deadLetters(service, tenant)).toEqual([
      {
        id: expect.stringMatching(/^dlq_/),
        status: 'failed',
        payload: {
          checkpoint_id: id,
          status: 'approved',
          title: 'Ship it?',
          reason: 'fine',
          resolved_by: 'admin',
          callback_url: receiver.url,
          callback_payload: { n: 1 },
        },
        error: `the callback of checkpoint ${id} failed: status 302`,
        cause: 'the callback of checkpoint chk_… failed: status 302',
        workflow_id: null,
        source: 'checkpoint',
        source_id: id,
        agent_id: 'agent-one',
        lock_seconds: 300,
        locked_by: null,
        locked_until: null,
        claims: 0,
        created_at: now,
        updated_at: now,
        resolved_at: null,
        redriven_as: null,
      },
    ])
    service.clock.advance(day_ms)
    await tick(service)
    expect(receiver.requests).toHaveLength(3)
  })

  test('is delivered by a later attempt, and then has no error any more', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 200)
    const { id } = await create(service, tenant, { callback_url: receiver.url })
    await decide(service, tenant.admin_key, id, 'reject')
    await inTime(receiver.received(1))
    await tick(service)
    service.clock.advance(30_000)
    expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 1 })
    expect((await read(service, tenant, id)).callback).toEqual({
      ...{ status: 'delivered', attempts: 2, last_error: null },
      ...never_redriven,
    })
    expect(await deadLetters(service, tenant)).toEqual([])
  })

  test.each([
    ['410 Gone', 'status 410', async () => (await receiverOf(410)).url],
    ['nobody listens', 'refused', async () => `http://127.0.0.1:${freePort()}`],
    ['a name that does not resolve', 'dns', async () => 'http://receiver.invalid'],
  ])('%s is told as %s', async (_, last_error, urlOf) => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant, { callback_url: await urlOf() })
    await decide(service, tenant.admin_key, id, 'approve')
    await tick(service)
    const gone = last_error === 'status 410'
    const callback = {
      status: gone ? 'failed' : 'pending',
      attempts: 1,
      last_error,
      ...(gone ? left : never_redriven),
    }
    expect(await read(service, tenant, id)).toMatchObject({ status: 'approved', callback })
    expect(await deadLetters(service, tenant)).toHaveLength(gone ? 1 : 0)
    service.clock.advance(90_000)
    await tick(service)
    await tick(service)
    expect((await read(service, tenant, id)).callback.status).toBe('failed')
  })

  test('rests while the tenant waits for deletion; after restore the next tick makes up for it', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500, 204)
    const { id } = await create(service, tenant, { callback_url: receiver.url })
    await decide(service, tenant.admin_key, id, 'approve')
    await inTime(receiver.received(1))
    await tick(service)
    const expiring = await create(service, tenant, { callback_url: receiver.url, timeout_seconds: 60 })
    const path = `/v1/tenants/${tenant.tenant_id}`
    const body = { confirm: 'DELETE ALL DATA' }
    expect((await service.ask('DELETE', path, { key: tenant.admin_key, body })).status).toBe(202)
    service.clock.advance(day_ms)
    expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 0 })
    expect(receiver.requests).toHaveLength(1)
    expect((await service.ask('POST', `${path}/restore`, { key: tenant.admin_key })).status).toBe(200)
    await tick(service)
    expect((await read(service, tenant, id)).callback).toMatchObject({ status: 'delivered', attempts: 2 })
    expect(await read(service, tenant, expiring.id)).toMatchObject({
      status: 'rejected',
      callback: { status: 'delivered' },
    })
  })
})

forEachRacedService('The timeout of a checkpoint', (service) => {
  test('is settled by a tick, not a millisecond early and not before the tick', async () => {
    const tenant = await service.signUp()
    const { url } = await receiverOf(204)
    const { id, expires_at } = await create(service, tenant, { callback_url: url, timeout_seconds: 60 })
    service.clock.advance(59_999)
    expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 0 })
    expect((await read(service, tenant, id)).status).toBe('pending')
    service.clock.advance(1)
    expect(iso(service.clock.now())).toBe(expires_at)
    expect((await read(service, tenant, id)).status).toBe('pending')
    expect((await tick(service)).checkpoints).toEqual({ rejected: 1, expired: 0, callbacks: 1 })
    expect((await read(service, tenant, id)).status).toBe('rejected')
  })

  test('auto_reject rejects it, and calls back', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const body = { callback_url: receiver.url, callback_payload: 7, timeout_seconds: 60 }
    const before = await create(service, tenant, body)
    service.clock.advance(65_000)
    await tick(service)
    const now = iso(service.clock.now())
    expect(await read(service, tenant, before.id)).toEqual({
      ...before,
      status: 'rejected',
      resolved_by: 'timeout',
      resolved_at: now,
      callback: { status: 'delivered', attempts: 1, last_error: null, ...never_redriven },
      updated_at: now,
    })
    expect(receiver.requests).toMatchObject([
      { headers: { 'x-waystation-event': 'checkpoint.rejected', 'x-waystation-attempt': '1' } },
    ])
    expect(verified(service, receiver.requests[0]!, tenant.signing_secret)).toEqual({
      type: 'checkpoint.rejected',
      timestamp: now,
      data: {
        checkpoint_id: before.id,
        status: 'rejected',
        reason: null,
        resolved_by: 'timeout',
        resolved_at: now,
        callback_payload: 7,
      },
    })
    expect(await deadLetters(service, tenant)).toEqual([])
  })

  describe('without a callback', () => {
    const silent = { callback_url: null, callback_payload: { order: 7 } }

    /** As it is after everything that is due was done, a minute and a half later as well. */
    async function settled(tenant: TestTenant, id: string) {
      await tick(service)
      service.clock.advance(90_000)
      await tick(service)
      return {
        checkpoint: await read(service, tenant, id),
        attempts: (await attemptsOf(service, tenant, id)).items,
        letters: await deadLetters(service, tenant),
      }
    }

    test.each(['approve', 'reject'] as const)(
      '%s settles it: nothing is sent, and nothing is left',
      async (verb) => {
        const tenant = await service.signUp()
        const before = await create(service, tenant, silent)
        expect(before).toMatchObject({
          callback_url: null,
          callback_payload: { order: 7 },
          callback: { status: 'none', attempts: 0, last_error: null },
        })
        const decided = await decide(service, tenant.admin_key, before.id, verb, { reason: 'seen' })
        const now = iso(service.clock.now())
        expect(decided.body).toEqual({
          ...before,
          ...{ status: verb === 'approve' ? 'approved' : 'rejected', reason: 'seen', resolved_by: 'admin' },
          ...{ resolved_at: now, updated_at: now },
          ...(verb === 'approve' ? { approvals: 1 } : { rejections: 1 }),
        })
        expect(await settled(tenant, before.id)).toEqual({
          checkpoint: decided.body,
          attempts: [],
          letters: [],
        })
      },
    )

    test('a timeout rejects it: nothing is sent, and nothing is left', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { ...silent, timeout_seconds: 60 })
      service.clock.advance(60_000)
      expect(await settled(tenant, id)).toMatchObject({
        checkpoint: { status: 'rejected', resolved_by: 'timeout', callback: { status: 'none', attempts: 0 } },
        attempts: [],
        letters: [],
      })
    })

    test.each([
      ['a timeout', 'expired'],
      ['a rejection', 'rejected'],
    ])('%s with dlq leaves one dead letter, which says that there is none', async (_, status) => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { ...silent, timeout_action: 'dlq', timeout_seconds: 60 })
      if (status === 'rejected') await decide(service, tenant.admin_key, id, 'reject')
      else service.clock.advance(60_000)
      const { checkpoint, attempts, letters } = await settled(tenant, id)
      expect(checkpoint).toMatchObject({
        status,
        callback: { status: 'none', attempts: 0, last_error: null },
      })
      expect(attempts).toEqual([])
      expect(letters).toMatchObject([
        {
          source_id: id,
          payload: { checkpoint_id: id, status, callback_url: null, callback_payload: { order: 7 } },
        },
      ])
    })

    test('a cancellation leaves nothing, and a request that waits is answered', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, silent)
      const waiting = service.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key: tenant.api_key })
      expect((await cancel(service, tenant, id)).status).toBe(204)
      expect((await inTime(waiting)).body.status).toBe('cancelled')
      expect(await settled(tenant, id)).toMatchObject({ attempts: [], letters: [] })
    })

    test('one Idempotency-Key asks once', async () => {
      const { api_key } = await service.signUp()
      const ask = {
        key: api_key,
        headers: { 'idempotency-key': 'once' },
        body: { title: 't', callback_url: null },
      }
      const first = await service.ask('POST', '/v1/checkpoints', ask)
      const second = await service.ask('POST', '/v1/checkpoints', ask)
      expect([first.status, second.status, second.text]).toEqual([201, 201, first.text])
    })
  })

  test('dlq expires it: a dead letter, and no callback', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const body = {
      callback_url: receiver.url,
      callback_payload: 7,
      timeout_action: 'dlq',
      timeout_seconds: 60,
    }
    const before = await create(service, tenant, body)
    service.clock.advance(60_000)
    expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 1, callbacks: 0 })
    const now = iso(service.clock.now())
    expect(await read(service, tenant, before.id)).toEqual({
      ...before,
      status: 'expired',
      resolved_by: 'timeout',
      resolved_at: now,
      updated_at: now,
    })
    expect(await deadLetters(service, tenant)).toEqual([
      {
        id: expect.stringMatching(/^dlq_/),
        status: 'failed',
        payload: {
          checkpoint_id: before.id,
          status: 'expired',
          title: 'Ship it?',
          reason: null,
          resolved_by: 'timeout',
          callback_url: receiver.url,
          callback_payload: 7,
        },
        error: `checkpoint ${before.id} was expired`,
        cause: 'checkpoint chk_… was expired',
        workflow_id: null,
        source: 'checkpoint',
        source_id: before.id,
        agent_id: 'agent-one',
        lock_seconds: 300,
        locked_by: null,
        locked_until: null,
        claims: 0,
        created_at: now,
        updated_at: now,
        resolved_at: null,
        redriven_as: null,
      },
    ])
    await tick(service)
    expect(receiver.requests).toHaveLength(0)
  })

  test.each([
    ['approve', 'auto_reject', 1, 0],
    ['approve', 'dlq', 1, 0],
    ['reject', 'auto_reject', 1, 0],
    ['reject', 'dlq', 1, 1],
  ] as const)(
    '%s with timeout_action %s: %i callback, %i dead letter',
    async (verb, timeout_action, calls, dead_letters) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const body = { callback_url: receiver.url, timeout_action, timeout_seconds: 60 }
      const { id } = await create(service, tenant, body)
      await decide(service, tenant.admin_key, id, verb, { reason: 'no' })
      await inTime(receiver.received(calls))
      const letters = await deadLetters(service, tenant)
      expect(letters).toHaveLength(dead_letters)
      for (const letter of letters) {
        expect(letter).toMatchObject({
          source: 'checkpoint',
          source_id: id,
          error: `checkpoint ${id} was rejected`,
          payload: { checkpoint_id: id, status: 'rejected', reason: 'no', resolved_by: 'admin' },
        })
      }
      await tick(service) // which answers when the attempt is written down
      service.clock.advance(60_000)
      expect((await tick(service)).checkpoints).toMatchObject({ rejected: 0, expired: 0 })
      expect(receiver.requests).toHaveLength(calls)
      expect(await deadLetters(service, tenant)).toEqual(letters)
    },
  )

  test.each(['auto_reject', 'dlq'])('%s: a late approval before the tick wins', async (timeout_action) => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(204)
    const body = { callback_url: receiver.url, timeout_action, timeout_seconds: 60 }
    const { id } = await create(service, tenant, body)
    service.clock.advance(3_600_000)
    const answer = await decide(service, tenant.admin_key, id, 'approve')
    expect([answer.status, answer.body.status]).toEqual([200, 'approved'])
    expect((await tick(service)).checkpoints).toEqual({ rejected: 0, expired: 0, callbacks: 1 })
    expect(await read(service, tenant, id)).toMatchObject({ status: 'approved', resolved_by: 'admin' })
    expect(receiver.requests).toMatchObject([{ headers: { 'x-waystation-event': 'checkpoint.approved' } }])
    expect(await deadLetters(service, tenant)).toEqual([])
  })

  test('that was past at creation is settled by the next tick', async () => {
    const tenant = await service.signUp()
    const { url } = await receiverOf(204)
    const { id } = await create(service, tenant, { callback_url: url, expires_at: '1969-01-01T00:00:00Z' })
    expect((await read(service, tenant, id)).status).toBe('pending')
    expect((await tick(service)).checkpoints).toEqual({ rejected: 1, expired: 0, callbacks: 1 })
    expect((await read(service, tenant, id)).status).toBe('rejected')
  })

  test('of one that was never told is one more attempt after another, from the timeout on', async () => {
    const tenant = await service.signUp()
    const receiver = await receiverOf(500)
    const { id } = await create(service, tenant, { callback_url: receiver.url, timeout_seconds: 60 })
    service.clock.advance(60_000)
    for (const [wait_ms, attempts] of [
      [0, 1],
      [29_999, 1],
      [1, 2],
      [59_999, 2],
      [1, 3],
    ] as const) {
      service.clock.advance(wait_ms)
      await tick(service)
      expect(receiver.requests).toHaveLength(attempts)
    }
    expect(await read(service, tenant, id)).toMatchObject({
      status: 'rejected',
      resolved_by: 'timeout',
      callback: { status: 'failed', attempts: 3, last_error: 'status 500', ...left },
    })
    expect(await deadLetters(service, tenant)).toMatchObject([{ source_id: id }])
  })
})

forEachRacedService('The moves of a checkpoint', (service) => {
  type Verb = keyof typeof moves

  test('are the state diagram of docs/checkpoints.md', () => {
    const page = readFileSync(new URL('../../docs/checkpoints.md', import.meta.url), 'utf8')
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

  /** Performs each verb. A timeout is a tick once the time is over, and answers nobody. */
  const acts: Record<Verb, (tenant: TestTenant, id: string) => Promise<Answer | null>> = {
    approve: (tenant, id) => decide(service, tenant.admin_key, id, 'approve'),
    reject: (tenant, id) => decide(service, tenant.admin_key, id, 'reject'),
    cancel: (tenant, id) => cancel(service, tenant, id),
    time_out_auto_reject: timeOut,
    time_out_dlq: timeOut,
  }
  const timeout_action = (verb: Verb) => (verb === 'time_out_dlq' ? 'dlq' : 'auto_reject')

  async function timeOut() {
    service.clock.advance(60_000)
    await tick(service)
    return null
  }

  const ways: Record<CheckpointStatus, Verb | null> = {
    pending: null,
    approved: 'approve',
    rejected: 'reject',
    cancelled: 'cancel',
    expired: 'time_out_dlq',
  }
  const walked = statuses.flatMap((status) =>
    (Object.keys(moves) as Verb[]).map((verb) => [verb, status] as const),
  )

  test.each(walked)(
    '%s of a checkpoint that is %s is allowed or refused as the table says',
    async (verb, status) => {
      const tenant = await service.signUp()
      const way = ways[status]
      const { id } = await create(service, tenant, {
        callback_url: (await receiverOf(204)).url,
        timeout_seconds: 60,
        timeout_action: timeout_action(status === 'expired' ? 'time_out_dlq' : verb),
      })
      if (way) await acts[way](tenant, id)
      await tick(service)
      const before = await read(service, tenant, id)
      expect(before.status).toBe(status)
      service.clock.advance(5)
      const answer = await acts[verb](tenant, id)
      const after = await read(service, tenant, id)
      if ((moves[verb].from as readonly CheckpointStatus[]).includes(status)) {
        expect(after.status).toBe(moves[verb].to)
        expect([200, 204, undefined]).toContain(answer?.status)
      } else {
        if (answer) expectRefusal(answer, 'CHECKPOINT_ALREADY_RESOLVED', { status })
        expect(after).toEqual(before)
      }
      await tick(service)
    },
  )
})

forEachRacedService('GET …?wait', (service) => {
  /** Resolves once this checkpoint was looked at as often as that: a request that waits has then begun to. */
  function lookedAt(times: number): Promise<void> {
    return new Promise((resolve) => {
      service.app.db.onStatement((name) => {
        if (name === 'checkpoints.find') times -= 1
        if (times > 0) return
        service.app.db.onStatement(null)
        resolve()
      })
    })
  }

  const settling: [string, CheckpointStatus, (tenant: TestTenant, id: string) => Promise<unknown>][] = [
    [
      'approve',
      'approved',
      ({ admin_key }, id) => decide(service, admin_key, id, 'approve', { reason: 'yes' }),
    ],
    ['reject', 'rejected', ({ admin_key }, id) => decide(service, admin_key, id, 'reject')],
    ['cancel', 'cancelled', (tenant, id) => cancel(service, tenant, id)],
    [
      'a timeout',
      'rejected',
      async () => {
        service.clock.advance(1_000)
        await tick(service)
      },
    ],
  ]

  test.each(settling)('is answered by %s', async (_, status, settle) => {
    const tenant = await service.signUp()
    const expires_at = iso(service.clock.now() + 1_000)
    const { id } = await create(service, tenant, { callback_url: (await receiverOf(204)).url, expires_at })
    const looked = lookedAt(1)
    const waiting = service.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key: tenant.api_key })
    await looked
    const [answer] = await Promise.all([waiting, settle(tenant, id)])
    expect([answer.status, answer.body.status]).toEqual([200, status])
    await tick(service)
  })

  test('answers everybody who waits, the admin key and other agents among them', async () => {
    const tenant = await service.signUp()
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    const { id } = await create(service, tenant, { callback_url: (await receiverOf(204)).url })
    const keys = [tenant.api_key, tenant.admin_key, other.api_key, tenant.api_key]
    const looked = lookedAt(keys.length)
    const waiting = keys.map((key) => service.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key }))
    await looked
    const decided = await decide(service, tenant.admin_key, id, 'approve', { reason: 'yes' })
    for (const answer of await Promise.all(waiting)) {
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({
        status: 'approved',
        reason: 'yes',
        resolved_at: decided.body.resolved_at,
      })
    }
    await tick(service)
  })

  test.each(['0', '1', '55'])('answers at once when it is settled: wait=%s', async (seconds) => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant)
    await cancel(service, tenant, id)
    const settled = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })
    const answer = await service.ask('GET', `/v1/checkpoints/${id}?wait=${seconds}`, { key: tenant.api_key })
    expect([answer.status, answer.text]).toEqual([200, settled.text])
  })

  test('of 0 seconds does not wait', async () => {
    const tenant = await service.signUp()
    const checkpoint = await create(service, tenant)
    const answer = await service.ask('GET', `/v1/checkpoints/${checkpoint.id}?wait=0`, {
      key: tenant.api_key,
    })
    expect([answer.status, answer.body]).toEqual([200, checkpoint])
  })

  test('ends when its time is over, with the checkpoint as it is', async () => {
    const tenant = await service.signUp()
    const checkpoint = await create(service, tenant)
    const looked = lookedAt(1)
    const waiting = service.ask('GET', `/v1/checkpoints/${checkpoint.id}?wait=1`, { key: tenant.api_key })
    await looked
    service.clock.advance(1_000)
    const answer = await waiting
    expect([answer.status, answer.body]).toEqual([200, checkpoint])
  })

  test.each(['56', '-1', '1.5', 'yes', ''])('takes no wait=%s', async (seconds) => {
    const tenant = await service.signUp()
    const { id } = await create(service, tenant)
    const path = `/v1/checkpoints/${id}?wait=${seconds}`
    expectInvalid(await service.ask('GET', path, { key: tenant.api_key }), 'query.wait')
  })

  test('is for one checkpoint: another that is decided meanwhile ends nothing', async () => {
    const tenant = await service.signUp()
    const { url } = await receiverOf(204)
    const [first, second] = [
      await create(service, tenant),
      await create(service, tenant, { callback_url: url }),
    ]
    const looked = lookedAt(1)
    let answered = false
    const waiting = service.ask('GET', `/v1/checkpoints/${first.id}?wait=55`, { key: tenant.api_key })
    void waiting.then(() => {
      answered = true
    })
    await looked
    await decide(service, tenant.admin_key, second.id, 'approve')
    await tick(service)
    expect(answered).toBe(false)
    await cancel(service, tenant, first.id)
    expect((await waiting).body.status).toBe('cancelled')
  })
})

forEachDatabase('A node that drains', (databases) => {
  test('answers who waits with the current state', async () => {
    const service = await new TestService().start(await databases.newUrl())
    service.over_http = true
    const tenant = await service.signUp()
    const checkpoint = await create(service, tenant)
    const looked = new Promise<void>((resolve) => {
      service.app.db.onStatement((name) => name === 'checkpoints.find' && resolve())
    })
    const waiting = service.ask('GET', `/v1/checkpoints/${checkpoint.id}?wait=55`, { key: tenant.api_key })
    await looked
    await service.stop()
    const answer = await waiting
    expect([answer.status, answer.body]).toEqual([200, checkpoint])
  })
})

onPostgres('Two nodes on one PostgreSQL', () => {
  test.each(['approve', 'cancel', 'timeout'] as const)('%s on one ends a wait on the other', async (way) => {
    const database_url = await newPostgresDatabase()
    const environment = { SECRET_KEY: 'the same on every node' }
    const [near, far] = [new TestService(environment), new TestService(environment)]
    far.clock = near.clock
    try {
      await near.start(database_url)
      await far.start(database_url)
      const tenant = await near.signUp()
      const expires_at = iso(near.clock.now() + 1_000)
      const { id } = await create(near, tenant, { callback_url: (await receiverOf(204)).url, expires_at })
      const looked = new Promise<void>((resolve) => {
        near.app.db.onStatement((name) => name === 'checkpoints.find' && resolve())
      })
      const waiting = near.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key: tenant.api_key })
      await looked
      if (way === 'approve') await decide(far, tenant.admin_key, id, 'approve')
      if (way === 'cancel') await cancel(far, tenant, id)
      if (way === 'timeout') far.clock.advance(1_000)
      if (way === 'timeout') await tick(far)
      const status = { approve: 'approved', cancel: 'cancelled', timeout: 'rejected' }[way]
      expect((await waiting).body.status).toBe(status)
    } finally {
      await far.stop()
      await near.stop()
      await dropPostgresDatabase(database_url)
    }
  })
})
