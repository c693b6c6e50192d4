// Lists with the open record beside them, or as a page of its own: where the eye, the focus and the list are.

import { describe, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, lookAgain, narrow, overflow, signIn, useService } from './support/console.ts'
import { loaded } from './support/console-walk.ts'
import { becomes, until } from './support/patience.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()
const service = useService()
const wide = { viewport: { width: 1_280, height: 800 } }

async function leave(tenant: TestTenant, error: string): Promise<string> {
  // Lists are in the order of time.
  service.clock.advance(1)
  const answer = await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body: { error, payload: 1 } })
  expect(answer.status).toBe(201)
  return answer.body.id
}

/** A tenant with so many dead letters; the rows of the list are longer than any window. */
async function withLetters(count: number, lines = 1): Promise<{ tenant: TestTenant; ids: string[] }> {
  const tenant = await service.signUp()
  const ids: string[] = []
  for (let i = 0; i < count; i += 1)
    ids.push(await leave(tenant, `failure number ${i}\n${'line\n'.repeat(lines)}`))
  return { tenant, ids }
}

const row = (page: Page, number: number) =>
  page.getByRole('link', { name: `failure number ${number}`, exact: true })
const record = (page: Page) => page.getByRole('region', { name: 'Open record' })
const focused = (page: Page) => page.evaluate('document.activeElement.textContent')
const top = (page: Page) => page.evaluate('Math.round(scrollY)')
const heard = (page: Page) => page.locator('.split > [role=status]').innerText()

const isFocused = (place: Locator) => place.evaluate((element) => element.matches(':focus'))

/** The part of the record that is within the window, from 0 to 1. */
async function seen(page: Page): Promise<number> {
  const box = (await record(page).boundingBox())!
  const height = page.viewportSize()!.height
  return (Math.min(height, box.y + box.height) - Math.max(0, box.y)) / box.height
}

async function isCut(page: Page): Promise<boolean> {
  return record(page).evaluate((place) => place.scrollHeight > place.clientHeight)
}

describe('Beside a long list', () => {
  test('the record opens where the row is, and neither the list nor the focus moves', async () => {
    const { tenant } = await withLetters(50, 40)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await row(page, 8).scrollIntoViewIfNeeded()
        const before = [await top(page), (await row(page, 8).boundingBox())!.y]
        expect(before[0]).toBeGreaterThan(400)
        await row(page, 8).click()
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        expect([await top(page), (await row(page, 8).boundingBox())!.y]).toEqual(before)
        expect([await seen(page), await focused(page)]).toEqual([1, 'failure number 8'])
        expect(await heard(page)).toBe('Opened: Dead letter, failure number 8.')
        expect(await page.title()).toBe('failure number 8 · Dead letters · Waystation')
        // However far the list is scrolled.
        for (const where of [0, 200, 1e6]) {
          await page.evaluate(`scrollTo(0, ${where})`)
          await page.evaluate('new Promise(requestAnimationFrame)')
          expect([where, await seen(page)]).toEqual([where, 1])
        }
        await page.evaluate('scrollTo(0, 0)')
        expect(await accessibilityFaults(page)).toEqual([])
        await page.keyboard.press('Escape')
        await record(page).waitFor({ state: 'detached' })
        expect([new URL(page.url()).pathname, await focused(page)]).toEqual([
          '/console/dlq',
          'failure number 8',
        ])
        expect(await page.title()).toBe('Dead letters · Waystation')
      },
      wide,
    )
  })

  test('a record that is higher than the window scrolls by itself, and its way out stays in view', async () => {
    const tenant = await service.signUp()
    await service.ask('PUT', '/v1/kv/state/large', {
      key: tenant.api_key,
      body: {
        value: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`member-${i}`, 'x '.repeat(190)])),
      },
    })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/kv/state/large')
        await page.locator('.tree-body').waitFor()
        await becomes(async () => [await seen(page), await isCut(page), await overflow(page)], [1, true, 0])
        await record(page).evaluate((place) => place.scrollTo(0, 1e6))
        await record(page).getByRole('link', { name: 'Close' }).click()
        await record(page).waitFor({ state: 'detached' })
        await becomes(
          async () => [new URL(page.url()).pathname, await focused(page)],
          ['/console/kv/state', 'large'],
        )
      },
      { viewport: { width: 1_280, height: 500 } },
    )
  })

  test('arrow keys move between rows, Enter opens one in place of the other, and "back" leads to the list', async () => {
    const { tenant } = await withLetters(5)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await row(page, 0).waitFor()
        const names = await page.locator('.table tbody a').allInnerTexts()
        await page.locator('.table tbody a').first().focus()
        await page.keyboard.press('ArrowUp')
        expect(await focused(page)).toBe(names[0])
        await page.keyboard.press('ArrowDown')
        await page.keyboard.press('Enter')
        await page.locator('.split > [role=status]', { hasText: names[1]! }).waitFor({ state: 'attached' })
        expect(await focused(page)).toBe(names[1])
        await page.keyboard.press('ArrowDown')
        await page.keyboard.press('Enter')
        await page.locator('.split > [role=status]', { hasText: names[2]! }).waitFor({ state: 'attached' })
        await page.goBack()
        await record(page).waitFor({ state: 'detached' })
        await becomes(
          async () => [new URL(page.url()).pathname, await focused(page)],
          ['/console/dlq', names[2]],
        )
      },
      wide,
    )
  })

  test('Escape in a field leaves the record open, with what was typed', async () => {
    const tenant = await service.signUp()
    const { body } = await service.ask('POST', '/v1/checkpoints', {
      key: tenant.api_key,
      body: { title: 'Pay?', callback_url: 'http://127.0.0.1:1/', timeout_seconds: 3_600 },
    })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/approvals/${body.id}`)
      await page.getByLabel('Reason').fill('not yet')
      await page.keyboard.press('Escape')
      expect(await page.getByLabel('Reason').inputValue()).toBe('not yet')
    })
  })

  test('rows that arrive move neither what is read nor the focus', async () => {
    const { tenant } = await withLetters(45)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await row(page, 3).click()
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        const before = (await row(page, 3).boundingBox())!.y
        await leave(tenant, 'a late one')
        await lookAgain(page)
        await page.getByRole('link', { name: 'a late one' }).waitFor()
        // A page scrolls by whole pixels, and rows may have half ones.
        const moved = (await row(page, 3).boundingBox())!.y - before
        expect([Math.abs(moved) < 1, await focused(page)]).toEqual([true, 'failure number 3'])
      },
      wide,
    )
  })

  test('a reload shows as many rows, at the same place, and the record', async () => {
    const { tenant } = await withLetters(70)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByRole('button', { name: 'Show more' }).click()
        await row(page, 10).scrollIntoViewIfNeeded()
        await row(page, 10).click()
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        const before = await top(page)
        expect(before).toBeGreaterThan(1_000)
        await until(async () => (await page.evaluate('history.state.top_px')) === before)
        await page.reload()
        await row(page, 10).waitFor()
        await becomes(() => top(page), before)
        await becomes(() => page.locator('.table tbody tr').count(), 70)
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
      },
      wide,
    )
  })
})

async function withEntries(count: number): Promise<TestTenant> {
  const tenant = await service.signUp()
  for (let i = 0; i < count; i += 1) {
    const body = { action: `step ${i}`, actor: 'somebody@example.com', workflow_id: `order-${i}` }
    await service.ask('POST', '/v1/audit', { key: tenant.api_key, body })
  }
  return tenant
}

describe('The audit log', () => {
  test('keeps its position in a list that scrolls by itself, with a record and over a reload', async () => {
    const tenant = await withEntries(150)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/audit')
        const list = page.getByRole('region', { name: 'Audit entries' })
        const top_px = () => list.evaluate((place) => place.scrollTop)
        await page.getByRole('link', { name: 'step 149', exact: true }).waitFor()
        await list.evaluate((place) => place.scrollTo(0, 1e6))
        await page.getByText('150 in all').waitFor()
        await list.evaluate((place) => place.scrollTo(0, 3_600))
        await page.getByRole('link', { name: 'step 45', exact: true }).click()
        await record(page).getByRole('heading', { name: 'step 45' }).waitFor()
        expect([await top_px(), await focused(page)]).toEqual([3_600, 'step 45'])
        await until(async () => (await page.evaluate('history.state.list_px')) === 3_600)
        await page.reload()
        await page.getByRole('link', { name: 'step 45', exact: true }).waitFor()
        await becomes(top_px, 3_600)
      },
      wide,
    )
  })

  test('has rows of two lines on a telephone, drawn as the page scrolls', async () => {
    const tenant = await withEntries(220)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/audit')
        const first = page.getByRole('row', { name: /^step 219 / })
        await first.waitFor()
        expect(
          (await first.innerText())
            .split('\n')
            .filter((text) => text !== '')
            .slice(0, 3),
        ).toEqual(['step 219', 'somebody@example.com', 'order-219'])
        expect([(await first.boundingBox())!.height, await overflow(page)]).toEqual([58, 0])
        // The next rows come once the end is seen, and make it another end.
        await until(async () => {
          await page.evaluate('scrollTo(0, 1e6)')
          return page.getByRole('link', { name: 'step 0', exact: true }).isVisible()
        })
        expect(await page.locator('.window tbody:not([aria-hidden]) tr').count()).toBeLessThan(120)
        expect(await accessibilityFaults(page)).toEqual([])
        // At the click, which brings the row to where it can be clicked.
        await page.evaluate(`addEventListener('click', () => (globalThis.clicked_px ??= scrollY), true)`)
        await page.getByRole('link', { name: 'step 3', exact: true }).click()
        await record(page).getByRole('heading', { name: 'step 3' }).waitFor()
        await page.getByRole('link', { name: 'Back to the list' }).click()
        await page.getByRole('link', { name: 'step 3', exact: true }).waitFor()
        await becomes(
          async () => [
            await focused(page),
            (await page.evaluate('Math.abs(scrollY - clicked_px)')) as number,
          ],
          ['step 3', 0],
        )
      },
      narrow,
    )
  })
})

describe('On a telephone', () => {
  const ways: [way: string, back: (page: Page) => Promise<unknown>][] = [
    ['its link', (page) => page.getByRole('link', { name: 'Back to the list' }).click()],
    ['Escape', (page) => page.keyboard.press('Escape')],
    ["the browser's button", (page) => page.goBack()],
  ]
  test.each(ways)('a record is a page of its own, and %s leads back to its row', async (_, back) => {
    const { tenant } = await withLetters(50, 60)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await row(page, 8).scrollIntoViewIfNeeded()
        const before = await top(page)
        expect(before).toBeGreaterThan(400)
        await row(page, 8).click()
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        expect([await row(page, 8).isVisible(), await page.getByRole('tab').first().isVisible()]).toEqual([
          false,
          false,
        ])
        expect([await top(page), await overflow(page), await heard(page)]).toEqual([
          0,
          0,
          'Opened: Dead letter, failure number 8.',
        ])
        await becomes(() => isFocused(record(page)), true)
        expect(await accessibilityFaults(page)).toEqual([])
        await back(page)
        await row(page, 8).waitFor()
        await becomes(
          async () => [await top(page), await focused(page), new URL(page.url()).pathname],
          [before, 'failure number 8', '/console/dlq'],
        )
      },
      narrow,
    )
  })

  test('a record that was opened by its address leads to its list, at its row', async () => {
    const { tenant, ids } = await withLetters(30)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/dlq/${ids[2]}?status=failed`)
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        await loaded(page)
        await page.getByRole('link', { name: 'Back to the list' }).click()
        await row(page, 2).waitFor()
        await becomes(
          async () => [page.url(), await focused(page)],
          [`${service.url}/console/dlq?status=failed`, 'failure number 2'],
        )
        const box = (await row(page, 2).boundingBox())!
        expect([box.y > 0, box.y < narrow.viewport.height]).toEqual([true, true])
      },
      narrow,
    )
  })

  test('a link to a record from another page gives it the focus', async () => {
    const { tenant } = await withLetters(1)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant)
        await row(page, 0).click()
        await record(page).getByRole('heading', { name: 'Dead letter' }).waitFor()
        await becomes(() => isFocused(record(page)), true)
      },
      narrow,
    )
  })
})

describe('The navigation', () => {
  const ask = (tenant: TestTenant, title: string) =>
    service.ask('POST', '/v1/checkpoints', {
      key: tenant.api_key,
      body: { title, callback_url: 'http://127.0.0.1:1/', timeout_seconds: 3_600 },
    })
  const numbers = (page: Page) =>
    page.getByRole('navigation', { name: 'Pages' }).locator('.waiting > :first-child').allInnerTexts()

  test('has the numbers of requests and dead letters that wait, in words for those who hear them', async () => {
    const { tenant, ids } = await withLetters(2)
    await ask(tenant, 'first')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      const link = page.getByRole('link', { name: 'Approvals', exact: true })
      await page.locator('.waiting').nth(1).waitFor()
      await becomes(() => numbers(page), ['1', '2'])
      // Growth is told once all numbers are known, those too that are 0.
      await loaded(page)
      const described = await link.getAttribute('aria-describedby')
      expect(await page.locator(`[id="${described}"]`).textContent()).toBe('11 to decide')
      const status = page.getByRole('navigation', { name: 'Pages' }).getByRole('status')
      expect(await status.textContent()).toBe('')
      expect(await accessibilityFaults(page)).toEqual([])
      await ask(tenant, 'second')
      await service.ask('POST', `/v1/dlq/${ids[0]}/resolve`, { key: tenant.api_key })
      await status.getByText('Approvals: 2 to decide.', { exact: true }).waitFor({ state: 'attached' })
      await becomes(() => numbers(page), ['2', '1'])
    })
  })

  test('says so at once when a request is decided here, and nothing of what does not wait', async () => {
    const tenant = await service.signUp()
    const { body } = await ask(tenant, 'only one')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/approvals/${body.id}`)
      await page.locator('.waiting').waitFor()
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.locator('.waiting').waitFor({ state: 'detached' })
    })
  })

  test('counts to 200, and says that there are more', async () => {
    const tenant = await service.signUp('pro')
    for (let i = 0; i < 201; i += 1) await ask(tenant, `request ${i}`)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await page.locator('.waiting').waitFor()
      await becomes(() => numbers(page), ['200+'])
    })
  })
})

test('A list that has become too long to follow what happens says so, and is loaded again by a button', async () => {
  const tenant = await service.signUp()
  const made: string[] = []
  for (let n = 0; n < 210; n += 1) {
    const body = { title: `Question ${n}`, callback_url: null }
    made.push((await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })).body.id)
  }
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/approvals')
    const rows = page.locator('.split-list tbody tr')
    const rests = page.getByText('So long a list no longer updates by itself')
    for (const shown of [50, 100, 150, 200]) {
      await becomes(() => rows.count(), shown)
      expect([shown, await rests.count()]).toEqual([shown, 0])
      await page.getByRole('button', { name: 'Show more' }).click()
    }
    await becomes(() => rows.count(), 210)
    await rests.waitFor()
    const newest = made.at(-1)!
    await service.ask('POST', `/v1/checkpoints/${newest}/reject`, { key: tenant.admin_key })
    await page.getByRole('button', { name: 'Reload the list' }).click()
    await becomes(() => rows.count(), 209)
    await page.getByRole('tab', { name: 'Rejected' }).click()
    await page.getByRole('link', { name: 'Question 209' }).waitFor()
    expect(await rests.count()).toBe(0)
  })
})
