// Stored text that would like to be more than text, in every field that a page shows. On SQLite: what is stored is the
// API's matter, and the same on both engines.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { shown } from '../console/text/words.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { useChromium } from './support/chromium.ts'
import { narrow, overflow, signIn, useRealTime } from './support/console.ts'
import { entries, linksOn, sights } from './support/console-walk.ts'
import { databaseFolder } from './support/folders.ts'
import { fitting, hostile } from './support/hostile.ts'
import { served, TestService, type TestTenant } from './support/service.ts'

const chromium = useChromium()
const folder = databaseFolder()
const service = new TestService()
service.clock.letWaitsEnd()
let tenant: TestTenant
/** The link of an approval page that asks about all of them. */
let approval_url: string

beforeAll(async () => {
  await service.start(`sqlite:${join(folder, 'test.db')}`)
  useRealTime(service)
  tenant = await signUp()
  approval_url = await storeEverywhere()
})
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Where a payload of its own stands in every field; one that a page does not show is not tested here. */
const fields: [path: string, what: string, texts: readonly string[]][] = [
  ['/console/approvals', 'titles', fitting(256)],
  ['/console/approvals', 'prompts', fitting(400)],
  ['/console/approvals', 'reasons', fitting(4_096)],
  ['/console/approvals', 'names and strings of payloads', fitting(400)],
  ['/console/effects', 'keys', fitting(256)],
  ['/console/effects', 'notes', fitting(400)],
  ['/console/effects', 'errors', fitting(400)],
  ['/console/effects', 'strings of payloads', fitting(400)],
  ['/console/schedules', 'strings of payloads', fitting(400)],
  ['/console/dlq', 'errors', fitting(400)],
  ['/console/dlq', 'workflows', fitting(256)],
  ['/console/dlq', 'strings of payloads', fitting(400)],
  ['/console/audit', 'actions', fitting(128)],
  ['/console/audit', 'actors', fitting(256)],
  ['/console/audit', 'workflows', fitting(256)],
  ['/console/audit', 'strings of metadata', fitting(400)],
  ['/console/kv', 'keys', fitting(400, { without_controls: true })],
  ['/console/kv', 'strings of values', fitting(400)],
  ['/console/inboxes', 'labels', fitting(256)],
  ['/console/inboxes', 'strings of bodies', fitting(400)],
  ['/console/rate-limits', 'keys', fitting(256)],
  ['/console/keys', 'descriptions', fitting(400)],
  ['/console/keys', 'labels of approval keys', fitting(256)],
]

describe('Hostile text', () => {
  test('is sixty texts, each another one', () => {
    expect([hostile.length, new Set(hostile).size]).toEqual([60, 60])
  })

  test('is text on every page, in its lists and in every detail that they lead to', async () => {
    await watched(async (page) => {
      await signIn(page, tenant, '/console/nowhere')
      const seen = await textsByPage(page)
      const missing = fields.flatMap(([path, what, texts]) =>
        texts
          .map(shown)
          .filter((text) => !seen.get(path)!.includes(text))
          .map((text) => [path, what, text]),
      )
      expect(missing).toEqual([])
    })
  }, 600_000)

  test('is text on the approval page, before and after the decision', async () => {
    await watched(async (page) => {
      await page.goto(approval_url)
      await page.getByRole('button', { name: 'Approve…' }).waitFor()
      const seen = await textOf(page)
      const missing = fitting(400)
        .map(shown)
        .filter((text) => !seen.includes(text))
      expect(missing).toEqual([])
      expect([await strangers(page), await overflow(page)]).toEqual([[], 0])
      await page.getByLabel('Reason').fill(hostile[0]!)
      await page.getByRole('button', { name: 'Reject…' }).click()
      await page.getByRole('button', { name: 'Yes, reject' }).click()
      await page.getByText('You rejected this').waitFor()
      expect(await textOf(page)).toContain(hostile[0]!)
      expect(await strangers(page)).toEqual([])
    })
  })

  test('would be found by all this if a page took it for markup', async () => {
    const planted = async (page: Page) => {
      // One of them leads away at once, and the rest would not be seen.
      const stays = hostile.filter((text) => !text.includes('http-equiv'))
      const html = '<!doctype html><main></main><script src="/planted.js"></script>'
      const script = `for (const text of ${JSON.stringify(stays)}) {
        const place = document.createElement('div')
        document.querySelector('main').append(place)
        place.innerHTML = text
      }`
      await page.route('**/planted', (route) => route.fulfill({ contentType: 'text/html', body: html }))
      await page.route('**/planted.js', (route) =>
        route.fulfill({ contentType: 'text/javascript', body: script }),
      )
      const stranger = page.waitForRequest(/^https:\/\/evil\.example\//)
      const opened = page.waitForEvent('dialog')
      await page.goto('/planted')
      await Promise.all([page.waitForFunction('window.pwned === 1'), stranger, opened])
      expect(await strangers(page)).toEqual(
        expect.arrayContaining(['pwned', '<base>', '<iframe>', 'data of <object>', 'onerror of <img>']),
      )
    }
    const told = await watched(planted).then(
      () => '',
      (error: Error) => error.message,
    )
    for (const fault of ['asked another origin: https://evil.example/', 'opened a dialog: 1']) {
      expect(told).toContain(fault)
    }
  })
})

/** All that is shown under the address of each page, every detail once, wherever a link to it stands. */
async function textsByPage(page: Page): Promise<Map<string, string>> {
  const seen = new Map<string, string>()
  const places = new Set<string>()
  const isNew = (address: string) => places.size < places.add(placeOf(address)).size
  let rest: string[] = []
  for (const { path } of entries()) {
    rest.push(...(await linksOn(page, path)).filter(isNew))
    seen.set(path, await textOf(page))
    expect([path, await strangers(page)]).toEqual([path, []])
  }
  while (rest.length > 0) {
    const found = await sights(page, rest)
    expect(await strangers(page)).toEqual([])
    for (const [i, { text }] of found.entries()) {
      const path = pageOf(rest[i]!)
      seen.set(path, `${seen.get(path)},${text}`)
    }
    rest = found.flatMap(({ hrefs }) => hrefs).filter(isNew)
  }
  return seen
}

/** The page in the navigation: the longest, because the overview is above all others. */
function pageOf(address: string): string {
  const path = `${new URL(address, service.url).pathname}/`
  const above = entries().filter((entry) => path.startsWith(`${entry.path}/`))
  return above.toSorted((a, b) => b.path.length - a.path.length)[0]!.path
}

/** Without the filter, which a detail may link to, save that of a status. */
function placeOf(address: string): string {
  return address.replace(/\?(?!status=).*/, '')
}

/** A page that may not open dialogs, other pages or other addresses than the service's. */
async function watched(look: (page: Page) => Promise<void>): Promise<void> {
  const faults: string[] = []
  await chromium.visit(
    service.url,
    async (page, known) => {
      page.on('dialog', (dialog) => {
        faults.push(`opened a dialog: ${dialog.message()}`)
        return dialog.dismiss()
      })
      page.on('popup', () => faults.push('opened a page'))
      page.on('download', () => faults.push('began a download'))
      page.on('framenavigated', (frame) => {
        const { origin } = new URL(frame.url())
        if (frame !== page.mainFrame() || origin !== service.url) faults.push(`went to ${frame.url()}`)
      })
      await look(page)
      expect([...known, ...faults]).toEqual([])
    },
    narrow,
  )
}

async function textOf(page: Page): Promise<string> {
  return (await page.evaluate(`document.querySelector('main').textContent`)) as string
}

/** What no page of ours has: traces of scripts that ran, elements and attributes that text became. */
async function strangers(page: Page): Promise<string[]> {
  return (await page.evaluate(`(() => {
    const found = []
    if ('pwned' in window || 'pwned' in {} || Object.keys(Object.prototype).length > 0) found.push('pwned')
    for (const element of document.body.querySelectorAll('*')) {
      const tag = '<' + element.localName + '>'
      if (${allowed_elements}.indexOf(element.localName) < 0) found.push(tag)
      for (const { name, value } of element.attributes) {
        if (name.startsWith('on') || ['srcdoc', 'formaction', 'data-pwned'].includes(name)) found.push(name + ' of ' + tag)
        if (['href', 'src', 'action', 'data'].includes(name) && !/^(https?:|[/#])/.test(value)) found.push(name + ' of ' + tag)
      }
    }
    return [...new Set(found)]
  })()`)) as string[]
}

/** Elements of our own pages; everything else on them came from a text. */
const allowed_elements = JSON.stringify(
  [
    'a article aside bdi blockquote br button canvas caption code datalist dd details dialog div dl dt em fieldset figcaption figure',
    'footer form h1 h2 h3 h4 header hr input label legend li main nav noscript ol optgroup option p pre script search section',
    'select small span strong summary table tbody td textarea tfoot th thead time tr ul',
  ].flatMap((line) => line.split(' ')),
)

/** A tenant whose name is hostile too, on a plan without limits. */
async function signUp(): Promise<TestTenant> {
  const name = '<img src=x onerror=alert(1)>'
  const body = { name, owner_email: 'owner@example.com', plan: 'pro' }
  const { tenant_id, admin_key, signing_secret } = await made('/v1/tenants', body)
  await service.app.db.write((tx) => tx.run(promote, { tenant_id }))
  const agent = await service.addAgent(admin_key, 'agent-one')
  return { tenant_id, name, admin_key, signing_secret, ...agent }
}

const promote = unnamedAcrossTenants(
  'hostile.promote',
  "update tenants set plan = 'enterprise' where tenant_id = :tenant_id",
)

async function made(path: string, body: unknown, key?: string) {
  const ask = () => service.ask('POST', path, { body, ...(key === undefined ? {} : { key }) })
  const answer = await served(ask)
  if (![200, 201].includes(answer.status)) throw new Error(`${path}: ${answer.text} ${JSON.stringify(body)}`)
  return answer.body
}

async function storeEverywhere(): Promise<string> {
  const { admin_key, api_key } = tenant
  await Promise.all(hostile.map((text, i) => store(text, i)))
  // As deep as the API takes it, and deeper where it only keeps bytes.
  await made('/v1/dlq', { error: 'deep', payload: nested(60) }, api_key)
  const { data } = await made('/api/webhook', { label: 'deep' }, api_key)
  await sent(data.url, '/', 'application/json', '['.repeat(2_000) + ']'.repeat(2_000))
  const asked = {
    title: hostile[0]!,
    prompt: fitting(400).join('\n'),
    callback_url: 'http://127.0.0.1:1/',
    callback_payload: Object.fromEntries(fitting(400).map((text, i) => [`${i}`, text])),
  }
  const { id: checkpoint_id } = await made('/v1/checkpoints', asked, api_key)
  return (await made('/v1/approval-keys', { checkpoint_id }, admin_key)).approval_url
}

/** The text in a field of everything. */
async function store(text: string, i: number): Promise<void> {
  const { admin_key, api_key } = tenant
  const payload = payloadOf(text)
  const short = (max: number) => fitting(max)[i]!
  const callback_url = `http://127.0.0.1:1/${encodeURIComponent(short(100))}`
  const asked = { title: short(256), prompt: text, callback_url, callback_payload: payload }
  // As many as the overview shows, and some more.
  if (i % 6 === 0) await made('/v1/checkpoints', asked, api_key)
  const { id } = await made('/v1/checkpoints', asked, api_key)
  await made(`/v1/checkpoints/${id}/reject`, { reason: short(4_096) }, admin_key)
  const fire_at = new Date(service.clock.now() + 3_600_000 * (i + 1)).toISOString()
  await made('/v1/schedules', { callback_url, callback_payload: payload, fire_at }, api_key)
  const workflow_id = short(256)
  await made('/v1/dlq', { error: text, workflow_id, payload }, api_key)
  const claim = { type: `hostile-${i}`, key: short(256), note: short(4_096), payload, workflow_id }
  const effect = await made('/v1/effects', claim, api_key)
  const failure = { lease_token: effect.lease_token, error: short(4_096) }
  await made(`/v1/effects/${effect.id}/fail`, failure, api_key)
  const metadata = payloadOf(short(4_000))
  await made('/v1/audit', { action: short(128), workflow_id, actor: short(256), metadata }, api_key)
  const key = encodeURIComponent(fitting(400, { without_controls: true })[i]!)
  const place = `/v1/kv/hostile/${key}`
  const put = await served(() => service.ask('PUT', place, { key: api_key, body: { value: payload } }))
  expect([put.status, put.text]).toEqual([200, put.text])
  const { data } = await made('/api/webhook', { label: short(256) }, api_key)
  await sent(data.url, callback_url.slice(18), 'application/json', JSON.stringify(payload), text)
  if (i % 6 === 0) await sent(data.url, '/', 'text/html', text)
  const form = new URLSearchParams({ [text]: text })
  if (i % 6 === 3) await sent(data.url, '/', 'application/x-www-form-urlencoded', form.toString())
  await made('/api/rate-limit/check', { key: short(256), limit: 10, windowSeconds: 3_600 }, api_key)
  await made('/v1/agents', { name: `hostile-${i}`, description: short(4_096) }, admin_key)
  await made('/v1/approval-keys', { label: short(256) }, admin_key)
}

/** As a string, as a name, and both again further in. */
function payloadOf(text: string): object {
  return { text, [text]: [text, { [text]: text }] }
}

function nested(levels: number): unknown {
  let value: unknown = hostile[0]
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { [hostile[1]!]: value }
  return value
}

/** A webhook, with the text in its query and, as far as one may hold it, in a header. */
async function sent(url: string, path: string, type: string, body: string, text = ''): Promise<void> {
  const query = new URLSearchParams({ [text.slice(0, 400)]: text.slice(0, 400) })
  const header = text.replace(/[^ -~]/g, '').slice(0, 200)
  const received = {
    headers: { 'content-type': type, 'x-hostile': header },
    body: new TextEncoder().encode(body),
  }
  const address = `${new URL(url).pathname}${path}?${query}`
  const answer = await served(() => service.ask('POST', address, received))
  expect(answer.status).toBe(200)
}
