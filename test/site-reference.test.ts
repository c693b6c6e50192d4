// The API reference in a real browser: all of it is drawn, from this origin alone, within its policy. `visit` throws
// at a breach of the policy, a request elsewhere, an error in the console or an exception.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { routes } from '../src/features.ts'
import { useChromium } from './support/chromium.ts'
import { refuseStorage } from './support/console.ts'
import { databaseFolder } from './support/folders.ts'
import { TestService } from './support/service.ts'

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const chromium = useChromium()

describe('The API reference', () => {
  // The page is the same on both engines.
  const service = new TestService()
  service.over_http = true
  const folder = databaseFolder()
  beforeAll(async () => {
    await service.start(`sqlite:${join(folder, 'test.db')}`)
  })
  afterAll(async () => {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('has the summary of every operation', async () => {
    const { shown, answered } = await chromium.visit(service.url, async (page) => {
      const document = await page.goto('/docs/reference')
      const summaries = page.locator('.opblock-summary-description')
      await summaries.nth(routes.length - 1).waitFor()
      return { shown: await summaries.allTextContents(), answered: document!.headers() }
    })
    expect(shown.toSorted()).toEqual(routes.map(({ route }) => route.summary).toSorted())
    expect(answered['content-security-policy']).toBe(policy)
    expect(answered['referrer-policy']).toBe('no-referrer')
  })

  test('is drawn where the browser refuses its storage', async () => {
    await chromium.visit(service.url, async (page) => {
      await refuseStorage(page)
      await page.goto('/docs/reference')
      await page.locator('.opblock-summary-description').first().waitFor()
    })
  })

  test('takes the security schemes as they are, because they refer to nothing', async () => {
    const { securitySchemes } = (await service.ask('GET', '/openapi.json')).body.components
    expect(Object.keys(securitySchemes).length).toBeGreaterThan(3)
    expect(JSON.stringify(securitySchemes)).not.toContain('$ref')
  })

  test('tries a call out, with a key that is given there and not kept', async () => {
    const { agent_id, api_key } = await service.signUp()
    const put = { key: api_key, body: { value: 'from the store' } }
    expect((await service.ask('PUT', '/v1/kv/state/seen', put)).status).toBe(200)
    const { answer, kept } = await chromium.visit(service.url, async (page) => {
      await page.goto('/docs/reference')
      await page.locator('.auth-wrapper .authorize').click()
      const bearer = page.locator('.auth-container', { hasText: 'Any kind of key' })
      await bearer.locator('input').fill(api_key)
      await bearer.locator('button.authorize').click()
      await page.locator('.close-modal').click()

      const operation = page.locator('#operations-Key-value_store-getValue')
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('tr[data-param-name="namespace"] input').fill('state')
      await operation.locator('tr[data-param-name="key"] input').fill('seen')
      await operation.locator('button.execute').click()
      const body = operation.locator('.live-responses-table .response-col_description code').first()
      await body.waitFor()
      return {
        answer: await body.textContent(),
        kept: await page.evaluate(
          'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
        ),
      }
    })
    expect(answer).toContain('"from the store"')
    expect(kept).toBe('[{},{},""]')
    expect(agent_id).toBe('agent-one')
  })

  const looks: [scheme: 'light' | 'dark', first: number, second: number, background: string][] = [
    ['light', 1280, 360, 'rgba(0, 0, 0, 0)'],
    ['dark', 360, 1280, 'rgb(28, 32, 34)'],
  ]
  // Drawing it takes seconds: it is drawn once and then looked at in windows of both widths.
  test.each(looks)(
    'is %s on a window of %d and of %d pixels, and no wider than it',
    async (scheme, first, second, background) => {
      const height = 800
      const look = '[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]'
      const seen = await chromium.visit(
        service.url,
        async (page) => {
          await page.goto('/docs/reference')
          const operation = page.locator('.opblock', { hasText: 'Check that the process answers' })
          await operation.locator('.opblock-summary-control').click()
          await operation.locator('.responses-table').first().waitFor()
          const at_first = await page.evaluate(look)
          await page.setViewportSize({ width: second, height })
          return [at_first, await page.evaluate(look)]
        },
        { colorScheme: scheme, viewport: { width: first, height } },
      )
      expect(seen).toEqual([
        [first, background],
        [second, background],
      ])
    },
  )

  test('lists the pages, each of which opens', async () => {
    const pages = await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/docs/reference')
        return page
          .locator('.pages a')
          .evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href))
      },
      { javaScriptEnabled: false }, // the list is there before the reference is drawn, which takes seconds
    )
    expect(pages).toContain(`${service.url}/docs/errors`)
    expect(pages).toContain(`${service.url}/llms.txt`)
    for (const page of pages) expect([page, (await fetch(page)).status]).toEqual([page, 200])
  })
})
