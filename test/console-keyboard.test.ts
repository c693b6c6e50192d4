// The console by keyboard, where something else happens meanwhile: a key is held, a row goes away, a page is still being made.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, signIn, useService } from './support/console.ts'
import { loaded } from './support/console-walk.ts'

const chromium = useChromium()
const service = useService()
const { agentOf } = callsOf(service)

const dialog = (page: Page) => page.getByRole('dialog')
const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? document.activeElement.tagName')

/** Closes the question by Escape. Answers what has the focus then. */
async function escaped(page: Page): Promise<string> {
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  return focused(page)
}

describe('The focus after a question whose button has gone meanwhile', () => {
  test('is in the list that had the row', async () => {
    const tenant = await service.signUp()
    const { admin_key: key } = tenant
    for (const type of ['charge', 'refund'])
      await service.ask('PUT', `/v1/effect-policies/${type}`, { key, body: { approval: 'required' } })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects?status=policies')
      const change = page.getByRole('button', { name: 'Change the policy for refund…' })
      await change.press('Enter')
      await dialog(page).waitFor()
      await service.ask('DELETE', '/v1/effect-policies/refund', { key })
      await change.waitFor({ state: 'detached' })
      expect(await escaped(page)).toBe('Policies for effects')
    })
  })

  test('is in the open record', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.dlq.create({ payload: 1, error: 'card declined' })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/dlq/${id}`)
      const record = page.getByRole('region', { name: 'Open record' })
      await record.getByRole('button', { name: 'Discard…' }).press('Enter')
      await dialog(page).waitFor()
      const { lock_token } = await agent.dlq.claim(id)
      await agent.dlq.resolve(id, { lock_token })
      await record.getByText('resolved', { exact: true }).waitFor()
      expect(await escaped(page)).toBe('Open record')
    })
  })
})

test('Enter that is held down on a button opens its form, and does not send it', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/keys/approval-keys')
    await page.getByRole('button', { name: 'Create a key…' }).focus()
    for (let times = 0; times < 3; times += 1) await page.keyboard.down('Enter')
    await page.keyboard.up('Enter')
    expect(await focused(page)).toBe('INPUT')
    await page.keyboard.press('Escape')
    const { body } = await service.ask('GET', '/v1/approval-keys', { key: tenant.admin_key })
    expect(body.items).toEqual([])
  })
})

/** Writes into the search as soon as it is there, before anything is drawn. */
const writes_at_once = `new MutationObserver((_, observer) => {
  const field = document.querySelector('#main input[type=search]')
  if (field === null) return
  observer.disconnect()
  field.value = 'order'
  field.dispatchEvent(new Event('input', { bubbles: true }))
}).observe(document, { childList: true, subtree: true })`

describe('What is written into a search as soon as it is there', () => {
  test.each(['/console/inboxes/:id', '/console/kv/state', '/console/rate-limits', '/console/audit'])(
    'stays: %s',
    async (path) => {
      const tenant = await service.signUp()
      await agentOf(tenant).kv.put('state', 'order-7', 1)
      const made = await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: {} })
      await chromium.visit(service.url, async (page) => {
        await page.addInitScript(writes_at_once)
        await signIn(page, tenant, path.replace(':id', made.body.data.id))
        await loaded(page)
        expect(await page.locator('#main input[type=search]').first().inputValue()).toBe('order')
      })
    },
  )
})

test('Enter that is pressed twice at once on a button opens its form, and does not send it', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await page.clock.install()
    await signIn(page, tenant, '/console/keys/approval-keys')
    await page.getByText('No approval keys').waitFor()
    await page.clock.pauseAt(Date.now() + 60_000)
    const button = page.getByRole('button', { name: 'Create a key…' })
    await button.focus()
    await page.keyboard.press('Enter')
    await dialog(page).waitFor()
    await page.clock.fastForward(499)
    await page.keyboard.press('Enter')
    expect(await dialog(page).getByRole('button', { name: 'Create', exact: true }).isVisible()).toBe(true)
    expect(await dialog(page).locator('[aria-busy]').count()).toBe(0)
    await page.clock.fastForward(1)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'The approval key' }).waitFor()
    const { body } = await service.ask('GET', '/v1/approval-keys', { key: tenant.admin_key })
    expect(body.items.length).toBe(1)
  })
})

const ways: [way: string, press: (page: Page) => Promise<void>][] = [
  [
    'held down',
    async (page) => {
      for (let times = 0; times < 3; times += 1) await page.keyboard.down('Escape')
      await page.keyboard.up('Escape')
    },
  ],
  [
    'pressed twice at once',
    async (page) => {
      for (let times = 0; times < 2; times += 1) await page.keyboard.press('Escape')
    },
  ],
]

describe('Escape', () => {
  test.each(ways)('that is %s asks whether a key is saved, and does not close it', async (_, press) => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await signIn(page, tenant, '/console/keys')
      await page.getByRole('button', { name: 'Create an agent…' }).click()
      await dialog(page).getByLabel('Name').fill('worker-2')
      await dialog(page).getByRole('button', { name: 'Create', exact: true }).click()
      const key = page.getByRole('dialog', { name: 'The key of worker-2' })
      await key.waitFor()
      await page.clock.pauseAt(Date.now() + 60_000)
      await press(page)
      await key.getByText('Press Escape once more, or Done, to close.').waitFor()
      await page.clock.fastForward(500)
      await page.keyboard.press('Escape')
      await key.waitFor({ state: 'detached' })
    })
  })

  test.each(ways)('that is %s closes a question, and not the record behind it', async (_, press) => {
    const tenant = await service.signUp()
    const { id } = await agentOf(tenant).checkpoints.create({ title: 'Refund order 7?', callback_url: null })
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByLabel('Reason').fill('The order was late.')
      await page.clock.pauseAt(Date.now() + 60_000)
      await page.getByRole('button', { name: 'Reject…' }).click()
      await dialog(page).waitFor()
      await press(page)
      await dialog(page).waitFor({ state: 'detached' })
      expect(await page.getByLabel('Reason').inputValue()).toBe('The order was late.')
      await page.clock.fastForward(500)
      await page.keyboard.press('Escape')
      await page.getByLabel('Reason').waitFor({ state: 'detached' })
    })
  })
})
