import { describe, expect, test } from 'bun:test'
import {
  approval,
  approved,
  ask,
  claim,
  claimed,
  decide,
  eventsOf,
  expectRefusal,
  lease_token,
  payload,
  payload_hash,
  proposed,
  quotaOf,
  read,
  runOut,
  tick,
  typesOf,
} from '../../test/support/effects.ts'
import { forEachRacedService, served, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso, minute_ms, second_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'

forEachRacedService('Approvals of effects', (service) => {
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

    const kib = 1_024
    const schemaText = (bytes: number) => {
      const enums = Array.from({ length: 16 }, (_, i) => `"${String(i).padEnd(910, 'x')}"`)
      const text = `{"type":"object","properties":{"a":{"type":"string","enum":[${enums}]}}}`
      return text.replace(/}$/, `${' '.repeat(bytes - text.length)}}`)
    }
    test.each([
      ['a prompt', (bytes: number) => `"prompt":"${'x'.repeat(bytes)}"`, 32 * kib],
      [
        'a prompt of ü',
        (bytes: number) => `"prompt":"${'ü'.repeat(bytes / 2)}${'x'.repeat(bytes % 2)}"`,
        32 * kib,
      ],
      ['an answer_schema', (bytes: number) => `"answer_schema":${schemaText(bytes)}`, 16 * kib],
    ] as const)(
      'has %s up to its limit in bytes; past it 413, and nothing is changed',
      async (_, member, most) => {
        const tenant = await service.signUp()
        const asked = (bytes: number) => {
          const text = `{"type":"refund","key":"k","payload":1,"approval":{"title":"May I?",${member(bytes)}}}`
          return service.ask('POST', '/v1/effects', {
            key: tenant.api_key,
            body: new TextEncoder().encode(text),
          })
        }
        const events = async () =>
          (await service.ask('GET', '/v1/events?limit=200', { key: tenant.api_key })).body.items.length
        const before = await events()
        const refused = await asked(most + 1)
        expect([refused.status, refused.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
        expect([await quotaOf(service, tenant), await events()]).toEqual([0, before])
        const checkpoints = await service.ask('GET', '/v1/checkpoints', { key: tenant.api_key })
        expect(checkpoints.body.items).toEqual([])
        const taken = await asked(most)
        expect([taken.status, taken.body.error?.code]).toEqual([202, undefined])
      },
    )

    test('tells its approver what these bytes are for: the type, key and note of the effect', async () => {
      const tenant = await service.signUp()
      const note = 'the customer asked twice'
      const { key, checkpoint_id } = await proposed(service, tenant, { note })
      const effect = { type: 'refund', key, note }
      const { approval_key } = (
        await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
      ).body
      for (const [path, own] of [
        [`/v1/approvals/${checkpoint_id}`, approval_key],
        [`/v1/checkpoints/${checkpoint_id}`, tenant.api_key],
      ])
        expect((await service.ask('GET', path, { key: own })).body.effect).toEqual(effect)
      const list = await service.ask('GET', '/v1/checkpoints', { key: tenant.admin_key })
      expect(list.body.items[0].effect).toEqual(effect)
    })

    test('shows the hash of these bytes, of JSON null as well; a question about an effect has none', async () => {
      const tenant = await service.signUp()
      const { approval_key } = (
        await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
      ).body
      const shown = async (id: string) => {
        const checkpoint = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })
        const seen = await service.ask('GET', `/v1/approvals/${id}`, { key: approval_key })
        const { payload, payload_hash } = checkpoint.body
        expect(seen.body).toMatchObject({ effect_payload: payload, effect_payload_hash: payload_hash })
        return [payload, payload_hash]
      }
      for (const bytes of [payload, null]) {
        const effect = await proposed(service, tenant, { payload: bytes })
        expect(await shown(effect.checkpoint_id)).toEqual([bytes, effect.payload_hash])
      }
      const { id } = await claimed(service, tenant, { on_unknown: 'ask' })
      await runOut(service)
      expect(await shown((await read(service, tenant, id)).question_id)).toEqual([null, null])
    })

    test('names its own member of the body when its callback_url is refused', async () => {
      const tenant = await service.signUp()
      for (const callback_url of ['/decided', 'http://10.0.0.1/']) {
        const { status, body } = await claim(service, tenant, { approval: { ...approval, callback_url } })
        const { code, details } = body.error
        const paths = details.issues.map(({ path }: { path: string }) => path)
        expect([status, code, paths]).toEqual([400, 'VALIDATION_FAILED', ['/approval/callback_url']])
      }
    })

    test('has its callback_url judged when it is asked for, and not again by a claim that is answered its state', async () => {
      const tenant = await service.signUp()
      const callback_url = `${service.url}/hook/inb_of-nobody`
      const effect = await proposed(service, tenant, { approval: { ...approval, callback_url } })
      const repeated = (key = effect.key) =>
        claim(service, tenant, { key, approval: { ...approval, callback_url: 'http://10.0.0.1/' } })
      expect(await repeated()).toMatchObject({ status: 202, body: { id: effect.id } })
      await decide(service, tenant, effect.checkpoint_id, 'approve')
      expect(await repeated()).toMatchObject({ status: 200, body: { id: effect.id, status: 'approved' } })
      const { lease_token } = (await ask(service, tenant.api_key, effect.id, 'start')).body
      expectRefusal(await repeated(), 'EFFECT_IN_FLIGHT', expect.anything())
      const released = { lease_token, error: 'busy', retry: true }
      await ask(service, tenant.api_key, effect.id, 'fail', released)
      expect((await repeated()).status).toBe(200)
      expect((await repeated('another')).body.error.code).toBe('VALIDATION_FAILED')
    })

    test('has it not judged again either by a claim that finds its permit over', async () => {
      const tenant = await service.signUp()
      const { id, key, checkpoint_id } = await proposed(service, tenant)
      const expires_at = iso(service.clock.now() + minute_ms)
      await decide(service, tenant, checkpoint_id, 'approve', { expires_at })
      service.clock.advance(minute_ms)
      const repeated = await claim(service, tenant, {
        key,
        approval: { ...approval, callback_url: 'http://10.0.0.1/' },
      })
      expectRefusal(repeated, 'EFFECT_REJECTED', { effect_id: id, status: 'expired', checkpoint_id })
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

    test('can be asked for an effect that is free, and is in its workflow', async () => {
      const tenant = await service.signUp()
      const { id, key, lease_token } = await claimed(service, tenant, { workflow_id: 'w' })
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      const asked = await proposed(service, tenant, { key })
      expect([asked.id, asked.status]).toEqual([id, 'awaiting_approval'])
      const flow = await service.ask('GET', '/v1/checkpoints?workflow_id=w', { key: tenant.api_key })
      expect(flow.body.items.map(({ id }: { id: string }) => id)).toEqual([asked.checkpoint_id])
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

    describe('with uses, for an effect that is free again,', () => {
      /** Released by its holder, without an approval. */
      async function freed(tenant: TestTenant, key: string) {
        const { id, lease_token } = await claimed(service, tenant, { key })
        const failure = { lease_token, error: 'busy', retry: true }
        expect((await ask(service, tenant.api_key, id, 'fail', failure)).body.status).toBe('ready')
        return id
      }
      const usesLeft = async ({ api_key }: TestTenant, id: string) =>
        (await service.ask('GET', `/v1/checkpoints/${id}`, { key: api_key })).body.uses_left

      test('is its approval from then on, also where a policy requires one, and loses a use', async () => {
        const tenant = await service.signUp()
        const id = await freed(tenant, 'x')
        const { checkpoint_id } = await proposed(service, tenant)
        const expires_at = iso(service.clock.now() + 600 * second_ms)
        await decide(service, tenant, checkpoint_id, 'approve', { uses: 3, expires_at })
        const policy = { key: tenant.admin_key, body: { approval: 'required' } }
        expect((await service.ask('PUT', '/v1/effect-policies/refund', policy)).status).toBe(200)
        const under = { key: 'x', approval: { checkpoint_id }, lease_token: 'a-token-of-my-own-0001' }
        const again = await claimed(service, tenant, under)
        expect(again).toMatchObject({ id, status: 'running', fence: 2, checkpoint_id, checkpoint: null })
        expect(again.permit_expires_at).toBe(expires_at)
        expect((await claim(service, tenant, under)).body).toEqual(again)
        expect(await usesLeft(tenant, checkpoint_id)).toBe(2)
        const failure = { lease_token: again.lease_token, error: 'busy', retry: true }
        const free = await ask(service, tenant.api_key, id, 'fail', failure)
        expect(free.body).toMatchObject({ status: 'approved', checkpoint_id, permit_expires_at: expires_at })
        const { lease_token } = again
        const late = await ask(service, tenant.api_key, id, 'start', { lease_token })
        expectRefusal(late, 'EFFECT_NOT_HELD', { status: 'approved' })
        expect(await typesOf(service, tenant, id)).toEqual([
          ...['effect.claimed', 'effect.retried', 'effect.retried', 'effect.started'],
        ])
      })

      test('is refused as for a new one: unknown, pending, rejected, over, used up, or less than the policy wants', async () => {
        const tenant = await service.signUp()
        const id = await freed(tenant, 'x')
        const of = async (verb?: string, body: object = {}) => {
          const { checkpoint_id } = await proposed(service, tenant)
          if (verb) expect((await decide(service, tenant, checkpoint_id, verb, body)).status).toBe(200)
          return checkpoint_id
        }
        const expires_at = iso(service.clock.now() + second_ms)
        const unknown = 'chk_01m7yjrz37hxnv52px0106nehd'
        const [pending, rejected, over] = [
          ...[await of(), await of('reject'), await of('approve', { uses: 2, expires_at })],
        ]
        const [used_up, given] = [await of('approve'), await of('approve', { uses: 2 })]
        service.clock.advance(second_ms)
        const refused = async (key: string) => [
          await claim(service, tenant, { key, approval: { checkpoint_id: unknown } }),
          await claim(service, tenant, { key, approval: { checkpoint_id: pending } }),
          await claim(service, tenant, { key, approval: { checkpoint_id: rejected } }),
          await claim(service, tenant, { key, approval: { checkpoint_id: over } }),
          await claim(service, tenant, { key, approval: { checkpoint_id: used_up } }),
        ]
        for (const key of ['x', 'new']) {
          const [one, two, three, four, five] = await refused(key)
          expectRefusal(one!, 'CHECKPOINT_NOT_FOUND')
          expectRefusal(two!, 'INVALID_STATE', { status: 'pending', checkpoint_id: pending })
          expectRefusal(three!, 'EFFECT_REJECTED', { status: 'rejected', checkpoint_id: rejected })
          expectRefusal(four!, 'EFFECT_REJECTED', { status: 'expired', checkpoint_id: over })
          expectRefusal(five!, 'EFFECT_REJECTED', { status: 'used_up', checkpoint_id: used_up })
        }
        const policy = { key: tenant.admin_key, body: { approval: 'optional', required_approvals: 2 } }
        expect((await service.ask('PUT', '/v1/effect-policies/refund', policy)).status).toBe(200)
        const less = await claim(service, tenant, { key: 'x', approval: { checkpoint_id: given } })
        expectRefusal(less, 'EFFECT_APPROVAL_REQUIRED', { checkpoint_id: given })
        expect(await read(service, tenant, id)).toMatchObject({
          status: 'ready',
          checkpoint_id: null,
          fence: 1,
        })
      })

      test('loses no use when another has the lease first', async () => {
        const tenant = await service.signUp()
        const id = await freed(tenant, 'x')
        const { checkpoint_id } = await proposed(service, tenant)
        await decide(service, tenant, checkpoint_id, 'approve', { uses: 9 })
        const under = { key: 'x', approval: { checkpoint_id } }
        const answers = await Promise.all(Array.from({ length: 7 }, () => claim(service, tenant, under)))
        expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(6).fill(409)])
        expect(await usesLeft(tenant, checkpoint_id)).toBe(8)
        expect((await read(service, tenant, id)).fence).toBe(2)
      })
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
      expect(started.body.lease_seconds).toBe(20)
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

    test('that came later shortens no lease of an effect that was claimed before', async () => {
      const tenant = await service.signUp()
      const { id, key, lease_token } = await claimed(service, tenant)
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
      await set(tenant, 'refund', { approval: 'optional', lease_seconds_max: 5 })
      const again = await claim(service, tenant, { key, lease_seconds: 600 })
      expect([again.status, again.body.id, again.body.lease_seconds]).toEqual([201, id, 600])
      const other = await claim(service, tenant, { key: 'another', lease_seconds: 600 })
      expect([other.status, other.body.lease_seconds]).toEqual([201, 5])
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

  test('1,000 racers on one permit give one start', async () => {
    const tenant = await service.signUp()
    const { id } = await approved(service, tenant)
    const start = () => ask(service, tenant.api_key, id, 'start', { payload_hash })
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => served(start)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const codes = new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.error.code))
    expect([...codes]).toEqual(['EFFECT_IN_FLIGHT'])
    expect((await read(service, tenant, id)).fence).toBe(1)
  }, 300_000)
})
