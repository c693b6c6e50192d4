import { describe, expect, test } from 'bun:test'
import { type Answer, forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso, second_ms } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { hashOf } from '../base/keys.ts'

function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  const error = { code, message: errors[code].message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(errors[code].status)
}

const payload = { order: 7, amount: 30 }
const payload_hash = hashOf(JSON.stringify(payload))
const effect_id = expect.stringMatching(/^eff_[0-9a-z]{26}$/)
const lease_token = expect.stringMatching(/^lse_[0-9a-z]{26}$/)
let made = 0

function claim(service: TestService, { api_key }: { api_key: string }, body: object = {}) {
  service.clock.advance(1) // ids made in one millisecond are in no order
  made += 1
  return service.ask('POST', '/v1/effects', {
    key: api_key,
    body: { type: 'refund', key: `order-${made}`, payload, ...body },
  })
}

async function claimed(service: TestService, tenant: TestTenant, body: object = {}) {
  const answer = await claim(service, tenant, body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body
}

function ask(service: TestService, key: string, id: string, verb: string, body: object = {}) {
  return service.ask('POST', `/v1/effects/${id}/${verb}`, { key, body })
}

const read = async (service: TestService, { api_key }: TestTenant, id: string) =>
  (await service.ask('GET', `/v1/effects/${id}`, { key: api_key })).body

async function tick(service: TestService) {
  expect((await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })).status).toBe(200)
}

/** The lease of an effect runs out. */
async function runOut(service: TestService, seconds = 60) {
  service.clock.advance(seconds * second_ms)
  await tick(service)
}

/** Types of the events of an effect, oldest first. */
async function eventsOf(service: TestService, { api_key }: TestTenant, id: string) {
  const { body } = await service.ask('GET', '/v1/events?limit=200', { key: api_key })
  return body.items
    .filter((event: { subject: { id: string } }) => event.subject.id === id)
    .map((event: { type: string; data: object }) => event)
}

async function typesOf(service: TestService, tenant: TestTenant, id: string) {
  return (await eventsOf(service, tenant, id)).map(({ type }: { type: string }) => type).toSorted()
}

async function quotaOf(service: TestService, { admin_key, tenant_id }: TestTenant, name = 'effects') {
  const { body } = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
  return body.quota[name].used
}

function decide(
  service: TestService,
  { admin_key }: TestTenant,
  id: string,
  verb: string,
  body: object = {},
) {
  return service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key: admin_key, body })
}

const approval = { title: 'Refund 30 EUR?' }

/** An effect that waits for its approval. */
async function proposed(service: TestService, tenant: TestTenant, body: object = {}) {
  const answer = await claim(service, tenant, { approval, ...body })
  expect(answer.status).toBe(202)
  return answer.body
}

async function approved(service: TestService, tenant: TestTenant, body: object = {}) {
  const effect = await proposed(service, tenant, body)
  expect((await decide(service, tenant, effect.checkpoint_id, 'approve')).status).toBe(200)
  return effect
}

forEachService('Effects', (service) => {
  describe('a claim', () => {
    test('answers 201 with the lease, and every field', async () => {
      const tenant = await service.signUp()
      const answer = await claim(service, tenant, { key: 'order-a', note: 'asked by Kim', workflow_id: 'w1' })
      const now = service.clock.now()
      expect(answer.status).toBe(201)
      expect(answer.body).toEqual({
        ...{ id: effect_id, status: 'running', type: 'refund', key: 'order-a', note: 'asked by Kim' },
        ...{ on_unknown: 'hold', payload_hash, effective_hash: null, checkpoint_id: null },
        ...{ permit_expires_at: null, refused_as: null, question_id: null, agent_id: tenant.agent_id },
        ...{ held_by: tenant.agent_id, fence: 1, lease_seconds: 60, lease_until: iso(now + 60 * second_ms) },
        ...{ error: null, resolved_by: null, workflow_id: 'w1', finished_at: null },
        ...{ created_at: iso(now), updated_at: iso(now), payload, effective_payload: null, result: null },
        ...{ lease_token, checkpoint: null },
      })
      expect(await typesOf(service, tenant, answer.body.id)).toEqual(['effect.claimed'])
      expect(await quotaOf(service, tenant)).toBe(1)
    })

    test('keeps the payload byte for byte, and binds these bytes', async () => {
      const tenant = await service.signUp()
      const text = '{"amount": 30.00,"big":12345678901234567890, "x":"\\u00e9"}'
      const send = (payload: string) =>
        service.ask('POST', '/v1/effects', {
          key: tenant.api_key,
          body: `{"type":"refund","key":"exact","payload":${payload}}`,
          headers: { 'content-type': 'application/json' },
        })
      const answer = await send(text)
      expect(answer.body.payload_hash).toBe(hashOf(text))
      expect(answer.text).toContain(`"payload":${text}`)
      const { id } = answer.body
      for (const other of [
        text.replace('30.00', '30.0'),
        text.replace(' ', ''),
        text.replace('\\u00e9', 'é'),
      ])
        expectRefusal(await send(other), 'EFFECT_KEY_REUSED', { effect_id: id })
      const { error } = (await send(text)).body
      expect(error.code).toBe('EFFECT_IN_FLIGHT')
    })

    test('by another answers EFFECT_IN_FLIGHT, with the seconds that are left', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { key: 'x', lease_seconds: 90 })
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      service.clock.advance(30 * second_ms)
      const answer = await claim(service, other, { key: 'x' })
      expectRefusal(answer, 'EFFECT_IN_FLIGHT', {
        effect_id: effect.id,
        agent_id: tenant.agent_id,
        lease_until: effect.lease_until,
      })
      expect(answer.headers.get('retry-after')).toBe('60')
    })

    test('again with its own lease_token finds its lease, and another does not', async () => {
      const tenant = await service.signUp()
      const own = 'a-token-of-my-own-0001'
      const first = await claimed(service, tenant, { key: 'x', lease_token: own })
      expect(first.lease_token).toBe(own)
      const again = await claim(service, tenant, { key: 'x', lease_token: own })
      expect([again.status, again.body]).toEqual([201, first])
      const other = await claim(service, tenant, { key: 'x', lease_token: 'a-token-of-another-01' })
      expect(other.body.error.code).toBe('EFFECT_IN_FLIGHT')
      service.clock.advance(60 * second_ms)
      const late = await claim(service, tenant, { key: 'x', lease_token: own })
      expect([late.body.error.code, late.headers.get('retry-after')]).toEqual(['EFFECT_IN_FLIGHT', '1'])
    })

    test('of one that has happened answers 200 with its result, without a write', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { key: 'x' })
      const { lease_token } = effect
      const done = await ask(service, tenant.api_key, effect.id, 'succeed', {
        lease_token,
        result: { re: 9 },
      })
      expect(done.status).toBe(200)
      expect(done.body).toMatchObject({ status: 'succeeded', result: { re: 9 }, lease_until: null })
      const again = await claim(service, tenant, { key: 'x' })
      expect(again.status).toBe(200)
      expect(again.body).toEqual({ ...done.body, lease_token: null, checkpoint: null })
      expect(await typesOf(service, tenant, effect.id)).toEqual(['effect.claimed', 'effect.succeeded'])
      expect(await quotaOf(service, tenant)).toBe(0)
    })
  })

  describe('a report', () => {
    test('that it happened is taken once, and a repeat answers the same', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant)
      const first = await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: 1 })
      const again = await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: 2 })
      expect([again.status, again.body]).toEqual([200, first.body])
      const other = await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'no' })
      expectRefusal(other, 'EFFECT_NOT_HELD', { status: 'succeeded' })
      expect(await quotaOf(service, tenant)).toBe(0)
    })

    test('under another token is EFFECT_NOT_HELD, and of no effect EFFECT_NOT_FOUND', async () => {
      const tenant = await service.signUp()
      const { id } = await claimed(service, tenant)
      const lease_token = 'lse_01m7yjrz37hxnv52px0106nehe'
      for (const [verb, more] of [
        ['succeed', {}],
        ['fail', { error: 'no' }],
        ['fail', { error: 'no', retry: true }],
        ['extend', {}],
      ] as const) {
        const answer = await ask(service, tenant.api_key, id, verb, { lease_token, ...more })
        expectRefusal(answer, 'EFFECT_NOT_HELD', { status: 'running' })
        const unknown = 'eff_01m7yjrz37hxnv52px0106nehd'
        const nowhere = await ask(service, tenant.api_key, unknown, verb, { lease_token, ...more })
        expectRefusal(nowhere, 'EFFECT_NOT_FOUND')
      }
    })

    test('that it did not happen is final', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant, { key: 'x' })
      const failed = await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'declined' })
      expect(failed.body).toMatchObject({ status: 'failed', error: 'declined', result: null })
      const again = await claim(service, tenant, { key: 'x' })
      expect([again.status, again.body.status, again.body.error]).toEqual([200, 'failed', 'declined'])
      expect((await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'other' })).body).toEqual(
        failed.body,
      )
      expect(await typesOf(service, tenant, id)).toEqual(['effect.claimed', 'effect.failed'])
      expect(await quotaOf(service, tenant)).toBe(0)
    })

    test('with retry frees it: the next claim has a higher fence, and the old token is worth nothing', async () => {
      const tenant = await service.signUp()
      const first = await claimed(service, tenant, { key: 'x' })
      const failure = { lease_token: first.lease_token, error: 'busy', retry: true }
      const free = await ask(service, tenant.api_key, first.id, 'fail', failure)
      expect(free.body).toMatchObject({ status: 'ready', error: 'busy', lease_until: null, fence: 1 })
      expect((await ask(service, tenant.api_key, first.id, 'fail', failure)).body).toEqual(free.body)
      const { lease_token } = first
      const late = await ask(service, tenant.api_key, first.id, 'succeed', { lease_token })
      expectRefusal(late, 'EFFECT_NOT_HELD', { status: 'ready' })
      const second = await claimed(service, tenant, { key: 'x', lease_seconds: 5 })
      expect(second).toMatchObject({ id: first.id, fence: 2, status: 'running' })
      expect(second.lease_until).toBe(iso(service.clock.now() + 5 * second_ms))
      expectRefusal(
        await ask(service, tenant.api_key, first.id, 'succeed', { lease_token }),
        'EFFECT_NOT_HELD',
        {
          status: 'running',
        },
      )
      expect(await typesOf(service, tenant, first.id)).toEqual([
        'effect.claimed',
        'effect.retried',
        'effect.started',
      ])
    })

    test('extend moves the end of the lease, and only while it holds', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant, { lease_seconds: 10 })
      service.clock.advance(9 * second_ms)
      const extended = await ask(service, tenant.api_key, id, 'extend', { lease_token, lease_seconds: 3600 })
      expect(extended.body.lease_until).toBe(iso(service.clock.now() + 3_600 * second_ms))
      const as_claimed = await ask(service, tenant.api_key, id, 'extend', { lease_token })
      expect(as_claimed.body.lease_until).toBe(iso(service.clock.now() + 10 * second_ms))
      service.clock.advance(10 * second_ms)
      const over = await ask(service, tenant.api_key, id, 'extend', { lease_token })
      expectRefusal(over, 'EFFECT_NOT_HELD', { status: 'running' })
      for (const lease_seconds of [0, 3601]) {
        const answer = await ask(service, tenant.api_key, id, 'extend', { lease_token, lease_seconds })
        expect(answer.body.error.code).toBe('VALIDATION_FAILED')
      }
    })
  })

  describe('a lease that runs out', () => {
    test('leaves its effect unknown: nobody may start it, and its holder may still report', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant, { key: 'x', workflow_id: 'w' })
      await runOut(service)
      expectRefusal(await claim(service, tenant, { key: 'x' }), 'EFFECT_UNKNOWN', {
        effect_id: id,
        checkpoint_id: null,
      })
      expectRefusal(await ask(service, tenant.api_key, id, 'start'), 'EFFECT_UNKNOWN', {
        effect_id: id,
        checkpoint_id: null,
      })
      const flow = () => service.ask('GET', '/v1/workflows/w', { key: tenant.api_key })
      expect((await flow()).body.failing).toBe(1)
      expect(await quotaOf(service, tenant)).toBe(1)
      const late = await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: 'late' })
      expect(late.body).toMatchObject({ status: 'succeeded', result: 'late' })
      expect((await flow()).body.failing).toBe(0)
      expect(await typesOf(service, tenant, id)).toEqual([
        'effect.claimed',
        'effect.succeeded',
        'effect.unknown',
      ])
    })

    test('may be reported as failed by its holder', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant)
      await runOut(service)
      const late = await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'declined' })
      expect(late.body).toMatchObject({ status: 'failed', error: 'declined' })
    })

    test('with on_unknown retry frees it, and its holder may report until somebody else has the lease', async () => {
      const tenant = await service.signUp()
      const first = await claimed(service, tenant, { key: 'x', on_unknown: 'retry' })
      await runOut(service)
      expect((await read(service, tenant, first.id)).status).toBe('ready')
      const second = await claimed(service, tenant, { key: 'x' })
      expect(second.fence).toBe(2)
      const { lease_token } = first
      const late = await ask(service, tenant.api_key, first.id, 'succeed', { lease_token })
      expectRefusal(late, 'EFFECT_NOT_HELD', { status: 'running' })
      await runOut(service)
      const in_time = { lease_token: second.lease_token, result: null }
      const done = await ask(service, tenant.api_key, first.id, 'succeed', in_time)
      expect(done.body).toMatchObject({ status: 'succeeded', fence: 2 })
      const retried = (await eventsOf(service, tenant, first.id)).filter(
        ({ type }: { type: string }) => type === 'effect.retried',
      )
      expect(retried.map(({ data }: { data: { ran_out: boolean } }) => data.ran_out)).toEqual([true, true])
    })

    test('with on_unknown ask opens a checkpoint', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { key: 'a `b`\n[c](http://d)', on_unknown: 'ask' })
      await runOut(service)
      const unknown = await read(service, tenant, effect.id)
      expect(unknown.status).toBe('unknown')
      const path = `/v1/checkpoints/${unknown.question_id}`
      const question = (await service.ask('GET', path, { key: tenant.api_key })).body
      expect(question).toMatchObject({ status: 'pending', title: 'Did refund happen?', effect_id: effect.id })
      expect(question.prompt).toContain('- Key: `a b [c](http://d)`\n')
      // Its holder reports after all: nobody needs to be asked.
      const { lease_token } = effect
      expect((await ask(service, tenant.api_key, effect.id, 'succeed', { lease_token })).body).toMatchObject({
        status: 'succeeded',
        question_id: null,
      })
      expect((await service.ask('GET', path, { key: tenant.api_key })).body.status).toBe('cancelled')
    })

    test.each(['succeeded', 'failed', 'retry'] as const)(
      'with on_unknown ask is %s when a person answers so',
      async (outcome) => {
        const tenant = await service.signUp()
        const effect = await claimed(service, tenant, { on_unknown: 'ask' })
        await runOut(service)
        const { question_id } = await read(service, tenant, effect.id)
        const without = await decide(service, tenant, question_id, 'approve')
        expect(without.body.error.code).toBe('ANSWER_INVALID')
        const body = { answer: { outcome, result: 're_9' }, reason: 'seen at the bank' }
        expect((await decide(service, tenant, question_id, 'approve', body)).status).toBe(200)
        expect(await read(service, tenant, effect.id)).toMatchObject({
          ...{ status: outcome === 'retry' ? 'ready' : outcome, question_id: null, resolved_by: 'admin' },
          result: outcome === 'succeeded' ? 're_9' : null,
          error: outcome === 'failed' ? 'seen at the bank' : null,
        })
        const { lease_token } = effect
        const late = await ask(service, tenant.api_key, effect.id, 'succeed', { lease_token })
        expect(late.body.error.code).toBe('EFFECT_NOT_HELD')
      },
    )

    test('with on_unknown ask stays unknown when the person cannot tell', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { on_unknown: 'ask' })
      await runOut(service)
      const { question_id } = await read(service, tenant, effect.id)
      expect((await decide(service, tenant, question_id, 'reject')).status).toBe(200)
      expect(await read(service, tenant, effect.id)).toMatchObject({ status: 'unknown', question_id: null })
      const resolved = await ask(service, tenant.admin_key, effect.id, 'resolve', {
        outcome: 'failed',
        error: 'no',
      })
      expect(resolved.body).toMatchObject({ status: 'failed', error: 'no', resolved_by: 'admin' })
    })
  })

  describe('an admin resolves an unknown effect', () => {
    test('as succeeded, as failed, or frees it; after that the old lease is worth nothing', async () => {
      const tenant = await service.signUp()
      for (const [outcome, status] of [
        ['succeeded', 'succeeded'],
        ['failed', 'failed'],
        ['retry', 'ready'],
      ] as const) {
        const { id, lease_token, key } = await claimed(service, tenant)
        const early = await ask(service, tenant.admin_key, id, 'resolve', { outcome })
        expectRefusal(early, 'INVALID_STATE', { status: 'running' })
        await runOut(service)
        const body = { outcome, result: { seen: true }, error: 'seen' }
        const resolved = await ask(service, tenant.admin_key, id, 'resolve', body)
        expect(resolved.body).toMatchObject({
          ...{ status, resolved_by: 'admin', lease_until: null },
          result: outcome === 'succeeded' ? { seen: true } : null,
        })
        expect((await ask(service, tenant.admin_key, id, 'resolve', body)).body).toEqual(resolved.body)
        const late = await ask(service, tenant.api_key, id, 'succeed', { lease_token })
        expectRefusal(late, 'EFFECT_NOT_HELD', { status })
        const again = await claim(service, tenant, { key })
        expect(again.status).toBe(outcome === 'retry' ? 201 : 200)
        expect((await typesOf(service, tenant, id)).slice(0, 2)).toEqual([
          'effect.claimed',
          'effect.resolved',
        ])
      }
    })

    test('or closes one that is free', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      const retry = await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'retry' })
      expectRefusal(retry, 'INVALID_STATE', { status: 'ready' })
      const closed = await ask(service, tenant.admin_key, id, 'resolve', {
        outcome: 'failed',
        error: 'given up',
      })
      expect(closed.body).toMatchObject({ status: 'failed', error: 'given up' })
      expect(await quotaOf(service, tenant)).toBe(0)
    })

    test('an agent may not', async () => {
      const tenant = await service.signUp()
      const { id } = await claimed(service, tenant)
      const answer = await ask(service, tenant.api_key, id, 'resolve', { outcome: 'failed' })
      expect(answer.status).toBe(403)
    })
  })

  describe('an approval', () => {
    test('is asked for first: 202 with a checkpoint that has exactly these bytes', async () => {
      const tenant = await service.signUp()
      const answer = await claim(service, tenant, {
        key: 'x',
        approval: { ...approval, timeout_seconds: 600 },
      })
      expect(answer.status).toBe(202)
      expect(answer.body).toMatchObject({
        status: 'awaiting_approval',
        fence: 0,
        lease_token: null,
        lease_until: null,
      })
      const { checkpoint } = answer.body
      expect(checkpoint).toEqual({
        ...{ id: answer.body.checkpoint_id, status: 'pending', title: approval.title },
        approval_url: expect.stringContaining(`/approve/${answer.body.checkpoint_id}`),
        expires_at: iso(service.clock.now() + 600 * second_ms),
      })
      const shown = await service.ask('GET', `/v1/checkpoints/${checkpoint.id}`, { key: tenant.api_key })
      expect(shown.body).toMatchObject({ effect_id: answer.body.id, payload })
      const again = await claim(service, tenant, { key: 'x', approval })
      expect([again.status, again.body]).toEqual([202, answer.body])
      expectRefusal(await ask(service, tenant.api_key, answer.body.id, 'start'), 'INVALID_STATE', {
        status: 'awaiting_approval',
        checkpoint_id: checkpoint.id,
      })
      expect(await typesOf(service, tenant, answer.body.id)).toEqual(['effect.proposed'])
    })

    test('once given lets one start it, and a repeated claim answers 200 approved', async () => {
      const tenant = await service.signUp()
      const { id, key } = await approved(service, tenant)
      const again = await claim(service, tenant, { key })
      expect([again.status, again.body.status, again.body.lease_token]).toEqual([200, 'approved', null])
      const wrong = await ask(service, tenant.api_key, id, 'start', { payload_hash: hashOf('{}') })
      expectRefusal(wrong, 'EFFECT_KEY_REUSED', { effect_id: id })
      const started = await ask(service, tenant.api_key, id, 'start', { payload_hash, lease_seconds: 30 })
      expect(started.status).toBe(200)
      expect(started.body).toMatchObject({ status: 'running', fence: 1, lease_token, payload })
      const second = await ask(service, tenant.api_key, id, 'start')
      expect(second.body.error.code).toBe('EFFECT_IN_FLIGHT')
      expect(second.headers.get('retry-after')).toBe('30')
      expect(await typesOf(service, tenant, id)).toEqual([
        'effect.approved',
        'effect.proposed',
        'effect.started',
      ])
    })

    test('holds after a failure that may be retried, and after a lease that was to be retried', async () => {
      const tenant = await service.signUp()
      const { id } = await approved(service, tenant, { on_unknown: 'retry' })
      const first = (await ask(service, tenant.api_key, id, 'start')).body
      const failure = { lease_token: first.lease_token, error: 'busy', retry: true }
      expect((await ask(service, tenant.api_key, id, 'fail', failure)).body.status).toBe('approved')
      const second = (await ask(service, tenant.api_key, id, 'start')).body
      expect(second.fence).toBe(2)
      await runOut(service)
      expect((await read(service, tenant, id)).status).toBe('approved')
      expect((await ask(service, tenant.api_key, id, 'start')).body.fence).toBe(3)
    })

    test.each([
      ['rejected', 'reject'],
      ['cancelled', 'cancel'],
      ['rejected', 'auto_reject'],
      ['expired', 'dlq'],
    ])('that is %s by %s rejects the effect for good', async (status, how) => {
      const tenant = await service.signUp()
      const timing = how === 'reject' || how === 'cancel' ? {} : { timeout_action: how, timeout_seconds: 60 }
      const { id, key, checkpoint_id } = await proposed(service, tenant, {
        approval: { ...approval, ...timing },
      })
      if (how === 'reject') await decide(service, tenant, checkpoint_id, 'reject')
      else if (how === 'cancel')
        await service.ask('DELETE', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.api_key })
      else await runOut(service)
      const details = { effect_id: id, status, checkpoint_id }
      expectRefusal(await claim(service, tenant, { key }), 'EFFECT_REJECTED', details)
      expectRefusal(await ask(service, tenant.api_key, id, 'start'), 'EFFECT_REJECTED', details)
      expect(await read(service, tenant, id)).toMatchObject({ status: 'rejected', refused_as: status })
      expect(await typesOf(service, tenant, id)).toEqual(['effect.proposed', 'effect.rejected'])
      expect(await quotaOf(service, tenant)).toBe(0)
    })

    test('can be asked for an effect that is free', async () => {
      const tenant = await service.signUp()
      const { id, key, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      const asked = await proposed(service, tenant, { key })
      expect([asked.id, asked.status]).toEqual([id, 'awaiting_approval'])
      expect((await decide(service, tenant, asked.checkpoint_id, 'approve')).status).toBe(200)
      expect((await ask(service, tenant.api_key, id, 'start')).body.fence).toBe(2)
    })
  })

  describe('a permit', () => {
    const key_of = async (tenant: TestTenant) =>
      (await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })).body as {
        approval_key: string
        approval_key_id: string
      }

    test('is for the bytes that an approver has put in place, and both versions are kept', async () => {
      const tenant = await service.signUp()
      const { id, key, checkpoint_id } = await proposed(service, tenant, {
        approval: { ...approval, editable: true },
      })
      const text = '{"order":7, "amount":25.0}'
      const headers = { 'content-type': 'application/json' }
      const body = `{"effective_payload":${text}}`
      const path = `/v1/checkpoints/${checkpoint_id}/approve`
      expect((await service.ask('POST', path, { key: tenant.admin_key, headers, body })).status).toBe(200)
      const old = await ask(service, tenant.api_key, id, 'start', { payload_hash })
      expectRefusal(old, 'EFFECT_KEY_REUSED', { effect_id: id })
      const effective_hash = hashOf(text)
      const started = await ask(service, tenant.api_key, id, 'start', { payload_hash: effective_hash })
      expect(started.body).toMatchObject({ status: 'running', payload_hash, effective_hash, payload })
      expect(started.text).toContain(`"effective_payload":${text}`)
      const again = await claim(service, tenant, { key })
      expect(again.body.error.code).toBe('EFFECT_IN_FLIGHT')
      const approved = (await eventsOf(service, tenant, id)).find(
        ({ type }: { type: string }) => type === 'effect.approved',
      )
      expect(approved.data).toMatchObject({ payload_hash, effective_hash })
      const { lease_token } = started.body
      await ask(service, tenant.api_key, id, 'succeed', { lease_token })
      const bytes = await quotaOf(service, tenant, 'storage_bytes')
      service.clock.advance(7 * day_ms)
      await tick(service)
      expect(await read(service, tenant, id)).toMatchObject({
        payload: null,
        effective_payload: null,
        effective_hash,
      })
      // In the effect and in its approval.
      expect(bytes - (await quotaOf(service, tenant, 'storage_bytes'))).toBe(
        2 * (text.length + JSON.stringify(payload).length),
      )
    })

    test('that has ended lets nothing start, and rejects the effect for good', async () => {
      const tenant = await service.signUp()
      for (const how of ['start', 'claim'] as const) {
        const { id, key, checkpoint_id } = await proposed(service, tenant)
        const expires_at = iso(service.clock.now() + 60 * second_ms)
        await decide(service, tenant, checkpoint_id, 'approve', { expires_at })
        expect((await read(service, tenant, id)).permit_expires_at).toBe(expires_at)
        service.clock.advance(60 * second_ms)
        const answer =
          how === 'start'
            ? await ask(service, tenant.api_key, id, 'start')
            : await claim(service, tenant, { key })
        expectRefusal(answer, 'EFFECT_REJECTED', { effect_id: id, status: 'expired', checkpoint_id })
        expect(await read(service, tenant, id)).toMatchObject({ status: 'rejected', refused_as: 'expired' })
      }
      expect(await quotaOf(service, tenant)).toBe(0)
    })

    test('with uses lets other keys of the same type and bytes start under it', async () => {
      const tenant = await service.signUp()
      const { checkpoint_id } = await proposed(service, tenant, { key: 'first' })
      const under = { approval: { checkpoint_id } }
      const early = await claim(service, tenant, { ...under })
      expectRefusal(early, 'INVALID_STATE', { status: 'pending', checkpoint_id })
      await decide(service, tenant, checkpoint_id, 'approve', { uses: 3 })
      const other_bytes = await claim(service, tenant, { ...under, payload: { amount: 31 } })
      expect([other_bytes.status, other_bytes.body.error.code]).toEqual([422, 'EFFECT_KEY_REUSED'])
      const other_type = await claim(service, tenant, { ...under, type: 'mail' })
      expect([other_type.status, other_type.body.error.code]).toEqual([422, 'EFFECT_KEY_REUSED'])
      const answers = await Promise.all(Array.from({ length: 10 }, () => claim(service, tenant, under)))
      const started = answers.filter(({ status }) => status === 201)
      expect(started).toHaveLength(2)
      expect(started[0]!.body).toMatchObject({ status: 'running', checkpoint_id })
      for (const refused of answers.filter(({ status }) => status !== 201))
        expectRefusal(refused, 'EFFECT_REJECTED', { status: 'used_up', checkpoint_id })
      const again = await claim(service, tenant, { ...under, key: started[0]!.body.key })
      expect(again.body.error.code).toBe('EFFECT_IN_FLIGHT')
      expect((await claim(service, tenant, { key: 'first' })).body.status).toBe('approved')
      const unknown = { approval: { checkpoint_id: 'chk_01m7yjrz37hxnv52px0106nehd' } }
      expectRefusal(await claim(service, tenant, unknown), 'CHECKPOINT_NOT_FOUND')
      const both = await claim(service, tenant, { approval: { checkpoint_id, title: 'x' } })
      expect(both.body.error.code).toBe('VALIDATION_FAILED')
    })

    test('takes as many approvals as its policy asks for, by those whom it names', async () => {
      const tenant = await service.signUp()
      const [one, two, three] = [await key_of(tenant), await key_of(tenant), await key_of(tenant)]
      const approvers = [one.approval_key_id, two.approval_key_id]
      const policy = (body: object) =>
        service.ask('PUT', '/v1/effect-policies/refund', { key: tenant.admin_key, body })
      const rule = { approval: 'required', required_approvals: 2, approvers }
      expect((await policy({ ...rule, required_approvals: 3 })).body.error.code).toBe('VALIDATION_FAILED')
      expect((await policy({ ...rule, approvers: ['apk_01m7yjrz37hxnv52px0106nehd'] })).body.error.code).toBe(
        'VALIDATION_FAILED',
      )
      expect((await policy(rule)).status).toBe(200)
      const { id, checkpoint_id } = await proposed(service, tenant, {
        approval: { ...approval, required_approvals: 1, approvers: ['admin', three.approval_key_id] },
      })
      const path = `/v1/checkpoints/${checkpoint_id}/approve`
      const shown = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.api_key })
      expect([shown.body.required_approvals, shown.body.approvers]).toEqual([2, approvers])
      for (const key of [tenant.admin_key, three.approval_key])
        expect((await service.ask('POST', path, { key })).body.error.code).toBe('NOT_AN_APPROVER')
      expect((await service.ask('POST', path, { key: one.approval_key })).body.status).toBe('pending')
      expect((await read(service, tenant, id)).status).toBe('awaiting_approval')
      expect((await service.ask('POST', path, { key: two.approval_key })).body.status).toBe('approved')
      expect((await ask(service, tenant.api_key, id, 'start')).status).toBe(200)
    })
  })

  describe('a policy', () => {
    const set = async (tenant: TestTenant, type: string, body: object) => {
      const answer = await service.ask('PUT', `/v1/effect-policies/${type}`, { key: tenant.admin_key, body })
      expect(answer.status).toBe(200)
      return answer
    }

    test('that requires an approval asks for one that nobody asked for', async () => {
      const tenant = await service.signUp()
      const answer = await set(tenant, 'refund', { approval: 'required', lease_seconds_max: 20 })
      const now = iso(service.clock.now())
      expect([answer.status, answer.body]).toEqual([
        200,
        {
          ...{ type: 'refund', approval: 'required', required_approvals: 1, approvers: null },
          ...{ lease_seconds_max: 20, created_at: now, updated_at: now },
        },
      ])
      const asked = await claim(service, tenant)
      expect([asked.status, asked.body.checkpoint.title]).toEqual([202, 'Allow refund?'])
      expect((await claim(service, tenant, { type: 'mail' })).status).toBe(201)
      await decide(service, tenant, asked.body.checkpoint_id, 'approve')
      const started = await ask(service, tenant.api_key, asked.body.id, 'start', { lease_seconds: 600 })
      expect(started.body.lease_until).toBe(iso(service.clock.now() + 20 * second_ms))
    })

    test('for all types counts where a type has none of its own', async () => {
      const tenant = await service.signUp()
      await set(tenant, '*', { approval: 'required' })
      await set(tenant, 'mail', { approval: 'optional', lease_seconds_max: 5 })
      expect((await claim(service, tenant)).status).toBe(202)
      const mail = await claim(service, tenant, { type: 'mail' })
      expect([mail.status, mail.body.lease_seconds]).toEqual([201, 5])
      const list = await service.ask('GET', '/v1/effect-policies', { key: tenant.api_key })
      expect(list.body.items.map(({ type }: { type: string }) => type)).toEqual(['*', 'mail'])
      const gone = await service.ask('DELETE', '/v1/effect-policies/*', { key: tenant.admin_key })
      expect(gone.status).toBe(204)
      expect((await claim(service, tenant)).status).toBe(201)
      expectRefusal(
        await service.ask('GET', '/v1/effect-policies/*', { key: tenant.api_key }),
        'EFFECT_POLICY_NOT_FOUND',
      )
      expect(await quotaOf(service, tenant, 'effect_policies')).toBe(1)
    })

    test('that came later lets no effect without an approval start again', async () => {
      const tenant = await service.signUp()
      const { id, key, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      await set(tenant, 'refund', { approval: 'required' })
      expectRefusal(await ask(service, tenant.api_key, id, 'start'), 'EFFECT_APPROVAL_REQUIRED')
      const asked = await claim(service, tenant, { key })
      expect([asked.status, asked.body.id]).toEqual([202, id])
    })
  })

  describe('what is kept', () => {
    test('the payload and the result go with the days of the plan; the pair, its hash and the outcome stay', async () => {
      const tenant = await service.signUp()
      const bytes = () => quotaOf(service, tenant, 'storage_bytes')
      const { id, key, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: 'x'.repeat(100) })
      const before = await bytes()
      service.clock.advance(7 * day_ms - 1_000)
      await tick(service)
      expect((await read(service, tenant, id)).payload).toEqual(payload)
      service.clock.advance(1_000)
      await tick(service)
      expect(await read(service, tenant, id)).toMatchObject({
        status: 'succeeded',
        payload: null,
        result: null,
        payload_hash,
      })
      expect(before - (await bytes())).toBe(102 + JSON.stringify(payload).length)
      const again = await claim(service, tenant, { key })
      expect([again.status, again.body.status]).toEqual([200, 'succeeded'])
      expectRefusal(await claim(service, tenant, { key, payload: 1 }), 'EFFECT_KEY_REUSED', { effect_id: id })
    })

    test('also the bytes that its approval showed', async () => {
      const tenant = await service.signUp()
      const { id, checkpoint_id } = await approved(service, tenant)
      const { lease_token } = (await ask(service, tenant.api_key, id, 'start')).body
      await ask(service, tenant.api_key, id, 'succeed', { lease_token })
      service.clock.advance(7 * day_ms)
      await tick(service)
      const shown = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.api_key })
      expect(shown.body).toMatchObject({ status: 'approved', payload: null })
    })
  })

  describe('lists', () => {
    test('are newest first, by status, type, key and workflow', async () => {
      const tenant = await service.signUp()
      const of = (body: object) => claimed(service, tenant, body)
      const a = await of({ type: 'a', key: '1', workflow_id: 'w' })
      const b = await of({ type: 'b', key: '1', workflow_id: 'w' })
      const c = await of({ type: 'a', key: '2' })
      await ask(service, tenant.api_key, b.id, 'succeed', { lease_token: b.lease_token })
      const ids = async (query: string) => {
        const { body } = await service.ask('GET', `/v1/effects?${query}`, { key: tenant.api_key })
        return body.items.map(({ id }: { id: string }) => id)
      }
      expect(await ids('')).toEqual([c.id, b.id, a.id])
      expect(await ids('status=running')).toEqual([c.id, a.id])
      expect(await ids('type=a')).toEqual([c.id, a.id])
      expect(await ids('type=b&status=running')).toEqual([])
      expect(await ids('workflow_id=w')).toEqual([b.id, a.id])
      expect(await ids('workflow_id=w&status=succeeded')).toEqual([b.id])
      expect(await ids('workflow_id=w&type=a')).toEqual([a.id])
      expect(await ids('type=a&key=2')).toEqual([c.id])
      expect(await ids('type=a&key=2&status=failed')).toEqual([])
      expect(await ids('key=1')).toEqual([a.id, b.id])
      const first = await service.ask('GET', '/v1/effects?key=1&limit=1', { key: tenant.api_key })
      expect(await ids(`key=1&limit=1&cursor=${first.body.next_cursor}`)).toEqual([b.id])
    })
  })

  test('1,000 racers on one permit give one start', async () => {
    const tenant = await service.signUp()
    const { id } = await approved(service, tenant)
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () => ask(service, tenant.api_key, id, 'start', { payload_hash })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const codes = new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.error.code))
    expect([...codes]).toEqual(['EFFECT_IN_FLIGHT'])
    expect((await read(service, tenant, id)).fence).toBe(1)
  }, 60_000)
})
