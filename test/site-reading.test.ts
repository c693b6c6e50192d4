// The documentation in a real browser. `visit` throws at a breach of the policy, a request elsewhere, an error in the
// console or an exception.

import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  requestsOf,
  tabTo,
  themes,
  useService,
} from './support/console.ts'
import { becomes } from './support/patience.ts'

const chromium = useChromium()
const service = useService()
const docs = join(import.meta.dir, '..', 'docs')
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => (file === 'README.md' ? '/docs' : `/docs/${file.replace(/\.md$/, '')}`))
const wide = { viewport: { width: 1280, height: 800 } }
const missing = [/^console: Failed to load resource: .* status of 404 /]

/** Images come when they are near the window. What scrolls sideways takes the focus a frame after its size is known. */
const all_drawn = `(async () => {
  const images = [...document.images]
  for (const image of images) image.loading = 'eager'
  await Promise.all(images.map((image) => image.decode()))
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
  for (const animation of document.getAnimations()) animation.finish() // a change of the theme fades
})()`

/** The page as it is at this size and in this theme. */
async function faultsIn(page: Page, path: string, theme: (typeof themes)[number]): Promise<string[]> {
  await page.setViewportSize((theme === 'dark' ? narrow : wide).viewport)
  await page.emulateMedia({ colorScheme: theme })
  await page.evaluate(all_drawn)
  const faults = await accessibilityFaults(page)
  expect([path, theme, await overflow(page)]).toEqual([path, theme, 0])
  return faults.map((fault) => `${path} ${theme} ${fault}`)
}

describe('Every page of the documentation', () => {
  // Loaded once for both: axe-core takes twice as long on a page that has just been loaded.
  test('is accessible in both themes, and no wider than the window, wide or narrow', async () => {
    const look = async (page: Page) => {
      const faults: string[] = []
      for (const path of [...pages, '/docs/none']) {
        await page.goto(path)
        for (const theme of themes) faults.push(...(await faultsIn(page, path, theme)))
      }
      return faults
    }
    expect(await chromium.visit(service.url, look, { expected: missing })).toEqual([])
  }, 300_000)
})

describe('The search', () => {
  test('opens at /, is loaded then and only then, and leads to a section by keyboard alone', async () => {
    const seen = await chromium.visit(service.url, async (page) => {
      const requests = requestsOf(page)
      const searched = () => requests.filter((request) => request.url().endsWith('/docs/search.json')).length
      await page.goto('/docs/kv')
      const before = searched()
      await page.keyboard.press('/')
      const field = page.getByRole('combobox', { name: 'Search the documentation' })
      await field.waitFor()
      expect(await field.inputValue()).toBe('')
      await page.keyboard.type('VERSION_MISMATCH')
      const options = page.getByRole('option')
      await options.first().waitFor()
      const first = await options.first().textContent()
      const faults = await accessibilityFaults(page)
      const active = async () =>
        page.locator(`#${await field.getAttribute('aria-activedescendant')}`).textContent()
      await page.keyboard.press('ArrowDown')
      const second = await active()
      await page.keyboard.press('ArrowUp')
      expect(await active()).toBe(first)
      await page.keyboard.press('Enter')
      await page.waitForURL('**/docs/errors#version_mismatch')
      return { before, after: searched(), first, second, faults }
    })
    expect([seen.before, seen.after, seen.faults]).toEqual([0, 1, []])
    expect(seen.first).toContain('VERSION_MISMATCH')
    expect(seen.second).not.toBe(seen.first)
  })

  const words: [typed: string, address: RegExp][] = [
    ['dead letter', /\/docs\/dlq$/],
    ['ttl', /\/docs\/kv#/],
    ['idempotncy', /idempotency/],
    ['PUBLIC_URL', /\/docs\/configuration#public_url$/],
    ['postgres', /\/docs\/postgres$/],
  ]
  test('finds pages, fields, settings and words that are mistyped', async () => {
    const found = await chromium.visit(service.url, async (page) => {
      await page.goto('/docs')
      await page.getByRole('button', { name: 'Search' }).click()
      const first: string[] = []
      for (const [typed] of words) {
        await page.getByRole('combobox').fill(typed)
        await page
          .locator('mark', { hasText: new RegExp(typed.slice(0, 4), 'i') })
          .first()
          .waitFor()
        first.push(String(await page.getByRole('option').first().getAttribute('href')))
      }
      return first
    })
    for (const [at, [typed, address]] of words.entries()) {
      expect([typed, new URL(found[at]!, `${service.url}/docs`).href]).toEqual([
        typed,
        expect.stringMatching(address),
      ])
    }
  })

  test('takes any character', async () => {
    await chromium.visit(service.url, async (page) => {
      await page.goto('/docs')
      await page.keyboard.press('/')
      const status = page.locator('.search-status')
      await page.getByRole('combobox').fill('tenant')
      await page.getByRole('option').first().waitFor() // the index is there
      for (const typed of ['<key>', 'x=1', '?wait', '(403)', 'a|b', '\\', '.* url', '"$BASE"/v1', '1+']) {
        await page.getByRole('combobox').fill(typed)
        await page.evaluate(
          'new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))',
        )
        expect([typed, await status.textContent()]).toEqual([typed, expect.not.stringContaining('cannot')])
      }
    })
  })

  test('says that nothing was found, closes at Escape, and does not take / from a field', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/kv')
        await page.keyboard.press('Control+k')
        await page.keyboard.type('/xyzzyplugh')
        await page.getByText('Nothing found.').waitFor()
        expect(await page.getByRole('combobox').inputValue()).toBe('/xyzzyplugh')
        await page.keyboard.press('Escape')
        await page.getByRole('combobox').waitFor({ state: 'hidden' })
      },
      narrow,
    )
  })

  test('says when it cannot be loaded, and tries again', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.route('**/docs/search.json', (route) => route.abort(), { times: 1 })
        await page.goto('/docs')
        await page.keyboard.press('/')
        await page.getByText('The search cannot be loaded').waitFor()
        await page.keyboard.type('tenant')
        await page.getByRole('option').first().waitFor()
      },
      { expected: [/^console: Failed to load resource: net::ERR_FAILED/] },
    )
  })
})

describe('A page', () => {
  test('shares the theme with the console', async () => {
    const colors = await chromium.visit(
      service.url,
      async (page) => {
        const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
        await page.goto('/docs')
        const followed = await background()
        await page.getByRole('button', { name: 'Dark' }).click()
        const chosen = await background()
        await page.goto('/console')
        await page.getByLabel('Admin key').waitFor()
        const console_has = await background()
        await page.goto('/docs/reference')
        await page.locator('.opblock').first().waitFor()
        const reference_is_dark = await page.evaluate(
          "document.documentElement.classList.contains('dark-mode')",
        )
        await page.goto('/docs/kv')
        const pressed = await page.getByRole('button', { name: 'Dark' }).getAttribute('aria-pressed')
        return { followed, chosen, console_has, reference_is_dark, again: await background(), pressed }
      },
      { colorScheme: 'light' },
    )
    const dark = 'rgb(14, 15, 18)'
    expect(colors).toEqual({
      ...{ followed: 'rgb(250, 250, 251)', chosen: dark, console_has: dark, again: dark },
      ...{ reference_is_dark: true, pressed: 'true' },
    })
  })

  test('copies a block as it is written, and the link of a heading', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/kv')
        const block = page.locator('.code-block').first()
        await block.hover()
        await block.getByRole('button', { name: 'Copy the code' }).click()
        await page.getByText('Copied.', { exact: true }).waitFor({ state: 'attached' })
        const read = () => page.evaluate('navigator.clipboard.readText()')
        expect(await read()).toBe((await block.locator('code').textContent())!.trimEnd())
        await page.locator('h2#names').hover()
        await page.getByRole('link', { name: 'Link to "Names"' }).click()
        await page.getByText('Copied the link.').waitFor({ state: 'attached' })
        expect([await read(), page.url()]).toEqual(Array(2).fill(`${service.url}/docs/kv#names`))
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    )
  })

  test('marks the section that is read, beside the page', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/kv#delete')
        await becomes(() => page.locator('.contents [aria-current]').allTextContents(), ['Delete'])
      },
      wide,
    )
  })

  test('has its menu and its table of contents behind buttons on a telephone', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/kv')
        const nav = page.getByRole('navigation', { name: 'Documentation' })
        expect(await nav.isVisible()).toBe(false)
        await page.getByRole('button', { name: 'Menu' }).click()
        expect([await nav.isVisible(), await overflow(page)]).toEqual([true, 0])
        expect(await accessibilityFaults(page)).toEqual([])
        await page.keyboard.press('Escape')
        expect(await nav.isVisible()).toBe(false)
        await page.getByRole('button', { name: 'Menu' }).click()
        await nav.getByRole('link', { name: 'Agents' }).click()
        await page.waitForURL('**/docs/agents')
        await page.getByText('On this page').click()
        await page.getByRole('navigation', { name: 'On this page' }).getByRole('link').last().click()
        await page.waitForURL(/#./)
      },
      narrow,
    )
  })

  test('can be skipped to, and scrolled sideways where it is wide, by keyboard', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/limits')
        await tabTo(page, 'Skip to the page', 1)
        await page.keyboard.press('Enter')
        await becomes(() => page.evaluate('document.activeElement.id'), 'main')
        const table = page.locator('.scroller').first()
        await table.focus()
        const left = () => table.evaluate((element) => element.scrollLeft)
        expect(await left()).toBe(0)
        await page.keyboard.press('ArrowRight')
        await becomes(async () => (await left()) > 0, true)
      },
      narrow,
    )
  })

  test('is whole without a script: text, navigation, table of contents', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/kv')
        expect(await page.getByRole('navigation', { name: 'Documentation' }).isVisible()).toBe(true)
        expect(await page.getByRole('heading', { name: 'Key-value store' }).isVisible()).toBe(true)
        expect(await page.getByRole('button').count()).toBe(0)
        await page.getByText('On this page').click()
        expect(await page.getByRole('navigation', { name: 'On this page' }).isVisible()).toBe(true)
      },
      { ...narrow, javaScriptEnabled: false },
    )
  })

  test('leads on from addresses of operations of when the reference was at /docs', async () => {
    await chromium.visit(service.url, async (page) => {
      await page.goto('/docs#/Key-value%20store/getValue')
      await page.waitForURL('**/docs/reference#/Key-value%20store/getValue')
      await page.locator('.opblock').first().waitFor()
    })
  })

  test('is printed as its text alone', async () => {
    await chromium.visit(service.url, async (page) => {
      await page.goto('/docs/kv')
      await page.getByRole('button', { name: 'Dark' }).click()
      await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
      expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(26, 28, 34)')
      const shown = await page.evaluate(`['.side', '.contents', '.foot', '.article'].map((name) =>
        getComputedStyle(document.querySelector(name)).display !== 'none')`)
      expect(shown).toEqual([false, false, false, true])
    })
  })
})
