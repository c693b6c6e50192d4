// storage_bytes as clients meet it: what counts, what is refused past the limit, and what never is.

import { beforeEach, describe, expect, test } from 'bun:test'
import { until } from '../../test/support/patience.ts'
import {
  type Answer,
  cron_secret,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { day_ms, second_ms } from '../base/clock.ts'
import { recount } from '../db/recount.ts'
import { recounted_tables } from '../features.ts'
import * as tenants from '../tenants/service.ts'

const gib = 1_073_741_824
const callback_url = 'http://127.0.0.1:1/'
const fire_at = '2099-01-01T00:00:00Z'

forEachRacedService('storage_bytes', (service) => {
  let tenant: TestTenant
  beforeEach(async () => {
    tenant = await service.signUp()
  })

  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    service.ask(method, path, { key: tenant.api_key, headers, ...(body === undefined ? {} : { body }) })
  const asAdmin = (method: string, path: string, body?: unknown) =>
    service.ask(method, path, { key: tenant.admin_key, ...(body === undefined ? {} : { body }) })
  const quota = async () => (await asAdmin('GET', '/v1/tenants/me')).body.quota.storage_bytes
  const used = async (): Promise<number> => (await quota()).used
  const audit = (bytes: number, headers = {}) =>
    ask('POST', '/v1/audit', { action: 'a', metadata: { text: 'x'.repeat(bytes) } }, headers)
  const put = (key: string, bytes: number) => ask('PUT', `/v1/kv/state/${key}`, { value: 'x'.repeat(bytes) })

  /** Sets the bytes that the tenant may store from now on; takes effect once its key is looked up again. */
  async function allow(bytes: number | null): Promise<void> {
    await service.app.db.maintain()
    await tenants.setStorage(service.app.db, tenant.tenant_id, bytes)
    service.clock.advance(second_ms)
  }

  /** No room is left for anything that grows. */
  async function fill(): Promise<number> {
    const limit = await used()
    await allow(limit)
    return limit
  }

  /** Once everything is written, the counter is what the rows come to. */
  async function off(of: TestService = service): Promise<number> {
    await of.app.db.maintain()
    return recount(of.app.db, recounted_tables, tenant.tenant_id)
  }

  /** Once the first attempt to tell of the decision is settled, which the service makes by itself. */
  async function called(checkpoint_id: string): Promise<void> {
    for (;;) {
      const { callback } = (await ask('GET', `/v1/checkpoints/${checkpoint_id}`)).body
      if (callback.attempts === 1) return
    }
  }

  const refusal = ({ status, body }: Answer) => [status, body.error?.code, body.error?.details]
  const over = (used: number, limit: number) => [
    402,
    'QUOTA_EXCEEDED',
    { quota: 'storage_bytes', used, limit },
  ]

  test('is in the quota object, with the limit of the plan', async () => {
    expect(await quota()).toEqual({ used: 256 + 'agent-one'.length, limit: gib })
    const pro = await service.signUp('pro')
    const seen = await service.ask('GET', '/v1/tenants/me', { key: pro.admin_key })
    expect(seen.body.quota.storage_bytes.limit).toBe(100 * gib)
    const body = { name: crypto.randomUUID().slice(0, 20), owner_email: 'owner@example.com' }
    const created = await service.ask('POST', '/v1/tenants', { body })
    expect(created.body.quota.storage_bytes).toEqual({ used: 0, limit: gib })
  })

  test('counts a key with its value, what overwrites it, its tombstone, and nothing once that is swept', async () => {
    const before = await used()
    await put('k', 100)
    expect((await used()) - before).toBe(256 + 'state'.length + 'k'.length + 102)
    await put('k', 1_000)
    expect((await used()) - before).toBe(256 + 6 + 1_002)
    await put('k', 10)
    expect((await used()) - before).toBe(256 + 6 + 12)
    await ask('PUT', '/v1/kv/state/k', { value: 12345, cas_version: 3 })
    expect((await used()) - before).toBe(256 + 6 + 5)
    await ask('DELETE', '/v1/kv/state/k')
    expect((await used()) - before).toBe(256 + 6)
    await put('k', 1)
    expect((await used()) - before).toBe(256 + 6 + 3)
    await ask('DELETE', '/v1/kv/state/k', undefined, { 'if-match': '*' })
    await ask('PUT', '/v1/kv/state/short', { value: 'y'.repeat(50), ttl_seconds: 1 })
    service.clock.advance(2 * day_ms)
    await service.ask('POST', '/v1/tick', { key: cron_secret })
    service.clock.advance(2 * day_ms)
    await service.ask('POST', '/v1/tick', { key: cron_secret })
    expect([await used(), await off()]).toEqual([before, 0])
  })

  test('is what all rows of the tenant come to, whatever was done', async () => {
    const headers = () => ({ 'idempotency-key': crypto.randomUUID() })
    await audit(500, headers())
    await put('a', 1_000)
    const letter = { payload: { a: 'é' }, error: 'broke', workflow_id: 'w' }
    const kept = (await ask('POST', '/v1/dlq', letter, headers())).body
    const gone = (await ask('POST', '/v1/dlq', letter)).body
    await ask('POST', `/v1/dlq/${kept.id}/resolve`, {})
    await ask('DELETE', `/v1/dlq/${gone.id}`)
    const schedule = { callback_url, callback_payload: { a: 1 }, fire_at }
    const { id } = (await ask('POST', '/v1/schedules', schedule, headers())).body
    await ask('PATCH', `/v1/schedules/${id}`, { callback_payload: { longer: 'x'.repeat(300) } })
    await ask('PATCH', `/v1/schedules/${id}`, { callback_url: `${callback_url}longer`, fire_at })
    await ask('PATCH', `/v1/schedules/${id}`, { callback_payload: 1 })
    const question = { title: 't', prompt: 'p'.repeat(50), callback_url, callback_payload: [1, 2] }
    const checkpoint = (await ask('POST', '/v1/checkpoints', question)).body
    await asAdmin('POST', `/v1/checkpoints/${checkpoint.id}/reject`, { reason: 'no, é' })
    const dead = { ...question, timeout_action: 'dlq' }
    const rejected = (await ask('POST', '/v1/checkpoints', dead)).body
    await asAdmin('POST', `/v1/checkpoints/${rejected.id}/reject`, { reason: 'no' })
    const inbox = (await ask('POST', '/api/webhook', { label: 'l', ttl: 60 })).body.data
    for (let i = 0; i < 103; i++)
      await service.ask('POST', `/hook/${inbox.token}/p?q=${i}`, { body: 'x'.repeat(i) })
    const check = { key: 'k', limit: 5, windowSeconds: 10 }
    for (let i = 0; i < 3; i++) await ask('POST', '/api/rate-limit/check', check)
    await ask('POST', '/api/rate-limit/check', { ...check, algorithm: 'sliding_window' })
    await ask('POST', '/api/rate-limit/reset', { key: 'k' })
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    await asAdmin('DELETE', `/v1/agents/${other.agent_id}`)
    const approval = await asAdmin('POST', '/v1/approval-keys', { label: 'a key' })
    await asAdmin('POST', '/v1/approval-keys', { label: 'another' })
    await asAdmin('DELETE', `/v1/approval-keys/${approval.body.approval_key_id}`)
    await called(checkpoint.id)
    await called(rejected.id)
    expect([await off(), (await used()) > 10_000]).toEqual([0, true])

    // Everything that ends by itself ends.
    service.clock.advance(100 * day_ms)
    for (let i = 0; i < 4; i++) {
      await service.ask('POST', '/v1/tick', { key: cron_secret })
      service.clock.advance(day_ms)
    }
    expect(await off()).toBe(0)
  })

  test('lets a creation up to the limit and refuses one byte more, which changes nothing', async () => {
    const before = await used()
    await audit(100)
    const entry = (await used()) - before
    await allow(before + 2 * entry)
    expect(refusal(await audit(101))).toEqual(over(before + entry, before + 2 * entry))
    expect((await audit(100)).status).toBe(201)
    expect(refusal(await audit(0))).toEqual(over(before + 2 * entry, before + 2 * entry))
    const { items } = (await ask('GET', '/v1/audit')).body
    expect(items.map(({ seq }: { seq: number }) => seq)).toEqual([2, 1])
    expect([await used(), await off()]).toEqual([before + 2 * entry, 0])
  })

  const body = { name: 'another-agent' }
  const creations: [string, (made: { id: string }) => Promise<Answer>][] = [
    ['POST /v1/agents', () => asAdmin('POST', '/v1/agents', body)],
    ['POST /v1/approval-keys', () => asAdmin('POST', '/v1/approval-keys', {})],
    ['PUT of a new key', () => put('new', 1)],
    ['PUT of a longer value', () => put('there', 101)],
    [
      'PUT of a longer value with cas_version',
      () => ask('PUT', '/v1/kv/state/there', { value: 'x'.repeat(200), cas_version: 1 }),
    ],
    ['POST /v1/audit', () => audit(0)],
    ['POST /v1/dlq', () => ask('POST', '/v1/dlq', { payload: 1, error: 'e' })],
    [
      'POST /v1/schedules',
      () => ask('POST', '/v1/schedules', { callback_url, callback_payload: 1, fire_at }),
    ],
    ['a PATCH that grows', ({ id }) => ask('PATCH', `/v1/schedules/${id}`, { callback_payload: 'longer' })],
    ['POST /v1/checkpoints', () => ask('POST', '/v1/checkpoints', { title: 't', prompt: 'p', callback_url })],
    ['POST /api/webhook', () => ask('POST', '/api/webhook', {})],
    [
      'a check of a new counter',
      () => ask('POST', '/api/rate-limit/check', { key: 'new', limit: 5, windowSeconds: 5 }),
    ],
  ]

  test.each(creations)('past it %s answers 402', async (_, create) => {
    await put('there', 100)
    const { id } = (await ask('POST', '/v1/schedules', { callback_url, callback_payload: 1, fire_at })).body
    const limit = await fill()
    expect(refusal(await create({ id }))).toEqual(over(limit, limit))
    expect([await used(), await off()]).toEqual([limit, 0])
    await allow(null)
    expect([200, 201]).toContain((await create({ id })).status)
  })

  test('past it a PATCH that grows is refused before anything is written, and what is not pending for that', async () => {
    const schedule = { callback_url, callback_payload: 'abc', fire_at }
    const [{ id }, gone] = [
      (await ask('POST', '/v1/schedules', schedule)).body,
      (await ask('POST', '/v1/schedules', schedule)).body,
    ]
    await ask('DELETE', `/v1/schedules/${gone.id}`)
    await fill()
    const patch = (of: string, callback_payload: string) =>
      ask('PATCH', `/v1/schedules/${of}`, { callback_payload, fire_at: '2098-01-01T00:00:00Z' })
    const before = (await ask('GET', `/v1/schedules/${id}`)).body
    const names: string[] = []
    service.app.db.onStatement((name) => names.push(name))
    const refused = await patch(id, 'abcd')
    service.app.db.onStatement(null)
    expect(refused.status).toBe(402)
    expect(names.filter((name) => /^(jobs\.|schedules\.update)/.test(name))).toEqual([])
    expect((await ask('GET', `/v1/schedules/${id}`)).body).toEqual(before)
    expect([(await patch(gone.id, 'abcd')).status, (await patch('sch_none', 'abcd')).status]).toEqual([
      409, 404,
    ])
    expect([(await patch(id, 'xyz')).status, await off()]).toEqual([200, 0])
  })

  test('past it a put that grows and whose precondition fails hears of that, and 402 when it holds', async () => {
    await put('there', 100)
    await fill()
    const long = { value: 'x'.repeat(200) }
    const grow = (key: string, more: object, headers = {}) =>
      ask('PUT', `/v1/kv/state/${key}`, { ...long, ...more }, headers)
    const answers = [
      await grow('there', { cas_version: 2 }),
      await grow('there', { cas_version: 0 }),
      await grow('new', { cas_version: 1 }),
      await grow('there', {}, { 'if-match': '"2"' }),
      await grow('there', {}, { 'if-none-match': '*' }),
      await grow('there', { cas_version: 1 }),
      await grow('there', {}, { 'if-match': '"1"' }),
      await grow('new', {}, { 'if-none-match': '*' }),
    ]
    const mismatches = [409, 409, 409, 412, 412].map((status) => [status, 'VERSION_MISMATCH'])
    expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
      ...mismatches,
      ...Array(3).fill([402, 'QUOTA_EXCEEDED']),
    ])
    expect(answers[0]!.body.error.details).toEqual({ current_version: 1 })
  })

  test('past it nothing else is refused: reads, deletes, decisions, verbs of dead letters, what does not grow', async () => {
    await put('there', 100)
    const check = { key: 'running', limit: 5, windowSeconds: 60 }
    await ask('POST', '/api/rate-limit/check', check)
    const letters: string[] = []
    for (let i = 0; i < 3; i++)
      letters.push((await ask('POST', '/v1/dlq', { payload: 1, error: 'e' })).body.id)
    const question = { title: 't', prompt: 'p', callback_url, timeout_action: 'dlq' }
    const [first, second] = [
      (await ask('POST', '/v1/checkpoints', question)).body.id,
      (await ask('POST', '/v1/checkpoints', question)).body.id,
    ]
    const { id } = (await ask('POST', '/v1/schedules', { callback_url, callback_payload: 'abc', fire_at }))
      .body
    const limit = await fill()
    const answers: [string, Answer][] = [
      ['get', await ask('GET', '/v1/kv/state/there')],
      ['same size', await put('there', 100)],
      ['smaller', await put('there', 50)],
    ]
    await allow(await used())
    answers.push(
      ['check', await ask('POST', '/api/rate-limit/check', check)],
      [
        'check of another window',
        await ask('POST', '/api/rate-limit/check', { ...check, windowSeconds: 6000 }),
      ],
      ['claim', await ask('POST', `/v1/dlq/${letters[0]}/claim`, {})],
      ['fail', await ask('POST', `/v1/dlq/${letters[0]}/fail`, {})],
      ['claim', await ask('POST', `/v1/dlq/${letters[1]}/claim`, {})],
      ['release', await ask('POST', `/v1/dlq/${letters[1]}/release`, {})],
      ['resolve', await ask('POST', `/v1/dlq/${letters[1]}/resolve`, {})],
      ['approve', await asAdmin('POST', `/v1/checkpoints/${first}/approve`, { reason: 'r'.repeat(1_000) })],
      ['reject', await asAdmin('POST', `/v1/checkpoints/${second}/reject`, { reason: 'r'.repeat(1_000) })],
      ['PATCH', await ask('PATCH', `/v1/schedules/${id}`, { callback_payload: 'xyz' })],
      ['delete', await ask('DELETE', `/v1/dlq/${letters[2]}`)],
      ['cancel', await ask('DELETE', `/v1/schedules/${id}`)],
      ['delete', await ask('DELETE', '/v1/kv/state/there')],
      ['reset', await ask('POST', '/api/rate-limit/reset', { key: 'running' })],
    )
    expect(answers.filter(([, { status }]) => status >= 300)).toEqual([])
    // The service stores what it must: the dead letter of the rejection, and the reasons.
    expect((await ask('GET', '/v1/dlq?status=failed')).body.items).toHaveLength(1)
    await called(first)
    await called(second)
    expect([(await used()) > limit, await off()]).toEqual([true, 0])
  })

  test('an idempotent repeat is answered as before, also past the limit', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await audit(10, headers)
    const limit = await fill()
    const repeated = await audit(10, headers)
    expect([repeated.status, repeated.text]).toEqual([201, first.text])
    const other = { 'idempotency-key': crypto.randomUUID() }
    expect(refusal(await audit(10, other))).toEqual(over(limit, limit))
    expect(await off()).toBe(0)
  })

  describe('with an Idempotency-Key', () => {
    const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })

    test('a creation whose answer fits to the byte passes, and one byte less refuses all of it', async () => {
      const before = await used()
      await audit(100, keyed())
      const kept = (await used()) - before
      await audit(100)
      const both = await used()
      const entry = both - before - kept
      const headers = keyed()
      await allow(both + kept - 1)
      expect(refusal(await audit(100, headers))).toEqual(over(both + entry, both + kept - 1))
      expect([await used(), await off(), (await ask('GET', '/v1/audit')).body.items.length]).toEqual([
        ...[both, 0, 2],
      ])
      await allow(both + kept)
      expect((await audit(100, headers)).status).toBe(201)
      expect(await used()).toBe(both + kept)
      expect((await audit(100, headers)).headers.get('idempotent-replayed')).toBe('true')
    })

    test('an answer that takes the place of one whose 24 hours are past is judged by what it is longer', async () => {
      const headers = keyed()
      await audit(100, headers)
      service.clock.advance(day_ms)
      const before = await used()
      await audit(100)
      const entry = (await used()) - before
      await allow((await used()) + entry)
      expect((await audit(100, headers)).status).toBe(201)
      expect([await used(), await off()]).toEqual([before + 2 * entry, 0])
    })

    test('a replay of a message is refused once its answers have no room, and forwards nothing then', async () => {
      const inbox = (await ask('POST', '/api/webhook', { forwardUrl: callback_url })).body.data
      await service.ask('POST', `/hook/${inbox.token}`, { body: 'x'.repeat(10_000) })
      const read = async () => (await ask('GET', `/api/webhook/${inbox.id}`)).body.data.messages[0]
      const ended = () => until(async () => (await read()).forward.status === 'failed')
      await ended()
      const { id } = await read()
      const replay = () => ask('POST', `/api/webhook/${inbox.id}/messages/${id}/replay`, undefined, keyed())
      await allow((await used()) + 40_000)
      expect((await replay()).status).toBe(200)
      await ended()
      const full = await used()
      const { forward } = await read()
      expect((await replay()).status).toBe(402)
      expect([await used(), (await read()).forward, await off()]).toEqual([full, forward, 0])
      expect((await ask('POST', `/api/webhook/${inbox.id}/messages/${id}/replay`)).status).toBe(200)
      await ended()
    })

    test('a redrive is never refused: without room its answer is not kept', async () => {
      const { id } = (await ask('POST', '/v1/dlq', { payload: 'x'.repeat(1_000), error: 'e' })).body
      const redrive = (headers: Record<string, string>) =>
        ask('POST', `/v1/dlq/${id}/redrive`, undefined, headers)
      const headers = keyed()
      const limit = await fill()
      const first = await redrive(headers)
      expect([first.status, first.body.id, await used(), await off()]).toEqual([200, id, limit, 0])
      expect((await redrive(headers)).headers.get('idempotent-replayed')).toBeNull()
      await allow(null)
      const kept = await redrive(headers)
      expect([kept.status, kept.headers.get('idempotent-replayed')]).toEqual([200, null])
      expect((await redrive(headers)).headers.get('idempotent-replayed')).toBe('true')
      expect(await off()).toBe(0)
    })
  })

  test('past it an inbox drops its oldest messages, and keeps the newest whatever it is; a sender never hears of it', async () => {
    const inbox = (await ask('POST', '/api/webhook', {})).body.data
    const send = (bytes: number) => service.ask('POST', `/hook/${inbox.token}`, { body: 'x'.repeat(bytes) })
    const kept = async () =>
      (await ask('GET', `/api/webhook/${inbox.id}/messages`)).body.data.items.map(
        ({ body }: { body: string }) => body.length,
      )
    for (const bytes of [1_000, 1_001, 1_002, 1_003]) await send(bytes)
    await fill()
    expect((await send(1_004)).status).toBe(200)
    expect(await kept()).toEqual([1_002, 1_003, 1_004])
    expect((await send(4_900)).status).toBe(200)
    expect(await kept()).toEqual([4_900])
    await allow(1)
    expect((await send(5_000)).status).toBe(200)
    expect((await send(4_000)).status).toBe(200)
    expect(await kept()).toEqual([4_000])
    const { messageCount } = (await ask('GET', `/api/webhook/${inbox.id}`)).body.data.inbox
    expect([messageCount, await off()]).toEqual([1, 0])
  })

  test('the operator raises and lowers one tenant; its key knows within a second', async () => {
    await allow(1)
    expect((await audit(0)).status).toBe(402)
    await tenants.setStorage(service.app.db, tenant.tenant_id, 10_000)
    service.clock.advance(second_ms)
    expect((await audit(0)).status).toBe(201)
    expect((await quota()).limit).toBe(10_000)
    await allow(null)
    expect((await quota()).limit).toBe(gib)
  })

  test('40 creations at once pass the limit by no byte on SQLite, and on PostgreSQL by those under way', async () => {
    const before = await used()
    await audit(10_000)
    const entry = (await used()) - before
    await allow(before + 11 * entry)
    const answers = await Promise.all(Array.from({ length: 40 }, () => audit(10_000)))
    const stored = answers.filter(({ status }) => status === 201).length
    expect(answers.filter(({ status }) => ![201, 402].includes(status))).toEqual([])
    const connections = service.engine === 'sqlite' ? 0 : 10
    expect(stored).toBeGreaterThanOrEqual(10)
    expect(stored).toBeLessThanOrEqual(10 + connections)
    expect(await off()).toBe(0)
  })
})
