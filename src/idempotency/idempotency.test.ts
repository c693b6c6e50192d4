import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import {
  dropPostgresDatabase,
  newPostgresDatabase,
  on_citus,
  ownerUrlOf,
} from '../../test/support/postgres.ts'
import { requested } from '../../test/support/requested.ts'
import { type Answer, forEachService, TestService } from '../../test/support/service.ts'
import { day_ms } from '../base/clock.ts'
import { deriveKey, open } from '../base/seal.ts'
import type { AdminCaller, AgentCaller, Caller } from '../contract/caller.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { claimOf, sweep } from './service.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

interface Row {
  tenant_id: string
  key_hash: string
  fingerprint: string
  status: number | null
  answer: string | null
  expires_at: number
}

const ROWS = unnamedAcrossTenants<Row>(
  'test.idempotency',
  'select * from idempotency_keys where tenant_id = :tenant_id order by expires_at',
)

const facts = { tenant_id: 'ten_1', plan: 'free', status: 'active', ...requested } as const
const admin: AdminCaller = { kind: 'admin', ...facts }
const agent: AgentCaller = { kind: 'agent', agent_id: 'one', ...facts }
const no_body = new Uint8Array(0)

function claimBy(key: string, caller: Caller | null, address: string, route: string, body: Uint8Array) {
  return claimOf({ key, caller: caller ?? address, route, body })
}

forEachService('Idempotency-Key', (service) => {
  const addAgent = (key: string, name: string, idempotency_key: string) =>
    service.ask('POST', '/v1/agents', {
      key,
      headers: { 'idempotency-key': idempotency_key },
      body: { name },
    })
  const rowsOf = (tenant_id: string) => service.app.db.all(ROWS, { tenant_id })

  test('a repeat gets the stored status and body with Idempotent-Replayed, and one effect', async () => {
    const { admin_key } = await service.signUp()
    const first = await addAgent(admin_key, 'abc', 'key-1')
    service.clock.advance(1_000)
    const again = await addAgent(admin_key, 'abc', 'key-1')
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null])
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([
      201,
      first.text,
      'true',
    ])
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(again.headers.get('content-type')).toBe('application/json')
    expect((await service.ask('GET', '/v1/kv/a', { key: again.body.api_key })).status).toBe(200)
  })

  test('it is the bytes of the body that must be the same', async () => {
    const { api_key } = await service.signUp()
    const append = (body: string) =>
      service.ask('POST', '/v1/audit', { key: api_key, headers: { 'idempotency-key': 'key-1' }, body })
    const first = await append('{"action": "a", "metadata": {"n": 1e400}}')
    expect((await append('{"action": "a", "metadata": {"n": 1e400}}')).text).toBe(first.text)
    for (const other of ['{"action": "b"}', '{"action":"a", "metadata": {"n": 1e400}}']) {
      expect(refusal(await append(other))).toEqual([422, 'IDEMPOTENCY_KEY_REUSED', undefined])
    }
  })

  test('an absent body is a body: equal to itself, other than {}', async () => {
    const { admin_key } = await service.signUp()
    const create = (body?: unknown) =>
      service.ask('POST', '/v1/approval-keys', {
        key: admin_key,
        headers: { 'idempotency-key': 'key-1' },
        body,
      })
    const first = await create()
    expect((await create()).text).toBe(first.text)
    expect((await create({})).status).toBe(422)
  })

  test.each([
    ['1 character', 'k'],
    ['255 characters', 'k'.repeat(255)],
    ['every visible character', Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')],
  ])('a key of %s is taken', async (_, key) => {
    const { admin_key } = await service.signUp()
    const first = await addAgent(admin_key, 'abc', key)
    expect([first.status, (await addAgent(admin_key, 'abc', key)).text]).toEqual([201, first.text])
  })

  test.each([
    ['none', ''],
    ['256', 'k'.repeat(256)],
    ['a space', 'a b'],
    ['no ASCII', 'clé'],
    ['a tab', 'a\tb'],
  ])('a key of %s is refused before anything happens', async (_, key) => {
    const { admin_key } = await service.signUp()
    const refused = await addAgent(admin_key, 'abc', key)
    expect(refusal(refused)).toEqual([
      400,
      'VALIDATION_FAILED',
      { issues: [{ path: 'header.Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' }] },
    ])
    expect((await service.ask('GET', '/v1/agents/abc', { key: admin_key })).status).toBe(404)
  })

  test('the scope is principal, method and path', async () => {
    const one = await service.signUp()
    const other = await service.signUp()
    const second = await service.addAgent(one.admin_key, 'agent-two')
    const append = (key: string) =>
      service.ask('POST', '/v1/audit', {
        key,
        headers: { 'idempotency-key': 'key-1' },
        body: { action: 'a' },
      })
    const ids = []
    for (const key of [one.api_key, second.api_key, one.admin_key, other.api_key, other.admin_key]) {
      ids.push((await append(key)).body.id)
    }
    expect(new Set(ids).size).toBe(5)
    expect((await addAgent(one.admin_key, 'abc', 'key-1')).status).toBe(201)
    expect((await append(second.api_key)).body.id).toBe(ids[1])
  })

  test('the principal is who holds the key: a repeat after a rotation is still a repeat', async () => {
    const { tenant_id, admin_key, api_key } = await service.signUp()
    const first = await addAgent(admin_key, 'abc', 'key-1')
    const rotated = await service.ask('POST', `/v1/tenants/${tenant_id}/rotate-key`, { key: admin_key })
    expect((await addAgent(rotated.body.admin_key, 'abc', 'key-1')).text).toBe(first.text)

    const append = (key: string) =>
      service.ask('POST', '/v1/audit', { key, headers: { 'idempotency-key': 'k' }, body: { action: 'a' } })
    const entry = await append(api_key)
    const new_key = (
      await service.ask('POST', '/v1/agents/agent-one/rotate-key', { key: rotated.body.admin_key })
    ).body.api_key
    expect((await append(new_key)).text).toBe(entry.text)
  })

  test('only 2xx is stored: after an error the same key can be used again', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const refused = await addAgent(admin_key, 'agent-one', 'key-1')
    expect(refusal(refused)).toEqual([409, 'AGENT_ID_TAKEN', undefined])
    expect((await addAgent(admin_key, 'UPPER', 'key-1')).status).toBe(400)
    expect(await rowsOf(tenant_id)).toEqual([])
    await service.ask('DELETE', '/v1/agents/agent-one', { key: admin_key })
    const made = await addAgent(admin_key, 'agent-one', 'key-1')
    expect([made.status, made.headers.get('idempotent-replayed')]).toEqual([201, null])
  })

  test('a stored answer is sealed: the row opens with the Idempotency-Key and nothing else', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const key = 'a-key-that-only-the-client-has'
    const made = await addAgent(admin_key, 'abc', key)
    const [row, ...others] = await rowsOf(tenant_id)
    expect(others).toEqual([])
    const at_rest = JSON.stringify(row)
    for (const secret of [key, made.body.api_key, made.body.api_key.slice(8), 'svc_agt_', '"abc"']) {
      expect(at_rest).not.toContain(secret)
    }
    const caller: AdminCaller = { ...admin, tenant_id }
    const claim = claimBy(key, caller, '', 'POST /v1/agents', Buffer.from('{"name":"abc"}'))
    expect([claim.key_hash, claim.fingerprint]).toEqual([row!.key_hash, row!.fingerprint])
    expect(open(claim.sealing_key, row!.fingerprint, row!.answer!)).toBe(made.text)
    const wrong_keys = [
      claimBy('another-key', caller, '', 'POST /v1/agents', no_body).sealing_key,
      claimBy(key, agent, '', 'POST /v1/agents', no_body).sealing_key,
      deriveKey(row!.key_hash, 'idempotency', 'admin\nPOST /v1/agents\n'),
      deriveKey(service.app.secret_key.value, 'idempotency', 'admin\nPOST /v1/agents\n'),
      deriveKey(service.app.secret_key.value, 'secrets'),
    ]
    for (const wrong of wrong_keys) expect(() => open(wrong, row!.fingerprint, row!.answer!)).toThrow()
    expect(() => open(claim.sealing_key, 'another fingerprint', row!.answer!)).toThrow()
  })

  test('after 24 h a repeat is a new request; a millisecond before it is not', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const append = (body: object) =>
      service.ask('POST', '/v1/audit', { key: api_key, headers: { 'idempotency-key': 'k' }, body })
    const first = await append({ action: 'a' })
    service.clock.advance(day_ms - 1)
    expect((await append({ action: 'a' })).body.id).toBe(first.body.id)
    service.clock.advance(1)
    const later = await append({ action: 'b' })
    expect([later.status, later.body.seq, later.headers.get('idempotent-replayed')]).toEqual([201, 2, null])
    expect((await append({ action: 'b' })).text).toBe(later.text)
    expect((await append({ action: 'a' })).status).toBe(422)
    const [row, ...others] = await rowsOf(tenant_id)
    expect([row!.expires_at, others]).toEqual([service.clock.now() + day_ms, []])
  })

  test('the sweep removes what is past its 24 h, in bounded steps, the last of which is not full', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const append = (key: string) =>
      service.ask('POST', '/v1/audit', {
        key: api_key,
        headers: { 'idempotency-key': key },
        body: { action: 'a' },
      })
    const step = (rows_max: number, bytes_max = 1_000_000) =>
      service.app.db.write((tx) => sweep(tx, rows_max, bytes_max))
    service.clock.advance(day_ms)
    await step(1_000_000)
    for (const key of ['a', 'b', 'c']) {
      await append(key)
      service.clock.advance(1)
    }
    const kept = await append('d')
    service.clock.advance(day_ms - 4)
    expect(await step(10)).toEqual({ removed: 0, more: false })
    service.clock.advance(3)
    // One row at least, however few bytes are allowed; on Citus rows alone bound a step.
    const first = service.engine === 'postgres' && on_citus ? 2 : 1
    expect(await step(2, 1)).toEqual({ removed: first, more: true })
    expect(await step(3)).toEqual({ removed: 3 - first, more: false })
    expect(await step(3)).toEqual({ removed: 0, more: false })
    expect(await rowsOf(tenant_id)).toHaveLength(1)
    expect((await append('d')).text).toBe(kept.text)
  })

  describe('on the public POST /tenants', () => {
    const owner_email = 'owner@example.com'
    const signUp = (key: string, body: object) =>
      service.ask('POST', '/v1/tenants', {
        headers: { 'idempotency-key': key },
        body: { owner_email, ...body },
      })
    const newName = () => `n-${crypto.randomUUID().slice(0, 13)}`

    test('a repeat gets the admin key again, from a row that opens to nobody', async () => {
      const name = newName()
      const key = crypto.randomUUID()
      const first = await signUp(key, { name })
      const again = await signUp(key, { name })
      expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([
        201,
        first.text,
        'true',
      ])
      expect((await signUp(key, { name: newName() })).status).toBe(422)
      const at_rest = JSON.stringify(await rowsOf(''))
      for (const secret of [
        key,
        name,
        first.body.admin_key,
        first.body.signing_secret,
        'svc_adm_',
        'whsec_',
      ]) {
        expect(at_rest).not.toContain(secret)
      }
    })

    test('a key under 16 characters counts together with its body', async () => {
      const short = crypto.randomUUID().slice(0, 15)
      const [one, other] = [newName(), newName()]
      const first = await signUp(short, { name: one })
      const second = await signUp(short, { name: other })
      expect([first.status, second.status]).toEqual([201, 201])
      expect((await signUp(short, { name: one })).text).toBe(first.text)
      expect((await signUp(short, { name: other })).text).toBe(second.text)
      expect((await signUp(`${short}x`, { name: newName() })).status).toBe(201)
      expect((await signUp(`${short}x`, { name: newName() })).status).toBe(422)
    })
  })
})

forEachService(
  'Idempotency-Key on POST /tenants behind a proxy',
  (service) => {
    service.over_http = true
    test('the scope is the client address', async () => {
      const key = crypto.randomUUID()
      const signUp = (address: string, name: string) =>
        service.ask('POST', '/v1/tenants', {
          headers: { 'idempotency-key': key, 'x-forwarded-for': address },
          body: { name, owner_email: 'owner@example.com' },
        })
      const first = await signUp('192.0.2.1', 'first-name')
      const same_address = await signUp('192.0.2.1', 'first-name')
      const other_address = await signUp('192.0.2.2', 'first-name')
      expect(same_address.text).toBe(first.text)
      expect(refusal(other_address)).toEqual([409, 'TENANT_NAME_TAKEN', undefined])
      expect((await signUp('192.0.2.2', 'second-name')).status).toBe(201)
    })
  },
  { TRUST_PROXY: '127.0.0.1,::1' },
)

onPostgres('Idempotency-Key whose first request is still running (postgres)', () => {
  const service = new TestService()
  let url = ''
  beforeAll(async () => {
    url = await newPostgresDatabase()
    await service.start(url)
  })
  afterAll(async () => {
    await service.stop()
    await dropPostgresDatabase(url)
  })

  test('is 409 IDEMPOTENCY_IN_PROGRESS with Retry-After, and works once the first has failed', async () => {
    const { tenant_id, admin_key } = await service.signUp()
    const body = JSON.stringify({ name: 'abc' })
    const { key_hash, fingerprint } = claimBy(
      'key-1',
      { ...admin, tenant_id },
      '',
      'POST /v1/agents',
      Buffer.from(body),
    )
    const ask = () =>
      service.ask('POST', '/v1/agents', { key: admin_key, headers: { 'idempotency-key': 'key-1' }, body })

    // Another node's transaction that has claimed the key and not ended yet.
    const node = new SQL({ url: ownerUrlOf(url), max: 1 })
    const other = await node.reserve()
    await other.unsafe('begin')
    await other.unsafe(
      `insert into idempotency_keys (tenant_id, key_hash, fingerprint, expires_at) values ($1, $2, $3, $4)`,
      [tenant_id, key_hash, fingerprint, service.clock.now() + day_ms],
    )
    const meanwhile = await ask()
    await other.unsafe('rollback')
    other.release()
    await node.close()

    expect(refusal(meanwhile)).toEqual([409, 'IDEMPOTENCY_IN_PROGRESS', undefined])
    expect(meanwhile.headers.get('retry-after')).toBe('1')
    expect((await ask()).status).toBe(201)
  })

  test('is not meant by 503 UNAVAILABLE, when the server lacks memory for the claim', async () => {
    const { admin_key } = await service.signUp()
    const ask = () =>
      service.ask('POST', '/v1/agents', {
        ...{ key: admin_key, headers: { 'idempotency-key': 'key-1' } },
        body: { name: 'abc' },
      })
    const owner = new SQL({ url: ownerUrlOf(url), max: 1 })
    await owner
      .unsafe(`create function lacks() returns trigger language plpgsql as
        $$ begin raise 'out of shared memory' using errcode = '53200'; end $$;
        create trigger lacks before insert on idempotency_keys for each row execute function lacks()`)
      .simple()
    const refused = await ask()
    await owner.unsafe('drop trigger lacks on idempotency_keys')
    await owner.close()

    expect(refusal(refused)).toEqual([503, 'UNAVAILABLE', undefined])
    expect((await ask()).status).toBe(201)
  })
})

describe('A claim', () => {
  const route = 'POST /v1/agents'
  const key = 'a key of more than 16'.replaceAll(' ', '-')
  const hashes = (claims: ReturnType<typeof claimOf>[]) =>
    new Set(claims.map(({ key_hash }) => key_hash)).size

  test('has another hash for another key, principal, method and path, or address', () => {
    const claims = [
      claimBy(key, admin, '', route, no_body),
      claimBy(`${key}x`, admin, '', route, no_body),
      claimBy(key, agent, '', route, no_body),
      claimBy(key, { ...agent, agent_id: 'two' }, '', route, no_body),
      claimBy(key, admin, '', 'POST /v1/audit', no_body),
      claimBy(key, null, '192.0.2.1', route, no_body),
      claimBy(key, null, '192.0.2.2', route, no_body),
    ]
    expect(hashes(claims)).toBe(claims.length)
    expect(new Set(claims.map(({ sealing_key }) => sealing_key.toString('hex'))).size).toBe(claims.length)
  })

  test('has the same hash whatever the body, save a short key on the public route', () => {
    const [one, other] = [Buffer.from('one'), Buffer.from('other')]
    const pairs = (text: string, caller: AdminCaller | null) => [
      claimBy(text, caller, '192.0.2.1', route, one),
      claimBy(text, caller, '192.0.2.1', route, other),
    ]
    expect(hashes(pairs('k'.repeat(15), admin))).toBe(1)
    expect(hashes(pairs('k'.repeat(16), null))).toBe(1)
    expect(hashes(pairs('k'.repeat(15), null))).toBe(2)
    expect(new Set(pairs(key, admin).map(({ fingerprint }) => fingerprint)).size).toBe(2)
  })
})
