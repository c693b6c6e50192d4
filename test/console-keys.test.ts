// The operator's keys: made, shown once, rotated, ended.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { verifyCallback } from '../sdk/src/index.ts'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  requestsOf,
  signIn,
  tabTo,
  themes,
  useRealTime,
  useService,
} from './support/console.ts'
import { becomes } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'
import { cron_secret, type TestTenant } from './support/service.ts'

const chromium = useChromium()

const service = useService()
service.clock.letWaitsEnd()

const hour_ms = 3_600_000

/** The answer of the service to this key. */
async function statusOf(key: string, path = '/v1/audit'): Promise<number> {
  return (await service.ask('GET', path, { key })).status
}

const dialog = (page: Page) => page.getByRole('dialog')
const secret = (page: Page) => dialog(page).locator('.secret code').first().innerText()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

async function asked({ api_key }: TestTenant, title: string): Promise<string> {
  const body = { title, callback_url: 'http://127.0.0.1:8999/', timeout_seconds: 7200 }
  const { body: checkpoint } = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
  return checkpoint.id
}

async function goBackOnceAsked(page: Page): Promise<void> {
  await page.evaluate('history.back()')
  await dialog(page).getByText('Have you saved it?').waitFor()
  await page.evaluate('history.back()')
  await dialog(page).waitFor({ state: 'detached' })
  await page.goBack()
}

/** Everything in which a page could keep something. */
function kept(page: Page): Promise<string> {
  return page.evaluate(`JSON.stringify([
    document.documentElement.outerHTML, [...document.querySelectorAll('input')].map((field) => field.value),
    { ...sessionStorage }, { ...localStorage }, history.state, location.href, document.cookie,
  ])`)
}

describe('The console', () => {
  test('creates an agent, whose key works and is shown once', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      const requests = requestsOf(page)
      await signIn(page, tenant, '/console/keys')
      await page.getByRole('link', { name: 'agent-one' }).waitFor()
      await press(page, 'Create an agent…')
      await dialog(page).getByLabel('Name').fill('Invoices')
      await press(page, 'Create')
      await dialog(page).getByText('3 to 32 lowercase letters').waitFor()
      await dialog(page).getByLabel('Name').fill('invoices')
      await dialog(page).getByLabel('What it does').fill('Reads <b>invoices</b>')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: 'The key of invoices' }).waitFor()
      const key = await secret(page)
      expect(key).toStartWith('svc_agt_')
      expect(await statusOf(key)).toBe(200)
      expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Copy the key')
      // A stray Escape does not lose it.
      await page.keyboard.press('Escape')
      await dialog(page).getByText('Have you saved it?').waitFor()
      expect(await secret(page)).toBe(key)
      // Said where a screen reader hears it: outside of the dialog everything is inert.
      await press(page, 'Copy the key')
      await dialog(page).getByText('Copied the key.').waitFor()
      expect(await page.getByText('Copied the key.').count()).toBe(1)
      await press(page, 'Done')
      await page.getByRole('link', { name: 'invoices' }).waitFor()
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Create an agent…')
      await becomes(
        () => page.getByRole('meter', { name: 'Agents' }).getAttribute('aria-valuetext'),
        '2 of 25',
      )
      expect(await kept(page)).not.toContain(key)
      await page.getByRole('link', { name: 'invoices' }).click()
      await page.waitForURL(`${service.url}/console/keys/agents/invoices`)
      await page.locator('.split-detail').getByText('Reads <b>invoices</b>').waitFor()
      expect(requests.filter((request) => request.url().includes(key))).toEqual([])
    })
  })

  const leaving: [how: string, leave: (page: Page) => Promise<unknown>][] = [
    ['going back, which asks first', goBackOnceAsked],
    ['a reload', (page) => page.reload()],
    ['another page', (page) => page.goto('/console/approvals')],
  ]
  test.each(leaving)('does not show a key again after %s', async (_, leave) => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await page.getByRole('link', { name: 'Agents and keys' }).click()
      await press(page, 'Create an agent…')
      await dialog(page).getByLabel('Name').fill('invoices')
      await press(page, 'Create')
      const key = await secret(page)
      await leave(page)
      await page.getByRole('link', { name: 'Agents and keys' }).click()
      await page.getByRole('link', { name: 'invoices' }).waitFor()
      expect(await dialog(page).count()).toBe(0)
      expect(await kept(page)).not.toContain(key)
    })
  })

  const graces: [label: string, old_key_lives_ms: number][] = [
    ['ends at once', 0],
    ['works for another hour', hour_ms],
  ]
  test.each(graces)('rotates the key of an agent, and the old one %s', async (label, old_key_lives_ms) => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/agents/agent-one')
      await press(page, 'Rotate the key…')
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Go back')
      await dialog(page).getByLabel('The old key').selectOption({ label })
      useRealTime(service)
      await press(page, 'Rotate')
      await page.getByRole('dialog', { name: 'The new key' }).waitFor()
      const key = await secret(page)
      expect(await statusOf(key)).toBe(200)
      expect(await statusOf(tenant.api_key)).toBe(old_key_lives_ms === 0 ? 401 : 200)
      await dialog(page)
        .getByText(
          old_key_lives_ms === 0 ? 'The old key no longer works.' : /The old key ends in (5\d min|1 h)\./,
        )
        .waitFor()
      await press(page, 'Done')
      await page
        .locator('.split-detail')
        .getByText(`svc_agt_****${key.slice(-4)}`)
        .waitFor()
      expect(await kept(page)).not.toContain(key)
      service.clock.advance(old_key_lives_ms)
      expect([await statusOf(tenant.api_key), await statusOf(key)]).toEqual([401, 200])
    })
    useRealTime(service)
  })

  test('deletes an agent after a second look, and the focus stays on the page', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys/agents/agent-one')
        await press(page, 'Delete…')
        await press(page, 'Go back')
        expect(await statusOf(tenant.api_key)).toBe(200)
        expect(await page.evaluate('document.activeElement.textContent')).toBe('Delete…')
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await page.getByText('No agents yet').waitFor()
        await page.waitForURL(`${service.url}/console/keys`)
        expect(await statusOf(tenant.api_key)).toBe(401)
        await becomes(() => page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Agents')
      },
      // The page may hear of the deletion, and ask for the agent, before its own call is answered.
      { expected: refusals(404) },
    )
  })

  test('refuses what the API refuses, in words', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys')
        await press(page, 'Create an agent…')
        await dialog(page).getByLabel('Name').fill('agent-one')
        await press(page, 'Create')
        await dialog(page).getByText('There is an agent of that name.').waitFor()
        await dialog(page).getByLabel('Name').fill('agent-two')
        await dialog(page).getByLabel('Callback base URL').fill('ftp://example.com/')
        await press(page, 'Create')
        await dialog(page).locator('.field-error').waitFor()
        expect(await dialog(page).getByLabel('Callback base URL').getAttribute('aria-invalid')).toBe('true')
        await press(page, 'Go back')
        await page.goto('/console/keys/agents/nobody')
        await page.locator('.split-detail').getByText('There is no such thing here.').waitFor()
      },
      { expected: refusals(400, 404, 409) },
    )
  })

  test('asks again for a key whose answer was lost, and gets the same one', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys')
        let lost = ''
        await page.route('**/v1/agents', async (route) => {
          if (route.request().method() !== 'POST' || lost !== '') return route.continue()
          lost = (await (await route.fetch()).json()).api_key
          return route.abort()
        })
        await press(page, 'Create an agent…')
        await dialog(page).getByLabel('Name').fill('invoices')
        await press(page, 'Create')
        await dialog(page).getByText('The service does not answer.').waitFor()
        await press(page, 'Create')
        await page.getByRole('dialog', { name: 'The key of invoices' }).waitFor()
        expect(await secret(page)).toBe(lost)
      },
      { expected: [/Failed to load resource: net::ERR_FAILED/] },
    )
  })

  test('says that nobody knows whether a key was rotated, and takes no 404 of a proxy for a removal', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys/agents/agent-one')
        const answer = async (method: string, path: string, status: number) =>
          page.route(path, (route) =>
            route.request().method() === method ? route.fulfill({ status, body: '{}' }) : route.fallback(),
          )
        await answer('POST', '**/rotate-key', 504)
        await press(page, 'Rotate the key…')
        await press(page, 'Rotate')
        await dialog(page).getByText('The key may have been rotated or not.').waitFor()
        await press(page, 'Go back')
        await answer('DELETE', '**/v1/agents/agent-one', 404)
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await dialog(page).getByText('Something in front of the service answered 404.').waitFor()
      },
      { expected: refusals(504, 404) },
    )
  })

  test('makes a link for one request, with which somebody decides, and revokes the key', async () => {
    const tenant = await service.signUp()
    const id = await asked(tenant, 'Publish release 4.2')
    await asked(tenant, 'Another')
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/approval-keys')
      await page.getByText('No approval keys').waitFor()
      await press(page, 'Create a key…')
      await dialog(page).getByLabel('For whom').fill('Ada')
      await dialog(page).getByLabel('It decides').selectOption({ label: 'Publish release 4.2' })
      await press(page, 'Create')
      await page.getByRole('dialog', { name: 'The approval key' }).waitFor()
      const link = await secret(page)
      const key = link.slice(link.indexOf('#') + 1)
      expect(link).toBe(`${service.url}/approve/${id}#${key}`)
      expect(await dialog(page).locator('.secret code').nth(1).innerText()).toBe(key)
      await press(page, 'Done')
      expect(await kept(page)).not.toContain(key)
      const approver = await page.context().newPage()
      await approver.goto(link)
      await approver.getByRole('button', { name: 'Approve…' }).click()
      await approver.getByRole('button', { name: 'Yes, approve' }).click()
      await approver.getByText('You approved this').waitFor()
      await approver.close()
      expect((await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.admin_key })).body.status).toBe(
        'approved',
      )
      await page.getByRole('button', { name: 'Revoke Ada' }).click()
      await press(page, 'Yes, revoke')
      await page.getByText('No approval keys').waitFor()
      expect(await statusOf(key, `/v1/approvals/${id}`)).toBe(401)
      await becomes(() => page.evaluate('document.activeElement === document.body'), false)
    })
  })

  test('says which of two keys of a person is to be revoked, on a telephone too', async () => {
    const tenant = await service.signUp()
    const checkpoint_id = await asked(tenant, 'Publish release 4.2')
    const make = async (body: object) =>
      (await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body })).body
        .approval_key as string
    const whole = await make({ label: 'Ada' })
    const bound = await make({ label: 'Ada', checkpoint_id })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys/approval-keys')
        const said: string[] = []
        for (const place of [0, 1]) {
          await page.getByRole('button', { name: 'Revoke Ada' }).nth(place).click()
          said.push(await dialog(page).locator('p').first().innerText())
          expect(await overflow(page)).toBe(0)
          await press(page, 'Go back')
        }
        expect(said.map((text) => text.slice(0, text.indexOf(' decides'))).toSorted()).toEqual(
          [
            `Ada, svc_apr_****${whole.slice(-4)}, for every request,`,
            `Ada, svc_apr_****${bound.slice(-4)}, for one request,`,
          ].toSorted(),
        )
      },
      narrow,
    )
  })

  test('makes a key for every request, and one for a request by its id', async () => {
    const tenant = await service.signUp()
    const id = await asked(tenant, 'Publish release 4.2')
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys/approval-keys')
        await press(page, 'Create a key…')
        await press(page, 'Create')
        const every = await secret(page)
        expect(every).toStartWith('svc_apr_')
        expect(await statusOf(every, `/v1/approvals/${id}`)).toBe(200)
        await press(page, 'Done')
        await press(page, 'Create a key…')
        await dialog(page).getByLabel('It decides').selectOption('id')
        await dialog(page).getByLabel('Id of the request').fill('chk_01k9x3m6v2h8qa4n0r5t7w1z9c')
        await press(page, 'Create')
        await dialog(page).getByText('There is no such request.').waitFor()
        await dialog(page).getByLabel('Id of the request').fill(id)
        await press(page, 'Create')
        expect(await secret(page)).toStartWith(`${service.url}/approve/${id}#svc_apr_`)
        await press(page, 'Done')
        const rows = page.getByRole('table', { name: 'Approval keys of this tenant' }).locator('tbody tr')
        await rows.nth(1).waitFor()
        expect((await rows.allInnerTexts()).map((row) => row.split('\t')[1]).toSorted()).toEqual([
          'every request',
          'one request',
        ])
      },
      { expected: refusals(404) },
    )
  })

  test('says at its field that the end of a key is in the past', async () => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/keys/approval-keys')
        await press(page, 'Create a key…')
        await dialog(page).getByLabel('Ends').fill('2020-01-01T00:00')
        await press(page, 'Create')
        await dialog(page).locator('.field-error').getByText('must be in the future').waitFor()
        expect(await dialog(page).getByLabel('Ends').getAttribute('aria-invalid')).toBe('true')
        expect(await dialog(page).getByRole('alert').count()).toBe(0)
      },
      { expected: refusals(400) },
    )
  })

  test('follows the approval keys that others make and revoke', async () => {
    const tenant = await service.signUp()
    const key = tenant.admin_key
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/approval-keys')
      await page.getByText('No approval keys').waitFor()
      const made = await service.ask('POST', '/v1/approval-keys', { key, body: { label: 'Ada' } })
      await page.getByRole('button', { name: 'Revoke Ada' }).waitFor()
      await service.ask('DELETE', `/v1/approval-keys/${made.body.approval_key_id}`, { key })
      await page.getByText('No approval keys').waitFor()
    })
  })

  test.each(graces)(
    'rotates the admin key and goes on with the new one; the old one %s',
    async (label, lives_ms) => {
      const tenant = await service.signUp()
      const look = async (page: Page) => {
        await signIn(page, tenant, '/console/keys/tenant')
        await press(page, 'Rotate the admin key…')
        await dialog(page).getByLabel('The old key').selectOption({ label })
        await press(page, 'Rotate')
        await page.getByRole('dialog', { name: 'The new key' }).waitFor()
        const key = await secret(page)
        expect(key).toStartWith('svc_adm_')
        expect(await statusOf(tenant.admin_key)).toBe(lives_ms === 0 ? 401 : 200)
        service.clock.advance(lives_ms)
        expect([await statusOf(tenant.admin_key), await statusOf(key)]).toEqual([401, 200])
        await press(page, 'Done')
        await page.getByRole('link', { name: 'Schedules' }).click()
        await page.getByText('No call is scheduled').waitFor()
        await page.reload()
        await page.getByText('No call is scheduled').waitFor()
        expect(await page.evaluate('Object.values(sessionStorage)')).toContain(key)
      }
      // The stream of events ends with the old key, and may ask again with it before the new one has come.
      await chromium.visit(service.url, look, { expected: refusals(401) })
      useRealTime(service)
    },
  )

  test('rotates the signing secret, which then signs', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/tenant')
      await page.getByRole('meter', { name: 'Agents' }).waitFor()
      await press(page, 'Rotate the signing secret…')
      await press(page, 'Rotate')
      await page.getByRole('dialog', { name: 'The new signing secret' }).waitFor()
      const shown = await secret(page)
      expect(shown).toMatch(/^whsec_[A-Za-z0-9+/=]{32,}$/)
      expect(shown).not.toBe(tenant.signing_secret)
      await press(page, 'Done')
      expect(await kept(page)).not.toContain(shown)
      const receiver = await startReceiver()
      try {
        const fire_at = new Date(service.clock.now()).toISOString()
        const body = { callback_url: receiver.url, callback_payload: 7, fire_at }
        await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })
        await service.ask('POST', '/v1/tick', { key: cron_secret })
        await receiver.received(1)
        const now = service.clock.now()
        expect((await verifyCallback(receiver.requests[0]!, shown, { now })).text).toBe('7')
      } finally {
        await receiver.stop()
      }
    })
  })

  test.each(themes)('shows agents and keys accessibly in the %s theme, and narrow', async (colorScheme) => {
    const tenant = await service.signUp()
    await service.ask('POST', '/v1/approval-keys', {
      key: tenant.admin_key,
      body: { label: 'on-call '.repeat(30) },
    })
    const body = { name: 'z'.repeat(32), description: 'long'.repeat(300) }
    await service.ask('POST', '/v1/agents', { key: tenant.admin_key, body })
    const checked = async (page: Page) => {
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await overflow(page)).toBe(0)
    }
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/keys/agents/${body.name}`)
        await page.locator('.split-detail').getByText('Rotate the key').waitFor()
        await checked(page)
        await press(page, 'Rotate the key…')
        await checked(page)
        await press(page, 'Rotate')
        await page.getByRole('dialog', { name: 'The new key' }).waitFor()
        await checked(page)
        await press(page, 'Done')
        await page.getByRole('link', { name: 'Back to the list' }).click()
        await page.getByRole('link', { name: 'agent-one' }).waitFor()
        await checked(page)
        await press(page, 'Create an agent…')
        await checked(page)
        await page.goto('/console/keys/approval-keys')
        await page.getByRole('button', { name: /^Revoke/ }).click()
        await checked(page)
        await press(page, 'Go back')
        await press(page, 'Create a key…')
        await checked(page)
        await page.goto('/console/keys/tenant')
        await page.getByRole('meter', { name: 'Agents' }).waitFor()
        await checked(page)
        await tabTo(page, 'Rotate the admin key…')
        await page.keyboard.press('Enter')
        await page.getByRole('dialog', { name: 'Rotate the admin key?' }).waitFor()
        await checked(page)
      },
      { ...narrow, colorScheme },
    )
  })
})
