// Subscriptions in the console: created, followed, paused, replayed, deleted. And the pages that follow what happens.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, requestsOf, signIn, useService } from './support/console.ts'
import { startReceiver } from './support/receiver.ts'
import { cron_secret, type TestTenant } from './support/service.ts'
import { tickUntil } from './support/subscriptions.ts'

const chromium = useChromium()
const service = useService()

async function asked(tenant: TestTenant, title: string): Promise<string> {
  const body = { title, callback_url: null }
  const answer = await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })
  expect(answer.status).toBe(201)
  return answer.body.id
}

const detail = (page: Page) => page.locator('.split-detail')

describe('The page of subscriptions', () => {
  test('takes a double click on Pause for one click: its second half does not resume', async () => {
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 503 })
    const tenant = await service.signUp()
    const { admin_key: key } = tenant
    const body = { url: receiver.url, types: ['checkpoint.created'] }
    const { body: made } = await service.ask('POST', '/v1/subscriptions', { key, body })
    await asked(tenant, 'Pay invoice 7?')
    await tickUntil(service, () => receiver.requests.length === 1)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/subscriptions/${made.id}`)
      await detail(page).getByText('Failed once so far').waitFor()
      const requests = requestsOf(page)
      // The lower part, which is that of Resume too once the reason of the pause stands above.
      await detail(page)
        .getByRole('button', { name: 'Pause', exact: true })
        .click({ position: { x: 20, y: 27 } })
      await detail(page).getByRole('button', { name: 'Resume', exact: true }).waitFor()
      expect(await page.locator('button:hover').innerText()).toBe('Resume')
      await page.mouse.down({ clickCount: 2 })
      await page.mouse.up({ clickCount: 2 })
      await page.evaluate('1')
      expect(requests.filter((request) => request.method() === 'PATCH')).toHaveLength(1)
      const { body: now } = await service.ask('GET', `/v1/subscriptions/${made.id}`, { key })
      expect(now.status).toBe('paused')
      await page.locator('button:hover').click()
      await detail(page).getByRole('button', { name: 'Pause', exact: true }).waitFor()
    })
    await receiver.stop()
  })

  test('creates one for a channel on a telephone, shows its attempts, pauses, resumes, replays and deletes it', async () => {
    const receiver = await startReceiver()
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/subscriptions')
        await page.getByText('Nobody is notified yet').waitFor()
        await page.getByRole('button', { name: 'New subscription…' }).click()
        await page.getByLabel('URL of the incoming webhook').fill(`${receiver.url}/s3cret/channel`)
        await page.getByLabel('Name').fill('Decisions')
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await page.getByRole('button', { name: 'Create', exact: true }).click()
        await detail(page).getByText('active').waitFor()
        await detail(page).getByText('None yet.').waitFor()
        expect(await page.locator('main').innerText()).not.toContain('s3cret')

        await asked(tenant, 'Pay invoice 7?')
        await tickUntil(service, () => receiver.requests.length === 1)
        expect(JSON.parse(receiver.requests[0]!.body).text).toContain('*Pay invoice 7?*')
        await detail(page).getByText('Taken with 204').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])

        await detail(page).getByRole('button', { name: 'Pause' }).click()
        await detail(page).getByText('An administrator paused it.').waitFor()
        await asked(tenant, 'Pay invoice 8?')
        await service.ask('POST', '/v1/tick', { key: cron_secret })
        await detail(page).getByRole('button', { name: 'Resume' }).click()
        await detail(page).getByRole('button', { name: 'Pause' }).waitFor()
        await tickUntil(service, () => receiver.requests.length === 2)
        expect(JSON.parse(receiver.requests[1]!.body).text).toContain('*Pay invoice 8?*')

        await detail(page).getByRole('button', { name: 'Replay…' }).click()
        const after = page.getByLabel('After event number')
        await after.fill('nothing')
        expect(await page.getByRole('button', { name: 'Yes, begin there' }).isDisabled()).toBe(true)
        await after.fill('0')
        await page.getByRole('button', { name: 'Yes, begin there' }).click()
        await page.locator('dialog[open]').waitFor({ state: 'detached' })
        await tickUntil(service, () => receiver.requests.length === 4)
        const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
        expect(ids.slice(2)).toEqual(ids.slice(0, 2))

        await detail(page).getByRole('button', { name: 'Delete…' }).click()
        await page.getByRole('button', { name: 'Yes, delete' }).click()
        await page.getByText('Nobody is notified yet').waitFor()
      },
      // The event of its deletion may reach the page before it has left it, which then looks once more.
      { ...narrow, expected: [/status of 404 .*\/v1\/subscriptions\/sub_/] },
    )
    await receiver.stop()
  })

  test('says why an event is not taken, and when it is tried again', async () => {
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 503 })
    const tenant = await service.signUp()
    const body = { url: receiver.url, types: ['checkpoint.created'] }
    const { body: made } = await service.ask('POST', '/v1/subscriptions', { key: tenant.admin_key, body })
    await asked(tenant, 'Pay invoice 7?')
    await tickUntil(service, () => receiver.requests.length > 0)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/subscriptions/${made.id}`)
      const state = detail(page).getByRole('region', { name: 'State' })
      await state.getByText('Failed once so far').waitFor()
      await state.getByText('The receiver answered 503 Service Unavailable.').waitFor()
      await state.getByText('The next attempt is in').waitFor()
    })
    await receiver.stop()
  })

  test('refuses a type that no event has, in words, and keeps what was typed', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/subscriptions')
        await page.getByRole('button', { name: 'New subscription…' }).click()
        await page.getByLabel('Who gets it').selectOption('standard')
        await page.getByLabel('URL', { exact: true }).fill('http://127.0.0.1:1/')
        await page.getByLabel('It gets').selectOption('')
        await page.getByLabel('Types of events').fill('schedule.failed, no.such')
        await page.getByRole('button', { name: 'Create', exact: true }).click()
        await page.getByText('Entry 2 is not a type of event').waitFor()
        expect(await page.getByLabel('Types of events').inputValue()).toBe('schedule.failed, no.such')
      },
      { expected: [/status of 400 /] },
    )
  })
})

describe('Pages follow what happens', () => {
  /** Sooner than any of them asks by itself. */
  const soon = { timeout: 20_000 }

  test('by one stream: the queue of approvals, an open request, the overview, and the number in the navigation', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      const requests = requestsOf(page)
      await signIn(page, tenant, '/console/approvals')
      await page.getByRole('navigation', { name: 'Pages' }).waitFor()
      await page.getByText('Nothing waits for you').or(page.getByText('No approvals yet')).first().waitFor()
      const first = await asked(tenant, 'Pay invoice 7?')
      await page.getByRole('link', { name: 'Pay invoice 7?' }).click(soon)
      await page
        .locator('.waiting')
        .getByText('1 to decide')
        .waitFor({ state: 'attached', ...soon })
      await asked(tenant, 'Pay invoice 8?')
      await page
        .locator('.waiting')
        .getByText('2 to decide')
        .waitFor({ state: 'attached', ...soon })
      await service.ask('POST', `/v1/checkpoints/${first}/reject`, { key: tenant.admin_key, body: {} })
      await detail(page).locator('.outcome-title').getByText('Rejected').waitFor(soon)
      await page.getByRole('link', { name: 'Overview' }).click()
      const waiting = page.getByRole('region', { name: 'Waits for you' })
      await waiting.getByText('1 to decide').waitFor(soon)
      await asked(tenant, 'Pay invoice 9?')
      await waiting.getByText('2 to decide').waitFor(soon)
      const streams = requests.filter((one) => one.url().includes('/v1/events'))
      expect(streams.map((one) => one.url())).toEqual([`${service.url}/v1/events`])
      // The stream says where it begins: no other call asks for that, nor counts as activity.
      expect(requests.filter((one) => one.method() === 'POST').map((one) => one.url())).toEqual([])
    })
  })
})
