import { describe, expect, test } from 'bun:test'
import { askForEffect, heardDecisions } from '../../test/support/effect-checkpoints.ts'
import { eventsOf } from '../../test/support/events.ts'
import { receiversOfFile } from '../../test/support/receivers.ts'
import { forEachService } from '../../test/support/service.ts'
import { approvalsOf } from '../../test/support/steering.ts'
import { iso } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'
import { answerText } from './answer.ts'
import { schemaIssues } from './answer-schema.ts'
import { listComments } from './comment-routes.ts'

const receiverOf = receiversOfFile()
const heard = heardDecisions()

const refund = {
  type: 'object',
  title: 'Refund',
  properties: {
    amount: { type: 'integer', title: 'Amount in EUR', minimum: 1, maximum: 500 },
    note: { type: 'string', maxLength: 20 },
    speed: { type: 'string', enum: ['now', 'later'] },
    by: { type: 'string', format: 'date' },
    notify: { type: 'boolean' },
  },
  required: ['amount'],
}

describe('An answer_schema', () => {
  test('has types, enum, format, lengths, bounds, required, titles and descriptions', () => {
    expect(schemaIssues({ ...refund, description: 'How much?' }, '')).toEqual([])
  })

  const field = (more: object) => ({ type: 'object', properties: { a: more } })
  test.each([
    ['a list', [], ''],
    ['another type', { ...refund, type: 'array' }, '/type'],
    ['no properties', { type: 'object' }, '/properties'],
    ['none of them', { type: 'object', properties: {} }, '/properties'],
    ['a keyword of its own', { ...refund, additionalProperties: false }, '/additionalProperties'],
    ['a reference', { ...refund, $ref: '#' }, '/$ref'],
    ['a required field that is not there', { ...refund, required: ['b'] }, '/required'],
    ['the same field required twice', { ...refund, required: ['amount', 'amount'] }, '/required'],
    ['a field without a type', field({}), '/properties/a/type'],
    ['a field of two types', field({ type: ['string', 'null'] }), '/properties/a/type'],
    ['a nested object', field({ type: 'object' }), '/properties/a/type'],
    ['a field that is null', field(null as never), '/properties/a'],
    ['a pattern', field({ type: 'string', pattern: '^(a+)+$' }), '/properties/a/pattern'],
    ['a default', field({ type: 'string', default: 'x' }), '/properties/a/default'],
    ['an unknown format', field({ type: 'string', format: 'regex' }), '/properties/a/format'],
    ['a format of a number', field({ type: 'number', format: 'date' }), '/properties/a/format'],
    ['a bound of a text', field({ type: 'string', minimum: 1 }), '/properties/a/minimum'],
    ['a length that is not whole', field({ type: 'string', maxLength: 1.5 }), '/properties/a/maxLength'],
    ['a length below 0', field({ type: 'string', minLength: -1 }), '/properties/a/minLength'],
    ['a length that no answer has', field({ type: 'string', minLength: 4_097 }), '/properties/a/minLength'],
    [
      'bounds the wrong way round',
      field({ type: 'number', minimum: 2, maximum: 1 }),
      '/properties/a/minimum',
    ],
    ['an empty enum', field({ type: 'string', enum: [] }), '/properties/a/enum'],
    ['the same value twice', field({ type: 'string', enum: ['x', 'x'] }), '/properties/a/enum'],
    ['a value of another type', field({ type: 'integer', enum: [1, '2'] }), '/properties/a/enum'],
    ['an enum of booleans', field({ type: 'boolean', enum: [true] }), '/properties/a/enum'],
    ['a title that is not text', field({ type: 'string', title: 1 }), '/properties/a/title'],
    ['a title with NUL', field({ type: 'string', title: '\0' }), '/properties/a/title'],
  ])('with %s is refused', (_, schema, path) => {
    expect(schemaIssues(schema, '').map((issue) => issue.path)).toContain(path)
  })

  test.each([
    [20, 0],
    [21, 1],
  ])('has at most 20 fields: %i', (count, issues) => {
    const properties = Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`f${i}`, { type: 'string' }]),
    )
    expect(schemaIssues({ type: 'object', properties }, '')).toHaveLength(issues)
  })

  test.each(['', 'a b', '__proto__', 'x'.repeat(65), 'a/b'])('names no field %p', (name) => {
    const properties = JSON.parse(`{${JSON.stringify(name)}: {"type": "string"}}`)
    expect(schemaIssues({ type: 'object', properties }, '')).toHaveLength(1)
  })

  test('is one of constructor and toString as of any other name', () => {
    const schema = { type: 'object' as const, properties: { toString: { type: 'string' as const } } }
    expect(schemaIssues(schema, '')).toEqual([])
    expect(answerText(schema as never, {})).toEqual({ text: '{}' })
    expect(answerText(schema as never, { constructor: 1 })).toMatchObject({
      issues: [{ path: '/answer/constructor' }],
    })
  })
})

describe('An answer', () => {
  const read = (given: unknown) => answerText(refund as never, given)

  test('is stored in the order of the schema', () => {
    expect(read({ notify: true, amount: 40 })).toEqual({ text: '{"amount":40,"notify":true}' })
    expect(read({ amount: 40, note: null })).toEqual({ text: '{"amount":40}' })
  })

  test.each([
    [{}, '/answer/amount'],
    [{ amount: null }, '/answer/amount'],
    [{ amount: 0 }, '/answer/amount'],
    [{ amount: 501 }, '/answer/amount'],
    [{ amount: 1.5 }, '/answer/amount'],
    [{ amount: '40' }, '/answer/amount'],
    [{ amount: 40, other: 1 }, '/answer/other'],
    [{ amount: 40, note: 'x'.repeat(21) }, '/answer/note'],
    [{ amount: 40, note: 'a\0' }, '/answer/note'],
    [{ amount: 40, speed: 'never' }, '/answer/speed'],
    [{ amount: 40, by: '2026-02-30' }, '/answer/by'],
    [{ amount: 40, notify: 'yes' }, '/answer/notify'],
    [[], '/answer'],
  ])('%p is refused at %s', (given, path) => {
    expect(read(given)).toEqual({ issues: [{ path, message: expect.any(String) }] })
  })

  test.each([
    ['date', '2026-01-31', '2026-1-31'],
    ['date-time', '2026-01-31T12:00:00+01:00', '2026-01-31T12:00:00'],
    ['email', 'kim@example.com', 'kim@example'],
    ['uri', 'https://example.com/a', 'example.com/a'],
  ] as const)('a %s is %s, and not %s', (format, right, wrong) => {
    const schema = { type: 'object' as const, properties: { a: { type: 'string' as const, format } } }
    expect(answerText(schema, { a: right })).toEqual({ text: JSON.stringify({ a: right }) })
    expect(answerText(schema, { a: wrong })).toMatchObject({ issues: [{ path: '/answer/a' }] })
  })

  test('of 128 KiB is read at once, whatever it holds', () => {
    const long = 'a@'.repeat(60_000)
    const properties = { a: { type: 'string' as const, format: 'email' as const } }
    expect(answerText({ type: 'object', properties }, { a: long })).toHaveProperty('issues')
  })
})

forEachService('Decisions that steer', (service) => {
  const { ask, voter, decide, read, votesOf, tick, left } = approvalsOf(service)

  describe('an answer', () => {
    test('is carried by the approval, and by its callback', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const { id } = await ask(tenant, { answer_schema: refund, callback_url: receiver.url })
      const decided = await decide(tenant.admin_key, id, 'approve', { answer: { notify: true, amount: 40 } })
      expect(decided.status).toBe(200)
      expect(decided.body).toMatchObject({ status: 'approved', answer: { amount: 40, notify: true } })
      expect(decided.body.answer_schema).toEqual(refund)
      await tick()
      const [sent] = receiver.requests
      expect(JSON.parse(sent!.body).data).toMatchObject({ status: 'approved', answer: { amount: 40 } })
      expect(sent!.body).not.toContain('effective_payload')
    })

    test.each([
      ['that breaks the schema', { amount: 501 }],
      ['that is not there', undefined],
      ['that has what is not asked', { amount: 40, more: true }],
    ])('%s is 422 ANSWER_INVALID, and changes nothing', async (_, answer) => {
      const tenant = await service.signUp()
      const before = await ask(tenant, { answer_schema: refund })
      const refused = await decide(tenant.admin_key, before.id, 'approve', { answer })
      expect([refused.status, refused.body.error.code]).toEqual([422, 'ANSWER_INVALID'])
      expect(refused.body.error.details.issues[0].path).toStartWith('/answer')
      expect(await read(tenant, before.id)).toEqual(before)
      expect(await votesOf(tenant, before.id)).toEqual([])
      expect(await left(tenant)).toEqual(['checkpoint.created'])
    })

    test('that nobody asked for is refused as well, of a plain checkpoint', async () => {
      const tenant = await service.signUp()
      const before = await ask(tenant)
      const refused = await decide(tenant.admin_key, before.id, 'approve', { answer: { a: 1 } })
      expect([refused.status, refused.body.error.code]).toEqual([422, 'ANSWER_INVALID'])
      expect(await read(tenant, before.id)).toEqual(before)
    })

    test('is not needed to reject', async () => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant, { answer_schema: refund })
      const rejected = await decide(tenant.admin_key, id, 'reject', { reason: 'too much' })
      expect(rejected.body).toMatchObject({ status: 'rejected', answer: null, reason: 'too much' })
    })

    test('must fit a schema that the service takes: others are refused when they are asked', async () => {
      const { api_key } = await service.signUp()
      const answer_schema = { type: 'object', properties: { a: { type: 'string', pattern: 'x' } } }
      const body = { title: 't', callback_url: null, answer_schema }
      const refused = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
      expect([refused.status, refused.body.error.code]).toEqual([400, 'VALIDATION_FAILED'])
      expect(refused.body.error.details.issues).toEqual([
        { path: '/answer_schema/properties/a/pattern', message: 'is not supported here' },
      ])
    })
  })

  describe('votes', () => {
    test('are counted until enough approve; each leaves an event and shows who', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant, { label: 'Kim' })
      const { id } = await ask(tenant, { required_approvals: 2 })
      const first = await decide(kim.key, id, 'approve', { reason: 'fine' })
      expect([first.status, first.body.status, first.body.approvals]).toEqual([200, 'pending', 1])
      const now = iso(service.clock.now())
      expect(await votesOf(tenant, id)).toEqual([
        {
          ...{ voter: kim.id, voter_label: 'Kim', decision: 'approved', counts: true, edited: false },
          ...{ payload_hash: null, reason: 'fine', answer: null, permit_expires_at: null, uses: 1, at: now },
        },
      ])
      const second = await decide(tenant.admin_key, id, 'approve')
      expect(second.body).toMatchObject({ status: 'approved', approvals: 2, resolved_by: 'admin' })
      expect(await left(tenant)).toEqual([
        ...['checkpoint.created', 'checkpoint.voted', 'checkpoint.voted', 'checkpoint.approved'],
      ])
      const data = (await eventsOf(service, tenant.tenant_id, 'checkpoint'))[1]!.data
      expect(data).toEqual({ decision: 'approved', approvals: 1, rejections: 0, edited: false, voided: 0 })
    })

    test('come in pages of a MiB: one ends before the vote that would take it past that', async () => {
      const tenant = await service.signUp()
      const names = Array.from({ length: 15 }, (_, i) => `field_${i}`)
      const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
      const answer = Object.fromEntries(names.map((name) => [name, 'é'.repeat(4_096)]))
      const answer_schema = { type: 'object', properties }
      const { id } = await ask(tenant, { required_approvals: 10, answer_schema })
      const voters: string[] = []
      for (let i = 0; i < 9; i++) {
        const { id: voter_id, key } = await voter(tenant)
        expect((await decide(key, id, 'approve', { answer })).status).toBe(200)
        voters.push(voter_id)
      }
      const page = async (query = '') =>
        (await service.ask('GET', `/v1/checkpoints/${id}/votes${query}`, { key: tenant.api_key })).body
      const first = await page()
      const rest = await page(`?cursor=${first.next_cursor}`)
      expect([first.items.length, rest.items.length, rest.next_cursor]).toEqual([8, 1, null])
      const seen = [...first.items, ...rest.items].map((vote) => vote.voter)
      expect(seen).toEqual(voters.toSorted())
    })

    test('one key has one: a second is 409 ALREADY_VOTED, and the admin key is one voter', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant)
      const { id } = await ask(tenant, { required_approvals: 3 })
      for (const key of [kim.key, tenant.admin_key]) {
        expect((await decide(key, id, 'approve')).status).toBe(200)
        for (const verb of ['approve', 'reject'] as const) {
          const again = await decide(key, id, verb)
          expect([again.status, again.body.error.code]).toEqual([409, 'ALREADY_VOTED'])
          expect(again.body.error.details.decision).toBe('approved')
        }
      }
      const rotated = await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/rotate-key`, {
        key: tenant.admin_key,
      })
      expect((await decide(rotated.body.admin_key, id, 'approve')).body.error.code).toBe('ALREADY_VOTED')
      expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 2 })
    })

    test('any rejection rejects', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant)
      const { id } = await ask(tenant, { required_approvals: 3 })
      await decide(tenant.admin_key, id, 'approve')
      const rejected = await decide(kim.key, id, 'reject', { reason: 'no' })
      expect(rejected.body).toMatchObject({ status: 'rejected', approvals: 1, rejections: 1, reason: 'no' })
      expect(rejected.body.resolved_by).toBe(`approval_key:${kim.id}`)
      const late = await decide((await voter(tenant)).key, id, 'approve')
      expect([late.status, late.body.error.details]).toEqual([409, { status: 'rejected' }])
    })

    test('unless required_rejections says more', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await ask(tenant, { required_rejections: 2 })
      expect((await decide(kim.key, id, 'reject')).body).toMatchObject({ status: 'pending', rejections: 1 })
      expect((await decide(lee.key, id, 'reject')).body).toMatchObject({ status: 'rejected', rejections: 2 })
    })

    test('for another answer than the first are 409 VOTE_DIFFERS, and change nothing', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await ask(tenant, { required_approvals: 2, answer_schema: refund })
      await decide(kim.key, id, 'approve', { answer: { amount: 40, notify: false } })
      const before = await read(tenant, id)
      const other = await decide(lee.key, id, 'approve', { answer: { amount: 41, notify: false } })
      expect([other.status, other.body.error.code]).toEqual([409, 'VOTE_DIFFERS'])
      expect(other.body.error.details).toEqual({ differs: 'answer' })
      expect(await read(tenant, id)).toEqual(before)
      const same = await decide(lee.key, id, 'approve', { answer: { notify: false, amount: 40 } })
      expect(same.body).toMatchObject({ status: 'approved', answer: { amount: 40, notify: false } })
    })

    test('of a checkpoint without them are an empty list', async () => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant)
      await decide(tenant.admin_key, id, 'approve')
      expect(await votesOf(tenant, id)).toEqual([])
      expect(await left(tenant)).toEqual(['checkpoint.created', 'checkpoint.approved'])
    })

    test.each([0, 11, 1.5, 'two'])('required_approvals %p is refused', async (required_approvals) => {
      const { api_key } = await service.signUp()
      const body = { title: 't', callback_url: null, required_approvals }
      const refused = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
      expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([
        400,
        '/required_approvals',
      ])
    })
  })

  describe('approvers', () => {
    test('decide, and nobody else: 403 NOT_AN_APPROVER, the admin included', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id, approvers } = await ask(tenant, { approvers: [kim.id] })
      expect(approvers).toEqual([kim.id])
      for (const key of [lee.key, tenant.admin_key])
        for (const verb of ['approve', 'reject'] as const) {
          const refused = await decide(key, id, verb)
          expect([refused.status, refused.body.error.code]).toEqual([403, 'NOT_AN_APPROVER'])
        }
      const seen = await service.ask('GET', `/v1/approvals/${id}`, { key: lee.key })
      expect([seen.status, seen.body.may_decide]).toEqual([200, false])
      expect((await decide(kim.key, id, 'approve')).body.status).toBe('approved')
    })

    test('may be the admin alone', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant)
      const { id } = await ask(tenant, { approvers: ['admin'] })
      expect((await decide(kim.key, id, 'approve')).status).toBe(403)
      expect((await decide(tenant.admin_key, id, 'approve')).status).toBe(200)
    })

    test('that cannot vote are refused: unknown, of another tenant, revoked, bound to another checkpoint, expired', async () => {
      const tenant = await service.signUp()
      const foreign = await voter(await service.signUp())
      const gone = await voter(tenant)
      await service.ask('DELETE', `/v1/approval-keys/${gone.id}`, { key: tenant.admin_key })
      const { id: checkpoint_id } = await ask(tenant, {})
      const bound = (await voter(tenant, { checkpoint_id })).id
      const expires_at = iso(service.clock.now() + 1_000)
      const expired = (await voter(tenant, { expires_at })).id
      service.clock.advance(1_000)
      const unknown = 'is not an approval key of this tenant'
      for (const [approver, message] of [
        ['apk_00000000000000000000000000', unknown],
        [foreign.id, unknown],
        [gone.id, unknown],
        [bound, 'is bound to another checkpoint'],
        [expired, 'has expired'],
      ] as const) {
        const lists = [
          [{ approvers: ['admin', approver] }, '/approvers/1'],
          [
            { approvers: ['admin'], escalate: [{ after_seconds: 60, approvers: [approver] }] },
            '/escalate/0/approvers/0',
          ],
        ] as const
        for (const [list, path] of lists) {
          const body = { title: 't', callback_url: null, ...list }
          const refused = await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })
          expect([refused.status, refused.body.error.details]).toEqual([400, { issues: [{ path, message }] }])
        }
        const put = await service.ask('PUT', '/v1/effect-policies/pay', {
          ...{ key: tenant.admin_key, body: { approval: 'required', approvers: ['admin', approver] } },
        })
        const issues = [{ path: '/approvers/1', message }]
        expect([put.status, put.body.error.details]).toEqual([400, { issues }])
      }
    })

    test('may be keys that expire later', async () => {
      const tenant = await service.signUp()
      const key = (await voter(tenant, { expires_at: iso(service.clock.now() + 1_000) })).id
      const { id } = await ask(tenant, { approvers: [key] })
      expect(id).toStartWith('chk_')
    })

    test.each([
      [{ approvers: ['admin'], required_approvals: 2 }, '/required_approvals'],
      [{ approvers: ['admin'], required_rejections: 2 }, '/required_rejections'],
      [{ escalate: [{ after_seconds: 60, approvers: ['admin'] }] }, '/escalate'],
      [
        { approvers: ['admin'], escalate: [{ after_seconds: 60 }, { after_seconds: 60 }] },
        '/escalate/1/after_seconds',
      ],
    ])('that could never settle it are refused: %p', async (more, path) => {
      const { api_key } = await service.signUp()
      const body = { title: 't', callback_url: null, ...more }
      const refused = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
      expect([refused.status, refused.body.error?.details.issues[0].path]).toEqual([400, path])
    })
  })

  describe('an edit', () => {
    test('is approved in place of the payload, byte for byte, and both are kept', async () => {
      const tenant = await service.signUp()
      const row = await askForEffect(service, tenant, { payload: '{"amount": 40, "a":1e400}' })
      const body = '{"effective_payload": {"amount": 30,  "a":1e400}}'
      const headers = { 'content-type': 'application/json' }
      const decided = await service.ask('POST', `/v1/checkpoints/${row.id}/approve`, {
        ...{ key: tenant.admin_key, body, headers },
      })
      expect([decided.status, decided.body.status]).toEqual([200, 'approved'])
      expect(decided.text).toContain('"payload":{"amount": 40, "a":1e400}')
      expect(decided.text).toContain('"effective_payload":{"amount": 30,  "a":1e400}')
      expect(heard.at(-1)!.checkpoint).toMatchObject({
        ...{ status: 'approved', effect_id: 'eff_of_a_test', payload: '{"amount": 40, "a":1e400}' },
        ...{ effective_payload: '{"amount": 30,  "a":1e400}', uses: 1, uses_left: 1 },
      })
    })

    test('of the same bytes is none', async () => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant)
      const decided = await decide(tenant.admin_key, id, 'approve', { effective_payload: { amount: 40 } })
      expect(decided.body).toMatchObject({ status: 'approved', effective_payload: null })
    })

    test('to null is refused where it may be edited, and changes nothing: it would look like no edit', async () => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
      for (const body of [{ effective_payload: null }, { reason: 'r', effective_payload: null }]) {
        const before = await read(tenant, id)
        const refused = await decide(tenant.admin_key, id, 'approve', body)
        expect([refused.status, refused.body.error.code, refused.body.error.details]).toEqual([
          ...[400, 'VALIDATION_FAILED'],
          {
            issues: [
              { path: '/effective_payload', message: 'must not be null: leave it out to change nothing' },
            ],
          },
        ])
        expect(await read(tenant, id)).toEqual(before)
      }
      const fixed = await askForEffect(service, tenant, { editable: false })
      for (const { id } of [await ask(tenant), fixed]) {
        const decided = await decide(tenant.admin_key, id, 'approve', { effective_payload: null })
        expect(decided.body).toMatchObject({ status: 'approved', effective_payload: null })
      }
    })

    test('to null binds these bytes where null was proposed', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await askForEffect(service, tenant, { payload: 'null', required_approvals: 2 })
      await decide(kim.key, id, 'approve', { effective_payload: { amount: 30 } })
      const back = await decide(lee.key, id, 'approve', { effective_payload: null })
      expect(back.body).toMatchObject({ status: 'pending', approvals: 1, edited_payload: null })
      const votes = await votesOf(tenant, id)
      expect(votes.find(({ counts }: { counts: boolean }) => counts).payload_hash).toBe(hashOf('null'))
    })

    test('where none is allowed is 422 NOT_EDITABLE, and changes nothing', async () => {
      const tenant = await service.signUp()
      const plain = await ask(tenant)
      const fixed = await askForEffect(service, tenant, { editable: false })
      for (const { id } of [plain, fixed]) {
        const before = await read(tenant, id)
        const refused = await decide(tenant.admin_key, id, 'approve', { effective_payload: { amount: 30 } })
        expect([refused.status, refused.body.error.code]).toEqual([422, 'NOT_EDITABLE'])
        expect(await read(tenant, id)).toEqual(before)
      }
    })

    test('voids the votes before it: their voters vote again, for what it now says', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
      await decide(kim.key, id, 'approve')
      const edited = await decide(lee.key, id, 'approve', { effective_payload: { amount: 30 } })
      expect(edited.body).toMatchObject({
        ...{ status: 'pending', approvals: 1, edited_payload: { amount: 30 }, effective_payload: null },
      })
      const votes = await votesOf(tenant, id)
      expect(votes.map(({ voter, counts }: { voter: string; counts: boolean }) => [voter, counts])).toEqual(
        [
          [kim.id, false],
          [lee.id, true],
        ].toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
      )
      expect(votes.find(({ counts }: { counts: boolean }) => counts).payload_hash).toBe(
        hashOf('{"amount":30}'),
      )
      const seen = await service.ask('GET', `/v1/approvals/${id}`, { key: kim.key })
      expect(seen.body).toMatchObject({ voted: null, edited_payload: { amount: 30 } })
      const unseen = await decide(kim.key, id, 'approve')
      expect([unseen.status, unseen.body.error.details]).toEqual([409, { differs: 'payload' }])
      const again = await decide(kim.key, id, 'approve', { effective_payload: { amount: 30 } })
      expect(again.body).toMatchObject({
        ...{ status: 'approved', approvals: 2, edited_payload: null, effective_payload: { amount: 30 } },
      })
      const voted = (await eventsOf(service, tenant.tenant_id, 'checkpoint'))
        .filter(({ type }) => type === 'checkpoint.voted')
        .map(({ data: { edited, voided } }) => [edited, voided])
      expect(voted).toEqual([
        [false, 0],
        [true, 1],
        [false, 0],
      ])
    })

    test('may lead back to what was proposed', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
      await decide(kim.key, id, 'approve', { effective_payload: { amount: 30 } })
      const back = await decide(lee.key, id, 'approve', { effective_payload: { amount: 40 } })
      expect(back.body).toMatchObject({ status: 'pending', approvals: 1, edited_payload: null })
      const again = await decide(kim.key, id, 'approve')
      expect(again.body).toMatchObject({ status: 'approved', effective_payload: null })
    })

    test('that was rejected is not in effect', async () => {
      const tenant = await service.signUp()
      const [kim, lee] = [await voter(tenant), await voter(tenant)]
      const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
      await decide(kim.key, id, 'approve', { effective_payload: { amount: 30 } })
      const rejected = await decide(lee.key, id, 'reject')
      expect(rejected.body).toMatchObject({ status: 'rejected', effective_payload: null })
    })
  })

  describe('a permit', () => {
    test('ends, and has uses: of several votes the least counts', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant)
      const { id } = await askForEffect(service, tenant, { required_approvals: 2 })
      const soon = iso(service.clock.now() + 60_000)
      const later = iso(service.clock.now() + 120_000)
      await decide(kim.key, id, 'approve', { uses: 5, expires_at: later })
      const decided = await decide(tenant.admin_key, id, 'approve', { uses: 10, expires_at: soon })
      expect(decided.body).toMatchObject({
        ...{ status: 'approved', uses: 5, uses_left: 5, permit_expires_at: soon },
      })
    })

    const expires_at = '2030-01-01T00:00:00.000Z'
    test.each([
      ['asks for nothing more', {}, { uses: 2, expires_at }, ['/uses', '/expires_at']],
      ['asks for nothing more, one use', {}, { uses: 1 }, ['/uses']],
      ['takes two votes', { required_approvals: 2 }, { expires_at }, ['/expires_at']],
    ] as const)('is refused where a checkpoint without an effect %s', async (_, asked, given, paths) => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant, asked)
      const before = await read(tenant, id)
      const { status, body } = await decide(tenant.admin_key, id, 'approve', given)
      const issues: { path: string }[] = body.error.details.issues
      expect([status, body.error.code, issues.map(({ path }) => path)]).toEqual([
        ...[400, 'VALIDATION_FAILED', paths],
      ])
      expect(await read(tenant, id)).toEqual(before)
      expect(await votesOf(tenant, id)).toEqual([])
      expect((await decide(tenant.admin_key, id, 'approve')).body).toMatchObject({ approvals: 1, uses: 1 })
    })

    test('that is over already is refused', async () => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant)
      const expires_at = iso(service.clock.now())
      const refused = await decide(tenant.admin_key, id, 'approve', { expires_at })
      expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([400, '/expires_at'])
    })
  })

  describe('every end', () => {
    test.each([
      ['approved', (key: string, id: string) => decide(key, id, 'approve')],
      ['rejected', (key: string, id: string) => decide(key, id, 'reject')],
    ] as const)('is heard once: %s', async (status, end) => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant)
      await end(tenant.admin_key, id)
      await end(tenant.admin_key, id)
      const own = heard.filter(({ checkpoint }) => checkpoint.id === id)
      expect(own).toMatchObject([{ tenant_id: tenant.tenant_id, actor: 'admin', checkpoint: { status } }])
    })

    test.each([
      ['expired', 'dlq'],
      ['rejected', 'auto_reject'],
    ] as const)('by its timeout is heard: %s', async (status, timeout_action) => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant, { timeout_action })
      service.clock.advance(3_600_000)
      await tick()
      await tick()
      const own = heard.filter(({ checkpoint }) => checkpoint.id === id)
      expect(own).toMatchObject([{ actor: 'service', checkpoint: { status, resolved_by: 'timeout' } }])
    })

    test('by its agent is heard: cancelled', async () => {
      const tenant = await service.signUp()
      const { id } = await askForEffect(service, tenant)
      await service.ask('DELETE', `/v1/checkpoints/${id}`, { key: tenant.api_key })
      const own = heard.filter(({ checkpoint }) => checkpoint.id === id)
      expect(own).toMatchObject([{ actor: 'agent-one', checkpoint: { status: 'cancelled' } }])
    })
  })

  describe('comments', () => {
    const comment = (key: string, id: string, text: unknown) =>
      service.ask('POST', `/v1/checkpoints/${id}/comments`, { key, body: { text } })

    test('are by the agent that asked, its approvers and the admin, and decide nothing', async () => {
      const tenant = await service.signUp()
      const kim = await voter(tenant, { label: 'Kim' })
      const { id } = await ask(tenant)
      const made = await comment(kim.key, id, 'Which account?')
      const at = iso(service.clock.now())
      expect([made.status, made.body]).toEqual([
        201,
        {
          ...{ id: expect.stringMatching(/^cmt_[0-9a-z]{26}$/), author: kim.id, author_label: 'Kim' },
          ...{ text: 'Which account?', at },
        },
      ])
      service.clock.advance(1)
      await comment(tenant.api_key, id, 'That of order 7.')
      service.clock.advance(1)
      await comment(tenant.admin_key, id, 'Go on.')
      for (const key of [kim.key, tenant.api_key, tenant.admin_key]) {
        const list = await service.ask('GET', `/v1/checkpoints/${id}/comments`, { key })
        const shown = list.body.items.map(({ author, text }: Record<string, string>) => [author, text])
        expect(shown).toEqual([
          [kim.id, 'Which account?'],
          ['agent-one', 'That of order 7.'],
          ['admin', 'Go on.'],
        ])
      }
      expect(await read(tenant, id)).toMatchObject({ status: 'pending', comments: 3 })
      expect((await left(tenant)).filter((type) => type === 'checkpoint.commented')).toHaveLength(3)
    })

    test('are read by all who may read the checkpoint, as the API says', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const { id } = await ask(tenant, { approvers: ['admin'] })
      const kim = await voter(tenant)
      const bound = await voter(tenant, { checkpoint_id: (await ask(tenant)).id })
      expect((await comment(tenant.admin_key, id, 'Which order?')).status).toBe(201)
      const codes = []
      for (const key of [tenant.api_key, other.api_key, kim.key, tenant.admin_key, bound.key]) {
        const { body } = await service.ask('GET', `/v1/checkpoints/${id}/comments`, { key })
        codes.push(body.items?.length ?? body.error.code)
      }
      expect(codes).toEqual([1, 1, 1, 1, 'FORBIDDEN'])
      expect(listComments.description).toContain('every agent of the tenant')
    })

    test('by others are refused', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const { id } = await ask(tenant, { approvers: ['admin'] })
      const kim = await voter(tenant)
      const bound = await voter(tenant, { checkpoint_id: (await ask(tenant)).id })
      const codes = []
      for (const key of [other.api_key, kim.key, bound.key])
        codes.push((await comment(key, id, 'x')).body.error.code)
      expect(codes).toEqual(['FORBIDDEN', 'NOT_AN_APPROVER', 'FORBIDDEN'])
      expect((await comment(tenant.admin_key, 'chk_none', 'x')).body.error.code).toBe('CHECKPOINT_NOT_FOUND')
      expect(await read(tenant, id)).toMatchObject({ comments: 0 })
    })

    test.each(['', 'x'.repeat(4_001), 7, null])('have 1 to 4,000 characters', async (text) => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant)
      expect((await comment(tenant.admin_key, id, text)).status).toBe(400)
    })

    test('are at most 200', async () => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant)
      for (let i = 0; i < 200; i++) expect((await comment(tenant.admin_key, id, `n ${i}`)).status).toBe(201)
      const refused = await comment(tenant.admin_key, id, 'one more')
      expect([refused.status, refused.body.error.code]).toEqual([409, 'TOO_MANY_COMMENTS'])
      const page = await service.ask('GET', `/v1/checkpoints/${id}/comments?limit=150`, {
        key: tenant.api_key,
      })
      const rest = await service.ask(
        'GET',
        `/v1/checkpoints/${id}/comments?cursor=${page.body.next_cursor}&limit=150`,
        { key: tenant.api_key },
      )
      expect([page.body.items.length, rest.body.items.length, rest.body.next_cursor]).toEqual([150, 50, null])
    })
  })
})
