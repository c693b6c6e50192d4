// The change of a large payload, in a real browser on the real service: what differs is shown whole, what is equal is folded.

import { beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, themes, useRealTime } from './support/console.ts'
import { askForEffect } from './support/effect-checkpoints.ts'
import { forEachService } from './support/service.ts'

const chromium = useChromium()

/** A list of orders, each with a line for the amount and three around it. */
function orders(amounts: number[]): string {
  return JSON.stringify(amounts.map((amount, id) => ({ id, amount })))
}

const lines = (page: Page) => page.locator('.difference-line')
const changed = (page: Page) => page.locator('.difference :is(ins, del)')
const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent')

forEachService('The change of a large payload', (service) => {
  service.clock.letWaitsEnd()
  beforeAll(() => useRealTime(service))
  const { askTwo, keyOf, linkOf, approve } = approvers(service)

  /** The request as the second approver sees it, once the first one has changed the payload. */
  async function changedTo(before: string, after: string): Promise<string> {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant, before)
    const voted = await approve(id, kim, { effective_payload: JSON.parse(after) })
    expect(voted.status).toBe(200)
    return linkOf(id, lee)
  }

  test('shows lines around each edit; a button shows equal ones, and leads the keyboard to them', async () => {
    const before = Array.from({ length: 5_000 }, () => 10)
    const link = await changedTo(orders(before), orders(before.with(2, 11).with(4_990, 12)))
    for (const colorScheme of themes)
      await chromium.visit(
        service.url,
        async (page) => {
          await page.goto(link)
          await page.getByText('An approver changed it').waitFor()
          expect(await changed(page).allInnerTexts()).toEqual([
            ...['−     "amount": 10', '+     "amount": 11'],
            ...['−     "amount": 10', '+     "amount": 12'],
          ])
          expect(await lines(page).count()).toBe(2 * (3 + 2 + 3))
          const buttons = page.locator('.difference').getByRole('button')
          const names = ['Show 8 equal lines', 'Show 1,000 of 19,945 equal lines', 'Show 35 equal lines']
          expect(await buttons.allInnerTexts()).toEqual(names)
          expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])

          await page.getByRole('region', { name: 'Difference between' }).focus()
          await page.keyboard.press('Tab')
          await page.keyboard.press('Enter')
          expect(await focused(page)).toBe('  [')
          await page.keyboard.press('Tab')
          await page.keyboard.press('Enter')
          expect(await focused(page)).toBe('      "amount": 10')
          expect(await buttons.allInnerTexts()).toEqual(['Show 1,000 of 18,945 equal lines', names[2]!])
          expect(await lines(page).count()).toBe(16 + 8 + 1_000)
          expect(await accessibilityFaults(page)).toEqual([])
        },
        { ...narrow, colorScheme },
      )
  })

  test('gives long changes in parts, says before a decision that there is more, and shows all of it', async () => {
    const before = Array.from({ length: 1_200 }, (_, i) => i)
    const [old, fresh] = [before, before.map((amount) => amount + 5_000)]
    const link = await changedTo(JSON.stringify(old), JSON.stringify(fresh))
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(link)
        const more = 'There is more: these are the first 1,000 of 2,400 changed lines.'
        await page.getByText(more).waitFor()
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText(more).waitFor()
        const parts = dialog.locator('.difference :is(ins, del)')
        expect(await parts.count()).toBe(1_000)
        await dialog.getByRole('button', { name: 'Show more: 1,400 changed lines are left' }).click()
        expect([await parts.count(), await focused(page)]).toEqual([2_000, '−   1000,'])
        await dialog.getByRole('button', { name: 'Show more: 400 changed lines are left' }).click()
        expect([await parts.count(), await focused(page)]).toEqual([2_400, '+   5800,'])
        expect(await dialog.getByText('There is more').count()).toBe(0)
        expect(await dialog.getByRole('button', { name: 'Show' }).count()).toBe(0)
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await dialog.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
  })

  test('draws few lines after a letter in the field, however far apart two edits are', async () => {
    const tenant = await service.signUp()
    const list = Array.from({ length: 48_000 }, (_, i) => i % 10)
    const { id } = await askForEffect(service, tenant, { payload: JSON.stringify(list) })
    await chromium.visit(service.url, async (page) => {
      await page.goto(linkOf(id, await keyOf(tenant)))
      await page.getByRole('button', { name: 'Change the payload' }).click()
      const text = JSON.stringify(list.with(5, 77).with(47_990, 88))
      await page.getByRole('textbox', { name: 'Payload' }).fill(text)
      await changed(page).first().waitFor()
      expect(await lines(page).count()).toBe(6 + 2 + 3 + 3 + 2 + 3)
      expect(await changed(page).allInnerTexts()).toEqual(['−   5,', '+   77,', '−   0,', '+   88,'])
    })
  })
})
