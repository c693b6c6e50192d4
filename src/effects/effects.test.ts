import { describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import {
  approved,
  ask,
  claim,
  claimed,
  decide,
  effect_id,
  eventsOf,
  expectRefusal,
  lease_token,
  payload,
  payload_hash,
  quotaOf,
  read,
  runOut,
  tick,
  typesOf,
} from '../../test/support/effects.ts'
import { few_connections, forEachService, TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso, second_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'

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

    test('answers texts of its caller as they came, in its own answer and in lists', async () => {
      const tenant = await service.signUp()
      const texts = { key: 'a "key" \\ \n\u0001 é 🦊', note: '"}\t\u2028', workflow_id: 'w "1"' }
      const effect = await claimed(service, tenant, texts)
      expect(effect).toMatchObject(texts)
      const failure = { lease_token: effect.lease_token, error: 'no "answer" \\', retry: true }
      const failed = await ask(service, tenant.api_key, effect.id, 'fail', failure)
      expect(failed.body).toMatchObject({ ...texts, error: failure.error })
      const list = await service.ask('GET', '/v1/effects', { key: tenant.api_key })
      const { payload: _, effective_payload: __, result: ___, ...listed } = failed.body
      expect(list.body.items).toEqual([listed])
    })

    test('has in the documentation the hash of the payload that is shown there', async () => {
      const page = await Bun.file(new URL('../../docs/effects.md', import.meta.url)).text()
      const [, hash, text] = page.match(/"payload_hash": "(\w+)",[^`]*"payload": (.+),\n {2}"result"/)!
      expect(hash).toBe(hashOf(text!))
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

    // It came late, after the answer to its repeat: nobody would know of the lease, and the effect would end unknown.
    test('under the token of a lease that was released answers EFFECT_NOT_HELD, and another begins', async () => {
      const tenant = await service.signUp()
      const asked = { key: 'x', lease_token: 'a-token-of-my-own-0001' }
      const { id, lease_token } = await claimed(service, tenant, asked)
      const failure = { lease_token, error: 'It was stopped before it was begun.', retry: true }
      const free = (await ask(service, tenant.api_key, id, 'fail', failure)).body
      expectRefusal(await claim(service, tenant, asked), 'EFFECT_NOT_HELD', { status: 'ready' })
      const start = await ask(service, tenant.api_key, id, 'start', { lease_token })
      expectRefusal(start, 'EFFECT_NOT_HELD', { status: 'ready' })
      expect(await read(service, tenant, id)).toEqual(free)
      const other = { key: 'x', lease_token: 'a-token-of-my-own-0002' }
      expect(await claimed(service, tenant, other)).toMatchObject({ id, fence: 2 })
    })

    test('under the token of a lease that ran out may begin where the effect is free without a report', async () => {
      const tenant = await service.signUp()
      const asked = { key: 'x', lease_token: 'a-token-of-my-own-0001', on_unknown: 'retry' }
      await claimed(service, tenant, asked)
      await runOut(service)
      expect(await claimed(service, tenant, asked)).toMatchObject({ status: 'running', fence: 2 })
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
      expect(second.lease_seconds).toBe(5)
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

    test.each([
      ['ready', false, 'failed'],
      ['approved', false, 'failed'],
      ['ready', true, 'ready'],
      ['approved', true, 'approved'],
    ])(
      'and leaves it %s may be reported as failed, with retry %p: it is %s',
      async (freed, retry, status) => {
        const tenant = await service.signUp()
        const body = { key: 'x', on_unknown: 'retry' }
        const effect =
          freed === 'ready'
            ? await claimed(service, tenant, body)
            : (await ask(service, tenant.api_key, (await approved(service, tenant, body)).id, 'start')).body
        const { id, lease_token } = effect
        await runOut(service)
        expect(await read(service, tenant, id)).toMatchObject({
          status: freed,
          lease_until: effect.lease_until,
        })
        const failure = { lease_token, error: 'declined', retry }
        const failed = await ask(service, tenant.api_key, id, 'fail', failure)
        expect([failed.status, failed.body]).toMatchObject([
          200,
          { status, error: 'declined', lease_until: null },
        ])
        expect((await ask(service, tenant.api_key, id, 'fail', failure)).body).toEqual(failed.body)
        const late = await ask(service, tenant.api_key, id, 'succeed', { lease_token })
        expectRefusal(late, 'EFFECT_NOT_HELD', { status })
        const again = await ask(service, tenant.api_key, id, 'start')
        if (retry) expect([again.status, again.body.fence]).toEqual([200, 2])
        else expectRefusal(again, 'INVALID_STATE', { status, checkpoint_id: effect.checkpoint_id })
        expect(await quotaOf(service, tenant)).toBe(retry ? 1 : 0)
        const settled = (await eventsOf(service, tenant, id))
          .filter(({ type }: { type: string }) => type === 'effect.retried' || type === 'effect.failed')
          .map(({ type, data }: { type: string; data: { ran_out?: boolean } }) => [type, data.ran_out])
        const reported = retry ? ['effect.retried', false] : ['effect.failed', undefined]
        expect(settled).toEqual([['effect.retried', true], reported])
      },
    )

    test('with on_unknown ask opens a checkpoint', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { key: 'a `b`\n[c](http://d)', on_unknown: 'ask' })
      await runOut(service)
      const unknown = await read(service, tenant, effect.id)
      expect(unknown.status).toBe('unknown')
      const path = `/v1/checkpoints/${unknown.question_id}`
      const question = (await service.ask('GET', path, { key: tenant.api_key })).body
      expect(question).toMatchObject({ status: 'pending', title: 'Did refund happen?', effect_id: effect.id })
      expect(question.effect).toEqual({ type: 'refund', key: effect.key, note: null })
      expect(question.prompt).toContain('- Key: `a b [c](http://d)`\n')
      // Its holder reports after all: nobody needs to be asked.
      const { lease_token } = effect
      expect((await ask(service, tenant.api_key, effect.id, 'succeed', { lease_token })).body).toMatchObject({
        status: 'succeeded',
        question_id: null,
      })
      expect((await service.ask('GET', path, { key: tenant.api_key })).body).toMatchObject({
        status: 'cancelled',
        resolved_by: `agent:${tenant.agent_id}`,
      })
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

    test('ask has no uses and no end to give: its answer is of one effect', async () => {
      const tenant = await service.signUp()
      const effect = await claimed(service, tenant, { on_unknown: 'ask' })
      await runOut(service)
      const { question_id } = await read(service, tenant, effect.id)
      const terms = { answer: { outcome: 'retry' }, uses: 2, expires_at: '2030-01-01T00:00:00Z' }
      const refused = await decide(service, tenant, question_id, 'approve', terms)
      const issues: { path: string }[] = refused.body.error.details.issues
      expect([refused.status, ...issues.map(({ path }) => path)]).toEqual([400, '/uses', '/expires_at'])
      expect((await read(service, tenant, effect.id)).status).toBe('unknown')
    })

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
        expectRefusal(early, 'INVALID_STATE', { status: 'running', fence: 1 })
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

    test('of the fence that it names: the lease after it is left alone', async () => {
      const tenant = await service.signUp()
      const { id, key } = await claimed(service, tenant)
      await runOut(service)
      const retry = { outcome: 'retry', fence: 1 }
      const freed = await ask(service, tenant.admin_key, id, 'resolve', retry)
      expect(freed.body).toMatchObject({ status: 'ready', fence: 1, resolved_by: 'admin' })
      expect((await ask(service, tenant.admin_key, id, 'resolve', retry)).body).toEqual(freed.body)
      expect(await claimed(service, tenant, { key })).toMatchObject({ fence: 2, resolved_by: null })
      await runOut(service)
      for (const outcome of ['succeeded', 'failed', 'retry']) {
        const repeat = await ask(service, tenant.admin_key, id, 'resolve', { ...retry, outcome })
        expectRefusal(repeat, 'INVALID_STATE', { status: 'unknown', fence: 2 })
      }
      expect((await read(service, tenant, id)).status).toBe('unknown')
      const second = await ask(service, tenant.admin_key, id, 'resolve', { ...retry, fence: 2 })
      expect(second.body).toMatchObject({ status: 'ready', resolved_by: 'admin' })
    })

    test('whose question is then cancelled in the name of the admin', async () => {
      const tenant = await service.signUp()
      const { id } = await claimed(service, tenant, { on_unknown: 'ask' })
      await runOut(service)
      const { question_id } = await read(service, tenant, id)
      const resolved = await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'failed' })
      expect(resolved.body).toMatchObject({ status: 'failed', question_id: null })
      const question = await service.ask('GET', `/v1/checkpoints/${question_id}`, { key: tenant.admin_key })
      expect(question.body).toMatchObject({ status: 'cancelled', resolved_by: 'admin' })
    })

    test('or closes one that is free', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      const retry = await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'retry' })
      expectRefusal(retry, 'INVALID_STATE', { status: 'ready', fence: 1 })
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

  describe('while the tenant is frozen', () => {
    const freeze = ({ tenant_id, admin_key }: TestTenant, verb: 'freeze' | 'resume') =>
      service.ask('POST', `/v1/tenants/${tenant_id}/${verb}`, { key: admin_key, body: {} })

    test('nothing begins, what has happened is recorded, and leases end later by the frozen time', async () => {
      const tenant = await service.signUp()
      const [done, held, free] = [
        await claimed(service, tenant),
        await claimed(service, tenant),
        await claimed(service, tenant),
      ]
      await ask(service, tenant.api_key, free.id, 'fail', {
        ...{ lease_token: free.lease_token },
        error: 'busy',
        retry: true,
      })
      const left_ms = Date.parse(held.lease_until) - service.clock.now()
      expect((await freeze(tenant, 'freeze')).status).toBe(200)
      expect((await claim(service, tenant)).body.error.code).toBe('TENANT_FROZEN')
      expect((await ask(service, tenant.api_key, free.id, 'start')).body.error.code).toBe('TENANT_FROZEN')
      await runOut(service, 1_000)
      expect((await read(service, tenant, held.id)).status).toBe('running')
      const { lease_token } = done
      const recorded = await ask(service, tenant.api_key, done.id, 'succeed', { lease_token, result: 1 })
      expect(recorded.body).toMatchObject({ status: 'succeeded', result: 1 })
      expect((await freeze(tenant, 'resume')).status).toBe(200)
      await tick(service)
      const after = await read(service, tenant, held.id)
      expect([after.status, Date.parse(after.lease_until) - service.clock.now()]).toEqual([
        'running',
        left_ms,
      ])
      service.clock.advance(left_ms - 1)
      await tick(service)
      expect((await read(service, tenant, held.id)).status).toBe('running')
      service.clock.advance(1)
      await tick(service)
      expect((await read(service, tenant, held.id)).status).toBe('unknown')
    })

    test('a lease that its holder released runs out when it is given again, though it was held meanwhile', async () => {
      const tenant = await service.signUp()
      const { id, key, lease_token } = await claimed(service, tenant)
      await freeze(tenant, 'freeze')
      await runOut(service, 100)
      const failure = { lease_token, error: 'busy', retry: true }
      expect((await ask(service, tenant.api_key, id, 'fail', failure)).body.status).toBe('ready')
      await freeze(tenant, 'resume')
      await tick(service)
      expect((await claimed(service, tenant, { key })).fence).toBe(2)
      await runOut(service)
      expect((await read(service, tenant, id)).status).toBe('unknown')
    })

    test('leases end that ran out before the freeze, however many bytes they take', async () => {
      const tenant = await service.signUp()
      const payload = 'x'.repeat(250_000)
      for (let i = 0; i < 20; i++) await claimed(service, tenant, { payload })
      service.clock.advance(60 * second_ms)
      await freeze(tenant, 'freeze')
      service.clock.advance(second_ms)
      await tick(service)
      await freeze(tenant, 'resume')
      await tick(service)
      const path = '/v1/effects?limit=100&status='
      const of = async (status: string) =>
        (await service.ask('GET', path + status, { key: tenant.api_key })).body.items.length
      expect([await of('running'), await of('unknown')]).toEqual([0, 20])
    }, 300_000)

    test('a question that is opened meanwhile is open for as long after the resume as any other', async () => {
      const tenant = await service.signUp()
      const { id } = await claimed(service, tenant, { on_unknown: 'ask' })
      service.clock.advance(60 * second_ms)
      await freeze(tenant, 'freeze')
      service.clock.advance(day_ms)
      await tick(service) // it had run out before the freeze
      const { question_id } = await read(service, tenant, id)
      service.clock.advance(day_ms)
      await freeze(tenant, 'resume')
      const path = `/v1/checkpoints/${question_id}`
      const { status, expires_at } = (await service.ask('GET', path, { key: tenant.api_key })).body
      expect([status, expires_at]).toEqual(['pending', iso(service.clock.now() + 7 * day_ms)])
    })

    test('the holder of a lease may extend it, from the moment of the freeze', async () => {
      const tenant = await service.signUp()
      const { id, lease_token } = await claimed(service, tenant)
      const frozen_at = service.clock.now()
      await freeze(tenant, 'freeze')
      service.clock.advance(500 * second_ms)
      const extended = await ask(service, tenant.api_key, id, 'extend', { lease_token, lease_seconds: 90 })
      expect(extended.body.lease_until).toBe(iso(frozen_at + 90 * second_ms))
      await freeze(tenant, 'resume')
      await tick(service)
      expect((await read(service, tenant, id)).lease_until).toBe(iso(service.clock.now() + 90 * second_ms))
    })
  })

  test('an agent that only proposes gets an approval that it did not ask for', async () => {
    const tenant = await service.signUp()
    const free = await claimed(service, tenant)
    await ask(service, tenant.api_key, free.id, 'fail', {
      lease_token: free.lease_token,
      error: 'busy',
      retry: true,
    })
    const path = `/v1/agents/${tenant.agent_id}`
    expect(
      (await service.ask('PATCH', path, { key: tenant.admin_key, body: { mode: 'propose' } })).status,
    ).toBe(200)
    const asked = await claim(service, tenant)
    expect([asked.status, asked.body.checkpoint.title]).toEqual([202, 'Allow refund?'])
    expectRefusal(await ask(service, tenant.api_key, free.id, 'start'), 'EFFECT_APPROVAL_REQUIRED')
    expect((await claim(service, tenant, { key: free.key })).status).toBe(202)
    await decide(service, tenant, asked.body.checkpoint_id, 'approve')
    expect((await ask(service, tenant.api_key, asked.body.id, 'start')).status).toBe(200)
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
})

forEachDatabase('A request that waits for an effect', (databases) => {
  test('is answered when the lease runs out, without another look', async () => {
    const service = new TestService(few_connections)
    service.looks_again = false
    await service.start(await databases.newUrlWithTables())
    try {
      const tenant = await service.signUp()
      for (const [on_unknown, status] of [
        ['hold', 'unknown'],
        ['ask', 'unknown'],
        ['retry', 'ready'],
      ]) {
        const { id } = await claimed(service, tenant, { on_unknown, lease_seconds: 10 })
        const looked = new Promise<void>((resolve) => {
          service.app.db.onStatement((name) => name === 'effects.find' && resolve())
        })
        const waiting = service.ask('GET', `/v1/effects/${id}?wait=55`, { key: tenant.api_key })
        await looked
        await runOut(service, 10)
        expect((await waiting).body).toMatchObject({ id, status })
      }
    } finally {
      await service.stop()
    }
  })
})
