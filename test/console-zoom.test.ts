// The console in a small window: on a telephone, and on a screen of 1,280 px at 400 %, where WCAG 2.2 wants no sideways scrolling
// (1.4.10), the focus in view (2.4.11) and faults that are seen (3.3.1).

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, narrow, overflow, refusals, signIn, useService } from './support/console.ts'
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

/** True once the element is in the window as a whole, or as much of it as the window takes. */
const isSeen = `(element) => {
  const { top, bottom } = element.getBoundingClientRect()
  return top >= 0 && (bottom <= innerHeight || top <= 24)
}`

describe('At 400 % a refusal comes into view', () => {
  const refused = { error: { code: 'FORBIDDEN', message: 'Not with this key.', details: {} } }

  test('above a question', async () => {
    const tenant = await service.signUp()
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/keys/agents/agent-one')
      await page.route('**/pause', (route) => route.fulfill({ status: 403, json: refused }))
      await page.getByRole('button', { name: 'Pause…' }).click()
      await page.getByRole('button', { name: 'Yes, pause' }).click()
      await page.getByRole('dialog').getByRole('alert').waitFor()
      expect(await page.evaluate(`(${isSeen})(document.querySelector('dialog [role=alert]'))`)).toBe(true)
    }
    await chromium.visit(service.url, look, { ...zoomed, expected: refusals(403) })
  })

  test('at the field of a form, which has the focus', async () => {
    const tenant = await service.signUp()
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/keys')
      await page.getByRole('button', { name: 'Create an agent…' }).click()
      const name = page.getByRole('dialog').getByLabel('Name')
      await name.fill('agent-one')
      await page.getByRole('button', { name: 'Create', exact: true }).click()
      await page.locator('[aria-invalid=true]').waitFor()
      expect(await name.evaluate('document.activeElement.labels[0].textContent')).toBe('Name')
    }
    await chromium.visit(service.url, look, { ...zoomed, expected: refusals(409) })
  })

  test('at a field that was checked before anything was sent', async () => {
    const tenant = await service.signUp()
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/effects?status=policies')
      await page.getByRole('button', { name: 'Set a policy…' }).click()
      for (let times = 0; times < 2; times += 1) {
        await page.getByRole('button', { name: 'Set the policy' }).click()
        await page.locator('[aria-invalid=true]').waitFor()
        const label = await page.evaluate<string>('document.activeElement.labels?.[0]?.textContent')
        expect(label).toBe('Type of effects')
      }
    }
    await chromium.visit(service.url, look, zoomed)
  })
})
