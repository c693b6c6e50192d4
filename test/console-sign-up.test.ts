// The way in by browser: from the address of the service to a tenant, an agent and its first call, without a terminal.

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  requestsOf,
  tabTo,
  themes,
  useService,
} from './support/console.ts'
import { becomes } from './support/patience.ts'

const chromium = useChromium()
const service = useService()
const sdk = new URL('../sdk/src/index.ts', import.meta.url).pathname

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor()
const newName = () => `t-${crypto.randomUUID().slice(0, 13)}`
const secretsOn = (page: Page) => page.locator('.secret code').allInnerTexts()
const snippet = (page: Page) => page.locator('#snippet pre').innerText()

/** Opens the form from the address of the service alone. */
async function openForm(page: Page): Promise<void> {
  await page.goto('/')
  await page.getByRole('link', { name: 'Create a tenant' }).click()
  await heading(page, 'Create a tenant')
}

/** Creates a tenant through the form, and stays where its secrets are shown. */
async function signUp(
  page: Page,
  name = newName(),
  plan = 'free',
): Promise<[admin_key: string, secret: string]> {
  await openForm(page)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
  await page.getByRole('radio', { name: plan, exact: true }).check()
  await press(page, 'Create the tenant')
  await heading(page, 'Save the keys of your tenant')
  const [admin_key, secret] = await secretsOn(page)
  return [admin_key!, secret!]
}

async function tenantOf(key: string) {
  return (await service.ask('GET', '/v1/tenants/me', { key })).body
}

/** Everything in which a page could keep something, but the session. */
function kept(page: Page): Promise<string> {
  return page.evaluate(`JSON.stringify([
    document.documentElement.outerHTML, { ...localStorage }, history.state, location.href, document.cookie,
  ])`)
}

async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [printed, complained, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${code}: ${complained}`)
  return printed
}

describe('From the address of the service', () => {
  test('a person creates a tenant and an agent, whose snippets make a call as they stand', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waystation-snippets-'))
    const name = newName()
    try {
      await chromium.visit(service.url, async (page) => {
        const requests = requestsOf(page)
        const [admin_key, signing_secret] = await signUp(page, name, 'unlimited')
        expect(admin_key).toMatch(/^svc_adm_\w{38}$/)
        expect(signing_secret).toStartWith('whsec_')
        expect(await tenantOf(admin_key)).toMatchObject({
          name,
          plan: 'unlimited',
          owner_email: 'owner@example.com',
        })
        expect(await page.locator('.notice').innerText()).toContain('shown once')
        await press(page, 'I have saved both')
        await page.getByLabel('Name').fill('No Good')
        await press(page, 'Create the agent')
        await page.getByText('3 to 32 lowercase letters').waitFor()
        await page.getByLabel('Name').fill('helper-1')
        await page.keyboard.press('Enter')
        await heading(page, 'Make the first call')
        const [key] = await secretsOn(page)
        expect(key).toStartWith('svc_agt_')

        expect(await run(['bash', '-c', await snippet(page)], folder)).toContain(
          '"value":{"from": "helper-1"}',
        )
        await page.getByRole('tab', { name: 'TypeScript' }).click()
        const program = (await snippet(page)).replace("from 'waystation'", `from ${JSON.stringify(sdk)}`)
        writeFileSync(join(folder, 'first.ts'), program)
        expect(await run([process.execPath, 'first.ts'], folder)).toContain('helper-1')
        await page.getByRole('tab', { name: 'MCP' }).click()
        const { type, url, headers } = JSON.parse(await snippet(page)).mcpServers.waystation
        expect([type, url]).toEqual(['http', `${service.url}/mcp`])
        const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
        const listed = await service.ask('POST', new URL(url).pathname, { headers, body })
        expect([listed.status, listed.body.result.tools.length > 10]).toEqual([200, true])

        await press(page, 'Open the console')
        await heading(page, 'Overview')
        expect(new URL(page.url()).pathname).toBe('/console')
        const left = await kept(page)
        for (const secret of [admin_key, signing_secret, key!]) expect(left).not.toContain(secret)
        expect(requests.filter((request) => request.url().includes('svc_'))).toEqual([])
        await page.getByRole('link', { name: 'Agents and keys' }).click()
        await page.getByRole('link', { name: 'helper-1' }).waitFor()
      })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 300_000)

  test('a new tenant is on the default plan, and the page says what each plan holds', async () => {
    await chromium.visit(service.url, async (page) => {
      await openForm(page)
      const plans = await page.locator('.plan').allInnerTexts()
      expect(plans.map((text) => text.split('\n')[0])).toEqual(['free', 'pro', 'unlimited'])
      expect(plans[0]).toContain('500 calls of /api a month, 25 agents')
      expect(plans[1]).toContain('unlimited calls of /api a month, 500 agents')
      expect(plans[2]).toContain('No quotas')
      await page.getByLabel('Name').fill(newName())
      await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
      await press(page, 'Create the tenant')
      await heading(page, 'Save the keys of your tenant')
      expect((await tenantOf((await secretsOn(page))[0]!)).plan).toBe('free')
      await press(page, 'I have saved both')
      await press(page, 'Skip, open the console')
      await heading(page, 'Overview')
    })
  })

  test('what is wrong is said at its field, and the next try goes through', async () => {
    const { name } = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await openForm(page)
        await press(page, 'Create the tenant')
        await page.getByText('Enter at least 3 characters.').waitFor()
        await page.getByText('Enter an e-mail address.').waitFor()
        await page.getByLabel('Name').fill(name)
        await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
        await press(page, 'Create the tenant')
        await page.getByText('There is a tenant of that name.').waitFor()
        await page.getByLabel('Name').fill(newName())
        await press(page, 'Create the tenant')
        await heading(page, 'Save the keys of your tenant')
      },
      { expected: refusals(409) },
    )
  })

  test('a plan that is no longer open is said beside the plans', async () => {
    await chromium.visit(
      service.url,
      async (page) => {
        await page.route('**/v1/tenants', (route) => {
          const body = { ...route.request().postDataJSON(), plan: 'gone' }
          return route.continue({ postData: JSON.stringify(body) })
        })
        await openForm(page)
        await page.getByLabel('Name').fill(newName())
        await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
        await press(page, 'Create the tenant')
        await page.getByText('must be equal to one of the allowed values (free, pro, unlimited)').waitFor()
      },
      { expected: refusals(400) },
    )
  })

  test('a lost answer makes no second tenant: the next try shows the keys of the first', async () => {
    const name = newName()
    await chromium.visit(
      service.url,
      async (page) => {
        let tries = 0
        await page.route('**/v1/tenants', async (route) => {
          tries += 1
          if (tries > 1) return route.continue()
          await route.fetch()
          return route.abort()
        })
        await openForm(page)
        await page.getByLabel('Name').fill(name)
        await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
        await press(page, 'Create the tenant')
        await page.getByText('The service does not answer.').waitFor()
        await press(page, 'Create the tenant')
        await heading(page, 'Save the keys of your tenant')
        expect((await tenantOf((await secretsOn(page))[0]!)).name).toBe(name)
      },
      { expected: [/Failed to load resource: net::ERR_FAILED/] },
    )
  })

  test('a reload asks first while the tenant is created, and while the key of the agent is shown', async () => {
    await chromium.visit(service.url, async (page) => {
      const asked: string[] = []
      page.on('dialog', (dialog) => {
        asked.push(dialog.type())
        void dialog.dismiss()
      })
      const reload = () => page.evaluate('location.reload()')
      await page.route('**/v1/tenants', async (route) => {
        await reload()
        await becomes(() => asked.length, 1)
        await route.continue()
      })
      await signUp(page)
      await press(page, 'I have saved both')
      await press(page, 'Create the agent')
      await heading(page, 'Make the first call')
      await reload()
      await becomes(() => asked, ['beforeunload', 'beforeunload'])
      expect((await secretsOn(page))[0]).toStartWith('svc_agt_')
    })
  })

  test('a reload before the keys are saved asks first; the session holds the tenant', async () => {
    await chromium.visit(service.url, async (page) => {
      const asked: string[] = []
      page.on('dialog', (dialog) => {
        asked.push(dialog.type())
        void dialog.accept()
      })
      const [admin_key, signing_secret] = await signUp(page)
      await page.reload()
      await heading(page, 'Overview')
      expect(asked).toEqual(['beforeunload'])
      expect(await kept(page)).not.toContain(signing_secret)
      expect(await page.evaluate('Object.values(sessionStorage)')).toContain(admin_key)
    })
  })

  test('works under another name of this machine', async () => {
    const origin = service.url.replace('127.0.0.1', 'localhost')
    await chromium.visit(origin, async (page) => {
      const [admin_key] = await signUp(page)
      expect((await tenantOf(admin_key)).plan).toBe('free')
    })
  })

  test('is done by keyboard alone', async () => {
    await chromium.visit(service.url, async (page) => {
      await page.goto('/')
      await page.getByRole('link', { name: 'Create a tenant' }).waitFor()
      await tabTo(page, 'Create a tenant')
      await page.keyboard.press('Enter')
      await heading(page, 'Create a tenant')
      // The field takes the focus once the form is drawn.
      await page.getByLabel('Name').and(page.locator(':focus')).waitFor()
      await page.keyboard.type(newName())
      await page.keyboard.press('Tab')
      await page.keyboard.type('owner@example.com')
      await page.keyboard.press('Tab')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await heading(page, 'Save the keys of your tenant')
      expect((await tenantOf((await secretsOn(page))[0]!)).plan).toBe('pro')
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Save the keys of your tenant')
      await tabTo(page, 'I have saved both')
      await page.keyboard.press('Enter')
      await tabTo(page, 'Name')
      await page.keyboard.press('Enter')
      await heading(page, 'Make the first call')
      await tabTo(page, 'curl')
      await page.keyboard.press('ArrowRight')
      expect(await snippet(page)).toStartWith('import')
      await tabTo(page, 'Open the console')
      await page.keyboard.press('Enter')
      await heading(page, 'Overview')
    })
  })

  test.each(themes)('is accessible and fits a telephone in the %s theme', async (colorScheme) => {
    const checked = async (page: Page) => {
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await overflow(page)).toBe(0)
    }
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/')
        await page.getByRole('link', { name: 'Create a tenant' }).waitFor()
        await checked(page)
        await page.getByRole('link', { name: 'Create a tenant' }).click()
        await press(page, 'Create the tenant')
        await page.getByText('Enter an e-mail address.').waitFor()
        await checked(page)
        await signUp(page, 'W'.repeat(27) + newName().slice(0, 13))
        await checked(page)
        await press(page, 'I have saved both')
        await checked(page)
        await page.getByLabel('Name').fill('z'.repeat(32))
        await press(page, 'Create the agent')
        await heading(page, 'Make the first call')
        for (const tab of ['curl', 'TypeScript', 'MCP']) {
          await page.getByRole('tab', { name: tab }).click()
          await checked(page)
        }
      },
      { ...narrow, colorScheme },
    )
  })
})

describe('Under an address that is not PUBLIC_URL', () => {
  const elsewhere = useService({ PUBLIC_URL: 'http://127.0.0.1:9' })

  test('the form says which page to open instead', async () => {
    await chromium.visit(
      elsewhere.url,
      async (page) => {
        await openForm(page)
        await page.getByLabel('Name').fill(newName())
        await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
        await press(page, 'Create the tenant')
        const text = await page.getByRole('alert').innerText()
        expect(text).toBe(
          `This page came from ${elsewhere.url}, but the service is known by another address, its PUBLIC_URL. Open the console there.`,
        )
      },
      { expected: refusals(403) },
    )
  })
})

describe('While sign-up is closed', () => {
  const closed = useService({ SIGNUP: 'closed' })

  test('the sign-in offers none, and says who creates tenants', async () => {
    await chromium.visit(closed.url, async (page) => {
      await page.goto('/console/sign-up')
      await heading(page, 'Sign in')
      await page.getByText('Sign-up is closed: the operator of this service creates tenants.').waitFor()
      expect(await page.getByRole('link', { name: 'Create a tenant' }).count()).toBe(0)
    })
  })
})
