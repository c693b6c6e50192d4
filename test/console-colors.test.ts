// The console where the system has colours of its own, as in the contrast themes of Windows: what only a background said is seen.

import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, signIn, useService } from './support/console.ts'

const chromium = useChromium()
const service = useService()
const { agentOf } = callsOf(service)

const forced = { forcedColors: 'active' } as const

test('In forced colours the open page, theme, tab and row are seen, and arrows and meters', async () => {
  const tenant = await service.signUp()
  const { id } = await agentOf(tenant).checkpoints.create({
    ...{ title: 'Refund order 7?', callback_url: null, callback_payload: { order: { id: 7 } } },
  })
  const look = async (page: Page) => {
    const styleOf = async (selector: string, property: string) => {
      await page.locator(selector).first().waitFor({ state: 'attached' })
      return page.evaluate<string>(
        `getComputedStyle(document.querySelector('${selector}')).getPropertyValue('${property}')`,
      )
    }
    // The background is what it says only where the system does not draw it.
    const adjusts = (selector: string) => styleOf(selector, 'forced-color-adjust')
    await signIn(page, tenant, `/console/approvals/${id}`)
    await page.getByRole('button', { name: 'Approve…' }).waitFor()
    expect([
      await adjusts('nav a[aria-current]'),
      await adjusts('nav a:not([aria-current])'),
      await adjusts('.themes [aria-pressed=true]'),
      await adjusts('.themes [aria-pressed=false]'),
    ]).toEqual(['none', 'auto', 'none', 'auto'])
    const below = (selector: string) => styleOf(selector, 'border-bottom-color')
    expect(await below('[aria-selected=true]')).not.toBe(await below('[aria-selected=false]'))
    expect(await styleOf('tr[aria-current]', 'outline-style')).toBe('solid')
    expect(await styleOf('.tree-arrow', 'border-left-color')).not.toBe(await below('.tree-arrow'))
    await page.getByRole('link', { name: 'Agents and keys' }).click()
    await page.getByRole('tab', { name: 'Tenant' }).click()
    expect(await styleOf('.meter-bar', 'outline-style')).toBe('solid')
  }
  await chromium.visit(service.url, look, forced)
})
