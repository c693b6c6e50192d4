// The reach of the approval of an effect, how often and until when, and other ends that people enter, in a real browser.

import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { day_ms } from '../src/base/clock.ts'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, callsOf, narrow, refusals, signIn, useService } from './support/console.ts'
import { askForEffect } from './support/effect-checkpoints.ts'

const service = useService()
service.clock.letWaitsEnd()
const chromium = useChromium()
const { keyOf, linkOf, read } = approvers(service)

const focused = (page: Page) => page.evaluate('document.activeElement.labels?.[0].textContent')
const approve = (page: Page) => page.getByRole('button', { name: 'Approve…' }).click()

async function asked() {
  const tenant = await service.signUp()
  const { id } = await askForEffect(service, tenant)
  return { tenant, id, link: linkOf(id, await keyOf(tenant)) }
}

async function openPermit(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.locator('.permit summary').click()
}

test('an end of which no time can be made is never left out of an approval', async () => {
  const { tenant, id, link } = await asked()
  await chromium.visit(
    service.url,
    async (page) => {
      await openPermit(page, link)
      await page.getByLabel('Until').fill('20270-01-02T03:04')
      await approve(page)
      await page.getByText('The year has four digits.').waitFor()
      expect(await page.getByRole('dialog').count()).toBe(0)
      expect(await focused(page)).toBe('Until')
      // The field of the year ends with its fourth digit.
      await page.getByLabel('Until').fill('')
      await page.keyboard.type('010220990304A')
      expect(await page.getByLabel('Until').inputValue()).toBe('2099-01-02T03:04')
      await approve(page)
      await page.getByRole('dialog').getByText('It may start once, until').waitFor()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this').waitFor()
    },
    narrow,
  )
  expect(await read(tenant, id)).toMatchObject({ permit_expires_at: expect.stringMatching(/^2099-01-0/) })
})

test('a key whose end has a year of five digits is not created without an end', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/keys/approval-keys')
    await page.getByRole('button', { name: 'Create a key…' }).click()
    await page.getByLabel('Ends').fill('20270-01-02T03:04')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    expect(await focused(page)).toBe('Ends')
    await page.getByRole('dialog', { name: 'Create an approval key' }).waitFor()
  })
  const { body } = await service.ask('GET', '/v1/approval-keys', { key: tenant.admin_key })
  expect(body.items).toEqual([])
})

test('a half-written end is completed without a break', async () => {
  const { link } = await asked()
  await chromium.visit(
    service.url,
    async (page) => {
      await openPermit(page, link)
      await page.getByLabel('Until').focus()
      await page.keyboard.type('0102')
      await approve(page)
      await page.getByText('The date is not complete: fill in the rest, or empty it.').waitFor()
      await page.keyboard.type('010220990304A')
      expect(await page.getByLabel('Until').inputValue()).toBe('2099-01-02T03:04')
      await page.getByText('The date is not complete').waitFor({ state: 'detached' })
      expect(await page.getByLabel('Until').isVisible()).toBe(true)
      expect(await focused(page)).toBe('Until')
    },
    narrow,
  )
})

test('a reach that the service refuses has the focus, as other fields that it refuses', async () => {
  const { link } = await asked()
  await chromium.visit(
    service.url,
    async (page) => {
      await openPermit(page, link)
      await page.getByLabel('How often').fill('500')
      // Folded away again.
      await page.locator('.permit summary').click()
      await approve(page)
      await page.getByRole('dialog').getByText('It may start 500 times.').waitFor()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('It must be <= 100.').waitFor()
      await page.waitForFunction('document.activeElement.labels?.[0].textContent === "How often"')
    },
    { ...narrow, expected: refusals(400) },
  )
})

test('an approval is revoked on the page of its effect, and on its own while it has further uses', async () => {
  const tenant = await service.signUp()
  const body = { type: 'refund', key: 'order-7', payload: 1, approval: { title: 'Refund order 7?' } }
  const claimed = (await service.ask('POST', '/v1/effects', { key: tenant.api_key, body })).body
  const { id: effect_id, checkpoint_id: id } = claimed
  const approved = { key: tenant.admin_key, body: { uses: 5 } }
  expect((await service.ask('POST', `/v1/checkpoints/${id}/approve`, approved)).status).toBe(200)
  await chromium.visit(
    service.url,
    async (page) => {
      const revoke = page.getByRole('button', { name: 'Revoke the approval' })
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByText('5 of 5 uses left.').waitFor()
      await revoke.click()
      await page.getByRole('dialog').getByText('Nothing starts under it any more.').waitFor()
      await page.getByRole('button', { name: 'Go back' }).click()
      await page.goto(`/console/effects/${effect_id}`)
      await revoke.click()
      await page.getByRole('button', { name: 'Yes, revoke' }).click()
      await page.getByText('0 of 5 uses left. Over since').waitFor()
      expect(await revoke.count()).toBe(0)
      await page.getByText('It never happens under this key.').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
    },
    narrow,
  )
  expect(await read(tenant, id)).toMatchObject({ status: 'approved', uses_left: 0 })
})

test('an approval is revoked while its effect runs: the focus stays near, and the effect is not offered again', async () => {
  const tenant = await service.signUp()
  const body = { type: 'refund', key: 'order-8', payload: 1, approval: { title: 'Refund order 8?' } }
  const { id, checkpoint_id } = (await service.ask('POST', '/v1/effects', { key: tenant.api_key, body })).body
  await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, { key: tenant.admin_key })
  const { lease_token } = (await service.ask('POST', `/v1/effects/${id}/start`, { key: tenant.api_key })).body
  await chromium.visit(
    service.url,
    async (page) => {
      const revoke = page.getByRole('button', { name: 'Revoke the approval' })
      await signIn(page, tenant, `/console/effects/${id}`)
      await revoke.click()
      await page.getByRole('button', { name: 'Yes, revoke' }).click()
      await page.getByText('Over since').waitFor()
      expect(await revoke.count()).toBe(0)
      expect(await page.evaluate('document.activeElement.innerText')).toContain('Over since')
      const failure = { lease_token, error: 'busy', retry: true }
      await service.ask('POST', `/v1/effects/${id}/fail`, { key: tenant.api_key, body: failure })
      await page.getByText('no agent can start it any more').waitFor()
      expect(await page.getByText('An agent that claims or starts it gets it.').count()).toBe(0)
    },
    narrow,
  )
})

test('an approval with uses left is revoked also after its payload was removed', async () => {
  const tenant = await service.signUp()
  const body = { type: 'refund', key: 'order-9', payload: 1, approval: { title: 'Refund order 9?' } }
  const { id, checkpoint_id } = (await service.ask('POST', '/v1/effects', { key: tenant.api_key, body })).body
  const approved = { key: tenant.admin_key, body: { uses: 5 } }
  await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, approved)
  const { lease_token } = (await service.ask('POST', `/v1/effects/${id}/start`, { key: tenant.api_key })).body
  await service.ask('POST', `/v1/effects/${id}/succeed`, { key: tenant.api_key, body: { lease_token } })
  const before = service.clock.now()
  service.clock.advance(8 * day_ms)
  await callsOf(service).tick()
  service.clock.advance(before - service.clock.now())
  expect(await read(tenant, checkpoint_id)).toMatchObject({ payload_hash: null, uses_left: 5 })
  await chromium.visit(
    service.url,
    async (page) => {
      await signIn(page, tenant, `/console/approvals/${checkpoint_id}`)
      await page.getByRole('button', { name: 'Revoke the approval' }).click()
      await page.getByRole('button', { name: 'Yes, revoke' }).click()
      await page.getByText('0 of 5 uses left. Over since').waitFor()
    },
    narrow,
  )
  expect(await read(tenant, checkpoint_id)).toMatchObject({ uses_left: 0 })
})
