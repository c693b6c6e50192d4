// Pages that are left: what was removed is in no step of the browser's history, and what is shown once is not lost.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, refusals, signIn, useService } from './support/console.ts'
import { becomes } from './support/patience.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()
const service = useService()
const { agentOf } = callsOf(service)

const dialog = (page: Page) => page.getByRole('dialog')
const secret = (page: Page) => dialog(page).locator('.secret code').first().innerText()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const pathOf = (page: Page) => new URL(page.url()).pathname

interface Removal {
  what: string
  list: string
  /** Those that are opened, one in the list of the other. */
  rows: string[]
  make: (tenant: TestTenant) => Promise<unknown>
  remove: (page: Page) => Promise<void>
}

const twice = async (page: Page, verb: string) => {
  await press(page, 'Delete…')
  await press(page, verb)
}

async function inbox({ api_key }: TestTenant): Promise<void> {
  const made = await service.ask('POST', '/api/webhook', { key: api_key, body: { label: 'Contact form' } })
  await fetch(made.body.data.url, { method: 'POST', body: 'hello' })
}

const removals: Removal[] = [
  {
    what: 'an agent',
    list: '/console/keys',
    rows: ['agent-one'],
    make: async () => {},
    remove: (page) => twice(page, 'Yes, delete'),
  },
  {
    what: 'a dead letter',
    list: '/console/dlq',
    rows: ['card declined'],
    make: (tenant) => agentOf(tenant).dlq.create({ payload: 1, error: 'card declined' }),
    remove: (page) => twice(page, 'Create the agent and delete'),
  },
  {
    what: 'a subscription',
    list: '/console/subscriptions',
    rows: ['To the team'],
    make: ({ admin_key }) =>
      service.ask('POST', '/v1/subscriptions', {
        key: admin_key,
        body: { name: 'To the team', url: 'http://127.0.0.1:9/', types: ['dlq.*'] },
      }),
    remove: (page) => twice(page, 'Yes, delete'),
  },
  {
    what: 'a key of the store',
    list: '/console/kv/state',
    rows: ['order-7'],
    make: (tenant) => agentOf(tenant).kv.put('state', 'order-7', 1),
    remove: (page) => twice(page, 'Create the agent and delete'),
  },
  {
    what: 'an inbox',
    list: '/console/inboxes',
    rows: ['Contact form'],
    make: inbox,
    remove: (page) => twice(page, 'Yes, delete'),
  },
  {
    what: 'an inbox with a message that is open',
    list: '/console/inboxes',
    rows: ['Contact form', 'POST /'],
    make: inbox,
    remove: (page) => twice(page, 'Yes, delete'),
  },
]

/** One step of the history, once the page has heard of it. */
function go(page: Page, by: -1 | 1): Promise<void> {
  return page.evaluate(`new Promise((resolve) => {
    addEventListener('popstate', () => resolve(), { once: true })
    history.go(${by})
  })`)
}

/** Once the page hears of a step of the history that it takes itself. */
function nextStep(page: Page): Promise<void> {
  return page.evaluate(
    `new Promise((resolve) => addEventListener('popstate', () => resolve(), { once: true }))`,
  )
}

/** To a page of the console without loading it again. */
function visit(page: Page, path: string): Promise<void> {
  return page.evaluate(`history.pushState(null, '', '${path}'); dispatchEvent(new PopStateEvent('popstate'))`)
}

describe('What was removed', () => {
  test.each(removals)('is in no step of the history: $what', async ({ list, rows, make, remove }) => {
    const tenant = await service.signUp()
    await make(tenant)
    const look = async (page: Page) => {
      await signIn(page, tenant)
      await visit(page, list)
      for (const row of rows) {
        const before = pathOf(page)
        await page.locator('.split-list').getByRole('link', { name: row }).click()
        await becomes(() => pathOf(page) !== before, true)
      }
      // The page leaves what was removed by a step of its own, which ends after the address has changed.
      const stepped = nextStep(page)
      await remove(page)
      await stepped
      await becomes(() => pathOf(page), list)
      const seen: string[] = []
      while (pathOf(page) !== '/console') {
        await go(page, -1)
        seen.push(pathOf(page))
      }
      for (const _ of [list, ...rows]) {
        await go(page, 1)
        seen.push(pathOf(page))
      }
      expect(new Set(seen)).toEqual(new Set(['/console', list]))
      expect(await page.getByText('There is no such thing here.').count()).toBe(0)
    }
    // What the page asked while it was being removed.
    await chromium.visit(service.url, look, { expected: refusals(404) })
  })
})

describe('A key that is shown once', () => {
  test('is not lost by "back": it asks, and a second one closes the key on the same page', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await visit(page, '/console/keys')
      await press(page, 'Create an agent…')
      await dialog(page).getByLabel('Name').fill('invoices')
      await press(page, 'Create')
      const key = await secret(page)
      expect(key).toStartWith('svc_agt_')
      await page.evaluate('history.back()')
      await dialog(page).getByText('Have you saved it?').waitFor()
      expect([await secret(page), pathOf(page)]).toEqual([key, '/console/keys'])
      await page.evaluate('history.back()')
      await dialog(page).waitFor({ state: 'detached' })
      await page.getByRole('link', { name: 'invoices' }).waitFor()
      await go(page, -1)
      expect(pathOf(page)).toBe('/console')
    })
  })

  test('is waited for: "back" does not lead away while it is on its way', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await page.route('**/rotate-key', async (route) => {
        const answer = await route.fetch()
        await go(page, -1)
        await route.fulfill({ response: answer })
      })
      await signIn(page, tenant)
      await visit(page, '/console/keys/agents/agent-one')
      await press(page, 'Rotate the key…')
      await press(page, 'Rotate')
      await page.getByRole('dialog', { name: 'The new key' }).waitFor()
      const key = await secret(page)
      const { status } = await service.ask('GET', '/v1/audit', { key })
      expect([status, pathOf(page)]).toEqual([200, '/console/keys/agents/agent-one'])
    })
  })

  test('is not lost by a reload: the browser asks first, until it is closed', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      const asked: string[] = []
      page.on('dialog', (question) => {
        asked.push(question.type())
        void question.accept()
      })
      const made = async () => {
        await press(page, 'Create a key…')
        await press(page, 'Create')
        expect(await secret(page)).toStartWith('svc_apr_')
      }
      await signIn(page, tenant, '/console/keys/approval-keys')
      await made()
      await page.reload()
      expect(asked).toEqual(['beforeunload'])
      await made()
      await press(page, 'Done')
      await page.reload()
      expect(asked).toEqual(['beforeunload'])
    })
  })
})
