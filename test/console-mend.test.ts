// The operator mends in the console: finds failures, sends calls again, discards many, and acts through an agent.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  callsOf,
  lookAgain,
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
import { becomes, until } from './support/patience.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()

const service = useService()

const { agentOf, tick } = callsOf(service)

/** Time passes for the service until every call has had its three attempts. */
async function giveUp(): Promise<void> {
  for (const ms of [0, 30_000, 60_000]) {
    service.clock.advance(ms)
    await tick()
  }
  useRealTime(service)
}

function scheduled(tenant: TestTenant, receiver: Receiver, name: string, dlq_on_failure: boolean) {
  return agentOf(tenant).schedules.create({
    name,
    callback_url: `${receiver.url}/${name.replaceAll(' ', '-')}`,
    callback_payload: { job: name },
    fire_at: new Date(service.clock.now()).toISOString(),
    dlq_on_failure,
  })
}

function parked(tenant: TestTenant, letters: number): Promise<{ id: string }[]> {
  const agent = agentOf(tenant)
  return Promise.all(
    Array.from({ length: letters }, (_, i) =>
      agent.dlq.create({ payload: { order: i }, error: `order ${1_000 + i}: card declined` }),
    ),
  )
}

/** An approval whose decision no receiver took. */
async function undelivered(tenant: TestTenant, receiver: Receiver): Promise<string> {
  const { id } = await agentOf(tenant).checkpoints.create({ title: 'Pay back?', callback_url: receiver.url })
  await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key, body: {} })
  await giveUp()
  return id
}

/** The dead letters that it left. */
async function lettersOf({ admin_key }: TestTenant, source_id: string) {
  return (await service.ask('GET', `/v1/dlq?source_id=${source_id}`, { key: admin_key })).body.items
}

async function letter({ admin_key }: TestTenant, id: string) {
  return (await service.ask('GET', `/v1/dlq/${id}`, { key: admin_key })).body
}

async function schedules({ admin_key }: TestTenant, query = '') {
  return (await service.ask('GET', `/v1/schedules${query}`, { key: admin_key })).body.items
}

const detail = (page: Page) => page.locator('.split-detail')
const dialog = (page: Page) => page.locator('dialog[open]')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const rows = (page: Page) => page.locator('.table tbody tr')
const toast = (page: Page) => page.locator('.toast').last()
const wide = { viewport: { width: 1_280, height: 800 } }

async function withReceiver(work: (receiver: Receiver) => Promise<void>): Promise<void> {
  const receiver = await startReceiver()
  try {
    receiver.answer = () => ({ status: 503 })
    await work(receiver)
  } finally {
    await receiver.stop()
  }
}

describe('The operator', () => {
  test.each([
    ['wide', wide],
    ['narrow', narrow],
  ])('finds failures, sends two again and discards forty, on a %s screen', async (_, options) => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      const report = await scheduled(tenant, receiver, 'nightly report', true)
      const reminder = await scheduled(tenant, receiver, 'reminder', false)
      await giveUp()
      const many = await parked(tenant, 41)
      receiver.answer = () => ({})
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant)
          const failures = page.getByRole('region', { name: 'Failures of the last day' })
          await failures.getByText('43 failed and not resolved').waitFor()
          // One row for a cause; a schedule and the dead letter it left are one.
          await becomes(
            async () => (await failures.locator('.failure-title').allInnerTexts()).toSorted(),
            [
              'The receiver answered 503 Service Unavailable',
              'The receiver answered 503 Service Unavailable',
              'order …: card declined',
            ],
          )
          await failures.getByText(/nightly report · 127\.0\.0\.1:\d+\/nightly-report/).waitFor()
          await failures.getByText('41 dead letters of this cause').waitFor()
          await failures.getByRole('link', { name: 'All failures' }).click()

          await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
          await page.getByRole('button', { name: 'By cause' }).click()
          await page.getByRole('link', { name: 'The receiver answered 503' }).click()
          await page.getByText(/Schedule · nightly report/).waitFor()
          await becomes(() => rows(page).count(), 1)
          await rows(page).first().getByRole('link').click()
          await detail(page).getByRole('button', { name: 'Redrive…' }).click()
          await dialog(page)
            .getByText(/The call is made to 127\.0\.0\.1:\d+\/nightly-report now,/)
            .waitFor()
          await press(page, 'Yes, send it again')
          // The toast goes away by itself: nothing is waited for before its link is followed.
          await toast(page).getByRole('link', { name: 'See the new schedule' }).click()
          await detail(page).getByText('pending', { exact: true }).waitFor()
          await tick()
          await lookAgain(page)
          await detail(page).getByText('fired', { exact: true }).waitFor()
          await detail(page).getByText('nightly report').first().waitFor()
          expect(receiver.requests.at(-1)!.target).toBe('/nightly-report')
          await page.goBack()
          await detail(page).getByText('Sent again as').waitFor()

          await page.goto('/console/dlq')
          const alone = page.getByRole('region', { name: 'Failed schedules without a dead letter' })
          await alone.getByText(/reminder · /).waitFor()
          await alone.getByRole('link').first().click()
          await detail(page).getByText('It left no dead letter').waitFor()
          await press(page, 'Retry…')
          await press(page, 'Yes, send it again')
          await toast(page).getByText('Sent again.').waitFor()
          await tick()
          expect(receiver.requests.at(-1)!.target).toBe('/reminder')

          await page.goto('/console/dlq')
          await page.getByRole('checkbox', { name: 'Select all 41 that are shown' }).check()
          await page.getByText('All 41').or(page.getByText('41 selected')).waitFor()
          await rows(page).last().getByRole('checkbox').uncheck()
          const unchecked = await rows(page).last().getByRole('link').first().getAttribute('href')
          await page.getByText('40 selected').waitFor()
          await press(page, 'Discard…')
          await page.getByRole('dialog', { name: 'Discard 40 dead letters?' }).waitFor()
          await agentOf(tenant).dlq.claim(many.find(({ id }) => !unchecked!.includes(id))!.id)
          await press(page, 'Yes, discard 40')
          await detail(page).getByText('Discard of 40 dead letters').waitFor()
          await page.waitForURL('**/console/dlq/dop_*')
          // What a step leaves is due after the tick began.
          await until(async () => {
            await tick()
            return detail(page).getByText('39 discarded, 1 skipped.').first().isVisible()
          })
          await page.reload()
          await detail(page).getByText('39 discarded, 1 skipped.').waitFor()
          await detail(page).getByText('an agent had claimed it').waitFor()
          expect(await overflow(page)).toBe(0)
        },
        options,
      )
      const statuses = await Promise.all(many.map(async ({ id }) => (await letter(tenant, id)).status))
      expect(statuses.filter((status) => status === 'archived')).toHaveLength(39)
      expect(statuses.filter((status) => status === 'claimed')).toHaveLength(1)
      expect(
        (await schedules(tenant, '?status=fired'))
          .map((one: { retry_of: string }) => one.retry_of)
          .toSorted(),
      ).toEqual([report.id, reminder.id].toSorted())
    })
  })

  test('sends once for two clicks, and reads in words what the API refuses', async () => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      await scheduled(tenant, receiver, 'report', true)
      await giveUp()
      const [{ id }] = (await service.ask('GET', '/v1/dlq', { key: tenant.admin_key })).body.items
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant, `/console/dlq/${id}`)
          const requests = requestsOf(page)
          await press(page, 'Redrive…')
          await page.getByRole('button', { name: 'Yes, send it again' }).dblclick()
          await detail(page).getByText('Sent again as').waitFor()
          expect(requests.filter((request) => request.method() === 'POST')).toHaveLength(1)
          expect(await detail(page).getByRole('button', { name: 'Redrive' }).isDisabled()).toBe(true)
          const other = await scheduled(tenant, receiver, 'other', true)
          await giveUp()
          await page.goto(`/console/schedules/${other.id}?status=failed`)
          await press(page, 'Retry…')
          const { dead_letter_id } = await (
            await service.ask('GET', `/v1/schedules/${other.id}`, { key: tenant.admin_key })
          ).body
          await agentOf(tenant).dlq.claim(dead_letter_id)
          await press(page, 'Yes, send it again')
          await dialog(page).getByText('An agent works on it now.').waitFor()
          await press(page, 'Go back')
          await service.ask('POST', `/v1/dlq/${dead_letter_id}/release`, { key: tenant.api_key })
          await press(page, 'Retry…')
          await service.ask('POST', `/v1/schedules/${other.id}/retry`, { key: tenant.admin_key })
          // The question stays open while the page learns that it is too late.
          await detail(page).getByText('Sent again as').waitFor()
          await press(page, 'Yes, send it again')
          await dialog(page).getByText('It has been sent again already.').waitFor()
        },
        { expected: refusals(409) },
      )
    })
  })

  test('says why a dead letter cannot be mended, beside the button', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const [held, parked_one] = await parked(tenant, 2)
    await agent.dlq.claim(held!.id)
    const expired = await agent.checkpoints.create({
      title: 'Pay back 12.40 EUR?',
      callback_url: 'http://127.0.0.1:1/',
      timeout_seconds: 60,
      timeout_action: 'dlq',
    })
    service.clock.advance(61_000)
    await tick()
    useRealTime(service)
    const left = (await service.ask('GET', `/v1/dlq?source_id=${expired.id}`, { key: tenant.admin_key })).body
      .items
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/dlq/${held!.id}?status=claimed`)
      await detail(page).getByText('agent-one works on it until its lock ends.').waitFor()
      for (const name of ['Redrive', 'Discard', 'Resolve']) {
        expect(await detail(page).getByRole('button', { name, exact: true }).isDisabled()).toBe(true)
      }
      await page.goto(`/console/dlq/${parked_one!.id}`)
      await detail(page).getByText('there is no call to send again').waitFor()
      await page.goto(`/console/dlq/${left[0].id}`)
      await detail(page).getByText('The callback of this approval did not fail').waitFor()
      await detail(page).locator('.origin').getByText('Pay back 12.40 EUR?').waitFor()
    })
  })

  test('gives no reason while an approval is not known, and looks for it again', async () => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      const id = await undelivered(tenant, receiver)
      const [first] = await lettersOf(tenant, id)
      await chromium.visit(
        service.url,
        async (page) => {
          let [looks, fails] = [0, true]
          await page.route(`**/v1/checkpoints/${id}`, (route) => {
            looks += 1
            return fails ? route.fulfill({ status: 503, body: 'of a proxy' }) : route.continue()
          })
          await signIn(page, tenant, `/console/dlq/${first.id}`)
          await detail(page).getByText('Left by the approval it was about').waitFor()
          await until(() => looks > 0)
          const redrive = (name: string) => detail(page).getByRole('button', { name, exact: true })
          expect(await redrive('Redrive').isDisabled()).toBe(true)
          expect(await detail(page).locator('.reasons').count()).toBe(0)
          fails = false
          await lookAgain(page)
          await detail(page).locator('.origin').getByText('Pay back?').waitFor()
          expect(await redrive('Redrive…').isEnabled()).toBe(true)
        },
        { expected: refusals(503) },
      )
    })
  })

  test('sends a callback again that failed, was sent again and failed once more', async () => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      const id = await undelivered(tenant, receiver)
      const [first] = await lettersOf(tenant, id)
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant, `/console/dlq/${first.id}`)
        await press(page, 'Redrive…')
        await press(page, 'Yes, send it again')
        await detail(page).getByText('Sent again as').waitFor()
        // Looked at while it is on its way.
        await page.reload()
        await detail(page).locator('.origin').getByText('Pay back?').waitFor()
        await giveUp()
        const second = (await lettersOf(tenant, id)).find((one: { id: string }) => one.id !== first.id)
        await page.locator(`.failure-title[href*="${second.id}"]`).click()
        await detail(page).getByRole('button', { name: 'Redrive…', exact: true }).waitFor()
        expect(await detail(page).locator('.reasons').allInnerTexts()).toEqual([])
      })
    })
  })

  test('acts through an agent of the console, created with one click, with a new key in a later session', async () => {
    const tenant = await service.signUp()
    const [first, second, third] = await parked(tenant, 3)
    const agents = async () =>
      (await service.ask('GET', '/v1/agents', { key: tenant.admin_key })).body.items.map(
        ({ agent_id }: { agent_id: string }) => agent_id,
      )
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/dlq/${first!.id}`)
        await press(page, 'Resolve…')
        await dialog(page).getByText('Only agents may do this').waitFor()
        await press(page, 'Create the agent and resolve')
        await detail(page).getByText('resolved', { exact: true }).first().waitFor()
        expect((await agents()).toSorted()).toEqual(['agent-one', 'console'])
        expect((await letter(tenant, first!.id)).status).toBe('resolved')
        await page.goto(`/console/dlq/${second!.id}`)
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await toast(page).getByText('Deleted.').waitFor()
        expect((await service.ask('GET', `/v1/dlq/${second!.id}`, { key: tenant.admin_key })).status).toBe(
          404,
        )
        await press(page, 'Sign out')
        expect(await page.evaluate('sessionStorage.length')).toBe(0)
        await signIn(page, tenant, `/console/dlq/${third!.id}`)
        await press(page, 'Resolve…')
        await press(page, 'Get a new key and resolve')
        await detail(page).getByText('resolved', { exact: true }).first().waitFor()
        expect(await agents()).toHaveLength(2)
        await page.goto('/console/keys/agents/console')
        await detail(page).getByText('The console acts through this agent').waitFor()
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await toast(page).getByText('Deleted console.').waitFor()
        // The key of the session has ended with the agent: one more click gets another.
        const [fourth] = await parked(tenant, 1)
        await page.goto(`/console/dlq/${fourth!.id}`)
        await press(page, 'Resolve…')
        await press(page, 'Yes, resolve')
        await dialog(page).getByText('The key of the console’s agent has ended.').waitFor()
        await press(page, 'Create the agent and resolve')
        await detail(page).getByText('resolved', { exact: true }).first().waitFor()
      },
      { expected: refusals(401, 404) },
    )
  })

  test('says what becomes of the agent before the click, or that this is not known', async () => {
    const tenant = await service.signUp()
    const [first, second] = await parked(tenant, 2)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/dlq/${first!.id}`)
        await press(page, 'Resolve…')
        await press(page, 'Create the agent and resolve')
        await detail(page).getByText('resolved', { exact: true }).first().waitFor()
        await press(page, 'Sign out')
        await signIn(page, tenant, `/console/dlq/${second!.id}`)
        let answers = Promise.withResolvers<boolean>()
        await page.route('**/v1/agents?*', async (route) => {
          if (await answers.promise) await route.continue()
          else await route.fulfill({ status: 503, body: 'of a proxy' })
        })
        await press(page, 'Resolve…')
        const yes = dialog(page).getByRole('button', { name: 'Yes, resolve' })
        await yes.waitFor()
        expect(await yes.isDisabled()).toBe(true)
        expect(await dialog(page).innerText()).not.toContain('created')
        answers.resolve(false)
        await dialog(page).getByRole('alert').waitFor()
        expect([await yes.isDisabled(), await accessibilityFaults(page)]).toEqual([true, []])
        answers = Promise.withResolvers()
        answers.resolve(true)
        await press(page, 'Try again')
        await dialog(page).getByText('This click gives the session a new key of it.').waitFor()
        // Somebody deletes it: the click makes no other one unless that has been said.
        await service.ask('DELETE', '/v1/agents/console', { key: tenant.admin_key })
        await press(page, 'Get a new key and resolve')
        await dialog(page).getByText('was created or deleted in the meantime').waitFor()
        await press(page, 'Create the agent and resolve')
        await detail(page).getByText('resolved', { exact: true }).first().waitFor()
      },
      { expected: refusals(503) },
    )
  })

  test('never takes the key of a program that is named like the console', async () => {
    const tenant = await service.signUp()
    const program = await service.addAgent(tenant.admin_key, 'console')
    const [{ id }] = (await parked(tenant, 1)) as [{ id: string }]
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/dlq/${id}`)
      await press(page, 'Resolve…')
      await press(page, 'Create the agent and resolve')
      await detail(page).getByText('resolved', { exact: true }).first().waitFor()
    })
    expect((await service.ask('GET', '/v1/namespaces', { key: program.api_key })).status).not.toBe(401)
    const { items } = (await service.ask('GET', '/v1/agents', { key: tenant.admin_key })).body
    expect(items.map(({ agent_id }: { agent_id: string }) => agent_id)).toContain('console-operator')
  })

  test('cancels a schedule and deletes a key through the agent, and no key of a private namespace', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.schedules.create({
      callback_url: 'http://127.0.0.1:1/later',
      callback_payload: 1,
      fire_at: new Date(service.clock.now() + 3_600_000).toISOString(),
    })
    await agent.kv.put('state', 'cursor', 7)
    await agent.kv.put('__agent.agent-one', 'token', 'abc')
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/schedules/${id}`)
        await press(page, 'Cancel…')
        await press(page, 'Create the agent and cancel it')
        await detail(page).getByText('cancelled', { exact: true }).waitFor()
        await detail(page).getByText('Retry: It was cancelled.').waitFor()
        await page.goto('/console/kv/state/cursor')
        await press(page, 'Delete…')
        await page.getByRole('dialog', { name: 'Delete this key?' }).waitFor()
        await agent.kv.put('state', 'cursor', 8)
        await press(page, 'Yes, delete')
        await dialog(page).getByText('It has changed in the meantime.').waitFor()
        await press(page, 'Go back')
        await lookAgain(page)
        await detail(page).locator('.tree').getByText('8').waitFor()
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await toast(page).getByText('Deleted.').waitFor()
        await page.goto('/console/kv/__agent.agent-one/token')
        await detail(page).locator('.reasons').getByText('A private namespace belongs to its agent').waitFor()
        expect(await detail(page).getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true)
      },
      { expected: refusals(409, 412) },
    )
    expect((await service.ask('GET', '/v1/kv/state/cursor', { key: tenant.api_key })).status).toBe(404)
  })

  test('deletes a key, which leaves the list with it', async () => {
    const tenant = await service.signUp()
    for (const key of ['a', 'b']) await agentOf(tenant).kv.put('state', key, 1)
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await signIn(page, tenant, '/console/kv/state/a')
      await press(page, 'Delete…')
      // The jump ends requests that are under way, as thirty seconds without an answer do.
      await page.getByRole('button', { name: 'Create the agent and delete' }).waitFor()
      // From here on nothing is asked for by a timer.
      await page.clock.pauseAt(Date.now() + 60_000)
      await press(page, 'Create the agent and delete')
      await toast(page).getByText('Deleted.').waitFor()
      await becomes(() => rows(page).locator('a').allInnerTexts(), ['b'])
    })
  })

  test('chooses rows one by one, by range, and all that match', async () => {
    const tenant = await service.signUp()
    await parked(tenant, 60)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await rows(page).first().waitFor()
        expect(await page.getByRole('button', { name: 'Discard', exact: true }).isDisabled()).toBe(true)
        const box = (i: number) => rows(page).nth(i).getByRole('checkbox')
        await box(1).check()
        await box(4).click({ modifiers: ['Shift'] })
        await page.getByText('4 selected').waitFor()
        await box(2).uncheck()
        await page.getByText('3 selected').waitFor()
        await press(page, 'Clear')
        await page.getByRole('checkbox', { name: 'Select all 50 that are shown' }).check()
        await press(page, 'Select all that match')
        await page.getByText('All that match').waitFor()
        await press(page, 'Discard…')
        await page.getByRole('dialog', { name: 'Discard 60 dead letters?' }).waitFor()
        await press(page, 'Yes, discard 60')
        await detail(page).getByText('Discard of 60 dead letters').waitFor()
        await tick()
        await detail(page).getByText('60 discarded.').first().waitFor()
        await page.getByText('No dead letter waits to be resolved').waitFor()
        await page.getByRole('tab', { name: 'Operations' }).click()
        await page.getByRole('table', { name: 'Operations on dead letters' }).waitFor()
      },
      wide,
    )
  })

  test('leaves what failed after all that match were chosen', async () => {
    const tenant = await service.signUp()
    await parked(tenant, 60)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByRole('checkbox', { name: 'Select all 50 that are shown' }).check()
        await press(page, 'Select all that match')
        await press(page, 'Discard…')
        await page.getByRole('dialog', { name: 'Discard 60 dead letters?' }).waitFor()
        service.clock.advance(1)
        const [late] = await parked(tenant, 1)
        await press(page, 'Yes, discard 60')
        await detail(page).getByText('Discard of 60 dead letters').waitFor()
        await tick()
        await detail(page).getByText('60 discarded.').first().waitFor()
        const failed = await service.ask('GET', '/v1/dlq?status=failed', { key: tenant.admin_key })
        expect(failed.body.items.map(({ id }: { id: string }) => id)).toEqual([late!.id])
      },
      wide,
    )
  })

  test('sends many again at a pace, goes on after a reload, and cancels the rest', async () => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      for (const name of ['one', 'two', 'three']) await scheduled(tenant, receiver, name, true)
      await giveUp()
      receiver.answer = () => ({})
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByText(/one · /).waitFor()
        await page.getByRole('checkbox', { name: 'Select all 3 that are shown' }).check()
        await press(page, 'Redrive…')
        await dialog(page).getByText('each call is made again').waitFor()
        await dialog(page)
          .getByText(/127\.0\.0\.1:\d+\/two/)
          .waitFor()
        await dialog(page).getByLabel('Pace').selectOption({ label: '1 every 10 seconds' })
        await press(page, 'Yes, redrive 3')
        await tick()
        await detail(page).getByText('1 redriven, 2 to come.').waitFor()
        await page.reload()
        await detail(page).getByText('1 redriven, 2 to come.').waitFor()
        await detail(page).getByText('sent again as').waitFor()
        await press(page, 'Cancel the rest…')
        await press(page, 'Yes, cancel the rest')
        await detail(page).getByText('Cancelled: 1 redriven, 2 left as they were.').first().waitFor()
      })
      expect(
        (await schedules(tenant)).filter((one: { retry_of: string | null }) => one.retry_of),
      ).toHaveLength(1)
    })
    useRealTime(service)
  })

  test('finds an operation that somebody else began above the list', async () => {
    const tenant = await service.signUp()
    await parked(tenant, 3)
    await chromium.visit(service.url, async (page) => {
      const body = { filter: {}, per_second: 1 }
      await service.ask('POST', '/v1/dlq/discard', { key: tenant.admin_key, body })
      await tick()
      await signIn(page, tenant, '/console/dlq')
      const running = page.getByRole('list', { name: 'Operations under way' })
      await running.getByRole('link', { name: 'Discard of 3 dead letters' }).waitFor()
      for (let step = 0; step < 3; step += 1) {
        service.clock.advance(1_000)
        await tick()
      }
      await lookAgain(page)
      await page.getByText('No dead letter waits to be resolved').waitFor()
      await running.waitFor({ state: 'detached' })
    })
  })

  test('discards by keyboard alone', async () => {
    const tenant = await service.signUp()
    const [{ id }] = (await parked(tenant, 1)) as [{ id: string }]
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await rows(page).first().waitFor()
        await tabTo(page, 'Select order 1000: card declined')
        await page.keyboard.press('Space')
        await page.getByText('1 selected').or(page.getByText('All 1')).waitFor()
        await page.getByRole('button', { name: 'Discard…', exact: true }).first().focus()
        await page.keyboard.press('Enter')
        await dialog(page).getByRole('button', { name: 'Yes, discard 1' }).waitFor()
        await tabTo(page, 'Yes, discard 1')
        await page.keyboard.press('Enter')
        await detail(page).getByText('Discard of 1 dead letter').waitFor()
        await tick()
        await detail(page).getByText('1 discarded.').first().waitFor()
      },
      wide,
    )
    expect((await letter(tenant, id)).status).toBe('archived')
  })

  test('forwards a message of an inbox once more', async () => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      const inbox = await agentOf(tenant).inboxes.create({
        label: 'Stripe',
        forwardUrl: `${receiver.url}/in`,
      })
      await service.ask('POST', new URL(inbox.url).pathname, { body: { charge: 7 } })
      await giveUp()
      receiver.answer = () => ({})
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant, `/console/inboxes/${inbox.id}`)
        await page.getByRole('link', { name: 'POST /' }).click()
        await press(page, 'Replay…')
        await dialog(page)
          .getByText(/The same bytes are sent to 127\.0\.0\.1:\d+\/in now/)
          .waitFor()
        await press(page, 'Yes, send it on')
        await detail(page).getByText('It is being sent on now.').waitFor()
        await tick()
        await detail(page).getByText('delivered').waitFor()
      })
      expect(receiver.requests.at(-1)!.target).toBe('/in')
    })
  })

  test.each(themes)('mends accessibly in the %s theme, and narrow', async (colorScheme) => {
    await withReceiver(async (receiver) => {
      const tenant = await service.signUp()
      await scheduled(tenant, receiver, `report ${'of everything '.repeat(6)}`.trim(), true)
      await scheduled(tenant, receiver, 'reminder', false)
      await giveUp()
      await parked(tenant, 3)
      const checked = async (page: Page) => {
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
      }
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant, '/console')
          await page.getByText('5 failed and not resolved').waitFor()
          await checked(page)
          await page.goto('/console/dlq?by=cause')
          await rows(page).first().waitFor()
          await checked(page)
          await page.getByRole('link', { name: 'order …' }).click()
          await page.getByRole('checkbox', { name: 'Select all 3 that are shown' }).check()
          await checked(page)
          await press(page, 'Redrive…')
          await dialog(page).getByText('for agents to claim').waitFor()
          await checked(page)
          await press(page, 'Go back')
          await press(page, 'Discard…')
          await press(page, 'Yes, discard 3')
          await tick()
          await detail(page).getByText('3 discarded.').first().waitFor()
          await page.getByRole('table', { name: 'Outcome of each' }).waitFor()
          await checked(page)
          await page.goto('/console/dlq')
          await page.getByRole('link', { name: 'The receiver answered 503' }).first().click()
          await press(page, 'Resolve…')
          await dialog(page).getByText('Only agents may do this').waitFor()
          await checked(page)
        },
        { ...narrow, colorScheme },
      )
    })
  })
})
