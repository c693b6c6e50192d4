// Pages of the console before there is anything to show: what each is for, and the command that makes the first.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, signIn, themes, useService } from './support/console.ts'
import { open, visit } from './support/console-walk.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()
const service = useService()

const pages: [path: string, shown: string][] = [
  ['/console/approvals', 'Pay invoice 7?'],
  ['/console/effects', 'refund order-7'],
  ['/console/effects?status=policies', '2 approvals required'],
  ['/console/schedules', 'agent.example.com'],
  ['/console/dlq', 'card declined'],
  ['/console/audit', 'import.finished'],
  ['/console/kv', 'state'],
  ['/console/inboxes', 'github'],
  ['/console/rate-limits', 'crm.example.com'],
  ['/console/keys', 'worker-1'],
  ['/console/keys/approval-keys', 'Dana, on call'],
]

/** Without the agent that every tenant of these tests has. */
async function empty(): Promise<TestTenant> {
  const tenant = await service.signUp()
  await service.ask('DELETE', `/v1/agents/${tenant.agent_id}`, { key: tenant.admin_key })
  return tenant
}

async function run(script: string, tenant: TestTenant): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', AGENT_KEY: tenant.api_key, ADMIN_KEY: tenant.admin_key }
  const child = Bun.spawn(['bash', '-c', `${script} -sf`], { env, stdout: 'pipe', stderr: 'pipe' })
  const printed = await new Response(child.stdout).text()
  expect([await child.exited, printed]).toEqual([0, expect.stringMatching(/^{/)])
}

const first = (page: Page) => page.locator('.first')

describe('A page with nothing to show', () => {
  test.each(pages)('%s says what it is for, and its command makes the first', async (path, shown) => {
    const is_agents = path === '/console/keys'
    const tenant = is_agents ? await empty() : await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await visit(page, path)
      expect((await first(page).locator('p').nth(1).innerText()).length).toBeGreaterThan(50)
      await run(await first(page).locator('pre').innerText(), tenant)
      await visit(page, path)
      await page.locator('.split-list').getByText(shown).first().waitFor()
      expect(await first(page).count()).toBe(0)
    })
  })

  test.each([
    ['/console/schedules', 'No call is scheduled'],
    ['/console/approvals', 'Nothing waits for you'],
  ])('%s says no more than that when there are some of another status', async (path, title) => {
    const tenant = await service.signUp()
    const key = tenant.api_key
    const callback = { callback_url: 'https://agent.example.com/', callback_payload: 1 }
    const fire_at = new Date(service.clock.now() + 3_600_000).toISOString()
    const { id } = (await service.ask('POST', '/v1/schedules', { key, body: { ...callback, fire_at } })).body
    await service.ask('DELETE', `/v1/schedules/${id}`, { key })
    const question = { title: 't', prompt: 'p', callback_url: 'https://agent.example.com/' }
    const asked = (await service.ask('POST', '/v1/checkpoints', { key, body: question })).body
    const decided = { key: tenant.admin_key, body: {} }
    await service.ask('POST', `/v1/checkpoints/${asked.id}/approve`, decided)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await visit(page, path)
      await page.getByText(title).waitFor()
      expect(await first(page).count()).toBe(0)
    })
  })

  test.each(themes)('is accessible and fits a telephone in the %s theme', async (colorScheme) => {
    const tenant = await empty()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant)
        for (const [path] of pages) {
          await open(page, path) // on a page that has just been loaded axe-core takes three times as long
          await first(page).waitFor()
          expect([path, await accessibilityFaults(page), await overflow(page)]).toEqual([path, [], 0])
        }
      },
      { ...narrow, colorScheme },
    )
  })
})
