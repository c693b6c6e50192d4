import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { beforeCommitOf } from '../../test/support/held.ts'
import { rowsOf } from '../../test/support/job-bench.ts'
import { requested } from '../../test/support/requested.ts'
import {
  type Answer,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { day_ms, hour_ms, iso, second_ms } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { hashKey, newToken } from '../base/keys.ts'
import { Remembered } from '../base/remembered.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Db, Turn } from '../db/db.ts'
import { default_plans } from '../features.ts'
import * as tenants from '../tenants/service.ts'
import { droppedUpTo, expiryOf, type InboxRow, messageCount } from './inbox.ts'
import { receive } from './receive.ts'
import { sweep } from './sweep.ts'

interface Made {
  id: string
  token: string
  url: string
  label: string
  expiresAt: string
}

/** The envelope of /api and /hook, and nothing else. */
function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  // The sentence of a 402 also names the plan and the way on: src/quotas/quota.ts.
  const over = expect.stringMatching(
    /^The plan free allows \d+ \w+, and \d+ are used\. Remove some, or ask the operator/,
  )
  const message = code === 'QUOTA_EXCEEDED' ? over : errors[code].message
  const error = { code, message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ success: false, error })
  expect(answer.status).toBe(errors[code].status)
  expect(answer.headers.get('content-type')).toBe('application/json')
}

function expectInvalid(answer: Answer, path: string): void {
  expectRefusal(answer, 'VALIDATION_FAILED', { issues: [{ path, message: expect.any(String) }] })
}

function expectData(answer: Answer, status = 200) {
  expect(answer.body).toMatchObject({ success: true })
  expect(answer.status).toBe(status)
  expect(Object.keys(answer.body)).toEqual(['success', 'data'])
  return answer.body.data
}

function tryCreate(service: TestService, { api_key }: { api_key: string }, body?: object) {
  return service.ask('POST', '/api/webhook', { key: api_key, ...(body && { body }) })
}

async function create(service: TestService, tenant: TestTenant, body?: object): Promise<Made> {
  service.clock.advance(1) // ids made in one millisecond are in no order
  return expectData(await tryCreate(service, tenant, body), 201)
}

function get(service: TestService, { api_key }: { api_key: string }, path: string) {
  return service.ask('GET', `/api/webhook${path}`, { key: api_key })
}

function post(service: TestService, { token }: Made, body: unknown = { n: 1 }) {
  return service.ask('POST', `/hook/${token}`, { body })
}

async function quotaOf(service: TestService, { tenant_id, admin_key }: TestTenant) {
  const answer = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
  return answer.body.quota.inboxes
}

async function tick(service: TestService) {
  const answer = await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
  expect(answer.status).toBe(200)
  return answer.body
}

function rows<Row>(service: TestService, text: string, params = {}): Promise<Row[]> {
  return rowsOf<Row>(service.app.db, text, params)
}

forEachRacedService('Inboxes', (service) => {
  describe('a new inbox', () => {
    test('has id, token, url, label and expiresAt, and lives for 24 hours', async () => {
      const tenant = await service.signUp('pro')
      const now = service.clock.now()
      const answer = await tryCreate(service, tenant, { label: 'GitHub' })
      const { token } = answer.body.data
      expect(expectData(answer, 201)).toEqual({
        id: expect.stringMatching(/^inb_[0-9a-z]{26}$/),
        token: expect.stringMatching(/^[0-9A-Za-z]{32}$/),
        url: `${service.url}/hook/${token}`,
        label: 'GitHub',
        workflowId: null,
        expiresAt: iso(now + day_ms),
      })
      const { id } = answer.body.data
      for (const key of [tenant.api_key, tenant.admin_key]) {
        expect(expectData(await service.ask('GET', `/api/webhook/${id}`, { key }))).toEqual({
          inbox: {
            ...{ id, token, url: `${service.url}/hook/${token}`, label: 'GitHub', forwardUrl: null },
            ...{ workflowId: null, messageCount: 0, createdAt: iso(now), expiresAt: iso(now + day_ms) },
          },
          messages: [],
        })
      }
    })

    test.each([
      ['no body', undefined],
      ['an empty body', {}],
      ['nulls', { label: null, forwardUrl: null, ttl: null }],
    ])('of %s has an empty label and no forwardUrl', async (_, body) => {
      const tenant = await service.signUp()
      const { id, label } = await create(service, tenant, body)
      expect(label).toBe('')
      const { inbox } = expectData(await get(service, tenant, `/${id}`))
      expect(inbox).toMatchObject({ label: '', forwardUrl: null })
    })

    test.each([1, 1.5, 60.25, 7 * 86_400])('lives for a ttl of %d seconds', async (ttl) => {
      const tenant = await service.signUp()
      const { expiresAt } = await create(service, tenant, { ttl })
      expect(expiresAt).toBe(iso(service.clock.now() + ttl * second_ms))
    })

    const refused: [body: object, path: string][] = [
      [{ ttl: 0.999 }, '/ttl'],
      [{ ttl: 7 * 86_400 + 0.001 }, '/ttl'],
      [{ ttl: '60' }, '/ttl'],
      [{ label: 'x'.repeat(257) }, '/label'],
      [{ label: 7 }, '/label'],
      [{ forwardUrl: 'nonsense' }, '/forwardUrl'],
      [{ forwardUrl: '/relative' }, '/forwardUrl'],
      [{ forwardUrl: 'http://10.0.0.1/' }, '/forwardUrl'],
      [{ forwardUrl: `http://127.0.0.1:9/${'x'.repeat(2_048)}` }, '/forwardUrl'],
    ]
    test.each(refused)('of %j is refused, and counts for nothing', async (body, path) => {
      const tenant = await service.signUp()
      expectInvalid(await tryCreate(service, tenant, body), path)
      expect(await quotaOf(service, tenant)).toEqual({ used: 0, limit: 3 })
    })

    test('may have a label of 256 characters, and of pro a ttl of 30 days but no more', async () => {
      const tenant = await service.signUp('pro')
      const body = { label: '😀'.repeat(256), ttl: 30 * 86_400 }
      expect(await create(service, tenant, body)).toMatchObject({ label: body.label })
      expectInvalid(await tryCreate(service, tenant, { ttl: 30 * 86_400 + 1 }), '/ttl')
    })

    test('is one for one Idempotency-Key', async () => {
      const tenant = await service.signUp()
      const ask = { key: tenant.api_key, headers: { 'idempotency-key': 'once' }, body: { label: 'one' } }
      const first = await service.ask('POST', '/api/webhook', ask)
      const again = await service.ask('POST', '/api/webhook', ask)
      expect([again.status, again.text]).toEqual([201, first.text])
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expect(await quotaOf(service, tenant)).toEqual({ used: 1, limit: 3 })
    })

    test('keeps its token in the database as a hash and sealed, and in no log', async () => {
      const tenant = await service.signUp()
      const { id, token } = await create(service, tenant)
      expect((await post(service, { token } as Made)).status).toBe(200)
      const [row] = await rows<Record<string, string>>(service, 'select * from inboxes where id = :id', {
        id,
      })
      expect(row!.token_hash).toBe(hashKey(token))
      expect(JSON.stringify(row)).not.toContain(token)
      expect(JSON.stringify(service.logged)).not.toContain(token)
    })
  })

  describe('the quota', () => {
    test('of a free plan is 3; what expired or was deleted is released at once', async () => {
      const tenant = await service.signUp()
      const short = await create(service, tenant, { ttl: 1 })
      const second = await create(service, tenant)
      await create(service, tenant)
      const refused = await tryCreate(service, tenant)
      expectRefusal(refused, 'QUOTA_EXCEEDED', { quota: 'inboxes', used: 3, limit: 3 })

      service.clock.advance(second_ms)
      expect(await quotaOf(service, tenant)).toEqual({ used: 2, limit: 3 })
      await create(service, tenant)
      expect(await quotaOf(service, tenant)).toEqual({ used: 3, limit: 3 })

      for (const [{ id }, used] of [
        [second, 2],
        [short, 2],
      ] as const) {
        const deleted = await service.ask('DELETE', `/api/webhook/${id}`, { key: tenant.api_key })
        expect(expectData(deleted)).toEqual({ deleted: true })
        expect(await quotaOf(service, tenant)).toEqual({ used, limit: 3 })
      }
    })

    test('has room again once an inbox expired, also while a message that came before is being kept', async () => {
      const tenant = await service.signUp()
      const short = await create(service, tenant, { ttl: 1 })
      await create(service, tenant)
      await create(service, tenant)
      service.clock.advance(Date.parse(short.expiresAt) - service.clock.now() - 1)
      const [message, made] = await beforeCommitOf(
        service.app.db,
        () => post(service, short),
        () => {
          service.clock.advance(1)
          return tryCreate(service, tenant)
        },
      )
      expect([message.status, made.status]).toEqual([200, 201])
      expect(await quotaOf(service, tenant)).toEqual({ used: 3, limit: 3 })
    })

    test('is exact under concurrency', async () => {
      const tenant = await service.signUp()
      const made = await Promise.all(Array.from({ length: 20 }, () => tryCreate(service, tenant)))
      expect(made.filter(({ status }) => status === 201)).toHaveLength(3)
      expect(made.filter(({ status }) => status === 402)).toHaveLength(17)
      expect(await quotaOf(service, tenant)).toEqual({ used: 3, limit: 3 })
    })

    test('is released by the sweep, which counts it, once', async () => {
      service.clock.advance(31 * day_ms) // past every inbox of the tests before
      await sweepAll(service)
      const tenant = await service.signUp()
      await create(service, tenant, { ttl: 1 })
      await create(service, tenant, { ttl: 2 })
      service.clock.advance(2 * second_ms - 1)
      expect((await tick(service)).expired.inboxes).toBe(1)
      expect((await tick(service)).expired.inboxes).toBe(0)
      service.clock.advance(1)
      expect((await tick(service)).expired.inboxes).toBe(1)
      const used = await rows(
        service,
        `select used from quota_usage where tenant_id = :id and quota = 'inboxes'`,
        {
          id: tenant.tenant_id,
        },
      )
      expect(used).toEqual([{ used: 0 }])
    })
  })

  describe('the list', () => {
    test('is newest first, has the number of messages, pages by limit and offset, and says the total', async () => {
      const tenant = await service.signUp('pro')
      const made: Made[] = []
      for (let i = 0; i < 5; i++) made.unshift(await create(service, tenant, { label: `${i}` }))
      for (let i = 0; i < 2; i++) await post(service, made[1]!)
      const items = made.map((inbox, i) => ({ ...inbox, messageCount: i === 1 ? 2 : 0 }))
      expect(expectData(await get(service, tenant, ''))).toEqual({ items, total: 5 })
      const pages: [query: string, from: number, to: number][] = [
        ['?limit=2', 0, 2],
        ['?limit=2&offset=1', 1, 3],
        ['?offset=4', 4, 5],
        ['?offset=5', 5, 5],
        ['?offset=9007199254740991', 5, 5],
      ]
      for (const [query, from, to] of pages) {
        const page = expectData(await get(service, tenant, query))
        expect([query, page]).toEqual([query, { items: items.slice(from, to), total: 5 }])
      }
    })

    test.each(['limit=0', 'limit=-1', 'limit=1.5', 'limit=x', 'offset=-1', 'offset=0.5', 'offset=x'])(
      'with %s is refused',
      async (query) => {
        const tenant = await service.signUp()
        expectInvalid(await get(service, tenant, `?${query}`), `query.${query.split('=')[0]}`)
      },
    )

    test('has 50 items when nothing is said, and 100 at most, however many are asked for', async () => {
      const tenant = await service.signUp('pro')
      await tenants.setPlan(service.app.db, tenant.tenant_id, 'enterprise')
      service.clock.advance(second_ms)
      for (let i = 0; i < 102; i++) expect((await tryCreate(service, tenant)).status).toBe(201)
      for (const [query, length] of [
        ['', 50],
        ['?limit=100', 100],
        ['?limit=101', 100],
      ] as const) {
        const { items, total } = expectData(await get(service, tenant, query))
        expect([query, items.length, total]).toEqual([query, length, 102])
      }
    })

    test('leaves out an inbox from its expiry on', async () => {
      const tenant = await service.signUp()
      const { id } = await create(service, tenant, { ttl: 1 })
      service.clock.advance(second_ms - 1)
      expect(expectData(await get(service, tenant, ''))).toMatchObject({ items: [{ id }], total: 1 })
      service.clock.advance(1)
      expect(expectData(await get(service, tenant, ''))).toEqual({ items: [], total: 0 })
    })
  })

  describe('the detail', () => {
    test('has the latest 50 messages, newest first', async () => {
      const tenant = await service.signUp()
      const inbox = await create(service, tenant)
      for (let n = 1; n <= 51; n++) expect((await post(service, inbox, { n })).status).toBe(200)
      const detail = expectData(await get(service, tenant, `/${inbox.id}`))
      expect(detail.inbox.messageCount).toBe(51)
      expect(detail.messages.map(({ body }: { body: { n: number } }) => body.n)).toEqual(
        Array.from({ length: 50 }, (_, i) => 51 - i),
      )
    })

    test.each(['inb_00000000000000000000000000', 'x', '%00', 'ä'])('of %s is 404', async (id) => {
      const tenant = await service.signUp()
      for (const path of [`/${id}`, `/${id}/messages`]) {
        expectRefusal(await get(service, tenant, path), 'INBOX_NOT_FOUND')
      }
      const deleted = await service.ask('DELETE', `/api/webhook/${id}`, { key: tenant.api_key })
      expectRefusal(deleted, 'INBOX_NOT_FOUND')
    })

    test("of another tenant's inbox is as absent as any", async () => {
      const [one, other] = [await service.signUp(), await service.signUp()]
      const { id } = await create(service, one)
      for (const path of [`/${id}`, `/${id}/messages`]) {
        expectRefusal(await get(service, other, path), 'INBOX_NOT_FOUND')
      }
      const deleted = await service.ask('DELETE', `/api/webhook/${id}`, { key: other.api_key })
      expectRefusal(deleted, 'INBOX_NOT_FOUND')
      expectData(await get(service, one, `/${id}`))
      expect(expectData(await get(service, other, ''))).toEqual({ items: [], total: 0 })
    })
  })

  describe('an expired inbox', () => {
    test('says so at its URL for 7 days, and is unknown from then on; swept or not', async () => {
      for (const swept of [false, true]) {
        const tenant = await service.signUp('pro')
        const inbox = await create(service, tenant, { ttl: 60 })
        service.clock.advance(60 * second_ms - 1)
        expect((await post(service, inbox)).body).toEqual({ received: true })
        service.clock.advance(1)
        expectRefusal(await post(service, inbox), 'INBOX_EXPIRED')
        expect((await service.ask('HEAD', `/hook/${inbox.token}`)).status).toBe(410)
        service.clock.advance(7 * day_ms - 1)
        if (swept) await sweepAll(service)
        expectRefusal(await post(service, inbox), 'INBOX_EXPIRED')
        service.clock.advance(1)
        expectRefusal(await post(service, inbox), 'INBOX_NOT_FOUND')
        if (swept) await sweepAll(service)
        expectRefusal(await post(service, inbox), 'INBOX_NOT_FOUND')
        expect((await service.ask('HEAD', `/hook/${inbox.token}`)).status).toBe(404)
      }
    })

    test('can be read for 24 hours, with its messages, and then no more; swept or not', async () => {
      for (const swept of [false, true]) {
        const tenant = await service.signUp('pro')
        const inbox = await create(service, tenant, { ttl: 60 })
        await post(service, inbox)
        service.clock.advance(60 * second_ms + day_ms - 1)
        if (swept) await sweepAll(service)
        const { messages } = expectData(await get(service, tenant, `/${inbox.id}`))
        expect(messages).toHaveLength(1)
        expect(expectData(await get(service, tenant, `/${inbox.id}/messages`)).items).toEqual(messages)
        service.clock.advance(1)
        for (const path of [`/${inbox.id}`, `/${inbox.id}/messages`]) {
          expectRefusal(await get(service, tenant, path), 'INBOX_NOT_FOUND')
        }
      }
    })

    test('loses its messages 24 hours later, and its row 7 days after it expired', async () => {
      const tenant = await service.signUp()
      const inbox = await create(service, tenant, { ttl: 60 })
      for (let n = 0; n < 3; n++) await post(service, inbox)
      const left = async () => {
        await sweepAll(service)
        const [count] = await rows<{ messages: number }>(
          service,
          'select count(*) as messages from inbox_messages where tenant_id = :tenant_id',
          { tenant_id: tenant.tenant_id },
        )
        const inboxes = await rows(service, 'select id from inboxes where tenant_id = :tenant_id', {
          tenant_id: tenant.tenant_id,
        })
        return [count!.messages, inboxes.length]
      }
      service.clock.advance(60 * second_ms + 24 * hour_ms - 1)
      expect(await left()).toEqual([3, 1])
      service.clock.advance(1)
      expect(await left()).toEqual([0, 1])
      service.clock.advance(6 * day_ms - 1)
      expect(await left()).toEqual([0, 1])
      service.clock.advance(1)
      expect(await left()).toEqual([0, 0])
    })
  })

  describe('a deleted inbox', () => {
    test('is gone for everybody at once, and the sweep removes what is left of it', async () => {
      const tenant = await service.signUp()
      const inbox = await create(service, tenant)
      await post(service, inbox)
      const remove = () => service.ask('DELETE', `/api/webhook/${inbox.id}`, { key: tenant.api_key })
      expect((await remove()).text).toBe('{"success":true,"data":{"deleted":true}}')
      expectRefusal(await remove(), 'INBOX_NOT_FOUND')
      expectRefusal(await get(service, tenant, `/${inbox.id}`), 'INBOX_NOT_FOUND')
      expectRefusal(await get(service, tenant, `/${inbox.id}/messages`), 'INBOX_NOT_FOUND')
      expectRefusal(await post(service, inbox), 'INBOX_NOT_FOUND')
      expect(expectData(await get(service, tenant, ''))).toEqual({ items: [], total: 0 })
      await sweepAll(service)
      for (const table of ['inboxes', 'inbox_messages']) {
        const text = `select tenant_id from ${table} where tenant_id = :tenant_id`
        expect(await rows(service, text, { tenant_id: tenant.tenant_id })).toEqual([])
      }
    })
  })

  describe('a step of the sweep', () => {
    test('removes 500 messages of an inbox, and says that there are more', async () => {
      const tenant = await service.signUp('pro')
      const inbox = await create(service, tenant)
      await sweepAll(service)
      const request = {
        ...{ method: 'POST', headers: new Headers(), bytes: Buffer.from('x'), url: '/hook/t' },
        request_id: 'req_of_a_test',
        address: '192.0.2.1',
      }
      const { db } = service.app
      const semaphore = new KeyedSemaphore(service.clock)
      const dependencies = {
        plans: default_plans,
        jobs: { wake() {} },
        shared: { notifier: { notify() {} }, semaphore, tokens: new Remembered<never>(10) },
      }
      await Promise.all(Array.from({ length: 501 }, () => receive(db, dependencies, inbox.token, request)))
      await service.ask('DELETE', `/api/webhook/${inbox.id}`, { key: tenant.api_key })
      const left = async () => {
        const { more } = await sweep(db, service.clock.now())
        const text = 'select count(*) as count from inbox_messages where tenant_id = :tenant_id'
        const [row] = await rows<{ count: number }>(service, text, { tenant_id: tenant.tenant_id })
        return [row!.count, more]
      }
      expect([await left(), await left(), await left()]).toEqual([
        [1, true],
        [0, false],
        [0, false],
      ])
    })
  })

  describe("the tenant's state", () => {
    test('while it waits for deletion its URLs are unknown, and after restore they are not', async () => {
      const tenant = await service.signUp()
      const inbox = await create(service, tenant)
      const path = `/v1/tenants/${tenant.tenant_id}`
      const key = tenant.admin_key
      const deleted = await service.ask('DELETE', path, { key, body: { confirm: 'DELETE ALL DATA' } })
      expect(deleted.status).toBe(202)
      expectRefusal(await post(service, inbox), 'INBOX_NOT_FOUND')
      expect((await service.ask('HEAD', `/hook/${inbox.token}`)).status).toBe(404)
      expect((await service.ask('POST', `${path}/restore`, { key })).status).toBe(200)
      expect((await post(service, inbox)).text).toBe('{"received":true}')
    })

    test('a purge removes its inboxes and their messages', async () => {
      const tenant = await service.signUp('pro')
      const admin: AdminCaller = {
        kind: 'admin',
        tenant_id: tenant.tenant_id,
        plan: 'pro',
        status: 'active',
        ...requested,
      }
      for (let i = 0; i < 3; i++) {
        const inbox = await create(service, tenant, { ttl: 30 * 86_400 })
        for (let n = 0; n < 2; n++) await post(service, inbox)
      }
      const path = `/v1/tenants/${admin.tenant_id}`
      await service.ask('DELETE', path, { key: tenant.admin_key, body: { confirm: 'DELETE ALL DATA' } })
      service.clock.advance(30 * day_ms)
      expect((await tick(service)).tenants_purged).toBe(1)
      for (const table of ['inboxes', 'inbox_messages', 'tenants']) {
        const text = `select tenant_id from ${table} where tenant_id = :tenant_id`
        expect(await rows(service, text, { tenant_id: tenant.tenant_id })).toEqual([])
      }
    })
  })
})

/** Until a step finds nothing more. */
async function sweepAll(service: TestService): Promise<void> {
  for (let step = 0; step < 4; step++) await tick(service)
}

describe('an inbox', () => {
  test('without a limit on its ttl ends with the year 9999', () => {
    expect(expiryOf(0, 1e300, null)).toBe(253_402_300_799_999)
    expect(expiryOf(5, 1.2345, null)).toBe(1_240)
  })

  const row = (last_seq: number, first_seq: number | null): InboxRow => ({
    ...{ id: '', token: '', label: '', forward_url: null, workflow_id: null, expires_at: 0, created_at: 0 },
    ...{ last_seq, first_seq },
  })
  test.each([
    [0, null, 100, 0],
    [1, 1, 100, 1],
    [100, 1, 100, 100],
    [101, 1, 100, 100],
    [101, 2, 100, 100],
    [250, 1, 100, 100],
    [250, 1, null, 250],
    [250, null, 100, 0],
    [250, 241, 100, 10],
  ] as const)('whose newest is %d and oldest %p, of %p kept, has %d messages', (last, first, kept, count) => {
    expect(messageCount(row(last, first), kept)).toBe(count)
  })

  test('has dropped what is older than the plan keeps', () => {
    expect([droppedUpTo(100, 100), droppedUpTo(101, 100), droppedUpTo(9, null), droppedUpTo(9, 0)]).toEqual([
      0, 1, 0, 9,
    ])
  })
})

test('messages wait in a line for each inbox, so that those of one do not keep others from arriving', async () => {
  const lines: string[] = []
  const db = {
    write: async ({ key }: Turn) => {
      lines.push(key)
      return true
    },
  } as unknown as Db
  const semaphore = new KeyedSemaphore(new TestClock())
  const [one, other] = [newToken(), newToken()]
  const tokens = new Remembered<{ tenant_id: string; id: string }>(2)
  for (const token of [one, other]) tokens.put(hashKey(token), { tenant_id: 'tnt', id: token })
  const dependencies = {
    plans: default_plans,
    jobs: { wake() {} },
    shared: { notifier: { notify() {} }, semaphore, tokens },
  }
  const request = {
    request_id: 'req_of_a_test',
    method: 'POST',
    headers: new Headers(),
    bytes: Buffer.from('x'),
    url: '/hook/t',
  }
  for (const token of [one, other, one])
    await receive(db, dependencies, token, { ...request, address: '192.0.2.1' })
  expect(lines[0]).toBe(lines[2]!)
  expect(lines[0]).not.toBe(lines[1]!)
})
