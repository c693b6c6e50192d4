// The console and the approval page on a slow network: answers that come late, or not to their end.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, heldAnswer, refusals, signIn, useService } from './support/console.ts'
import { loaded } from './support/console-walk.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()
const service = useService()
service.clock.letWaitsEnd()
const { agentOf } = callsOf(service)

const dialog = (page: Page) => page.getByRole('dialog')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const pathOf = (page: Page) => new URL(page.url()).pathname
const title = (page: Page) => page.locator('#main h1').innerText()

async function linkOf({ admin_key }: TestTenant, checkpoint_id: string): Promise<string> {
  const { body } = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body: { checkpoint_id } })
  return body.approval_url
}

async function asked(tenant: TestTenant): Promise<string> {
  const { id } = await agentOf(tenant).checkpoints.create({
    ...{ title: 'Refund order 7?', callback_url: null, timeout_seconds: 3_600 },
  })
  return id
}

describe('An answer that comes after its page was left', () => {
  test('of a deletion leads nowhere: what is written on the next page stays', async () => {
    const tenant = await service.signUp()
    await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: { label: 'Contact form' } })
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/keys')
      await page.getByRole('link', { name: 'Inboxes' }).click()
      await page.getByRole('link', { name: 'Contact form' }).click()
      const { held, release } = await heldAnswer(page, 'DELETE', '**/api/webhook/*')
      await press(page, 'Delete…')
      await press(page, 'Yes, delete')
      await held
      await page.goBack()
      await page.goBack()
      await press(page, 'Create an agent…')
      await dialog(page).getByLabel('Name').fill('invoi')
      release()
      await dialog(page).getByText('The inbox is deleted.').waitFor()
      expect([pathOf(page), await title(page)]).toEqual(['/console/keys', 'Agents and keys'])
      expect(await dialog(page).getByLabel('Name').inputValue()).toBe('invoi')
    }
    // What the page asked while it was being removed.
    await chromium.visit(service.url, look, { expected: refusals(404) })
  })

  test('of a creation leads nowhere either', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys')
      await page.getByRole('link', { name: 'Inboxes' }).click()
      const { held, release } = await heldAnswer(page, 'POST', '**/api/webhook')
      await press(page, 'New inbox…')
      await press(page, 'Create')
      await held
      await page.goBack()
      await press(page, 'Create an agent…')
      release()
      await dialog(page).getByText('The inbox is ready.').waitFor()
      expect([pathOf(page), await title(page)]).toEqual(['/console/keys', 'Agents and keys'])
    })
  })
})

test('A key that is on its way comes to the question that asked for it, which "Go back" does not close', async () => {
  const tenant = await service.signUp()
  const look = async (page: Page) => {
    await signIn(page, tenant, '/console/keys/tenant')
    const { held, release } = await heldAnswer(page, 'POST', '**/rotate-key')
    await press(page, 'Rotate the admin key…')
    await dialog(page).getByLabel('The old key').selectOption('ends at once')
    await press(page, 'Rotate')
    await held
    await press(page, 'Go back')
    release()
    await dialog(page).getByText('The old key no longer works.').waitFor()
    const key = await dialog(page).locator('.secret code').innerText()
    expect((await service.ask('GET', '/v1/tenants/me', { key })).status).toBe(200)
  }
  // What the page asked with the old key meanwhile.
  await chromium.visit(service.url, look, { expected: refusals(401) })
})

/** How many seconds more are shown than are left by the clock of the device, which is that of the service. */
const seconds_too_many = `(() => {
  const { dateTime, textContent } = document.querySelector('.facts .countdown')
  const [, minutes, seconds] = /^(\\d+) min (\\d+) s$/.exec(textContent)
  return Number(minutes) * 60 + Number(seconds) - (Date.parse(dateTime) - Date.now()) / 1000
})()`

test('The time that is left is right where an answer takes twenty seconds', async () => {
  const tenant = await service.signUp()
  const link = await linkOf(tenant, await asked(tenant))
  await chromium.visit(service.url, async (page) => {
    await page.clock.install()
    let is_answered = false
    await page.route('**/v1/approvals/**', async (route) => {
      // The looks that follow get no answer.
      if (is_answered) return
      is_answered = true
      const response = await route.fetch()
      await page.clock.fastForward(20_000)
      await route.fulfill({ response })
    })
    await page.goto(link)
    await page.locator('.facts .countdown').waitFor()
    expect(Math.abs(await page.evaluate<number>(seconds_too_many))).toBeLessThan(10)
  })
})

test('A comment that is written while the one before is sent stays in its field', async () => {
  const tenant = await service.signUp()
  const link = await linkOf(tenant, await asked(tenant))
  await chromium.visit(service.url, async (page) => {
    const { held, release } = await heldAnswer(page, 'POST', '**/comments')
    await page.goto(link)
    await press(page, 'Write a comment')
    await page.getByLabel('Comment', { exact: true }).fill('Who asked?')
    await press(page, 'Add the comment')
    await held
    await page.getByLabel('Comment', { exact: true }).fill('Is it the third time?')
    release()
    await page.locator('.discussion', { hasText: 'Who asked?' }).waitFor()
    expect(await page.getByLabel('Comment', { exact: true }).inputValue()).toBe('Is it the third time?')
    await press(page, 'Add the comment')
    await page.locator('.discussion', { hasText: 'Is it the third time?' }).waitFor()
    expect(await page.getByLabel('Comment', { exact: true }).count()).toBe(0)
  })
})

test.each(['/console/approvals', '/console/dlq'])(
  'An answer that has come whole is not noted as cancelled by the browser: %s',
  async (path) => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      const cancelled: string[] = []
      page.on('requestfailed', (request) => cancelled.push(request.url()))
      await signIn(page, tenant, path)
      await loaded(page)
      expect(cancelled).toEqual([])
    })
  },
)

describe('Behind a connection that dies in the middle of an answer', () => {
  let is_dead = false
  let front: Bun.Server<undefined>
  beforeAll(() => {
    front = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch(request) {
        const { pathname, search } = new URL(request.url)
        if (is_dead && pathname === '/v1/checkpoints') return new Response(endless())
        const headers = new Headers(request.headers)
        headers.delete('host')
        headers.set('accept-encoding', 'identity')
        return fetch(`${service.url}${pathname}${search}`, {
          method: request.method,
          headers,
          body: request.body,
        })
      },
    })
  })
  afterAll(() => front.stop(true))

  test('a list says after thirty seconds that no answer comes, and is there once it comes', async () => {
    const tenant = await service.signUp()
    await asked(tenant)
    const look = async (page: Page) => {
      await page.clock.install()
      await signIn(page, tenant, '/console/kv')
      is_dead = true
      // Not the numbers of the navigation, which are asked for with a limit.
      const begun = page.waitForResponse(/\/v1\/checkpoints\?status=pending$/)
      await page.getByRole('link', { name: 'Approvals' }).click()
      await begun
      await page.clock.runFor(31_000)
      await page.getByText('The service does not answer.').waitFor()
      is_dead = false
      await press(page, 'Try again')
      await page.getByRole('link', { name: 'Refund order 7?' }).waitFor()
    }
    await chromium.visit(`http://127.0.0.1:${front.port}`, look)
  })
})

/** The beginning of a list, and nothing after it. */
function endless(): ReadableStream {
  return new ReadableStream({
    start: (answer) => answer.enqueue(new TextEncoder().encode('{"items": [')),
  })
}
