// The operator mends what broke: from a schedule that failed, by its attempts, to the dead letter it left.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { RawJson } from '../sdk/src/index.ts'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  callsOf,
  lookAgain,
  narrow,
  overflow,
  refusals,
  signIn,
  tabTo,
  themes,
  useRealTime,
  useService,
} from './support/console.ts'
import { becomes } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'

const chromium = useChromium()

const service = useService()

const { agentOf, tick } = callsOf(service)

/** Time passes for the service, and the browser's that is opened next. */
async function ticksAt(...after_ms: number[]): Promise<void> {
  for (const ms of after_ms) {
    service.clock.advance(ms)
    await tick()
  }
}

function inMs(ms: number): string {
  return new Date(service.clock.now() + ms).toISOString()
}

const detail = (page: Page) => page.locator('.split-detail')

describe('The console', () => {
  test('leads from a schedule that failed, by why, to the dead letter it left and back', async () => {
    const receiver = await startReceiver()
    try {
      receiver.answer = () => ({ status: receiver.requests.length === 1 ? 500 : 503 })
      const tenant = await service.signUp()
      const agent = agentOf(tenant)
      const { id } = await agent.schedules.create({
        callback_url: `${receiver.url}/remind`,
        callback_payload: new RawJson('{"order": 12345678901234567890, "order": 1e400}'),
        fire_at: inMs(0),
        dlq_on_failure: true,
      })
      await agent.dlq.create({ payload: 1, error: 'another one' })
      await ticksAt(0, 30_000, 60_000)
      await agent.dlq.create({ payload: 2, error: 'a later one' })
      useRealTime(service)
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant, '/console/schedules')
        await page.getByText('No call is scheduled').waitFor()
        await page.getByRole('tab', { name: 'Failed' }).click()
        const failed = page.getByRole('row', { name: '/remind' })
        await failed.getByRole('link', { name: 'its dead letter' }).waitFor()
        await failed.getByRole('link', { name: 'The receiver answered 503 Service Unavailable' }).click()
        await page.waitForURL(`${service.url}/console/schedules/${id}?status=failed`)
        await detail(page).getByText('Gave up after 3 attempts').waitFor()
        await detail(page).getByText('Something broke at the receiver.').waitFor()
        const attempts = page.getByRole('list', { name: 'Attempts, newest first' }).getByRole('listitem')
        await attempts.first().waitFor()
        expect(
          (await attempts.allInnerTexts()).map((text) => text.split('\n').filter((line) => line)),
        ).toEqual([
          [
            'Attempt 3',
            expect.any(String),
            expect.stringMatching(/^The receiver answered 503 Service Unavailable\./),
          ],
          [
            'Attempt 2',
            expect.any(String),
            expect.stringMatching(/^The receiver answered 503 Service Unavailable\./),
          ],
          [
            'Attempt 1',
            expect.any(String),
            expect.stringMatching(/^The receiver answered 500 Internal Server Error\./),
          ],
        ])
        await becomes(
          () => page.locator('.tree li').allInnerTexts(),
          ['order: 12345678901234567890', 'order: 1e400'],
        )
        await page.getByRole('link', { name: 'Go to the dead letter it left' }).click()
        await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
        await detail(page).getByText(`the callback of schedule ${id} failed: status 503`).waitFor()
        await page.locator('.tree').getByText('order: 12345678901234567890').waitFor()
        await page.getByRole('link', { name: 'the schedule that failed' }).click()
        await detail(page).getByText('Gave up after 3 attempts').waitFor()
        await page.waitForURL(`${service.url}/console/schedules/${id}?status=failed`)
        const left = detail(page).locator('.letter-place .badge')
        await left.getByText('failed', { exact: true }).waitFor()
        for await (const letter of agent.dlq.list({ source_id: id })) await agent.dlq.resolve(letter.id)
        await left.getByText('resolved', { exact: true }).waitFor()
      })
    } finally {
      await receiver.stop()
    }
  })

  const answers: [what: string, status: number, words: string, advice: string][] = [
    ['a redirect', 302, 'The receiver answered 302.', 'redirects are not followed'],
    [
      'a refusal of the signature',
      401,
      'The receiver answered 401 Unauthorized.',
      'how it verifies the signature',
    ],
    ['an end', 410, 'Gave up after one attempt', 'wants no more of these'],
  ]
  test.each(answers)('says why a call that met %s failed', async (_, status, words, advice) => {
    const receiver = await startReceiver()
    try {
      receiver.answer = () => ({ status })
      const tenant = await service.signUp()
      const { id } = await agentOf(tenant).schedules.create({
        ...{ callback_url: receiver.url, callback_payload: null, fire_at: inMs(0) },
      })
      await ticksAt(0, 30_000, 60_000)
      useRealTime(service)
      await chromium.visit(service.url, async (page) => {
        await signIn(page, tenant, `/console/schedules/${id}?status=failed`)
        const why = page.getByRole('region', { name: 'Why it failed' })
        await why.getByText(words).waitFor()
        await why.getByText(advice).waitFor()
        await why.getByText('It left no dead letter').waitFor()
      })
    } finally {
      await receiver.stop()
    }
  })

  test('shows what is to come on a time line, soonest first, and follows an attempt that fails', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    useRealTime(service)
    const at = (path: string, ms: number) =>
      agent.schedules.create({
        callback_url: `http://127.0.0.1:1/${path}`,
        callback_payload: 1,
        fire_at: inMs(ms),
      })
    const soon = await at('soon', 10 * 60_000)
    await at('much-later', 40 * 86_400_000)
    await at('at-once', 0)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/schedules')
      const links = page.locator('.timeline a')
      await links.first().waitFor()
      expect(await links.allInnerTexts()).toEqual([
        'http://127.0.0.1:1/at-once',
        'http://127.0.0.1:1/soon',
        'http://127.0.0.1:1/much-later',
      ])
      expect(await page.locator('.timeline-group').allInnerTexts()).toEqual([
        'Due now 1',
        'Within an hour 1',
        'Later 1',
      ])
      await page.getByText('2 of 3 within the next hour').waitFor()
      await tick()
      await lookAgain(page)
      await page.getByText('attempt 2 of 3').waitFor()
      await page.getByRole('link', { name: 'at-once' }).click()
      await page.getByText('Failed once so far').waitFor()
      await page.getByText('No connection, or it broke before a whole answer began.').first().waitFor()
      await page.goto(`/console/schedules/${soon.id}`)
      await page.getByText('None yet.').waitFor()
      await page.getByText('Change or cancel it').click()
      const commands = await detail(page).locator('pre').allInnerTexts()
      expect(commands.map((command) => command.split(' \\\n')[0])).toEqual([
        `curl -g -X PATCH '${service.url}/v1/schedules/${soon.id}'`,
        `curl -g -X DELETE '${service.url}/v1/schedules/${soon.id}'`,
      ])
      await page.getByText('Create a schedule').click()
      await page.getByRole('region', { name: 'Command that creates a schedule' }).waitFor()
    })
  })

  test('groups dead letters by cause, and a cause is an address', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    for (const order of [7, 8, 9]) {
      await agent.dlq.create({
        payload: { order },
        error: `order ${order}: card declined\nstack`,
        workflow_id: 'w 1',
      })
    }
    await agent.dlq.create({ payload: 1, error: 'status 502 from the bank' })
    await agent.dlq.create({ payload: 1, error: 'status 503 from the bank' })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/dlq')
      await page.getByRole('button', { name: 'By cause' }).click()
      await page.waitForURL(`${service.url}/console/dlq?by=cause`)
      const rows = page.getByRole('table', { name: 'Causes: Failed' }).locator('tbody tr')
      await rows.first().waitFor()
      const [most, ...others] = (await rows.allInnerTexts()).map((row) =>
        row.split(/\s*[\n\t]\s*/).slice(0, 3),
      )
      expect(most).toEqual(['order …: card declined', 'From agents', '3'])
      // Of one number, and of one instant.
      expect(others.toSorted()).toEqual([
        ['status 502 from the bank', 'From agents', '1'],
        ['status 503 from the bank', 'From agents', '1'],
      ])
      await page.getByRole('link', { name: 'order …: card declined' }).click()
      await page.getByRole('listitem').filter({ hasText: 'order …: card declined' }).waitFor()
      await becomes(() => new URL(page.url()).searchParams.get('cause'), 'order …: card declined')
      await page.reload()
      await page.getByRole('link', { name: 'order 7' }).waitFor()
      expect((await page.locator('.table .failure-title').allInnerTexts()).toSorted()).toEqual([
        'order 7: card declined',
        'order 8: card declined',
        'order 9: card declined',
      ])
      await page.getByRole('link', { name: 'order 8' }).click()
      expect(await page.getByRole('link', { name: 'w 1' }).getAttribute('href')).toBe(
        '/console/workflows/w%201',
      )
      expect(await page.getByRole('region', { name: 'Error' }).innerText()).toBe(
        'order 8: card declined\nstack',
      )
      await page.getByRole('button', { name: 'Show all' }).click()
      await page.getByRole('link', { name: 'status 502' }).waitFor()
    })
  })

  test('follows a dead letter through claim and resolution, and shows the commands for each', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.dlq.create({ payload: [0.1], error: 'card declined' })
    const verbs = (page: Page) => detail(page).locator('.commands .label').allInnerTexts()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/dlq')
      await page.getByRole('link', { name: 'card declined' }).click()
      await page.getByText('Work on it with commands').click()
      await becomes(() => verbs(page), ['Claim it', 'Redrive it', 'Resolve it', 'Delete it'])
      expect(await detail(page).locator('pre').first().innerText()).toStartWith(
        `curl -g -X POST '${service.url}/v1/dlq/${id}/claim'`,
      )
      await agent.dlq.claim(id)
      await lookAgain(page)
      await detail(page).getByText('Claimed by agent-one').waitFor()
      await page.getByText('No dead letter waits to be resolved').waitFor()
      await becomes(
        () => verbs(page),
        ['Extend the lock', 'Release it for others', 'Archive it', 'Resolve it', 'Delete it'],
      )
      await page.getByRole('tab', { name: 'Claimed' }).click()
      await page.waitForURL(`${service.url}/console/dlq/${id}?status=claimed`)
      await page.getByRole('link', { name: 'card declined' }).waitFor()
      await service.ask('POST', `/v1/dlq/${id}/resolve`, { key: tenant.api_key })
      await lookAgain(page)
      await page.getByText('No dead letter is claimed').waitFor()
      const moments = page.getByRole('list', { name: 'What happened to it' }).locator('.history-title')
      await becomes(() => moments.allInnerTexts(), ['Resolved', 'Captured'])
    })
  })

  test('follows an open dead letter that the list beside it does not show', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.dlq.create({ payload: 1, error: 'card declined' })
    const { lock_token } = (await agent.dlq.claim(id))!
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/dlq/${id}`)
      await detail(page).getByText('Claimed by agent-one').waitFor()
      await page.getByText('No dead letter waits to be resolved').waitFor()
      await service.ask('POST', `/v1/dlq/${id}/fail`, { key: tenant.api_key, body: { lock_token } })
      await detail(page).locator('.history-title').getByText('Archived').waitFor()
      await service.ask('POST', `/v1/dlq/${id}/resolve`, { key: tenant.api_key })
      await detail(page).locator('.history-title').getByText('Resolved').waitFor()
    })
  })

  test('keeps the question about a row that an agent takes out of the list, and says so in it', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.dlq.create({ payload: 1, error: 'card declined' })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByRole('button', { name: 'Discard… card declined' }).click()
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        await agent.dlq.claim(id)
        await page.getByText('No dead letter waits to be resolved').waitFor()
        await dialog.getByRole('button', { name: 'Yes, discard' }).click()
        await dialog.getByText('An agent works on it now.').waitFor()
        await dialog.getByRole('button', { name: 'Go back' }).click()
        await dialog.waitFor({ state: 'detached' })
      },
      { viewport: { width: 1_280, height: 800 } },
    )
  })

  test('keeps the status in the address, and loads more by keyboard without losing the place', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const letters = await Promise.all(
      Array.from({ length: 51 }, (_, i) => agent.dlq.create({ payload: i, error: `failure number ${i}` })),
    )
    expect(letters).toHaveLength(51)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/dlq')
      const rows = page.locator('.table tbody tr')
      await rows.first().waitFor()
      expect(await rows.count()).toBe(50)
      await page.getByRole('button', { name: 'Show more' }).focus()
      await page.keyboard.press('Enter')
      await page.getByText('That is all.').waitFor()
      expect(await rows.count()).toBe(51)
      expect(await page.evaluate('document.activeElement.textContent')).toBe('That is all.')
      await page.getByRole('tab', { name: 'Failed' }).focus()
      await page.keyboard.press('End')
      await page.getByText('No operations').waitFor()
      await page.keyboard.press('ArrowLeft')
      await page.getByText('No dead letter was archived').waitFor()
      await page.waitForURL(`${service.url}/console/dlq?status=archived`)
      await page.reload()
      await page.getByText('No dead letter was archived').waitFor()
    })
  })

  const absent: [what: string, path: string][] = [
    ['schedule', '/console/schedules/sch_01k9x3m6v2h8qa4n0r5t7w1z9c'],
    ['dead letter', '/console/dlq/dlq_01k9x3m6v2h8qa4n0r5t7w1z9c'],
  ]
  test.each(absent)('says that a %s does not exist', async (_, path) => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, path)
        await detail(page).getByText('There is no such thing here.').first().waitFor()
      },
      { expected: refusals(404) },
    )
  })

  test.each(themes)(
    'shows schedules and dead letters accessibly in the %s theme, and narrow',
    async (colorScheme) => {
      const tenant = await service.signUp()
      const agent = agentOf(tenant)
      const call = {
        callback_url: `http://127.0.0.1:1/${'long/'.repeat(30)}`,
        callback_payload: { a: [1, 'b'] },
      }
      const failed = await agent.schedules.create({ ...call, fire_at: inMs(0), dlq_on_failure: true })
      await ticksAt(0, 30_000, 60_000)
      useRealTime(service)
      const upcoming = await agent.schedules.create({ ...call, fire_at: inMs(3_600_000) })
      const { id } = await agent.dlq.create({
        payload: {},
        error: 'x'.repeat(3_000),
        workflow_id: 'w'.repeat(200),
      })
      const pages: [path: string, seen: string][] = [
        ['/console/schedules', 'within the next'],
        [`/console/schedules/${upcoming.id}`, 'None yet.'],
        [`/console/schedules/${failed.id}?status=failed`, 'Go to the dead letter it left'],
        [`/console/dlq/${id}`, 'A claim holds'],
        ['/console/dlq?by=cause', 'Ids and numbers are left out'],
      ]
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant, '/console/schedules')
          for (const [path, seen] of pages) {
            await page.goto(path)
            await page.getByText(seen).waitFor()
            for (const summary of await page.locator('summary:visible').all()) await summary.click()
            expect(await accessibilityFaults(page)).toEqual([])
            expect(await overflow(page)).toBe(0)
          }
          await page.goto('/console/schedules')
          await page.locator('.timeline a').waitFor()
          await tabTo(page, 'Upcoming')
          await tabTo(page, call.callback_url)
          await page.keyboard.press('Enter')
          await page.getByText('None yet.').waitFor()
        },
        { ...narrow, colorScheme },
      )
    },
  )
})
