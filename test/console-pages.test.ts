// What holds for every page of the console, with data and without. On SQLite: pages ask the API alone, which answers the
// same on both engines.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, refusals, signIn, themes } from './support/console.ts'
import { type Company, liveAnHour } from './support/console-seed.ts'
import { addressesOf, entries, loaded, open, visit } from './support/console-walk.ts'
import { databaseFolder } from './support/folders.ts'
import { TestService, type TestTenant } from './support/service.ts'

const chromium = useChromium()
const folder = databaseFolder()
const service = new TestService()
let company: Company
let nobody: TestTenant
/** With data: one of each kind. */
let addresses: string[]

beforeAll(async () => {
  await service.start(`sqlite:${join(folder, 'test.db')}`)
  company = await liveAnHour(service, { name: 'Northwind Robotics' })
  nobody = await service.signUp('pro')
  addresses = await chromium.visit(service.url, async (page) => {
    await signIn(page, company)
    return addressesOf(page)
  })
}, 300_000)
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** From the first picture on; what a hand moved does not count. */
const note_shifts = `window.shifts = []
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput) shifts.push(shift)
}).observe({ type: 'layout-shift', buffered: true })`

/** Of the screen, moved through all of it: a line that is put in below a list is less than this, a list is more. */
const shift_max = 0.03

/** What moved, and how far, when it was more than nothing. */
const shifts_seen = `(() => {
  if (shifts.reduce((sum, { value }) => sum + value, 0) <= ${shift_max}) return []
  return shifts.map(({ value, sources }) =>
    value.toFixed(3) + ' ' + sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? node?.nodeName).join(' and '))
})()`

interface Seen {
  address: string
  accessibility: string[]
  overflow: unknown
  shifts: unknown
}

/**
 * Loads each address to see what moves meanwhile, then goes to each within the page, where axe-core is warm: on a page
 * that has just been loaded it takes three times as long.
 */
async function looked(page: Page, addresses: readonly string[]): Promise<Seen[]> {
  await page.addInitScript(note_shifts)
  const loaded: Omit<Seen, 'accessibility'>[] = []
  for (const address of addresses) {
    await visit(page, address)
    loaded.push({ address, overflow: await overflow(page), shifts: await page.evaluate(shifts_seen) })
  }
  const seen: Seen[] = []
  for (const one of loaded) {
    await open(page, one.address)
    seen.push({ ...one, accessibility: await accessibilityFaults(page) })
  }
  return seen
}

function flawless(address: string): Seen {
  return { address, accessibility: [], overflow: 0, shifts: [] }
}

const wide = { viewport: { width: 1_280, height: 800 } }

describe('Every page', () => {
  test('is found by walking: each of the navigation, and for each pattern with parts one that has them', () => {
    const paths = addresses.map((address) => address.replace(/\?.*/, ''))
    for (const { pattern, path } of entries()) {
      expect(paths).toContain(path)
      const deepest = Math.max(
        ...paths.filter((one) => one.startsWith(path)).map((one) => one.split('/').length),
      )
      expect([pattern, deepest]).toEqual([pattern, path === '/console' ? deepest : pattern.split('/').length])
    }
  })

  test('is in the navigation in the order of the list', async () => {
    await chromium.visit(service.url, async (page) => {
      await signIn(page, company)
      const titles = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
      expect(titles).toEqual(entries().map(({ title }) => title))
    })
  })

  test('is accessible, fits and stays where it is while it loads: wide and light, narrow and dark', async () => {
    const look = (options: object) =>
      chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, company)
          return looked(page, addresses)
        },
        options,
      )
    const [light, dark] = await Promise.all([
      look({ ...wide, colorScheme: 'light' }),
      look({ ...narrow, colorScheme: 'dark' }),
    ])
    expect({ light, dark }).toEqual({ light: addresses.map(flawless), dark: addresses.map(flawless) })
  }, 300_000)

  test.each(themes)('is the same while there is nothing to show, in the %s theme', async (colorScheme) => {
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, nobody)
        const paths = entries().map(({ path }) => path)
        expect(await looked(page, paths)).toEqual(paths.map(flawless))
      },
      { ...narrow, colorScheme },
    )
  })

  describe('is used by keyboard', () => {
    test('with everything that can be done within reach of Tab, and the focus always seen', async () => {
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, company)
          for (const address of addresses) {
            await open(page, address)
            expect({ address, ...(await tabbed(page)) }).toEqual({ address, missed: [], unseen: [] })
          }
        },
        wide,
      )
    }, 300_000)

    test('with a second look that takes the focus, and returns it', async () => {
      await chromium.visit(service.url, async (page) => {
        await signIn(page, company)
        let looks = 0
        for (const address of addresses) {
          await open(page, address)
          const buttons = page.locator('#main button').filter({ hasText: /…$/ })
          for (let i = 0; i < (await buttons.count()); i += 1) {
            await buttons.nth(i).focus()
            await page.keyboard.press('Enter')
            await page.locator('dialog[open]').waitFor()
            expect([
              address,
              await page.evaluate(`document.activeElement.closest('dialog') !== null`),
            ]).toEqual([address, true])
            await page.keyboard.press('Escape')
            await page.locator('dialog[open]').waitFor({ state: 'detached' })
            expect([address, await buttons.nth(i).evaluate((button) => button.matches(':focus'))]).toEqual([
              address,
              true,
            ])
            looks += 1
          }
        }
        expect(looks).toBeGreaterThan(1)
      })
    }, 300_000)

    test('with the focus somewhere, after what had it is gone for good', async () => {
      const own = await liveAnHour(service, { name: 'Southwind Robotics' })
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, own)
          const done: string[] = []
          for (const address of await addressesOf(page)) {
            await open(page, address)
            const button = page
              .locator('#main button:enabled')
              .filter({ hasText: /^(Delete|Reject|Reset|Revoke)…$/ })
              .first()
            // What another address did may have ended what this one shows.
            if ((await button.count()) === 0) continue
            const verb = await button.innerText()
            // As somebody would: of two quick presses of Enter alone, the second does not count.
            await page.keyboard.press('Tab')
            await button.press('Enter')
            // Some changes cannot be confirmed before it is known whose they are.
            const confirm = page.locator('dialog[open] .dialog-buttons > .button:enabled')
            await confirm.waitFor()
            await page.keyboard.press('Tab')
            await confirm.press('Enter')
            await page.locator('dialog[open]').waitFor({ state: 'detached' })
            await loaded(page)
            const focused = await page.evaluate('document.activeElement.localName')
            done.push(`${verb} ${focused === 'body' ? `${address} lost the focus` : 'kept it'}`)
          }
          expect(new Set(done)).toEqual(
            new Set(['Delete… kept it', 'Reject… kept it', 'Reset… kept it', 'Revoke… kept it']),
          )
        },
        { expected: refusals(404) },
      )
    }, 300_000)
  })
})

/** Presses Tab from the beginning to the end of the page. */
async function tabbed(page: Page): Promise<{ missed: string[]; unseen: string[] }> {
  await page.evaluate(start_tabs)
  // Fields of a time have a stop for each of their parts, and long lists draw rows as the focus comes to them.
  const most = 2 * ((await page.evaluate('wanted.size')) as number) + 40
  for (let presses = 0; presses < most && (await page.evaluate('wanted.size')) !== 0; presses += 10) {
    // Sent together: each is a keystroke of its own, but the page is not drawn and looked at between them.
    await Promise.all(Array.from({ length: 10 }, () => page.keyboard.press('Tab')))
  }
  return page.evaluate(
    '({ missed: [...wanted].filter(({ isConnected }) => isConnected).map(nameOf), unseen })',
  )
}

/** Notes where the focus goes as it goes: `wanted` are those where it has not been, `unseen` where nothing shows it. */
const start_tabs = `
window.nameOf = (element) => element.outerHTML.slice(0, 160)
window.unseen = []
window.wanted = new Set([...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
  (element) => element.tabIndex >= 0 && !element.disabled && element.checkVisibility({ visibilityProperty: true })))
if (!window.following) {
  window.following = true
  document.addEventListener('focusin', ({ target }) => {
    wanted.delete(target)
    if (target === document.body) return
    const { outlineStyle, outlineWidth } = getComputedStyle(target)
    const { bottom, top, right, left } = target.getBoundingClientRect()
    const on_screen = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth
    if (outlineStyle === 'none' || parseFloat(outlineWidth) < 2 || !on_screen) unseen.push(nameOf(target))
  })
}
// Tab goes on from where the focus was last: here that is before everything.
document.body.tabIndex = -1
document.body.focus()
document.body.removeAttribute('tabindex')
`
