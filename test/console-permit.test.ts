// The reach of the approval of an effect, how often and until when, in a real browser.

import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { narrow, refusals, useService } from './support/console.ts'
import { askForEffect } from './support/effect-checkpoints.ts'

const service = useService()
const chromium = useChromium()
const { keyOf, linkOf } = approvers(service)

const focused = (page: Page) => page.evaluate('document.activeElement.labels?.[0].textContent')
const approve = (page: Page) => page.getByRole('button', { name: 'Approve…' }).click()

async function asked() {
  const tenant = await service.signUp()
  const { id } = await askForEffect(service, tenant)
  return linkOf(id, await keyOf(tenant))
}

async function openPermit(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.locator('.permit summary').click()
}

test('a half-written end is completed without a break', async () => {
  const link = await asked()
  await chromium.visit(
    service.url,
    async (page) => {
      await openPermit(page, link)
      await page.getByLabel('Until').focus()
      await page.keyboard.type('0102')
      await approve(page)
      await page.getByText('The date is not complete: fill in the rest, or empty it.').waitFor()
      await page.getByLabel('Until').fill('2099-01-02T03:04')
      await page.getByText('The date is not complete').waitFor({ state: 'detached' })
      expect(await page.getByLabel('Until').isVisible()).toBe(true)
      expect(await focused(page)).toBe('Until')
    },
    narrow,
  )
})

test('a reach that the service refuses has the focus, as other fields that it refuses', async () => {
  const link = await asked()
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
