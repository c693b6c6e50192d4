import { describe, expect, test } from 'bun:test'
import { sendInTwo } from '../../test/support/late-body.ts'
import { becomes } from '../../test/support/patience.ts'
import { type Answer, forEachRacedService } from '../../test/support/service.ts'
import { hour_ms, iso } from '../base/clock.ts'
import { hashKey, keyKind } from '../base/keys.ts'
import { unnamedAcrossTenants } from '../db/db.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body?.error?.details?.issues ?? []
  return [status, body?.error?.code, ...issues.map(({ path }) => path)]
}

const unknown_key = [404, 'APPROVAL_KEY_NOT_FOUND', undefined]

forEachRacedService('Approval keys', (service) => {
  const create = (key: string, body?: unknown) => service.ask('POST', '/v1/approval-keys', { key, body })

  test('create answers the one-time key with its approval_key_id', async () => {
    const { admin_key } = await service.signUp()
    const created = await create(admin_key, { label: 'Ops on call' })
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      approval_key_id: expect.stringMatching(/^apk_[0-9a-z]{26}$/),
      checkpoint_id: null,
      label: 'Ops on call',
      approval_key: expect.stringMatching(/^svc_apr_[0-9A-Za-z]{38}$/),
      created_at: iso(service.clock.now()),
      expires_at: null,
      last_used_at: null,
      approval_url: null,
    })
    expect(keyKind(created.body.approval_key)).toBe('approval')
  })

  test.each([
    ['no body', undefined],
    ['an empty object', {}],
    ['nulls', { checkpoint_id: null, label: null }],
  ])('every field is optional: %s', async (_, body) => {
    const { admin_key } = await service.signUp()
    const { status, body: made } = await create(admin_key, body)
    expect([status, made.checkpoint_id, made.label]).toEqual([201, null, null])
  })

  test.each(['', 'x'.repeat(256), '\u{1f600}'.repeat(256)])('label %j is kept as it is', async (label) => {
    const { admin_key } = await service.signUp()
    const { status, body } = await create(admin_key, { label })
    expect([status, body.label]).toEqual([201, label])
  })

  test.each(['x'.repeat(257), '\u{1f600}'.repeat(257), 'a\u0000b', 7, true, [['x']], {}])(
    'label %j is not a text of at most 256 characters',
    async (label) => {
      const { admin_key } = await service.signUp()
      expect(broken(await create(admin_key, { label }))).toEqual([400, 'VALIDATION_FAILED', '/label'])
    },
  )

  test.each(['chk_00000000000000000000000000', 'nonsense', '', '../x', 'x'.repeat(100)])(
    'creating one for the unknown checkpoint %s answers 404 and makes no key',
    async (checkpoint_id) => {
      const { admin_key } = await service.signUp()
      const refused = await create(admin_key, { checkpoint_id, label: 'x' })
      expect(refusal(refused)).toEqual([404, 'CHECKPOINT_NOT_FOUND', undefined])
      const list = await service.ask('GET', '/v1/approval-keys', { key: admin_key })
      expect(list.body).toEqual({ items: [], next_cursor: null })
    },
  )

  test('a list is newest first, masked, of this tenant only; pages have no repeat and no gap', async () => {
    const { admin_key } = await service.signUp()
    const other = await service.signUp()
    await create(other.admin_key, { label: 'foreign' })
    const newest_first: unknown[] = []
    for (const label of ['one', 'two', 'three', 'four', 'five']) {
      const { body } = await create(admin_key, { label })
      const { approval_url: _, ...listed } = body
      newest_first.unshift({ ...listed, approval_key: `svc_apr_****${body.approval_key.slice(-4)}` })
      service.clock.advance(1)
    }
    const all = await service.ask('GET', '/v1/approval-keys', { key: admin_key })
    expect([all.status, all.body]).toEqual([200, { items: newest_first, next_cursor: null }])
    for (const limit of [1, 2, 3]) {
      const seen: unknown[] = []
      let cursor: string | null = null
      do {
        const query: string = cursor === null ? '' : `&cursor=${cursor}`
        const page = await service.ask('GET', `/v1/approval-keys?limit=${limit}${query}`, { key: admin_key })
        expect(page.body.items.length).toBe(Math.min(limit, 5 - seen.length))
        seen.push(...page.body.items)
        cursor = page.body.next_cursor
      } while (cursor !== null)
      expect(seen).toEqual(newest_first)
    }
  })

  test('DELETE answers 204 and revokes at once; again, 404', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const { approval_key_id, approval_key } = (await create(admin_key)).body
    const kept = (await create(admin_key)).body
    const use = async (key: string) => (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key })).status
    expect([await use(approval_key), await use(kept.approval_key)]).toEqual([403, 403])
    const path = `/v1/approval-keys/${approval_key_id}`
    const deleted = await service.ask('DELETE', path, { key: admin_key })
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect([await use(approval_key), await use(kept.approval_key)]).toEqual([401, 403])
    expect(refusal(await service.ask('DELETE', path, { key: admin_key }))).toEqual(unknown_key)
    const list = await service.ask('GET', '/v1/approval-keys', { key: admin_key })
    expect(list.body.items.map((item: { approval_key_id: string }) => item.approval_key_id)).toEqual([
      kept.approval_key_id,
    ])
  })

  test('one of another tenant answers like an unknown one, byte for byte, and is not revoked', async () => {
    const own = await service.signUp()
    const other = await service.signUp()
    const { approval_key_id, approval_key } = (await create(other.admin_key)).body
    const [foreign, ...unknown] = await Promise.all(
      [approval_key_id, 'apk_00000000000000000000000000', 'nonsense', '%00', '%ff', 'x'.repeat(300)].map(
        (id) =>
          service.ask('DELETE', `/v1/approval-keys/${id}`, {
            key: own.admin_key,
            headers: { 'x-request-id': 'request-0001' },
          }),
      ),
    )
    expect(refusal(foreign!)).toEqual(unknown_key)
    expect(unknown.map(({ text }) => text)).toEqual(Array(5).fill(foreign!.text))
    const used = await service.ask('GET', `/v1/tenants/${other.tenant_id}`, { key: approval_key })
    expect(used.status).toBe(403)
  })

  test('an approval key on anything but approve and reject is 403', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const { approval_key } = (await create(admin_key)).body
    for (const [method, path, ...accepted_key_kinds] of [
      ['GET', `/v1/tenants/${tenant_id}`, 'admin'],
      ['GET', '/v1/agents/agent-one', 'admin', 'agent'],
      ['GET', '/v1/approval-keys', 'admin'],
      ['GET', '/v1/kv/a/b', 'agent'],
      ['POST', '/v1/audit', 'agent', 'admin'],
    ] as const) {
      const kinds = { key_kind: 'approval', accepted_key_kinds }
      const answers = await Promise.all(
        [{ 'x-approval-key': approval_key }, { authorization: `Bearer ${approval_key}` }].map((headers) =>
          service.ask(method, path, { headers: headers as Record<string, string> }),
        ),
      )
      expect(answers.map(refusal)).toEqual(Array(2).fill([403, 'FORBIDDEN', kinds]))
    }
  })

  describe('expires_at', () => {
    const second_ms = 1_000
    const use = async (key: string) => (await service.ask('GET', '/v1/approvals/chk_none', { key })).status

    test('ends the key: then it is 401 as if it had been revoked, at once, and stays in the list', async () => {
      const { admin_key } = await service.signUp()
      const expires_at = iso(service.clock.now() + 60 * second_ms)
      const made = await create(admin_key, { expires_at })
      expect([made.status, made.body.expires_at]).toEqual([201, expires_at])
      const { approval_key } = made.body
      service.clock.advance(59_999)
      expect(await use(approval_key)).toBe(404)
      service.clock.advance(1)
      expect(await use(approval_key)).toBe(401)
      expect(await use(approval_key)).toBe(401)
      const [listed] = (await service.ask('GET', '/v1/approval-keys', { key: admin_key })).body.items
      expect([listed.expires_at, listed.approval_key]).toEqual([
        expires_at,
        `svc_apr_****${approval_key.slice(-4)}`,
      ])
    })

    test.each([
      ['now', 0],
      ['the past', -1],
    ])('in %s is refused', async (_, in_ms) => {
      const { admin_key } = await service.signUp()
      const answer = await create(admin_key, { expires_at: iso(service.clock.now() + in_ms) })
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/expires_at'])
    })
  })

  test('last_used_at is when it was last used, to the minute, and null before', async () => {
    const { admin_key } = await service.signUp()
    const { approval_key } = (await create(admin_key)).body
    const seen = async () =>
      (await service.ask('GET', '/v1/approval-keys', { key: admin_key })).body.items[0].last_used_at
    const use = () => service.ask('GET', '/v1/approvals/chk_none', { key: approval_key })
    expect(await seen()).toBeNull()
    await use()
    const first = iso(service.clock.now())
    await becomes(seen, first)
    service.clock.advance(59_999)
    await use()
    expect(await seen()).toBe(first)
    service.clock.advance(1_000) // longer than a node remembers the key
    await use()
    await becomes(seen, iso(service.clock.now()))
  })

  test('a use after the clock was set back replaces a last_used_at that lies ahead', async () => {
    const { admin_key } = await service.signUp()
    const { approval_key } = (await create(admin_key)).body
    const seen = async () =>
      (await service.ask('GET', '/v1/approval-keys', { key: admin_key })).body.items[0].last_used_at
    const use = () => service.ask('GET', '/v1/approvals/chk_none', { key: approval_key })
    await use()
    await becomes(seen, iso(service.clock.now()))
    service.clock.advance(1_000) // longer than a node remembers the key
    service.clock.jump(-5 * hour_ms)
    await use()
    await becomes(seen, iso(service.clock.now()))
  })

  test.each([
    ['expires', () => Promise.resolve()],
    [
      'is revoked',
      (admin_key: string, id: string) => service.ask('DELETE', `/v1/approval-keys/${id}`, { key: admin_key }),
    ],
  ])('a key that %s while the body of its vote is on its way does not vote: 401', async (_, end) => {
    const { admin_key, api_key } = await service.signUp()
    const asked = { title: 'Go?', callback_url: null }
    const { id } = (await service.ask('POST', '/v1/checkpoints', { key: api_key, body: asked })).body
    const expires_at = iso(service.clock.now() + 1_000)
    const { approval_key, approval_key_id } = (await create(admin_key, { expires_at })).body
    const vote = { method: 'POST', path: `/v1/checkpoints/${id}/approve`, key: approval_key }
    const answer = await sendInTwo(service, { ...vote, body: { reason: 'fine' } }, async () => {
      await end(admin_key, approval_key_id)
      service.clock.advance(1_000)
    })
    expect(answer).toStartWith('HTTP/1.1 401 ')
    const read = await service.ask('GET', `/v1/checkpoints/${id}`, { key: admin_key })
    expect(read.body.status).toBe('pending')
  })

  test('at rest it is its SHA-256 and its last four characters', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const { approval_key_id, approval_key } = (await create(admin_key)).body
    const rows = await service.app.db.all(
      unnamedAcrossTenants<{ subject: string; hash: string; last_four: string }>(
        'test.credentials',
        `select subject, hash, last_four from credentials where tenant_id = :tenant_id and kind = 'approval'`,
      ),
      { tenant_id },
    )
    expect(rows).toEqual([
      { subject: approval_key_id, hash: hashKey(approval_key), last_four: approval_key.slice(-4) },
    ])
  })
})
