import { describe, expect, test } from 'bun:test'
import { beforeCommitOf } from '../../test/support/held.ts'
import { type Answer, askMany, forEachRacedService, type TestService } from '../../test/support/service.ts'
import { day_ms, hour_ms, iso, second_ms } from '../base/clock.ts'
import { hashKey, keyKind } from '../base/keys.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { counted_quotas, default_plans } from '../features.ts'
import { secretsUnder } from '../secrets/service.ts'
import { hasControls, moves, nameKey } from './tenant.ts'

/** Those of the API contract as they are here, and others as their features declare them. */
function quotaOf(limits: typeof free | typeof pro | typeof unlimited, used: Record<string, number> = {}) {
  const plan = default_plans[limits === free ? 'free' : limits === pro ? 'pro' : 'unlimited']!
  const declared = Object.fromEntries(counted_quotas.map(({ name }) => [name, plan[name]!]))
  return Object.fromEntries(
    Object.entries({ ...declared, ...limits }).map(([name, limit]) => [
      name,
      { used: used[name] ?? 0, limit },
    ]),
  )
}

const free = {
  agents: 25,
  kv_keys: 5_000,
  dlq_items: 500,
  active_schedules: 100,
  inboxes: 3,
  api_calls_per_month: 500,
  storage_bytes: 1_073_741_824,
}
const pro = {
  agents: 500,
  kv_keys: 1_000_000,
  dlq_items: 50_000,
  active_schedules: 50_000,
  inboxes: 50,
  api_calls_per_month: null,
  storage_bytes: 107_374_182_400,
}
const unlimited = {
  ...{ agents: null, kv_keys: null, dlq_items: null, active_schedules: null, inboxes: null },
  ...{ api_calls_per_month: null, storage_bytes: null },
}

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body?.error?.details?.issues ?? []
  return [status, body?.error?.code, ...issues.map(({ path }) => path)]
}

function newName(): string {
  return `n-${crypto.randomUUID().slice(0, 13)}`
}

const owner_email = 'owner@example.com'
const confirm = 'DELETE ALL DATA'

forEachRacedService('Tenants', (service) => {
  const create = (body: object) =>
    service.ask('POST', '/v1/tenants', { body: { name: newName(), owner_email, ...body } })

  test('create answers the fields of the contract plus signing_secret, status and created_at', async () => {
    const name = newName()
    const created = await create({ name })
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      tenant_id: expect.stringMatching(/^ten_[0-9a-z]{26}$/),
      name,
      plan: 'free',
      quota: quotaOf(free),
      owner_email,
      status: 'active',
      purge_at: null,
      created_at: iso(service.clock.now()),
      admin_key: expect.stringMatching(/^svc_adm_[0-9A-Za-z]{38}$/),
      signing_secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      ...{ frozen_at: null, frozen_reason: null, resumed_at: null },
    })
    expect(keyKind(created.body.admin_key)).toBe('admin')
    expect(created.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/)
    expect(created.headers.get('cache-control')).toBe('no-store')
  })

  test.each([
    [{}, 'free', free],
    [{ plan: null }, 'free', free],
    [{ plan: 'free' }, 'free', free],
    [{ plan: 'pro' }, 'pro', pro],
    [{ plan: 'unlimited' }, 'unlimited', unlimited],
  ])('POST /tenants with %j makes a tenant on plan %s', async (body, plan, limits) => {
    const created = await create(body)
    expect([created.status, created.body.plan, created.body.quota]).toEqual([201, plan, quotaOf(limits)])
  })

  test.each(['builder', 'enterprise', 'FREE', 'Pro', ' free', 'toString', '', 1, true, [['free']], {}])(
    'plan %j is none that a client may choose',
    async (plan) => {
      expect(broken(await create({ plan }))).toEqual([400, 'VALIDATION_FAILED', '/plan'])
    },
  )

  describe('a plan that is open because all is loopback', () => {
    const signUp = (headers: Record<string, string>, plan?: string) =>
      service.ask('POST', '/v1/tenants', { headers, body: { name: newName(), owner_email, plan } })

    test.each([
      ...['Forwarded', 'Via', 'X-Forwarded-For', 'x-forwarded-proto', 'X-Forwarded-Anything', 'X-Real-IP'],
      ...['CF-Connecting-IP', 'True-Client-IP'],
    ])('is closed to a request with %s, and the others are open', async (name) => {
      const { status, body } = await signUp({ [name]: '192.0.2.1' }, 'unlimited')
      expect([status, body.error.code, body.error.details.issues]).toEqual([
        ...[400, 'VALIDATION_FAILED'],
        [{ path: '/plan', message: 'must be equal to one of the allowed values (free, pro)' }],
      ])
      expect((await signUp({ [name]: '192.0.2.1' }, 'pro')).body.plan).toBe('pro')
      expect((await signUp({ [name]: '192.0.2.1' })).body.plan).toBe('free')
    })

    test('is open to a request with any other header', async () => {
      const { status, body } = await signUp({ 'x-forward': 'x', 'user-agent': 'via' }, 'unlimited')
      expect([status, body.plan]).toEqual([201, 'unlimited'])
    })
  })

  test('a plan that is not open is refused with those that are', async () => {
    const { body } = await create({ plan: 'enterprise' })
    expect(body.error.details.issues).toEqual([
      { path: '/plan', message: 'must be equal to one of the allowed values (free, pro, unlimited)' },
    ])
  })

  test.each([
    ['three characters', 'abc', 'abc'],
    ['forty', 'x'.repeat(40), 'x'.repeat(40)],
    ['two after trimming, of both kinds of space', ' \u00a0 ab \t\n', null],
    ['three and white space around them', '  xyz \u2003', 'xyz'],
    ['forty and white space around them', ` ${'y'.repeat(40)} `, 'y'.repeat(40)],
    ['two', 'ab', null],
    ['two, padded to more', '   ab   ', null],
    ['forty-one', 'x'.repeat(41), null],
    ['none', '', null],
    ['white space alone', '      ', null],
    ['forty emoji of two UTF-16 units each', '\u{1f600}'.repeat(40), '\u{1f600}'.repeat(40)],
    ['forty-one emoji', '\u{1f600}'.repeat(41), null],
    ['two emoji, which are four UTF-16 units', '\u{1f600}\u{1f680}', null],
    ['three code points that show as one character', '\u{1f469}\u200d\u{1f467}', '\u{1f469}\u200d\u{1f467}'],
    ['inner white space, kept as it is', 'a  \u00a0 b', 'a  \u00a0 b'],
  ] as [string, string, string | null][])(
    'a name has 3 to 40 characters after trimming: %s',
    async (_, sent, kept) => {
      const answer = await create({ name: sent })
      if (kept === null) expect(broken(answer)).toEqual([400, 'VALIDATION_FAILED', '/name'])
      else expect([answer.status, answer.body.name]).toEqual([201, kept])
    },
  )

  test.each(['a\tbc', 'a\nbc', 'a\u001bbc', 'a\u007fbc', 'a\u0085bc', 'a\u009fbc', 'a\u0000bc'])(
    'a name holds no control characters: %j',
    async (name) => {
      expect(broken(await create({ name }))).toEqual([400, 'VALIDATION_FAILED', '/name'])
    },
  )

  test.each([
    ['as it is', 'acme corp', 'acme corp'],
    ['in capitals', 'Globex', 'GLOBEX'],
    ['with an accent, in capitals', 'Café Noir', 'CAFÉ NOIR'],
    ['with the accent typed as a second character', 'Crème', 'Cre\u0300me'],
    ['with white space around it', 'initech', '  Initech '],
    ['in Greek, whose small sigma has two forms', 'ΟΔΟΣΑΣ', 'οδοσασ'],
  ])('names are unique regardless of case: %s', async (_, first, second) => {
    expect((await create({ name: first })).status).toBe(201)
    expect(refusal(await create({ name: second }))).toEqual([409, 'TENANT_NAME_TAKEN', undefined])
  })

  test.each([
    'a@b.co',
    'first.last+tag@example.com',
    "o'brien@mail.example.co.uk",
    'UPPER@EXAMPLE.COM',
    `${'x'.repeat(242)}@example.com`,
  ])('owner_email %s is kept as it was sent', async (email) => {
    const answer = await create({ owner_email: email })
    expect([answer.status, answer.body.owner_email]).toEqual([201, email])
  })

  test.each([
    'plain',
    '@example.com',
    'a@',
    'a@@b.co',
    'a b@example.com',
    'a@b..co',
    '.a@b.co',
    'a.@b.co',
    'a@-b.co',
    ' a@b.co',
    'a@b.co ',
    'a\n@b.co',
    '',
    `${'x'.repeat(243)}@example.com`,
    7,
    [['a@b.co']],
  ])('owner_email %j is not an address', async (email) => {
    expect(broken(await create({ owner_email: email }))).toEqual([400, 'VALIDATION_FAILED', '/owner_email'])
  })

  test('every broken rule is listed', async () => {
    const answer = await service.ask('POST', '/v1/tenants', { body: { owner_email: 'x', plan: 'gold' } })
    expect(answer.status).toBe(400)
    const paths = answer.body.error.details.issues.map(({ path }: { path: string }) => path)
    expect(paths.toSorted()).toEqual(['/name', '/owner_email', '/plan'])
  })

  test('a client can never choose its tenant, and hears which fields were ignored', async () => {
    const answer = await create({ tenant_id: 'ten_00000000000000000000000000', status: 'pending_deletion' })
    expect(answer.status).toBe(201)
    expect(answer.body.tenant_id).not.toBe('ten_00000000000000000000000000')
    expect(answer.body.status).toBe('active')
    expect(answer.headers.get('x-ignored-fields')).toBe('tenant_id, status')
  })

  test('GET adds owner_email, status and purge_at, and says what is used', async () => {
    const tenant = await service.signUp('pro')
    const created_at = iso(service.clock.now())
    await service.ask('PUT', '/v1/kv/a/one', { key: tenant.api_key, body: { value: 1 } })
    await service.ask('PUT', '/v1/kv/a/two', { key: tenant.api_key, body: { value: 1 } })
    await service.addAgent(tenant.admin_key, 'agent-two')
    const storage_bytes = 4 * 256 + 2 * 'agent-one'.length + 2 * 'aone1'.length
    const read = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
    expect(read.status).toBe(200)
    expect(read.body).toEqual({
      tenant_id: tenant.tenant_id,
      name: tenant.name,
      plan: 'pro',
      quota: quotaOf(pro, { agents: 2, kv_keys: 2, storage_bytes }),
      owner_email,
      status: 'active',
      purge_at: null,
      created_at,
      ...{ frozen_at: null, frozen_reason: null, resumed_at: null },
    })
  })

  test.each([
    ['GET', '', undefined],
    ['DELETE', '', { confirm }],
    ['POST', '/restore', undefined],
    ['POST', '/rotate-key', undefined],
    ['POST', '/rotate-signing-secret', undefined],
  ])(
    '%s /tenants/{id}%s of another tenant answers 403, existing or not, byte for byte alike',
    async (method, verb, body) => {
      const own = await service.signUp()
      const other = await service.signUp()
      const ids = [
        other.tenant_id,
        'ten_00000000000000000000000000',
        'nonsense',
        own.tenant_id.toUpperCase(),
        'a%2Fb',
        '%00',
        '%ff',
        'x'.repeat(300),
      ]
      const answers = await Promise.all(
        ids.map((id) =>
          service.ask(method, `/v1/tenants/${id}${verb}`, {
            key: own.admin_key,
            headers: { 'x-request-id': 'request-0001' },
            body,
          }),
        ),
      )
      const bytes = answers.map(({ status, headers, text }) => {
        headers.delete('date')
        return JSON.stringify([status, [...headers], text])
      })
      expect(new Set(bytes).size).toBe(1)
      expect(answers[0]!.status).toBe(403)
      expect(answers[0]!.body).toEqual({
        error: {
          code: 'FORBIDDEN',
          message: 'This credential may not do that.',
          request_id: 'request-0001',
        },
      })
      const untouched = await service.ask('GET', `/v1/tenants/${other.tenant_id}`, { key: other.admin_key })
      expect([untouched.status, untouched.body.status]).toEqual([200, 'active'])
    },
  )

  test.each([
    ['no body', undefined],
    ['an empty object', {}],
    ['null', { confirm: null }],
    ['lower case', { confirm: 'delete all data' }],
    ['a space more', { confirm: 'DELETE ALL DATA ' }],
    ['true', { confirm: true }],
    ['a list', { confirm: [confirm] }],
    ['another field', { confirmed: confirm }],
    ['the bare text', JSON.stringify(confirm)],
    ['a list around it', [{ confirm }]],
    ['broken JSON', '{"confirm": "DELETE ALL DATA"'],
    ['no UTF-8', new Uint8Array([0xff, 0xfe])],
    ['a later member that takes it back', '{"confirm": "DELETE ALL DATA", "confirm": "no"}'],
  ])('DELETE with %s answers 400 DELETE_REQUIRES_CONFIRM and deletes nothing', async (_, body) => {
    const tenant = await service.signUp()
    const path = `/v1/tenants/${tenant.tenant_id}`
    const refused = await service.ask('DELETE', path, { key: tenant.admin_key, body })
    expect(refusal(refused)).toEqual([400, 'DELETE_REQUIRES_CONFIRM', undefined])
    expect((await service.ask('GET', path, { key: tenant.admin_key })).body.status).toBe('active')
  })

  test('DELETE answers 202 with purge_at 30 days later; again, 202 with the same purge_at', async () => {
    const tenant = await service.signUp()
    const path = `/v1/tenants/${tenant.tenant_id}`
    const asked = { key: tenant.admin_key, body: { confirm } }
    const pending = {
      tenant_id: tenant.tenant_id,
      status: 'pending_deletion',
      purge_at: iso(service.clock.now() + 30 * day_ms),
    }
    const first = await service.ask('DELETE', path, asked)
    expect([first.status, first.body]).toEqual([202, pending])
    service.clock.advance(day_ms)
    const second = await service.ask('DELETE', path, asked)
    expect([second.status, second.body]).toEqual([202, pending])
    const read = await service.ask('GET', path, { key: tenant.admin_key })
    expect([read.status, read.body.status, read.body.purge_at]).toEqual([
      200,
      'pending_deletion',
      pending.purge_at,
    ])
  })

  test('meanwhile all else answers 403 TENANT_PENDING_DELETION, and the name stays taken', async () => {
    const tenant = await service.signUp()
    const path = `/v1/tenants/${tenant.tenant_id}`
    const approval = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
    await service.ask('GET', '/v1/kv/a/b', { key: tenant.api_key })
    await service.ask('DELETE', path, { key: tenant.admin_key, body: { confirm } })
    const asked: [string, string, string][] = [
      [tenant.admin_key, 'POST', `${path}/rotate-key`],
      [tenant.admin_key, 'POST', `${path}/rotate-signing-secret`],
      [tenant.admin_key, 'GET', '/v1/agents'],
      [tenant.admin_key, 'GET', '/v1/audit'],
      [tenant.admin_key, 'GET', '/v1/kv/a/b'],
      [tenant.api_key, 'GET', '/v1/kv/a/b'],
      [tenant.api_key, 'GET', '/v1/agents/agent-one'],
      [tenant.api_key, 'GET', path],
      [approval.body.approval_key, 'GET', path],
    ]
    for (const [key, method, asked_path] of asked) {
      expect(refusal(await service.ask(method, asked_path, { key }))).toEqual([
        403,
        'TENANT_PENDING_DELETION',
        undefined,
      ])
    }
    const taken = await create({ name: tenant.name.toUpperCase() })
    expect(refusal(taken)).toEqual([409, 'TENANT_NAME_TAKEN', undefined])
  })

  test('restore answers 200 with the tenant as GET does, and every key works again at once', async () => {
    const tenant = await service.signUp()
    const path = `/v1/tenants/${tenant.tenant_id}`
    await service.ask('PUT', '/v1/kv/a/kept', { key: tenant.api_key, body: { value: 'still here' } })
    await service.ask('DELETE', path, { key: tenant.admin_key, body: { confirm } })
    expect((await service.ask('GET', '/v1/kv/a/kept', { key: tenant.api_key })).status).toBe(403)
    const restored = await service.ask('POST', `${path}/restore`, { key: tenant.admin_key })
    const read = await service.ask('GET', path, { key: tenant.admin_key })
    expect([restored.status, restored.text]).toEqual([200, read.text])
    expect([read.body.status, read.body.purge_at]).toEqual(['active', null])
    const kept = await service.ask('GET', '/v1/kv/a/kept', { key: tenant.api_key })
    expect([kept.status, kept.body.value]).toEqual([200, 'still here'])
  })

  test('restore of an active tenant answers 409 INVALID_STATE with its status', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const refused = await service.ask('POST', `/v1/tenants/${tenant_id}/restore`, { key: admin_key })
    expect(refusal(refused)).toEqual([409, 'INVALID_STATE', { status: 'active' }])
  })

  test.each([
    [1, [200, undefined]],
    [0, [409, { status: 'pending_deletion' }]],
  ] as const)('%d ms before its purge, restore answers %j', async (ms_before, expected) => {
    const { tenant_id, admin_key } = await service.signUp()
    const path = `/v1/tenants/${tenant_id}`
    await service.ask('DELETE', path, { key: admin_key, body: { confirm } })
    service.clock.advance(30 * day_ms - ms_before)
    const answer = await service.ask('POST', `${path}/restore`, { key: admin_key })
    expect([answer.status, answer.body.error?.details]).toEqual([...expected])
  })

  test('a tenant deleted again after a restore gets 30 days again', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const path = `/v1/tenants/${tenant_id}`
    await service.ask('DELETE', path, { key: admin_key, body: { confirm } })
    service.clock.advance(10 * day_ms)
    await service.ask('POST', `${path}/restore`, { key: admin_key })
    const again = await service.ask('DELETE', path, { key: admin_key, body: { confirm } })
    expect(again.body.purge_at).toBe(iso(service.clock.now() + 30 * day_ms))
  })

  const rotate = (tenant_id: string, key: string, body?: unknown) =>
    service.ask('POST', `/v1/tenants/${tenant_id}/rotate-key`, { key, body })
  const works = async (tenant_id: string, key: string) =>
    (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key })).status

  test('rotate-key answers the tenant with a new one-time admin key; the old one dies at once', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    expect(await works(tenant_id, admin_key)).toBe(200)
    const rotated = await rotate(tenant_id, admin_key)
    expect(rotated.status).toBe(200)
    const { admin_key: new_key, previous_key_expires_at, ...rest } = rotated.body
    expect(keyKind(new_key)).toBe('admin')
    expect(new_key).not.toBe(admin_key)
    expect(previous_key_expires_at).toBeNull()
    expect(await works(tenant_id, admin_key)).toBe(401)
    const read = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: new_key })
    expect(read.body).toEqual(rest)
    expect(read.text).not.toContain('svc_adm_')
  })

  test.each([
    ['0', 0],
    ['1', 1],
    ['60.0', 60],
    ['604800', 604_800],
  ])('grace_seconds %s is how long the old key still works, to the millisecond', async (text, seconds) => {
    const { tenant_id, admin_key } = await service.signUp()
    const rotated = await rotate(tenant_id, admin_key, `{"grace_seconds": ${text}}`)
    const ends = service.clock.now() + seconds * second_ms
    expect(rotated.status).toBe(200)
    expect(rotated.body.previous_key_expires_at).toBe(seconds === 0 ? null : iso(ends))
    expect(await works(tenant_id, rotated.body.admin_key)).toBe(200)
    service.clock.advance(Math.max(0, seconds * second_ms - 1))
    expect(await works(tenant_id, admin_key)).toBe(seconds === 0 ? 401 : 200)
    service.clock.advance(1)
    expect(await works(tenant_id, admin_key)).toBe(401)
    expect(await works(tenant_id, rotated.body.admin_key)).toBe(200)
  })

  test.each(['604801', '-1', '1.5', '"60"', 'true', '[]', '{}', '1e400'])(
    'grace_seconds %s is refused and rotates nothing',
    async (text) => {
      const { tenant_id, admin_key } = await service.signUp()
      const refused = await rotate(tenant_id, admin_key, `{"grace_seconds": ${text}}`)
      expect(broken(refused)).toEqual([400, 'VALIDATION_FAILED', '/grace_seconds'])
      expect(await works(tenant_id, admin_key)).toBe(200)
    },
  )

  test.each([
    ['an empty body', undefined],
    ['an empty object', {}],
    ['null', { grace_seconds: null }],
  ])('without grace_seconds (%s) the old key dies at once', async (_, body) => {
    const { tenant_id, admin_key } = await service.signUp()
    expect((await rotate(tenant_id, admin_key, body)).status).toBe(200)
    expect(await works(tenant_id, admin_key)).toBe(401)
  })

  test.each([
    ['at once', 0],
    ['with a grace of its own', 3_600],
  ])('rotating again %s ends an earlier grace at once', async (_, grace_seconds) => {
    const { tenant_id, admin_key: first } = await service.signUp()
    const second = (await rotate(tenant_id, first, { grace_seconds: 3_600 })).body.admin_key
    expect(await works(tenant_id, first)).toBe(200)
    const third = (await rotate(tenant_id, second, { grace_seconds })).body.admin_key
    expect(await works(tenant_id, first)).toBe(401)
    expect(await works(tenant_id, second)).toBe(grace_seconds === 0 ? 401 : 200)
    expect(await works(tenant_id, third)).toBe(200)
  })

  test('a key in its grace may itself rotate', async () => {
    const { tenant_id, admin_key: first } = await service.signUp()
    const second = (await rotate(tenant_id, first, { grace_seconds: 60 })).body.admin_key
    const third = (await rotate(tenant_id, first)).body.admin_key
    const alive = await Promise.all([first, second, third].map((key) => works(tenant_id, key)))
    expect(alive).toEqual([401, 401, 200])
  })

  test('at rest a key is its SHA-256 and its last four characters', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const rows = await service.app.db.all(
      unnamedAcrossTenants<{ hash: string; last_four: string }>(
        'test.credentials',
        `select hash, last_four from credentials where tenant_id = :tenant_id and kind = 'admin'`,
      ),
      { tenant_id },
    )
    expect(rows).toEqual([{ hash: hashKey(admin_key), last_four: admin_key.slice(-4) }])
  })

  test('rotate-signing-secret answers a new secret; both sign for 24 h, neither lies in clear', async () => {
    const { tenant_id, admin_key, signing_secret } = await service.signUp()
    const path = `/v1/tenants/${tenant_id}/rotate-signing-secret`
    const rotated = await service.ask('POST', path, { key: admin_key })
    const read = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
    expect(rotated.status).toBe(200)
    const { signing_secret: new_secret, ...rest } = rotated.body
    expect(new_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(new_secret).not.toBe(signing_secret)
    expect(rest).toEqual(read.body)

    const row = await secretRow(service, tenant_id)
    expect(row.previous_signing_secret_until).toBe(service.clock.now() + 24 * hour_ms)
    expect(opened(service, tenant_id, row.signing_secret)).toBe(new_secret)
    expect(opened(service, tenant_id, row.previous_signing_secret!)).toBe(signing_secret)
    expect(row.signing_secret + row.previous_signing_secret).not.toContain('whsec_')
  })

  test('a sealed signing secret opens neither in another tenant nor under another key', async () => {
    const { tenant_id } = await service.signUp()
    const { signing_secret } = await secretRow(service, tenant_id)
    expect(() => opened(service, 'ten_other', signing_secret)).toThrow()
    const foreign = secretsUnder('another secret key')
    expect(() => foreign.open(`signing_secret ${tenant_id}`, signing_secret)).toThrow()
  })
})

forEachRacedService(
  'Tenants with SIGNUP=closed',
  (service) => {
    test.each([{ name: 'acme', owner_email }, {}, '{', undefined])(
      'nobody may create a tenant, and hears why: %j',
      async (body) => {
        const answer = await service.ask('POST', '/v1/tenants', { body })
        expect(refusal(answer)).toEqual([403, 'FORBIDDEN', undefined])
        expect(answer.body.error.message).toBe(
          'Sign-up is closed: the operator of this service creates tenants.',
        )
      },
    )
  },
  { SIGNUP: 'closed' },
)

function secretRow(service: TestService, tenant_id: string) {
  return service.app.db.one(
    unnamedAcrossTenants<{
      signing_secret: string
      previous_signing_secret: string | null
      previous_signing_secret_until: number | null
    }>(
      'test.secrets',
      `select signing_secret, previous_signing_secret, previous_signing_secret_until
         from tenants where tenant_id = :tenant_id`,
    ),
    { tenant_id },
  ) as Promise<{
    signing_secret: string
    previous_signing_secret: string | null
    previous_signing_secret_until: number | null
  }>
}

function opened(service: TestService, tenant_id: string, sealed: string): string {
  return secretsUnder(service.app.secret_key.value).open(`signing_secret ${tenant_id}`, sealed)
}

forEachRacedService(
  'Sign-up with DEFAULT_PLAN and PLANS_OPEN',
  (service) => {
    const create = (body: object) =>
      service.ask('POST', '/v1/tenants', { body: { name: newName(), owner_email, ...body } })

    test.each([
      [{}, 'unlimited'],
      [{ plan: null }, 'unlimited'],
      [{ plan: 'unlimited' }, 'unlimited'],
      [{ plan: 'builder' }, 'builder'],
    ])('%j makes a tenant on plan %s', async (body, plan) => {
      const created = await create(body)
      expect([created.status, created.body.plan]).toEqual([201, plan])
    })

    test.each(['free', 'pro', 'enterprise'])('%s is refused with the plans that are open', async (plan) => {
      const { status, body } = await create({ plan })
      expect([status, body.error.details.issues]).toEqual([
        400,
        [{ path: '/plan', message: 'must be equal to one of the allowed values (unlimited, builder)' }],
      ])
    })

    test('a plan that a setting opens is open to a request that was forwarded', async () => {
      const headers = { 'x-forwarded-for': '192.0.2.1' }
      for (const plan of ['unlimited', 'builder']) {
        const body = { name: newName(), owner_email, plan }
        expect((await service.ask('POST', '/v1/tenants', { headers, body })).body.plan).toBe(plan)
      }
    })

    test('an unlimited tenant calls /api past 500 times', async () => {
      const { admin_key } = (await create({})).body
      const answers = await askMany(520, () => service.ask('GET', '/api/rate-limit/k', { key: admin_key }))
      expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    })
  },
  { DEFAULT_PLAN: 'unlimited', PLANS_OPEN: 'builder' },
)

test('a tenant moves from active to pending_deletion and back', () => {
  expect(moves).toEqual({
    delete: { from: ['active', 'pending_deletion'], to: 'pending_deletion' },
    restore: { from: ['pending_deletion'], to: 'active' },
  })
})

test.each([
  ['Acme', 'ACME'],
  ['Crème', 'CRE\u0300ME'],
  ['ΟΔΟΣΑΣ', 'οδοσασ'],
])('%s and %s are one name', (one, other) => {
  expect(nameKey(one)).toBe(nameKey(other))
})

test.each([
  ['plain', false],
  ['line\u2028separator', false],
  ['\u0000', true],
  ['a\u001f', true],
  ['\u007f', true],
  ['\u0080', true],
  ['\u009f', true],
  ['\u00a0', false],
] as const)('%j holds control characters: %p', (text, expected) => {
  expect(hasControls(text)).toBe(expected)
})

forEachRacedService(
  'Two rotations of the admin key at once',
  (service) => {
    test.each([0, 60])('after %d s of grace: a key that has ended rotates nothing', async (grace_seconds) => {
      const { tenant_id, admin_key: key } = await service.signUp()
      const path = `/v1/tenants/${tenant_id}`
      const rotate = (body: object) => service.ask('POST', `${path}/rotate-key`, { key, body })
      const [first, second] = await beforeCommitOf(
        service.app.db,
        () => rotate({ grace_seconds }),
        () => rotate({}),
      )
      const ended = grace_seconds === 0
      expect([first.status, second.status]).toEqual([200, ended ? 401 : 200])
      const { admin_key } = ended ? first.body : second.body
      expect((await service.ask('GET', path, { key: admin_key })).status).toBe(200)
    })
  },
  {},
  { background: false },
)
