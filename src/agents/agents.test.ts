import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Answer, forEachRacedService, type TestService } from '../../test/support/service.ts'
import * as approvalKeys from '../approval-keys/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import { hashKey, keyKind } from '../base/keys.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { default_plans } from '../features.ts'
import * as tenants from '../tenants/service.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body?.error?.details?.issues ?? []
  return [status, body?.error?.code, ...issues.map(({ path }) => path)]
}

const unknown_agent = [404, 'AGENT_NOT_FOUND', undefined]

forEachRacedService('Agents', (service) => {
  const create = (key: string, body: unknown) => service.ask('POST', '/v1/agents', { key, body })
  const works = async (api_key: string) => (await service.ask('GET', '/v1/kv/a', { key: api_key })).status

  test('create answers agent_id, name, description, callback_base_url, api_key and created_at', async () => {
    const { admin_key } = await service.signUp()
    const created = await create(admin_key, {
      name: 'planner',
      description: 'Plans.\nNothing else.',
      callback_base_url: 'https://agents.example.com/planner/',
    })
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      agent_id: 'planner',
      name: 'planner',
      description: 'Plans.\nNothing else.',
      callback_base_url: 'https://agents.example.com/planner/',
      api_key: expect.stringMatching(/^svc_agt_[0-9A-Za-z]{38}$/),
      created_at: iso(service.clock.now()),
      ...{ mode: 'full', paused_at: null, paused_reason: null },
    })
    expect(keyKind(created.body.api_key)).toBe('agent')
    expect(await works(created.body.api_key)).toBe(200)
  })

  test.each([
    ['left out', { name: 'bare' }],
    ['null', { name: 'bare', description: null, callback_base_url: null }],
  ])('an optional field that is %s is null in the answer', async (_, body) => {
    const { admin_key } = await service.signUp()
    const { status, body: agent } = await create(admin_key, body)
    expect([status, agent.description, agent.callback_base_url]).toEqual([201, null, null])
  })

  test.each(['abc', 'a-b', '0ab', '123', 'ab-', 'a--', 'x'.repeat(32)])(
    'the name %s matches ^[a-z0-9][a-z0-9-]{2,31}$',
    async (name) => {
      const { admin_key } = await service.signUp()
      const { status, body } = await create(admin_key, { name })
      expect([status, body.agent_id, body.name]).toEqual([201, name, name])
    },
  )

  test.each([
    'ab',
    'x'.repeat(33),
    '-ab',
    'Abc',
    'abC',
    'a_b',
    'a.b',
    'a b',
    'abc ',
    ' abc',
    'abc\n',
    'äbc',
    '',
    7,
    true,
    undefined,
  ])('the name %j does not match ^[a-z0-9][a-z0-9-]{2,31}$', async (name) => {
    const { admin_key } = await service.signUp()
    expect(broken(await create(admin_key, { name }))).toEqual([400, 'VALIDATION_FAILED', '/name'])
  })

  test('a name in use answers 409 AGENT_ID_TAKEN, and takes nothing from the quota', async () => {
    const tenant = await service.signUp()
    const refused = await create(tenant.admin_key, { name: 'agent-one' })
    expect(refusal(refused)).toEqual([409, 'AGENT_ID_TAKEN', undefined])
    const { body } = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
    expect(body.quota.agents).toEqual({ used: 1, limit: 25 })
    expect(await works(tenant.api_key)).toBe(200)
  })

  test('a name is unique inside its tenant only', async () => {
    const one = await service.signUp()
    const other = await service.signUp()
    expect(one.agent_id).toBe(other.agent_id)
    await service.ask('PUT', '/v1/kv/a/mine', { key: one.api_key, body: { value: 'one' } })
    expect((await service.ask('GET', '/v1/kv/a/mine', { key: other.api_key })).status).toBe(404)
  })

  test.each([
    [4_096, 201],
    [4_097, 400],
  ])('a description of %d characters answers %d', async (characters, status) => {
    const { admin_key } = await service.signUp()
    const answer = await create(admin_key, { name: 'abc', description: '\u{1f600}'.repeat(characters) })
    expect(answer.status).toBe(status)
  })

  test.each([
    'http://example.com',
    'https://example.com:8443/a/b?c=d#e',
    'HTTPS://EXAMPLE.COM/',
    `https://example.com/${'x'.repeat(2_028)}`,
  ])('callback_base_url %s is kept as it was sent', async (callback_base_url) => {
    const { admin_key } = await service.signUp()
    const { status, body } = await create(admin_key, { name: 'abc', callback_base_url })
    expect([status, body.callback_base_url]).toEqual([201, callback_base_url])
  })

  test.each([
    'example.com',
    '/relative',
    '//example.com/',
    'ftp://example.com/',
    'javascript:alert(1)',
    'https://user@example.com/',
    'https://user:secret@example.com/',
    'https://',
    'http://exa mple.com/',
    ' https://example.com/',
    'https://example.com/a\nb',
    '',
    7,
    `https://example.com/${'x'.repeat(2_029)}`,
  ])(
    'callback_base_url %j is not an http or https URL of at most 2,048 characters',
    async (callback_base_url) => {
      const { admin_key } = await service.signUp()
      const answer = await create(admin_key, { name: 'abc', callback_base_url })
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/callback_base_url'])
    },
  )

  test('GET answers with the key masked, to the admin and to every agent of the tenant', async () => {
    const { admin_key, api_key } = await service.signUp()
    const created = await create(admin_key, { name: 'reader', description: 'Reads.' })
    const masked = { ...created.body, api_key: `svc_agt_****${created.body.api_key.slice(-4)}` }
    for (const key of [admin_key, api_key, created.body.api_key]) {
      const read = await service.ask('GET', '/v1/agents/reader', { key })
      expect([read.status, read.body]).toEqual([200, masked])
    }
  })

  test('an agent of another tenant answers like an unknown one, byte for byte', async () => {
    const own = await service.signUp()
    const other = await service.signUp()
    await create(other.admin_key, { name: 'hidden' })
    for (const [method, verb] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate-key'],
    ] as const) {
      const [foreign, unknown] = await Promise.all(
        ['hidden', 'nobody'].map((id) =>
          service.ask(method, `/v1/agents/${id}${verb}`, {
            key: own.admin_key,
            headers: { 'x-request-id': 'request-0001' },
          }),
        ),
      )
      expect(refusal(foreign!)).toEqual(unknown_agent)
      expect(foreign!.text).toBe(unknown!.text)
    }
    expect((await service.ask('GET', '/v1/agents/hidden', { key: other.admin_key })).status).toBe(200)
  })

  test.each(['UPPER', 'a', 'x'.repeat(400), 'a%2Fb', '%00', '%ff', '%ef%bf%bd', 'a b', '*', "'"])(
    'an id is never checked for form: %s names nothing',
    async (id) => {
      const { admin_key } = await service.signUp()
      const asked = () => service.ask('GET', `/v1/agents/${id}`, { key: admin_key })
      expect(refusal(await service.overHttp(asked))).toEqual(unknown_agent)
    },
  )

  test('a page of the list ends before the agent that would take it past a MiB', async () => {
    const { admin_key } = await service.signUp('pro')
    const description = '🦊'.repeat(4_096) // 16 KiB
    service.clock.advance(1)
    for (let i = 0; i < 65; i++)
      expect((await create(admin_key, { name: `a-${i}`, description })).status).toBe(201)
    const page = async (query: string) =>
      (await service.ask('GET', `/v1/agents?limit=200${query}`, { key: admin_key })).body
    const first = await page('')
    const rest = await page(`&cursor=${first.next_cursor}`)
    const [names, others] = [first, rest].map(({ items }) => items.map(({ name }: { name: string }) => name))
    expect([first.items.length, rest.next_cursor]).toEqual([63, null])
    expect(new Set([...names, ...others]).size).toBe(66) // with that of the sign-up
  })

  test('a list is newest first, masked, and pages without a repeat or a gap', async () => {
    const { admin_key } = await service.signUp()
    const names = ['agent-one']
    for (const [index, name] of ['ddd', 'aaa', 'ccc', 'bbb', 'eee'].entries()) {
      if (index % 2 === 0) service.clock.advance(1_000)
      await create(admin_key, { name })
      names.push(name)
    }
    const all = await service.ask('GET', '/v1/agents', { key: admin_key })
    expect(all.body.next_cursor).toBeNull()
    const listed: { agent_id: string; created_at: string; api_key: string }[] = all.body.items
    expect(listed.map(({ agent_id }) => agent_id).toSorted()).toEqual(names.toSorted())
    expect(listed.map(({ created_at }) => created_at)).toEqual(
      listed
        .map(({ created_at }) => created_at)
        .toSorted()
        .toReversed(),
    )
    for (const agent of listed) {
      expect(agent.api_key).toMatch(/^svc_agt_\*\*\*\*[0-9A-Za-z]{4}$/)
      const read = await service.ask('GET', `/v1/agents/${agent.agent_id}`, { key: admin_key })
      expect(read.body).toEqual(agent)
    }
    for (const limit of [1, 2, 4]) {
      const pages = await pagesOf(service, admin_key, limit)
      expect(pages.flat()).toEqual(listed)
      expect(pages.map(({ length }) => length)).toEqual(
        Array.from({ length: Math.ceil(6 / limit) }, (_, page) => Math.min(limit, 6 - page * limit)),
      )
    }
  })

  test.each(['1', '2', '200', '201', '9999', '1000000000000000000000'])(
    'limit %s is taken; above 200 counts as 200',
    async (limit) => {
      const { admin_key } = await service.signUp()
      const answer = await service.ask('GET', `/v1/agents?limit=${limit}`, { key: admin_key })
      expect([answer.status, answer.body.items?.length]).toEqual([200, 1])
    },
  )

  test.each(['0', '-1', '1.5', 'x', '', '1e1', '0x10', '%20', 'NaN', '-1000000000000000000000'])(
    'limit "%s" is below 1 or no integer',
    async (limit) => {
      const { admin_key } = await service.signUp()
      const answer = await service.ask('GET', `/v1/agents?limit=${limit}`, { key: admin_key })
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', 'query.limit'])
    },
  )

  test('a cursor is bound to its tenant and its route; any other is 400', async () => {
    const { admin_key } = await service.signUp()
    const other = await service.signUp()
    await create(admin_key, { name: 'second' })
    const { next_cursor } = (await service.ask('GET', '/v1/agents?limit=1', { key: admin_key })).body
    const asked: [string, string, string][] = [
      [other.admin_key, '/v1/agents', next_cursor],
      [admin_key, '/v1/approval-keys', next_cursor],
      [admin_key, '/v1/audit', next_cursor],
      [admin_key, '/v1/agents', `${next_cursor}A`],
      [admin_key, '/v1/agents', next_cursor.slice(0, -1)],
      [admin_key, '/v1/agents', next_cursor.toLowerCase()],
      [admin_key, '/v1/agents', ''],
      [admin_key, '/v1/agents', 'x'],
      [admin_key, '/v1/agents', '%F0%9F%98%80'],
      [admin_key, '/v1/agents', 'x'.repeat(2_049)],
    ]
    for (const [key, path, cursor] of asked) {
      const answer = await service.ask('GET', `${path}?cursor=${cursor}`, { key })
      expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', 'query.cursor'])
    }
  })

  test('rotate-key answers the agent with a new one-time key; the old one dies at once', async () => {
    const { admin_key, api_key } = await service.signUp()
    const before = (await service.ask('GET', '/v1/agents/agent-one', { key: admin_key })).body
    expect(await works(api_key)).toBe(200)
    const rotated = await service.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key })
    const new_key: string = rotated.body.api_key
    expect(rotated.status).toBe(200)
    expect(rotated.body).toEqual({ ...before, api_key: new_key, previous_key_expires_at: null })
    expect(keyKind(new_key)).toBe('agent')
    expect([await works(api_key), await works(new_key)]).toEqual([401, 200])
    const read = await service.ask('GET', '/v1/agents/agent-one', { key: new_key })
    expect(read.body.api_key).toBe(`svc_agt_****${new_key.slice(-4)}`)
  })

  test('in a grace both keys work and the agent shows the new one; rotating again ends it', async () => {
    const { admin_key, api_key: first } = await service.signUp()
    const rotate = (grace_seconds: number) =>
      service.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key, body: { grace_seconds } })
    const rotated = await rotate(604_800)
    const second = rotated.body.api_key
    expect(rotated.body.previous_key_expires_at).toBe(iso(service.clock.now() + 604_800 * second_ms))
    const list = await service.ask('GET', '/v1/agents', { key: admin_key })
    expect(list.body.items.map((agent: { api_key: string }) => agent.api_key)).toEqual([
      `svc_agt_****${second.slice(-4)}`,
    ])
    expect([await works(first), await works(second)]).toEqual([200, 200])
    service.clock.advance(604_800 * second_ms - 1)
    expect(await works(first)).toBe(200)
    const third = (await rotate(60)).body.api_key
    expect([await works(first), await works(second), await works(third)]).toEqual([401, 200, 200])
    service.clock.advance(60 * second_ms)
    expect([await works(second), await works(third)]).toEqual([401, 200])
  })

  test.each(['604801', '-1', '1.5', '"1"'])('grace_seconds %s is refused', async (text) => {
    const { admin_key, api_key } = await service.signUp()
    const answer = await service.ask('POST', '/v1/agents/agent-one/rotate-key', {
      key: admin_key,
      body: `{"grace_seconds": ${text}}`,
    })
    expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/grace_seconds'])
    expect(await works(api_key)).toBe(200)
  })

  test('without a key, after the operator has ended all of them, api_key is null until rotate-key', async () => {
    const { tenant_id, api_key, agent_id } = await service.signUp()
    const { db } = service.app
    await tenants.revokeKeys(db, (tx, id) => approvalKeys.endSome(tx, id, 500), tenant_id)
    const key = await tenants.resetAdminKey(db, tenant_id)
    service.clock.advance(2 * second_ms) // nodes forget the keys
    expect(await works(api_key)).toBe(401)
    const path = `/v1/agents/${agent_id}`
    const read = await service.ask('GET', path, { key })
    expect([read.status, read.body]).toMatchObject([200, { agent_id, api_key: null, mode: 'full' }])
    const list = await service.ask('GET', '/v1/agents', { key })
    expect(list.body.items).toEqual([read.body])
    expect((await service.ask('POST', `${path}/pause`, { key })).body.api_key).toBeNull()
    expect((await service.ask('POST', `${path}/resume`, { key })).body).toEqual(read.body)
    const rotated = await service.ask('POST', `${path}/rotate-key`, { key, body: { grace_seconds: 60 } })
    expect(rotated.body).toEqual({
      ...{ ...read.body, api_key: expect.stringMatching(/^svc_agt_[0-9A-Za-z]{38}$/) },
      previous_key_expires_at: null,
    })
    expect(await works(rotated.body.api_key)).toBe(200)
    const shown = `svc_agt_****${rotated.body.api_key.slice(-4)}`
    expect((await service.ask('GET', path, { key })).body).toEqual({ ...read.body, api_key: shown })
  })

  test('a deleted agent answers 204, its keys die with their graces, its records stay', async () => {
    const { admin_key, api_key: first } = await service.signUp()
    await service.ask('PUT', '/v1/kv/a/kept', { key: first, body: { value: 1 } })
    const entry = await service.ask('POST', '/v1/audit', { key: first, body: { action: 'kept' } })
    const rotated = await service.ask('POST', '/v1/agents/agent-one/rotate-key', {
      key: admin_key,
      body: { grace_seconds: 60 },
    })
    const other = await service.addAgent(admin_key, 'other')
    const deleted = await service.ask('DELETE', '/v1/agents/agent-one', { key: admin_key })
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect([await works(first), await works(rotated.body.api_key), await works(other.api_key)]).toEqual([
      401, 401, 200,
    ])
    expect((await service.ask('GET', '/v1/kv/a/kept', { key: other.api_key })).status).toBe(200)
    const kept = await service.ask('GET', `/v1/audit/${entry.body.id}`, { key: admin_key })
    expect([kept.status, kept.body]).toEqual([200, entry.body])
    expect(refusal(await service.ask('GET', '/v1/agents/agent-one', { key: admin_key }))).toEqual(
      unknown_agent,
    )
    expect(refusal(await service.ask('DELETE', '/v1/agents/agent-one', { key: admin_key }))).toEqual(
      unknown_agent,
    )
  })

  test('the name of a deleted agent may be used again, by a new agent with a new key', async () => {
    const { admin_key, api_key } = await service.signUp()
    await service.ask('DELETE', '/v1/agents/agent-one', { key: admin_key })
    service.clock.advance(1_000)
    const again = await create(admin_key, { name: 'agent-one' })
    expect([again.status, again.body.created_at]).toEqual([201, iso(service.clock.now())])
    expect([await works(api_key), await works(again.body.api_key)]).toEqual([401, 200])
  })

  test('at rest an agent key is its SHA-256 and its last four characters', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const rows = await service.app.db.all(
      unnamedAcrossTenants<{ subject: string; hash: string; last_four: string }>(
        'test.credentials',
        `select subject, hash, last_four from credentials where tenant_id = :tenant_id and kind = 'agent'`,
      ),
      { tenant_id },
    )
    expect(rows).toEqual([{ subject: 'agent-one', hash: hashKey(api_key), last_four: api_key.slice(-4) }])
  })
})

async function pagesOf(service: TestService, key: string, limit: number): Promise<unknown[][]> {
  const pages: unknown[][] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const { status, body } = await service.ask('GET', `/v1/agents?limit=${limit}${query}`, { key })
    expect(status).toBe(200)
    pages.push(body.items)
    cursor = body.next_cursor
  } while (cursor !== null)
  return pages
}

const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
const plans_file = join(folder, 'plans.json')
writeFileSync(
  plans_file,
  JSON.stringify({
    free: { ...default_plans.free, agents: 2 },
    pro: { ...default_plans.pro, agents: null },
  }),
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

forEachRacedService(
  'Agents on the plans of PLANS_FILE',
  (service) => {
    const create = (key: string, name: string, headers: Record<string, string> = {}) =>
      service.ask('POST', '/v1/agents', { key, headers, body: { name } })
    const quota = async (tenant_id: string, key: string) =>
      (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key })).body.quota.agents

    test('over quota is 402 QUOTA_EXCEEDED with quota, used and limit; nothing is created', async () => {
      const { tenant_id, admin_key } = await service.signUp()
      expect((await create(admin_key, 'second')).status).toBe(201)
      expect(refusal(await create(admin_key, 'third'))).toEqual([
        402,
        'QUOTA_EXCEEDED',
        { quota: 'agents', used: 2, limit: 2 },
      ])
      expect(await quota(tenant_id, admin_key)).toEqual({ used: 2, limit: 2 })
      expect((await service.ask('GET', '/v1/agents/third', { key: admin_key })).status).toBe(404)
    })

    test('at the limit a taken name is still 409', async () => {
      const { admin_key } = await service.signUp()
      await create(admin_key, 'second')
      expect(refusal(await create(admin_key, 'second'))).toEqual([409, 'AGENT_ID_TAKEN', undefined])
    })

    test('a replayed creation counts once', async () => {
      const { tenant_id, admin_key } = await service.signUp()
      const headers = { 'idempotency-key': 'make-the-second' }
      const made = await create(admin_key, 'second', headers)
      const again = await create(admin_key, 'second', headers)
      expect([again.status, again.text]).toEqual([201, made.text])
      expect(await quota(tenant_id, admin_key)).toEqual({ used: 2, limit: 2 })
    })

    test('removing an agent gives its place back, once', async () => {
      const { tenant_id, admin_key } = await service.signUp()
      await create(admin_key, 'second')
      await service.ask('DELETE', '/v1/agents/second', { key: admin_key })
      await service.ask('DELETE', '/v1/agents/second', { key: admin_key })
      expect(await quota(tenant_id, admin_key)).toEqual({ used: 1, limit: 2 })
      expect((await create(admin_key, 'third')).status).toBe(201)
      expect((await create(admin_key, 'fourth')).status).toBe(402)
    })

    test('limit null is unlimited', async () => {
      const { tenant_id, admin_key } = await service.signUp('pro')
      for (const name of ['second', 'third', 'fourth']) {
        expect((await create(admin_key, name)).status).toBe(201)
      }
      expect(await quota(tenant_id, admin_key)).toEqual({ used: 4, limit: null })
    })
  },
  { PLANS_FILE: plans_file },
)

forEachRacedService(
  'Agents with CALLBACK_HTTPS_ONLY=true',
  (service) => {
    test.each([
      ['https://example.com/', 201],
      ['http://example.com/', 400],
      ['http://127.0.0.1:3000/', 400],
    ])('callback_base_url %s answers %d', async (callback_base_url, status) => {
      const { admin_key } = await service.signUp()
      const answer = await service.ask('POST', '/v1/agents', {
        key: admin_key,
        body: { name: 'abc', callback_base_url },
      })
      expect(answer.status).toBe(status)
    })
  },
  { CALLBACK_HTTPS_ONLY: 'true' },
)
