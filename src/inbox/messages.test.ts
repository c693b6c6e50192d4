import { describe, expect, test } from 'bun:test'
import { forEachDatabase, onPostgres } from '../../test/support/databases.ts'
import { messagesIn, newInbox, type TestInbox, tick } from '../../test/support/inbox.ts'
import { Bench, rowsOf } from '../../test/support/job-bench.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import {
  type Answer,
  forEachRacedService,
  isUnknown,
  served,
  TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { second_ms } from '../base/clock.ts'
import { newSequencedId } from '../base/ids.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import * as store from './message-store.ts'
import { receive } from './receive.ts'
import * as inboxes from './service.ts'

const mib = 1_048_576

function page(service: TestService, { api_key }: TestTenant, { id }: TestInbox, query = '') {
  return service.ask('GET', `/api/webhook/${id}/messages${query}`, { key: api_key })
}

function search(service: TestService, { api_key }: TestTenant, { id }: TestInbox, query: string) {
  return service.ask('GET', `/api/webhook/${id}/search?${query}`, { key: api_key })
}

function dataOf(answer: Answer) {
  expect([answer.status, answer.body.success]).toEqual([200, true])
  return answer.body.data
}

function expectInvalid(answer: Answer, path: string): void {
  expect(answer.status).toBe(400)
  expect(answer.body.error).toMatchObject({ code: 'VALIDATION_FAILED', details: { issues: [{ path }] } })
}

async function post(service: TestService, { path }: TestInbox, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n++) {
    expect((await service.ask('POST', path, { body: { n } })).status).toBe(200)
  }
}

const numbers = (items: { body: { n: number } }[]) => items.map(({ body }) => body.n)
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Resolves when this many looks for messages were made. */
function lookedAt(service: TestService, times: number): Promise<void> {
  return new Promise((resolve) => {
    service.app.db.onStatement((name) => {
      if (name === 'inbox.page') times -= 1
      if (times > 0) return
      service.app.db.onStatement(null)
      resolve()
    })
  })
}

forEachRacedService('Messages', (service) => {
  describe('a search', () => {
    const idsOf = (items: { id: string }[]) => items.map(({ id }) => id)

    async function filled(
      plan: 'free' | 'pro',
      posts: { at?: string; body: string | Buffer; type?: string }[],
    ) {
      const tenant = await service.signUp(plan)
      const inbox = await newInbox(service, tenant)
      for (const { at = '', body, type = 'text/plain' } of posts) {
        const headers = { 'content-type': type }
        expect((await service.ask('POST', inbox.path + at, { body, headers })).status).toBe(200)
      }
      return { tenant, inbox, all: (await messagesIn(service, tenant, inbox)).toReversed() }
    }

    test('finds a text in method, path, query and body, in letters of any case, newest first', async () => {
      const { tenant, inbox, all } = await filled('pro', [
        { at: '/Invoices/7?kind=Paid', body: 'nothing' },
        { body: '{"customer": "cus_8003"}', type: 'application/json' },
        { body: 'line\nCUS_8003 \u00c9t\u00e9\0' },
        { body: Buffer.from([0xff, 0x63, 0x75, 0x73]) },
      ])
      const found = async (q: string) => {
        const data = dataOf(await search(service, tenant, inbox, `q=${encodeURIComponent(q)}`))
        expect(data.nextBefore).toBeNull()
        return data.items.map((item: { id: string }) => idsOf(all).indexOf(item.id))
      }
      expect(await found('cus_8003')).toEqual([1, 2])
      expect(await found('\u00e9T\u00c9')).toEqual([1])
      expect(await found('/invoices/7?kind=paid')).toEqual([3])
      expect(await found('post')).toEqual([0, 1, 2, 3])
      expect(await found('cus%8003')).toEqual([])
      expect(dataOf(await search(service, tenant, inbox, 'q=invoices')).items).toEqual([all[3]])
    })

    test('finds a text beside bytes that are not UTF-8, as in a form with a file', async () => {
      const form = new FormData()
      form.append('subject', 'Paid by cus_8003, Été')
      form.append('file', new Blob([Uint8Array.of(0xff, 0xd8, 0xff)]), 'a.jpg')
      const body = Buffer.from(await new Response(form).arrayBuffer())
      const { tenant, inbox, all } = await filled('pro', [{ body }, { body: 'nothing' }])
      for (const q of ['CUS_8003', 'étÉ', 'a.jpg']) {
        const data = dataOf(await search(service, tenant, inbox, `q=${encodeURIComponent(q)}`))
        expect(data.items).toEqual([all[1]])
      }
      expect(all[1].body).toBeNull()
    })

    test('takes every sigma for the same letter, at the end of a word and within it', async () => {
      const { tenant, inbox, all } = await filled('pro', [
        { body: 'ΟΔΟΣΑ' },
        { body: 'λόγος' },
        { body: 'ΟΔΟΣ 1' },
      ])
      const found = async (q: string) =>
        dataOf(await search(service, tenant, inbox, `q=${encodeURIComponent(q)}`)).items
      for (const q of ['ΟΔΟΣ', 'οδοσ', 'οδος']) expect(await found(q)).toEqual([all[0], all[2]])
      for (const q of ['ΓΟΣ', 'γοσ', 'γος']) expect(await found(q)).toEqual([all[1]])
    })

    test('goes on with nextBefore until it is null, whatever the page holds', async () => {
      const bodies = Array.from({ length: 12 }, (_, n) => ({ body: n % 3 === 0 ? `yes ${n}` : `no ${n}` }))
      const { tenant, inbox, all } = await filled('pro', bodies)
      const wanted = all.filter(({ body }: { body: string }) => body.startsWith('yes'))
      for (const limit of [1, 2, 4, 100]) {
        const seen: object[] = []
        for (let before = ''; ; ) {
          const data = dataOf(await search(service, tenant, inbox, `q=yes&limit=${limit}${before}`))
          expect(data.items.length).toBeLessThanOrEqual(limit)
          seen.push(...data.items)
          if (data.nextBefore === null) break
          before = `&before=${data.nextBefore}`
        }
        expect(seen).toEqual(wanted)
      }
    })

    test('of large messages looks at 1 MiB at a time, and at one in any case', async () => {
      const large = 'x'.repeat(mib / 2)
      const { tenant, inbox, all } = await filled('pro', [
        { body: 'first' },
        { body: large },
        { body: `${large}${large}` },
      ])
      const pages: number[] = []
      const seen: string[] = []
      for (let before = ''; ; ) {
        const data = dataOf(await search(service, tenant, inbox, `q=first${before}`))
        pages.push(data.items.length)
        seen.push(...idsOf(data.items))
        if (data.nextBefore === null) break
        before = `&before=${data.nextBefore}`
      }
      expect([pages, seen]).toEqual([[0, 1], [all[2].id]])
    })

    test('sees no more than the plan keeps, and nothing in an inbox without messages', async () => {
      const { tenant, inbox } = await filled('pro', [])
      expect(dataOf(await search(service, tenant, inbox, 'q=n'))).toEqual({ items: [], nextBefore: null })
      await post(service, inbox, 1, 103)
      await service.app.db.write((tx) =>
        tx.run(unnamedAcrossTenants('test.plan', `update tenants set plan = 'free' where tenant_id = :id`), {
          id: tenant.tenant_id,
        }),
      )
      service.clock.advance(2 * second_ms)
      const { items, nextBefore } = dataOf(await search(service, tenant, inbox, 'q=post&limit=100'))
      expect([numbers(items), nextBefore]).toEqual([upTo(4, 103).toReversed(), null])
    })

    test('needs a text of 256 characters at most, and an id of this inbox', async () => {
      const { tenant, inbox, all } = await filled('pro', [{ body: 'a' }])
      const other = await filled('pro', [{ body: 'a' }])
      dataOf(await search(service, tenant, inbox, `q=${'a'.repeat(256)}`))
      expectInvalid(await search(service, tenant, inbox, `q=${'a'.repeat(257)}`), 'query.q')
      expectInvalid(await search(service, tenant, inbox, 'q='), 'query.q')
      expectInvalid(await search(service, tenant, inbox, 'limit=1'), 'query.q')
      expectInvalid(await search(service, tenant, inbox, 'q=a&before=msg_x'), 'query.before')
      dataOf(await search(service, tenant, inbox, `q=a&before=${all[0].id}`))
      const foreign = await search(service, other.tenant, inbox, 'q=a')
      expect([foreign.status, foreign.body.error.code]).toEqual([404, 'INBOX_NOT_FOUND'])
    })
  })

  describe('a page', () => {
    test('is oldest first, and after the last one seen, until there is none; then nextAfter stays', async () => {
      const tenant = await service.signUp('pro')
      const inbox = await newInbox(service, tenant)
      expect(dataOf(await page(service, tenant, inbox))).toEqual({ items: [], nextAfter: null })
      await post(service, inbox, 1, 7)
      const seen: number[] = []
      let after = ''
      for (const expected of [3, 3, 1, 0, 0]) {
        const { items, nextAfter } = dataOf(await page(service, tenant, inbox, `?limit=3${after}`))
        expect(items).toHaveLength(expected)
        seen.push(...numbers(items))
        after = `&after=${nextAfter}`
      }
      expect(seen).toEqual(upTo(1, 7))
      await post(service, inbox, 8, 8)
      expect(numbers(dataOf(await page(service, tenant, inbox, `?limit=3${after}`)).items)).toEqual([8])
    })

    test('has 50 items when nothing is said, and 100 at most', async () => {
      const tenant = await service.signUp('pro')
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 101)
      for (const [query, last] of [
        ['', 50],
        ['?limit=100', 100],
        ['?limit=101', 100],
        ['?limit=1', 1],
      ] as const) {
        expect(numbers(dataOf(await page(service, tenant, inbox, query)).items)).toEqual(upTo(1, last))
      }
    })

    test.each(['limit=0', 'limit=-1', 'limit=1.5', 'limit=x', 'wait=-1', 'wait=56', 'wait=1.5'])(
      'with %s is refused',
      async (query) => {
        const tenant = await service.signUp()
        const inbox = await newInbox(service, tenant)
        expectInvalid(await page(service, tenant, inbox, `?${query}`), `query.${query.split('=')[0]}`)
      },
    )

    test('after an id that is not of this inbox is refused', async () => {
      const tenant = await service.signUp()
      const [inbox, other] = [await newInbox(service, tenant), await newInbox(service, tenant)]
      await post(service, inbox, 1, 2)
      await post(service, other, 1, 1)
      const [{ id }] = await messagesIn(service, tenant, inbox)
      const [foreign] = await messagesIn(service, tenant, other)
      const now = service.clock.now()
      const odd = [
        '',
        'x',
        '7',
        `${id}0`,
        id.slice(0, -1),
        id.toUpperCase(),
        id.replace('msg', 'log'),
        foreign.id,
      ]
      for (const seq of [0, 3, 2 ** 40 - 1]) odd.push(newSequencedId('msg', now, seq))
      for (const after of odd) {
        expectInvalid(await page(service, tenant, inbox, `?after=${after}`), 'query.after')
      }
      expect(numbers(dataOf(await page(service, tenant, inbox, `?after=${id}`)).items)).toEqual([2])
    })

    test('goes on after a message that was dropped meanwhile, with the oldest that is left', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 1)
      const [{ id }] = await messagesIn(service, tenant, inbox)
      await post(service, inbox, 2, 103)
      const { items } = dataOf(await page(service, tenant, inbox, `?after=${id}&limit=2`))
      expect(numbers(items)).toEqual([4, 5])
    })

    test('has 1 MiB of JSON at most, in which a body is there as text and in base64', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      const bodies = [
        Buffer.alloc(mib / 4, 'a'),
        Buffer.alloc(mib / 4, 0xff),
        Buffer.alloc(mib / 4, 0xff),
        Buffer.alloc(mib / 4, 'b'),
      ]
      const sizes = [...bodies, ...bodies]
      for (const body of sizes) expect((await service.ask('POST', inbox.path, { body })).status).toBe(200)
      const pages: number[] = []
      for (let after = ''; pages.length < 5; ) {
        const { items, nextAfter } = dataOf(await page(service, tenant, inbox, after && `?after=${after}`))
        pages.push(items.length)
        after = nextAfter
      }
      expect(pages).toEqual([2, 2, 2, 2, 0]) // a quarter that is not UTF-8 is a third, one that is more than two
    })

    test('counts bytes, not characters: of 128 KiB each in characters of 3 bytes it has 3', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      const body = '\u20ac'.repeat(mib / 24)
      for (let n = 0; n < 4; n++) expect((await service.ask('POST', inbox.path, { body })).status).toBe(200)
      expect(dataOf(await page(service, tenant, inbox)).items).toHaveLength(3)
    })

    test.each([
      ['oldest first', 'messages', 'after', 'nextAfter', [2, 2, 1, 1, 1, 0]],
      ['that are found', 'search', 'before', 'nextBefore', [1, 1, 1, 2, 2]],
    ])(
      'of messages %s ends by its JSON, and the next misses none',
      async (_, name, go_on, next, expected) => {
        const tenant = await service.signUp()
        const inbox = await newInbox(service, tenant)
        const bodies = [60, 60, 60, 60, 100, 1_024, 100].map((kib, i) => Buffer.alloc(kib * 1_024, 1 + i))
        for (const body of bodies) expect((await service.ask('POST', inbox.path, { body })).status).toBe(200)
        const pages: number[] = []
        const seen: string[] = []
        for (let at: string | null = ''; at !== null && pages.at(-1) !== 0; ) {
          const query = `${at && `&${go_on}=${at}`}${name === 'search' ? '&q=post' : ''}`
          const answer = await service.ask('GET', `/api/webhook/${inbox.id}/${name}?limit=100${query}`, {
            key: tenant.api_key,
          })
          const data = dataOf(answer)
          const items: { body: string }[] = data.items
          pages.push(items.length)
          seen.push(...items.map(({ body }) => `${body.charCodeAt(0)} ${body.length / 1_024}`))
          if (items.length > 1) expect(answer.text.length).toBeLessThan(mib + 300)
          at = data[next]
        }
        expect(pages).toEqual(expected)
        const sent = ['1 60', '2 60', '3 60', '4 60', '5 100', '6 1024', '7 100']
        expect(seen).toEqual(name === 'search' ? sent.toReversed() : sent)
      },
    )

    test('has as many messages as fit into its bytes, to the byte, and one in any case', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 3)
      const { db } = service.app
      const key = { tenant_id: tenant.tenant_id, inbox_id: inbox.id }
      const [row] = await rowsOf<{ size: number }>(
        db,
        'select size from inbox_messages where tenant_id = :tenant_id and inbox_id = :inbox_id and seq = 1',
        key,
      )
      const { size } = row!
      const count = async (bytes_max: number) => (await store.page(db, key, 0, 100, bytes_max)).length
      const sizes = [0, 1, size, 2 * size - 1, 2 * size, 3 * size - 1, 3 * size]
      expect(await Promise.all(sizes.map(count))).toEqual([1, 1, 1, 1, 2, 2, 3])
    })

    test('shows what the plan keeps, at once when the plan becomes a smaller one', async () => {
      const tenant = await service.signUp('pro')
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 150)
      const count = async () => {
        service.clock.advance(second_ms) // a key is believed for so long
        const detail = dataOf(await service.ask('GET', `/api/webhook/${inbox.id}`, { key: tenant.api_key }))
        return detail.inbox.messageCount
      }
      expect(await count()).toBe(150)
      await tenants.setPlan(service.app.db, tenant.tenant_id, 'free')
      expect(await count()).toBe(100)
      expect(numbers(await messagesIn(service, tenant, inbox))).toEqual(upTo(51, 150))
      await post(service, inbox, 151, 153)
      expect(await count()).toBe(100)
      expect(numbers(await messagesIn(service, tenant, inbox))).toEqual(upTo(54, 153))
      // Messages past the limit are removed when the next message arrives.
      const stored = await rowsOf(
        service.app.db,
        'select min(seq) as first, count(*) as count from inbox_messages where tenant_id = :tenant_id',
        { tenant_id: tenant.tenant_id },
      )
      expect(stored).toEqual([{ first: 54, count: 100 }])
    })

    const left: [what: string, sent: number, first: number][] = [
      ['the newest 100 are left', 300, 202],
      ['500 of those that are past it go at once, the oldest first', 700, 501],
    ]
    test.each(left)('has no hole after a smaller plan, one message and a larger plan: %s', async (...row) => {
      const [, sent, first] = row
      const tenant = await service.signUp('pro')
      const inbox = await newInbox(service, tenant)
      const { db } = service.app
      const replan = async (plan: string) => {
        await tenants.setPlan(db, tenant.tenant_id, plan)
        service.clock.advance(second_ms) // a key is believed for so long
      }
      await replan('enterprise')
      await post(service, inbox, 1, sent)
      await replan('free')
      await post(service, inbox, sent + 1, sent + 1)
      await replan('enterprise')
      const seen: number[] = []
      for (let after = '', more = true; more; ) {
        const { items, nextAfter } = dataOf(await page(service, tenant, inbox, `?limit=100${after}`))
        seen.push(...numbers(items))
        after = `&after=${nextAfter}`
        more = items.length > 0
      }
      expect(seen).toEqual(upTo(first, sent + 1))
      const detail = dataOf(await service.ask('GET', `/api/webhook/${inbox.id}`, { key: tenant.api_key }))
      expect(detail.inbox.messageCount).toBe(seen.length)
    })
  })

  describe('the detail', () => {
    /** Each as it stands in a page of its own, newest first. */
    async function textsOf(tenant: TestTenant, inbox: TestInbox): Promise<string[]> {
      const texts: string[] = []
      for (let after = ''; ; ) {
        const answer = await page(service, tenant, inbox, `?limit=1${after}`)
        const { items, nextAfter } = dataOf(answer)
        if (items.length === 0) return texts.reverse()
        const [begin, end] = ['{"success":true,"data":{"items":[', `],"nextAfter":"${nextAfter}"}}`]
        expect([answer.text.slice(0, begin.length), answer.text.slice(-end.length)]).toEqual([begin, end])
        texts.push(answer.text.slice(begin.length, -end.length))
        after = `&after=${nextAfter}`
      }
    }

    async function expectDetail(tenant: TestTenant, inbox: TestInbox, messages: string[], count: number) {
      const path = `/api/webhook/${inbox.id}`
      const ask = (method: string) =>
        service.overHttp(() => service.ask(method, path, { key: tenant.api_key }))
      const answer = await ask('GET')
      const { inbox: shown } = dataOf(answer)
      expect(Object.keys(answer.body)).toEqual(['success', 'data'])
      expect(Object.keys(answer.body.data)).toEqual(['inbox', 'messages'])
      expect(shown).toMatchObject({ id: inbox.id, messageCount: count })
      const expected = `{"success":true,"data":{"inbox":${JSON.stringify(shown)},"messages":[${messages}]}}`
      expect(answer.text === expected).toBe(true) // not toBe: nobody reads a diff of megabytes
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
      const head = await ask('HEAD')
      expect([head.status, head.text]).toEqual([200, ''])
      expect(head.headers.get('content-type')).toBe('application/json')
    }

    test('of many MiB has all of the latest 50, newest first, byte for byte as in the pages', async () => {
      const tenant = await service.signUp('pro')
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 47)
      const large = [
        Buffer.alloc(mib, 1),
        Buffer.from('\u20ac'.repeat(mib / 3)),
        Buffer.alloc(mib, 0xff),
        Buffer.alloc(mib, '"'),
        Buffer.from(`[${' '.repeat(mib - 2)}]`),
      ]
      for (const body of large) expect((await service.ask('POST', inbox.path, { body })).status).toBe(200)
      const texts = await textsOf(tenant, inbox)
      expect(texts).toHaveLength(52)
      await expectDetail(tenant, inbox, texts.slice(0, 50), 52)
    })

    const sizes: [what: string, size: number, statements: string[]][] = [
      ['of 256 KiB are read at once', mib / 8, ['inbox.between']],
      ['of one byte more are read in parts', mib / 8 + 1, ['inbox.between', 'inbox.between']],
    ]
    test.each(sizes)('messages %s', async (_, size, statements) => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 2)
      const { db } = service.app
      const resize = (seq: number, bytes: number) =>
        db.write((tx) =>
          tx.run(
            unnamedAcrossTenants(
              'test.resize',
              'update inbox_messages set size = :bytes where tenant_id = :tenant_id and seq = :seq',
            ),
            { tenant_id: tenant.tenant_id, bytes, seq },
          ),
        )
      await resize(1, mib / 8)
      await resize(2, size)
      const texts = await textsOf(tenant, inbox)
      const names: string[] = []
      db.onStatement((name) => names.push(name))
      const answer = await service.ask('GET', `/api/webhook/${inbox.id}`, { key: tenant.api_key })
      db.onStatement(null)
      expect(names.filter((name) => ['inbox.between'].includes(name))).toEqual(statements)
      expect(dataOf(answer).messages).toHaveLength(2)
      await expectDetail(tenant, inbox, texts, 2)
    })
  })

  describe('wait', () => {
    test('is answered by the next message', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 1)
      const [{ id }] = await messagesIn(service, tenant, inbox)
      const looked = lookedAt(service, 2)
      const waiting = [tenant.api_key, tenant.admin_key].map((key) =>
        service.ask('GET', `/api/webhook/${inbox.id}/messages?wait=55&after=${id}`, { key }),
      )
      await looked
      await post(service, inbox, 2, 2)
      for (const answer of await Promise.all(waiting)) expect(numbers(dataOf(answer).items)).toEqual([2])
    })

    test.each(['0', '1', '55'])('of %s is answered at once when there is a message', async (seconds) => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      await post(service, inbox, 1, 1)
      expect(numbers(dataOf(await page(service, tenant, inbox, `?wait=${seconds}`)).items)).toEqual([1])
    })

    test('ends with nothing when its time is over', async () => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      const looked = lookedAt(service, 1)
      const waiting = page(service, tenant, inbox, '?wait=55')
      await looked
      service.clock.advance(55 * second_ms)
      expect(dataOf(await waiting)).toEqual({ items: [], nextAfter: null })
    })

    test('ends when the inbox is deleted, as of one that is unknown, and when it expires', async () => {
      const tenant = await service.signUp()
      const [deleted, expired] = [
        await newInbox(service, tenant),
        await newInbox(service, tenant, { ttl: 1 }),
      ]
      const looked = lookedAt(service, 2)
      const waiting = [deleted, expired].map((inbox) => page(service, tenant, inbox, '?wait=55'))
      await looked
      await service.ask('DELETE', `/api/webhook/${deleted.id}`, { key: tenant.api_key })
      service.clock.advance(second_ms)
      const [gone, over] = await Promise.all(waiting)
      expect([gone!.status, gone!.body.error.code]).toEqual([404, 'INBOX_NOT_FOUND'])
      expect(dataOf(over!)).toEqual({ items: [], nextAfter: null })
      expect(dataOf(await page(service, tenant, expired, '?wait=55'))).toEqual({ items: [], nextAfter: null })
    })

    test('is for one inbox: a message to another ends nothing', async () => {
      const tenant = await service.signUp()
      const [inbox, other] = [await newInbox(service, tenant), await newInbox(service, tenant)]
      const looked = lookedAt(service, 1)
      let answered = false
      const waiting = page(service, tenant, inbox, '?wait=55').finally(() => {
        answered = true
      })
      await looked
      await post(service, other, 1, 1)
      await tick(service)
      expect(answered).toBe(false)
      await post(service, inbox, 2, 2)
      expect(numbers(dataOf(await waiting).items)).toEqual([2])
    })
  })
})

forEachDatabase('A detail that is sent one by one', (databases) => {
  test('leaves out what is dropped meanwhile', async () => {
    const bench = await Bench.open(databases)
    const caller = await bench.tenant('free')
    const { id, token } = await bench.db.write((tx) =>
      inboxes.create(tx, caller, bench.dependencies, {
        label: '',
        forward_url: null,
        workflow_id: null,
        ttl_seconds: 86_400,
      }),
    )
    const request = {
      request_id: 'req_of_a_test',
      method: 'POST',
      headers: new Headers(),
      url: '/hook/t',
      address: '192.0.2.1',
    }
    for (let n = 1; n <= 5; n++) {
      const bytes = Buffer.alloc(mib, `${n}`)
      await receive(bench.db, bench.dependencies, token, { ...request, bytes })
    }
    const read = await inboxes.read(bench.db, caller, bench.dependencies, bench.clock.now(), id)
    await bench.write('delete from inbox_messages where inbox_id = :id and seq <= 2', { id })
    const seen: string[] = []
    for (const part of 'parts' in read ? read.parts : []) {
      for (const { body } of await part()) seen.push(body[0]!)
    }
    expect(seen).toEqual(['5', '4', '3'])
  })
})

forEachDatabase('A node that drains', (databases) => {
  test('answers who waits for a message with none', async () => {
    const service = await new TestService().start(await databases.newUrl())
    service.over_http = true
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const looked = lookedAt(service, 1)
    const waiting = page(service, tenant, inbox, '?wait=55')
    await looked
    await service.stop()
    expect(dataOf(await waiting)).toEqual({ items: [], nextAfter: null })
  })
})

onPostgres('Two nodes on one PostgreSQL', () => {
  test('a message to one ends a wait on the other', async () => {
    const database_url = await newPostgresDatabase()
    const environment = { SECRET_KEY: 'the same on every node' }
    const [near, far] = [new TestService(environment), new TestService(environment)]
    far.clock = near.clock
    try {
      await near.start(database_url)
      await far.start(database_url)
      const tenant = await near.signUp()
      const inbox = await newInbox(near, tenant)
      const looked = lookedAt(near, 1)
      const waiting = page(near, tenant, inbox, '?wait=55')
      await looked
      await post(far, inbox, 1, 1)
      expect(numbers(dataOf(await waiting).items)).toEqual([1])
    } finally {
      await far.stop()
      await near.stop()
      await dropPostgresDatabase(database_url)
    }
  })

  test('of messages to both, a reader that goes on after the last one seen misses none', async () => {
    const database_url = await newPostgresDatabase()
    const environment = { SECRET_KEY: 'the same on every node' }
    const nodes = [new TestService(environment), new TestService(environment)]
    nodes[1]!.clock = nodes[0]!.clock
    try {
      for (const node of nodes) await node.start(database_url)
      const [near] = nodes as [TestService, TestService]
      const tenant = await near.signUp('pro')
      const inbox = await newInbox(near, tenant)
      let sending = true
      const sent = Promise.all(
        upTo(1, 400).map((n) => served(() => nodes[n % 2]!.ask('POST', inbox.path, { body: { n } }))),
      ).finally(() => {
        sending = false
      })
      const seen: number[] = []
      let after = ''
      for (let last = false; !last; ) {
        last = !sending
        const { items, nextAfter } = dataOf(await page(near, tenant, inbox, `?limit=100${after}`))
        seen.push(...numbers(items))
        if (items.length > 0) last = false
        if (nextAfter !== null) after = `&after=${nextAfter}`
      }
      const answers = await sent
      expect(answers.filter((answer) => answer.status !== 200 && !isUnknown(answer))).toEqual([])
      // On a busy machine a commit may have no answer in time: its message is there once, or not at all.
      const may_lack = new Set(upTo(1, 400).filter((n) => isUnknown(answers[n - 1]!) && !seen.includes(n)))
      expect(seen.toSorted((a, b) => a - b)).toEqual(upTo(1, 400).filter((n) => !may_lack.has(n)))
    } finally {
      for (const node of nodes) await node.stop()
      await dropPostgresDatabase(database_url)
    }
  })
})
