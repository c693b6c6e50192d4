// What tests of the console and of the approval page share.

import { afterAll, beforeAll, expect } from 'bun:test'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page, Request, Route } from 'playwright-core'
import { Waystation } from '../../sdk/src/index.ts'
import { databaseFolder } from './folders.ts'
import { cron_secret, TestService, type TestTenant } from './service.ts'

/** A phone held upright. */
export const narrow = { viewport: { width: 360, height: 740 } }

/** The browser notes every answer of 400 and more in its console. */
export function refusals(...statuses: number[]): RegExp[] {
  return statuses.map((status) => new RegExp(`^console: Failed to load resource: .* status of ${status} `))
}

/** The service's time becomes the browser's: pages show what is left until then. */
export function useRealTime(service: TestService): void {
  service.clock.jump(Date.now() - service.clock.now())
}

/** A service at the browser's time. On one engine: what the API answers on each of them its own tests say. */
export function useService(settings: Record<string, string> = {}): TestService {
  const folder = databaseFolder()
  const service = new TestService(settings)
  beforeAll(async () => {
    await service.start(`sqlite:${join(folder, 'test.db')}`)
    useRealTime(service)
  })
  afterAll(async () => {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return service
}

/** What agents and the clock do while somebody looks at a page. */
export function callsOf(service: TestService) {
  return {
    agentOf: ({ api_key }: TestTenant) => new Waystation({ url: service.url, key: api_key }),
    async tick(): Promise<void> {
      expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
    },
  }
}

/** The browser refuses its storage to the pages that follow, as it does where cookies are blocked. */
export async function refuseStorage(page: Page): Promise<void> {
  await page.addInitScript(`
    const get = () => { throw new DOMException('Access is denied for this document.', 'SecurityError') }
    for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get })
    window.BroadcastChannel = class { constructor() { get() } }`)
}

/** Every request of the page from now on. */
export function requestsOf(page: Page): Request[] {
  const requests: Request[] = []
  page.on('request', (request) => requests.push(request))
  return requests
}

/** Presses Tab until the focus is on what this name says, as somebody without a mouse would. */
export async function tabTo(page: Page, name: string, presses_max = 40): Promise<void> {
  for (let presses = 0; presses < presses_max; presses += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(`(() => {
      const { activeElement: element } = document
      const label = element.labels?.[0]?.textContent
      return (element.getAttribute('aria-label') ?? label ?? element.textContent ?? '').trim()
    })()`)
    if (focused === name) return
  }
  throw new Error(`Tab never reached "${name}"`)
}

/** Comes back to the tab: what follows by itself is asked for at once. */
export async function lookAgain(page: Page): Promise<void> {
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
}

/** Wider than the screen: then one has to scroll sideways. */
export function overflow(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

/** Signs in with the tenant's admin key, through the form, and waits for the page. */
export async function signIn(
  page: Page,
  { admin_key }: Pick<TestTenant, 'admin_key'>,
  path = '/console',
): Promise<void> {
  await page.goto(path)
  await page.getByLabel('Admin key').fill(admin_key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('#main h1').waitFor()
}

/** A duplicate of the tab: with an opener its storage is copied. */
export async function duplicateOf(page: Page): Promise<Page> {
  const [copied] = await Promise.all([
    page.context().waitForEvent('page'),
    page.evaluate(`void open('/console')`),
  ])
  return copied
}

/** The service does what is asked with this method; its answer comes once `release` is called. */
export async function heldAnswer(page: Page, method: string, url: string) {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route(url, async (route: Route) => {
    if (route.request().method() !== method) return route.continue()
    const response = await route.fetch()
    held.resolve()
    await released.promise
    return route.fulfill({ response })
  })
  return { held: held.promise, release: () => released.resolve() }
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** What axe-core finds wrong with the page as it stands: `rule: element`, empty when all is well. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) {
    await page.addInitScript(axe) // for the pages that follow: sending it takes as long as running it
    await page.evaluate(axe)
  }
  // What is right is not listed: that would take three times as long.
  return page.evaluate(`axe.run({ resultTypes: ['violations'], preload: false }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 160))))`)
}

export const themes = ['light', 'dark'] as const
