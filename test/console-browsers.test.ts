// The pages in other browsers than the one that these tests run: what Safari and Firefox do in another way, and what older ones
// do not have, is done to this one.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import {
  duplicateOf,
  lookAgain,
  narrow,
  overflow,
  requestsOf,
  signIn,
  useService,
} from './support/console.ts'
import { loaded } from './support/console-walk.ts'
import { becomes, until } from './support/patience.ts'

const chromium = useChromium()
const service = useService()
service.clock.letWaitsEnd()
const { ask, keyOf, linkOf, askTwo, approve } = approvers(service)

const focused = (page: Page) => page.evaluate('document.activeElement.textContent')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

/** The way of a page into the cache of "back" and out of it, and what others do meanwhile, of which it is told nothing. */
const leftAndBack = (page: Page, meanwhile: string) =>
  page.evaluate(`(() => {
    dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))
    ${meanwhile}
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
  })()`)

describe('An approver who comes back to the page', () => {
  const ways: [way: string, back: (page: Page) => Promise<unknown>][] = [
    ['to its tab', lookAgain],
    ['by a step of the history', (page) => leftAndBack(page, '')],
  ]
  test.each(ways)('%s sees the request as it is, though the line has died', async (_, back) => {
    const tenant = await service.signUp()
    const [id, key] = [await ask(tenant, {}), await keyOf(tenant)]
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      const waiting = page.waitForRequest(/wait=4$/)
      await page.route(/wait=4$/, () => {})
      await page.goto(linkOf(id, key))
      await waiting
      // No timer of the page hangs up.
      await page.clock.pauseAt(Date.now() + 1_000)
      await approve(id, key)
      await back(page)
      await page.getByText('Approved', { exact: true }).waitFor()
      expect(await page.getByText('The service does not answer.').count()).toBe(0)
      // It follows no more: a request of its own would come before this one.
      const requests = requestsOf(page)
      await back(page)
      await page.evaluate(`fetch('/livez').then((response) => response.text())`)
      expect(requests.map((request) => new URL(request.url()).pathname)).toEqual(['/livez'])
    })
  })

  test('by a step of the history finds the key forgotten that another tab has forgotten', async () => {
    const tenant = await service.signUp()
    const [id, key] = [await ask(tenant, {}), await keyOf(tenant)]
    await chromium.visit(service.url, async (page) => {
      await page.goto(`/approve/${id}`)
      await page.getByLabel('Approval key').fill(key.approval_key)
      await page.getByLabel('Remember the key on this device').check()
      await press(page, 'Show the request')
      const request = page.getByRole('heading', { name: 'Refund order 7?' })
      await request.waitFor()
      await leftAndBack(page, '')
      expect(await request.isVisible()).toBe(true)
      await leftAndBack(page, 'localStorage.clear()')
      await page.getByRole('heading', { name: 'A request for approval' }).waitFor()
      await page.getByText('The key is forgotten on this device.').waitFor()
    })
  })
})

describe('A tab that shows another page while its copy signs out', () => {
  test('is signed out when "back" leads to the console', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      const copied = await duplicateOf(page)
      await copied.locator('#main h1').waitFor()
      await page.goto('/docs')
      await press(copied, 'Sign out')
      await copied.getByLabel('Admin key').waitFor()
      await page.goBack()
      await page.getByText('You signed out in another tab.').waitFor()
      expect(await page.evaluate('sessionStorage.getItem("waystation.admin_key")')).toBe(null)
      // What is kept of it ends no later session.
      await page.getByLabel('Admin key').fill(tenant.admin_key)
      await press(page, 'Sign in')
      await page.locator('#main h1').waitFor()
      await page.reload()
      await page.locator('#main h1').waitFor()
      const kept = await page.evaluate('JSON.stringify(Object.entries(localStorage))')
      expect(kept).not.toContain(tenant.admin_key)
    })
  })

  test('is signed out when the browser had kept its page', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      const ended = `localStorage.setItem('waystation.ended_sessions ',
        JSON.stringify({ [sessionStorage.getItem('waystation.session')]: Date.now() + 60_000 }))`
      await leftAndBack(page, ended)
      await page.getByText('You signed out in another tab.').waitFor()
    })
  })
})

test('a tab to which "back" leads still holds a key that nobody has saved, and its copy asks before it signs out', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/keys')
    const copied = await duplicateOf(page)
    await copied.locator('#main h1').waitFor()
    await copied.evaluate(`window.told = [],
      new BroadcastChannel('waystation.one_time').onmessage = ({ data }) => told.push(data), 1`)
    await press(page, 'Create an agent…')
    await page.getByLabel('Name', { exact: true }).fill('reader')
    await press(page, 'Create')
    await page.getByRole('dialog', { name: 'The key of reader' }).waitFor()
    await leftAndBack(page, '')
    await until(() => copied.evaluate('told.at(-1)?.holds'))
    await press(copied, 'Sign out')
    await copied.getByRole('dialog', { name: 'Sign out while a new key is not saved?' }).waitFor()
  })
})

test('a tab to which "back" leads asks no more for a key of another one that was closed meanwhile', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant)
    const held = `session: sessionStorage.getItem('waystation.session'), tab: 'closed', holds: true`
    // Told to the page before it is told to the channel that is made last.
    await page.evaluate(`new Promise((resolve) => {
      const [from, to] = [1, 2].map(() => new BroadcastChannel('waystation.one_time'))
      to.onmessage = resolve
      from.postMessage({ ${held} })
    })`)
    const question = page.getByRole('dialog', { name: 'Sign out while a new key is not saved?' })
    await press(page, 'Sign out')
    await question.waitFor()
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
    // Of its end the page is told nothing.
    await leftAndBack(page, '')
    await press(page, 'Sign out')
    await page.getByLabel('Admin key').waitFor()
  })
})

/**
 * The focus goes past what is clicked, to what is around it. Where a script gives it, a ring is drawn after a click as well, unless
 * `focusVisible` is false.
 */
const clicks_of_safari = `const { focus } = HTMLElement.prototype
HTMLElement.prototype.focus = function (options) {
  focus.call(this, options)
  if (options?.focusVisible !== false) window.ringed = this
}
addEventListener('mousedown', (event) => {
  const control = event.target.closest?.('a, button, summary, label, input[type=checkbox]')
  if (!control) return
  event.preventDefault()
  const around = control.parentElement.closest('[tabindex]')
  if (around) around.focus({ preventScroll: true })
  else document.activeElement.blur()
}, { capture: true })`

describe('In Safari, where a click gives no focus to a button or a link', () => {
  test('arrow keys go on from the row that was clicked', async () => {
    const tenant = await service.signUp()
    for (const title of ['first', 'second']) await ask(tenant, { title })
    await chromium.visit(service.url, async (page) => {
      await page.addInitScript(clicks_of_safari)
      await signIn(page, tenant, '/console/approvals')
      await loaded(page)
      const rows = await page.locator('tbody a').allInnerTexts()
      await page.getByRole('link', { name: rows[0]!, exact: true }).click()
      await page
        .getByRole('region', { name: 'Open record' })
        .getByRole('heading', { name: rows[0]! })
        .waitFor()
      expect(await page.evaluate('document.activeElement === window.ringed')).toBe(false)
      await page.keyboard.press('ArrowDown')
      expect(await focused(page)).toBe(rows[1])
    })
  })

  test('a question gives the focus back to the button that was clicked', async () => {
    const tenant = await service.signUp()
    const [id, key] = [await ask(tenant, {}), await keyOf(tenant)]
    await chromium.visit(
      service.url,
      async (page) => {
        await page.addInitScript(clicks_of_safari)
        await page.goto(linkOf(id, key))
        await press(page, 'Reject…')
        await page.getByRole('dialog').waitFor()
        await page.keyboard.press('Escape')
        expect(await focused(page)).toBe('Reject…')
        await press(page, 'Approve…')
        await press(page, 'Go back')
        expect(await focused(page)).toBe('Approve…')
      },
      narrow,
    )
  })
})

test('Enter in a field leaves the focus there, though it clicks the button of its form', async () => {
  const tenant = await service.signUp()
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/audit')
    await loaded(page)
    const field = page.getByLabel('Action begins with', { exact: true })
    await field.fill('invoice')
    await field.press('Enter')
    await page.waitForURL(/action_prefix=invoice$/)
    await page.keyboard.type('.paid')
    expect(await field.inputValue()).toBe('invoice.paid')
  })
})

test('a click beside a question gives the focus back to its button', async () => {
  const tenant = await service.signUp()
  const [id, key] = [await ask(tenant, {}), await keyOf(tenant)]
  await chromium.visit(
    service.url,
    async (page) => {
      await page.goto(linkOf(id, key))
      await press(page, 'Reject…')
      await page.getByRole('dialog').waitFor()
      await page.mouse.click(180, 10)
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      expect(await focused(page)).toBe('Reject…')
    },
    narrow,
  )
})

/** In Safari, and in Firefox since 136, this member is a boolean (HTML, "autocorrect"): the text "off" given to it means on. */
const autocorrect_of_safari = `Object.defineProperty(HTMLElement.prototype, 'autocorrect', {
  get() { return this.getAttribute('autocorrect') !== 'off' },
  set(value) { this.setAttribute('autocorrect', value ? 'on' : 'off') },
})`

describe('On a phone', () => {
  const phone = { ...narrow, hasTouch: true, isMobile: true }
  const small = `[...document.querySelectorAll('input:not([type=checkbox]), textarea, select')]
    .filter((field) => parseFloat(getComputedStyle(field).fontSize) < 16).map(({ outerHTML }) => outerHTML)`

  test('the browser has no reason to zoom into a field, and nothing is wider than the screen', async () => {
    const tenant = await service.signUp()
    const { id, lee } = await askTwo(tenant)
    const put = { key: tenant.api_key, body: { value: 1 } }
    await service.ask('PUT', '/v1/kv/cache/one', put)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, lee))
        await press(page, 'Change the payload')
        await page.locator('.permit summary').click()
        expect([await page.evaluate(small), await overflow(page)]).toEqual([[], 0])
        await signIn(page, tenant)
        for (const path of ['audit', 'kv/cache', 'workflows', 'rate-limits']) {
          await page.goto(`/console/${path}`)
          await loaded(page)
          const filter = page.getByRole('button', { name: 'Filter', exact: true })
          if (await filter.isVisible()) await filter.click()
          expect(await page.locator('#main input').first().isVisible()).toBe(true)
          expect([path, await page.evaluate(small), await overflow(page)]).toEqual([path, [], 0])
        }
      },
      phone,
    )
  })

  test('the keyboard writes JSON, names and searches as they are typed, and a reason as a text', async () => {
    const tenant = await service.signUp()
    const { id, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        const helps = (label: string) =>
          page
            .getByLabel(label, { exact: true })
            .evaluate((field) =>
              ['spellcheck', 'autocapitalize', 'autocorrect'].map((name) => field.getAttribute(name)),
            )
        const exact = ['false', 'none', 'off']
        await page.addInitScript(autocorrect_of_safari)
        await page.goto(linkOf(id, lee))
        await press(page, 'Change the payload')
        expect(await helps('Payload')).toEqual(exact)
        expect(await helps('Reason')).toEqual(['true', null, null])
        await signIn(page, tenant, '/console/audit')
        await press(page, 'Filter')
        expect(await helps('Action begins with')).toEqual(exact)
        await page.goto('/console/keys')
        await press(page, 'Create an agent…')
        expect(await helps('Name')).toEqual(exact)
        expect(await helps('What it does')).toEqual(['false', null, null])
      },
      narrow,
    )
  })
})

/** What came after Safari 16.4, Firefox 121 and Chrome 111. */
const later_than = `
  for (const name of ['any', 'timeout']) delete AbortSignal[name]
  for (const name of ['canParse', 'parse']) delete URL[name]
  delete URLSearchParams.prototype.size
  for (const name of ['withResolvers', 'try']) delete Promise[name]
  for (const name of ['groupBy']) { delete Object[name]; delete Map[name] }
  delete Array.fromAsync
  for (const name of ['union', 'intersection', 'difference', 'symmetricDifference', 'isSubsetOf'])
    delete Set.prototype[name]
  for (const name of ['map', 'filter', 'take', 'drop', 'flatMap', 'reduce', 'toArray', 'forEach', 'some', 'every', 'find'])
    delete Iterator.prototype[name]
  delete window.Iterator
  for (const name of ['isWellFormed', 'toWellFormed']) delete String.prototype[name]`

describe('In a browser of 2023', () => {
  test('the console filters, and follows what happens', async () => {
    const tenant = await service.signUp()
    const [id, key] = [await ask(tenant, { title: 'decided' }), await keyOf(tenant)]
    await approve(id, key)
    await ask(tenant, { title: 'undecided', workflow_id: 'one' })
    await chromium.visit(service.url, async (page) => {
      await page.addInitScript(later_than)
      const titles = () => page.locator('#main tbody a').allInnerTexts()
      await signIn(page, tenant, '/console/approvals')
      await becomes(titles, ['undecided'])
      await ask(tenant, { title: 'new' })
      await becomes(async () => (await titles()).toSorted(), ['new', 'undecided'])
      await page.getByRole('tab', { name: 'Approved' }).click()
      await becomes(titles, ['decided'])
      expect(new URL(page.url()).search).toBe('?status=approved')
      await page.goto('/console/workflows/one')
      await page.getByText('Live: what happens next appears here by itself.').waitFor()
      await page.goto('/console/dlq')
      await loaded(page)
    })
  })

  test('the approval page shows a prompt with a link, and waits for the decision', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { prompt: 'See <https://example.com/order/7>.' })
    const key = await keyOf(tenant)
    await chromium.visit(service.url, async (page) => {
      await page.addInitScript(later_than)
      const requests = requestsOf(page)
      await page.goto(linkOf(id, key))
      await page.getByRole('link', { name: 'https://example.com/order/7' }).waitFor()
      await until(() => requests.some((request) => request.url().endsWith('?wait=4')))
      await press(page, 'Approve…')
      await press(page, 'Yes, approve')
      await page.getByText('You approved this').waitFor()
    })
  })
})
