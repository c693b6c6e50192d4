// Inboxes and counters in the console: a webhook appears as it comes, is shown as what it is, and is sent again.

import { describe, expect, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  requestsOf,
  signIn,
  tabTo,
  themes,
  useService,
} from './support/console.ts'
import { messagesIn, newInbox, type TestInbox } from './support/inbox.ts'
import { becomes, until } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()

const service = useService({ CALLBACK_ALLOW: '127.0.0.1' })

interface Sent {
  path?: string
  method?: string
  headers?: Record<string, string>
  body?: string | Uint8Array
}

async function send(
  inbox: TestInbox,
  { path = '', method = 'POST', headers = {}, body }: Sent,
): Promise<void> {
  const options = { headers, ...(body === undefined ? {} : { body }) }
  const { status } = await service.ask(method, inbox.path + path, options)
  expect(status).toBe(200)
}

const bytes = (...values: number[]) => new Uint8Array(values)
const json = { 'content-type': 'application/json' }

/** What the page is asked for `/api` with, without the key of the inbox. */
const apiCalls = (requests: ReturnType<typeof requestsOf>) =>
  requests.map((request) => new URL(request.url())).filter(({ pathname }) => pathname.startsWith('/api/'))

describe('An inbox', () => {
  test('is made, gets a webhook that appears without a reload or a burst of calls, and is deleted', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        const requests = requestsOf(page)
        await signIn(page, tenant, '/console/inboxes')
        await page.getByText('There is no inbox').waitFor()
        await page.getByRole('button', { name: 'New inbox…' }).click()
        await page.getByLabel('Label').fill('Git <b>hub</b>')
        await page.getByRole('button', { name: 'Create' }).click()
        await page.getByText('No message yet').waitFor()
        await page.getByText('Git <b>hub</b>').waitFor()
        await page.evaluate('window.same_page = true')
        const url = await page.locator('.address .code').innerText()
        for (const n of [1, 2]) {
          await fetch(`${url}/n${n}?a=1`, { method: 'POST', body: `{"n": ${n}}` })
          await page.getByRole('link', { name: `POST /n${n}` }).waitFor()
        }
        await becomes(() => page.locator('.split-list tbody a').allInnerTexts(), ['POST /n2', 'POST /n1'])
        expect(await page.evaluate('window.same_page')).toBe(true)
        // The detail, two looks that were answered, and the one that is held.
        await page.getByText('4 calls of /api').waitFor()
        const id = new URL(page.url()).pathname.split('/').at(-1)
        const calls = apiCalls(requests).map(({ pathname, search }) => pathname + search)
        const look = /^\/api\/webhook\/inb_\w+\/messages\?(after=msg_\w+&)?wait=55$/
        expect(calls.slice(0, 3)).toEqual([
          '/api/webhook?limit=50&offset=0',
          '/api/webhook',
          `/api/webhook/${id}`,
        ])
        for (const call of calls.slice(3)) expect(call).toMatch(look)
        expect(calls.length).toBeLessThanOrEqual(6)
        await page.getByRole('button', { name: 'Delete…' }).click()
        expect(await page.evaluate('document.activeElement.innerText')).toBe('Keep it')
        await page.getByRole('button', { name: 'Yes, delete' }).click()
        await page.getByText('There is no inbox').waitFor()
        expect((await fetch(url, { method: 'POST' })).status).toBe(404)
      },
      { expected: refusals(404) },
    )
  })

  test('is made once when the answer is lost and one asks again', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/inboxes')
        let lost = ''
        await page.route('**/api/webhook', async (route) => {
          if (route.request().method() !== 'POST' || lost !== '') return route.continue()
          lost = (await (await route.fetch()).json()).data.id
          return route.abort()
        })
        await page.getByRole('button', { name: 'New inbox…' }).click()
        await page.getByRole('button', { name: 'Create' }).click()
        await page.getByText('The service does not answer.').waitFor()
        await page.getByRole('button', { name: 'Create' }).click()
        await page.getByText('No message yet').waitFor()
        expect(page.url()).toBe(`${service.url}/console/inboxes/${lost}`)
      },
      { ...narrow, expected: [/Failed to load resource: net::ERR_FAILED/] },
    )
    const { body } = await service.ask('GET', '/api/webhook', { key: tenant.api_key })
    expect(body.data.total).toBe(1)
  })

  test('says what is wrong with where messages are to be sent on', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/inboxes')
        await page.getByRole('button', { name: 'New inbox…' }).click()
        const field = page.getByLabel('Send each message on to')
        await field.fill('ftp://example.com/')
        await page.keyboard.press('Enter')
        await page.locator('[aria-invalid=true]').waitFor()
        expect(await field.getAttribute('aria-invalid')).toBe('true')
      },
      { expected: refusals(400) },
    )
  })

  test('shows how a message was sent on', async () => {
    const tenant = await service.signUp()
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 503 })
    const inbox = await newInbox(service, tenant, { forwardUrl: receiver.url })
    await send(inbox, { path: '/x', headers: json, body: '{}' })
    await receiver.received(1)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
      // The result is stored a moment after the receiver has answered.
      const failed = page.getByRole('cell', { name: 'failed' })
      const again = page.getByRole('button', { name: 'Reload' })
      await page.getByRole('link', { name: 'POST /x' }).waitFor()
      while ((await failed.count()) === 0) {
        const answered = page.waitForResponse(/api\/webhook\/inb_\w+$/)
        await again.click()
        await answered
      }
      await page.getByRole('link', { name: 'POST /x' }).click()
      await becomes(
        () => page.locator('.facts').last().innerText(),
        expect.stringMatching(/Sent on\nfailed 503, \d+ ms, (just now|\d+ (s|min) ago)$/),
      )
    })
    await receiver.stop()
  })

  test('shows the beginning of each body, and is searched by text, one call for each search', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await send(inbox, { path: '/orders', headers: json, body: '{"order": 7,\n "customer": "cus_8003"}' })
    await send(inbox, { path: '/orders', headers: json, body: '{"order": 8}' })
    await send(inbox, { path: '/plain', body: '\n\nDear all\nmore' })
    await send(inbox, { path: '/empty' })
    await send(inbox, {
      path: '/bytes',
      headers: { 'content-type': 'image/png' },
      body: bytes(0x89, 0xff, 0),
    })
    await chromium.visit(service.url, async (page) => {
      const requests = requestsOf(page)
      await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
      const rows = page.locator('.split-list .two-lines')
      await becomes(
        async () => (await rows.allInnerTexts()).toSorted(),
        [
          'POST /bytes\nbytes image/png',
          'POST /empty\nno body',
          'POST /orders\n{"order": 7, "customer": "cus_8003"}',
          'POST /orders\n{"order": 8}',
          'POST /plain\nDear all',
        ],
      )
      await page.getByLabel('Search messages').fill('CUS_8003')
      await page.keyboard.press('Enter')
      await page.getByText('1 message found, the newest first').waitFor()
      expect(new URL(page.url()).search).toBe('?q=CUS_8003')
      await becomes(() => rows.allInnerTexts(), ['POST /orders\n{"order": 7, "customer": "cus_8003"}'])
      await page.getByRole('link', { name: 'POST /orders' }).click()
      await page.getByRole('region', { name: 'Open record' }).getByText('cus_8003').first().waitFor()
      expect(new URL(page.url()).search).toBe('?q=CUS_8003')
      expect(await accessibilityFaults(page)).toEqual([])
      const searches = apiCalls(requests).filter(({ pathname }) => pathname.endsWith('/search'))
      expect(searches.map(({ search }) => search)).toEqual(['?q=CUS_8003'])
      await page.getByRole('button', { name: 'All messages' }).click()
      await page.getByText('Following').waitFor()
      await becomes(() => rows.count(), 5)
      await page.getByLabel('Search messages').fill('nowhere')
      await page.keyboard.press('Enter')
      await page.getByText('No message has this text').waitFor()
    })
  })

  test('keeps the newest of large messages, and not as many as there are', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await send(inbox, { path: '/first' })
    const [first] = await messagesIn(service, tenant, inbox)
    const large = (n: number) => ({
      ...first,
      id: `msg_${n}`,
      path: `/${n}`,
      bodyBase64: 'A'.repeat(n * 2 ** 20),
    })
    await chromium.visit(service.url, async (page) => {
      const items = [large(20), large(16), large(1)]
      const data = { items, nextAfter: first.id }
      await page.route(/\/messages\?/, (route) => route.fulfill({ json: { success: true, data } }), {
        times: 1,
      })
      await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
      // 1 and 16 are within 32, 20 and the first are not.
      await page.getByRole('link', { name: 'POST /1', exact: true }).waitFor()
      await becomes(() => page.locator('.split-list tbody a').allInnerTexts(), ['POST /1', 'POST /16'])
    })
  })

  test('that is full counts no message among the kept ones that has taken the place of another', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const kept_max = 100 // of the plan
    for (let n = 0; n < kept_max; n += 1) await send(inbox, {})
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
      const kept = page.locator('.facts > div', { hasText: 'Messages kept' }).locator('dd')
      await becomes(() => kept.innerText(), '100')
      await page.getByText('Following').waitFor()
      await send(inbox, { path: '/one-more' })
      await page.getByRole('link', { name: 'POST /one-more' }).waitFor()
      await becomes(() => kept.innerText(), '100 when this was loaded; 1 came since')
      await page.getByRole('button', { name: 'Delete…' }).click()
      await page.getByText('Its messages are deleted at once').waitFor()
      await page.getByRole('button', { name: 'Keep it' }).click()
      await page.getByRole('button', { name: 'Reload' }).click()
      await becomes(() => kept.innerText(), '100')
    })
  })

  test('follows again by itself once the service answers, and misses no message', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.clock.install()
        let [is_away, failures, looks] = [true, 0, 0]
        const answer = (route: Route) => {
          if (!is_away) {
            if (route.request().url().includes('/messages?')) looks += 1
            return route.continue()
          }
          failures += 1
          return route.abort()
        }
        await page.route('**/api/webhook/*', answer)
        await page.route(/\/messages\?/, answer)
        /** The hand on the keys keeps the session. */
        const waits = async () => {
          await page.keyboard.press('Shift')
          await page.clock.fastForward(30_000)
        }
        await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
        await page.getByText('The service does not answer.').waitFor()
        is_away = false
        await page.getByText('Following: messages appear').waitFor()
        await until(() => looks > 0)
        await page.clock.pauseAt(Date.now() + 60_000)
        ;[is_away, failures] = [true, 0]
        await send(inbox, { path: '/first' })
        await page.getByRole('link', { name: 'POST /first' }).waitFor()
        await becomes(() => failures, 1)
        expect(await page.getByText('Not following').count()).toBe(0)
        await until(async () => {
          await waits()
          return failures >= 8
        })
        await page.getByText('Not following: tried again until the service answers').waitFor()
        expect(await overflow(page)).toBe(0)
        await send(inbox, { path: '/while-away' })
        is_away = false
        const arrived = page.getByRole('link', { name: 'POST /while-away' })
        await until(async () => {
          await waits()
          return (await arrived.count()) === 1
        })
        await page.getByText('Following: messages appear').waitFor()
        expect(await page.getByText('The service does not answer.').count()).toBe(0)
      },
      { expected: [/Failed to load resource: net::ERR_FAILED/] },
    )
  })

  test('stops following when looks are refused, and follows again when told', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.route(/\/messages\?/, (route) =>
          route.fulfill({ status: 403, json: { error: { code: 'FORBIDDEN', message: 'no' } } }),
        )
        await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
        await page.getByText('Not following').waitFor()
        await page.unroute(/\/messages\?/)
        await page.getByRole('button', { name: 'Follow again' }).click()
        await page.getByText('Following: messages appear').waitFor()
        await send(inbox, { path: '/back' })
        await page.getByRole('link', { name: 'POST /back' }).waitFor()
      },
      { expected: refusals(403) },
    )
  })
})

interface Case extends Sent {
  what: string
  /** The name of the tab that is open, or null where there is one way to show it. */
  tab: string | null
  place: string
  /** What is seen of the body. */
  seen: string[]
}

const cases: Case[] = [
  {
    what: 'JSON with all its digits',
    ...{ headers: json, body: '{"n": 12345678901234567890.10, "it": "it\'s $HOME `x` !! \\\\"}' },
    ...{ tab: 'JSON', place: '.tree li', seen: ['n: 12345678901234567890.10', "it: it's $HOME `x` !! \\"] },
  },
  {
    what: 'the fields of a form',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    ...{ body: 'b=1&a=x+y%26&b=%3Cb%3E', tab: 'Form', place: 'tr', seen: ['b\t1', 'a\tx y&', 'b\t<b>'] },
  },
  {
    what: 'text that curl would take for the name of a file',
    ...{
      headers: { 'content-type': 'text/plain' },
      body: "@/etc/passwd 'äöü'\n",
      tab: 'Text',
      place: '.raw',
    },
    seen: ["@/etc/passwd 'äöü'"],
  },
  {
    what: 'text with line ends, tabs and a hidden override',
    ...{ headers: { 'content-type': 'text/plain' }, body: 'a\r\n\tb\u202e\n', tab: 'Text', place: '.raw' },
    seen: ['a', '\tb⟨U+202E⟩'],
  },
  {
    what: 'a picture',
    headers: { 'content-type': 'image/png' },
    body: bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0xff),
    ...{
      tab: null,
      place: '.raw',
      seen: ['00000000  89 50 4e 47 0d 0a 1a 0a 00 ff                    |.PNG......|'],
    },
  },
  {
    what: 'text that is not UTF-8',
    headers: { 'content-type': 'text/plain' },
    body: bytes(0x66, 0xfc, 0x72),
    ...{
      tab: null,
      place: '.raw',
      seen: ['00000000  66 fc 72                                         |f.r|'],
    },
  },
  {
    what: 'something without a type, with headers of every kind',
    headers: { 'content-type': '', 'x-quote': 'it\'s "$HOME" \\', 'x-empty': '', 'x-latin': 'caf\u00e9' },
    ...{ method: 'PUT', body: bytes(0x68, 0x69), tab: 'Text', place: '.raw', seen: ['hi'] },
  },
  { what: 'nothing', method: 'DELETE', tab: null, place: 'p', seen: ['None'] },
]

describe('A message', () => {
  test.each(cases)('is shown as $what and sent again as it came', async ({ tab, place, seen, ...sent }) => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await send(inbox, { ...sent, path: "/a%20b/it's?q=1&q=%26[x]" })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
        await page.getByRole('link', { name: /^[A-Z]+ \/a/ }).click()
        await bodyIn(page).waitFor()
        await becomes(() => bodyLines(page, place), seen)
        expect(await page.getByRole('tab', { selected: true }).allInnerTexts()).toEqual(tab ? [tab] : [])
        await page.getByRole('button', { name: 'Copy the command' }).click()
        await page.getByText('Copied the command.').waitFor()
        const command = (await page.evaluate('navigator.clipboard.readText()')) as string
        await run(command)
        await page
          .getByRole('link', { name: /^[A-Z]+ \/a/ })
          .nth(1)
          .waitFor()
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    )
    const [first, second] = await messagesIn(service, tenant, inbox)
    for (const name of ['method', 'path', 'query', 'bodyBase64', 'contentType']) {
      expect([name, second[name]]).toEqual([name, first[name]])
    }
    expect(second.headers).toMatchObject(repeated(first.headers))
    expect(Buffer.from(second.bodyBase64, 'base64')).toEqual(Buffer.from(sent.body ?? ''))
  })

  test('of a megabyte is shown in part, opened further, and copied whole', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const body = `[${Array.from({ length: 100_000 }, (_, i) => i + 1_000_000).join(', ')}]`
    expect(body.length).toBeGreaterThan(890_000)
    await send(inbox, { headers: json, path: '/large', body })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
        await page.getByRole('link', { name: 'POST /large' }).click()
        await page.getByRole('button', { name: 'Show 100 more of 100,000' }).waitFor()
        await page.getByRole('tab', { name: 'Bytes' }).click()
        await becomes(async () => (await page.locator('.raw').innerText()).split('\n').length, 64)
        await page.getByRole('tab', { name: 'Text' }).click()
        await page.getByRole('button', { name: / more characters$/ }).waitFor()
        await page.getByRole('button', { name: 'Copy the command' }).click()
        await page.getByText('Copied the command.').waitFor()
        await run((await page.evaluate('navigator.clipboard.readText()')) as string)
        await page.getByRole('link', { name: 'POST /large' }).nth(1).waitFor()
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    )
    const [, second] = await messagesIn(service, tenant, inbox)
    expect(Buffer.from(second.bodyBase64, 'base64').toString()).toBe(body)
  })
})

/** The lines of what is shown of a body. */
async function bodyLines(page: Page, place: string): Promise<string[]> {
  const texts = await bodyIn(page).locator(place).allInnerTexts()
  return texts.join('\n').trimEnd().split('\n')
}

const bodyIn = (page: Page) => page.getByRole('region', { name: 'Body', exact: true })

/** What belongs to one connection is not repeated. */
function repeated(headers: Record<string, string>): Record<string, string> {
  const own = ['host', 'connection', 'content-length']
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !own.includes(name)))
}

async function run(command: string): Promise<void> {
  const shell = Bun.spawn(['bash', '-s'], {
    stdin: new TextEncoder().encode(`${command}\n`),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect(await new Response(shell.stdout).text()).toContain('"received":true')
}

async function check({ api_key }: TestTenant, key: string, hits: number, limit = 3): Promise<void> {
  for (let hit = 0; hit < hits; hit += 1) {
    const body = { key, limit, windowSeconds: 3600 }
    const { status } = await service.ask('POST', '/api/rate-limit/check', { key: api_key, body })
    expect(status).toBe(hit < limit ? 200 : 429)
  }
}

describe('Counters', () => {
  test('are listed with how full they are, searched by prefix, and reset after a second look', async () => {
    const tenant = await service.signUp()
    await check(tenant, 'crm/ä', 4)
    await check(tenant, 'mail', 1)
    await chromium.visit(service.url, async (page) => {
      const requests = requestsOf(page)
      await signIn(page, tenant, '/console/rate-limits')
      const meter = (name: string) => page.getByRole('meter', { name }).getAttribute('aria-valuetext')
      expect(await meter('crm/ä')).toBe('4 of 3')
      expect(await meter('mail')).toBe('1 of 3')
      await page.getByText('2 of 2; the one that ends first comes first').waitFor()
      await page.getByLabel('Counters that begin with').fill('crm/')
      await page.keyboard.press('Enter')
      await page.getByText('1 of 1; the one that ends first comes first').waitFor()
      await page.waitForURL(`${service.url}/console/rate-limits?prefix=crm%2F`)
      await page.getByRole('button', { name: 'Reset crm/ä' }).click()
      await page.getByText('It stands at 4 of 3.').waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Reset crm/ä' }).click()
      await page.getByRole('button', { name: 'Yes, reset' }).click()
      await page.getByText('No counter has this prefix').waitFor()
      await becomes(() => page.evaluate('document.activeElement === document.body'), false)
      expect(apiCalls(requests).map(({ pathname }) => pathname)).toEqual([
        '/api/rate-limit',
        '/api/rate-limit',
        '/api/rate-limit/reset',
      ])
    })
    const { body } = await service.ask('GET', '/api/rate-limit/crm%2F%C3%A4', { key: tenant.api_key })
    expect(body.data).toMatchObject({ count: 0, windowExpired: true })
  })

  test('are loaded page by page', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 60; i += 1) await check(tenant, `counter-${i}`, 1)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/rate-limits')
      await page.getByText('50 of 60;').waitFor()
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('60 of 60;').waitFor()
      expect(await page.getByRole('meter').count()).toBe(60)
    })
  })

  test('are all listed and counted, also after some were reset', async () => {
    const tenant = await service.signUp()
    const names = Array.from({ length: 60 }, (_, i) => `counter-${String(i).padStart(2, '0')}`)
    for (const [i, key] of names.entries()) {
      const body = { key, limit: 3, windowSeconds: 3_600 + i }
      await service.ask('POST', '/api/rate-limit/check', { key: tenant.api_key, body })
    }
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/rate-limits')
      await page.getByText('50 of 60;').waitFor()
      for (const key of names.slice(0, 3)) {
        await page.getByRole('button', { name: `Reset ${key}` }).click()
        await page.getByRole('button', { name: 'Yes, reset' }).click()
        await page.getByRole('button', { name: `Reset ${key}` }).waitFor({ state: 'detached' })
      }
      await page.getByText('47 of 57;').waitFor()
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('57 of 57;').waitFor()
      const listed = await page
        .getByRole('meter')
        .evaluateAll((meters) => meters.map((meter) => meter.ariaLabel!))
      expect(listed.toSorted()).toEqual(names.slice(3))
      await page.getByRole('button', { name: 'Reset counter-59' }).click()
      await page.getByRole('button', { name: 'Yes, reset' }).click()
      await page.getByText('56 of 56;').waitFor()
    })
  })

  test('whose window ended on the page do not hide others on the next one', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 60; i += 1) await check(tenant, `counter-${i}`, 1)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/inboxes')
      const body = { key: 'short', limit: 3, windowSeconds: 2 }
      await service.ask('POST', '/api/rate-limit/check', { key: tenant.api_key, body })
      await page.getByRole('link', { name: 'Rate limits' }).click()
      await page.getByText('50 of 61;').waitFor()
      await page.getByText('ended', { exact: true }).waitFor()
      service.clock.advance(2_000)
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('60 of 60;').waitFor()
      expect(await page.getByRole('meter', { name: 'counter-' }).count()).toBe(60)
    })
  })

  test('are listed once each when the places moved between two pages', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 60; i += 1) await check(tenant, `counter-${i}`, 1)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/rate-limits')
      await page.getByText('50 of 60;').waitFor()
      // Ends before all others.
      const body = { key: 'sooner', limit: 3, windowSeconds: 1800 }
      await service.ask('POST', '/api/rate-limit/check', { key: tenant.api_key, body })
      await page.getByRole('button', { name: 'Show more' }).click()
      await page.getByText('60 of 61;').waitFor()
      const names = await page
        .getByRole('meter')
        .evaluateAll((meters) => meters.map((meter) => meter.ariaLabel))
      expect(new Set(names).size).toBe(60)
    })
  })
})

describe('Both pages', () => {
  test('are used on a narrow screen and by keyboard', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant, { label: 'l'.repeat(256) })
    await send(inbox, { path: `/${'p'.repeat(300)}`, headers: { 'x-long': 'v'.repeat(500) }, body: 'x' })
    await check(tenant, 'k'.repeat(200), 2)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/inboxes')
        await page.getByRole('link', { name: /^lll/ }).waitFor()
        expect(await overflow(page)).toBe(0)
        await page.goto(`/console/inboxes/${inbox.id}`)
        await page.getByRole('link', { name: /^POST/ }).waitFor()
        await tabTo(page, `POST /${'p'.repeat(300)}`)
        await page.keyboard.press('Enter')
        await bodyIn(page).waitFor()
        expect(await overflow(page)).toBe(0)
        await page.goto('/console/rate-limits')
        await page.getByRole('meter').waitFor()
        expect(await overflow(page)).toBe(0)
        await tabTo(page, `Reset ${'k'.repeat(200)}`)
        await page.keyboard.press('Enter')
        await page.getByRole('dialog').waitFor()
        await page.keyboard.press('Escape')
        expect(await page.evaluate('document.activeElement.innerText')).toBe('Reset…')
      },
      narrow,
    )
  })

  test.each(themes)('are accessible in the %s theme', async (colorScheme) => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant, { label: 'Git' })
    await check(tenant, 'crm', 4)
    const sent = [cases[0]!, cases[1]!, cases[2]!, cases[4]!]
    for (const [i, message] of sent.entries()) await send(inbox, { ...message, path: `/m${i}?q=1` })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/inboxes')
        await page.getByRole('link', { name: 'Git' }).waitFor()
        await page.getByRole('button', { name: 'New inbox…' }).click()
        expect(await accessibilityFaults(page)).toEqual([])
        await page.keyboard.press('Escape')
        expect(await accessibilityFaults(page)).toEqual([])
        await page.getByRole('link', { name: 'Git' }).click()
        for (const i of sent.keys()) {
          await page.getByRole('link', { name: `POST /m${i}` }).click()
          await page.getByRole('heading', { name: `POST /m${i}` }).waitFor()
          expect(await accessibilityFaults(page)).toEqual([])
        }
        await page.goto('/console/rate-limits')
        await page.getByRole('meter', { name: 'crm' }).waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
      },
      { colorScheme },
    )
  })
})
