import { describe, expect, test } from 'bun:test'
import { cron_secret, forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { plain_steering } from '../../test/support/steering.ts'
import { iso } from '../base/clock.ts'
import { resume as resumeTenant } from '../tenants/freeze-store.ts'

const callback_url = 'http://127.0.0.1:9/'
const callback_payload = '{"n":1e400,"digits":123456789012345678901234567890,"a":1,"a":2}'

async function ask(service: TestService, { api_key }: TestTenant, more = '') {
  const body = `{"title":"Refund 40 €?","prompt":"Line one\\nLine two","callback_url":"${callback_url}"${more}}`
  const made = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
  expect(made.status).toBe(201)
  return made.body as { id: string; created_at: string; expires_at: string }
}

async function keyOf(service: TestService, { admin_key }: TestTenant, body: object = {}) {
  const made = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body })
  expect(made.status).toBe(201)
  return made.body as { approval_key: string; approval_key_id: string; approval_url: string | null }
}

forEachService('GET /v1/approvals/{id}', (service) => {
  const read = (key: string, id: string, query = '') =>
    service.ask('GET', `/v1/approvals/${id}${query}`, { headers: { 'x-approval-key': key } })

  test('shows what is to be decided and who asks, the payload with every byte of it', async () => {
    const tenant = await service.signUp()
    const { id, created_at, expires_at } = await ask(
      service,
      tenant,
      `,"callback_payload":${callback_payload}`,
    )
    const { approval_key } = await keyOf(service, tenant, { checkpoint_id: id })
    const seen = await read(approval_key, id)
    expect(seen.status).toBe(200)
    expect(seen.text).toBe(
      `{"checkpoint_id":"${id}","title":"Refund 40 €?","prompt":"Line one\\nLine two",` +
        `"payload":${callback_payload},"agent":{"agent_id":"agent-one","name":"agent-one"},` +
        `"status":"pending","created_at":"${created_at}","expires_at":"${expires_at}",` +
        '"reason":null,"resolved_by":null,"resolved_at":null,' +
        `${JSON.stringify({ ...plain_steering, effect_payload: null, effect_payload_hash: null, may_decide: true, voted: null, frozen_at: null }).slice(1)}`,
    )
    expect(seen.headers.get('cache-control')).toBe('no-store')
  })

  test('says since when the tenant is frozen', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const { approval_key } = await keyOf(service, tenant, { checkpoint_id: id })
    const path = `/v1/tenants/${tenant.tenant_id}`
    const frozen = await service.ask('POST', `${path}/freeze`, { key: tenant.admin_key })
    expect((await read(approval_key, id)).body.frozen_at).toBe(frozen.body.frozen_at)
    expect(frozen.body.frozen_at).toBeString()
    await service.ask('POST', `${path}/resume`, { key: tenant.admin_key })
    expect((await read(approval_key, id)).body.frozen_at).toBeNull()
  })

  test('says since when a tenant is frozen again, while its resume from the freeze before goes on', async () => {
    const tenant = await service.signUp()
    const { approval_key } = await keyOf(service, tenant)
    const { id } = await ask(service, tenant)
    const freeze = async () => {
      const path = `/v1/tenants/${tenant.tenant_id}/freeze`
      return (await service.ask('POST', path, { key: tenant.admin_key })).body.frozen_at
    }
    const first = await freeze()
    const { tenant_id } = tenant
    await service.app.db.write((tx) => resumeTenant(tx, tenant_id, service.clock.now())) // and moves nothing yet
    service.clock.advance(1_000)
    const again = await freeze()
    expect([again === first, (await read(approval_key, id)).body.frozen_at]).toEqual([false, again])
  })

  test('says after a wait whether the tenant is frozen by then', async () => {
    const tenant = await service.signUp()
    const { approval_key } = await keyOf(service, tenant)
    const path = `/v1/tenants/${tenant.tenant_id}`
    const change = (verb: string) => service.ask('POST', `${path}/${verb}`, { key: tenant.admin_key })
    for (const verb of ['freeze', 'resume']) {
      if (verb === 'resume') await change('resume')
      const { id } = await ask(service, tenant)
      if (verb === 'resume') await change('freeze')
      const looked = Promise.withResolvers<void>()
      service.app.db.onStatement((name) => name === 'checkpoints.find' && looked.resolve())
      const waiting = read(approval_key, id, '?wait=55')
      await looked.promise
      service.app.db.onStatement(null)
      const { frozen_at } = (await change(verb)).body
      await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
      const { body } = await waiting
      expect([verb, body.status, body.frozen_at]).toEqual([verb, 'approved', frozen_at])
      expect(frozen_at === null).toBe(verb === 'resume')
    }
  })

  test('what was not given is null', async () => {
    const tenant = await service.signUp()
    const made = await service.ask('POST', '/v1/checkpoints', {
      key: tenant.api_key,
      body: { title: 'Bare', callback_url },
    })
    const { approval_key } = await keyOf(service, tenant)
    const { body } = await read(approval_key, made.body.id)
    expect([body.prompt, body.payload]).toEqual([null, null])
  })

  test('shows how it was decided, by whom and when', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const { approval_key, approval_key_id } = await keyOf(service, tenant, { checkpoint_id: id })
    service.clock.advance(5_000)
    const decided = await service.ask('POST', `/v1/checkpoints/${id}/reject`, {
      key: approval_key,
      body: { reason: 'too much' },
    })
    expect(decided.status).toBe(200)
    expect((await read(approval_key, id)).body).toMatchObject({
      status: 'rejected',
      reason: 'too much',
      resolved_by: `approval_key:${approval_key_id}`,
      resolved_at: iso(service.clock.now()),
    })
  })

  test.each([
    ['pending', 0],
    ['rejected', 1],
  ] as const)('past its time it is pending until a tick settles it: %s', async (status, ticks) => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant, ',"timeout_seconds":60')
    const { approval_key } = await keyOf(service, tenant)
    service.clock.advance(60_000)
    if (ticks === 1) await service.ask('POST', '/v1/tick', { key: cron_secret })
    const { body } = await read(approval_key, id)
    expect([body.status, body.resolved_by]).toEqual([status, ticks === 1 ? 'timeout' : null])
  })

  test('answers as approve does: 404 for what is foreign or absent, 403 when bound to another one', async () => {
    const tenant = await service.signUp()
    const other = await service.signUp()
    const [own, neighbour] = [await ask(service, tenant), await ask(service, tenant)]
    const foreign = await ask(service, other)
    const bound = (await keyOf(service, tenant, { checkpoint_id: own.id })).approval_key
    const free = (await keyOf(service, tenant)).approval_key
    const cases = [
      [bound, own.id, 200, undefined],
      [bound, neighbour.id, 403, 'FORBIDDEN'],
      [bound, foreign.id, 404, 'CHECKPOINT_NOT_FOUND'],
      [bound, 'chk_00000000000000000000000000', 404, 'CHECKPOINT_NOT_FOUND'],
      [free, own.id, 200, undefined],
      [free, neighbour.id, 200, undefined],
      [free, foreign.id, 404, 'CHECKPOINT_NOT_FOUND'],
      [free, '%00', 404, 'CHECKPOINT_NOT_FOUND'],
    ] as const
    for (const [key, id, status, code] of cases) {
      const seen = await read(key, id)
      expect([id, seen.status, seen.body.error?.code]).toEqual([id, status, code])
      const decided = await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key })
      if (status !== 200) expect(decided.body.error.code).toBe(code)
    }
  })

  test('opens nothing else: the checkpoint itself stays closed to an approval key, this to all others', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const { approval_key } = await keyOf(service, tenant, { checkpoint_id: id })
    const statuses = [
      await service.ask('GET', `/v1/checkpoints/${id}`, { key: approval_key }),
      await service.ask('GET', '/v1/checkpoints', { key: approval_key }),
      await service.ask('GET', `/v1/approvals/${id}`, { key: tenant.admin_key }),
      await service.ask('GET', `/v1/approvals/${id}`, { key: tenant.api_key }),
      await service.ask('GET', `/v1/approvals/${id}`),
    ].map(({ status }) => status)
    expect(statuses).toEqual([403, 403, 403, 403, 401])
  })

  test.each(['approve', 'reject'] as const)('%s by somebody else ends a wait at once', async (verb) => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const { approval_key } = await keyOf(service, tenant, { checkpoint_id: id })
    const looked = Promise.withResolvers<void>()
    service.app.db.onStatement((name) => name === 'checkpoints.find' && looked.resolve())
    const waiting = read(approval_key, id, '?wait=55')
    await looked.promise
    service.app.db.onStatement(null)
    await service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key: tenant.admin_key })
    const { status, body } = await waiting
    expect([status, body.status, body.resolved_by]).toEqual([
      200,
      verb === 'approve' ? 'approved' : 'rejected',
      'admin',
    ])
  })

  test.each(['-1', '56', '1.5', 'x'])('wait=%s is refused', async (wait) => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const { approval_key } = await keyOf(service, tenant)
    const refused = await read(approval_key, id, `?wait=${wait}`)
    expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([400, 'query.wait'])
  })
})

forEachService('approval_url', (service) => {
  test('leads to the page of the one checkpoint, with the key in the fragment', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const made = await keyOf(service, tenant, { checkpoint_id: id })
    expect(made.approval_url).toBe(`${service.url}/approve/${id}#${made.approval_key}`)
    const { hash, pathname, search } = new URL(made.approval_url!)
    expect([pathname, search, hash]).toEqual([`/approve/${id}`, '', `#${made.approval_key}`])
  })

  test('is null for a key of all checkpoints, and in no list', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    expect((await keyOf(service, tenant)).approval_url).toBeNull()
    await keyOf(service, tenant, { checkpoint_id: id })
    const list = await service.ask('GET', '/v1/approval-keys', { key: tenant.admin_key })
    expect(list.body.items).toHaveLength(2)
    expect(list.text).not.toContain('approval_url')
  })

  test('is in a repeat byte for byte, and the key in no log', async () => {
    const tenant = await service.signUp()
    const { id } = await ask(service, tenant)
    const sent = {
      key: tenant.admin_key,
      headers: { 'idempotency-key': crypto.randomUUID() },
      body: { checkpoint_id: id },
    }
    const first = await service.ask('POST', '/v1/approval-keys', sent)
    const again = await service.ask('POST', '/v1/approval-keys', sent)
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([
      201,
      first.text,
      'true',
    ])
    const { approval_key, approval_url } = first.body
    await service.ask('GET', new URL(approval_url).pathname)
    await service.ask('GET', `/v1/approvals/${id}`, { key: approval_key })
    expect(service.logged.length).toBeGreaterThan(0)
    expect(JSON.stringify(service.logged)).not.toContain(approval_key)
  })
})

describe('a PUBLIC_URL', () => {
  forEachService(
    'with a path',
    (service) => {
      test('is what an approval_url begins with', async () => {
        const tenant = await service.signUp()
        const { id } = await ask(service, tenant)
        const made = await keyOf(service, tenant, { checkpoint_id: id })
        expect(made.approval_url).toBe(`https://agents.example.com/hub/approve/${id}#${made.approval_key}`)
      })
    },
    { PUBLIC_URL: 'https://agents.example.com/hub/', CALLBACK_ALLOW: '127.0.0.1/32' },
  )
})
