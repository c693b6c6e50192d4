// Secrets that exist nowhere else: none is lost by a sign-out, in whichever tab, while it is on its way or not saved yet.

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
  requestsOf,
  signIn,
  useService,
} from './support/console.ts'
import { becomes } from './support/patience.ts'

const chromium = useChromium()
const service = useService()

const dialog = (page: Page) => page.getByRole('dialog')
const secret = (page: Page) => dialog(page).locator('.secret code').first().innerText()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
/** On a telephone it is in the menu. */
const tenantOn = (page: Page, name: string) =>
  page.locator('.tenant-name', { hasText: name }).waitFor({ state: 'attached' })
const newName = () => `t-${crypto.randomUUID().slice(0, 13)}`

async function statusOf(key: string): Promise<number> {
  return (await service.ask('GET', '/v1/audit', { key })).status
}

/** The request reaches the service once `release` is called: until then the old key is valid, in the copies too. */
async function heldCall(page: Page, url: string) {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route(url, async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    held.resolve()
    await released.promise
    return route.continue()
  })
  return { held: held.promise, release: () => released.resolve() }
}

/** Tabs hear each other in order: with the answer from the tab that was copied, the copy has what that one said before. */
async function hearsItsOpener(copied: Page): Promise<void> {
  const opener = (await copied.opener())!
  await opener.evaluate(`{
    const channel = new BroadcastChannel('of the test')
    channel.onmessage = () => channel.postMessage('heard')
  }`)
  await copied.evaluate(`new Promise((resolve) => {
    const channel = new BroadcastChannel('of the test')
    channel.onmessage = () => resolve()
    channel.postMessage('is heard?')
  })`)
}

/** Presses "Sign out" in a copy, which asks before it does. */
async function signOutAnyway(copied: Page): Promise<void> {
  await hearsItsOpener(copied)
  await press(copied, 'Sign out')
  await dialog(copied).getByText('is on its way, or is shown and not saved yet').waitFor()
  await press(copied, 'Sign out anyway')
  await copied.getByLabel('Admin key').waitFor()
}

async function enter(page: Page, { admin_key, name }: { admin_key: string; name: string }): Promise<void> {
  await page.getByLabel('Admin key').fill(admin_key)
  await press(page, 'Sign in')
  await tenantOn(page, name)
}

/** The questions of the browser from now on, each of which is answered with "Leave". */
function questionsOf(page: Page): string[] {
  const asked: string[] = []
  page.on('dialog', (question) => {
    asked.push(question.type())
    void question.accept()
  })
  return asked
}

interface Call {
  what: string
  path: string
  answer: string
  title: string
  make: (page: Page) => Promise<void>
}

const calls: Call[] = [
  {
    what: 'an admin key whose predecessor ends at once',
    path: '/console/keys/tenant',
    answer: '**/rotate-key',
    title: 'The new key',
    make: async (page) => {
      await press(page, 'Rotate the admin key…')
      await dialog(page).getByLabel('The old key').selectOption({ label: 'ends at once' })
      await press(page, 'Rotate')
    },
  },
  {
    what: 'a signing secret',
    path: '/console/keys/tenant',
    answer: '**/rotate-signing-secret',
    title: 'The new signing secret',
    make: async (page) => {
      await press(page, 'Rotate the signing secret…')
      await press(page, 'Rotate')
    },
  },
  {
    what: 'the rotated key of an agent',
    path: '/console/keys/agents/agent-one',
    answer: '**/rotate-key',
    title: 'The new key',
    make: async (page) => {
      await press(page, 'Rotate the key…')
      await press(page, 'Rotate')
    },
  },
  {
    what: 'the key of a new agent',
    path: '/console/keys',
    answer: '**/v1/agents',
    title: 'The key of invoices',
    make: async (page) => {
      await press(page, 'Create an agent…')
      await dialog(page).getByLabel('Name').fill('invoices')
      await press(page, 'Create')
    },
  },
  {
    what: 'an approval key',
    path: '/console/keys/approval-keys',
    answer: '**/v1/approval-keys',
    title: 'The approval key',
    make: async (page) => {
      await press(page, 'Create a key…')
      await press(page, 'Create')
    },
  },
]
const [of_admin] = calls as [Call]

const ended = { expected: refusals(401) }

describe('A secret that exists nowhere else', () => {
  test.each(calls)(
    'is shown with its tenant when it comes after a sign-out in a copy of the tab: $what',
    async ({ path, answer, title, make }) => {
      const tenant = await service.signUp()
      const look = async (page: Page) => {
        await signIn(page, tenant, path)
        const copied = await duplicateOf(page)
        await copied.getByRole('heading', { name: 'Overview' }).waitFor()
        const { held, release } = await heldCall(page, answer)
        await make(page)
        await held
        await signOutAnyway(copied)
        await page.getByText('You signed out in another tab.').waitFor()
        await page
          .getByText(`A new key or secret of ${tenant.name} is on its way, and is shown here when it comes.`)
          .waitFor()
        release()
        await page.getByRole('dialog', { name: `${title} of ${tenant.name}`, exact: true }).waitFor()
        const came = await secret(page)
        expect(came).toMatch(/^svc_|^whsec_/)
        expect(await page.evaluate('sessionStorage.length')).toBe(0)
        if (title === 'The new key') expect(await statusOf(came)).toBe(200)
        await page.keyboard.press('Escape')
        await dialog(page).getByText('Press Escape once more, or I have saved it, to close.').waitFor()
        expect(await secret(page)).toBe(came)
        await press(page, 'I have saved it')
        await dialog(page).waitFor({ state: 'detached' })
        expect(await page.content()).not.toContain(came)
        expect(await page.evaluate('document.activeElement.type')).toBe('password')
      }
      await chromium.visit(service.url, look)
    },
  )

  test('is not taken for one of the tenant that signed in since, also on a telephone', async () => {
    const [tenant, next] = [await service.signUp(), await service.signUp()]
    const look = async (page: Page) => {
      await signIn(page, tenant, of_admin.path)
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      const { held, release } = await heldCall(page, of_admin.answer)
      await of_admin.make(page)
      await held
      await copied.setViewportSize(narrow.viewport)
      await press(copied, 'Menu')
      await hearsItsOpener(copied)
      await press(copied, 'Sign out')
      await dialog(copied).waitFor()
      expect([await overflow(copied), await accessibilityFaults(copied)]).toEqual([0, []])
      await press(copied, 'Go back')
      await signOutAnyway(copied)
      await page.getByText('You signed out in another tab.').waitFor()
      expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
      await enter(page, next)
      release()
      await page.getByRole('dialog', { name: `The new key of ${tenant.name}`, exact: true }).waitFor()
      await dialog(page)
        .getByText(`It is not of ${next.name}, the tenant that this tab is signed in to now.`)
        .waitFor()
      expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
      const came = await secret(page)
      expect([await statusOf(tenant.admin_key), await statusOf(came)]).toEqual([401, 200])
      await press(page, 'I have saved it')
      await page.reload()
      await tenantOn(page, next.name)
      expect(await page.evaluate('Object.values(sessionStorage)')).toContain(next.admin_key)
    }
    await chromium.visit(service.url, look, narrow)
  })

  test('is not lost by a reload unasked, also once its session has ended', async () => {
    const [tenant, next] = [await service.signUp(), await service.signUp()]
    const look = async (page: Page) => {
      await signIn(page, tenant, of_admin.path)
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      const { held } = await heldCall(page, of_admin.answer)
      await of_admin.make(page)
      await held
      await signOutAnyway(copied)
      await page.getByText('You signed out in another tab.').waitFor()
      await enter(page, next)
      const asked = questionsOf(page)
      await page.reload()
      expect(asked).toEqual(['beforeunload'])
    }
    await chromium.visit(service.url, look)
  })

  test('stays when a copy signs out before it is saved; the copies know of it, and of its end', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/approval-keys')
      await press(page, 'Create a key…')
      await press(page, 'Create')
      const shown = await secret(page)
      expect(await page.getByRole('dialog', { name: 'The approval key', exact: true }).count()).toBe(1)
      // It is a copy of a tab in which the key is there already.
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      await hearsItsOpener(copied)
      await press(copied, 'Sign out')
      await press(copied, 'Go back')
      await press(page, 'Done')
      await press(page, 'Create a key…')
      await press(page, 'Create')
      const second = await secret(page)
      expect(second).not.toBe(shown)
      await signOutAnyway(copied)
      await page.getByRole('dialog', { name: `The approval key of ${tenant.name}`, exact: true }).waitFor()
      expect(await secret(page)).toBe(second)
      await press(page, 'I have saved it')
      await enter(page, tenant)
      const again = await duplicateOf(page)
      await press(again, 'Sign out')
      await again.getByLabel('Admin key').waitFor()
      await page.getByText('You signed out in another tab.').waitFor()
    })
  })

  test('holds no copy back once its tab was left all the same', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/keys/approval-keys')
      await press(page, 'Create a key…')
      await press(page, 'Create')
      await secret(page)
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      await hearsItsOpener(copied)
      await press(copied, 'Sign out')
      await press(copied, 'Go back')
      const asked = questionsOf(page)
      await page.reload()
      expect(asked).toEqual(['beforeunload'])
      await hearsItsOpener(copied)
      await press(copied, 'Sign out')
      await copied.getByLabel('Admin key').waitFor()
    })
  })

  test('is shown when it comes after 30 minutes without activity', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await signIn(page, tenant, '/console/keys/agents/agent-one')
      const { held, release } = await heldCall(page, '**/rotate-key')
      await press(page, 'Rotate the key…')
      await press(page, 'Rotate')
      await held
      // As after a sleep: no timer has run.
      await page.clock.setSystemTime(Date.now() + 31 * 60_000)
      await lookAgain(page)
      await page.getByText('You were signed out after 30 minutes without activity.').waitFor()
      release()
      await page.getByRole('dialog', { name: `The new key of ${tenant.name}`, exact: true }).waitFor()
      expect(await statusOf(await secret(page))).toBe(200)
    })
  })

  test('that comes after a sign-out loads no list of the page that was left', async () => {
    const [tenant, next] = [await service.signUp(), await service.signUp()]
    const of_agent = calls.find(({ title }) => title === 'The key of invoices')!
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, of_agent.path)
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      const { held, release } = await heldCall(page, of_agent.answer)
      await of_agent.make(page)
      await held
      await signOutAnyway(copied)
      await enter(page, next)
      await page.getByRole('link', { name: 'Schedules' }).click()
      await page.getByText('No call is scheduled').waitFor()
      const requests = requestsOf(page)
      release()
      await page.getByRole('dialog', { name: `The key of invoices of ${tenant.name}`, exact: true }).waitFor()
      // By the time that another answer has been read, the page has asked for the lists.
      await page.evaluate(`fetch('/livez').then((answer) => answer.text())`)
      expect(requests.map((request) => new URL(request.url()).pathname)).not.toContain('/v1/agents')
    })
  })

  test('that does not come after a sign-out is said to be missing', async () => {
    const tenant = await service.signUp()
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/keys/agents/agent-one')
      const copied = await duplicateOf(page)
      await copied.getByRole('heading', { name: 'Overview' }).waitFor()
      const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      await page.route('**/rotate-key', async (route) => {
        held.resolve()
        await released.promise
        return route.abort()
      })
      await press(page, 'Rotate the key…')
      await press(page, 'Rotate')
      await held.promise
      await signOutAnyway(copied)
      released.resolve()
      await page
        .getByText(
          `A new key or secret of ${tenant.name} was asked for when the session ended, and did not come.`,
        )
        .waitFor()
      await enter(page, tenant)
      await press(page, 'Sign out')
      await page.getByLabel('Admin key').waitFor()
      expect(await page.getByText('did not come').count()).toBe(0)
    }
    await chromium.visit(service.url, look, { expected: [/Failed to load resource: net::ERR_FAILED/] })
  })
})

test('A refusal of the old admin key does not end the session while the new one is on its way', async () => {
  const tenant = await service.signUp()
  const look = async (page: Page) => {
    await signIn(page, tenant, of_admin.path)
    const { held, release } = await heldAnswer(page, 'POST', of_admin.answer)
    await of_admin.make(page)
    await held
    const refused = page.waitForResponse((answer) => answer.status() === 401)
    await lookAgain(page)
    await refused
    // By the time that another answer has been read, that one has.
    await page.evaluate(`fetch('/livez').then((answer) => answer.text())`)
    release()
    await page.getByRole('dialog', { name: 'The new key', exact: true }).waitFor()
    const came = await secret(page)
    await press(page, 'Done')
    await tenantOn(page, tenant.name)
    expect(await page.evaluate('Object.values(sessionStorage)')).toContain(came)
  }
  await chromium.visit(service.url, look, ended)
})

test('A refused rotation ends the session of an admin key that is no longer valid', async () => {
  const tenant = await service.signUp()
  const look = async (page: Page) => {
    await signIn(page, tenant, of_admin.path)
    await press(page, 'Rotate the admin key…')
    await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/rotate-key`, { key: tenant.admin_key })
    await press(page, 'Rotate')
    await page.getByText('This admin key is no longer valid.').waitFor()
  }
  await chromium.visit(service.url, look, ended)
})

describe('A sign-up', () => {
  test('whose answer comes into the session of another tenant shows its keys, and leaves that session', async () => {
    const next = await service.signUp()
    const name = newName()
    await chromium.visit(service.url, async (page) => {
      await page.goto('/console')
      await page.getByRole('link', { name: 'Create a tenant' }).click()
      const { held, release } = await heldCall(page, '**/v1/tenants')
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
      await press(page, 'Create the tenant')
      await held
      await page.evaluate('history.back()')
      await page.getByText(`A new key or secret of ${name} is on its way`).waitFor()
      await enter(page, next)
      release()
      await page.getByRole('dialog', { name: `The keys of ${name}`, exact: true }).waitFor()
      const key = await secret(page)
      expect((await service.ask('GET', '/v1/tenants/me', { key })).body.name).toBe(name)
      expect(await dialog(page).locator('.secret code').nth(1).innerText()).toStartWith('whsec_')
      await press(page, 'I have saved it')
      await page.reload()
      await tenantOn(page, next.name)
    })
  })

  test('waits for the key of its first agent: a reload asks, and the step is not skipped', async () => {
    await chromium.visit(service.url, async (page) => {
      await page.goto('/console/sign-up')
      await page.getByLabel('Name').fill(newName())
      await page.getByLabel('Owner’s e-mail').fill('owner@example.com')
      await press(page, 'Create the tenant')
      await press(page, 'I have saved both')
      const { held, release } = await heldCall(page, '**/v1/agents')
      await press(page, 'Create the agent')
      await held
      await press(page, 'Skip, open the console')
      const asks = `!dispatchEvent(new Event('beforeunload', { cancelable: true }))`
      expect(await page.evaluate(asks)).toBe(true)
      release()
      await page.getByRole('heading', { name: 'Make the first call' }).waitFor()
      await becomes(async () => (await page.locator('.secret code').innerText()).slice(0, 8), 'svc_agt_')
      await press(page, 'Open the console')
      await page.locator('#main h1').waitFor()
      expect(await page.evaluate(asks)).toBe(false)
    })
  })
})
