// The operator's first steps in the console: signing in and out, the overview, a decision in place.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  duplicateOf,
  heldAnswer,
  lookAgain,
  narrow,
  overflow,
  refusals,
  refuseStorage,
  requestsOf,
  signIn,
  tabTo,
  themes,
  useService,
} from './support/console.ts'
import { loaded } from './support/console-walk.ts'
import { becomes } from './support/patience.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()

async function ask({ api_key }: TestTenant, title: string): Promise<string> {
  const body = {
    title,
    callback_url: 'http://127.0.0.1:8999/',
    callback_payload: [1e21],
    timeout_seconds: 7200,
  }
  const { status, body: checkpoint } = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
  expect(status).toBe(201)
  return checkpoint.id
}

const service = useService()

/**
 * In the pages that follow no timer of a second or more runs: repeats do not, nor the reload of lists that were read before the stream
 * of events began, which on a busy machine may be late.
 */
const withoutRepeats = (page: Page) =>
  page.addInitScript(`{
    const { setTimeout: begin } = window
    window.setTimeout = (work, ms = 0, ...given) => (ms < 1_000 ? begin(work, ms, ...given) : 0)
  }`)

describe('The console', () => {
  describe('signs in', () => {
    test('with an admin key, kept in the storage of the tab; signing out clears it', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        const requests = requestsOf(page)
        await signIn(page, tenant, '/console/approvals?status=approved')
        await page.waitForURL(`${service.url}/console/approvals?status=approved`)
        expect(await page.evaluate('Object.values(sessionStorage)')).toContain(tenant.admin_key)
        expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).toBe('{}')
        await page.reload()
        await page.getByRole('heading', { name: 'Approvals' }).waitFor()
        await page.getByRole('button', { name: 'Sign out' }).click()
        await page.getByLabel('Admin key').waitFor()
        expect(await page.evaluate('sessionStorage.length')).toBe(0)
        expect(await page.getByLabel('Admin key').inputValue()).toBe('')
        await page.reload()
        await page.getByLabel('Admin key').waitFor()
        expect(requests.filter((request) => request.url().includes(tenant.admin_key))).toEqual([])
      })
    })

    test('where the browser refuses its storage, until the page is left', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        await page.clock.install()
        await refuseStorage(page)
        await signIn(page, tenant)
        await page.getByRole('link', { name: 'Approvals' }).first().click()
        await page.getByRole('heading', { name: 'Approvals' }).waitFor()
        await page.clock.fastForward(31 * 60_000)
        await page.getByText('You were signed out after 30 minutes without activity.').waitFor()
        await signIn(page, tenant)
        await page.getByRole('button', { name: 'Sign out' }).click()
        await page.getByLabel('Admin key').waitFor()
        await signIn(page, tenant)
        await page.reload()
        await page.getByLabel('Admin key').waitFor()
      })
    })

    const wrong: [what: string, key: (tenant: TestTenant) => string, status: number | null, words: string][] =
      [
        [
          'another key of that form',
          ({ admin_key }) => `${admin_key.slice(0, -1)}_`,
          401,
          'This key is not valid',
        ],
        ["an agent's key", ({ api_key }) => api_key, null, 'This is the key of an agent'],
        ['something else', () => 'hunter2', null, 'An admin key begins with svc_adm_.'],
        ['the name of a method', () => 'toString', null, 'An admin key begins with svc_adm_.'],
        ['what is sent in no header', () => 'svc_adm_\u00e4', null, 'This key is not valid'],
      ]
    test.each(wrong)('not with %s', async (_, key, status, words) => {
      const tenant = await service.signUp()
      await chromium.visit(
        service.url,
        async (page) => {
          await page.goto('/console')
          await page.getByLabel('Admin key').fill(key(tenant))
          await page.getByRole('button', { name: 'Sign in' }).click()
          await page.getByText(words).waitFor()
          expect(await page.getByLabel('Admin key').getAttribute('aria-invalid')).toBe('true')
          expect(await page.evaluate('document.activeElement.type + sessionStorage.length')).toBe('password0')
        },
        status === null ? {} : { expected: refusals(status) },
      )
    })

    test('again after 30 minutes without a hand on it', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        await page.clock.install()
        await signIn(page, tenant)
        await page.clock.fastForward(29 * 60_000)
        await page.keyboard.press('Shift')
        await page.clock.fastForward(29 * 60_000)
        await becomes(() => page.evaluate('sessionStorage.length'), 4)
        await page.clock.fastForward(61_000)
        await page.getByText('You were signed out after 30 minutes without activity.').waitFor()
        expect(await page.evaluate('sessionStorage.length')).toBe(0)
      })
    })

    test('again in the copies of a tab in which one signed out, and in no other tab', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant)
        const copied = await duplicateOf(page)
        await copied.getByRole('heading', { name: 'Overview' }).waitFor()
        const other = await page.context().newPage()
        await signIn(other, tenant)
        await page.getByRole('button', { name: 'Sign out' }).click()
        await copied.getByText('You signed out in another tab.').waitFor()
        expect(await copied.evaluate('sessionStorage.length')).toBe(0)
        await other.reload()
        await other.getByRole('heading', { name: 'Overview' }).waitFor()
      })
    })

    test('again after a sleep, before anything is asked', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        await page.clock.install()
        await signIn(page, tenant, '/console/approvals')
        await page.getByText('Nothing waits for you').waitFor()
        await page.clock.setSystemTime(Date.now() + 31 * 60_000)
        const requests = requestsOf(page)
        await page.evaluate(`dispatchEvent(new Event('online'))`)
        await page.getByText('You were signed out after 30 minutes without activity.').waitFor()
        expect(requests.map((request) => request.url())).toEqual([])
      })
    })

    test('again after 30 minutes also when the clock was put back by a day', async () => {
      const tenant = await service.signUp()
      await chromium.visit(service.url, async (page) => {
        await page.clock.install()
        await signIn(page, tenant)
        await page.clock.setSystemTime(Date.now() - 24 * 3_600_000)
        await page.clock.fastForward(10_000)
        await page.clock.fastForward(31 * 60_000)
        await page.getByText('You were signed out after 30 minutes without activity.').waitFor()
      })
    })

    test('again when the key has been rotated meanwhile', async () => {
      const tenant = await service.signUp()
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant)
          await page.goto('about:blank')
          await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/rotate-key`, { key: tenant.admin_key })
          await page.goto('/console')
          await page.getByText('This admin key is no longer valid.').waitFor()
          expect(await page.evaluate('sessionStorage.length')).toBe(0)
        },
        { expected: refusals(401) },
      )
    })
  })

  test('asks each thing once when it is opened, also what the navigation and the overview both show', async () => {
    const tenant = await service.signUp()
    await ask(tenant, 'First')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await page.goto('about:blank')
      await withoutRepeats(page)
      const requests = requestsOf(page)
      await page.goto('/console')
      await page.getByText('1 to decide').first().waitFor()
      await loaded(page)
      const asked = requests.map((request) => request.url()).filter((url) => url.includes('/v1/'))
      expect(
        asked.filter((url) => /status=pending|status=unknown|tenants\/me$/.test(url)).toSorted(),
      ).toEqual([
        `${service.url}/v1/checkpoints?status=pending&limit=200`,
        `${service.url}/v1/effects?status=unknown&limit=200`,
        `${service.url}/v1/tenants/me`,
      ])
    })
  })

  test('does not end what the navigation waits for when the overview is left', async () => {
    const tenant = await service.signUp()
    await ask(tenant, 'First')
    await chromium.visit(service.url, async (page) => {
      await withoutRepeats(page)
      const { held, release } = await heldAnswer(page, 'GET', '**/v1/checkpoints?*')
      await signIn(page, tenant)
      await held
      await page.getByRole('link', { name: 'Schedules' }).click()
      await page.getByText('No call is scheduled').waitFor()
      const requests = requestsOf(page)
      release()
      await page.getByText('1 to decide').waitFor({ state: 'attached' })
      expect(requests.filter((request) => request.url().includes('/v1/checkpoints'))).toEqual([])
    })
  })

  test('shows what happened after the navigation had asked', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/schedules')
      await loaded(page)
      const { held, release } = await heldAnswer(page, 'GET', '**/v1/checkpoints?*')
      await ask(tenant, 'First')
      await held
      await ask(tenant, 'Second')
      const body = { payload: 1, error: 'card declined' }
      await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body })
      await page.getByText('1 open').first().waitFor({ state: 'attached' })
      await page.getByRole('link', { name: 'Overview' }).click()
      await page.getByRole('region', { name: 'Waits for you', exact: true }).waitFor()
      release()
      await page.locator('.figure', { hasText: '2 to decide' }).waitFor()
    })
  })

  test('shows on its overview what waits, what failed, what is used, and how much goes on', async () => {
    const tenant = await service.signUp()
    for (const title of ['First', 'Second <img src=x onerror=alert(1)>']) await ask(tenant, title)
    for (const error of ['card declined', 'the bank is away\nfor an hour', 'third']) {
      const body = { payload: 1, error }
      await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body })
    }
    for (const key of ['a', 'b']) {
      await service.ask('PUT', `/v1/kv/state/${key}`, { key: tenant.api_key, body: { value: 1 } })
    }
    await service.ask('GET', '/v1/kv/state/absent', { key: tenant.api_key })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      const card = (name: string) => page.getByRole('region', { name, exact: true })
      await card('Waits for you').getByText('First').waitFor()
      await becomes(() => card('Waits for you').locator('.figure').innerText(), '2 to decide')
      expect(await card('Waits for you').locator('li a').allInnerTexts()).toEqual([
        expect.stringMatching(/^(First|Second <img src=x onerror=alert\(1\)>)$/),
        expect.stringMatching(/^(First|Second <img src=x onerror=alert\(1\)>)$/),
      ])
      await card('Failures of the last day').getByText('third').waitFor()
      await becomes(
        () => card('Failures of the last day').locator('.figure').innerText(),
        '3 failed and not resolved',
      )
      await becomes(
        async () => (await card('Failures of the last day').locator('li a').allInnerTexts()).toSorted(),
        ['card declined', 'the bank is away', 'third'],
      )
      const meter = (name: string) => page.getByRole('meter', { name }).getAttribute('aria-valuetext')
      expect(await meter('Keys in the store')).toBe('2 of 5,000')
      expect(await meter('Dead letters')).toBe('3 of 500')
      expect(await meter('Agents')).toBe('1 of 25')
      // One agent made by the admin key, and then eight calls with the agent's.
      expect(await card('Activity of the last day').locator('.figure').innerText()).toBe(
        '9 calls, 1 refused or failed',
      )
      await page.getByText('Show as a table').click()
      const last = page.getByRole('table', { name: 'Calls by the hour' }).getByRole('row').last()
      expect((await last.innerText()).split('\t').slice(1)).toEqual(['9', '1'])
      await becomes(() => page.locator('canvas').count(), 1)
    })
  })

  test('tells a failure that goes on once, not at every look', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        let asked = 0
        await page.route(/\/v1\/checkpoints/, (route) => {
          asked += 1
          const error = { code: 'UNAVAILABLE', message: 'Try again later.' }
          return route.fulfill({ status: 503, headers: { 'x-request-id': `req-${asked}` }, json: { error } })
        })
        await signIn(page, tenant, '/console/approvals')
        const alert = page.getByRole('alert')
        await alert.waitFor()
        const told = await alert.innerText()
        expect(told).toMatch(/UNAVAILABLE · request req-\d/)
        for (let look = 0; look < 2; look += 1) {
          const before = asked
          // A call that is on its way ends with the look: its answer may begin and never be whole.
          const answered = page.waitForEvent('requestfinished', async (request) => {
            const id = (await request.response())?.headers()['x-request-id'] ?? ''
            return /\/v1\/checkpoints/.test(request.url()) && Number(id.slice('req-'.length)) > before
          })
          await lookAgain(page)
          await answered
        }
        expect(await alert.innerText()).toBe(told)
      },
      { expected: refusals(503) },
    )
  })

  test('decides an approval in place, and the queue follows what happens elsewhere', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, 'Publish release 4.2')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/approvals')
      await page.getByRole('link', { name: 'Publish release 4.2' }).click()
      await page.waitForURL(`${service.url}/console/approvals/${id}`)
      await page.locator('.tree li').first().waitFor()
      expect(await page.locator('.tree li').allInnerTexts()).toEqual(['0: 1e+21'])
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this').waitFor()
      await page.getByText('Nothing waits for you').waitFor()
      expect(await page.evaluate('document.activeElement.innerText')).toStartWith('You approved this')
      await ask(tenant, 'Another')
      await page.getByRole('link', { name: 'Another' }).waitFor()
      await page.getByRole('tab', { name: 'Approved' }).click()
      await page.getByRole('link', { name: 'Publish release 4.2' }).waitFor()
      await page.waitForURL(`${service.url}/console/approvals/${id}?status=approved`)
    })
    const settled = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.admin_key })
    expect(settled.body).toMatchObject({ status: 'approved', resolved_by: 'admin' })
  })

  test('is used on a narrow screen and by keyboard', async () => {
    const tenant = await service.signUp()
    await ask(tenant, 'A title that is too long to fit on the screen of a telephone held upright')
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant)
        await page.locator('canvas').waitFor()
        expect(await overflow(page)).toBe(0)
        await tabTo(page, 'Menu')
        await page.keyboard.press('Enter')
        await page.getByRole('link', { name: 'Approvals', exact: true }).waitFor()
        await tabTo(page, 'Approvals')
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Approvals' }).waitFor()
        expect(await page.evaluate('document.activeElement.textContent')).toBe('Approvals')
        expect(await page.title()).toBe('Approvals · Waystation')
        await page.getByRole('link', { name: /^A title/ }).waitFor()
        expect(await overflow(page)).toBe(0)
      },
      narrow,
    )
  })

  test('keeps the theme that was chosen', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
      await signIn(page, tenant)
      expect(await ground()).toBe('rgb(250, 250, 251)')
      await page.getByRole('button', { name: 'Dark' }).click()
      expect(await ground()).toBe('rgb(14, 15, 18)')
      await page.reload()
      await page.getByRole('button', { name: 'Dark', pressed: true }).waitFor()
      expect(await ground()).toBe('rgb(14, 15, 18)')
    })
  })

  test.each(themes)('is accessible in the %s theme', async (colorScheme) => {
    const tenant = await service.signUp()
    const id = await ask(tenant, 'Publish release 4.2')
    await service.ask('POST', '/v1/dlq', {
      key: tenant.api_key,
      body: { payload: 1, error: 'card declined' },
    })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/console')
        await page.getByLabel('Admin key').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await signIn(page, tenant)
        await page.locator('canvas').waitFor()
        await page.getByText('card declined').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await page.goto(`/console/approvals/${id}`)
        await page.getByText('Withdraw the request').click()
        await page.getByRole('link', { name: 'Publish release 4.2' }).waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await page.goto('/console/nowhere')
        await page.getByText('There is no such page').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
      },
      { colorScheme },
    )
  })
})
