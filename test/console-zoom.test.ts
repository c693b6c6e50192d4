// The console in a small window: on a telephone, and on a screen of 1,280 px at 400 %, where WCAG 2.2 wants no sideways scrolling
// (1.4.10), the focus in view (2.4.11) and faults that are seen (3.3.1).

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, narrow, overflow, signIn, useService } from './support/console.ts'
import { loaded } from './support/console-walk.ts'

const chromium = useChromium()
const service = useService()
const { agentOf } = callsOf(service)

const zoomed = { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 }
const windows = [
  { at: 'on a telephone', options: narrow },
  { at: 'at 400 %', options: zoomed },
]

/** What covers the whole of the element with the focus; null where some of it is in view. */
const covering = `(() => {
  const element = document.activeElement
  const { left, top, width, height } = element.getBoundingClientRect()
  const seen = [0.1, 0.5, 0.9].flatMap((across) => [0.1, 0.5, 0.9].map((down) =>
    document.elementFromPoint(left + width * across, top + height * down)))
  if (seen.some((one) => one !== null && (element.contains(one) || one.contains(element)))) return null
  return (element.getAttribute('aria-label') ?? element.textContent).trim() + ' below ' + seen[4]?.className
})()`

/** Goes back through the page from its end, as Shift and Tab do. */
async function coveredOnTheWayBack(page: Page, presses: number): Promise<string[]> {
  const covered: string[] = []
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  for (let press = 0; press < presses; press += 1) {
    await page.keyboard.press('Shift+Tab')
    const by = await page.evaluate<string | null>(covering)
    if (by !== null) covered.push(by)
  }
  return covered
}

describe.each(windows)('The focus $at', ({ options }) => {
  test.each(['/console/approvals', '/console/dlq'])('is in view, also on the way back: %s', async (path) => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    for (let i = 0; i < 24; i += 1) {
      await agent.dlq.create({ payload: i, error: `card ${i} declined` })
      await agent.checkpoints.create({ title: `Refund order ${i}?`, callback_url: null })
    }
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, path)
        await loaded(page)
        expect(await coveredOnTheWayBack(page, 48)).toEqual([])
        expect(await overflow(page)).toBe(0)
      },
      options,
    )
  })
})

test('The number of chosen dead letters stays in view on a telephone, below the head of the page', async () => {
  const tenant = await service.signUp()
  for (let i = 0; i < 30; i += 1)
    await agentOf(tenant).dlq.create({ payload: i, error: `card ${i} declined` })
  await chromium.visit(
    service.url,
    async (page) => {
      await signIn(page, tenant, '/console/dlq')
      await page.getByRole('checkbox', { name: 'Select all 30 that are shown' }).check()
      await page.evaluate('scrollTo(0, 900)')
      const clear = page.getByRole('button', { name: 'Clear' })
      await clear.focus()
      expect(await page.evaluate<string | null>(covering)).toBeNull()
      await page.getByText('30 selected').click({ trial: true })
    },
    narrow,
  )
})
