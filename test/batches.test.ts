// Writes of one tenant that come at the same moment: they share commits and, on PostgreSQL, transactions, and each
// settles as if it had come alone.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { day_ms, second_ms } from '../src/base/clock.ts'
import { sequenceOf } from '../src/base/ids.ts'
import { KeyedSemaphore } from '../src/base/keyed-semaphore.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { openPostgres } from '../src/db/postgres.ts'
import { recount } from '../src/db/recount.ts'
import { default_plans, recounted_tables } from '../src/features.ts'
import * as rate_limits from '../src/ratelimit/service.ts'
import * as tenants from '../src/tenants/service.ts'
import { TestClock } from './support/clock.ts'
import { onPostgres } from './support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { type Answer, cron_secret, forEachRacedService, served, type TestTenant } from './support/service.ts'

const keys_max = 10
const calls_max = 30
const messages_max = 20
const folder = mkdtempSync(join(tmpdir(), 'waystation-batches-'))
const plans_file = join(folder, 'plans.json')
const { free, pro } = default_plans
const limits = { kv_keys: keys_max, api_calls_per_month: calls_max, inbox_messages: messages_max }
writeFileSync(plans_file, JSON.stringify({ free: { ...free, ...limits }, pro }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const TENANT = unnamedAcrossTenants(
  'test.tenant',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, :tenant_id, 'owner@example.com', 'pro', 'active', '', 0)`,
)
const FORWARDS = unnamedAcrossTenants<{ source_id: string }>(
  'test.forwards',
  "select source_id from jobs where tenant_id = :tenant_id and kind = 'forward'",
)
const times = <T>(count: number, make: (i: number) => T) =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)))
const withStatus = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status)
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const sorted = (numbers: number[]) => numbers.toSorted((one, other) => one - other)

forEachRacedService(
  'writes at the same moment',
  (service) => {
    let tenant: TestTenant
    beforeEach(async () => {
      // Past the moment for which writes run alone after one of the test before was undone.
      service.clock.advance(2 * second_ms)
      tenant = await service.signUp('free')
    })

    const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      served(() =>
        service.ask(method, path, { key: tenant.api_key, headers, ...(body === undefined ? {} : { body }) }),
      )
    const receive = (token: string, i: number) =>
      served(() => service.ask('POST', `/hook/${token}`, { body: `message ${i}` }))
    const put = (key: string, body: object = { value: 1 }, headers = {}) =>
      ask('PUT', `/v1/kv/state/${key}`, body, headers)
    const keysListed = async () => (await ask('GET', '/v1/kv/state?limit=200')).body.items
    const quotaOf = async (quota: string) =>
      (await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })).body.quota[
        quota
      ]

    /** The counter is what the rows come to. */
    async function expectCounted(): Promise<void> {
      await service.app.db.maintain()
      expect(await recount(service.app.db, recounted_tables, tenant.tenant_id)).toBe(0)
    }

    test('puts of one new key get the versions from 1 on, each once, and the key counts once', async () => {
      const answers = await times(100, () => put('one'))
      expect(sorted(answers.map(({ body }) => body.version))).toEqual(upTo(100))
      expect((await quotaOf('kv_keys')).used).toBe(1)
      await expectCounted()
    })

    test('of puts with one expected version one wins, and the others are told the version that won', async () => {
      const made = await times(60, () => put('cas', { value: 1, cas_version: 0 }))
      expect(withStatus(made, 200).length).toBe(1)
      for (const { body } of withStatus(made, 409)) expect(body.error.details).toEqual({ current_version: 1 })
      const answers = await times(60, (i) =>
        i % 2 ? put('cas', { value: i, cas_version: 1 }) : put('cas', { value: i }, { 'if-match': '"1"' }),
      )
      expect(withStatus(answers, 200).map(({ body }) => body.version)).toEqual([2])
      expect(withStatus(answers, 409).length + withStatus(answers, 412).length).toBe(59)
      await expectCounted()
    })

    test('at the limit of keys exactly as many are made as fit; keys that are there are still written over', async () => {
      await put('known')
      const answers = await times(60, (i) => (i % 3 ? put(`new-${i}`) : put('known', { value: i })))
      const made = answers.filter((_, i) => i % 3)
      expect(withStatus(made, 200).length).toBe(keys_max - 1)
      for (const { body } of withStatus(made, 402))
        expect(body.error.details).toEqual({ quota: 'kv_keys', used: keys_max, limit: keys_max })
      const over = answers.filter((_, i) => i % 3 === 0)
      expect(sorted(over.map(({ body }) => body.version))).toEqual(upTo(20).map((n) => n + 1))
      expect((await keysListed()).length).toBe(keys_max)
      expect((await quotaOf('kv_keys')).used).toBe(keys_max)
      await expectCounted()
    })

    test('puts and deletes of few keys leave as many keys as are counted', async () => {
      for (let round = 0; round < 5; round++) {
        const answers = await times(60, (i) =>
          (i + round) % 2 ? put(`k${i % 5}`) : ask('DELETE', `/v1/kv/state/k${(i * 7) % 5}`),
        )
        expect(answers.filter(({ status }) => ![200, 204, 404].includes(status))).toEqual([])
        expect((await quotaOf('kv_keys')).used).toBe((await keysListed()).length)
      }
      await expectCounted()
    })

    test('a put that is refused beside the one that makes a key again names the version that this one is answered', async () => {
      for (let round = 0; round < 5; round++) {
        await put('lock')
        await ask('DELETE', '/v1/kv/state/lock')
        service.clock.advance(2 * day_ms)
        await service.ask('POST', '/v1/tick', { key: cron_secret }) // removes its tombstone
        // The first ones have transactions of their own: those behind them share theirs.
        const answers = await times(80, (i) =>
          i < 20 ? put('busy') : put('lock', { value: i, cas_version: 0 }),
        )
        const [made, ...others] = withStatus(answers.slice(20), 200)
        expect(others).toEqual([])
        const refused = withStatus(answers, 409).map(({ body }) => body.error.details.current_version)
        expect(refused).toEqual(Array.from({ length: 59 }, () => made!.body.version))
        await ask('DELETE', '/v1/kv/state/lock')
      }
      await expectCounted()
    })

    test('a key whose tombstone was removed continues above its versions, for all puts that create it again', async () => {
      await times(3, () => put('again'))
      await ask('DELETE', '/v1/kv/state/again')
      service.clock.advance(2 * day_ms)
      await service.ask('POST', '/v1/tick', { key: cron_secret })
      const answers = await times(20, () => put('again'))
      const versions = sorted(answers.map(({ body }) => body.version))
      expect(versions[0]).toBeGreaterThan(3)
      expect(versions).toEqual(upTo(20).map((n) => n + versions[0]! - 1))
      expect((await keysListed())[0].version).toBe(versions.at(-1))
    })

    test('at the limit of stored bytes as much is stored as fits, on PostgreSQL with what passes at the same moment, and what grows nothing is never refused', async () => {
      await put('known', { value: 'x'.repeat(1_000) })
      await service.app.db.maintain()
      const { used } = await quotaOf('storage_bytes')
      const entry = 10_000
      const limit = used + 5.5 * entry
      await tenants.setStorage(service.app.db, tenant.tenant_id, limit)
      service.clock.advance(second_ms)
      const metadata = { text: 'x'.repeat(entry - 1_000) }
      const answers = await times(60, (i) =>
        i % 3
          ? ask('POST', '/v1/audit', { action: 'a', metadata })
          : put('known', { value: 'y'.repeat(1_000) }),
      )
      const puts = answers.filter((_, i) => i % 3 === 0)
      expect(withStatus(puts, 200).length).toBe(20)
      const kept = withStatus(answers, 201).length
      expect(kept).toBeGreaterThanOrEqual(5)
      const now = await quotaOf('storage_bytes')
      expect(service.engine === 'sqlite' ? now.used <= limit : kept <= 5 + 12).toBe(true)
      await expectCounted()
    })

    test('entries of the audit log get every number once, with and without an Idempotency-Key, in the order of time', async () => {
      const begun = (await ask('GET', '/v1/audit?limit=1')).body.items[0]?.seq ?? 0
      const answers = await times(120, (i) =>
        ask(
          'POST',
          '/v1/audit',
          { action: `a${i}` },
          i % 3 === 0 ? { 'idempotency-key': `key-${i % 30}` } : {},
        ),
      )
      const busy = withStatus(answers, 409)
      const entries = withStatus(answers, 201).map(({ body }) => body)
      const reused = answers.filter(({ status }) => ![201, 409, 422].includes(status))
      expect([reused, busy.every(({ body }) => body.error.code.startsWith('IDEMPOTENCY'))]).toEqual([
        [],
        true,
      ])
      const numbers = new Set(entries.map(({ seq }) => seq))
      expect(sorted([...numbers])).toEqual(upTo(numbers.size).map((n) => n + begun))
      expect(numbers.size).toBe(80 + 10)
      const listed = (await ask('GET', '/v1/audit?limit=200')).body.items
      expect(listed.slice(0, numbers.size).map(({ seq }: { seq: number }) => seq)).toEqual(
        sorted([...numbers]).toReversed(),
      )
    })

    test('an append that is repeated with its Idempotency-Key is one entry, whatever is appended beside it', async () => {
      const sent = { 'idempotency-key': crypto.randomUUID() }
      const answers = await times(60, (i) => ask('POST', '/v1/audit', { action: 'a' }, i % 2 ? sent : {}))
      const repeats = answers.filter((_, i) => i % 2)
      const ids = new Set(withStatus(repeats, 201).map(({ body }) => body.id))
      expect(ids.size).toBe(1)
      expect(new Set(withStatus(answers, 201).map(({ body }) => body.id)).size).toBe(31)
    })

    test('checks of one counter: as many are allowed as its limit says, and of a month as many as the plan has', async () => {
      const check = (key: string) =>
        ask('POST', '/api/rate-limit/check', { key, limit: 12, windowSeconds: 3_600 })
      const answers = await times(calls_max, (i) => check(i % 2 ? 'hot' : 'other'))
      for (const key of [0, 1]) {
        const allowed = withStatus(
          answers.filter((_, i) => i % 2 === key),
          200,
        )
        expect(sorted(allowed.map(({ body }) => body.data.count))).toEqual(upTo(12))
      }
      expect(withStatus(answers, 429).length).toBe(calls_max - 2 * 12)
      expect((await quotaOf('kv_keys')).used).toBe(2)
      await expectCounted()

      tenant = await service.signUp('free')
      const of_month = await times(calls_max + 20, (i) => check(i % 2 ? 'hot' : 'other'))
      expect(withStatus(of_month, 402).length).toBe(20)
      expect((await quotaOf('kv_keys')).used).toBe(2)
      await expectCounted()
    })

    test('messages of one inbox are numbered without gaps, and as many are kept as the plan says', async () => {
      const { body } = await ask('POST', '/api/webhook', {})
      const { id, token } = body.data
      const answers = await times(100, (i) => receive(token, i))
      expect(withStatus(answers, 200).length).toBe(100)
      const shown = (await ask('GET', `/api/webhook/${id}`)).body.data
      const numbers = shown.messages.map((message: { id: string }) => sequenceOf('msg', message.id))
      expect(numbers).toEqual(upTo(100).slice(-messages_max).toReversed())
      await expectCounted()
    })

    test('a tenant whose writes are refused makes none of another’s fail, and loses none of its own', async () => {
      const other = await service.signUp('pro')
      await times(keys_max, (i) => put(`full-${i}`))
      const answers = await times(120, (i) =>
        i % 2
          ? served(() => service.ask('PUT', `/v1/kv/state/k${i}`, { key: other.api_key, body: { value: i } }))
          : put(i % 4 ? `more-${i}` : 'full-1', { value: i }),
      )
      expect(
        withStatus(
          answers.filter((_, i) => i % 2),
          200,
        ).length,
      ).toBe(60)
      expect(
        withStatus(
          answers.filter((_, i) => i % 4 === 0),
          200,
        ).length,
      ).toBe(30)
      expect(
        withStatus(
          answers.filter((_, i) => i % 4 === 2),
          402,
        ).length,
      ).toBe(30)
      await expectCounted()
    })
  },
  { PLANS_FILE: plans_file },
)

forEachRacedService(
  'messages at the same moment that are sent on',
  (service) => {
    test('no forward outlives its message, where the plan keeps fewer messages than a batch has writes', async () => {
      const tenant = await service.signUp('free')
      const forwardUrl = 'http://127.0.0.1:9/'
      const { body } = await service.ask('POST', '/api/webhook', {
        key: tenant.api_key,
        body: { forwardUrl },
      })
      const { id, token } = body.data
      const answers = await times(300, (i) =>
        served(() => service.ask('POST', `/hook/${token}`, { body: `message ${i}` })),
      )
      expect(withStatus(answers, 200).length).toBe(300)
      const sources = await service.app.db.all(FORWARDS, { tenant_id: tenant.tenant_id })
      const kept = upTo(300).slice(-messages_max)
      expect(sources.map(({ source_id }) => source_id).toSorted()).toEqual(
        kept.map((seq) => `${id}/${seq}`).toSorted(),
      )
    })
  },
  { PLANS_FILE: plans_file },
  { background: false },
)

onPostgres('counters that begin in one transaction', () => {
  test('store no more bytes than their tenant may', async () => {
    const url = await newPostgresDatabase()
    const clock = new TestClock()
    const db = await openPostgres(url, { clock, passing_max: 0 })
    await db.write((tx) => tx.run(TENANT, { tenant_id: 'tnt_a' }))
    const caller = { tenant_id: 'tnt_a', plan: 'pro', status: 'active' as const }
    const asked = { limit: 5, cost: 1, window_ms: 60_000, algorithm: 'fixed_window' as const }
    const dependencies = { plans: default_plans, shared: { semaphore: new KeyedSemaphore(clock) } }
    const check = (i: number, storage_bytes_max: number) =>
      rate_limits.check(db, { ...caller, storage_bytes_max, stored: { used: 0, writes: 0 } }, dependencies, {
        ...asked,
        key: `k${i + 100}`,
      })
    await check(0, 1_000_000)
    const bytes = db.storedBytes(caller.tenant_id, { used: 0, writes: 0 })
    const checks = await Promise.allSettled(upTo(60).map((i) => check(i, 19.5 * bytes)))
    expect(checks.filter(({ status }) => status === 'fulfilled').length).toBe(18)
    expect(db.storedBytes(caller.tenant_id, { used: 0, writes: 0 })).toBe(19 * bytes)
    // Those that are there already begin their windows again.
    clock.advance(61_000)
    const again = await Promise.allSettled(upTo(18).map((i) => check(i, 19.5 * bytes)))
    expect(again.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(18)
    expect(db.storedBytes(caller.tenant_id, { used: 0, writes: 0 })).toBe(19 * bytes)
    await db.close()
    await dropPostgresDatabase(url)
  })
})
