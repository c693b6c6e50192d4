// `npm run screenshots [FOLDER]`: every page in both themes, at the width of a telephone and of a screen, with the life
// of a small company in it. The files are for looking at; nothing is compared.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openChromium } from '../test/support/chromium.ts'
import { signIn, themes } from '../test/support/console.ts'
import { liveAnHour } from '../test/support/console-seed.ts'
import { addressesOf, visit } from '../test/support/console-walk.ts'
import { TestService } from '../test/support/service.ts'

const folder = process.argv[2] ?? '.screenshots'
const widths = [360, 1_280]
const height = 800

const data = mkdtempSync(join(tmpdir(), 'waystation-screenshots-'))
const service = new TestService()
await service.start(`sqlite:${join(data, 'screenshots.db')}`)
const chromium = await openChromium()
try {
  mkdirSync(folder, { recursive: true })
  const company = await liveAnHour(service, { name: 'Northwind Robotics', plan: 'free' })
  const addresses = await chromium.visit(service.url, async (page) => {
    await signIn(page, company)
    return addressesOf(page)
  })
  for (const colorScheme of themes) {
    for (const width of widths) {
      const look = async (page: Page) => {
        const keep = async (name: string) => {
          // As high as the page: what keeps to the screen, such as the navigation at the side, then goes along.
          const whole = (await page.evaluate('document.documentElement.scrollHeight')) as number
          if (width > 720) await page.setViewportSize({ width, height: Math.max(height, whole) })
          await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`), fullPage: true })
          await page.setViewportSize({ width, height })
        }
        await page.goto(company.approval_url)
        await page.getByRole('button', { name: 'Approve…' }).waitFor()
        await keep('approve')
        await page.goto('/console')
        await page.getByLabel('Admin key').waitFor()
        await keep('sign-in')
        await signIn(page, company)
        for (const address of addresses) {
          await visit(page, address)
          await keep(nameOf(address))
        }
      }
      await chromium.visit(service.url, look, { viewport: { width, height }, colorScheme })
    }
  }
} finally {
  await chromium.close()
  await service.stop()
  rmSync(data, { recursive: true, force: true })
}

/** `/console/dlq/dlq_01?status=failed` is `dlq-open-failed`. */
function nameOf(address: string): string {
  const { pathname, searchParams } = new URL(address, service.url)
  const [, , page = 'overview', ...open] = pathname.split('/')
  const query = [...searchParams].map(([name, value]) => (name === 'status' ? value : name))
  return [page, ...open.map((part) => (/_\w{20,}/.test(part) ? 'open' : part)), ...query].join('-')
}
